"""A level format: one file each, with named abilities.

A tensor of L levels is a tree of L storeys. Every node of storey ``l`` has a *position* ``0..count-1``; a level
says which children (coordinates) a parent position has and at which positions they stand. A level format gives

* storage: ``pack`` and ``unpack`` between coordinates and arrays (vectorised NumPy),
* code: ``bounds`` and ``coordinate`` to iterate, ``locate`` to look up (calls on a LoopBuilder).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sparsecc.formats.builder import LevelCode, LoopBuilder, Value

Ints = npt.NDArray[np.int64]
AnyInts = npt.NDArray[np.integer[Any]]


Span = tuple[int, int]
"""Positions ``[lo, hi)``."""


class Ability(Enum):
    """What a level can do for a compiler; code asks for abilities, never for a class."""

    FULL = "every coordinate of [0, size) is present, at position parent * size + coordinate"
    ITERATE = "bounds() and coordinate() walk the children of a parent in storage order"
    LOCATE = "locate() finds a child by coordinate, in constant or logarithmic time"
    APPEND = "a kernel may assemble it by appending children in order (compressed)"


@dataclass(frozen=True)
class LevelArrays:
    """The arrays of one level; a level format owns the meaning of those it names in ``arrays``."""

    positions: AnyInts | None = None
    coordinates: AnyInts | None = None

    def __iter__(self):
        if self.positions is not None:
            yield "positions", self.positions
        if self.coordinates is not None:
            yield "coordinates", self.coordinates


@dataclass(frozen=True)
class Packed:
    """``pack``'s answer: the arrays, each entry's position in this level, and the number of positions."""

    arrays: LevelArrays
    positions: Ints
    count: int


@dataclass(frozen=True)
class Unpacked:
    """``unpack``'s answer for every position of the level: parent position, coordinate, and whether it is
    real (None: all are; padding slots without a coordinate are not)."""

    parents: Ints
    coordinates: Ints
    valid: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Level(ABC):
    """A level format with its properties. Subclasses are frozen dataclasses; parameters are fields."""

    name: ClassVar[str]
    """The keyword of the encoding syntax."""
    letter: ClassVar[str] = ""
    """TACO's letter for the default properties, if it has one."""
    arrays: ClassVar[tuple[str, ...]] = ()
    """Which of ``positions`` and ``coordinates`` the level stores."""
    abilities: ClassVar[frozenset[Ability]] = frozenset()
    padded: ClassVar[bool] = False
    """Whether the level stores slots that nobody asked for (zeros; unpacking drops them)."""
    least_crd_width: ClassVar[int] = 0
    """Bits that an entry of ``coordinates`` takes at least, where it is more than a coordinate."""
    parameters: ClassVar[tuple[str, ...]] = ()
    """Integer fields spelled in brackets: ``structured[2, 4]``."""

    unique: bool = True
    ordered: bool = True

    def can(self, ability: Ability) -> bool:
        return ability in self.abilities

    # -- spelling ------------------------------------------------------------------------------

    def properties(self) -> tuple[str, ...]:
        """The property keywords that differ from the default, in upstream's order."""
        names: list[str] = []
        if not self.unique:
            names.append("nonunique")
        if not self.ordered:
            names.append("nonordered")
        names += [
            f.name
            for f in fields(self)
            if f.type in (bool, "bool")
            and getattr(self, f.name)
            and f.name not in ("unique", "ordered")
        ]
        return tuple(names)

    def __str__(self) -> str:
        text = self.name
        if self.parameters:
            text += "[" + ", ".join(str(getattr(self, p)) for p in self.parameters) + "]"
        if props := self.properties():
            text += "(" + ", ".join(props) + ")"
        return text

    def problem(self, before: tuple[Level, ...], after: tuple[Level, ...]) -> str:
        """Why the level can't stand between these neighbours (outer and inner); empty if it can."""
        return ""

    # -- storage -------------------------------------------------------------------------------

    @abstractmethod
    def pack(self, parents: Ints, coordinates: Ints, parent_count: int, size: int) -> Packed:
        """Arrays for entries sorted by (parent, coordinate), possibly repeated.

        Raises FormatError if the level can't hold them (over-full structured group)."""

    @abstractmethod
    def unpack(self, arrays: LevelArrays, parent_count: int, size: int) -> Unpacked:
        """Every position of the level, in storage order."""

    def cut(self, arrays: LevelArrays, span: Span, size: int) -> tuple[LevelArrays, Span] | None:
        """The arrays of the parents ``[lo, hi)`` alone, and the positions that these have here; the arrays may
        share memory. None: a level that can't be cut."""
        return None

    @abstractmethod
    def problems(self, arrays: LevelArrays, parent_count: int, size: int) -> tuple[list[str], int]:
        """What is wrong with untrusted arrays (empty: nothing), and the number of positions."""

    # -- code ----------------------------------------------------------------------------------

    def bounds(self, b: LoopBuilder, level: LevelCode, parent: Value) -> tuple[Value, Value]:
        """The positions ``[lo, hi)`` of the parent's children."""
        raise NotImplementedError(f"{self.name} does not iterate")

    def coordinate(self, b: LoopBuilder, level: LevelCode, parent: Value, position: Value) -> Value:
        """The coordinate stored at a position."""
        raise NotImplementedError(f"{self.name} does not iterate")

    def locate(
        self, b: LoopBuilder, level: LevelCode, parent: Value, coordinate: Value
    ) -> tuple[Value, Value | None]:
        """The position of a coordinate, and whether it is there (None: always)."""
        raise NotImplementedError(f"{self.name} does not locate")
