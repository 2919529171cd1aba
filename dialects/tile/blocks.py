"""The blocks form of a tile kernel: programs on block-shaped values that Triton lays out by itself.

A block is a builtin ``vector``; numbers of a program are scalars; arguments are ``memref<?xT>`` (arrays) and integers.
Arithmetic is ``arith`` and ``math`` on both, loops are ``scf``. Blocks of one kernel have one rank, and size 1 along an
axis means that the value does not vary there::

    %pid = tile.program_id 0
    %lane = tile.iota 1 : vector<1x32xi32>
    %row = tile.splat %pid : i32 -> vector<1x1xi32>
    %all = tile.broadcast %lane : vector<1x32xi32> -> vector<8x32xi32>
    %v = tile.load %A[%p] : memref<?xf32>, vector<8x32xi32> -> vector<8x32xf32> if %m : vector<8x32xi1>
    %s = tile.reduce add %v axis 1 : vector<8x32xf32> -> vector<8x1xf32>
    tile.store %s, %y[%i] : vector<8x1xf32>, memref<?xf32>, vector<8x1xi32>

A kernel is a ``func.func`` with ``tile.kernel``, ``tile.form = "blocks"``, ``tile.args`` (the role of each
argument) and ``tile.grid`` (see :mod:`grid`). Where a load's mask does not hold its result is 0.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    AnyFloat,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sparsecc.dialects.reading import block_shape, block_type, element_type, integer_width
from sparsecc.dialects.tile import elementwise
from sparsecc.dialects.tile.elementwise import (
    FLOAT_PREDICATES,
    INTEGER_PREDICATES,
    CastOp,
    CompareOp,
    SelectOp,
)
from sparsecc.dialects.tile.grid import Factor, GridAttr

NUMBER = IntegerAttr.constr(i64)
REDUCTIONS = ("add", "or", "min", "max")


def number(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, i64)


@irdl_op_definition
class ProgramIdOp(IRDLOperation):
    """The number of this program along an axis of the grid."""

    name = "tile.program_id"
    axis = prop_def(NUMBER)
    result = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict"

    def __init__(self, axis: int) -> None:
        super().__init__(properties={"axis": number(axis)}, result_types=[i32])

    def verify_(self) -> None:
        if not 0 <= self.axis.value.data <= 2:
            raise VerifyException("a grid has axes 0, 1 and 2")


@irdl_op_definition
class IotaOp(IRDLOperation):
    """0, 1, 2 … along an axis; the other axes have size 1."""

    name = "tile.iota"
    axis = prop_def(NUMBER)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict `:` type($result)"

    def __init__(self, axis: int, result: Attribute) -> None:
        super().__init__(properties={"axis": number(axis)}, result_types=[result])

    def verify_(self) -> None:
        shape, axis = block_shape(self.result.type), self.axis.value.data
        if element_type(self.result.type) != i32:
            raise VerifyException("iota counts in i32")
        if not 0 <= axis < len(shape):
            raise VerifyException(f"axis {axis} of a block of rank {len(shape)}")
        if any(n != 1 for k, n in enumerate(shape) if k != axis):
            raise VerifyException("iota has size 1 along the other axes")
        if shape[axis] & (shape[axis] - 1):
            raise VerifyException(f"a block has powers of two, not {shape[axis]}")


@irdl_op_definition
class SplatOp(IRDLOperation):
    """A block of one number."""

    name = "tile.splat"
    value = operand_def()
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, result: Attribute) -> None:
        super().__init__(operands=[value], result_types=[result])

    def verify_(self) -> None:
        if self.value.type != element_type(self.result.type):
            raise VerifyException("splat keeps the element type of a scalar")


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """A block repeated along axes of size 1."""

    name = "tile.broadcast"
    value = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, result: Attribute) -> None:
        super().__init__(operands=[value], result_types=[result])

    def verify_(self) -> None:
        a, b = block_shape(self.value.type), block_shape(self.result.type)
        if element_type(self.value.type) != element_type(self.result.type):
            raise VerifyException("broadcast keeps the element type")
        if len(a) != len(b) or any(m not in (1, n) for m, n in zip(a, b, strict=False)):
            raise VerifyException("broadcast repeats along axes of size 1 only")


@irdl_op_definition
class ExpandDimsOp(IRDLOperation):
    """A block with one more axis, of size 1."""

    name = "tile.expand_dims"
    value = operand_def(VectorType)
    axis = prop_def(NUMBER)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$value `axis` $axis attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, axis: int) -> None:
        shape = list(block_shape(value.type))
        shape.insert(axis, 1)
        super().__init__(
            operands=[value],
            properties={"axis": number(axis)},
            result_types=[block_type(shape, element_type(value.type))],
        )

    def verify_(self) -> None:
        shape, axis = list(block_shape(self.value.type)), self.axis.value.data
        if not 0 <= axis <= len(shape):
            raise VerifyException(f"axis {axis} of a block of rank {len(shape) + 1}")
        shape.insert(axis, 1)
        if self.result.type != block_type(shape, element_type(self.value.type)):
            raise VerifyException("expand_dims adds one axis of size 1")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Elements at offsets of an array; 0 where the mask does not hold."""

    name = "tile.load"
    array = operand_def(MemRefType)
    offsets = operand_def()
    mask = opt_operand_def()
    result = result_def()
    assembly_format = (
        "$array `[` $offsets `]` attr-dict `:` type($array) `,` type($offsets) `->` type($result)"
        " (`if` $mask^ `:` type($mask))?"
    )

    def __init__(self, array: SSAValue, offsets: SSAValue, mask: SSAValue | None) -> None:
        result = block_type(block_shape(offsets.type), signless(element_type(array.type)))
        super().__init__(operands=[array, offsets, mask], result_types=[result])

    def verify_(self) -> None:
        if self.result.type != block_type(
            block_shape(self.offsets.type), signless(element_type(self.array.type))
        ):
            raise VerifyException("a load gives one element for each offset")
        verify_place(self.offsets, self.mask)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Put elements at offsets of an array, where the mask holds."""

    name = "tile.store"
    value = operand_def()
    array = operand_def(MemRefType)
    offsets = operand_def()
    mask = opt_operand_def()
    assembly_format = (
        "$value `,` $array `[` $offsets `]` attr-dict `:` type($value) `,` type($array) `,`"
        " type($offsets) (`if` $mask^ `:` type($mask))?"
    )

    def __init__(
        self, value: SSAValue, array: SSAValue, offsets: SSAValue, mask: SSAValue | None
    ) -> None:
        super().__init__(operands=[value, array, offsets, mask])

    def verify_(self) -> None:
        verify_stored(self.value, self.array, self.offsets, self.mask)


@irdl_op_definition
class AtomicAddOp(IRDLOperation):
    """Add to elements of an array that other programs add to as well, in whatever order they come."""

    name = "tile.atomic_add"
    value = operand_def()
    array = operand_def(MemRefType)
    offsets = operand_def()
    mask = opt_operand_def()
    assembly_format = StoreOp.assembly_format

    def __init__(
        self, value: SSAValue, array: SSAValue, offsets: SSAValue, mask: SSAValue | None
    ) -> None:
        super().__init__(operands=[value, array, offsets, mask])

    def verify_(self) -> None:
        verify_stored(self.value, self.array, self.offsets, self.mask)


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """``add``, ``or``, ``min`` or ``max`` along an axis, which stays with size 1; of all elements without an axis."""

    name = "tile.reduce"
    kind = prop_def(StringAttr)
    value = operand_def(VectorType)
    axis = opt_prop_def(NUMBER)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, kind: str, value: SSAValue, axis: int | None) -> None:
        shape = list(block_shape(value.type))
        if axis is not None:
            shape[axis] = 1
        super().__init__(
            operands=[value],
            properties={
                "kind": StringAttr(kind),
                "axis": None if axis is None else number(axis),
            },
            result_types=[block_type(() if axis is None else shape, element_type(value.type))],
        )

    def verify_(self) -> None:
        if self.kind.data not in REDUCTIONS:
            raise VerifyException(f"reduces by {', '.join(REDUCTIONS)}, not {self.kind.data}")
        shape = list(block_shape(self.value.type))
        if self.axis is not None:
            if not 0 <= self.axis.value.data < len(shape):
                raise VerifyException(
                    f"axis {self.axis.value.data} of a block of rank {len(shape)}"
                )
            shape[self.axis.value.data] = 1
        wanted = block_type(() if self.axis is None else shape, element_type(self.value.type))
        if self.result.type != wanted:
            raise VerifyException(f"the result is {self.result.type}, not {wanted}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data} ")
        printer.print_operand(self.value)
        if self.axis is not None:
            printer.print_string(f" axis {self.axis.value.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        kind = parser.parse_identifier()
        value = parser.parse_unresolved_operand()
        axis = parser.parse_integer() if parser.parse_optional_keyword("axis") else None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(value, parser.parse_type())
        parser.parse_punctuation("->")
        op = ReduceOp.create(
            operands=[operand],
            result_types=[parser.parse_type()],
            properties={"kind": StringAttr(kind)} | ({} if axis is None else {"axis": number(axis)}),
            attributes=attributes,
        )  # fmt: skip
        return op


@irdl_op_definition
class DotOp(IRDLOperation):
    """``acc + a b`` on matrices: m x k times k x n, summed in the accumulator's type."""

    name = "tile.dot"
    a = operand_def(VectorType)
    b = operand_def(VectorType)
    acc = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `,` type($acc) `->` type($result)"
    )

    def __init__(self, a: SSAValue, b: SSAValue, acc: SSAValue) -> None:
        super().__init__(operands=[a, b, acc], result_types=[acc.type])

    def verify_(self) -> None:
        a, b, acc = (block_shape(v.type) for v in self.operands)
        if len(a) != 2 or len(b) != 2 or a[1] != b[0] or acc != (a[0], b[1]):
            raise VerifyException(f"dot of {a} and {b} onto {acc}")
        if element_type(self.a.type) != element_type(self.b.type):
            raise VerifyException("dot multiplies elements of one type")
        if self.result.type != self.acc.type:
            raise VerifyException("dot gives the accumulator's type")


@irdl_op_definition
class TransOp(IRDLOperation):
    """The transpose of a matrix."""

    name = "tile.trans"
    value = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue) -> None:
        shape = block_shape(value.type)
        super().__init__(
            operands=[value], result_types=[block_type(shape[::-1], element_type(value.type))]
        )

    def verify_(self) -> None:
        shape = block_shape(self.value.type)
        if len(shape) != 2 or self.result.type != block_type(
            shape[::-1], element_type(self.value.type)
        ):
            raise VerifyException("trans swaps the axes of a matrix")


def signless(element: Attribute) -> Attribute:
    """The type of a loaded element: the arithmetic says how an integer is read."""
    width = integer_width(element)
    return IntegerType(width) if width else element


def verify_place(offsets: SSAValue, mask: SSAValue | None) -> None:
    """Offsets are integers; a mask has their shape."""
    if element_type(offsets.type) not in (i32, i64):
        raise VerifyException("offsets are i32 or i64")
    if mask is not None and mask.type != block_type(block_shape(offsets.type), i1):
        raise VerifyException("a mask has a truth value for each offset")


def verify_stored(
    value: SSAValue, array: SSAValue, offsets: SSAValue, mask: SSAValue | None
) -> None:
    element = signless(element_type(array.type))
    if value.type != block_type(block_shape(offsets.type), element):
        raise VerifyException("a store puts one element at each offset")
    if not isinstance(element, AnyFloat | IntegerType):
        raise VerifyException("arrays hold numbers")
    verify_place(offsets, mask)


OPS: list[type[Operation]] = [
    ProgramIdOp, IotaOp, SplatOp, BroadcastOp, ExpandDimsOp, LoadOp, StoreOp, AtomicAddOp, ReduceOp, DotOp, TransOp,
    *elementwise.OPS,
]  # fmt: skip
ATTRIBUTES: list[type[Attribute]] = [GridAttr]

__all__ = [
    "ATTRIBUTES", "FLOAT_PREDICATES", "INTEGER_PREDICATES", "OPS",
    "AtomicAddOp", "BroadcastOp", "CastOp", "CompareOp", "DotOp", "ExpandDimsOp", "Factor", "GridAttr", "IotaOp",
    "LoadOp", "ProgramIdOp", "ReduceOp", "SelectOp", "SplatOp", "StoreOp", "TransOp",
]  # fmt: skip
