"""What a fragments kernel runs over: spans of programs, the loop over the reduction, and the epilogue's elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from sparsecc.dialects.reading import element_type
from sparsecc.dialects.sparse_tensor.types import format_of, ranked_tensor
from sparsecc.dialects.tile.fragment_types import (
    FragmentType,
    check_access,
    fragment,
    parse_access,
    print_access,
)

DIM = IntegerAttr.constr(i64)
SPANS = {"batch": "b", "tokens": "t", "rows": "n"}
"""What programs are spread over, and the letter of the index."""


@irdl_op_definition
class SpanOp(IRDLOperation):
    """The tile of a program along the batch, the tokens or the rows: as many as that dimension of a tensor."""

    name = "tile.span"
    tensor = operand_def()
    span = prop_def(StringAttr)
    dim = prop_def(DIM)
    result = result_def(IndexType)
    assembly_format = "$span $tensor `dim` $dim attr-dict `:` type($tensor)"

    def __init__(self, span: str, tensor: SSAValue, dim: int) -> None:
        super().__init__(
            operands=[tensor],
            properties={"span": StringAttr(span), "dim": IntegerAttr(dim, i64)},
            result_types=[IndexType()],
        )

    @property
    def index_letter(self) -> str:
        return SPANS.get(self.span.data, "?")

    def verify_(self) -> None:
        if self.span.data not in SPANS:
            raise VerifyException(f"{self.span.data!r} is none of {', '.join(SPANS)}")
        check_dim(self.tensor, self.dim.value.data)


@irdl_op_definition
class NextOp(IRDLOperation):
    """The end of a step of tile.accumulate: what the sum is now."""

    name = "tile.next"
    value = operand_def(FragmentType)
    traits = traits_def(IsTerminator())

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value])

    def print(self, printer: Printer) -> None:
        assert isinstance(self.value.type, FragmentType)
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type.element)

    @classmethod
    def parse(cls, parser: Parser) -> NextOp:
        name = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        return NextOp(parser.resolve_operand(name, fragment("sum", parser.parse_type())))


@irdl_op_definition
class AccumulateOp(IRDLOperation):
    """A sum over chunks of a dimension, from 0. Block arguments: the chunk, and the sum so far."""

    name = "tile.accumulate"
    tensor = operand_def()
    dim = prop_def(DIM)
    body = region_def("single_block")
    result = result_def(FragmentType)

    @property
    def index_letter(self) -> str:
        return "k"

    def __init__(self, tensor: SSAValue, dim: int, element: Attribute, body: Region) -> None:
        super().__init__(
            operands=[tensor],
            properties={"dim": IntegerAttr(dim, i64)},
            result_types=[fragment("sum", element)],
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        assert isinstance(self.result.type, FragmentType)
        chunk, total = self.body.block.args
        printer.print_string(" ")
        printer.print_ssa_value(chunk)
        printer.print_string(" along ")
        printer.print_operand(self.tensor)
        printer.print_string(f" dim {self.dim.value.data} carry ")
        printer.print_ssa_value(total)
        printer.print_string(" : ")
        printer.print_attribute(self.tensor.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type.element)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> AccumulateOp:
        chunk = parser.parse_argument(expect_type=False)
        parser.parse_keyword("along")
        tensor = parser.parse_unresolved_operand()
        parser.parse_keyword("dim")
        dim = parser.parse_integer()
        parser.parse_keyword("carry")
        total = parser.parse_argument(expect_type=False)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        element = parser.parse_type()
        arguments = [chunk.resolve(IndexType()), total.resolve(fragment("sum", element))]
        body = parser.parse_region(arguments)
        return AccumulateOp(parser.resolve_operand(tensor, type_), dim, element, body)

    def verify_(self) -> None:
        check_dim(self.tensor, self.dim.value.data)
        if [a.type for a in self.body.block.args] != [IndexType(), self.result.type]:
            raise VerifyException("a step has a chunk and the sum so far")
        last = self.body.block.last_op
        if not isinstance(last, NextOp) or last.value.type != self.result.type:
            raise VerifyException("a step ends with tile.next of the sum's type")


@irdl_op_definition
class FinishOp(IRDLOperation):
    """The end of tile.epilogue: the element of the result."""

    name = "tile.finish"
    value = operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value])


@irdl_op_definition
class EpilogueOp(IRDLOperation):
    """What is done to each element of a sum, and to the elements of other tensors at its indices.

    Block arguments: the sum's element, then one element of each tensor. The region holds arith and math on scalars."""

    name = "tile.epilogue"
    sum = operand_def(FragmentType)
    tensors = var_operand_def()
    indices = var_operand_def(IndexType)
    body = region_def("single_block")
    result = result_def(FragmentType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        sum: SSAValue,
        accesses: Sequence[tuple[SSAValue, Sequence[SSAValue]]],
        element: Attribute,
        body: Region,
    ) -> None:
        super().__init__(
            operands=[sum, [t for t, _ in accesses], [i for _, at in accesses for i in at]],
            result_types=[fragment("sum", element)],
            regions=[body],
        )

    def accesses(self) -> Iterator[tuple[SSAValue, list[SSAValue]]]:
        """The tensors that it reads, each with its indices."""
        indices = list(self.indices)
        for tensor in self.tensors:
            type_ = ranked_tensor(tensor.type)
            rank = 0 if type_ is None else type_.get_num_dims()
            yield tensor, indices[:rank]
            indices = indices[rank:]

    def print(self, printer: Printer) -> None:
        assert isinstance(self.result.type, FragmentType)
        total, *elements = self.body.block.args
        assert isinstance(self.sum.type, FragmentType)
        printer.print_string(" (")
        printer.print_ssa_value(total)
        printer.print_string(" = ")
        printer.print_operand(self.sum)
        printer.print_string(" : ")
        printer.print_attribute(self.sum.type.element)
        for element, (tensor, at) in zip(elements, self.accesses(), strict=True):
            printer.print_string(", ")
            printer.print_ssa_value(element)
            printer.print_string(" = ")
            print_access(printer, tensor, at)
        printer.print_string(") -> ")
        printer.print_attribute(self.result.type.element)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> EpilogueOp:
        parser.parse_punctuation("(")
        total = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        name = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        element = parser.parse_type()
        sum = parser.resolve_operand(name, fragment("sum", element))
        arguments = [total.resolve(element)]
        accesses: list[tuple[SSAValue, Sequence[SSAValue]]] = []
        while parser.parse_optional_punctuation(","):
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            accesses.append(parse_access(parser))
            arguments.append(argument.resolve(element_type(accesses[-1][0].type)))
        parser.parse_punctuation(")")
        parser.parse_punctuation("->")
        result = parser.parse_type()
        return EpilogueOp(sum, accesses, result, parser.parse_region(arguments))

    def verify_(self) -> None:
        assert isinstance(self.sum.type, FragmentType) and isinstance(
            self.result.type, FragmentType
        )
        if {self.sum.type.role.data, self.result.type.role.data} != {"sum"}:
            raise VerifyException("an epilogue makes a sum of a sum")
        for tensor, at in self.accesses():
            fmt = format_of(tensor.type)
            if fmt is None or not (fmt.is_dense and fmt.is_permutation):
                raise VerifyException(f"{tensor.type} is no dense tensor")
            check_access(tensor, at)
        wanted = [self.sum.type.element, *(element_type(t.type) for t in self.tensors)]
        if [a.type for a in self.body.block.args] != wanted:
            raise VerifyException("an element of the sum and one of each tensor are wanted")
        last = self.body.block.last_op
        if not isinstance(last, FinishOp) or last.value.type != self.result.type.element:
            raise VerifyException("an epilogue ends with tile.finish of the result's type")
        for op in self.body.block.ops:
            if not op.name.startswith(("arith.", "math.")) and op is not last:
                raise VerifyException(f"{op.name} is no operation on scalars")


def check_dim(tensor: SSAValue, dim: int) -> None:
    """Raise VerifyException if a tensor has no such dimension."""
    type_ = ranked_tensor(tensor.type)
    rank = 0 if type_ is None else type_.get_num_dims()
    if not 0 <= dim < rank:
        raise VerifyException(f"there is no dimension {dim} in {tensor.type}")
