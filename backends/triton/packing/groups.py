"""Groups of four neighbours along k as one integer each: which elements are stored, and their bits.

A group of four f16 values is one 64-bit word, of four i8 values one of 32 bits, so that choosing two of four is a
handful of shifts and one look in a table. A *pattern* is four bits, one an element. A *nibble* is the metadata of a
group: ``i0 | i1 << 2`` with ``i0 < i1``, always two distinct indices.

What counts as stored. A NaN, an infinity, a subnormal is a value as any other. A zero of a dense operand is not, and
-0.0 is a zero: ``weight * mask`` makes many. A group with a spare slot keeps a -0.0 there, bit for bit; with none it
reads back as 0.0. A -0.0 that a canonical 2:4 operand or a residual stores is kept.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc.backends.triton.packing.arrays import BITS, Array, Arrays
from sparsecc.diagnostics import OperandError

PADDING = 4
"""The nibble of a group beyond the weight: indices 0 and 1."""
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80}


class BadCoordinates(OperandError):
    text = (
        "{bad} of {groups} groups do not have two ascending coordinates below 4; first: group"
        " {group} of row {row} with {found}"
    )
    help_text = "build the tensor with from_coords or convert(), which sort and check"


def replicate(lane: int, bits: int) -> int:
    """A constant in each of the four elements of a word, as a signed 64-bit integer."""
    word = sum(lane << bits * k for k in range(4))
    return word - (1 << 64) if word >> 63 else word


@cache
def _choices() -> npt.NDArray[np.uint8]:
    """By the pattern of nonzeros and, above it, that of sign bits: the nibble, with 16 added where there are more
    than two nonzeros. Spare slots go to the lowest -0.0, then to the lowest zeros."""
    table = np.zeros(256, dtype=np.uint8)
    for at in range(256):
        nonzero, negative = at & 15, at >> 4
        order = sorted(range(4), key=lambda k: (~nonzero >> k & 1, ~negative >> k & 1, k))
        first, second = sorted(order[:2])
        table[at] = first | second << 2 | (16 if nonzero.bit_count() > 2 else 0)
    return table


@cache
def pattern_nibbles() -> npt.NDArray[np.uint8]:
    """The nibble of a pattern of exactly two."""
    table = np.zeros(16, dtype=np.uint8)
    for first in range(4):
        for second in range(first + 1, 4):
            table[1 << first | 1 << second] = first | second << 2
    return table


def words(xp: Arrays, bits: Array) -> Array:
    """The groups of rows of values (their bits, [rows, K]) as 64-bit integers [rows, K/4]."""
    width = bits.dtype.itemsize * 32
    word = xp.view(bits, width)
    return word if width == 64 else xp.cast(word, 64) & 0xFFFFFFFF


def patterns(xp: Arrays, word: Array, bits: int) -> Array:
    """The pattern of nonzeros and, above it, that of sign bits (f16, bf16) of each group."""
    low, gather = replicate(1, bits), sum(1 << (3 * bits - (bits - 1) * k) for k in range(4))
    magnitude = replicate((1 << (bits - 1)) - 1, bits)
    if bits == 8:  # no -0: any bit makes a nonzero
        some = (((word & magnitude) + magnitude) | word) >> 7 & low
        return (some * gather) >> 24 & 15
    some = ((word & magnitude) + magnitude) >> 15 & low
    return ((some | (word >> 15 & low) << 4) * gather) >> 48 & 255


def choose(xp: Arrays, word: Array, bits: int) -> Array:
    """The nibble of each group, with 16 added where a value would be left out."""
    return xp.take(xp.table(_choices()), xp.cast(patterns(xp, word, bits), 64))


def pairs(xp: Arrays, word: Array, nibble: Array, bits: int) -> Array:
    """The two chosen elements of each group, the first in the low half."""
    mask = (1 << bits) - 1
    nibble = xp.cast(nibble, 64)
    first, second = (nibble & 3) * bits, (nibble >> 2) * bits
    return (word >> first & mask) | (word >> second & mask) << bits


def spread(xp: Arrays, pair: Array, nibble: Array, bits: int) -> Array:
    """The inverse of ``pairs``: groups of four with zeros where nothing is chosen."""
    mask = (1 << bits) - 1
    nibble = xp.cast(nibble, 64)
    first, second = (nibble & 3) * bits, (nibble >> 2) * bits
    return (pair & mask) << first | (pair >> bits & mask) << second


def elements(xp: Arrays, word: Array, bits: int) -> Array:
    """The inverse of ``words``: [rows, K] from [rows, K/4]."""
    return xp.view(xp.cast(word, 32) if bits == 8 else word, bits)


def largest_two(xp: Arrays, word: Array, dtype: str) -> Array:
    """The nibble of the two elements of largest magnitude: NaN above all, then ties to the lowest index; of zeros
    the -0.0 first."""
    keys: list[Any] = []
    for k in range(4):
        bits = xp.cast(word >> 16 * k & 0xFFFF, 32)
        magnitude = bits & 0x7FFF
        top = INFINITY[dtype] + 1
        magnitude = magnitude - (magnitude - top) * (magnitude > top)
        keys.append((magnitude << 1 | (bits == 0x8000)) << 2 | 3 - k)
    kept = 0
    for k in range(4):
        above = sum((keys[j] > keys[k]) * 1 for j in range(4) if j != k)
        kept = kept | (above < 2) * (1 << k)
    return xp.take(xp.table(pattern_nibbles()), xp.cast(kept, 64))


def complement(nibble: Array) -> Array:
    """The nibble of the two elements that a nibble leaves out."""
    together = ((nibble >> 1) ^ (nibble >> 3)) & 1  # 0: both in one half of the group
    return nibble ^ (10 - 5 * together)


def nibbles_of(xp: Arrays, coordinates: Array) -> Array:
    """The nibbles of stored coordinates [rows, K/2], as 8-bit integers; refuses what the hardware does not define."""
    rows, slots = coordinates.shape
    pair = coordinates.reshape(rows, slots // 2, 2)
    first, second = pair[..., 0], pair[..., 1]
    bad = (first < 0) | (first >= second) | (second > 3)
    if bool(bad.any()):
        at = int(xp.nonzero(bad.reshape(-1))[0])
        row, group = divmod(at, slots // 2)
        found = ", ".join(str(int(c)) for c in pair[row, group])
        raise BadCoordinates(
            bad=int(bad.sum()), groups=rows * slots // 2, group=group, row=row, found=found
        )
    return xp.cast(first, 8) | xp.cast(second, 8) << 2


def coordinates_of(xp: Arrays, nibble: Array) -> Array:
    """Stored coordinates [rows, K/2] of nibbles [rows, K/4], as 8-bit integers."""
    out = xp.zeros((*nibble.shape, 2), 8)
    out[..., 0] = nibble & 3
    out[..., 1] = nibble >> 2
    return out.reshape(nibble.shape[0], -1)


def width_of(dtype: str) -> int:
    """Bits of an element."""
    return BITS[dtype]
