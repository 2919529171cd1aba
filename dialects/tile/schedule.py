"""How a tile kernel is arranged on the machine: a family of kernels and its numbers.

``#tile.schedule<"ring", {tiles = 2, warps = 2, split = 1, steps = 8, ahead = 2}>`` is one point of the legal space of a
kernel; the meaning of the numbers is the family's, told where its space is made (``passes/tiling``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class ScheduleAttr(ParametrizedAttribute):
    """One schedule: a family's name, and a number for each of its parameters."""

    name = "tile.schedule"
    family: StringAttr = param_def()
    settings: DictionaryAttr = param_def()

    @staticmethod
    def of(family: str, parameters: Mapping[str, int]) -> ScheduleAttr:
        """A schedule from plain data."""
        numbers = {key: IntegerAttr(value, i64) for key, value in parameters.items()}
        return ScheduleAttr(StringAttr(family), DictionaryAttr(numbers))

    def numbers(self) -> dict[str, int]:
        """The parameters by name."""
        found: dict[str, int] = {}
        for key, value in self.settings.data.items():
            assert isinstance(value, IntegerAttr)
            found[key] = value.value.data
        return found

    def verify(self) -> None:
        for key, value in self.settings.data.items():
            if not isinstance(value, IntegerAttr):
                raise VerifyException(f"{key} of a schedule is a number")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.family.data)
            printer.print_string(", {")
            numbers = self.numbers().items()
            printer.print_list(numbers, lambda pair: printer.print_string(f"{pair[0]} = {pair[1]}"))
            printer.print_string("}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            family = parser.parse_str_literal()
            parser.parse_punctuation(",")
            pairs = parser.parse_comma_separated_list(
                parser.Delimiter.BRACES, lambda: _parse_pair(parser)
            )
        schedule = ScheduleAttr.of(family, dict(pairs))
        return (schedule.family, schedule.settings)


def _parse_pair(parser: AttrParser) -> tuple[str, int]:
    key = parser.parse_identifier()
    parser.parse_punctuation("=")
    return key, parser.parse_integer()
