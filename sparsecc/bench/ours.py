"""Our own candidates: the kernels of a cell, compiled, tuned, their operands packed on the device."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from time import perf_counter
from typing import Any

from sparsecc import api
from sparsecc.backends.triton.packing.stream import STEPS, pack_sum_2_4
from sparsecc.bench.cells import Cell
from sparsecc.bench.problem import Candidate, Problem
from sparsecc.bench.runner import DEFAULT
from sparsecc.diagnostics import SparseccError
from sparsecc.kernel import Compiled
from sparsecc.runtime import tile_cache
from sparsecc.runtime.tile_kernel import bucket

Tensor = Any
Kernel = Any
"""A kernel for a GPU: what the CPU's lacks (pack, autotune) is in no common type."""

PACKED = ("2:4", "2:4+CSR")
"""Formats whose weights kernels read in a layout of their own."""

ROOM = 1 << 16
"""Entries of the cache of a run: more than the set has kernels."""


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
    """The peer that is us: the kernel as it is compiled, and with each other schedule that is legal for it."""

    target: str
    __name__ = "sparsecc"

    def __call__(self, problem: Problem) -> Iterator[Candidate]:
        # Own copies: compiled kernels are shared.
        kernel = compiled(problem.cell, self.target).with_options()
        for number, (weights, size) in enumerate(weights_of(problem, kernel)):
            operands = {**problem.inputs, problem.cell.operation.weight: weights[0]}
            _, base = kernel.prepared(operands)
            if number == 0:
                yield candidate(problem, kernel, weights, size, DEFAULT)
            made: dict[str, Kernel] = {}
            for step in base.plan.tiles:
                for schedule in step.space:
                    if number or schedule != step.schedule:
                        made[schedule] = base.scheduled({step.launch.kernel: schedule})
            compile_missing(made.values(), self.target)
            for schedule, chosen in made.items():
                yield candidate(problem, chosen.with_options(), weights, size, schedule)


def compile_missing(kernels: Iterable[Kernel], target: str) -> None:
    """Compile side by side what the cache has not got; what does not compile says so when it is called."""
    sources = dict.fromkeys(step.source for kernel in kernels for step in kernel.plan.tiles)
    missing = [source for source in sources if tile_cache.read(source, target) is None]
    if not missing:
        return
    from sparsecc.backends.triton.compile_process import compile_many

    for made in compile_many(missing, target, None, lambda _n, _found: None):
        if isinstance(made, Compiled):
            tile_cache.keep(made)


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


def weights_of(problem: Problem, kernel: Kernel) -> Iterator[tuple[list[Any], int]]:
    """Copies of the sparse operand as the kernel reads it, and the bytes of one: first as we choose, then in the other
    packings that there are."""
    matrix, fmt = problem.matrix, problem.cell.format
    if fmt not in PACKED:
        first = matrix.csr if fmt == "CSR" else matrix.bsr
        parts = (first.values(), first.col_indices(), first.crow_indices())
        size = sum(part.numel() * part.element_size() for part in parts)
        yield _turns(problem, "stored copies", first, size), size
        return
    weight = {problem.cell.operation.weight: matrix.dense}
    if fmt == "2:4":
        first = matrix.keep("packed", lambda: kernel.pack(**weight))
        yield _turns(problem, "packed copies", first, first.nbytes), first.nbytes
        return
    first = kernel.pack(tokens=problem.cell.width, **weight)
    depths = {first.facts["steps"]: first}
    for steps in STEPS:
        if steps not in depths:
            depths[steps] = pack_sum_2_4(matrix.dense, steps=steps)
    for steps, packed in depths.items():
        made = matrix.keep(("packed", steps), lambda packed=packed: packed)
        yield _turns(problem, f"copies in {steps} steps", made, made.nbytes), made.nbytes


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


@contextmanager
def compile_ahead(
    cells: Sequence[Cell], target: str, workers: int
) -> Generator[Callable[[Cell], int | str]]:
    """Compile the kernels of cells, all schedules of each, in ``workers`` processes, in the order of the cells, so that
    the cache has them: what is given waits for a cell's, and tells how many schedules, or what went wrong."""
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    jobs: dict[tuple[object, ...], Future[int | str]] = {}
    try:
        for cell in cells:
            if _kind(cell) not in jobs:
                jobs[_kind(cell)] = pool.submit(compile_one, cell, target)
        yield lambda cell: jobs[_kind(cell)].result()
    finally:
        pool.shutdown(cancel_futures=True)


def _kind(cell: Cell) -> tuple[object, ...]:
    """Cells of one kind share their kernels."""
    return (cell.operation.name, cell.rows, cell.columns, cell.width, cell.dtype, cell.format)


def compile_one(cell: Cell, target: str) -> int | str:
    """Compile a cell's kernel with every schedule: how many, or why none.

    What does not compile is left to tuning, which says so."""
    done, problem = 0, ""
    tile_cache.MAX_ENTRIES = ROOM
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
    return kernel.remake(
        tokens=tokens, rows=cell.rows, reduction=cell.columns, aligned=True, even=True
    )


def machine_code(cell: Cell, target: str) -> float:
    """Milliseconds from the expression to the machine code that runs for a cell's operands."""
    start = perf_counter()
    kernel = sized(compiled(cell, target), cell)
    assert kernel is not None and kernel.compiled
    return (perf_counter() - start) * 1e3
