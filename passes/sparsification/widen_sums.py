"""widen-sums: sums of floats of 16 bits are kept in f32 and rounded once, at the end.

Before (the body adds in f16, or widens its result, adds and rounds)::

    %y = linalg.generic … ins(%A, %x : tensor<?x?xf16, #CSR>, tensor<?xf16>) outs(%z : tensor<?xf16>) {
      ^bb0(%a: f16, %b: f16, %y0: f16):
        %p = arith.mulf %a, %b : f16
        %s = arith.addf %y0, %p : f16
        linalg.yield %s
    } -> tensor<?xf16>

After: the sum is a tensor of f32, and a second operation rounds it::

    %y_wide = linalg.generic … ins(%A, %x) outs(%zeros : tensor<?xf32>) {
        … %w = arith.extf %p : f16 to f32;  %s = arith.addf %y0, %w : f32;  linalg.yield %s
    } -> tensor<?xf32>
    %y = linalg.generic … ins(%y_wide) outs(%e : tensor<?xf16>) { arith.truncf … } -> tensor<?xf16>

With ``split=false`` the result stays in one operation, whose body yields ``truncf(extf(%y0) + extf(%p))``: for targets
that keep the sum in registers. It reads as one wide sum that is rounded once, whatever the order of its loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    Float16Type,
    Float32Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass

from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.dialects.sparse_tensor.types import ranked_tensor
from sparsecc.passes.sparsification.schedule_loops import as_wide, natural_format, walkable
from sparsecc.passes.sparsification.term import strip_casts, tensor_format, wide_sum


@dataclass(frozen=True)
class WidenSums(ModulePass):
    """Sum floats of 16 bits in f32."""

    name = "widen-sums"

    split: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for generic in [g for g in op.walk() if isinstance(g, linalg.GenericOp)]:
            if len(generic.outputs) != 1 or len(generic.res) != 1:
                continue
            widen(generic.body.block)
            rounding = wide_sum(generic.body.block)
            if rounding is not None and self.split:
                split_sum(generic, rounding)


def widen(block: Block) -> None:
    """``addf(result, term)`` in 16 bits becomes ``truncf(addf(extf(result), extf(term)))``."""
    last = block.last_op
    assert last is not None
    combine, accumulator = last.operands[0].owner, block.args[-1]
    if not isinstance(combine, arith.AddfOp | arith.SubfOp):
        return
    if not isinstance(combine.result.type, Float16Type | BFloat16Type):
        return
    if len(list(accumulator.uses)) != 1 or accumulator not in combine.operands:
        return
    wide = Float32Type()
    left, right = (arith.ExtFOp(v, wide) for v in combine.operands)
    total = type(combine)(left.result, right.result)
    rounded = arith.TruncFOp(total.result, combine.result.type)
    block.insert_ops_before([left, right, total, rounded], combine)
    combine.result.replace_all_uses_with(rounded.result)
    combine.detach()
    combine.erase()


def split_sum(generic: linalg.GenericOp, rounding: arith.TruncFOp) -> None:
    """The sum as a tensor of its own, and its rounding as an operation of its own."""
    result = generic.results[0]
    type_ = ranked_tensor(result.type)
    element = rounding.operands[0].type
    if type_ is None or not isinstance(element, AnyFloat):
        return
    host = _Host(generic)
    wide = _wide_type(type_, element)
    start = host.wide_start(generic.outputs[0], wide, element)
    block = generic.body.block
    accumulator = block.args[-1]
    (use,) = accumulator.uses
    widened = use.operation.results[0]
    kept = block.insert_arg(element, accumulator.index)
    widened.replace_all_uses_with(kept)
    _erase(use.operation)
    block.erase_arg(accumulator)
    rounding.result.replace_all_uses_with(rounding.operands[0])
    _erase(rounding)
    total = linalg.GenericOp(
        list(generic.inputs),
        [start],
        generic.detach_region(generic.body),
        ArrayAttr(generic.indexing_maps.data),
        ArrayAttr(generic.iterator_types.data),
        [wide],
    )
    total.attributes.update(generic.attributes)
    total.results[0].name_hint = f"{result.name_hint or 't'}_wide"
    host.add(total)
    rounded = host.rounded(total, type_)
    rounded.results[0].name_hint = result.name_hint
    result.replace_all_uses_with(rounded.results[0])
    _erase(generic)


def _wide_type(type_: TensorType[Attribute], element: AnyFloat) -> TensorType[Attribute]:
    """The type of the sum: stored as the result is, if kernels can walk that."""
    encoding: Attribute = type_.encoding
    if isinstance(encoding, EncodingAttr):
        fmt = tensor_format(type_)
        if not walkable(fmt):
            fmt = as_wide(natural_format(tuple(range(fmt.rank))), fmt)
        encoding = EncodingAttr(fmt)
    return TensorType(element, type_.shape, encoding)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


class _Host:
    """Inserts operations before a generic."""

    def __init__(self, generic: linalg.GenericOp) -> None:
        self.generic = generic
        assert generic.parent is not None
        self.block: Block = generic.parent

    def add(self, op: Operation) -> SSAValue:
        self.block.insert_op_before(op, self.generic)
        return op.results[0]

    def empty(self, type_: TensorType[Attribute]) -> SSAValue:
        """An empty tensor of the extents of the generic's result."""
        init = self.generic.outputs[0]
        sizes: list[SSAValue] = []
        if isinstance(init.owner, tensor.EmptyOp):
            sizes = list(init.owner.dynamic_sizes)
        else:
            for dim, extent in enumerate(type_.get_shape()):
                if extent == DYNAMIC_INDEX:
                    number = self.add(arith.ConstantOp(IntegerAttr(dim, IndexType())))
                    sizes.append(self.add(tensor.DimOp(init, number)))
        return self.add(tensor.EmptyOp(sizes, type_))

    def wide_start(
        self, init: SSAValue, wide: TensorType[Attribute], element: AnyFloat
    ) -> SSAValue:
        """What the wide sum starts from."""
        made = init.owner
        if isinstance(made, tensor.EmptyOp):
            return self.empty(wide)
        if isinstance(made, linalg.FillOp | tensor.SplatOp):
            constant = strip_casts(made.operands[0]).owner
            if isinstance(constant, arith.ConstantOp) and isinstance(constant.value, FloatAttr):
                number = constant.value.value.data
                empty = self.empty(wide)
                if not isinstance(wide.encoding, NoneAttr) and number == 0:
                    return empty
                value = self.add(arith.ConstantOp(FloatAttr(number, element)))
                return self.add(linalg.FillOp([value], [empty]))
        return self.each(init, wide, lambda v: arith.ExtFOp(v, element), "what the sum starts from")

    def rounded(self, total: linalg.GenericOp, type_: TensorType[Attribute]) -> linalg.GenericOp:
        """The operation that rounds."""
        element = type_.element_type
        assert isinstance(element, AnyFloat)
        text = f"the sum, rounded to {element}"
        value = self.each(total.results[0], type_, lambda v: arith.TruncFOp(v, element), text)
        owner = value.owner
        assert isinstance(owner, linalg.GenericOp)
        return owner

    def each(
        self,
        value: SSAValue,
        type_: TensorType[Attribute],
        make: Callable[[SSAValue], Operation],
        text: str,
    ) -> SSAValue:
        """A tensor of another element type: an operation on each element."""
        given = ranked_tensor(value.type)
        assert given is not None
        rank = given.get_num_dims()
        block = Block(arg_types=[given.element_type, type_.element_type])
        converted = make(block.args[0])
        block.add_ops([converted, linalg.YieldOp(converted.results[0])])
        same = AffineMapAttr(AffineMap.identity(rank))
        parallel = [IteratorTypeAttr.parallel()] * rank
        generic = linalg.GenericOp(
            [value], [self.empty(type_)], Region(block), [same, same], parallel, [type_]
        )
        generic.attributes["sparsecc.source"] = StringAttr(text)
        self.add(generic)
        return generic.results[0]
