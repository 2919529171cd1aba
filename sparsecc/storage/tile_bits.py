"""Blocks and groups of a matrix, counted on bits.

The matrix is cut into windows of 64 columns; a row's window is a word of 64 bits, one an entry. Blocks of ``r x c``
are fields of c bits that are not 0, in words of r rows: the rows are put together with *or*, two by two, six times.
Whether the words come of an array or of sorted coordinates, counting is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc.formats.level import AnyInts, Ints
from sparsecc.statistics import BlockFill, GroupFit
from sparsecc.storage.limits import INT32_MAX, INT64_MAX
from sparsecc.storage.order import sorted_order

Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

SIDE = 64
"""Columns of a word, and rows of a tile."""

WIDTHS: dict[int, tuple[int, ...]] = {
    # by rows of a block, in ascending order
    1: (8, 16),  # 64 bytes of f64 or f32: the lines of x that a row touches
    2: (2,),
    4: (1, 4),
    8: (1, 8),  # 8 x 1: the vectors of a dense matrix instruction
    16: (1, 16),
    32: (32,),
    64: (1, 64),  # 64 x 1: the rows of a dense operand that a panel of rows reads
}
GROUPS = ((2, 4), (1, 4), (4, 8))

PIECE = 1 << 14
"""Words that are counted at a time: they and what is made of them stay in the cache."""

_LOWEST = {
    # by width of a field: its lowest bit, in all fields of a word
    width: np.uint64(sum(1 << at for at in range(0, SIDE, width)))
    for width in (2, 4, 8)
}
_PAIRS, _NIBBLES = np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_ONE, _TWO, _FOUR = np.uint64(1), np.uint64(2), np.uint64(4)
_COUNT: Any = getattr(np, "bitwise_count", None)  # of NumPy 2


def ones(words: Words) -> int:
    """How many bits are set."""
    if _COUNT is not None:
        return int(_COUNT(words).sum(dtype=np.int64))
    octets = _octet_counts(_nibble_counts(words))
    return int(((octets * _LOWEST[8]) >> np.uint64(56)).sum(dtype=np.int64))


def _nibble_counts(words: Words) -> Words:
    pairs = words - ((words >> _ONE) & _LOWEST[2])
    return (pairs & _PAIRS) + ((pairs >> _TWO) & _PAIRS)


def _octet_counts(nibbles: Words) -> Words:
    return (nibbles + (nibbles >> _FOUR)) & _NIBBLES


def fields(words: Words, width: int) -> int:
    """How many fields of that many bits are not 0."""
    if width == 1:
        return ones(words)
    if width >= 8:
        return int(np.count_nonzero(words.view(f"u{width // 8}")))
    words = words | (words >> _ONE)
    if width == 4:
        words |= words >> _TWO
    return ones(words & _LOWEST[width])


Found = Counter[tuple[str, int, int]]
"""Numbers by what is counted: ``("block", rows, columns)``, ``("bad", n, m)`` groups, ``("over", n, m)`` entries."""


class BitCounts:
    """Blocks and groups of the tiles that were added. Every tile of 64 x 64 must come whole."""

    def __init__(self) -> None:
        self.entries = 0
        self.found: Found = Counter()

    # -- where words come from -------------------------------------------------------------------

    def add_mask(self, mask: Mask) -> None:
        """Rows of a matrix, whose first is a multiple of 64."""
        rows, columns = mask.shape
        words = np.zeros((-(-rows // SIDE) * SIDE, -(-columns // SIDE)), "<u8")
        octets = np.packbits(mask, axis=1, bitorder="little")
        words.view(np.uint8)[:rows, : octets.shape[1]] = octets
        words = words.astype(np.uint64, copy=False)
        self._count_rows(words[:rows].reshape(-1))
        for height, widths in WIDTHS.items():
            if height > 1:
                words = words[0::2] | words[1::2]
            self._count_blocks(height, widths, words.reshape(-1))

    def add_coordinates(self, rows: AnyInts, columns: AnyInts, shape: Sequence[int]) -> None:
        """Different entries in any order."""
        if not len(rows):
            return
        keys, words = _words(rows, columns, shape)
        self._count_rows(words)
        for height, widths in WIDTHS.items():
            if height > 1:
                keys, words = _halved(keys, words)
            self._count_blocks(height, widths, words)

    # -- counting --------------------------------------------------------------------------------

    def _count_blocks(self, height: int, widths: tuple[int, ...], words: Words) -> None:
        for at in range(0, len(words), PIECE):
            piece = words[at : at + PIECE]
            for width in widths:
                self.found["block", height, width] += fields(piece, width)

    def _count_rows(self, words: Words) -> None:
        for at in range(0, len(words), PIECE):
            piece = words[at : at + PIECE]
            self.entries += ones(piece)
            # A single entry overfills no group.
            several = piece[(piece & (piece - _ONE)) != 0]
            if len(several):
                self._count_groups(several)

    def _count_groups(self, words: Words) -> None:
        counts = _nibble_counts(words)  # 0 to 4 in each four bits
        low, middle, high = counts, counts >> _ONE, counts >> _TWO
        quarter = _LOWEST[4]
        full = ones(high & quarter)
        self._over(2, 4, bad := ones((high | (middle & low)) & quarter), bad + full)
        kept = ones((low | middle | high) & quarter)
        self._over(1, 4, ones((middle | high) & quarter), ones(words) - kept)
        # Of 5 to 8 in each eight bits, adding 3 sets the fourth bit; the lower two are what is over, less 1.
        octets = _octet_counts(counts) + np.uint64(3) * _LOWEST[8]
        over = (octets >> np.uint64(3)) & _LOWEST[8]
        bad = ones(over)
        self._over(4, 8, bad, bad + ones(octets & over) + 2 * ones((octets >> _ONE) & over))

    def _over(self, n: int, m: int, groups: int, entries: int) -> None:
        self.found["bad", n, m] += groups
        self.found["over", n, m] += entries

    def scaled(self, entries: int) -> Found:
        """What was found, of ``entries`` of which those that were counted are a fair part."""
        if self.entries in (0, entries):
            return self.found
        return Counter({k: round(n * entries / self.entries) for k, n in self.found.items()})


def block_fills(found: Found, shape: Sequence[int], nnz: int) -> tuple[BlockFill, ...]:
    fills: list[BlockFill] = []
    for rows, widths in WIDTHS.items():
        for columns in widths:
            grid = -(-shape[0] // rows) * -(-shape[1] // columns)
            count = min(found["block", rows, columns], grid)
            fill = min(1.0, nnz / (count * rows * columns)) if count else 0.0
            fills.append(BlockFill(rows, columns, count, fill))
    return tuple(fills)


def group_fits(found: Found, shape: Sequence[int]) -> tuple[GroupFit, ...]:
    fits: list[GroupFit] = []
    for n, m in GROUPS:
        groups = shape[0] * -(-shape[1] // m)
        bad = min(found["bad", n, m], groups)
        fits.append(GroupFit(n, m, 1 - bad / groups if groups else 1.0, found["over", n, m]))
    return tuple(fits)


def _words(rows: AnyInts, columns: AnyInts, shape: Sequence[int]) -> tuple[Ints, Words]:
    """The windows with an entry: numbers that ascend by tile and then by row, and their bits."""
    grid = [-(-extent // SIDE) for extent in shape[:2]]
    cells = grid[0] * grid[1] * SIDE * SIDE
    if cells <= INT32_MAX:
        rows, columns = rows.astype(np.int32, copy=False), columns.astype(np.int32, copy=False)
    elif cells <= INT64_MAX:
        rows, columns = rows.astype(np.int64, copy=False), columns.astype(np.int64, copy=False)
    if cells <= INT64_MAX:
        tiles = (rows >> 6) * rows.dtype.type(grid[1])
        tiles += columns >> 6
    else:
        tiles = _ranks([rows >> 6, columns >> 6], grid)
    keys = (tiles << 12) | ((rows & 63) << 6) | (columns & 63)
    keys.sort()
    bits = _ONE << (keys & 63).astype(np.uint64)
    keys >>= 6
    changes = np.flatnonzero(keys[1:] != keys[:-1])
    if len(changes) + 1 == len(keys):
        return keys, bits
    starts = np.concatenate(([0], changes + 1))
    return keys[starts], np.bitwise_or.reduceat(bits, starts)


def _ranks(coords: Sequence[AnyInts], sizes: Sequence[int]) -> Ints:
    """Numbers for coordinates of a space too large to number, in their order."""
    order, first = sorted_order(coords, sizes, len(coords[0]))
    rank: Ints = np.arange(len(coords[0])) if first is None else np.cumsum(first) - 1
    if order is None:
        return rank
    found = np.empty(len(rank), np.int64)
    found[order] = rank
    return found


def _halved(keys: Ints, words: Words) -> tuple[Ints, Words]:
    """Words of twice as many rows: of pairs that differ in the lowest bit of their number."""
    keys = keys >> 1
    seconds = np.flatnonzero(keys[1:] == keys[:-1]) + 1
    if not len(seconds):
        return keys, words
    first = np.ones(len(keys), np.bool_)
    first[seconds] = False
    merged = words[first]
    merged[seconds - np.arange(1, len(seconds) + 1)] |= words[seconds]
    return keys[first], merged
