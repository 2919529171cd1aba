"""compressed: the coordinates that are there, parent after parent; ``positions[p] .. positions[p+1]`` are p's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsecc.formats.builder import LevelCode, LoopBuilder, Value
from sparsecc.formats.level import (
    Ability,
    AnyInts,
    Ints,
    Level,
    LevelArrays,
    Packed,
    Span,
    Unpacked,
)


def order_problems(level: Level, parents: Ints, coordinates: AnyInts) -> list[str]:
    """Whether coordinates ascend within each parent as the level's properties promise."""
    if not level.ordered or len(coordinates) < 2:
        return []
    same = parents[1:] == parents[:-1]
    step = coordinates[1:].astype(np.int64) - coordinates[:-1].astype(np.int64)
    bad = same & ((step <= 0) if level.unique else (step < 0))
    if not bad.any():
        return []
    at = int(np.argmax(bad)) + 1
    kind = "descend" if step[at - 1] < 0 else "repeat"
    return [f"coordinates {kind} at entry {at}"]


def range_problems(coordinates: AnyInts, size: int) -> list[str]:
    """Whether every coordinate lies in ``[0, size)``."""
    bad = (coordinates < 0) | (coordinates >= size)
    if not bad.any():
        return []
    at = int(np.argmax(bad))
    return [f"coordinate {coordinates[at]} at entry {at} is outside [0, {size})"]


@dataclass(frozen=True)
class Compressed(Level):
    name: ClassVar[str] = "compressed"
    letter: ClassVar[str] = "s"
    arrays: ClassVar[tuple[str, ...]] = ("positions", "coordinates")
    abilities: ClassVar[frozenset[Ability]] = frozenset(
        {Ability.ITERATE, Ability.LOCATE, Ability.APPEND}
    )

    def pack(self, parents: Ints, coordinates: Ints, parent_count: int, size: int) -> Packed:
        position: Ints = np.arange(len(parents), dtype=np.int64)
        if self.unique and len(parents):
            new = np.empty(len(parents), dtype=np.bool_)
            new[0] = True
            np.not_equal(parents[1:], parents[:-1], out=new[1:])
            new[1:] |= coordinates[1:] != coordinates[:-1]
            if not new.all():
                position = np.cumsum(new) - 1
                parents, coordinates = parents[new], coordinates[new]
        positions = np.zeros(parent_count + 1, dtype=np.int64)
        np.cumsum(np.bincount(parents, minlength=parent_count), out=positions[1:])
        return Packed(LevelArrays(positions, coordinates), position, len(coordinates))

    def unpack(self, arrays: LevelArrays, parent_count: int, size: int) -> Unpacked:
        assert arrays.positions is not None and arrays.coordinates is not None
        counts = np.diff(arrays.positions[: parent_count + 1].astype(np.int64))
        parents = np.repeat(np.arange(parent_count, dtype=np.int64), counts)
        return Unpacked(parents, arrays.coordinates[: len(parents)].astype(np.int64))

    def cut(self, arrays: LevelArrays, span: Span, size: int) -> tuple[LevelArrays, Span]:
        positions, coordinates = arrays.positions, arrays.coordinates
        assert positions is not None and coordinates is not None
        lo, hi = span
        first, end = int(positions[lo]), int(positions[hi])
        # Unsigned positions do not go below 0: the first is the smallest.
        kept = positions[lo : hi + 1] - positions[lo]
        return LevelArrays(kept, coordinates[first:end]), (first, end)

    def problems(self, arrays: LevelArrays, parent_count: int, size: int) -> tuple[list[str], int]:
        positions, coordinates = arrays.positions, arrays.coordinates
        assert positions is not None and coordinates is not None
        if len(positions) != parent_count + 1:
            return [f"positions has {len(positions)} entries, not {parent_count + 1}"], 0
        # Neighbours are compared and not subtracted: differences of hostile numbers wrap around.
        if positions[0] != 0 or (positions[1:] < positions[:-1]).any():
            return ["positions must start at 0 and never descend"], 0
        count = int(positions[-1])
        if count != len(coordinates):
            return [f"positions end at {count}, but there are {len(coordinates)} coordinates"], 0
        found = range_problems(coordinates, size)
        if not found:
            parents = np.repeat(
                np.arange(parent_count, dtype=np.int64), np.diff(positions.astype(np.int64))
            )
            found = order_problems(self, parents, coordinates)
        return found, count

    def bounds(self, b: LoopBuilder, level: LevelCode, parent: Value) -> tuple[Value, Value]:
        return b.load(level.positions, parent), b.load(level.positions, b.add(parent, b.index(1)))

    def coordinate(self, b: LoopBuilder, level: LevelCode, parent: Value, position: Value) -> Value:
        return b.load(level.coordinates, position)

    def locate(
        self, b: LoopBuilder, level: LevelCode, parent: Value, coordinate: Value
    ) -> tuple[Value, Value | None]:
        lo, hi = self.bounds(b, level, parent)
        at = b.lower_bound(level.coordinates, lo, hi, coordinate)
        found = b.guarded(b.lt(at, hi), lambda: b.eq(b.load(level.coordinates, at), coordinate))
        return at, found
