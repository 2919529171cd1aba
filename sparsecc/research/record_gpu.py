"""Recording on a GPU: matrices made ahead on the host, one process again where the device is lost."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any
from zlib import crc32

from sparsecc.bench import machine
from sparsecc.bench.timing import GraphTimer
from sparsecc.bench.weights import torch_dtype, torch_module
from sparsecc.research import generator, record
from sparsecc.research.corpus import CorpusProblem, Matrix, of_matrix
from sparsecc.research.gpu_ahead import Ahead
from sparsecc.research.gpu_operands import Product, Weight
from sparsecc.research.gpu_plans import stage
from sparsecc.research.measure_gpu import FAULTS, DeviceLost, Recorder, Work, random
from sparsecc.research.pattern import Pattern
from sparsecc.research.recording import Recording
from sparsecc.research.torch_statistics import statistics_of
from sparsecc.runtime import tile_cache
from sparsecc.selection.spaces import space_of
from sparsecc.targets import known_target

Tensor = Any
FULL = 60e9
"""Bytes that torch may keep before it gives them back."""
LOSSES = 8
"""So many times a run goes on after it has lost the device."""


def record_gpu(
    groups: Sequence[Sequence[CorpusProblem]], output: Recording, options: Namespace
) -> record.Found:
    """Measure problems, those of one matrix after each other. Raises NoGpu."""
    target = machine.find_gpu()
    torch = torch_module()
    tile_cache.MAX_ENTRIES = 1 << 16
    timer, pace = GraphTimer(replays=1), machine.Pace()
    facts = record.facts(options, target, ("torch", "triton", "numpy", "sparsecc"))
    gpu = machine.facts(pace)
    facts["machine"] |= {
        k: gpu[k] for k in ("gpu", "processors", "memory", "driver", "cuda", "copy_bandwidth")
    }
    facts["versions"]["cusparselt"] = gpu["cusparselt"]
    output.describe(facts)

    def release() -> None:
        timer.forget()
        if torch.cuda.memory_reserved() > FULL:
            torch.cuda.empty_cache()

    workers = options.workers or max(1, (os.cpu_count() or 1) - 1)
    known: dict[str, CorpusProblem] = {}
    lost: DeviceLost | None = None
    with Ahead(target, workers) as ahead, Patterns(groups) as patterns:
        recorder = Recorder(
            timer, ahead, pace=pace, alive=torch.cuda.synchronize, release=release,
            fresh=counters_again,
            tell=record.note, skip=frozenset(map(_skipped, options.skip)),
        )  # fmt: skip
        warm_up("cuda", target)
        makers = patterns.makers("cuda", target, known)
        try:
            for work, times in recorder.run(makers, partial(record.enough, options)):
                yield known[work.name], times
        except DeviceLost as error:
            lost = error
    if lost is not None:
        record.note(str(lost))
        if len(options.skip) >= LOSSES:
            raise lost
        _go_on(options, f"{lost.facts['problem']} | {lost.facts['digest']}")


def _skipped(text: str) -> tuple[str, str]:
    problem, _, digest = text.rpartition(" | ")
    return problem, digest


def _go_on(options: Namespace, skip: str) -> None:
    """Begin anew for the problems that are left, in a process that has a device: this one has none any more."""
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = record.again(options, [skip])
    os.execv(sys.executable, [sys.executable, "-m", record.MODULE, *arguments])


def counters_again() -> None:
    """Let graphs use the counters of those that are gone: each launch leaves zeros behind."""
    from sparsecc.runtime.machines import gpu

    gpu(0).taken = 0


def warm_up(device: str, target: str) -> None:
    """Convert a small weight to every format, so that the first real one does not wait for libraries to load."""
    for dtype in ("f16", "f32"):
        spec = {"family": "n:m", "rows": 256, "columns": 256, "n": 2, "m": 4}
        matrix = Matrix(spec, dtype, "dense")
        group = [of_matrix(matrix, name, 16, target) for name in ("linear", "SpMM")]
        weight, works, _ = prepared(group, generator.pattern(spec), device, target)
        for work in works:
            inputs = {name: random(work.product, name) for name in work.product.dense}
            for candidate in work.candidates:
                try:
                    plan = stage(work.product, weight, inputs, candidate)
                    if not plan.sources:
                        plan.finish().calls[0]()
                except FAULTS as error:
                    record.note(f"{candidate}: {record.first_line(error)}")


class Patterns:
    """The patterns of matrices, made on the host by a thread, a few ahead."""

    def __init__(self, groups: Sequence[Sequence[CorpusProblem]], ahead: int = 3) -> None:
        self.groups, self.ahead = groups, ahead
        self.pool = ThreadPoolExecutor(1)
        self.made: dict[int, Future[Pattern]] = {}

    def __enter__(self) -> Patterns:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)

    def of(self, number: int) -> Pattern:
        for n in range(number, min(number + self.ahead, len(self.groups))):
            if n not in self.made:
                self.made[n] = self.pool.submit(self.groups[n][0].entries)
        found = self.made[number].result()
        self.made[number] = Future()  # the pattern is not kept
        return found

    def makers(
        self, device: str, target: str, known: dict[str, CorpusProblem]
    ) -> Iterator[Callable[[], tuple[Weight, list[Work]]]]:
        """For each matrix what makes it; ``known`` gets its problems with their statistics."""
        for number, group in enumerate(self.groups):

            def make(number: int = number, group: Sequence[CorpusProblem] = group) -> Any:
                weight, works, problems = prepared(group, self.of(number), device, target)
                known.update(problems)
                return weight, works

            yield make


def prepared(
    group: Sequence[CorpusProblem],
    pattern: Pattern,
    device: str,
    target: str,
    interpret: bool = False,
) -> tuple[Weight, list[Work], dict[str, CorpusProblem]]:
    """The matrix of some problems on a device, what is to be measured with it, and the problems with its statistics."""
    sparse = group[0].sparse
    torch_module().manual_seed(crc32(group[0].matrix.encode()))
    dense = spread_out(pattern, sparse.dtype, device)
    weight = Weight(dense, sparse.dtype, sparse.stored or "dense")
    found = statistics_of(dense, sparse.dtype)
    space = space_of(known_target(target))
    works: list[Work] = []
    known: dict[str, CorpusProblem] = {}
    for problem in group:
        known[problem.id] = problem = problem.with_statistics(found)
        asked = problem.problem(space, libraries=record.LIBRARIES["gpu"])
        product = Product(
            asked.expressions[0], problem.sparse.name, dict(problem.sizes), sparse.dtype, device, target,
            problem.result.format or "dense", interpret,
        )  # fmt: skip
        works.append(Work(problem.id, product, asked.candidates))
    return weight, works, known


def spread_out(pattern: Pattern, dtype: str, device: str) -> Tensor:
    """A dense tensor with values of either sign, 0.5 to 1.5 from zero, where a pattern has entries."""
    torch = torch_module()
    if pattern.mask is not None:
        mask = torch.from_numpy(pattern.mask).to(device)
        dense = _values(tuple(pattern.shape), dtype, device)
        return dense.masked_fill_(~mask, 0)
    dense = torch.zeros(*pattern.shape, dtype=torch_dtype(dtype), device=device)
    keys = torch.from_numpy(pattern.keys).to(device)
    dense.view(-1)[keys] = _values((len(keys),), dtype, device)
    return dense


def _values(shape: tuple[int, ...], dtype: str, device: str) -> Tensor:
    torch = torch_module()
    kind = torch_dtype(dtype)
    drawn = torch.rand(*shape, dtype=kind, device=device).sub_(0.5)
    return drawn.add_(drawn.sign(), alpha=0.5).add_((drawn == 0).to(kind))
