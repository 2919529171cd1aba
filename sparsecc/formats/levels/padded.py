"""padded: the same number of slots for each parent (ELLPACK); unused slots at the end hold the coordinate ``size``.

``positions`` has one entry: the number of slots of a parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsecc.diagnostics import LimitError
from sparsecc.formats.builder import LevelCode, LoopBuilder, Value
from sparsecc.formats.level import Ability, Ints, Level, LevelArrays, Packed, Span, Unpacked
from sparsecc.formats.levels.compressed import order_problems, range_problems

MAX_SLOTS = 1 << 27
"""Slots beyond this are refused if nearly all of them would be padding."""


class TooManySlots(LimitError):
    text = "{parents} rows of {slots} slots each for {entries} entries: nearly all would be padding"
    help_text = "choose a format whose rows differ in length (CSR)"


@dataclass(frozen=True)
class Padded(Level):
    name: ClassVar[str] = "padded"
    arrays: ClassVar[tuple[str, ...]] = ("positions", "coordinates")
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ITERATE})
    padded: ClassVar[bool] = True

    def problem(self, before: tuple[Level, ...], after: tuple[Level, ...]) -> str:
        if all(level.name == "dense" for level in after):
            return ""
        return "a padded level must be the last, or followed by dense levels only"

    def pack(self, parents: Ints, coordinates: Ints, parent_count: int, size: int) -> Packed:
        counts = np.bincount(parents, minlength=parent_count)
        slots = int(counts.max()) if len(counts) else 0
        if parent_count * slots > max(MAX_SLOTS, 64 * len(parents)):
            raise TooManySlots(slots=slots, parents=parent_count, entries=len(parents))
        starts = np.cumsum(counts) - counts
        position = parents * slots + (np.arange(len(parents), dtype=np.int64) - starts[parents])
        filled = np.full(parent_count * slots, size, dtype=np.int64)
        filled[position] = coordinates
        width = np.array([slots], dtype=np.int64)
        return Packed(LevelArrays(width, filled), position, len(filled))

    def unpack(self, arrays: LevelArrays, parent_count: int, size: int) -> Unpacked:
        assert arrays.positions is not None and arrays.coordinates is not None
        parents = np.repeat(np.arange(parent_count, dtype=np.int64), int(arrays.positions[0]))
        coordinates = arrays.coordinates[: len(parents)].astype(np.int64)
        valid = coordinates < size
        return Unpacked(parents, coordinates, None if valid.all() else valid)

    def cut(self, arrays: LevelArrays, span: Span, size: int) -> tuple[LevelArrays, Span]:
        assert arrays.positions is not None and arrays.coordinates is not None
        lo, hi = (at * int(arrays.positions[0]) for at in span)
        return LevelArrays(arrays.positions, arrays.coordinates[lo:hi]), (lo, hi)

    def problems(self, arrays: LevelArrays, parent_count: int, size: int) -> tuple[list[str], int]:
        positions, coordinates = arrays.positions, arrays.coordinates
        assert positions is not None and coordinates is not None
        if len(positions) != 1 or positions[0] < 0:
            return ["positions must hold the number of slots of a parent alone"], 0
        slots = int(positions[0])
        if len(coordinates) != parent_count * slots:
            return [
                f"{len(coordinates)} coordinates for {parent_count} parents of {slots} slots"
            ], 0
        parents = np.repeat(np.arange(parent_count, dtype=np.int64), slots)
        found = range_problems(coordinates, size + 1)
        if not found:
            # Padding may repeat; it must stand at the end, which ascending order says already.
            real = coordinates < size
            found = order_problems(self, parents[real], coordinates[real])
            ascending = (np.diff(coordinates.astype(np.int64)) >= 0) | (np.diff(parents) > 0)
            if not found and not ascending.all():
                found = ["padding stands before an entry"]
        return found, len(coordinates)

    def bounds(self, b: LoopBuilder, level: LevelCode, parent: Value) -> tuple[Value, Value]:
        slots = b.load(level.positions, b.index(0))
        lo = b.mul(parent, slots)
        end = b.add(lo, slots)
        hi = b.scan(lo, end, lambda p: b.lt(b.load(level.coordinates, p), level.size))
        return lo, hi

    def coordinate(self, b: LoopBuilder, level: LevelCode, parent: Value, position: Value) -> Value:
        return b.load(level.coordinates, position)
