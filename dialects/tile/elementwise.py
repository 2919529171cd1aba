"""Operations element by element that ``arith`` has for scalars only: comparison, selection, casts of integers.

``tile.compare slt, %a, %b : vector<8x1xi32>``, ``tile.select %m, %a, %b : vector<8x1xf32>`` and
``tile.cast extui %a : vector<8x1xi8> -> vector<8x1xi32>`` mean what ``arith.cmpi``, ``arith.cmpf``,
``arith.select`` and the casts of those names mean, on blocks and scalars alike.
"""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat, IntegerType, StringAttr, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sparsecc.dialects.reading import block_shape, block_type, element_type

INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
CASTS: dict[str, tuple[type[Attribute] | None, type[Attribute] | None]] = {
    # None: a float
    "extui": (IntegerType, IntegerType),
    "extsi": (IntegerType, IntegerType),
    "trunci": (IntegerType, IntegerType),
    "sitofp": (IntegerType, None),
    "uitofp": (IntegerType, None),
    "fptosi": (None, IntegerType),
    "fptoui": (None, IntegerType),
}


@irdl_op_definition
class CompareOp(IRDLOperation):
    """Truth values of ``a predicate b``; the predicates are those of ``arith.cmpi`` and ``arith.cmpf``."""

    name = "tile.compare"
    predicate = prop_def(StringAttr)
    a = operand_def()
    b = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, predicate: str, a: SSAValue, b: SSAValue) -> None:
        super().__init__(
            operands=[a, b],
            properties={"predicate": StringAttr(predicate)},
            result_types=[block_type(block_shape(a.type), i1)],
        )

    def verify_(self) -> None:
        if self.a.type != self.b.type:
            raise VerifyException(f"compares {self.a.type} with {self.b.type}")
        if self.result.type != block_type(block_shape(self.a.type), i1):
            raise VerifyException("a comparison gives a truth value for each element")
        known = (
            FLOAT_PREDICATES
            if isinstance(element_type(self.a.type), AnyFloat)
            else INTEGER_PREDICATES
        )
        if self.predicate.data not in known:
            raise VerifyException(f"there is no predicate {self.predicate.data} of {self.a.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.predicate.data}, ")
        printer.print_operand(self.a)
        printer.print_string(", ")
        printer.print_operand(self.b)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.a.type)

    @classmethod
    def parse(cls, parser: Parser) -> CompareOp:
        predicate = parser.parse_identifier()
        parser.parse_punctuation(",")
        a = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        b = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        op = CompareOp(
            predicate, parser.resolve_operand(a, type_), parser.resolve_operand(b, type_)
        )
        op.attributes |= attributes
        return op


@irdl_op_definition
class SelectOp(IRDLOperation):
    """``a`` where the condition holds, else ``b``."""

    name = "tile.select"
    condition = operand_def()
    a = operand_def()
    b = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> None:
        super().__init__(operands=[condition, a, b], result_types=[a.type])

    def verify_(self) -> None:
        if self.a.type != self.b.type or self.result.type != self.a.type:
            raise VerifyException(f"selects from {self.a.type} and {self.b.type}")
        if self.condition.type != block_type(block_shape(self.a.type), i1):
            raise VerifyException("a selection has a truth value for each element")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        condition = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        a = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        b = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        truth = block_type(block_shape(type_), i1)
        op = SelectOp(
            parser.resolve_operand(condition, truth),
            parser.resolve_operand(a, type_),
            parser.resolve_operand(b, type_),
        )
        op.attributes |= attributes
        return op


@irdl_op_definition
class CastOp(IRDLOperation):
    """Elements of another type; the kind says how, by the name of arith's cast."""

    name = "tile.cast"
    kind = prop_def(StringAttr)
    value = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, kind: str, value: SSAValue, element: Attribute) -> None:
        super().__init__(
            operands=[value],
            properties={"kind": StringAttr(kind)},
            result_types=[block_type(block_shape(value.type), element)],
        )

    def verify_(self) -> None:
        if self.kind.data not in CASTS:
            raise VerifyException(f"casts are {', '.join(CASTS)}, not {self.kind.data}")
        if block_shape(self.value.type) != block_shape(self.result.type):
            raise VerifyException("a cast keeps the shape")
        for wanted, type_ in zip(
            CASTS[self.kind.data], (self.value.type, self.result.type), strict=True
        ):
            element = element_type(type_)
            if not isinstance(element, wanted or AnyFloat):
                raise VerifyException(f"{self.kind.data} has no part of type {element}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data} ")
        printer.print_operand(self.value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> CastOp:
        kind = parser.parse_identifier()
        value = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(value, parser.parse_type())
        parser.parse_punctuation("->")
        return CastOp.create(
            operands=[operand],
            result_types=[parser.parse_type()],
            properties={"kind": StringAttr(kind)},
            attributes=attributes,
        )


OPS: list[type[Operation]] = [CompareOp, SelectOp, CastOp]
