"""The formats that a GPU has kernels for, by operation; the limits are those of the passes that make the kernels.

==========  =====================================================================================================
products    ``2:4`` and ``2:4+CSR`` on the sparse tensor cores (``match-contractions``); ``BSR``, ``BITMAP`` as dots of
            tiles (``dot-contractions``); ``CSR`` or ``CSC`` by balanced rows (``row-contractions``); dense
SDDMM       ``CSR`` (``row-contractions``), dense
others      the general path: dense, CSR, COO, CSF
==========  =====================================================================================================

A linear layer's tokens are not contiguous, so its ``CSR`` takes the general path too: legal, and slow. Formats that
only the general path takes, where one of the above stores the same (COO, DCSR, ELL of a matrix), are not listed."""

from __future__ import annotations

from collections.abc import Callable

from sparsecc.selection.candidate import Refusal
from sparsecc.selection.operations import (
    MTTKRP,
    SDDMM,
    SPMM,
    SPMV,
    Operation,
    is_sparse,
    operation_of,
)
from sparsecc.selection.problem import Expression, Problem, Tensor
from sparsecc.selection.spaces.space import Found
from sparsecc.targets import Target, TargetAbility

BLOCKS = ("BSR(16,16)", "BSR(32,32)", "BSR(64,64)")
PRODUCTS = ("dense", "2:4", "2:4+CSR", *BLOCKS, "BITMAP", "CSR", "CSC")
HALVES = ("f16", "bf16")
DOTS = {"f16": "f32", "bf16": "f32", "f32": "f32", "i8": "i32"}
"""What dots of tiles sum elements of a type in."""
ROWS = {**DOTS, "f64": "f64", "i32": "i32", "i64": "i64"}
"""What row kernels do."""
TO_SIXTEEN = "convert the operands to f16 or bf16"
Refused = tuple[str, str]


class GpuRules:
    """Formats on a GPU."""

    def formats(self, problem: Problem, expression: Expression, tensor: Tensor) -> Found:
        operation = operation_of(problem, expression, tensor.name)
        rank = len(tensor.shape)
        if operation.kind in (SPMV, SPMM):
            return _checked(PRODUCTS, tensor, lambda f: product_refused(problem, operation, f))
        if operation.kind == SDDMM:
            return _checked(PRODUCTS, tensor, lambda f: _sampled_refused(problem, operation, f))
        if operation.kind == MTTKRP or rank != 2:
            return ["dense", "CSF", f"COO({rank})"], []
        several = any(is_sparse(problem.tensors[a.name]) for a in operation.dense)
        return (["dense", "CSR"] if several else ["dense", "CSR", "COO"]), []


def _checked(names: tuple[str, ...], tensor: Tensor, why: Callable[[str], Refused | None]) -> Found:
    legal: list[str] = []
    refusals: list[Refusal] = []
    for fmt in names:
        refused = why(fmt)
        if refused is None:
            legal.append(fmt)
        elif refused[0]:
            refusals.append(Refusal(f"{tensor.name}={fmt}", *refused))
    return legal, refusals


def product_refused(problem: Problem, operation: Operation, fmt: str) -> Refused | None:
    """Why no kernel of its own takes a product with a matrix in a format, and what would help; None if one does."""
    if fmt == "dense":
        return None
    target = problem.target
    if fmt in ("CSR", "CSC"):
        return _rows_refused(problem, operation, fmt)
    if operation.kind == SPMV:
        return (
            "it multiplies a vector; a tile of tokens wants a matrix",
            "give it a second dimension",
        )
    types = DOTS
    if fmt in ("2:4", "2:4+CSR"):
        refused = _groups_refused(problem, operation, fmt, target)
        types = {k: v for k, v in DOTS.items() if k != "f32"}
    elif fmt == "BITMAP":
        refused = _along_rows(operation, "the bits")
    else:
        refused = _along_rows(operation, "the rows of blocks")
    return refused or _types_refused(problem, operation, types)


def _along_rows(operation: Operation, what: str) -> Refused | None:
    if operation.by_rows:
        return None
    return f"{what} do not run along the index that is summed", "transpose the matrix once"


def _types_refused(problem: Problem, operation: Operation, types: dict[str, str]) -> Refused | None:
    """Whether operands and result have the types that kernels take."""
    assert operation.matrix is not None
    dtype = problem.tensors[operation.matrix.name].dtype
    others = {problem.tensors[a.name].dtype for a in operation.dense}
    if others != {dtype}:
        return (
            f"its operands are of two types, {dtype} and {', '.join(sorted(others))}",
            "convert one",
        )
    if dtype not in types:
        return f"its operands are {dtype}, not {', '.join(types)}", TO_SIXTEEN
    result = problem.tensors[operation.expression.result.name].dtype
    if result not in (dtype, types[dtype]):
        return (
            f"the sums are wanted in {result}, and are made in {types[dtype]}",
            f"ask for {dtype} or {types[dtype]}",
        )
    return None


def _groups_refused(
    problem: Problem, operation: Operation, fmt: str, target: Target
) -> Refused | None:
    """Of 2:4 and 2:4+CSR."""
    assert operation.matrix is not None
    tensor = problem.tensors[operation.matrix.name]
    if (refused := _along_rows(operation, "the groups of four")) is not None:
        return refused
    columns = tensor.shape[1]
    if columns is not None and columns % 4:
        return (
            f"{operation.letters['k'] if operation.letters else 'k'} = {columns} is not a multiple of 4",
            f"pad it to {columns + 4 - columns % 4}",
        )
    sparse_cores = target.can(TargetAbility.SPARSE_MMA_2_4)
    if fmt == "2:4+CSR" and not sparse_cores:
        return f"{target.name} has no sparse matrix instructions", "take BITMAP or dense"
    if fmt == "2:4+CSR" and tensor.dtype == "i8":
        return "the entries of a residual are 16 bits wide, the weight's are 8", "prune it to 2:4"
    if not sparse_cores and tensor.dtype == "i8":
        return "groups of four of i8 are not spread for dots yet", TO_SIXTEEN
    if fmt == "2:4+CSR" or tensor.statistics is None:
        return (
            None
            if tensor.statistics is not None
            else ("nothing is known of its entries", "give its statistics")
        )
    if tensor.statistics.zeros:
        return (
            f"{tensor.statistics.zeros} zeros are stored among its entries, and may not fit into groups of four",
            "give it without them, as a dense array for one, or take 2:4+CSR",
        )
    group = tensor.statistics.group(2, 4)
    if group is None:
        return "its groups of four have not been counted", "take whole statistics"
    if group.overflow or group.fitting < 1:
        rows = tensor.statistics.shape[0]
        count = max(1, round((1 - group.fitting) * rows * -(-tensor.statistics.shape[1] // 4)))
        return (
            f"{count} groups of four hold more than two entries ({group.overflow} entries too many)",
            "re-prune it to 2:4, or take 2:4+CSR",
        )
    return None


def _rows_refused(problem: Problem, operation: Operation, fmt: str) -> Refused | None:
    if (fmt == "CSR") != operation.by_rows:
        # The transposed name: another way round is the same storage under the other name.
        return "", ""
    return _types_refused(problem, operation, ROWS)


def _sampled_refused(problem: Problem, operation: Operation, fmt: str) -> Refused | None:
    result = problem.tensors[operation.expression.result.name].format
    if fmt == "dense":
        if result in (None, "dense"):
            return None
        return (
            f"each cell would be an entry of the result, which is {result}",
            "ask for a dense result",
        )
    if fmt == "CSR" and result not in (None, "CSR"):
        return f"it is stored as the matrix is, and is wanted as {result}", "ask for CSR"
    if fmt == "CSR":
        return _types_refused(problem, operation, ROWS)
    if fmt in ("2:4", "2:4+CSR", "BITMAP", *BLOCKS):
        return "no kernel samples a product at the entries of this format", "take CSR"
    return "", ""
