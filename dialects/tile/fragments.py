"""Fragments: kernels whose registers hold operands in the order of a sparse matrix instruction.

A weight's values and metadata come packed, so that each lane loads its own registers; the sum and what is done to it
are fragments too. ``Y[t, n] = relu(X[t, k] * W[n, k] + b[n])`` reads::

    func.func @contraction0(%X, %W, %b, %Y) attributes {tile.kernel, tile.form = "fragments", tile.target = "sm_90",
                                                        tile.schedule = #tile.schedule<"ring", {…}>, …} {
      %n = tile.span "rows" %W dim 0 : tensor<?x?xf16, #NM_2_4>
      %t = tile.span "tokens" %X dim 0 : tensor<?x?xf16>
      %sum = tile.accumulate %k along %W dim 1 carry %acc : tensor<?x?xf16, #NM_2_4> -> f32 {
        %values, %metadata = tile.load_packed %W[%n, %k] : tensor<?x?xf16, #NM_2_4>
        %x = tile.load_fragments %X[%t, %k] : tensor<?x?xf16>
        %next = tile.sparse_dot "mma.sp" %values, %metadata, %x, %acc : f16 -> f32
        tile.next %next : f32
      }
      %y = tile.epilogue (%s = %sum : f32, %e = %b[%n] : tensor<?xf16>) -> f16 {
        …
        tile.finish %r : f16
      }
      tile.store_fragments %y into %Y[%t, %n] : tensor<?x?xf16>
      func.return
    }

One program makes a tile of rows and tokens; how large, and how copies and products overlap, says ``tile.schedule``. A
weight ``2:4+CSR`` has a third stream, the entries that did not fit into their groups. They are at the places that the
2:4 part leaves free, so once scattered into a tile they are 2:4 again, and their metadata is the complement::

    %values, %metadata, %entries = tile.load_packed %W[%n, %k] : tensor<?x?xf16, #…>
    %rest = tile.scatter_entries %entries : f16
    %others = tile.complement %metadata : f16
    %p = tile.sparse_dot "mma.sp" %values, %metadata, %x, %acc : f16 -> f32
    %q = tile.sparse_dot "mma.sp" %rest, %others, %x, %p : f16 -> f32
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from sparsecc.dialects.reading import element_type
from sparsecc.dialects.sparse_tensor.types import format_of, ranked_tensor
from sparsecc.dialects.tile.fragment_loops import (
    AccumulateOp,
    EpilogueOp,
    FinishOp,
    NextOp,
    SpanOp,
)
from sparsecc.dialects.tile.fragment_types import (
    ACCUMULATORS,
    FragmentType,
    check_access,
    fragment,
    kernel_attribute,
    letters_of,
    parse_access,
    print_access,
    type_name,
)
from sparsecc.dialects.tile.schedule import ScheduleAttr
from sparsecc.dialects.tile.weights import packed_weight
from sparsecc.targets import TARGETS

INSTRUCTIONS = ("mma.sp", "wgmma.sp")
WARPGROUP_FAMILIES = ("warpgroup",)
"""Families of schedules that need ``wgmma.sp``; all others use ``mma.sp``."""


def instruction_of(family: str) -> str:
    """The instruction that a family of schedules is made for."""
    return "wgmma.sp" if family in WARPGROUP_FAMILIES else "mma.sp"


def set_schedule(kernel: FuncOp, schedule: ScheduleAttr) -> None:
    """Give a kernel another schedule of its space, and its products the instruction that goes with it."""
    kernel.attributes["tile.schedule"] = schedule
    for op in kernel.walk():
        if isinstance(op, SparseDotOp):
            op.instruction = StringAttr(instruction_of(schedule.family.data))


@irdl_op_definition
class LoadPackedOp(IRDLOperation):
    """The registers of a packed weight at a tile: values, metadata, and entries of a residual if it has one."""

    name = "tile.load_packed"
    tensor = operand_def()
    at = var_operand_def()
    fragments = var_result_def(FragmentType)

    def __init__(self, tensor: SSAValue, at: Sequence[SSAValue]) -> None:
        weight, element = packed_weight(tensor.type), element_type(tensor.type)
        roles = ["values", "metadata"]
        if weight is not None and weight.kind != "2:4":
            roles.append("entries")
        results = [fragment(role, element) for role in roles]
        super().__init__(operands=[tensor, at], result_types=[results])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_access(printer, self.tensor, self.at)

    @classmethod
    def parse(cls, parser: Parser) -> LoadPackedOp:
        return LoadPackedOp(*parse_access(parser))

    def verify_(self) -> None:
        weight = packed_weight(self.tensor.type)
        if weight is None:
            raise VerifyException(f"{self.tensor.type} is no weight that can be packed")
        check_access(self.tensor, self.at)
        wanted = {weight.rows: "n", weight.reduction: "k"}
        if weight.batch is not None:
            wanted[weight.batch] = "b"
        found = letters_of(self.at)
        if any(found[dim] != letter for dim, letter in wanted.items()):
            raise VerifyException("a weight is read at rows and reduction, as its format lays them")


@irdl_op_definition
class LoadFragmentsOp(IRDLOperation):
    """The registers of a dense tensor at a tile of tokens and reduction; 0 beyond its ends."""

    name = "tile.load_fragments"
    tensor = operand_def()
    at = var_operand_def()
    result = result_def(FragmentType)

    def __init__(self, tensor: SSAValue, at: Sequence[SSAValue]) -> None:
        result = fragment("tokens", element_type(tensor.type))
        super().__init__(operands=[tensor, at], result_types=[result])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_access(printer, self.tensor, self.at)

    @classmethod
    def parse(cls, parser: Parser) -> LoadFragmentsOp:
        return LoadFragmentsOp(*parse_access(parser))

    def verify_(self) -> None:
        check_dense(self.tensor.type)
        check_access(self.tensor, self.at)
        if not {"t", "k"} <= set(letters_of(self.at)) <= {"b", "t", "k"}:
            raise VerifyException("this operand is read at tokens and reduction")


@irdl_op_definition
class ScatterEntriesOp(IRDLOperation):
    """Entries of a residual put at their places in a tile of zeros: values in the order of the instruction."""

    name = "tile.scatter_entries"
    entries = operand_def(FragmentType)
    result = result_def(FragmentType)

    def __init__(self, entries: SSAValue) -> None:
        super().__init__(operands=[entries], result_types=[_like(entries, "values")])

    def print(self, printer: Printer) -> None:
        _print_plain(printer, self.entries)

    @classmethod
    def parse(cls, parser: Parser) -> ScatterEntriesOp:
        return ScatterEntriesOp(_parse_plain(parser, "entries"))

    def verify_(self) -> None:
        check_role(self.entries, "entries")


@irdl_op_definition
class ComplementOp(IRDLOperation):
    """Metadata of the two places of each group that this metadata does not name."""

    name = "tile.complement"
    metadata = operand_def(FragmentType)
    result = result_def(FragmentType)

    def __init__(self, metadata: SSAValue) -> None:
        super().__init__(operands=[metadata], result_types=[_like(metadata, "metadata")])

    def print(self, printer: Printer) -> None:
        _print_plain(printer, self.metadata)

    @classmethod
    def parse(cls, parser: Parser) -> ComplementOp:
        return ComplementOp(_parse_plain(parser, "metadata"))

    def verify_(self) -> None:
        check_role(self.metadata, "metadata")


@irdl_op_definition
class SparseDotOp(IRDLOperation):
    """``accumulator + weight * tokens`` by a matrix instruction that skips what the metadata does not name.

    Verified against the target of the kernel around it (``tile.target``) and the family of its schedule."""

    name = "tile.sparse_dot"
    values = operand_def(FragmentType)
    metadata = operand_def(FragmentType)
    tokens = operand_def(FragmentType)
    accumulator = operand_def(FragmentType)
    instruction = prop_def(StringAttr)
    result = result_def(FragmentType)

    def __init__(
        self,
        instruction: str,
        values: SSAValue,
        metadata: SSAValue,
        tokens: SSAValue,
        accumulator: SSAValue,
    ) -> None:
        super().__init__(
            operands=[values, metadata, tokens, accumulator],
            properties={"instruction": StringAttr(instruction)},
            result_types=[accumulator.type],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.instruction)
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_string(" : ")
        printer.print_attribute(_element(self.values))
        printer.print_string(" -> ")
        printer.print_attribute(_element(self.accumulator))

    @classmethod
    def parse(cls, parser: Parser) -> SparseDotOp:
        instruction = parser.parse_str_literal(" as the instruction of tile.sparse_dot")
        names = [parser.parse_unresolved_operand()]
        for _ in range(3):
            parser.parse_punctuation(",")
            names.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(":")
        element = parser.parse_type()
        parser.parse_punctuation("->")
        total = parser.parse_type()
        roles = ("values", "metadata", "tokens", "sum")
        types = [fragment(r, total if r == "sum" else element) for r in roles]
        operands = [parser.resolve_operand(n, t) for n, t in zip(names, types, strict=True)]
        return SparseDotOp(instruction, *operands)

    def verify_(self) -> None:
        for value, role in zip(self.operands, ("values", "metadata", "tokens", "sum"), strict=True):
            check_role(value, role)
        elements = {_element(v) for v in (self.values, self.metadata, self.tokens)}
        if len(elements) != 1:
            raise VerifyException("values, metadata and tokens are of one element type")
        (element,) = elements
        dtype, total = type_name(element), type_name(_element(self.accumulator))
        if ACCUMULATORS.get(dtype) != total:
            wanted = ACCUMULATORS.get(dtype)
            raise VerifyException(
                f"products of {dtype} are summed in {wanted}, not in {total}"
                if wanted
                else f"no sparse matrix instruction multiplies {dtype}"
            )
        instruction = self.instruction.data
        if instruction not in INSTRUCTIONS:
            raise VerifyException(f"{instruction!r} is none of {', '.join(INSTRUCTIONS)}")
        self._check_kernel(instruction, dtype)

    def _check_kernel(self, instruction: str, dtype: str) -> None:
        target = kernel_attribute(self, "tile.target")
        if isinstance(target, StringAttr):
            if target.data not in TARGETS:
                raise VerifyException(f"there is no target {target.data!r}")
            shapes = TARGETS[target.data].matrix_shapes(dtype, sparse=True)
            if not any(s.instruction == instruction for s in shapes):
                raise VerifyException(f"{target.data} has no {instruction} for {dtype}")
        schedule = kernel_attribute(self, "tile.schedule")
        if isinstance(schedule, ScheduleAttr):
            wanted = instruction_of(schedule.family.data)
            if instruction != wanted:
                raise VerifyException(f"the schedule {schedule.family} is one of {wanted}")


@irdl_op_definition
class StoreFragmentsOp(IRDLOperation):
    """Write a tile of results to a dense tensor; nothing beyond its ends."""

    name = "tile.store_fragments"
    value = operand_def(FragmentType)
    tensor = operand_def()
    at = var_operand_def()

    def __init__(self, value: SSAValue, tensor: SSAValue, at: Sequence[SSAValue]) -> None:
        super().__init__(operands=[value, tensor, at])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(" into ")
        print_access(printer, self.tensor, self.at)

    @classmethod
    def parse(cls, parser: Parser) -> StoreFragmentsOp:
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("into")
        tensor, at = parse_access(parser)
        type_ = fragment("sum", element_type(tensor.type))
        return StoreFragmentsOp(parser.resolve_operand(value, type_), tensor, at)

    def verify_(self) -> None:
        check_role(self.value, "sum")
        check_dense(self.tensor.type)
        check_access(self.tensor, self.at)
        if not {"t", "n"} <= set(letters_of(self.at)) <= {"b", "t", "n"}:
            raise VerifyException("a result is written at tokens and rows")
        if _element(self.value) != element_type(self.tensor.type):
            raise VerifyException(
                f"a tile of {_element(self.value)} does not go into {self.tensor.type}"
            )


def _element(value: SSAValue) -> Attribute:
    assert isinstance(value.type, FragmentType)
    return value.type.element


def _like(value: SSAValue, role: str) -> FragmentType:
    return fragment(role, _element(value))


def check_role(value: SSAValue, role: str) -> None:
    """Raise VerifyException if a fragment is not of that role."""
    if isinstance(value.type, FragmentType) and value.type.role.data != role:
        raise VerifyException(f"{value.type} is given where {role} are wanted")


def check_dense(type_: Attribute) -> None:
    """Raise VerifyException if a type is no dense tensor."""
    fmt = format_of(type_)
    if ranked_tensor(type_) is None or fmt is None or not (fmt.is_dense and fmt.is_permutation):
        raise VerifyException(f"{type_} is no dense tensor")


def _print_plain(printer: Printer, value: SSAValue) -> None:
    printer.print_string(" ")
    printer.print_operand(value)
    printer.print_string(" : ")
    printer.print_attribute(_element(value))


def _parse_plain(parser: Parser, role: str) -> SSAValue:
    name = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    return parser.resolve_operand(name, fragment(role, parser.parse_type()))


OPS: list[type[Operation]] = [
    SpanOp, LoadPackedOp, LoadFragmentsOp, ScatterEntriesOp, ComplementOp, SparseDotOp,
    AccumulateOp, NextOp, EpilogueOp, FinishOp, StoreFragmentsOp,
]  # fmt: skip
ATTRIBUTES: list[type[Attribute]] = [FragmentType]
