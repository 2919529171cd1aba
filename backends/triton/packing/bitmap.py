"""The ``bitmap`` layout: tiles of a weight N x K as bits that say what is stored, and the stored values.

A tile is ``block_rows`` x ``block_columns``; tiles lie [batch][row tile][k tile]. For each tile::

    words    int32 [block_rows, block_columns / 32]: bit b of word w is column 32*w + b
    starts   int16, of the same shape: how many values of the tile stand before those of the word
    values   the tile's values, row by row, contiguous; a tile begins at a multiple of 16 bytes
    offsets  int32: the first value of each tile, then the end

so that column c of a row is ``values[offset + start + popcount(word & ((1 << c % 32) - 1))]`` if its bit is set, and a
tile is one range of memory. N and K are padded with nothing stored. Fact ``entries``: the most values of a tile.

A zero of a dense operand, -0.0 too, is not stored, as everywhere in the library; an entry of a SparseTensor is.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from sparsecc.backends.triton.packing.arrays import BITS, Array, Arrays, arrays_of
from sparsecc.backends.triton.packing.packed import PackedOperand
from sparsecc.backends.triton.packing.two_four import WrongShape, known_dtype
from sparsecc.diagnostics import LimitError, UsageError
from sparsecc.storage import limits
from sparsecc.storage.tensor import SparseTensor

LAYOUT = "bitmap"
DTYPES = ("f16", "bf16", "f32", "i8")
GATHER = 0x0102040810204080
"""Times eight bytes of 0 or 1: their bits, in the highest byte."""


class WrongBlock(UsageError):
    text = (
        "a bitmap tile of {rows} x {columns} is not possible: rows are at least 1, columns a multiple of 32, and a"
        " tile has at most 32768 elements"
    )


class TooManyValues(LimitError):
    text = "the bitmap tiles of a weight of shape {shape} hold over {limit} values"
    help_text = "split the weight along its rows"


class Tiles:
    """How a weight is cut."""

    def __init__(self, shape: tuple[int, ...], block: tuple[int, int]) -> None:
        if len(shape) < 2:
            raise WrongShape(layout=LAYOUT, shape=shape, more="")
        height, width = block
        if height < 1 or width < 32 or width % 32 or height * width > 32768:
            raise WrongBlock(rows=height, columns=width)
        self.shape, self.height, self.width = shape, height, width
        self.batch, self.rows, self.columns = prod(shape[:-2]), shape[-2], shape[-1]
        self.down, self.across = -(-self.rows // height), -(-self.columns // width)
        self.volume = height * width

    def bands(self, xp: Arrays) -> list[tuple[int, int, int]]:
        """Batch and range of row tiles that are worked on at a time."""
        if not self.across:
            return []
        step = max(1, xp.chunk // (self.across * self.volume))
        return [
            (b, start, min(self.down, start + step))
            for b in range(self.batch)
            for start in range(0, self.down, step)
        ]

    def of_rows(self, xp: Arrays, a: Array) -> Array:
        """Rows [r, K] as tiles [tiles, volume], padded with zeros."""
        down = -(-a.shape[0] // self.height)
        wide = xp.zeros((down * self.height, self.across * self.width), a.dtype.itemsize * 8)
        wide[: a.shape[0], : a.shape[1]] = a
        tiles = wide.reshape(down, self.height, self.across, self.width)
        return xp.contiguous(xp.permute(tiles, (0, 2, 1, 3))).reshape(-1, self.volume)

    def to_rows(self, xp: Arrays, tiles: Array, rows: int) -> Array:
        """The inverse of ``of_rows``."""
        whole = tiles.reshape(-1, self.across, self.height, self.width)
        wide = xp.permute(whole, (0, 2, 1, 3)).reshape(-1, self.across * self.width)
        return wide[:rows, : self.columns]


def pack_bitmap(weight: Any, *, block: tuple[int, int] = (64, 64)) -> PackedOperand:
    """The ``bitmap`` layout of a weight [..., N, K], where its arrays are: a dense NumPy array or torch tensor (f16,
    bf16, f32, i8), or a SparseTensor of any format, whose stored entries are kept, explicit zeros too."""
    stored: Array = None
    if isinstance(weight, SparseTensor):
        size, shape = limits.volume(weight.shape), weight.shape
        limits.refuse_beyond(size, 4, limits.MAX_DENSE_BYTES, "a dense copy to pack", shape)
        coordinates, entries = weight.to_coords()
        stored = np.zeros(shape, dtype=np.int8)
        stored[coordinates] = 1
        weight = np.zeros(shape, dtype=entries.dtype)  # not to_numpy, which adds: -0.0 stays
        weight[coordinates] = entries
    xp = arrays_of(weight)
    dtype = known_dtype(xp, weight, DTYPES, LAYOUT)
    shape = tuple(int(n) for n in weight.shape)
    cut = Tiles(shape, block)
    matrices = xp.bits(weight).reshape(cut.batch, cut.rows, cut.columns)
    kept = None if stored is None else stored.reshape(matrices.shape)
    magnitude = -1 if dtype == "i8" else (1 << (BITS[dtype] - 1)) - 1
    line = 16 // matrices.dtype.itemsize
    words, starts, ends, values = (list[Array]() for _ in range(4))
    total = most = 0
    for b, first, last in cut.bands(xp):
        rows = slice(first * cut.height, min(cut.rows, last * cut.height))
        tiles = cut.of_rows(xp, matrices[b, rows])
        mask = (tiles & magnitude) != 0 if kept is None else cut.of_rows(xp, kept[b, rows]) != 0
        words.append(_words(xp, mask))
        at = xp.nonzero(mask.reshape(-1))
        counts = xp.bincount(at >> 5, len(words[-1]))
        before = (xp.cumsum(counts) - counts).reshape(len(tiles), -1)
        per_tile = counts.reshape(len(tiles), -1).sum(1)
        start = before - before[:, :1]
        starts.append(xp.cast(start, 16).reshape(-1))
        room = (per_tile + line - 1) // line * line
        finish = xp.cumsum(room)
        size, most = int(finish[-1]), max(most, int(per_tile.max()))
        if total + size > limits.INT32_MAX:
            raise TooManyValues(shape=shape, limit=limits.INT32_MAX)
        tile = at // cut.volume
        out = xp.zeros((size,), BITS[dtype])
        shift = finish - room - before[:, 0]
        out[xp.arange(0, len(at)) + shift[tile]] = tiles.reshape(-1)[at]
        values.append(out)
        ends.append(xp.cast(finish + total, 32))
        total += size
    joined = {
        "words": xp.concatenate([*words, xp.zeros((0,), 32)]),
        "starts": xp.concatenate([*starts, xp.zeros((0,), 16)]),
        "offsets": xp.concatenate([xp.zeros((1,), 32), *ends]),
        "values": xp.values(xp.concatenate([*values, xp.zeros((0,), BITS[dtype])]), dtype),
    }
    facts = {"block_rows": cut.height, "block_columns": cut.width, "entries": most}
    return PackedOperand(LAYOUT, shape, dtype, joined, facts)


def unpack_bitmap(operand: PackedOperand) -> Array:
    """The dense weight, bit for bit."""
    operand.expect(LAYOUT)
    cut = Tiles(operand.shape, (operand.facts["block_rows"], operand.facts["block_columns"]))
    words, offsets, values = (operand.arrays[role] for role in ("words", "offsets", "values"))
    xp = arrays_of(words)
    bits = xp.bits(values)
    width = BITS[operand.dtype]
    out = xp.zeros((cut.batch, cut.rows, cut.columns), width)
    per_tile = cut.volume // 32
    for b, first, last in cut.bands(xp):
        tile, end = (b * cut.down + first) * cut.across, (b * cut.down + last) * cut.across
        word = words[tile * per_tile : end * per_tile]
        mask = word.reshape(-1, 1) >> xp.cast(xp.arange(0, 32), 32) & 1
        at = xp.nonzero(mask.reshape(-1))
        owner = at // cut.volume
        counts = xp.bincount(owner, end - tile)
        rank = xp.arange(0, len(at)) - (xp.cumsum(counts) - counts)[owner]
        tiles = xp.zeros(((end - tile) * cut.volume,), width)
        tiles[at] = bits[xp.cast(offsets[tile:end], 64)[owner] + rank]
        stop = min(cut.rows, last * cut.height)
        out[b, first * cut.height : stop] = cut.to_rows(xp, tiles, stop - first * cut.height)
    return xp.values(out.reshape(operand.shape), operand.dtype)


def _words(xp: Arrays, mask: Array) -> Array:
    """Bits of a mask, 32 a word, the first the lowest."""
    eight = xp.view(xp.cast(mask, 8).reshape(-1, 32), 64)
    return xp.view(xp.cast(eight * GATHER >> 56, 8), 32).reshape(-1)
