"""Our own candidates: the kernels of a cell, compiled, their operands packed on the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from time import perf_counter
from typing import Any

from sparsecc import api
from sparsecc.bench.cells import Cell
from sparsecc.bench.problem import Candidate, Problem
from sparsecc.diagnostics import SparseccError

Tensor = Any


def compiled(cell: Cell, target: str) -> Any:
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
    """The peer that is us: the kernel as a user gets it."""

    target: str
    __name__ = "sparsecc"

    def __call__(self, problem: Problem) -> Iterator[Candidate]:
        """The kernel with the schedule that tuning finds best for the operands."""
        cell = problem.cell
        kernel = compiled(cell, self.target)
        weight = cell.operation.weight
        made: list[Any] = problem.matrix.keep(
            ("ours", cell.operation.name), lambda: [kernel.pack(**{weight: problem.matrix.dense})]
        )
        size = packed_bytes(made[0])
        made += [clone(made[0]) for _ in range(problem.rotation(size) - len(made))]
        packs = made[: problem.rotation(size)]
        inputs = dict(problem.inputs)
        out = None if cell.operation.out else problem.poisoned()
        calls = tuple(partial(kernel, out=out, **inputs, **{weight: pack}) for pack in packs)
        yield Candidate("tuned", calls, _values, size + problem.dense_bytes(), out)


def _values(result: Any) -> Tensor:
    """A result as a tensor: the stored values where it is sparse."""
    return (
        result.values()
        if getattr(result, "layout", None) is not None and result.is_sparse_csr
        else result
    )


def packed_bytes(packed: Any) -> int:
    """What a packed operand takes on the device."""
    return int(packed.nbytes)


def clone(packed: Any) -> Any:
    """The same operand in other memory."""
    return packed.clone()


def compile_all(
    cells: Sequence[Cell], target: str, workers: int
) -> Iterator[tuple[Cell, float | str]]:
    """Compile the kernels of cells in ``workers`` processes, so that the cache has them: milliseconds, or what
    went wrong, as they come."""
    kinds: Mapping[tuple[object, ...], Cell] = {
        (c.operation.name, c.rows, c.columns, c.width, c.dtype, c.format): c for c in cells
    }
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = {pool.submit(compile_one, cell, target): cell for cell in kinds.values()}
        for job in as_completed(jobs):
            yield jobs[job], job.result()


def compile_one(cell: Cell, target: str) -> float | str:
    """Milliseconds that compiling a cell's kernel takes here, or the error's text."""
    start = perf_counter()
    try:
        compiled(cell, target)
    except SparseccError as error:
        return error.message
    return (perf_counter() - start) * 1e3
