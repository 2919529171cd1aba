"""The entries of a residual: where each lands in the kernel's fragment tile, and in which order they are stored.

The residual R has its values where the 2:4 part P has none, so its metadata is the complement of P's and R is a second
fragment tile. A kernel zeroes that tile in shared memory and stores the entries of a chunk into it. An entry is one
word, ``(byte offset << 16) | bits``; the offset counts from 512 bytes before the tile, and 0 is padding, which lands
in those 512 bytes::

    offset = 512 + (step*32 + lane)*16 + register*4 + half*2       compressed column cc = 2*((k % 32) / 4) + slot
    lane = (row % 8)*4 + (cc % 8)/2,  register = (cc / 8)*2 + (row % 16)/8,  half = cc % 2
    slot = 0 for the lower of the two columns that P leaves out, else 1

A warp stores element j of its lanes' vectors together: 32 entries, which should go to 32 different banks. So the
entries of a chunk are sorted by (rank among those of their bank, bank), and position ``p`` of each 128 is element
``p / 32`` of vector ``p % 32``; the last n < 128 fill ``v = ceil(n / 4)`` vectors, element ``p / v`` of vector
``p % v``.
"""

from __future__ import annotations

from sparsecc.backends.triton.packing.arrays import Array, Arrays
from sparsecc.backends.triton.packing.groups import complement

BASE = 512
"""Bytes before the tile that padding may write to."""
WORD_BITS, RANK_BITS, BANK_BITS = 29, 6, 5
"""An offset is below 2**13; a chunk has at most 64 halves a bank."""


def entry_words(
    xp: Arrays, row: Array, column: Array, bits: Array, nibble: Array, steps: int
) -> Array:
    """The words of entries (64-bit integers); ``nibble`` [rows, K/4] is P's metadata."""
    kept_out = xp.cast(complement(nibble[row, column >> 2]), 64)
    slot = ((column & 3) != (kept_out & 3)) * 1
    compressed = 2 * ((column & 31) >> 2) + slot
    lane = (row & 7) * 4 + ((compressed & 7) >> 1)
    register = (compressed >> 3) * 2 + ((row >> 3) & 1)
    step = (column >> 5) % steps
    offset = BASE + (step * 32 + lane) * 16 + register * 4 + (compressed & 1) * 2
    return offset << 16 | xp.cast(bits, 64) & 0xFFFF


def places(
    xp: Arrays, word: Array, tile: Array, chunk: Array, nibble: Array, steps: int
) -> tuple[Array, Array]:
    """The rows and columns of words: the inverse of ``entry_words``. ``tile`` and ``chunk`` (along k) say whose they
    are."""
    offset = (word >> 16) - BASE
    lane, register = (offset >> 4) & 31, (offset >> 2) & 3
    compressed = (register >> 1) * 8 + (lane & 3) * 2 + ((offset >> 1) & 1)
    row = tile * 16 + (register & 1) * 8 + (lane >> 2)
    group = (chunk * steps + (offset >> 9)) * 8 + (compressed >> 1)
    kept_out = xp.cast(complement(nibble[row, group]), 64)
    first = (compressed & 1) == 0
    index = first * (kept_out & 3) + ~first * (kept_out >> 2)
    return row, group * 4 + index


def vectors(counts: Array) -> Array:
    """Vectors of four words that so many entries take."""
    return (counts >> 7) * 32 + ((counts & 127) + 3) // 4


def ordered(xp: Arrays, word: Array, chunk: Array, chunks: int) -> tuple[Array, Array, Array]:
    """Words sorted for their stores; each one's chunk; and its place among the words of the chunk's vectors."""
    bank = (word >> 18) & 31
    key = xp.sort((chunk * 32 + bank) << 32 | word)
    shelf = key >> 32
    counts = xp.bincount(shelf, chunks * 32)
    rank = xp.arange(0, len(key)) - (xp.cumsum(counts) - counts)[shelf]
    word, bank, chunk = key & 0xFFFFFFFF, shelf & 31, shelf >> 5
    key = xp.sort(
        chunk << (WORD_BITS + BANK_BITS + RANK_BITS)
        | rank << (WORD_BITS + BANK_BITS)
        | bank << WORD_BITS
        | word
    )
    counts = xp.bincount(chunk, chunks)
    at = xp.arange(0, len(key)) - (xp.cumsum(counts) - counts)[chunk]
    rest = (counts & 127)[chunk]
    full = (at >> 7) < (counts >> 7)[chunk]
    width = full * 32 + ~full * ((rest + 3) // 4)
    width = width + (width == 0)
    inside = at & 127
    place = (at >> 7) * 128 + inside % width * 4 + inside // width
    return key & ((1 << WORD_BITS) - 1), chunk, place
