"""The operations of the corpora, and what their expressions say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from sparsecc.diagnostics import UnsupportedError
from sparsecc.frontends import ast
from sparsecc.frontends.index_notation import parse
from sparsecc.selection.problem import Access, Expression


class NotOneProduct(UnsupportedError):
    text = "{text!r} is not the sum of one product of tensors"
    help_text = "corpora hold single statements such as 'C[i,j] = A[i,k] * X[k,j]'"


@dataclass(frozen=True)
class Operation:
    """An operation on one sparse tensor. ``width``: the index of the dense operands whose extent a corpus chooses."""

    name: str
    text: str
    sparse: str
    width: str | None
    out: str = "dense"


OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation("SpMV", "y[i] = A[i,j] * x[j]", "A", None),
        Operation("SpMM", "C[i,j] = A[i,k] * X[k,j]", "A", "j"),
        Operation("linear", "Y[m,n] = X[m,k] * W[n,k]", "W", "m"),
        Operation("SDDMM", "C[i,j] = A[i,j] * U[i,k] * V[j,k]", "A", "k", out="CSR"),
        Operation("MTTKRP", "D[i,r] = B[i,j,k] * U[j,r] * V[k,r]", "B", "r"),
    )
}


@cache
def expression_of(text: str) -> Expression:
    """What a selection problem says of a text. Raises ExpressionError, NotOneProduct."""
    program = parse(text)
    statement = program.statements[0]
    if len(program.statements) != 1 or statement.op is not None:
        raise NotOneProduct(text=text)
    return Expression(
        _access(statement.target, text), tuple(_factors(statement.expr, text)), True, text
    )


def _factors(expr: ast.Expr, text: str) -> list[Access]:
    if isinstance(expr, ast.Binary) and expr.op == "*":
        return [*_factors(expr.lhs, text), *_factors(expr.rhs, text)]
    return [_access(expr, text)]


def _access(expr: ast.Expr, text: str) -> Access:
    if not isinstance(expr, ast.Access):
        raise NotOneProduct(text=text)
    indices = [index.name for index in expr.indices if isinstance(index, ast.Index)]
    if len(indices) != len(expr.indices):
        raise NotOneProduct(text=text)
    return Access(expr.name, tuple(indices))


def extents(
    operation: Operation, shape: tuple[int, ...], width: int | None = None
) -> Mapping[str, int]:
    """The extents of the indices of an operation whose sparse tensor has a shape."""
    expression = expression_of(operation.text)
    sparse = next(a for a in expression.inputs if a.name == operation.sparse)
    found = dict(zip(sparse.indices, shape, strict=True))
    if operation.width is not None:
        assert width is not None, operation.name
        found[operation.width] = width
    return {index: found[index] for index in expression.indices}
