"""Units of 16 rows x 64 columns in the order of the sparse matrix units' registers.

``mma.sp::ordered_metadata`` (and each warp of ``wgmma.mma_async.sp``) takes a 16-row tile of the compressed weight as
four 32-bit registers a lane and a metadata register. Lane ``4*g + q`` holds rows ``g`` and ``g + 8``::

    f16, bf16   two steps of k32, each [32 lanes][4 registers]; register 2*c + h: row g + 8*h, compressed columns
                8*c + 2*q, +1. Metadata: one word a lane for both steps; lanes q = 0, 1 hold the first step's
                (selector 0), q = 2, 3 the second's; columns 16*(q%2) .. +15, low half row g, high half row g + 8.
    i8          one step of k64, [32 lanes][4 registers]; register 2*c + h: row g + 8*h, compressed columns
                16*c + 4*q .. +3. Metadata: lane q holds columns 32*(q/2) .. +31 of row g + 8*(q%2).

A unit is its steps' values, then 32 metadata words: 1152 bytes, or 640 for i8.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparsecc.backends.triton.packing.arrays import Array, Arrays
from sparsecc.backends.triton.packing.groups import PADDING

ROWS, COLUMNS, METADATA = 16, 64, 32


@dataclass(frozen=True)
class Unit:
    """How one dtype's unit lies."""

    bits: int

    @property
    def steps(self) -> int:
        """Instructions that a unit feeds."""
        return self.bits // 8

    @property
    def value_words(self) -> int:
        return self.steps * 128

    @property
    def words(self) -> int:
        return self.value_words + METADATA


def units(xp: Arrays, unit: Unit, pair: Array, nibble: Array, columns: int) -> Array:
    """Pairs and nibbles [rows, K/4] as units [ceil(rows/16), ceil(columns/64), words]; ``columns`` is at least K.

    What lies beyond the weight is zeros with the metadata of indices 0 and 1."""
    rows, groups = nibble.shape
    tiles, across = -(-rows // ROWS), -(-columns // COLUMNS)
    if (rows, groups * 4) != (tiles * ROWS, across * COLUMNS):
        room = (tiles * ROWS, across * COLUMNS // 4)
        wide, marks = xp.zeros(room, 32), xp.zeros(room, 8) + PADDING
        wide[:rows, :groups], marks[:rows, :groups] = pair, nibble
        pair, nibble = wide, marks
    out = xp.zeros((tiles, across, unit.words), 32)
    head, tail = out[..., : unit.value_words], out[..., unit.value_words :]
    quads = _quads(xp, nibble)  # [rows, K/16], 16 bits each
    if unit.bits == 16:
        register = xp.cast(pair, 32).reshape(tiles, 2, 8, across, 2, 2, 4)  # h g unit step c q
        order = xp.permute(register, (0, 3, 4, 2, 6, 5, 1))  # unit step g q c h
        quads = quads.reshape(tiles, 2, 8, across, 4)  # h g unit q
        word = quads[:, 0] | quads[:, 1] << 16
        marks = xp.permute(word, (0, 2, 1, 3))
    else:
        register = xp.view(xp.cast(pair, 16), 32).reshape(tiles, 2, 8, across, 2, 4)  # h g unit c q
        order = xp.permute(register, (0, 3, 2, 5, 4, 1))  # unit g q c h
        quads = quads.reshape(tiles, 2, 8, across, 2, 2)  # h g unit half low/high
        word = quads[..., 0] | quads[..., 1] << 16
        marks = xp.permute(word, (0, 3, 2, 4, 1))  # unit g half h
    head[...] = order.reshape(tiles, across, unit.value_words)
    tail[...] = marks.reshape(tiles, across, METADATA)
    return out


def pairs_and_nibbles(xp: Arrays, unit: Unit, packed: Array) -> tuple[Array, Array]:
    """The inverse of ``units``, padding included: pairs (64-bit) and nibbles (8-bit), [rows, K/4] each."""
    tiles, across, _ = packed.shape
    head, tail = packed[..., : unit.value_words], packed[..., unit.value_words :]
    rows = tiles * ROWS
    if unit.bits == 16:
        order = head.reshape(tiles, across, 2, 8, 4, 2, 2)  # unit step g q c h
        register = xp.permute(order, (0, 6, 3, 1, 2, 5, 4))  # h g unit step c q
        pair = xp.cast(register.reshape(rows, -1), 64) & 0xFFFFFFFF
        word = xp.permute(tail.reshape(tiles, across, 8, 4), (0, 2, 1, 3))  # g unit q
        quads = xp.zeros((tiles, 2, 8, across, 4), 32)
        quads[:, 0], quads[:, 1] = word & 0xFFFF, word >> 16 & 0xFFFF
    else:
        order = head.reshape(tiles, across, 8, 4, 2, 2)  # unit g q c h
        register = xp.permute(order, (0, 5, 2, 1, 4, 3))  # h g unit c q
        pair = xp.cast(xp.view(register.reshape(rows, -1), 16), 64) & 0xFFFF
        word = xp.permute(tail.reshape(tiles, across, 8, 2, 2), (0, 4, 2, 1, 3))  # h g unit half
        quads = xp.zeros((tiles, 2, 8, across, 2, 2), 32)
        quads[..., 0], quads[..., 1] = word & 0xFFFF, word >> 16 & 0xFFFF
    quads = quads.reshape(rows, -1)
    nibble = xp.zeros((*quads.shape, 4), 8)
    for k in range(4):
        nibble[..., k] = quads >> 4 * k & 15
    return pair, nibble.reshape(rows, -1)


def _quads(xp: Arrays, nibble: Array) -> Array:
    """Four nibbles each in the low 16 bits of 32-bit integers."""
    word = xp.view(nibble, 32)  # a nibble a byte
    word = (word | word >> 4) & 0x00FF00FF
    return (word | word >> 8) & 0xFFFF
