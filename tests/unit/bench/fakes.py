"""A device without a device: a clock that calls move, and a CUDA of stubs around it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from sparsecc.bench.problem import Candidate, Problem
from sparsecc.bench.runner import Runner, Settings


class FakeTimer:
    """Takes what a call gives as its time in microseconds, if it is a number; else 10."""

    def __init__(self) -> None:
        self.how = "fake"
        self.measured: list[int] = []
        self.times: dict[int, float] = {}

    def us(self, calls: Sequence[Callable[[], Any]], ms: float) -> float:
        self.measured.append(id(calls))
        return self.times.get(id(calls), 10.0)

    def look(self, calls: Sequence[Callable[[], Any]]) -> float:
        return self.times.get(id(calls), 10.0)


class Fakes:
    """Candidates with known times; ``wrong``, ``broken`` and ``stopped`` ones are not to be timed."""

    def __init__(self) -> None:
        self.timer = FakeTimer()

    def candidate(self, problem: Problem, name: str, us: float, change: float = 0.0) -> Candidate:
        calls = (lambda: problem.reference.float() + change,)
        self.timer.times[id(calls)] = us
        return Candidate(name, calls, lambda y: y, 1000)

    def ours(self, problem: Problem) -> Iterator[Candidate]:
        yield self.candidate(problem, "default", 9.0)
        yield self.candidate(problem, "fast", 5.0)
        yield self.candidate(problem, "wrong", 1.0, change=1.0)

    def dense(self, problem: Problem) -> Iterator[Candidate]:
        yield self.candidate(problem, "hopeless", 40.0)
        for n in range(4):
            yield self.candidate(problem, f"way {n}", 20.0 - n)

    def broken(self, problem: Problem) -> Iterator[Candidate]:
        yield self.candidate(problem, "default", 30.0)
        raise RuntimeError("no kernel image\nsecond line")

    def runner(self, **more: Any) -> Runner:
        peers = {"dense": (self.dense,), "cuSPARSELt": (self.broken,)}
        return Runner(self.timer, self.ours, Settings(rounds=3, device="cpu"), peers, **more)


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
