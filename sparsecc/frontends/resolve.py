"""Binding: a syntax tree and the types of its operands to steps of typed values.

``resolve`` checks names, ranks, extents and types, all mistakes at once, makes the implicit sums
explicit and cuts the program in *steps*: each is one pass over an index space, as the module
builder emits it. An index that is only on the right is summed at the smallest enclosing
multiplicative term::

    y[i] = b[i] - A[i,j] * x[j]   -->   t0[i] = sum[j](A[i,j] * x[j]);  y[i] = b[i] - t0[i]

Terms that are summed over the same indices, and have the same free ones and type, share a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparsecc.diagnostics import ErrorCollector
from sparsecc.formats import Format, dense_format
from sparsecc.frontends import dtypes
from sparsecc.frontends.ast import Assign, Binary, Expr, Program, Unary
from sparsecc.frontends.check import OperandType, Scope, check_operands, check_statement, target_of
from sparsecc.frontends.mistakes import OutputFormatRank
from sparsecc.frontends.typed import (
    Arith,
    Convert,
    Load,
    Negate,
    Sum,
    Value,
    index_order,
    loads,
)
from sparsecc.frontends.typer import Typer

__all__ = ["OperandType", "ResolvedProgram", "Step", "resolve"]


@dataclass(frozen=True)
class Step:
    """``name[indices] = sum[reduced](value)``: one pass over ``indices + reduced``."""

    name: str
    indices: tuple[str, ...]
    reduced: tuple[str, ...]
    value: Value
    source: str
    """The statement or term as text."""
    statement: int
    """The number of the statement; index names are its own."""


@dataclass(frozen=True)
class ResolvedProgram:
    """``args`` in order of first use; ``types`` of all names, of temporaries and the result too.

    A format of None is one that select-formats has still to choose."""

    program: Program
    args: tuple[str, ...]
    types: Mapping[str, OperandType]
    steps: tuple[Step, ...]
    result: str

    @property
    def result_type(self) -> OperandType:
        return self.types[self.result]


def resolve(
    program: Program,
    operands: Mapping[str, OperandType],
    out_format: Format | None = None,
    out_dtype: str | None = None,
) -> ResolvedProgram:
    """The program bound to operands of those types. ``out_format`` None lets the compiler choose;
    with an ``out_dtype`` operands are converted to it before anything is computed.

    Raises ExpressionError, OperandError, UnsupportedError."""
    errors = ErrorCollector()
    scope = Scope(program, operands, errors, out_dtype)
    check_operands(scope)
    steps: list[Step] = []
    args: dict[str, None] = {}
    for number, statement in enumerate(program.statements):
        last = number + 1 == len(program.statements)
        extents = check_statement(scope, statement)
        value = None if extents is None else _sums(statement, Typer(scope, errors))
        if extents is None or value is None:
            scope.poison(statement)
            continue
        args.update((load.name, None) for load in loads(value) if load.name in operands)
        _cut(scope, number, statement, value, extents, steps, out_format if last else None, last)
    result, indices = target_of(program.statements[-1])
    if out_format is not None and out_format.rank != len(indices):
        target = program.statements[-1].target
        errors.add(
            OutputFormatRank(
                span=target.span, name=result, found=out_format.rank, wanted=len(indices)
            )
        )
    # In the order of the text; what has no place there comes last.
    errors.errors.sort(key=lambda e: (e.span is None, e.span.start if e.span else 0))
    errors.raise_if_any()
    return ResolvedProgram(program, tuple(args), scope.types, tuple(steps), result)


# -- implicit sums --------------------------------------------------------------------------------


def _sums(statement: Assign, typer: Typer) -> Value | None:
    """The right side with its implicit sums made explicit."""
    free = target_of(statement)[1]

    def descend(expr: Expr) -> Value | None:
        match expr:
            case Binary(op=("+" | "-") as op, lhs=lhs, rhs=rhs):
                return typer.binary(op, descend(lhs), descend(rhs), expr)
            case Unary(op="-", operand=operand):
                return typer.negate(descend(operand), expr)
            case _:
                term = typer.value(expr)
                if term is None:
                    return None
                summed = tuple(i for i in index_order(term) if i not in free)
                return Sum(summed, term, term.dtype, str(expr)) if summed else term

    value = descend(statement.expr)
    value = None if value is None else typer.strong(value, statement.expr)
    value = None if value is None else typer.checked(value, statement.expr)
    return None if value is None else _share(value)


def _share(value: Value) -> Value:
    """One sum over all terms, where they agree: ``sum(a) + sum(b) --> sum(a + b)``.

    Terms of several types do not agree: a narrower sum may wrap before it is converted."""
    terms = _terms(value)
    first = terms[0]
    if isinstance(value, Sum) or not isinstance(first, Sum):
        return value
    free = set(index_order(first)) - set(first.indices)
    for term in terms:
        if not isinstance(term, Sum) or set(term.indices) != set(first.indices):
            return value
        if set(index_order(term)) - set(term.indices) != free:
            return value
    return Sum(first.indices, _without_sums(value), value.dtype, first.source)


def _terms(value: Value) -> list[Value]:
    match value:
        case Arith(op="+" | "-", lhs=lhs, rhs=rhs):
            return _terms(lhs) + _terms(rhs)
        case Negate(operand):
            return _terms(operand)
        case _:
            return [value]


def _without_sums(value: Value) -> Value:
    match value:
        case Arith(op="+" | "-", lhs=lhs, rhs=rhs):
            return replace(value, lhs=_without_sums(lhs), rhs=_without_sums(rhs))
        case Negate(operand):
            return replace(value, operand=_without_sums(operand))
        case Sum(_, operand):
            return operand
        case _:
            return value


# -- steps ----------------------------------------------------------------------------------------


def _cut(
    scope: Scope,
    number: int,
    statement: Assign,
    value: Value,
    extents: Mapping[str, int | None],
    steps: list[Step],
    out_format: Format | None,
    last: bool,
) -> None:
    """Append the steps of a statement: one a sum, and one for what combines them."""
    name, indices = target_of(statement)
    out = _type_of(scope, value, indices, extents)
    if out_format is not None:
        out = replace(out, format=out_format)
    # A choice still open for a vector or scalar result will hardly be sparse; its terms are dense.
    if out.format is None:
        dense = last and len(indices) <= 1
    else:
        dense = out.format.is_dense
    text = str(statement)
    if isinstance(value, Sum):
        steps.append(Step(name, indices, value.indices, value.operand, text, number))
    else:
        value = _extract(scope, value, indices, extents, steps, number, dense)
        steps.append(Step(name, indices, (), value, text, number))
    scope.types[name] = out
    scope.targets.add(name)


def _extract(
    scope: Scope,
    value: Value,
    indices: tuple[str, ...],
    extents: Mapping[str, int | None],
    steps: list[Step],
    number: int,
    dense: bool,
) -> Value:
    """The value with each sum replaced by a load of a temporary, whose step is appended."""

    def visit(value: Value) -> Value:
        match value:
            case Sum(reduced, operand, dtype, source):
                used = set(index_order(operand))
                own = tuple(i for i in indices if i in used)
                name = scope.fresh()
                dtype = dtypes.computed_in(dtype)  # rounded at the end of the expression
                made = replace(_type_of(scope, operand, own, extents), dtype=dtype)
                scope.types[name] = replace(made, format=dense_format(len(own))) if dense else made
                text = f"{name}[{','.join(own)}] = {source}" if own else f"{name} = {source}"
                steps.append(Step(name, own, reduced, operand, text, number))
                return Load(name, own, dtype)
            case Arith(op="+" | "-", lhs=lhs, rhs=rhs):
                return replace(value, lhs=visit(lhs), rhs=visit(rhs))
            case Negate(operand) | Convert(operand):
                return replace(value, operand=visit(operand))
            case _:
                return value

    return visit(value)


def _type_of(
    scope: Scope, value: Value, indices: tuple[str, ...], extents: Mapping[str, int | None]
) -> OperandType:
    """The type of a result: dense if a scalar or made of dense operands, else to be chosen."""
    sparse = any(scope.maybe_sparse(load.name) for load in loads(value))
    fmt = None if sparse and indices else dense_format(len(indices))
    return OperandType(tuple(extents[i] for i in indices), value.dtype, fmt)
