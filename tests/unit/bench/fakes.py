"""A device without a device: a clock that calls move, and a CUDA of stubs around it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any


class FakeTimer:
    """Takes what a call gives as its time in microseconds, if it is a number; else 10."""

    def __init__(self) -> None:
        self.how = "fake"
        self.measured: list[int] = []
        self.times: dict[int, float] = {}

    def us(self, calls: Sequence[Callable[[], Any]], ms: float) -> float:
        self.measured.append(id(calls))
        return self.times.get(id(calls), 10.0)


class FakeCuda:
    """The part of ``torch.cuda`` that timing uses: ``now`` is the device's clock in ms; a graph plays back what
    was called while it was captured."""

    def __init__(self) -> None:
        self.now = 0.0
        self.recorded: list[float] | None = None
        self.captures = 0
        self.mode = "default"
        cuda = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing

            def record(self) -> None:
                self.at = cuda.now

            def synchronize(self) -> None: ...

            def elapsed_time(self, last: Event) -> float:
                return last.at - self.at

        class Graph:
            def replay(self) -> None:
                cuda.now += sum(self.steps)

            steps: Sequence[float] = ()

        class Stream:
            def wait_stream(self, stream: object) -> None: ...
            def synchronize(self) -> None: ...

        self.Event, self.CUDAGraph, self.Stream = Event, Graph, Stream

    def current_stream(self) -> Any:
        return self.Stream()

    def synchronize(self) -> None: ...

    @contextmanager
    def stream(self, stream: object) -> Generator[None]:
        yield

    @contextmanager
    def graph(self, graph: Any, stream: object) -> Generator[None]:
        self.recorded = []
        self.captures += 1
        try:
            yield
            graph.steps = self.recorded
        finally:
            self.recorded = None

    def kernel(self, ms: float) -> Callable[[], None]:
        """Something that takes so long on the device."""

        def run() -> None:
            if self.recorded is None:
                self.now += ms
            else:
                self.recorded.append(ms)

        return run

    def set_sync_debug_mode(self, mode: str) -> None:
        self.mode = mode

    def _sleep(self, cycles: int) -> None:
        """Time that lies before what is measured."""
        self.now += 1.0
        self.slept = cycles

    slept = 0

    def waiting(self, ms: float, openly: bool = True) -> Callable[[], None]:
        """The same for something that can't be captured; torch notices it if it waits openly."""

        def run() -> None:
            if openly and self.mode == "error":
                raise RuntimeError("called a synchronizing CUDA operation")
            if self.recorded is not None:
                raise RuntimeError("operation not permitted when stream is capturing")
            self.now += ms

        return run


def module(cuda: FakeCuda) -> Any:
    return SimpleNamespace(cuda=cuda)
