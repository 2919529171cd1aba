"""singleton: one coordinate for each parent position, at the same position (the inner levels of COO)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsecc.diagnostics import FormatError
from sparsecc.formats.builder import LevelCode, LoopBuilder, Value
from sparsecc.formats.level import Ability, Ints, Level, LevelArrays, Packed, Span, Unpacked
from sparsecc.formats.levels.compressed import range_problems


class CrowdedSingleton(FormatError):
    text = "a singleton level holds one coordinate for each parent, but parent {parent} has {count}"
    help_text = "make the level above it nonunique (as COO does), or this level compressed"


@dataclass(frozen=True)
class Singleton(Level):
    name: ClassVar[str] = "singleton"
    letter: ClassVar[str] = "q"
    arrays: ClassVar[tuple[str, ...]] = ("coordinates",)
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ITERATE})

    soa: bool = False
    """Struct of arrays; the default, upstream's array of structs, is a layout of exchanged buffers only:
    in memory every level has its own array."""

    def problem(self, before: tuple[Level, ...], after: tuple[Level, ...]) -> str:
        if not before or before[-1].name not in ("compressed", "loose_compressed", "singleton"):
            return "a singleton must follow a compressed, loose_compressed or singleton level"
        if any(not isinstance(level, Singleton) for level in after):
            return "only singletons can follow a singleton"
        if any(isinstance(level, Singleton) and level.soa != self.soa for level in after):
            return "the singletons of a COO region share one layout: all soa or none"
        return ""

    def pack(self, parents: Ints, coordinates: Ints, parent_count: int, size: int) -> Packed:
        if len(parents) != parent_count or (parents[1:] <= parents[:-1]).any():
            counts = np.bincount(parents, minlength=parent_count)
            parent = int(np.argmax(counts != 1))
            raise CrowdedSingleton(parent=parent, count=int(counts[parent]))
        return Packed(LevelArrays(None, coordinates), parents, parent_count)

    def unpack(self, arrays: LevelArrays, parent_count: int, size: int) -> Unpacked:
        assert arrays.coordinates is not None
        parents = np.arange(parent_count, dtype=np.int64)
        return Unpacked(parents, arrays.coordinates[:parent_count].astype(np.int64))

    def cut(self, arrays: LevelArrays, span: Span, size: int) -> tuple[LevelArrays, Span]:
        assert arrays.coordinates is not None
        lo, hi = span
        return LevelArrays(None, arrays.coordinates[lo:hi]), span

    def problems(self, arrays: LevelArrays, parent_count: int, size: int) -> tuple[list[str], int]:
        coordinates = arrays.coordinates
        assert coordinates is not None
        if len(coordinates) != parent_count:
            return [f"{len(coordinates)} coordinates for {parent_count} parents"], 0
        return range_problems(coordinates, size), parent_count

    def bounds(self, b: LoopBuilder, level: LevelCode, parent: Value) -> tuple[Value, Value]:
        return parent, b.add(parent, b.index(1))

    def coordinate(self, b: LoopBuilder, level: LevelCode, parent: Value, position: Value) -> Value:
        return b.load(level.coordinates, position)
