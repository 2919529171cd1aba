"""The type of fragments, and how tensors are read and written at the indices of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    IndexType,
    IntegerType,
    Signedness,
    StringAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import (
    Attribute,
    BlockArgument,
    Operation,
    ParametrizedAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from sparsecc.dialects.sparse_tensor.types import ranked_tensor

ROLES = ("values", "metadata", "entries", "tokens", "sum")
ACCUMULATORS = {"f16": "f32", "bf16": "f32", "i8": "i32"}
"""What products of an element type are summed in."""


@irdl_attr_definition
class FragmentType(ParametrizedAttribute, TypeAttribute):
    """A tile in registers, in the order of a matrix instruction.

    ``values`` are those that a 2:4 weight keeps, ``metadata`` says where they belong, ``entries`` are a residual's with
    their places, ``tokens`` is the dense operand, and ``sum`` is a result in the making."""

    name = "tile.fragment"
    role: StringAttr = param_def()
    element: Attribute = param_def()

    def verify(self) -> None:
        if self.role.data not in ROLES:
            raise VerifyException(f"{self.role.data!r} is none of {', '.join(ROLES)}")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.role.data}, ")
            printer.print_attribute(self.element)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            role = parser.parse_identifier()
            parser.parse_punctuation(",")
            return (StringAttr(role), parser.parse_type())


def fragment(role: str, element: Attribute) -> FragmentType:
    """The type of fragments of a role."""
    return FragmentType(StringAttr(role), element)


def type_name(element: Attribute) -> str:
    """``f16``, ``bf16``, ``f32``, ``i8`` …: an element type as formats and targets spell it."""
    match element:
        case BFloat16Type():
            return "bf16"
        case Float16Type():
            return "f16"
        case Float32Type():
            return "f32"
        case IntegerType():
            unsigned = element.signedness.data == Signedness.UNSIGNED
            return f"{'u' if unsigned else 'i'}{element.width.data}"
        case _:
            return str(element)


def kernel_attribute(op: Operation, name: str) -> Attribute | None:
    """An attribute of the kernel around an operation."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    return None if parent is None else parent.attributes.get(name)


# -- accesses --------------------------------------------------------------------------------------


def letters_of(at: Sequence[SSAValue]) -> str:
    """The kinds of indices: ``b t n`` (batch, tokens, rows) and ``k`` (the reduction); ``?`` for others."""
    return "".join(letter_of(index) for index in at)


def letter_of(index: SSAValue) -> str:
    """``b``, ``t`` or ``n`` of a tile.span, ``k`` of a tile.accumulate."""
    owner: object = index.block.parent_op() if isinstance(index, BlockArgument) else index.owner
    letter = getattr(owner, "index_letter", None)
    return letter if isinstance(letter, str) else "?"


def check_access(tensor: SSAValue, at: Sequence[SSAValue]) -> None:
    """Raise VerifyException unless there is one index of the kernel for each dimension."""
    type_ = ranked_tensor(tensor.type)
    rank = 0 if type_ is None else type_.get_num_dims()
    letters = letters_of(at)
    if len(at) != rank:
        raise VerifyException(f"{len(at)} indices for a tensor of rank {rank}")
    if "?" in letters:
        raise VerifyException("an index comes from tile.span or is that of tile.accumulate")
    if len(set(letters)) != len(letters):
        raise VerifyException("an index is repeated")


def print_access(printer: Printer, tensor: SSAValue, at: Sequence[SSAValue]) -> None:
    """``%W[%n, %k] : tensor<…>``."""
    printer.print_operand(tensor)
    with printer.in_square_brackets():
        printer.print_list(at, printer.print_operand)
    printer.print_string(" : ")
    printer.print_attribute(tensor.type)


def parse_access(parser: Parser) -> tuple[SSAValue, list[SSAValue]]:
    """What :func:`print_access` prints."""
    name = parser.parse_unresolved_operand()
    indices = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation(":")
    tensor = parser.resolve_operand(name, parser.parse_type())
    return tensor, [parser.resolve_operand(i, IndexType()) for i in indices]
