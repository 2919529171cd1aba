"""``iteration.iterate``: co-iteration along one index, a region for each loop of the merge lattice.

The union of two rows reads::

    iteration.iterate "j" over (%A at %a1 level 1 : T, %B at %b1 level 1 : T)
    case %j with {0: %a2, 1: %b2} visits {0, 1} | {0} | {1} {
      …
    } case %j with {0: %a2} {
      …
    } case %j with {1: %b2} {
      …
    }

Iterators are numbered as they stand behind ``over``. ``visits`` is left out where all active
iterators have to be there. ``extent %n`` comes before ``over``; ``carry (%zero : f64)``,
``vector [32, 8]`` and ``assemble 0`` behind it; ``case %j carry (%sum)`` names what is carried.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from sparsecc.dialects.iteration.types import CursorType, cursor, index, ints, numbers

Points = ArrayAttr[ArrayAttr[DenseArrayBase]]


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The end of a visit: the next loop-carried values."""

    name = "iteration.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, values: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[values])


@irdl_op_definition
class IterateOp(IRDLOperation):
    """Visit the coordinates of one index, by co-iterating levels of operands.

    ``tensors[k]`` is walked at ``levels[k]`` below ``parents[k]``: iterator k. Region r is the loop
    in which the iterators ``loops[r]`` are all active; a coordinate is visited there if those
    present include one of ``points[r]``. With an ``extent`` every coordinate of ``[0, extent)`` is
    visited and the only region walks whatever iterators there are alongside. Block arguments:
    coordinate, a cursor for each iterator of ``loops[r]``, then the loop-carried values. ``vector``
    lists block widths for an index along which every value is contiguous. ``assemble`` names the
    output level that takes this index's coordinates.
    """

    name = "iteration.iterate"
    extent = opt_operand_def(IndexType)
    tensors = var_operand_def()
    parents = var_operand_def(CursorType)
    inits = var_operand_def()
    index = prop_def(StringAttr)
    levels = prop_def(DenseArrayBase)
    loops = prop_def(ArrayAttr[DenseArrayBase])
    points = prop_def(Points)
    vector = opt_prop_def(DenseArrayBase)
    assemble = opt_prop_def(IntegerAttr)
    results_ = var_result_def()
    bodies = var_region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        name: str,
        extent: SSAValue | None,
        tensors: Sequence[SSAValue],
        parents: Sequence[SSAValue],
        levels: Sequence[int],
        loops: Sequence[Sequence[int]],
        points: Sequence[Sequence[Sequence[int]]],
        inits: Sequence[SSAValue],
        bodies: Sequence[Region],
        vector: Sequence[int] = (),
        assemble: int | None = None,
    ) -> None:
        super().__init__(
            operands=[extent, tensors, parents, inits],
            properties={
                "index": StringAttr(name),
                "levels": ints(levels),
                "loops": ArrayAttr([ints(loop) for loop in loops]),
                "points": ArrayAttr([ArrayAttr([ints(p) for p in loop]) for loop in points]),
                "vector": ints(vector) if vector else None,
                "assemble": None if assemble is None else IntegerAttr(assemble, i64),
            },
            result_types=[[v.type for v in inits]],
            regions=[bodies],
        )

    def loop_iterators(self, region: int) -> tuple[int, ...]:
        """The iterators that are active in a region."""
        return numbers(self.loops.data[region])

    def loop_points(self, region: int) -> tuple[frozenset[int], ...]:
        """The sets of iterators, one of which has to be there for a visit."""
        return tuple(frozenset(numbers(p)) for p in self.points.data[region])

    def verify_(self) -> None:
        if len(self.tensors) != len(self.parents) or len(self.levels) != len(self.tensors):
            raise VerifyException("an iterator is a tensor, a parent cursor and a level")
        if len(self.bodies) != len(self.loops) or len(self.bodies) != len(self.points):
            raise VerifyException("each region needs its loop and its points")
        if self.extent is not None and len(self.bodies) != 1:
            raise VerifyException("an iteration over a whole extent has one region")
        known = range(len(self.tensors))
        for r, body in enumerate(self.bodies):
            named = set(self.loop_iterators(r)).union(*self.loop_points(r))
            if missing := named - set(known):
                raise VerifyException(f"region {r} names iterator {min(missing)} of {len(known)}")
            wanted = [index, *[cursor] * len(self.loop_iterators(r)), *(v.type for v in self.inits)]
            if [a.type for a in body.block.args] != wanted:
                raise VerifyException(f"region {r} has the wrong block arguments")

    # -- text ----------------------------------------------------------------------------------

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.index)
        if self.extent is not None:
            printer.print_string(" extent ")
            printer.print_operand(self.extent)
        if self.tensors:
            printer.print_string(" over (")
            iterators = zip(self.tensors, self.parents, numbers(self.levels), strict=True)
            printer.print_list(iterators, lambda it: _print_iterator(printer, *it))
            printer.print_string(")")
        if self.inits:
            printer.print_string(" carry (")
            printer.print_list(self.inits, lambda v: _print_typed(printer, v))
            printer.print_string(")")
        if self.vector is not None:
            printer.print_string(f" vector [{', '.join(map(str, numbers(self.vector)))}]")
        if self.assemble is not None:
            printer.print_string(f" assemble {self.assemble.value.data}")
        printer.print_op_attributes(self.attributes, print_keyword=True)
        for number in range(len(self.bodies)):
            if number == 0 and len(self.bodies) > 1:
                # xDSL has no public way to begin a line.
                printer._print_new_line()  # pyright: ignore[reportPrivateUsage]
            else:
                printer.print_string(" ")
            self._print_case(printer, number)

    def _print_case(self, printer: Printer, number: int) -> None:
        active, points = self.loop_iterators(number), self.loop_points(number)
        body = self.bodies[number]
        coordinate, *rest = body.block.args
        printer.print_string("case ")
        printer.print_ssa_value(coordinate)
        if active:
            printer.print_string(" with {")
            cursors = zip(active, rest, strict=False)
            printer.print_list(cursors, lambda pair: _print_cursor(printer, *pair))
            printer.print_string("}")
        if self.inits:
            printer.print_string(" carry (")
            printer.print_list(rest[len(active) :], printer.print_ssa_value)
            printer.print_string(")")
        if points != (frozenset(active),):
            printer.print_string(f" visits {' | '.join(_spell(p) for p in points)}")
        printer.print_string(" ")
        printer.print_region(
            body,
            print_entry_block_args=False,
            print_empty_block=False,
            print_block_terminators=not _ends_plainly(body),
        )

    @classmethod
    def parse(cls, parser: Parser) -> IterateOp:
        name = parser.parse_str_literal(" as the index of iteration.iterate")
        extent: SSAValue | None = None
        if parser.parse_optional_keyword("extent"):
            extent = parser.resolve_operand(parser.parse_unresolved_operand(), index)
        iterators: list[tuple[SSAValue, SSAValue, int]] = []
        if parser.parse_optional_keyword("over"):
            iterators = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, lambda: _parse_iterator(parser)
            )
        inits: list[SSAValue] = []
        if parser.parse_optional_keyword("carry"):
            inits = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, lambda: _parse_typed(parser)
            )
        vector: list[int] = []
        if parser.parse_optional_keyword("vector"):
            vector = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_integer
            )
        assemble = parser.parse_integer() if parser.parse_optional_keyword("assemble") else None
        attributes = parser.parse_optional_attr_dict_with_keyword()
        loops: list[Sequence[int]] = []
        points: list[Sequence[Sequence[int]]] = []
        bodies: list[Region] = []
        types = [v.type for v in inits]
        while parser.parse_optional_keyword("case"):
            active, visited, body = _parse_case(parser, types)
            loops.append(active)
            points.append(visited)
            bodies.append(body)
        tensors, parents = [it[0] for it in iterators], [it[1] for it in iterators]
        levels = [it[2] for it in iterators]
        op = IterateOp(
            name, extent, tensors, parents, levels, loops, points, inits, bodies, vector, assemble
        )
        if attributes is not None:
            op.attributes |= attributes.data
        return op


def _spell(numbers: frozenset[int]) -> str:
    return "{" + ", ".join(map(str, sorted(numbers))) + "}"


def _ends_plainly(body: Region) -> bool:
    """Whether a region's terminator says nothing, so that the text leaves it out."""
    last = body.block.last_op
    return isinstance(last, YieldOp) and not last.values and not last.attributes


def _print_typed(printer: Printer, value: SSAValue) -> None:
    printer.print_operand(value)
    printer.print_string(" : ")
    printer.print_attribute(value.type)


def _print_iterator(printer: Printer, tensor: SSAValue, parent: SSAValue, level: int) -> None:
    printer.print_operand(tensor)
    printer.print_string(" at ")
    printer.print_operand(parent)
    printer.print_string(f" level {level} : ")
    printer.print_attribute(tensor.type)


def _print_cursor(printer: Printer, iterator: int, at: SSAValue) -> None:
    printer.print_string(f"{iterator}: ")
    printer.print_ssa_value(at)


def _parse_typed(parser: Parser) -> SSAValue:
    value = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    return parser.resolve_operand(value, parser.parse_type())


def _parse_iterator(parser: Parser) -> tuple[SSAValue, SSAValue, int]:
    tensor = parser.parse_unresolved_operand()
    parser.parse_keyword("at")
    parent = parser.resolve_operand(parser.parse_unresolved_operand(), cursor)
    parser.parse_keyword("level")
    level = parser.parse_integer()
    parser.parse_punctuation(":")
    return parser.resolve_operand(tensor, parser.parse_type()), parent, level


def _parse_cursor(parser: Parser) -> tuple[int, Parser.Argument]:
    number = parser.parse_integer()
    parser.parse_punctuation(":")
    return number, parser.parse_argument(expect_type=False).resolve(cursor)


def _parse_set(parser: Parser) -> list[int]:
    return parser.parse_comma_separated_list(parser.Delimiter.BRACES, parser.parse_integer)


def _parse_case(
    parser: Parser, types: Sequence[Attribute]
) -> tuple[list[int], list[list[int]], Region]:
    start = parser.pos
    arguments = [parser.parse_argument(expect_type=False).resolve(index)]
    active: list[int] = []
    if parser.parse_optional_keyword("with"):
        for number, argument in parser.parse_comma_separated_list(
            parser.Delimiter.BRACES, lambda: _parse_cursor(parser)
        ):
            active.append(number)
            arguments.append(argument)
    carried: list[Parser.UnresolvedArgument] = []
    if parser.parse_optional_keyword("carry"):
        carried = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
        )
    if len(carried) != len(types):
        message = f"{len(types)} values are carried, {len(carried)} are named here"
        parser.raise_error(message, start, parser.pos)
    arguments += [a.resolve(t) for a, t in zip(carried, types, strict=True)]
    points = [active]
    if parser.parse_optional_keyword("visits"):
        points = [_parse_set(parser)]
        while parser.parse_optional_punctuation("|"):
            points.append(_parse_set(parser))
    return active, points, with_yield(parser.parse_region(arguments))


def with_yield(body: Region) -> Region:
    """A parsed region with the terminator that its text may leave out."""
    if not isinstance(body.block.last_op, YieldOp):
        body.block.add_op(YieldOp())
    return body
