"""What is known of blocks: joint shapes, constants, and where values must be 0."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import SSAValue

from sparsecc.dialects.tile import blocks

Shape = tuple[int, ...]


def joint_shape(*shapes: Shape) -> Shape:
    """The shape of what depends on all of several values."""
    found: Shape = ()
    for shape in shapes:
        if not found:
            found = shape
        elif shape:
            found = tuple(max(m, n) for m, n in zip(found, shape, strict=True))
    return found


def varies(shape: Shape) -> frozenset[int]:
    """The axes along which a block of that shape has several elements."""
    return frozenset(k for k, n in enumerate(shape) if n > 1)


def is_zero(value: SSAValue) -> bool:
    """Whether a value is the constant 0 (or a block of it)."""
    op = value.owner
    if isinstance(op, blocks.SplatOp):
        return is_zero(op.value)
    return (
        isinstance(op, arith.ConstantOp)
        and isinstance(op.value, FloatAttr | IntegerAttr)
        and op.value.value.data == 0
    )


def is_zero_outside(value: SSAValue, mask: SSAValue) -> bool:
    """Whether a value is 0 wherever a mask does not hold, since its loads are."""
    op = value.owner
    match op:
        case blocks.LoadOp():
            return op.mask is not None and implies(op.mask, mask)
        case arith.MulfOp():
            return is_zero_outside(op.lhs, mask) and is_zero_outside(op.rhs, mask)
        case arith.MuliOp() | arith.AndIOp():
            return is_zero_outside(op.lhs, mask) or is_zero_outside(op.rhs, mask)
        case blocks.BroadcastOp() | blocks.CastOp():
            return is_zero_outside(op.value, mask)
        case arith.ExtFOp():
            return is_zero_outside(op.input, mask)
        case _:
            return False


def implies(strong: SSAValue, weak: SSAValue) -> bool:
    """Whether one mask is part of another's conjunction."""
    op = strong.owner
    if strong is weak:
        return True
    if isinstance(op, arith.AndIOp):
        return implies(op.lhs, weak) or implies(op.rhs, weak)
    return isinstance(op, blocks.BroadcastOp) and implies(op.value, weak)
