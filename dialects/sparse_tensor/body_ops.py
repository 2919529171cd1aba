"""Operations inside ``linalg.generic`` that say what happens where operands are stored or not."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr, i1
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from sparsecc.dialects.sparse_tensor import checks


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """The value of a region of a sparse_tensor operation."""

    name = "sparse_tensor.yield"

    traits = traits_def(IsTerminator())


@irdl_op_definition
class UnaryOp(IRDLOperation):
    """One value where the operand is stored, another (or none) where it is not."""

    name = "sparse_tensor.unary"

    x = operand_def()
    output = result_def()
    present_region = region_def()
    absent_region = region_def()

    traits = traits_def(Pure())
    assembly_format = (
        "$x attr-dict `:` type($x) `to` type($output) "
        "`present` `=` $present_region `absent` `=` $absent_region"
    )

    def __init__(
        self, x: SSAValue | Operation, output: Attribute, present: Region, absent: Region
    ) -> None:
        super().__init__(operands=[x], result_types=[output], regions=[present, absent])

    def verify_(self) -> None:
        checks.body(self.present_region, [self.x.type], self.output.type, "present")
        checks.body(self.absent_region, [], self.output.type, "absent")
        self._verify_absent_value()

    def _verify_absent_value(self) -> None:
        """What is not stored can't depend on the elements that the kernel body sees."""
        if not self.absent_region.blocks:
            return
        block = self.absent_region.block
        last = block.last_op
        assert last is not None  # checks.body has seen the yield
        value = last.operands[0]
        if isinstance(value, BlockArgument) and value.owner is self.parent:
            raise VerifyException(
                "the absent region yields an argument of the kernel's body; yield a constant or a "
                "value from outside"
            )
        if isinstance(value, OpResult) and value.op.parent in (block, self.parent):
            if value.op.name != "arith.constant":
                raise VerifyException(
                    "the absent region yields what the kernel's body computes; yield a constant or "
                    "a value from outside"
                )


@irdl_op_definition
class BinaryOp(IRDLOperation):
    """A value for each case: both operands stored, only the left, only the right."""

    name = "sparse_tensor.binary"

    x = operand_def()
    y = operand_def()
    output = result_def()
    left_identity = opt_prop_def(UnitAttr)
    right_identity = opt_prop_def(UnitAttr)
    overlap_region = region_def()
    left_region = region_def()
    right_region = region_def()

    traits = traits_def(Pure())

    def __init__(
        self,
        x: SSAValue | Operation,
        y: SSAValue | Operation,
        output: Attribute,
        overlap: Region,
        left: Region | None = None,
        right: Region | None = None,
    ) -> None:
        """``left`` or ``right`` None is ``identity``: the operand itself."""
        properties: dict[str, Attribute] = {}
        if left is None:
            properties["left_identity"] = UnitAttr()
        if right is None:
            properties["right_identity"] = UnitAttr()
        super().__init__(
            operands=[x, y],
            result_types=[output],
            properties=properties,
            regions=[overlap, left or Region(), right or Region()],
        )

    @classmethod
    def parse(cls, parser: Parser) -> BinaryOp:
        x = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        y = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        attributes = parser.parse_optional_attr_dict()
        x_type = parser.parse_type()
        parser.parse_punctuation(",")
        y_type = parser.parse_type()
        parser.parse_keyword("to")
        output = parser.parse_type()
        regions: list[Region | None] = []
        for name in ("overlap", "left", "right"):
            parser.parse_keyword(name, " with its region in sparse_tensor.binary")
            parser.parse_punctuation("=")
            identity = name != "overlap" and parser.parse_optional_keyword("identity")
            regions.append(None if identity else parser.parse_region())
        op = cls(
            parser.resolve_operand(x, x_type),
            parser.resolve_operand(y, y_type),
            output,
            regions[0] or Region(),
            regions[1],
            regions[2],
        )
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.x, self.y), printer.print_ssa_value)
        printer.print_string(" :")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_list((self.x.type, self.y.type), printer.print_attribute)
        printer.print_string(" to ")
        printer.print_attribute(self.output.type)
        for name, region, identity in (
            ("overlap", self.overlap_region, None),
            ("left", self.left_region, self.left_identity),
            ("right", self.right_region, self.right_identity),
        ):
            printer.print_string(f" {name} = ")
            if identity is not None:
                printer.print_string("identity")
            else:
                printer.print_region(region)

    def verify_(self) -> None:
        x, y, output = self.x.type, self.y.type, self.output.type
        checks.body(self.overlap_region, [x, y], output, "overlap")
        checks.body(self.left_region, [x], output, "left")
        checks.body(self.right_region, [y], output, "right")
        for name, identity, type, region in (
            ("left", self.left_identity, x, self.left_region),
            ("right", self.right_identity, y, self.right_region),
        ):
            if identity is None:
                continue
            if region.blocks:
                raise VerifyException(f"{name} is identity and has a region; give one of the two")
            if type != output:
                raise VerifyException(f"{name} = identity gives {type}, but the result is {output}")


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """A reduction of stored elements by a region, starting from ``identity``."""

    name = "sparse_tensor.reduce"

    x = operand_def()
    y = operand_def()
    identity = operand_def()
    output = result_def()
    region = region_def()

    traits = traits_def(Pure())

    def __init__(
        self,
        x: SSAValue | Operation,
        y: SSAValue | Operation,
        identity: SSAValue | Operation,
        region: Region,
    ) -> None:
        type = SSAValue.get(x).type
        super().__init__(operands=[x, y, identity], result_types=[type], regions=[region])

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        names = [parser.parse_unresolved_operand()]
        for _ in range(2):
            parser.parse_punctuation(",", " in sparse_tensor.reduce %x, %y, %identity")
            names.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        x, y, identity = (parser.resolve_operand(name, type) for name in names)
        op = cls(x, y, identity, parser.parse_region())
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.x.type)
        printer.print_string(" ")
        printer.print_region(self.region)

    def verify_(self) -> None:
        types: Sequence[Attribute] = [*self.operand_types, self.output.type]
        if len(set(types)) > 1:
            raise VerifyException("operands and result must have one type")
        if not self.region.blocks:
            raise VerifyException("the region must say how to combine two values; it is empty")
        checks.body(self.region, types[:2], types[0], "reduce")


@irdl_op_definition
class SelectOp(IRDLOperation):
    """Keeps a stored element only where the region yields true."""

    name = "sparse_tensor.select"

    x = operand_def()
    output = result_def()
    region = region_def()

    traits = traits_def(Pure())

    def __init__(self, x: SSAValue | Operation, region: Region) -> None:
        type = SSAValue.get(x).type
        super().__init__(operands=[x], result_types=[type], regions=[region])

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        name = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        x = parser.resolve_operand(name, parser.parse_type())
        op = cls(x, parser.parse_region())
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.x)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.x.type)
        printer.print_string(" ")
        printer.print_region(self.region)

    def verify_(self) -> None:
        if self.x.type != self.output.type:
            raise VerifyException("operand and result must have one type")
        if not self.region.blocks:
            raise VerifyException("the region must say which values to keep; it is empty")
        checks.body(self.region, [self.x.type], i1, "select")
