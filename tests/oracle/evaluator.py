"""The oracle: what an expression means, computed densely with NumPy.

It shares nothing with the compiler but the syntax tree. Each node is a pair of arrays over the
whole index space of its statement, one axis an index: values, and whether an entry is stored there.
A missing entry is zero, and annihilates: missing * inf is missing. A stored zero follows IEEE.
Floats of 16 bits are computed in f32; the statement's value is rounded if nothing wider met them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc.frontends.ast import (
    Access,
    Assign,
    Binary,
    Expr,
    Index,
    Number,
    Program,
    Scalar,
    Unary,
    walk,
)
from sparsecc.frontends.index_notation import parse

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Operand = tuple[Array, Mask | None]
"""Values, and where something is stored (None: everywhere, a dense tensor)."""


@dataclass
class _Point:
    """A value over the index space; ``values`` is a Python number while no tensor has been met."""

    values: Any
    stored: Any
    indices: frozenset[str] = frozenset()
    narrow: np.dtype[Any] | None = None
    """The 16-bit type of a value that is held in f32."""


def evaluate(expression: str | Program, operands: Mapping[str, Operand]) -> tuple[Array, Mask]:
    """The values of the last target, in its index order, and which of its entries are stored."""
    program = parse(expression) if isinstance(expression, str) else expression
    known = dict(operands)
    values, stored = np.zeros(()), np.ones((), bool)
    for statement in program.statements:
        with np.errstate(all="ignore"):
            values, stored = _Statement(statement, known).evaluate()
        name = statement.target.name
        read = {n.name for n in walk(statement.expr) if isinstance(n, Access | Scalar)}
        dense = values.ndim == 0 or all(known[n][1] is None for n in read)
        known[name] = (values, None if dense else stored)
    return values, stored


class _Statement:
    def __init__(self, statement: Assign, operands: Mapping[str, Operand]) -> None:
        self.statement = statement
        self.operands = operands
        assert statement.op is None, "the oracle knows '=' only"
        self.target = _names(statement.target)
        self.extents: dict[str, int] = {}
        for node in walk(statement.expr):
            if isinstance(node, Access):
                for name, extent in zip(_names(node), operands[node.name][0].shape, strict=True):
                    assert self.extents.setdefault(name, extent) == extent, f"extents of {name}"
        self.axes = {name: axis for axis, name in enumerate(self.extents)}

    def evaluate(self) -> tuple[Array, Mask]:
        result = self.additive(self.statement.expr)
        shape = [self.extents[n] if n in self.target else 1 for n in self.axes]
        order = [self.axes[n] for n in self.target]
        rest = [axis for axis in range(len(shape)) if axis not in order]
        arrays: list[Array] = []
        for array in (np.asarray(result.values), np.asarray(result.stored)):
            full = np.broadcast_to(array, shape).transpose(order + rest)
            arrays.append(full.reshape(full.shape[: len(order)]).copy())
        values = arrays[0] if result.narrow is None else arrays[0].astype(result.narrow)
        return values, arrays[1]

    # -- implicit sums -------------------------------------------------------------------------

    def additive(self, expr: Expr) -> _Point:
        """Top-level ``+``, ``-`` and unary minus; whatever stands between them is summed."""
        if isinstance(expr, Binary) and expr.op in ("+", "-"):
            return _combine(expr.op, self.additive(expr.lhs), self.additive(expr.rhs))
        if isinstance(expr, Unary):
            return _negate(self.additive(expr.operand))
        return self.sum(self.plain(expr))

    def sum(self, term: _Point) -> _Point:
        """The sum over those of the term's indices that are not on the left."""
        summed = term.indices - set(self.target)
        if not summed:
            return term
        axes = tuple(sorted(self.axes[n] for n in summed))
        values = np.asarray(term.values)
        stored = np.broadcast_to(np.asarray(term.stored), values.shape)
        if values.dtype == np.bool_:
            total = np.any(values, axis=axes, keepdims=True)
        else:
            total = np.sum(values, axis=axes, keepdims=True, dtype=values.dtype)
        found = stored.any(axis=axes, keepdims=True)
        return _Point(total, found, term.indices - summed, term.narrow)

    # -- point by point ------------------------------------------------------------------------

    def plain(self, expr: Expr) -> _Point:
        match expr:
            case Number(value):
                return _Point(value, np.True_)
            case Scalar(name):
                values, stored = self.operands[name]
                assert values.ndim == 0, f"{name} is not a scalar"
                there = np.True_ if stored is None else np.bool_(stored[()])
                return _Point(_held(values)[()], there, narrow=_narrow(values))
            case Access():
                return self.access(expr)
            case Unary("-", operand):
                return _negate(self.plain(operand))
            case Binary(op, lhs, rhs):
                return _combine(op, self.plain(lhs), self.plain(rhs))
            case _:
                raise AssertionError(f"the oracle does not know {expr}")

    def access(self, access: Access) -> _Point:
        values, stored = self.operands[access.name]
        names = _names(access)
        at = tuple(self.coordinates(name) for name in names)
        mask = np.ones(values.shape, bool) if stored is None else stored
        every: Array = _held(values)
        held: Array = np.where(mask, every, every.dtype.type(0))
        return _Point(held[at], mask[at], frozenset(names), _narrow(values))

    def coordinates(self, name: str) -> Array:
        """All values of an index, along its own axis."""
        shape = [1] * len(self.axes)
        shape[self.axes[name]] = self.extents[name]
        return np.arange(self.extents[name]).reshape(shape)


def _names(access: Access | Scalar) -> tuple[str, ...]:
    if isinstance(access, Scalar):
        return ()
    assert all(isinstance(i, Index) for i in access.indices), f"a computed index in {access}"
    return tuple(i.name for i in access.indices if isinstance(i, Index))


def _negate(a: _Point) -> _Point:
    return _Point(_only(a.stored, -a.values), a.stored, a.indices, a.narrow)


def _narrow(values: Any) -> np.dtype[Any] | None:
    dtype = np.asarray(values).dtype
    return dtype if dtype.name in ("float16", "bfloat16") else None


def _held(values: Any) -> Any:
    """Values as they are computed with."""
    return values if _narrow(values) is None else values.astype(np.float32)


def _meet(a: _Point, b: _Point) -> np.dtype[Any] | None:
    """The 16-bit type of a result: that of both, or of one that meets a constant or 8 bits."""
    if a.narrow is not None and b.narrow is not None:
        return a.narrow if a.narrow == b.narrow else None
    narrow, other = (a, b) if a.narrow is not None else (b, a)
    if type(other.values) in (int, float):
        return narrow.narrow
    small = ("bool", "int8", "uint8")
    return narrow.narrow if np.asarray(other.values).dtype.name in small else None


def _combine(op: str, a: _Point, b: _Point) -> _Point:
    point = _combined(op, a, b)
    point.narrow = _meet(a, b)
    return point


def _combined(op: str, a: _Point, b: _Point) -> _Point:
    indices = a.indices | b.indices
    match op:
        case "+":
            return _Point(a.values + b.values, a.stored | b.stored, indices)
        case "-":
            return _Point(a.values - b.values, a.stored | b.stored, indices)
        case "*":
            stored = a.stored & b.stored
            return _Point(_only(stored, a.values * b.values), stored, indices)
        case "/":
            if _is_constant(a) and _is_constant(b):
                return _Point(a.values / b.values, np.True_)
            # A missing numerator over something stored is missing; over a missing one it is 0/0.
            stored = a.stored | ~b.stored
            return _Point(_only(stored, np.true_divide(a.values, b.values)), stored, indices)
        case _:
            raise AssertionError(f"the oracle does not know {op}")


def _is_constant(a: _Point) -> bool:
    return type(a.values) in (int, float, complex)


def _only(stored: Any, values: Any) -> Any:
    """The values where something is stored, zero elsewhere; constants stay weak."""
    if type(values) in (int, float, complex):
        return values
    array: Array = np.asarray(values)
    kept: Array = np.where(stored, array, array.dtype.type(0))
    return kept[()] if kept.ndim == 0 else kept
