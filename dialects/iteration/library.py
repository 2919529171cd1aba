"""``iteration.library_call``: the host has a library compute a product.

A linear layer by cuBLAS reads::

    %Y = iteration.library_call "cublas"(%X, %W) as ["m", "k"], ["n", "k"] -> ["m", "n"]
        : (tensor<?x?xf16>, tensor<?x?xf16>) -> tensor<?x?xf16>

An index is summed over if the result lacks it. ``onto %C`` names a tensor that the product is added to.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_operand_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from sparsecc.dialects.reading import strings
from sparsecc.dialects.sparse_tensor.types import ranked_tensor

Names = ArrayAttr[ArrayAttr[StringAttr]]


@irdl_op_definition
class LibraryCallOp(IRDLOperation):
    """Compute ``result = [init +] the sum of the product of the inputs`` by a library.

    ``indices`` are the names of each input's dimensions, then of the result's."""

    name = "iteration.library_call"
    inputs = var_operand_def()
    init = opt_operand_def()
    engine = prop_def(StringAttr)
    indices = prop_def(Names)
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        engine: str,
        inputs: Sequence[SSAValue],
        init: SSAValue | None,
        indices: Sequence[Sequence[str]],
        result: Attribute,
    ) -> None:
        super().__init__(
            operands=[inputs, init],
            properties={
                "engine": StringAttr(engine),
                "indices": ArrayAttr([ArrayAttr(list(map(StringAttr, i))) for i in indices]),
            },
            result_types=[result],
        )

    @property
    def names(self) -> list[list[str]]:
        """``indices`` as Python's."""
        return [strings(one) for one in self.indices.data]

    def verify_(self) -> None:
        tensors = [*self.inputs, self.result]
        if len(self.indices) != len(tensors):
            raise VerifyException(
                f"{len(self.inputs)} inputs and a result have {len(self.indices)} lists of indices"
            )
        for value, names in zip(tensors, self.names, strict=True):
            type_ = ranked_tensor(value.type)
            if type_ is None:
                raise VerifyException(f"a library takes and gives tensors, not {value.type}")
            if len(names) != len(type_.shape):
                raise VerifyException(f"{type_} has indices {', '.join(names) or 'of a scalar'}")
        read = {name for names in self.names[:-1] for name in names}
        if lost := [name for name in self.names[-1] if name not in read]:
            raise VerifyException(f"no input has the result's index {lost[0]}")
        if self.init is not None and self.init.type != self.result.type:
            raise VerifyException("what a result starts from has its type")

    # -- text ----------------------------------------------------------------------------------

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.engine)
        printer.print_operands(self.inputs)
        if self.init is not None:
            printer.print_string(" onto ")
            printer.print_operand(self.init)
        printer.print_string(" as ")
        *inputs, out = self.indices.data
        printer.print_list(inputs, printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_attribute(out)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        operands = [*self.inputs, *([] if self.init is None else [self.init])]
        with printer.in_parens():
            printer.print_list([v.type for v in operands], printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> LibraryCallOp:
        engine = parser.parse_str_literal(" as the engine of iteration.library_call")
        start = parser.pos
        names = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        init = parser.parse_unresolved_operand() if parser.parse_optional_keyword("onto") else None
        parser.parse_keyword("as")
        indices = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, lambda: _parse_names(parser)
        )
        parser.parse_punctuation("->")
        indices.append(_parse_names(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_function_type()
        wanted = names if init is None else [*names, init]
        operands = parser.resolve_operands(wanted, types.inputs.data, start)
        if len(types.outputs) != 1:
            parser.raise_error("a call of a library has one result", start, parser.pos)
        count = len(names)
        op = LibraryCallOp(
            engine,
            operands[:count],
            None if init is None else operands[count],
            indices,
            types.outputs.data[0],
        )
        op.attributes |= attributes
        return op


def _parse_names(parser: Parser) -> list[str]:
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
