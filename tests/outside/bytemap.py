"""bytemap: a slot for every coordinate of each parent, and a byte that says whether it is taken.

A level format of somebody else's package: it knows ``sparsecc.formats`` and no compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsecc.formats.builder import LevelCode, LoopBuilder, Value
from sparsecc.formats.level import Ability, Ints, Level, LevelArrays, Packed, Unpacked


@dataclass(frozen=True)
class Bytemap(Level):
    """Position ``parent * size + coordinate``; ``coordinates`` is 1 where an entry is, else 0."""

    name: ClassVar[str] = "bytemap"
    arrays: ClassVar[tuple[str, ...]] = ("coordinates",)
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ITERATE, Ability.LOCATE})
    padded: ClassVar[bool] = True

    def problem(self, before: tuple[Level, ...], after: tuple[Level, ...]) -> str:
        if self.unique and self.ordered:
            return ""
        return "a bytemap holds each coordinate once, in order"

    def pack(self, parents: Ints, coordinates: Ints, parent_count: int, size: int) -> Packed:
        position = parents * size + coordinates
        taken = np.zeros(parent_count * size, dtype=np.int64)
        taken[position] = 1
        return Packed(LevelArrays(None, taken), position, len(taken))

    def unpack(self, arrays: LevelArrays, parent_count: int, size: int) -> Unpacked:
        assert arrays.coordinates is not None
        parents = np.repeat(np.arange(parent_count, dtype=np.int64), size)
        coordinates = np.tile(np.arange(size, dtype=np.int64), parent_count)
        return Unpacked(parents, coordinates, arrays.coordinates != 0)

    def problems(self, arrays: LevelArrays, parent_count: int, size: int) -> tuple[list[str], int]:
        taken = arrays.coordinates
        assert taken is not None
        if len(taken) != parent_count * size:
            return [f"{len(taken)} bytes for {parent_count} parents of {size} slots"], 0
        if ((taken != 0) & (taken != 1)).any():
            return ["a byte is neither 0 nor 1"], 0
        return [], len(taken)

    def bounds(self, b: LoopBuilder, level: LevelCode, parent: Value) -> tuple[Value, Value]:
        lo = b.mul(parent, level.size)
        return lo, b.add(lo, level.size)

    def coordinate(self, b: LoopBuilder, level: LevelCode, parent: Value, position: Value) -> Value:
        # Free slots are walked too: their values are 0, as those of any padded level.
        return b.sub(position, b.mul(parent, level.size))

    def locate(
        self, b: LoopBuilder, level: LevelCode, parent: Value, coordinate: Value
    ) -> tuple[Value, Value | None]:
        position = b.add(b.mul(parent, level.size), coordinate)
        return position, b.ne(b.load(level.coordinates, position), b.index(0))
