"""loose_compressed: compressed with gaps allowed between parents; ``positions`` holds a pair (lo, hi) a parent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsecc.formats.builder import LevelCode, LoopBuilder, Value
from sparsecc.formats.level import Ability, Ints, Level, LevelArrays, Packed, Unpacked
from sparsecc.formats.levels.compressed import Compressed, order_problems, range_problems


@dataclass(frozen=True)
class LooseCompressed(Level):
    name: ClassVar[str] = "loose_compressed"
    arrays: ClassVar[tuple[str, ...]] = ("positions", "coordinates")
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ITERATE, Ability.LOCATE})

    def pack(self, parents: Ints, coordinates: Ints, parent_count: int, size: int) -> Packed:
        tight = Compressed(self.unique, self.ordered).pack(parents, coordinates, parent_count, size)
        ends = tight.arrays.positions
        assert ends is not None
        pairs = np.empty(2 * parent_count, dtype=np.int64)
        pairs[0::2], pairs[1::2] = ends[:-1], ends[1:]
        return Packed(LevelArrays(pairs, tight.arrays.coordinates), tight.positions, tight.count)

    def unpack(self, arrays: LevelArrays, parent_count: int, size: int) -> Unpacked:
        positions, coordinates = arrays.positions, arrays.coordinates
        assert positions is not None and coordinates is not None
        lo, hi = positions[0 : 2 * parent_count : 2], positions[1 : 2 * parent_count : 2]
        # Positions in gaps belong to nobody: they get parent 0 and are marked as padding.
        edges = np.zeros(len(coordinates) + 1, dtype=np.int64)
        owner = np.zeros(len(coordinates), dtype=np.int64)
        nonempty = np.nonzero(hi > lo)[0]
        np.add.at(edges, lo[nonempty].astype(np.int64), 1)
        np.add.at(edges, hi[nonempty].astype(np.int64), -1)
        owner[lo[nonempty].astype(np.int64)] = nonempty
        valid = np.cumsum(edges[:-1]) > 0
        owner = np.where(valid, np.maximum.accumulate(owner), 0) if len(owner) else owner
        return Unpacked(owner, coordinates.astype(np.int64), None if valid.all() else valid)

    def problems(self, arrays: LevelArrays, parent_count: int, size: int) -> tuple[list[str], int]:
        positions, coordinates = arrays.positions, arrays.coordinates
        assert positions is not None and coordinates is not None
        if len(positions) not in (2 * parent_count, 2 * parent_count + 1):
            return [f"positions has {len(positions)} entries, not {2 * parent_count}"], 0
        ends = positions[: 2 * parent_count].astype(np.int64)
        if len(ends) and (
            ends.min() < 0 or ends.max() > len(coordinates) or (ends[1:] < ends[:-1]).any()
        ):
            return [f"positions must ascend within [0, {len(coordinates)}]"], 0
        full = self.unpack(arrays, parent_count, size)
        keep = slice(None) if full.valid is None else full.valid
        found = range_problems(coordinates[keep], size)
        return found or order_problems(self, full.parents[keep], coordinates[keep]), len(
            coordinates
        )

    def bounds(self, b: LoopBuilder, level: LevelCode, parent: Value) -> tuple[Value, Value]:
        at = b.mul(parent, b.index(2))
        return b.load(level.positions, at), b.load(level.positions, b.add(at, b.index(1)))

    def coordinate(self, b: LoopBuilder, level: LevelCode, parent: Value, position: Value) -> Value:
        return b.load(level.coordinates, position)

    def locate(
        self, b: LoopBuilder, level: LevelCode, parent: Value, coordinate: Value
    ) -> tuple[Value, Value | None]:
        lo, hi = self.bounds(b, level, parent)
        at = b.lower_bound(level.coordinates, lo, hi, coordinate)
        found = b.guarded(b.lt(at, hi), lambda: b.eq(b.load(level.coordinates, at), coordinate))
        return at, found
