"""Subscripts: an index, or a sum of loops with strides, as an indexing map spells it."""

from __future__ import annotations

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

Subscript = tuple[tuple[int, int], ...]
"""Loops and their strides: ``i`` is ((i, 1),), ``2 * i1 + i0`` is ((i1, 2), (i0, 1))."""


def read_subscript(expr: AffineExpr) -> Subscript | None:
    """The loops of a subscript, largest stride first; None if it is no sum of loops with positive strides."""
    strides: dict[int, int] = {}

    def add(part: AffineExpr, stride: int) -> bool:
        match part:
            case AffineDimExpr():
                strides[part.position] = strides.get(part.position, 0) + stride
                return True
            case AffineBinaryOpExpr() if part.kind == AffineBinaryOpKind.Add:
                return add(part.lhs, stride) and add(part.rhs, stride)
            case AffineBinaryOpExpr() if part.kind == AffineBinaryOpKind.Mul:
                constant = isinstance(part.rhs, AffineConstantExpr)
                factor, other = (part.rhs, part.lhs) if constant else (part.lhs, part.rhs)
                if not isinstance(factor, AffineConstantExpr) or factor.value <= 0:
                    return False
                return add(other, stride * factor.value)
            case _:
                return False

    return (
        tuple(sorted(strides.items(), key=lambda term: (-term[1], term[0])))
        if add(expr, 1)
        else None
    )
