"""A sum of formats: the tensor is the sum of parts, each stored in a format of its own.

``2:4+CSR`` keeps the two largest of each four in a 2:4 part, and what is left over in a CSR part: the format of
weights that are sparse without a structure, on hardware that wants one. Packing fills the parts in order, each with
what it can hold; a tensor made by hand may store an entry in several parts, whose values are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sparsecc.formats.format import Format


@dataclass(frozen=True)
class SumFormat(Format):
    """``parts`` in the order in which they are filled; there are no levels. Widths are those of the parts: here
    stand the widest."""

    parts: tuple[Format, ...] = ()

    def __post_init__(self) -> None:
        for role in ("pos_width", "crd_width"):
            widest = max((getattr(part, role) for part in self.parts), default=0)
            object.__setattr__(self, role, widest)
        super().__post_init__()

    def _problem(self) -> str:
        if len(self.parts) < 2:
            return "a sum has at least two parts"
        if any(part.rank != self.rank for part in self.parts):
            ranks = ", ".join(str(part.rank) for part in self.parts)
            return f"the parts of a sum have one rank, not {ranks}"
        if any(isinstance(part, SumFormat) for part in self.parts):
            return "a part of a sum is no sum; list all parts"
        if any(part.is_dense for part in self.parts):
            return "a dense part of a sum would hold everything; use the dense format"
        return ""

    @cached_property
    def is_dense(self) -> bool:
        return False

    @cached_property
    def is_row_major(self) -> bool:
        return False

    @property
    def is_permutation(self) -> bool:
        return False

    @property
    def padded(self) -> bool:
        return any(part.padded for part in self.parts)

    def level_sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        return ()

    def with_widths(self, pos_width: int, crd_width: int) -> SumFormat:
        """The sum with these widths in each part, for the roles that it stores."""
        return sum_format([_with_widths(part, pos_width, crd_width) for part in self.parts])

    def with_default_widths(self, width: int) -> SumFormat:
        return sum_format([part.with_default_widths(width) for part in self.parts])

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts))


def _with_widths(part: Format, pos_width: int, crd_width: int) -> Format:
    roles = {role for level in part.levels for role in level.arrays}
    return part.with_widths(
        pos_width if "positions" in roles else 0, crd_width if "coordinates" in roles else 0
    )


def sum_format(parts: Sequence[Format]) -> SumFormat:
    """The sum of formats of one rank. Raises BadFormat."""
    rank = parts[0].rank if parts else 0
    return SumFormat(rank, (), (), parts=tuple(parts))
