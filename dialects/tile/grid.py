"""How many programs a blocks kernel has: along each axis a product of extents, each divided by a block size.

``#tile.grid<[in0.dim0 / 8, in1.dim1 / 128], [in0.dim2]>`` has ``cdiv(in0.dim0, 8) * cdiv(in1.dim1, 128)`` programs
along axis 0 and ``in0.dim2`` along axis 1; a number stands for itself, as in ``[in0.dim0, 4]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


@dataclass(frozen=True)
class Factor:
    """``cdiv(extent, size)``: ``extent`` is an argument's role (or empty: the number ``size`` itself)."""

    extent: str
    size: int = 1

    def __str__(self) -> str:
        if not self.extent:
            return str(self.size)
        return self.extent if self.size == 1 else f"{self.extent} / {self.size}"


@irdl_attr_definition
class GridAttr(ParametrizedAttribute):
    """The number of programs along each axis."""

    name = "tile.grid"
    axes: ArrayAttr[ArrayAttr[ArrayAttr[Attribute]]] = param_def()

    @staticmethod
    def of(axes: Sequence[Sequence[Factor]]) -> GridAttr:
        """A grid from plain data."""
        pairs = [
            ArrayAttr(
                [ArrayAttr[Attribute]([StringAttr(f.extent), IntegerAttr(f.size, i64)]) for f in a]
            )
            for a in axes
        ]
        return GridAttr(ArrayAttr(pairs))

    def factors(self) -> list[list[Factor]]:
        """The factors of each axis."""
        found: list[list[Factor]] = []
        for axis in self.axes:
            found.append([])
            for pair in axis:
                extent, size = pair.data
                assert isinstance(extent, StringAttr) and isinstance(size, IntegerAttr)
                found[-1].append(Factor(extent.data, size.value.data))
        return found

    def verify(self) -> None:
        if len(self.axes) > 3:
            raise VerifyException("a grid has three axes at most")
        # A plain number is an extent that is known: there is nothing to do for an empty one.
        if any(f.size < (1 if f.extent else 0) for axis in self.factors() for f in axis):
            raise VerifyException("a block has at least one element")

    def print_parameters(self, printer: Printer) -> None:
        axes = ", ".join(f"[{', '.join(map(str, axis))}]" for axis in self.factors())
        printer.print_string(f"<{axes}>")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            axes = parser.parse_comma_separated_list(
                parser.Delimiter.NONE,
                lambda: parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, lambda: _parse_factor(parser)
                ),
            )
        return [GridAttr.of(axes).axes]


def _parse_factor(parser: AttrParser) -> Factor:
    size = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    if size is not None:
        return Factor("", size)
    extent = parser.parse_identifier()
    slash = parser.parse_optional_characters("/")
    return Factor(extent, parser.parse_integer() if slash is not None else 1)
