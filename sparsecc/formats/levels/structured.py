"""structured[n, m]: exactly n coordinates of each group of m; a group with fewer entries is filled with zeros."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from sparsecc.diagnostics import FormatError
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
from sparsecc.formats.levels.compressed import order_problems, range_problems


class OverfullGroup(FormatError):
    text = "{bad} of {groups} groups hold more than {n} entries of {m}; first: group {first} with {count}"
    help_text = "prune the tensor to {n}:{m}, or choose a format without a limit (CSR)"


@cache
def _tables(n: int, m: int) -> tuple[AnyInts, AnyInts, AnyInts]:
    """For each of the 2**m patterns of a group: the entries, the n coordinates stored (the lowest unused ones
    fill up), and the slot of each coordinate."""
    patterns = np.arange(2**m, dtype=np.int64)
    used = np.bitwise_and(patterns[:, None] >> np.arange(m, dtype=np.int64), 1) == 1
    counts = used.sum(axis=1)
    keep = used | (np.cumsum(~used, axis=1) <= (n - counts)[:, None])
    filled = np.zeros((2**m, n), dtype=np.uint8)
    fits = counts <= n
    filled[fits] = np.nonzero(keep[fits])[1].reshape(-1, n)
    slots = np.cumsum(keep, axis=1, dtype=np.int64) - 1
    return counts.astype(np.uint8), filled, slots


@dataclass(frozen=True)
class Structured(Level):
    name: ClassVar[str] = "structured"
    arrays: ClassVar[tuple[str, ...]] = ("coordinates",)
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ITERATE})
    padded: ClassVar[bool] = True
    parameters: ClassVar[tuple[str, ...]] = ("n", "m")

    n: int = 2
    m: int = 4

    def problem(self, before: tuple[Level, ...], after: tuple[Level, ...]) -> str:
        if not 0 < self.n <= self.m:
            return f"structured[n, m] wants 0 < n <= m, not {self.n} and {self.m}"
        if after:
            return "a structured level must be the last"
        if any(level.name not in ("dense", "batch") for level in before):
            return "a structured level can only follow dense levels"
        return ""

    def pack(self, parents: Ints, coordinates: Ints, parent_count: int, size: int) -> Packed:
        if self.m > 8:
            return self._pack_wide(parents, coordinates, parent_count)
        used = np.zeros((parent_count, self.m), dtype=np.bool_)
        used.reshape(-1)[parents * self.m + coordinates] = True
        patterns = np.packbits(used, axis=1, bitorder="little").reshape(-1)
        counts, filled, slots = _tables(self.n, self.m)
        self._refuse_overfull(counts[patterns])
        position = parents * self.n + slots[patterns[parents], coordinates]
        coordinate = filled[patterns].reshape(-1).astype(np.int64)
        return Packed(LevelArrays(None, coordinate), position, parent_count * self.n)

    def _refuse_overfull(self, counts: AnyInts) -> None:
        if len(counts) and counts.max() > self.n:
            bad = np.nonzero(counts > self.n)[0]
            first = int(bad[0])
            raise OverfullGroup(
                bad=len(bad),
                groups=len(counts),
                n=self.n,
                m=self.m,
                first=first,
                count=int(counts[first]),
            )

    def _pack_wide(self, parents: Ints, coordinates: Ints, parent_count: int) -> Packed:
        counts = np.bincount(parents, minlength=parent_count)
        self._refuse_overfull(counts)
        used = np.zeros((parent_count, self.m), dtype=np.bool_)
        used[parents, coordinates] = True
        # Empty slots take the lowest unused coordinates, so that each group still ascends.
        spare = np.cumsum(~used, axis=1, dtype=np.int32)
        keep = used | (spare <= (self.n - counts)[:, None])
        _, coordinate = np.nonzero(keep)
        slot_of = np.cumsum(keep, axis=1, dtype=np.int64) - 1
        position = parents * self.n + slot_of[parents, coordinates]
        return Packed(
            LevelArrays(None, coordinate.astype(np.int64)), position, parent_count * self.n
        )

    def unpack(self, arrays: LevelArrays, parent_count: int, size: int) -> Unpacked:
        assert arrays.coordinates is not None
        parents = np.repeat(np.arange(parent_count, dtype=np.int64), self.n)
        return Unpacked(parents, arrays.coordinates[: len(parents)].astype(np.int64))

    def cut(self, arrays: LevelArrays, span: Span, size: int) -> tuple[LevelArrays, Span]:
        assert arrays.coordinates is not None
        lo, hi = (at * self.n for at in span)
        return LevelArrays(None, arrays.coordinates[lo:hi]), (lo, hi)

    def problems(self, arrays: LevelArrays, parent_count: int, size: int) -> tuple[list[str], int]:
        coordinates = arrays.coordinates
        assert coordinates is not None
        if len(coordinates) != parent_count * self.n:
            return [f"{len(coordinates)} coordinates for {parent_count} groups of {self.n}"], 0
        parents = np.repeat(np.arange(parent_count, dtype=np.int64), self.n)
        found = range_problems(coordinates, self.m) or order_problems(self, parents, coordinates)
        return found, len(coordinates)

    def bounds(self, b: LoopBuilder, level: LevelCode, parent: Value) -> tuple[Value, Value]:
        lo = b.mul(parent, b.index(self.n))
        return lo, b.add(lo, b.index(self.n))

    def coordinate(self, b: LoopBuilder, level: LevelCode, parent: Value, position: Value) -> Value:
        return b.load(level.coordinates, position)
