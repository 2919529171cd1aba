"""What an expression is to kernels and libraries: SpMV, SpMM, SDDMM, MTTKRP, or something else.

Letters of products with a matrix: ``n`` its rows that are kept, ``k`` what is summed, ``t`` the columns of the dense
operand (tokens of a linear layer)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sparsecc.formats import parse_format
from sparsecc.selection.problem import Access, Expression, Problem, Tensor

SPMV, SPMM, SDDMM, MTTKRP, GENERAL = "SpMV", "SpMM", "SDDMM", "MTTKRP", "general"


@dataclass(frozen=True)
class Operation:
    """An expression from the side of one operand, the one whose storage is looked at."""

    kind: str
    expression: Expression
    matrix: Access | None
    """That operand; None where the expression has none (all are dense and fixed)."""
    dense: tuple[Access, ...] = ()
    """The other inputs."""
    letters: Mapping[str, str] | None = None
    """Of SpMV, SpMM and SDDMM: ``n``, ``k`` and ``t`` (SDDMM: ``n``, ``m`` and ``k``) to indices."""
    x_order: str = ""
    """Of SpMV and SpMM: letters of the dense operand as they lie in memory."""
    out_order: str = ""
    """The same of the result."""

    @property
    def by_rows(self) -> bool:
        """Whether the first dimension of the matrix is kept and the second one is summed."""
        assert self.matrix is not None and self.letters is not None
        return self.matrix.indices[0] == self.letters["n"]

    @property
    def streams_columns(self) -> bool:
        """Whether a column index is contiguous in the dense operand and in the result, so that vector instructions
        run along it."""
        return self.x_order.endswith("t") and self.out_order.endswith("t")

    @property
    def has_row_kernel(self) -> bool:
        """Whether sparse rows get a balanced kernel on a GPU, not the general path."""
        return (self.x_order, self.out_order) in (("k", "n"), ("kt", "nt"))


def is_sparse(tensor: Tensor, formats: Mapping[str, str] | None = None) -> bool:
    """Whether a tensor is stored sparsely: as a plan says, else as its type says; an open one may be."""
    spelled = (formats or {}).get(tensor.name, tensor.format)
    if spelled is None:
        return len(tensor.shape) > 1
    return not _is_dense(spelled, len(tensor.shape))


def operands_to_choose(problem: Problem) -> tuple[Tensor, ...]:
    """The open tensors that are given to the program. Results get the formats that are inferred."""
    made = {e.result.name for e in problem.expressions}
    return tuple(
        t for t in problem.tensors.values() if t.open and t.name not in made and len(t.shape) > 1
    )


def operation_of(
    problem: Problem,
    expression: Expression,
    name: str | None = None,
    formats: Mapping[str, str] | None = None,
) -> Operation:
    """What an expression is from the side of an operand; of the first one that may be sparse if none is named.
    ``formats``: of open tensors in a plan; those without one may be sparse, results if those of sparse operands are."""
    formats = {**problem.sparse_results, **(formats or {})}
    inputs = expression.inputs
    matrix = next(
        (
            a
            for a in inputs
            if (a.name == name if name is not None else is_sparse(problem.tensors[a.name], formats))
        ),
        None,
    )
    if name is None and matrix is None:
        # All dense: a product is one with its first matrix.
        matrix = next((a for a in inputs if len(a.indices) == 2), None)
    if matrix is None:
        return Operation(GENERAL, expression, None, inputs)
    others = list(inputs)
    others.remove(matrix)
    dense = tuple(others)
    general = Operation(GENERAL, expression, matrix, dense)
    plain = all(len(set(a.indices)) == len(a.indices) for a in (*inputs, expression.result))
    sparse = any(is_sparse(problem.tensors[a.name], formats) for a in dense)
    if not expression.product or not plain or sparse or "" in expression.indices:
        return general
    find = {(2, 1): _product, (2, 2): _sampled, (3, 2): _mttkrp}.get(
        (len(matrix.indices), len(dense))
    )
    return general if find is None else find(problem, expression, matrix, dense) or general


def _product(
    problem: Problem, expression: Expression, matrix: Access, dense: tuple[Access, ...]
) -> Operation | None:
    (x,) = dense
    result = expression.result
    kept = [i for i in matrix.indices if i in result.indices]
    summed = [i for i in matrix.indices if i not in result.indices]
    if len(kept) != 1 or len(summed) != 1 or summed[0] not in x.indices or kept[0] in x.indices:
        return None
    columns = [i for i in x.indices if i != summed[0]]
    if len(columns) > 1 or set(result.indices) != {kept[0], *columns}:
        return None
    letters = {"n": kept[0], "k": summed[0], **({"t": columns[0]} if columns else {})}
    names = {index: letter for letter, index in letters.items()}
    orders = [
        memory_order(problem.tensors[a.name], "".join(names[i] for i in a.indices))
        for a in (x, result)
    ]
    if not all(orders):
        return None
    return Operation(SPMM if columns else SPMV, expression, matrix, dense, letters, *orders)


def _sampled(
    problem: Problem, expression: Expression, matrix: Access, dense: tuple[Access, ...]
) -> Operation | None:
    del problem
    if expression.result.indices != matrix.indices:
        return None
    n, m = matrix.indices
    depth = {i for a in dense for i in a.indices} - {n, m}
    if len(depth) != 1:
        return None
    (k,) = depth
    found = {frozenset(a.indices) for a in dense}
    if found != {frozenset((n, k)), frozenset((m, k))} or any(len(a.indices) != 2 for a in dense):
        return None
    return Operation(SDDMM, expression, matrix, dense, {"n": n, "m": m, "k": k})


def _mttkrp(
    problem: Problem, expression: Expression, matrix: Access, dense: tuple[Access, ...]
) -> Operation | None:
    del problem
    result = expression.result.indices
    if len(result) != 2 or result[0] not in matrix.indices or result[1] in matrix.indices:
        return None
    rank = result[1]
    summed = [i for i in matrix.indices if i != result[0]]
    if {a.indices for a in dense} != {(i, rank) for i in summed}:
        return None
    return Operation(MTTKRP, expression, matrix, dense, {"n": result[0], "r": rank})


def memory_order(tensor: Tensor, letters: str) -> str:
    """The letters of a dense tensor's dimensions as they lie in memory; empty where it is not dense."""
    order = _dense_order(tensor.format or "dense", len(tensor.shape))
    return "" if order is None else "".join(letters[d] for d in order)


@lru_cache(maxsize=512)
def _is_dense(spelled: str, rank: int) -> bool:
    return parse_format(spelled, rank).is_dense


def is_plain(spelled: str, rank: int) -> bool:
    """Whether a spelling names an array without blocks, in any order of its dimensions."""
    return spelled == "dense" or _dense_order(spelled, rank) is not None


@lru_cache(maxsize=512)
def _dense_order(spelled: str, rank: int) -> tuple[int, ...] | None:
    fmt = parse_format(spelled, rank)
    return fmt.dim_order if fmt.is_dense and fmt.is_permutation else None
