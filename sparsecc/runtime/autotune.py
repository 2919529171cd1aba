"""Measuring the legal schedules of a GPU kernel on the machine that it runs on, and keeping the fastest.

Candidates are compiled side by side in processes of their own; each is checked against the first and timed with inputs
that are not in the cache of the GPU. What was found is kept on disk for the kernel, the range of its extents, the GPU
and the versions.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, cast

from sparsecc.diagnostics import SparseccError, UsageError
from sparsecc.kernel import Plan
from sparsecc.request import Request
from sparsecc.runtime import tile_cache
from sparsecc.runtime.call_checks import checked_tuning
from sparsecc.runtime.kernel_cache import folder, package_fingerprint
from sparsecc.runtime.machines import GpuMachine, Machine
from sparsecc.runtime.tile_execute import TileProgram
from sparsecc.runtime.tile_operands import Bound

Timer = Callable[[TileProgram, Sequence[Any]], float]
"""Microseconds of a program on operands."""


class Tunable(Protocol):
    """A program for a GPU, as far as tuning asks."""

    @property
    def plan(self) -> Plan: ...
    @property
    def request(self) -> Request: ...
    def machine(self) -> Machine: ...
    def prepared(self, operands: Mapping[str, Any]) -> tuple[list[Any], Tunable]: ...
    def scheduled(self, schedules: Mapping[str, str]) -> Tunable: ...
    def adopt(self, variant: Any, schedules: Mapping[str, str]) -> None: ...


class NothingToTune(UsageError):
    text = "the program has no GPU kernel with more than one schedule"
    help_text = "call it as it is"


class NoCandidate(UsageError):
    text = "none of the {count} schedules of kernel {kernel} runs: {reasons}"
    help_text = "report it with the program and the operand formats"


@dataclass(frozen=True)
class Tuned:
    """What was measured: for each kernel the schedule that won, and microseconds of the program by schedule."""

    schedules: dict[str, str]
    times: dict[str, dict[str, float]]
    failed: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """Schedules that did not compile, or whose result was another one, and why."""
    stored: bool = False
    """Whether it was found on disk."""

    def __str__(self) -> str:
        lines: list[str] = []
        for kernel, times in self.times.items():
            ranked = sorted(times.items(), key=lambda pair: pair[1])
            lines += [f"{kernel}: {time:10.2f} us  {schedule}" for schedule, time in ranked]
            lines += [f"{kernel}: {why}  {s}" for s, why in self.failed.get(kernel, {}).items()]
        return "\n".join(lines)


def autotune(
    kernel: Tunable,
    operands: Mapping[str, Any],
    *,
    timer: Timer | None = None,
    seconds: float = 30.0,
    workers: int | None = None,
    again: bool = False,
) -> Tuned:
    """Find the fastest schedule of each kernel of a program for operands like these; the program uses it from then on.

    ``timer`` measures (tests give one); after ``seconds`` what is not measured is left out; ``again``: even if there
    is a result on disk."""
    checked_tuning(seconds, workers)
    start = perf_counter()
    tensors, base = kernel.prepared(operands)
    steps = [step for step in base.plan.tiles if len(step.space) > 1]
    if not steps:
        raise NothingToTune()
    machine = kernel.machine()
    where = _path(base, tensors, machine)
    found = None if again else _read(where)
    if found is None:
        measure = timer or ColdTimer(machine)
        found = Tuned({}, {}, {})
        for step in steps:
            name = step.launch.kernel
            search = _Search(base, tensors, machine, measure, start + seconds)
            times, failed = search.over(name, step.space, found.schedules, workers)
            if not times:
                reasons = "; ".join(sorted(set(failed.values()))[:3])
                raise NoCandidate(count=len(step.space), kernel=name, reasons=reasons)
            found.schedules[name] = min(times, key=lambda s: times[s])
            found.times[name], found.failed[name] = times, failed
        _write(where, found)
    kernel.adopt(base, found.schedules)
    return found


class _Search:
    """One kernel's schedules: compiled, checked, timed."""

    def __init__(
        self,
        base: Tunable,
        tensors: Sequence[Any],
        machine: Machine,
        timer: Timer,
        deadline: float,
    ) -> None:
        self.base, self.tensors, self.machine = base, tensors, machine
        self.timer, self.deadline = timer, deadline
        self.failed: dict[str, str] = {}

    def over(
        self, name: str, space: Sequence[str], chosen: Mapping[str, str], workers: int | None
    ) -> tuple[dict[str, float], dict[str, str]]:
        with _progress(f"{name}: compiling", len(space)) as tick:
            candidates = self.made(name, space, chosen)
            self.compile(candidates, workers, tick)
        times: dict[str, float] = {}
        wanted: Any = None
        with _progress(f"{name}: measuring", len(candidates)) as tick:
            for schedule, candidate in candidates.items():
                tick()
                if schedule in self.failed or (times and perf_counter() > self.deadline):
                    continue
                try:
                    target = candidate.request.target
                    program = TileProgram(candidate.plan, target, self.machine)
                    result = program(self.tensors)[-1]
                    if wanted is None:
                        wanted = result
                    elif not agree(wanted, result, self.machine):
                        self.failed[schedule] = "another result than the first schedule"
                        continue
                    times[schedule] = self.timer(program, self.tensors)
                except SparseccError as error:
                    self.failed[schedule] = error.message
        return times, self.failed

    def made(
        self, name: str, space: Sequence[str], chosen: Mapping[str, str]
    ) -> dict[str, Tunable]:
        found: dict[str, Tunable] = {}
        for schedule in space:
            try:
                found[schedule] = self.base.scheduled({**chosen, name: schedule})
            except SparseccError as error:
                self.failed[schedule] = error.message
        return found

    def compile(
        self, candidates: Mapping[str, Tunable], workers: int | None, tick: Callable[[], None]
    ) -> None:
        """Compile what the cache has not got, side by side."""
        if self.machine.interprets:
            return
        from sparsecc.backends.triton.compile_process import compile_many

        target = self.base.request.target
        owners = [(s, t.source) for s, c in candidates.items() for t in c.plan.tiles]
        missing = [(s, source) for s, source in owners if tile_cache.read(source, target) is None]
        for _ in range(len(candidates) - len(missing)):
            tick()
        made = compile_many(
            [source for _, source in missing], target, workers, lambda _n, _found: tick()
        )
        for (schedule, _), result in zip(missing, made, strict=True):
            if isinstance(result, SparseccError):
                self.failed[schedule] = result.message
            else:
                tile_cache.keep(result)


def agree(one: Any, other: Any, machine: Machine) -> bool:
    """Whether two results are the same but for the order of sums."""
    import numpy as np

    a, b = (machine.download(t.arrays["values"]) for t in (one, other))
    if a.dtype.kind in "iub":
        return bool(np.array_equal(a, b))
    a, b = a.astype(np.float64), b.astype(np.float64)
    scale = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
    return bool(np.allclose(a, b, rtol=2e-2, atol=1e-2 * scale, equal_nan=True))


class ColdTimer:
    """Microseconds of a program on a GPU whose cache does not hold the inputs: launches over copies of the largest one,
    in a CUDA graph, so that the time of the host is not in them."""

    def __init__(self, machine: Machine, repeats: int = 5) -> None:
        if not isinstance(machine, GpuMachine):
            raise UsageError("schedules are measured on a GPU; give a timer to measure elsewhere")
        self.machine, self.repeats = machine, repeats
        self.copies: tuple[Sequence[Any], list[list[Any]]] | None = None

    def __call__(self, program: TileProgram, tensors: Sequence[Any]) -> float:
        torch = self.machine.torch
        rotation = self.rotation(tensors)
        stream = torch.cuda.Stream(self.machine.number)
        stream.wait_stream(torch.cuda.current_stream(self.machine.number))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):
            for some in rotation:
                program(some)
            stream.synchronize()
            with torch.cuda.graph(graph, stream=stream):
                for some in rotation:
                    program(some)
            times: list[float] = []
            for _ in range(self.repeats + 1):
                first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                first.record(stream)
                graph.replay()
                last.record(stream)
                last.synchronize()
                times.append(first.elapsed_time(last) * 1e3 / len(rotation))
        torch.cuda.current_stream(self.machine.number).wait_stream(stream)
        return sorted(times[1:])[self.repeats // 2]

    def rotation(self, tensors: Sequence[Any]) -> list[list[Any]]:
        """The operands, and copies of them, so many that the cache holds none when it is read again."""
        if self.copies is not None and self.copies[0] is tensors:
            return self.copies[1]
        weights = [(_bytes(t), n) for n, t in enumerate(tensors) if isinstance(t, Bound)]
        largest, place = max(weights)
        count = max(8, min(64, -(-4 * self.machine.device.cache // max(1, largest))))
        if largest > 4 * self.machine.device.cache:
            count = 4
        found: list[list[Any]] = []
        for n in range(count):
            some = list(tensors)
            if n and largest <= 4 * self.machine.device.cache:
                some[place] = _copied(cast("Bound", tensors[place]))
            found.append(some)
        self.copies = (tensors, found)
        return found


def _bytes(tensor: Bound) -> int:
    return sum(int(a.nbytes) for a in tensor.arrays.values())


def _copied(tensor: Bound) -> Bound:
    """A tensor with the same values elsewhere."""
    arrays = {role: array.clone() for role, array in tensor.arrays.items()}
    words = {**tensor.words, **{role: array.data_ptr() for role, array in arrays.items()}}
    return replace(tensor, words=words, arrays=arrays)


# -- on disk -----------------------------------------------------------------------------------


def _path(base: Tunable, tensors: Sequence[Any], machine: Machine) -> Path | None:
    """Where the result for a kernel, a range of extents and a GPU is kept."""
    where = folder()
    if where is None:
        return None
    extents = [[int(n).bit_length() for n in t.shape] for t in tensors]
    name = machine.device.name if isinstance(machine, GpuMachine) else "interpreter"
    request = asdict(replace(base.request, schedules=()))
    versions = [tile_cache.compiler_version(), package_fingerprint()]
    text = json.dumps([request, extents, name, versions], sort_keys=True)
    return where / "tuned" / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def _read(path: Path | None) -> Tuned | None:
    if path is None:
        return None
    try:
        data = json.loads(path.read_bytes())
        return Tuned(data["schedules"], data["times"], data["failed"], stored=True)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path | None, found: Tuned) -> None:
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(found), file, indent=1)
        os.replace(temporary, path)
    except OSError:
        return


@contextmanager
def _progress(title: str, total: int) -> Generator[Callable[[], None]]:
    """A bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)
