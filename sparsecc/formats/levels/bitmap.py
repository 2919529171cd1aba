"""bitmap: one bit for every coordinate of each parent; values only where a bit is set.

Each parent has ``ceil(size / 32)`` words, one after the other. ``coordinates`` holds the words, bit ``c % 32`` of word
``c // 32`` for coordinate ``c``, as the signed numbers of the same 32 bits; wider arrays mean their lowest 32 bits.
``positions`` holds, for each word, how many bits are set in all words before it, and the total at its end: one number
more than there are words. So a coordinate is found by counting the bits below it, and entries stand in order.

There is no walking: the k-th set bit has to be searched for, which costs more than unpacking the words at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sparsecc.diagnostics import LimitError
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

Words = npt.NDArray[np.uint32]

BITS = 32
MAX_WORDS = 1 << 27
"""Words beyond this are refused if nearly all of them would be 0."""


class TooManyWords(LimitError):
    text = "{parents} rows of {words} words each for {entries} entries: nearly all bits would be 0"
    help_text = "choose a format that stores coordinates (CSR)"


def words_of(size: int) -> int:
    """The words of a parent."""
    return -(-size // BITS)


@dataclass(frozen=True)
class Bitmap(Level):
    name: ClassVar[str] = "bitmap"
    arrays: ClassVar[tuple[str, ...]] = ("positions", "coordinates")
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.LOCATE})
    least_crd_width: ClassVar[int] = BITS

    def problem(self, before: tuple[Level, ...], after: tuple[Level, ...]) -> str:
        if self.unique and self.ordered:
            return ""
        return "a bitmap holds each coordinate once, in order"

    def pack(self, parents: Ints, coordinates: Ints, parent_count: int, size: int) -> Packed:
        row = words_of(size)
        total = parent_count * row
        if total > max(MAX_WORDS, 64 * len(parents)):
            raise TooManyWords(parents=parent_count, words=row, entries=len(parents))
        key = parents * size + coordinates
        new = np.ones(len(key), dtype=np.bool_)
        np.not_equal(key[1:], key[:-1], out=new[1:])
        words = _set_bits(parents * (row * BITS) + coordinates, total, new)
        positions = np.zeros(total + 1, dtype=np.int64)
        np.cumsum(_counts(words), out=positions[1:])
        position = np.arange(len(key)) if new.all() else np.cumsum(new, dtype=np.int64) - 1
        signed = words.view(np.int32).astype(np.int64)
        return Packed(LevelArrays(positions, signed), position, int(positions[-1]))

    def unpack(self, arrays: LevelArrays, parent_count: int, size: int) -> Unpacked:
        assert arrays.coordinates is not None
        row = words_of(size)
        words = _bits(arrays.coordinates[: parent_count * row])
        there = np.flatnonzero(words)
        octets = np.ascontiguousarray(words[there]).astype("<u4").view(np.uint8)
        which, bit = np.nonzero(np.unpackbits(octets.reshape(-1, 4), axis=1, bitorder="little"))
        word = there[which]
        parents = word // row if row else word
        return Unpacked(parents, (word - parents * row) * BITS + bit)

    def cut(self, arrays: LevelArrays, span: Span, size: int) -> tuple[LevelArrays, Span]:
        positions, words = arrays.positions, arrays.coordinates
        assert positions is not None and words is not None
        lo, hi = (at * words_of(size) for at in span)
        kept = LevelArrays(positions[lo : hi + 1] - positions[lo], words[lo:hi])
        return kept, (int(positions[lo]), int(positions[hi]))

    def problems(self, arrays: LevelArrays, parent_count: int, size: int) -> tuple[list[str], int]:
        positions, coordinates = arrays.positions, arrays.coordinates
        assert positions is not None and coordinates is not None
        row = words_of(size)
        total = parent_count * row
        if len(coordinates) != total:
            return [f"{len(coordinates)} words for {parent_count} parents of {row}"], 0
        if len(positions) != total + 1:
            return [f"positions has {len(positions)} entries, not {total + 1}"], 0
        low, high = -(1 << (BITS - 1)), (1 << BITS) - 1
        bad = (coordinates < low) | (coordinates > high)
        if bad.any():
            at = int(np.argmax(bad))
            return [f"word {at} is {coordinates[at]}, not a word of {BITS} bits"], 0
        words = _bits(coordinates)
        spare = row * BITS - size
        if spare and total:
            beyond = (words.reshape(parent_count, row)[:, -1] >> np.uint32(BITS - spare)) != 0
            if beyond.any():
                return [f"a bit of parent {int(np.argmax(beyond))} is set beyond [0, {size})"], 0
        wanted = np.zeros(total + 1, dtype=np.int64)
        np.cumsum(_counts(words), out=wanted[1:])
        wrong = positions != wanted
        if wrong.any():
            at = int(np.argmax(wrong))
            return [f"positions hold {positions[at]} at {at}, but {wanted[at]} bits are set"], 0
        return [], int(wanted[-1])

    def bounds(self, b: LoopBuilder, level: LevelCode, parent: Value) -> tuple[Value, Value]:
        row = self._row(b, level)
        first = b.mul(parent, row)
        return b.load(level.positions, first), b.load(level.positions, b.add(first, row))

    def locate(
        self, b: LoopBuilder, level: LevelCode, parent: Value, coordinate: Value
    ) -> tuple[Value, Value | None]:
        word = b.add(b.mul(parent, self._row(b, level)), b.div(coordinate, BITS))
        bit = b.mod(coordinate, BITS)
        bits = b.load(level.coordinates, word)
        position = b.add(b.load(level.positions, word), b.bits_below(bits, bit))
        return position, b.bit(bits, bit)

    def _row(self, b: LoopBuilder, level: LevelCode) -> Value:
        return b.div(b.add(level.size, b.index(BITS - 1)), BITS)


def _set_bits(bits: Ints, total: int, new: npt.NDArray[np.bool_]) -> Words:
    """Words with these bits set, which ascend; ``new`` are those that differ from the one before."""
    if total * BITS <= 64 * len(bits) + (1 << 20):
        flags = np.zeros(total * BITS, dtype=np.bool_)
        flags[bits] = True
        return np.packbits(flags, bitorder="little").view("<u4").astype(np.uint32, copy=False)
    bits = bits if new.all() else bits[new]
    # Sums of different powers of two, below 2**32: exact in f64.
    sums = np.bincount(bits // BITS, weights=np.exp2(bits % BITS), minlength=total)
    return sums.astype(np.int64).astype(np.uint32)


def _bits(words: AnyInts) -> Words:
    """Words without a sign."""
    return words.astype(np.int64, copy=False).astype(np.uint32)


def _counts(words: Words) -> Ints:
    """How many bits are set in each word."""
    counts = words - ((words >> np.uint32(1)) & np.uint32(0x55555555))
    counts = (counts & np.uint32(0x33333333)) + ((counts >> np.uint32(2)) & np.uint32(0x33333333))
    counts = (counts + (counts >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    return ((counts * np.uint32(0x01010101)) >> np.uint32(24)).astype(np.int64)
