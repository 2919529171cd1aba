"""Times of candidates: CUDA graphs replayed between events, rivals in turns, medians."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any, Protocol

Call = Callable[[], Any]

COLD_BYTES = 400e6
"""What is read between two uses of one copy of a weight: well over twice the L2 of a GPU."""

QUEUED = 100
"""At most so many calls wait for a device: its queue has room for a thousand launches."""
CYCLES = 2e9
"""Of a device in a second, or fewer."""


def copies(size: int, most: int = 256) -> int:
    """How many copies of ``size`` bytes take turns, so that each is cold when its turn comes."""
    return max(1, min(most, -(-int(COLD_BYTES) // max(size, 1))))


class Timer(Protocol):
    """Gives microseconds of one call, the calls taking turns; ``how`` says how it measured last."""

    how: str

    def us(self, calls: Sequence[Call], ms: float) -> float: ...
    def look(self, calls: Sequence[Call]) -> float: ...


class GraphTimer:
    """A graph of all calls, repeated until it lasts ``ms``, is replayed: what a launch costs the host is not in it.

    What can't be captured is timed between events around plain calls, given to a device that is kept busy meanwhile, so
    that the host's part is not in it either, unless a library waits for the device."""

    def __init__(self, replays: int = 5) -> None:
        self.torch: Any = import_module("torch")
        self.replays = replays
        self.how = ""
        self.graphs: dict[int, tuple[Sequence[Call], Any, int]] = {}
        """By the calls' identity; the calls are kept, so that it stays theirs."""
        self.plain: dict[int, Sequence[Call]] = {}
        self.waiting: set[int] = set()
        """Of these, what waits for the device."""

    def us(self, calls: Sequence[Call], ms: float) -> float:
        cuda = self.torch.cuda
        if id(calls) not in self.plain:
            graph, repeats = self._captured(calls, ms)
            if graph is not None:
                self.how = "graph"
                once = graph.replay
                return self._median(once, self.replays) * 1e3 / (repeats * len(calls))
        waits = id(calls) in self.waiting
        self.how = "events" if waits else "events, queued"
        calls = calls[:QUEUED]

        def once() -> None:
            for call in calls:
                call()

        once()
        cuda.synchronize()
        start = perf_counter()
        once()
        busy = 0 if waits else int(1.5 * CYCLES * (perf_counter() - start))
        cuda.synchronize()
        return self._median(once, self.replays, busy) * 1e3 / len(calls)

    def look(self, calls: Sequence[Call]) -> float:
        """Microseconds of a plain call or two, what they cost the host with them: enough to drop the hopeless."""
        return self._median(calls[-1], 2) * 1e3

    def forget(self) -> None:
        """Give back the graphs and what they keep alive."""
        self.graphs.clear()
        self.plain.clear()
        self.waiting.clear()

    def _captured(self, calls: Sequence[Call], ms: float) -> tuple[Any, int]:
        if id(calls) in self.graphs:
            return self.graphs[id(calls)][1:]
        cuda = self.torch.cuda
        stream = cuda.Stream()
        stream.wait_stream(cuda.current_stream())
        with cuda.stream(stream):
            calls[0]()
            stream.synchronize()
            if self._waits(calls[0]):
                # Not even tried: a capture that fails leaves torch's allocator in disorder.
                self.plain[id(calls)] = calls
                self.waiting.add(id(calls))
                return None, 0
            first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            first.record()
            for call in calls:
                call()
            last.record()
            stream.synchronize()
            estimate = max(first.elapsed_time(last), 0.002 * len(calls))
            repeats = max(1, min(100, round(ms / self.replays / estimate)))
            graph = cuda.CUDAGraph()
            try:
                with cuda.graph(graph, stream=stream):
                    for _ in range(repeats):
                        for call in calls:
                            call()
            except RuntimeError:
                cuda.synchronize()
                self.plain[id(calls)] = calls
                return None, 0
        cuda.current_stream().wait_stream(stream)
        graph.replay()
        cuda.synchronize()
        self.graphs[id(calls)] = (calls, graph, repeats)
        return graph, repeats

    def _waits(self, call: Call) -> bool:
        """Whether a call waits for the device, as far as torch notices."""
        cuda = self.torch.cuda
        cuda.set_sync_debug_mode("error")
        try:
            call()
        except RuntimeError:
            return True
        finally:
            cuda.set_sync_debug_mode("default")
        return False

    def _median(self, once: Call, count: int, busy: int = 0) -> float:
        """Milliseconds; the device does nothing for ``busy`` cycles first."""
        cuda = self.torch.cuda
        first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        found: list[float] = []
        for _ in range(count):
            if busy:
                cuda._sleep(busy)
            first.record()
            once()
            last.record()
            last.synchronize()
            found.append(first.elapsed_time(last))
        return median(found)


@dataclass(frozen=True)
class Sample:
    """What the rounds of one candidate gave, in microseconds."""

    us: float
    least: float
    most: float
    how: str


def interleaved(
    timer: Timer,
    candidates: Mapping[str, Sequence[Call]],
    rounds: int,
    ms: float,
    after: Callable[[str], None] = lambda _: None,
) -> dict[str, Sample]:
    """The median of each candidate over rounds in which all take a turn: a hot or a busy moment of the machine
    hits all alike. Another one starts each round; ``after`` is told whose turn has ended, or failed."""
    names = list(candidates)
    times: dict[str, list[float]] = {name: [] for name in names}
    how: dict[str, str] = {}
    for turn in range(rounds):
        for k in range(len(names)):
            name = names[(k + turn) % len(names)]
            try:
                times[name].append(timer.us(candidates[name], ms))
            except RuntimeError:
                after(name)
                raise
            after(name)
            how[name] = timer.how
    return {n: Sample(median(t), min(t), max(t), how[n]) for n, t in times.items()}
