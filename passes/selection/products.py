"""Whether a linalg.generic is the sum of one product of two tensors, and what its tensors are indexed with.

Formats are not looked at, so that it can be asked before they are chosen.
"""

from __future__ import annotations

from xdsl.dialects import arith, complex
from xdsl.dialects.builtin import AffineMapAttr, FixedBitwidthType, Float32Type
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr

from sparsecc.dialects.reading import element_type, strings
from sparsecc.passes.sparsification.host import initial_constant
from sparsecc.passes.sparsification.term import strip_casts, wide_sum

SUMS = {
    arith.AddfOp: arith.MulfOp,
    arith.AddiOp: arith.MuliOp,
    complex.AddOp: complex.MulOp,
}
"""Additions, and the multiplication that goes with each."""


def why_no_product(generic: linalg.GenericOp) -> str | None:
    """What a generic is beside the sum of one product of its two inputs; None: it is that and nothing else."""
    if len(generic.inputs) != 2 or len(generic.outputs) != 1:
        return f"it has {len(generic.inputs)} operands, not two"
    if index_names(generic) is None:
        return "a subscript is no plain index"
    if initial_constant(generic) is not None:
        return "its sums start from a number other than 0"
    return _wrong_body(generic)


def _wrong_body(generic: linalg.GenericOp) -> str | None:
    block = generic.body.block
    last = block.last_op
    assert last is not None
    accumulator: SSAValue = block.args[-1]
    result = strip_casts(last.operands[0])
    rounding = wide_sum(block)
    if rounding is not None:
        if not (_bits(generic) == 16 and isinstance(rounding.operands[0].type, Float32Type)):
            return f"its sums are in {rounding.operands[0].type}"
        (use,) = accumulator.uses
        accumulator, result = use.operation.results[0], rounding.operands[0]
    elif _bits(generic) == 16 and isinstance(result.owner, arith.AddfOp):
        return "its sums are rounded to 16 bits after each addition"
    combine = result.owner
    multiply = SUMS.get(type(combine))  # pyright: ignore[reportArgumentType]  # other classes find nothing
    if multiply is None or not isinstance(combine, tuple(SUMS)):
        return "it does not add products up"
    terms = [v for v in map(strip_casts, combine.operands) if v is not accumulator]
    if len(terms) != 1 or not isinstance(terms[0].owner, multiply):
        return "it adds up other than one product"
    factors = [_factor(v) for v in terms[0].owner.operands]
    numbers = [f.index for f in factors if isinstance(f, BlockArgument) and f.block is block]
    if sorted(numbers) != [0, 1]:
        return "its factors are not its two operands as they are"
    return None


def _bits(generic: linalg.GenericOp) -> int:
    """The bits of an element of the result."""
    element = element_type(generic.results[0].type)
    return element.bitwidth if isinstance(element, FixedBitwidthType) else 0


def _factor(value: SSAValue) -> SSAValue:
    """What is multiplied, before it is widened: for a sum that is rounded once, or for a result of a wider type (which
    libraries refuse by their types)."""
    value = strip_casts(value)
    if isinstance(value.owner, arith.ExtFOp):
        return value.owner.operands[0]
    return value


def index_names(generic: linalg.GenericOp) -> list[list[str]] | None:
    """The indices of each input, then of the result; None where a subscript is none."""
    given = strings(generic.attributes.get("sparsecc.indices"))
    found: list[list[str]] = []
    for map_ in generic.indexing_maps.data:
        assert isinstance(map_, AffineMapAttr)
        count = map_.data.num_dims
        known = len(given) == count == len(set(given))
        names = given if known else [f"d{k}" for k in range(count)]
        if not all(isinstance(e, AffineDimExpr) for e in map_.data.results):
            return None
        found.append([names[e.position] for e in map_.data.results if isinstance(e, AffineDimExpr)])
    return found
