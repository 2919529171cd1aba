"""Typed values: an expression bound to its operands, each node with its element type.

What the module builder walks. Every conversion is a node; a constant has the type in which it is
used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparsecc.frontends.dtypes import Constant


@dataclass(frozen=True)
class Load:
    """The element of a tensor at a point; no indices: a scalar."""

    name: str
    indices: tuple[str, ...]
    dtype: str


@dataclass(frozen=True)
class Const:
    """A constant; an empty ``dtype`` is weak: not yet met by a tensor."""

    value: Constant
    dtype: str


@dataclass(frozen=True)
class Convert:
    """Another element type, by NumPy's ``astype``."""

    operand: Value
    dtype: str


@dataclass(frozen=True)
class Arith:
    """``+ - * /`` of two values of the type ``dtype``."""

    op: str
    lhs: Value
    rhs: Value
    dtype: str


@dataclass(frozen=True)
class Negate:
    operand: Value
    dtype: str


@dataclass(frozen=True)
class Sum:
    """The sum over indices, in the operand's type; ``source`` is the term as text."""

    indices: tuple[str, ...]
    operand: Value
    dtype: str
    source: str


Value = Load | Const | Convert | Arith | Negate | Sum


def operands_of(value: Value) -> tuple[Value, ...]:
    match value:
        case Arith(_, lhs, rhs, _):
            return (lhs, rhs)
        case Convert(operand) | Negate(operand) | Sum(_, operand):
            return (operand,)
        case _:
            return ()


def loads(value: Value) -> Iterator[Load]:
    """The loads of a value, left to right, repeated ones included."""
    if isinstance(value, Load):
        yield value
    for operand in operands_of(value):
        yield from loads(operand)


def index_order(value: Value) -> tuple[str, ...]:
    """The indices of a value in order of appearance."""
    return tuple(dict.fromkeys(i for load in loads(value) for i in load.indices))
