"""dense: every coordinate is there, at ``parent * size + coordinate``; nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsecc.formats.builder import LevelCode, LoopBuilder, Value
from sparsecc.formats.level import Ability, Ints, Level, LevelArrays, Packed, Span, Unpacked


@dataclass(frozen=True)
class Dense(Level):
    name: ClassVar[str] = "dense"
    letter: ClassVar[str] = "d"
    abilities: ClassVar[frozenset[Ability]] = frozenset(
        {Ability.FULL, Ability.ITERATE, Ability.LOCATE}
    )

    def pack(self, parents: Ints, coordinates: Ints, parent_count: int, size: int) -> Packed:
        positions = coordinates if parent_count == 1 else parents * size + coordinates
        return Packed(LevelArrays(), positions, parent_count * size)

    def unpack(self, arrays: LevelArrays, parent_count: int, size: int) -> Unpacked:
        parents = np.repeat(np.arange(parent_count, dtype=np.int64), size)
        return Unpacked(parents, np.tile(np.arange(size, dtype=np.int64), parent_count))

    def cut(self, arrays: LevelArrays, span: Span, size: int) -> tuple[LevelArrays, Span]:
        lo, hi = span
        return arrays, (lo * size, hi * size)

    def problems(self, arrays: LevelArrays, parent_count: int, size: int) -> tuple[list[str], int]:
        return [], parent_count * size

    def bounds(self, b: LoopBuilder, level: LevelCode, parent: Value) -> tuple[Value, Value]:
        lo = b.mul(parent, level.size)
        return lo, b.add(lo, level.size)

    def coordinate(self, b: LoopBuilder, level: LevelCode, parent: Value, position: Value) -> Value:
        return b.sub(position, b.mul(parent, level.size))

    def locate(
        self, b: LoopBuilder, level: LevelCode, parent: Value, coordinate: Value
    ) -> tuple[Value, Value | None]:
        return b.add(b.mul(parent, level.size), coordinate), None


@dataclass(frozen=True)
class Batch(Dense):
    """A leading dense level that upstream keeps apart; stored as a dense one."""

    name: ClassVar[str] = "batch"
    letter: ClassVar[str] = ""

    def problem(self, before: tuple[Level, ...], after: tuple[Level, ...]) -> str:
        if any(not isinstance(level, Batch) for level in before):
            return "batch levels can only lead"
        return ""
