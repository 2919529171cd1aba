"""The host side of a function: what a result starts from, and operations that nobody uses any more."""

from __future__ import annotations

from xdsl.dialects import arith, complex, func, tensor
from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue

from sparsecc.dialects.sparse_tensor.ops import ReinterpretMapOp
from sparsecc.passes.sparsification.term import is_zero, strip_casts

_REMOVABLE = (
    tensor.EmptyOp, tensor.DimOp, tensor.SplatOp, linalg.FillOp, arith.ConstantOp, complex.ConstantOp, complex.CreateOp,
    UnrealizedConversionCastOp, ReinterpretMapOp,
)  # fmt: skip


def initial_value(generic: linalg.GenericOp) -> SSAValue | None:
    """The tensor that a result starts from, or None if that is nothing but zeros (or not read)."""
    value = generic.outputs[0]
    op = value.owner
    if isinstance(op, ReinterpretMapOp):
        op = op.source.owner
    if isinstance(op, tensor.EmptyOp):
        return None
    if isinstance(op, linalg.FillOp | tensor.SplatOp) and is_constant(op.operands[0]):
        return None
    accumulator = generic.body.block.args[-1]
    return value if accumulator.first_use is not None else None


def is_constant(value: SSAValue) -> bool:
    """Whether a scalar is a constant of the program."""
    return isinstance(strip_casts(value).owner, arith.ConstantOp | complex.ConstantOp) or is_zero(
        value
    )


def initial_constant(generic: linalg.GenericOp) -> Attribute | None:
    """The number other than 0 that a result is filled with at first and that the body reads, if there is one."""
    op = generic.outputs[0].owner
    if not isinstance(op, linalg.FillOp | tensor.SplatOp) or is_zero(op.operands[0]):
        return None
    constant = strip_casts(op.operands[0]).owner
    if not isinstance(constant, arith.ConstantOp | complex.ConstantOp):
        return None
    return constant.value if generic.body.block.args[-1].first_use is not None else None


def drop_dead_host_ops(fn: func.FuncOp) -> None:
    """Erase allocations, fills and sizes without uses, last to first."""
    ops: list[Operation] = list(fn.body.block.ops)
    for op in reversed(ops):
        if isinstance(op, _REMOVABLE) and all(r.first_use is None for r in op.results):
            op.detach()
            op.erase()
