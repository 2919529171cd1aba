"""The iteration dialect: how a kernel walks its operands, before loops over memory exist.

An operand is a tree of levels; a *cursor* is a node of that tree (or the absence of one). A kernel
is a ``func.func`` with the attribute ``iteration.kernel``. SpMV over a CSR matrix reads::

    func.func @k0(%A : tensor<?x?xf64, #CSR>, %x : tensor<?xf64>, %y : tensor<?xf64>)
        attributes {iteration.kernel, iteration.assembly = "dense"} {
      %a0 = iteration.root %A : tensor<?x?xf64, #CSR>
      iteration.iterate "i" extent %ni case %i {
        %a1 = iteration.locate %A, %a0, %i level 0 : tensor<?x?xf64, #CSR>
        %s = iteration.iterate "j" over (%A at %a1 level 1 : tensor<?x?xf64, #CSR>)
            carry (%zero : f64) case %j with {0: %a2} carry (%sum) {
          %v = iteration.value %A, %a2 : tensor<?x?xf64, #CSR> -> f64
          …
          iteration.yield %sum2 : f64
        }
        iteration.insert %s into %y at (%i) : f64, tensor<?xf64>
      }
      func.return
    }

``iteration.iterate`` and its terminator are in :mod:`sparsecc.dialects.iteration.iterate`, calls of libraries in
:mod:`sparsecc.dialects.iteration.library`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, UnitAttr, i1, i64
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_region_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from sparsecc.dialects.iteration.iterate import IterateOp, YieldOp, with_yield
from sparsecc.dialects.iteration.library import LibraryCallOp
from sparsecc.dialects.iteration.types import CursorType, cursor, index, ints

LEVEL = IntegerAttr.constr(i64)


@irdl_op_definition
class RootOp(IRDLOperation):
    """The root of an operand's tree: one position, 0."""

    name = "iteration.root"
    tensor = operand_def()
    result = result_def(CursorType)
    assembly_format = "$tensor attr-dict `:` type($tensor)"

    def __init__(self, tensor: SSAValue) -> None:
        super().__init__(operands=[tensor], result_types=[cursor])


@irdl_op_definition
class LocateOp(IRDLOperation):
    """The child of a cursor with that coordinate; absent if there is none."""

    name = "iteration.locate"
    tensor = operand_def()
    above = operand_def(CursorType)
    coordinate = operand_def(IndexType)
    level = prop_def(LEVEL)
    result = result_def(CursorType)
    assembly_format = (
        "$tensor `,` $above `,` $coordinate `level` $level attr-dict `:` type($tensor)"
    )

    def __init__(self, tensor: SSAValue, above: SSAValue, coordinate: SSAValue, level: int) -> None:
        super().__init__(
            operands=[tensor, above, coordinate],
            properties={"level": IntegerAttr(level, i64)},
            result_types=[cursor],
        )


@irdl_op_definition
class ValueOp(IRDLOperation):
    """The value at a leaf cursor; the fill value (0) where the cursor is absent."""

    name = "iteration.value"
    tensor = operand_def()
    at = operand_def(CursorType)
    result = result_def()
    assembly_format = "$tensor `,` $at attr-dict `:` type($tensor) `->` type($result)"

    def __init__(self, tensor: SSAValue, at: SSAValue, element: Attribute) -> None:
        super().__init__(operands=[tensor, at], result_types=[element])


@irdl_op_definition
class PresentOp(IRDLOperation):
    """Whether a cursor is there."""

    name = "iteration.present"
    at = operand_def(CursorType)
    result = result_def(i1)
    assembly_format = "$at attr-dict"

    def __init__(self, at: SSAValue) -> None:
        super().__init__(operands=[at], result_types=[i1])


@irdl_op_definition
class NonemptyOp(IRDLOperation):
    """Whether a cursor has a child at a level."""

    name = "iteration.nonempty"
    tensor = operand_def()
    at = operand_def(CursorType)
    level = prop_def(LEVEL)
    result = result_def(i1)
    assembly_format = "$tensor `,` $at `level` $level attr-dict `:` type($tensor)"

    def __init__(self, tensor: SSAValue, at: SSAValue, level: int) -> None:
        super().__init__(
            operands=[tensor, at], properties={"level": IntegerAttr(level, i64)}, result_types=[i1]
        )


@irdl_op_definition
class WorkspaceOp(IRDLOperation):
    """A dense workspace over the innermost output index, with a marker and a list of touched ones.

    Inserts of the region land in it; after the region its entries are appended in order."""

    name = "iteration.workspace"
    out = operand_def()
    level = prop_def(LEVEL)
    index = prop_def(StringAttr)
    body = var_region_def("single_block")

    def __init__(self, out: SSAValue, level: int, name: str, body: Region) -> None:
        super().__init__(
            operands=[out],
            properties={"level": IntegerAttr(level, i64), "index": StringAttr(name)},
            regions=[[body]],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.index)
        printer.print_string(" in ")
        printer.print_operand(self.out)
        printer.print_string(f" level {self.level.value.data} : ")
        printer.print_attribute(self.out.type)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body[0], print_empty_block=False, print_block_terminators=False)

    @classmethod
    def parse(cls, parser: Parser) -> WorkspaceOp:
        name = parser.parse_str_literal(" as the index of iteration.workspace")
        parser.parse_keyword("in")
        out = parser.parse_unresolved_operand()
        parser.parse_keyword("level")
        level = parser.parse_integer()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = with_yield(parser.parse_region([]))
        op = WorkspaceOp(parser.resolve_operand(out, type_), level, name, body)
        if attributes is not None:
            op.attributes |= attributes.data
        return op


@irdl_op_definition
class InsertOp(IRDLOperation):
    """Put a value at output coordinates (in level order), or at the position of a leaf cursor.

    ``accumulate`` adds to what stands there. With ``present`` it happens only if that holds."""

    name = "iteration.insert"
    value = operand_def()
    out = operand_def()
    coordinates = var_operand_def(IndexType)
    at = opt_operand_def(CursorType)
    present = opt_operand_def(i1)
    accumulate = opt_prop_def(UnitAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        value: SSAValue,
        out: SSAValue,
        coordinates: Sequence[SSAValue],
        at: SSAValue | None = None,
        present: SSAValue | None = None,
        accumulate: bool = False,
    ) -> None:
        super().__init__(
            operands=[value, out, coordinates, at, present],
            properties={"accumulate": UnitAttr() if accumulate else None},
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(" into ")
        printer.print_operand(self.out)
        printer.print_string(" at ")
        if self.at is None:
            printer.print_operands(self.coordinates)
        else:
            printer.print_operand(self.at)
        if self.present is not None:
            printer.print_string(" if ")
            printer.print_operand(self.present)
        if self.accumulate is not None:
            printer.print_string(" accumulate")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list((self.value.type, self.out.type), printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> InsertOp:
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("into")
        out = parser.parse_unresolved_operand()
        parser.parse_keyword("at")
        listed = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        at: SSAValue | None = None
        if listed is None:
            at = parser.resolve_operand(parser.parse_unresolved_operand(), cursor)
        coordinates = [parser.resolve_operand(c, index) for c in listed or ()]
        present: SSAValue | None = None
        if parser.parse_optional_keyword("if"):
            present = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
        accumulate = parser.parse_optional_keyword("accumulate") is not None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value_type = parser.parse_type()
        parser.parse_punctuation(",")
        out_type = parser.parse_type()
        op = InsertOp(
            parser.resolve_operand(value, value_type),
            parser.resolve_operand(out, out_type),
            coordinates, at, present, accumulate,
        )  # fmt: skip
        op.attributes |= attributes
        return op

    def verify_(self) -> None:
        if self.at is not None and self.coordinates:
            raise VerifyException("a value goes to coordinates or to a cursor, not to both")


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Run a kernel on tensors: the host's call. ``init`` is what a dense result starts from."""

    name = "iteration.launch"
    inputs = var_operand_def()
    init = opt_operand_def()
    kernel = prop_def(StringAttr)
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self, kernel: str, inputs: Sequence[SSAValue], init: SSAValue | None, result: Attribute
    ) -> None:
        super().__init__(
            operands=[inputs, init],
            properties={"kernel": StringAttr(kernel)},
            result_types=[result],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.kernel)
        printer.print_operands(self.inputs)
        if self.init is not None:
            printer.print_string(" onto ")
            printer.print_operand(self.init)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        operands = [*self.inputs, *([] if self.init is None else [self.init])]
        with printer.in_parens():
            printer.print_list([v.type for v in operands], printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        kernel = parser.parse_symbol_name()
        start = parser.pos
        names = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        init = parser.parse_unresolved_operand() if parser.parse_optional_keyword("onto") else None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_function_type()
        wanted = names if init is None else [*names, init]
        operands = parser.resolve_operands(wanted, types.inputs.data, start)
        if len(types.outputs) != 1:
            parser.raise_error("a launch has one result", start, parser.pos)
        count = len(names)
        op = LaunchOp(
            kernel.data,
            operands[:count],
            None if init is None else operands[count],
            types.outputs.data[0],
        )
        op.attributes |= attributes
        return op


_OPS: list[type[Operation]] = [
    RootOp, LocateOp, ValueOp, PresentOp, NonemptyOp,
    IterateOp, YieldOp, WorkspaceOp, InsertOp, LaunchOp, LibraryCallOp,
]  # fmt: skip

Iteration = Dialect("iteration", _OPS, [CursorType])

__all__ = [
    "CursorType", "InsertOp", "IterateOp", "Iteration", "LaunchOp", "LibraryCallOp", "LocateOp",
    "NonemptyOp", "PresentOp", "RootOp", "ValueOp", "WorkspaceOp", "YieldOp", "cursor", "index", "ints",
]  # fmt: skip
