"""Matrices of sparse rows, and products that are wanted at their entries, as row kernels see them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, IntegerAttr, IntegerType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, SSAValue

from sparsecc.dialects.reading import element_type
from sparsecc.dialects.sparse_tensor.types import format_of
from sparsecc.dialects.tile.fragment_types import type_name
from sparsecc.dialects.tile.weights import PackedWeight
from sparsecc.formats import Format, known_name
from sparsecc.passes.sparsification.host import initial_constant, initial_value
from sparsecc.passes.sparsification.term import strip_casts
from sparsecc.passes.tiling.contraction_view import (
    WIDENINGS,
    Body,
    NoContraction,
    loops_of,
    memory_order,
)

ACCUMULATORS = {
    "f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64", "i8": "i32", "i32": "i32", "i64": "i64",
}  # fmt: skip
"""What products of elements of a type are summed in."""


def rows_format(type_: Attribute) -> Format | None:
    """The format of a matrix whose dense rows (or columns) hold compressed entries."""
    fmt = format_of(type_)
    if not isinstance(fmt, Format):
        return None
    return fmt if known_name(fmt.with_widths(0, 0)) in ("CSR", "CSC") else None


def rows_weight(type_: Attribute) -> PackedWeight | None:
    """How a tensor type reads as a weight of sparse rows."""
    fmt = rows_format(type_)
    if fmt is None:
        return None
    rows, reduction = fmt.dim_order
    return PackedWeight("rows", None, rows, reduction)


def sum_type(accumulator: str) -> Attribute:
    """An accumulator's type."""
    if accumulator.startswith("i"):
        return IntegerType(int(accumulator[1:]))
    return Float64Type() if accumulator == "f64" else Float32Type()


@dataclass(frozen=True)
class SampledView:
    """``C[n, m] = A[n, m] * sum over k of U[n, k] * V[m, k]`` at the entries of A, by numbers of inputs."""

    generic: linalg.GenericOp
    matrix: int
    by_row: int
    by_column: int
    letters: dict[int, str]
    dtype: str
    accumulator: str

    def letters_at(self, operand: int) -> str:
        return "".join(self.letters[loop] for loop in loops_of(self.generic, operand))


def view_sampled(generic: linalg.GenericOp) -> SampledView | None:
    """The sampled product that a generic is, else None."""
    if len(generic.inputs) != 3 or len(generic.outputs) != 1 or len(generic.res) != 1:
        return None
    matrices = [k for k, v in enumerate(generic.inputs) if rows_format(v.type) is not None]
    if len(matrices) != 1:
        return None
    try:
        return _sampled(generic, matrices[0])
    except NoContraction:
        return None


def _sampled(generic: linalg.GenericOp, matrix: int) -> SampledView | None:
    fmt = rows_format(generic.inputs[matrix].type)
    assert fmt is not None
    kinds = [kind.data.name.lower() for kind in generic.iterator_types.data]
    loops = loops_of(generic, matrix)
    n, m = (loops[d] for d in fmt.dim_order)
    others = {loop for loop, kind in enumerate(kinds) if kind == "reduction"}
    if len(others) != 1 or len(kinds) != 3 or others & {n, m}:
        return None
    (k,) = others
    letters = {n: "n", m: "m", k: "k"}
    body = Body(generic)
    pair, factors = body.split(k)
    if (
        len(pair) != 2
        or len(factors) != 1
        or _leaf(factors[0]) is not generic.body.block.args[matrix]
    ):
        return None
    spelled = {
        number: memory_order(
            generic.inputs[number].type,
            "".join(letters[loop] for loop in loops_of(generic, number)),
        )
        for number, _ in pair
    }
    by = {order: number for number, order in spelled.items()}
    if set(by) != {"nk", "mk"} or body.sign < 0:
        return None
    out = generic.results[0]
    same = format_of(out.type) == fmt and loops_of(generic, 3) == loops
    types = {type_name(element_type(v.type)) for v in generic.inputs}
    if not same or len(types) != 1 or not types <= set(ACCUMULATORS) or not _from_zero(generic):
        return None
    dtype = types.pop()
    accumulator = ACCUMULATORS[dtype]
    wanted = {type_name(body.term_type), type_name(element_type(out.type))}
    if not wanted <= {dtype, accumulator}:
        return None
    return SampledView(generic, matrix, by["nk"], by["mk"], letters, dtype, accumulator)


def _leaf(value: SSAValue) -> SSAValue:
    """An argument of a body behind its widenings."""
    value = strip_casts(value)
    while not isinstance(value, BlockArgument) and isinstance(value.owner, WIDENINGS):
        value = strip_casts(value.owner.operands[0])
    return value


def _from_zero(generic: linalg.GenericOp) -> bool:
    constant = initial_constant(generic)
    if constant is None:
        return initial_value(generic) is None
    assert isinstance(constant, FloatAttr | IntegerAttr)
    return constant.value.data == 0
