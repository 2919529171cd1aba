"""Our own candidates: the kernels of a cell, compiled, tuned, their operands packed on the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from time import perf_counter
from typing import Any

from sparsecc import api
from sparsecc.bench.cells import Cell
from sparsecc.bench.problem import Candidate, Problem
from sparsecc.diagnostics import SparseccError
from sparsecc.runtime.tile_variants import bucket

Tensor = Any
Kernel = Any
"""A kernel for a GPU: what the CPU's lacks (pack, autotune) is in no common type."""

PACKED = ("2:4", "2:4+CSR")
"""Formats whose weights kernels read in a layout of their own."""

TRIED = 3
"""How many of the fastest schedules that tuning has found are timed beside the rivals."""


def compiled(cell: Cell, target: str) -> Kernel:
    """The kernel of a cell, for exactly its shapes."""
    operation = cell.operation
    shapes: Mapping[str, tuple[int, ...]] = {
        "linear": {"X": (cell.width, cell.columns)},
        "SpMM": {"X": (cell.columns, cell.width)},
        "SpMV": {"x": (cell.columns,)},
        "SDDMM": {"U": (cell.rows, cell.width), "V": (cell.columns, cell.width)},
    }[operation.name]
    operands = {name: api.Spec(shape, cell.dtype) for name, shape in shapes.items()}
    operands[operation.weight] = api.Spec((cell.rows, cell.columns), cell.dtype, cell.format)
    return api.compile(operation.text, out=operation.out, target=target, operands=operands)


@dataclass(frozen=True)
class Ours:
    """The peer that is us: the kernel as it is compiled, and with the fastest schedules that tuning finds."""

    target: str
    __name__ = "sparsecc"

    def __call__(self, problem: Problem) -> Iterator[Candidate]:
        # Own copies: compiled kernels are shared, and tuning one changes which schedules it uses.
        kernel = compiled(problem.cell, self.target).with_options()
        weights, size = weights_of(problem, kernel)
        yield candidate(problem, kernel, weights, size, "default")
        operands = {**problem.inputs, problem.cell.operation.weight: weights[0]}
        _, base = kernel.prepared(operands)
        if not any(len(step.space) > 1 for step in base.plan.tiles):
            return
        tuned = kernel.with_options().autotune(operands)
        for name, times in tuned.times.items():
            for schedule in sorted(times, key=times.__getitem__)[:TRIED]:
                chosen = base.scheduled({**tuned.schedules, name: schedule}).with_options()
                yield candidate(problem, chosen, weights, size, schedule)


def candidate(
    problem: Problem, kernel: Kernel, weights: Sequence[Any], size: int, name: str
) -> Candidate:
    """Calls of a kernel as a user makes them."""
    weight = problem.cell.operation.weight
    out = None if problem.cell.operation.out else problem.poisoned()
    calls = tuple(partial(kernel, out=out, **problem.inputs, **{weight: w}) for w in weights)
    return Candidate(name, calls, _values, size + problem.dense_bytes(), out)


def _values(result: Any) -> Tensor:
    """A result, of a sparse one its values."""
    return result.values() if str(result.layout) == "torch.sparse_csr" else result


def weights_of(problem: Problem, kernel: Kernel) -> tuple[list[Any], int]:
    """Copies of the sparse operand as the kernel reads it, and the bytes of one."""
    fmt = problem.cell.format
    if fmt not in PACKED:
        first = problem.matrix.csr if fmt == "CSR" else problem.matrix.bsr
        parts = (first.values(), first.col_indices(), first.crow_indices())
        size = sum(part.numel() * part.element_size() for part in parts)
        return _turns(problem, "stored copies", first, size), size
    weight = problem.cell.operation.weight
    first = problem.matrix.keep("packed", lambda: kernel.pack(**{weight: problem.matrix.dense}))
    return _turns(problem, "packed copies", first, first.nbytes), first.nbytes


def _turns(problem: Problem, key: str, first: Any, size: int) -> list[Any]:
    made: list[Any] = problem.matrix.keep(key, lambda: [first])
    count = problem.rotation(size)
    made += [clone(first) for _ in range(count - len(made))]
    return made[:count]


def clone(operand: Any) -> Any:
    """The same operand in other memory."""
    if hasattr(operand, "arrays"):
        return replace(operand, arrays={k: array.clone() for k, array in operand.arrays.items()})
    return operand.clone()


# -- ahead of time -------------------------------------------------------------------------------


def compile_all(
    cells: Sequence[Cell], target: str, workers: int
) -> Iterator[tuple[Cell, int | str]]:
    """Compile the kernels of cells, all schedules of each, in ``workers`` processes, so that the cache has them:
    how many schedules, or what went wrong, as they come."""
    kinds: Mapping[tuple[object, ...], Cell] = {
        (c.operation.name, c.rows, c.columns, c.width, c.dtype, c.format): c for c in cells
    }
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = {pool.submit(compile_one, cell, target): cell for cell in kinds.values()}
        for job in as_completed(jobs):
            yield jobs[job], job.result()


def compile_one(cell: Cell, target: str) -> int | str:
    """Compile a cell's kernel with every schedule: how many, or why none.

    What does not compile is left to tuning, which says so."""
    done, problem = 0, ""
    try:
        kernel = sized(compiled(cell, target), cell)
    except SparseccError as error:
        return error.message
    if kernel is None:
        return 0
    choices = [
        {step.launch.kernel: name} if name else {}
        for step in kernel.plan.tiles for name in step.space or ("",)
    ]  # fmt: skip
    for choice in choices:
        try:
            done += bool(kernel.scheduled(choice).compiled)
        except SparseccError as error:
            problem = error.message
    return done or problem


def sized(kernel: Kernel, cell: Cell) -> Kernel | None:
    """What a contraction's kernel becomes when it meets the operands of a cell; other kernels are as they are.

    None for sums: their code depends on the packed weight, tuning compiles it."""
    if kernel.sized is None:
        return kernel
    if cell.format == "2:4+CSR":
        return None
    tokens = kernel.request.tokens or bucket(cell.width)
    return kernel.remake(tokens=tokens, rows=cell.rows, reduction=cell.columns, aligned=True)


def machine_code(cell: Cell, target: str) -> float:
    """Milliseconds from the expression to machine code."""
    start = perf_counter()
    _ = compiled(cell, target).compiled
    return (perf_counter() - start) * 1e3
