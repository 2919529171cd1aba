"""The direct conversions: what two formats have in common decides how one becomes the other.

Each takes a tensor and the wanted format and gives the tensor; when each applies, and at what cost,
is the table of :mod:`sparsecc.storage.conversion_graph`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsecc.formats import Format, LevelArrays, SumFormat
from sparsecc.formats.level import AnyInts
from sparsecc.formats.levels.compressed import Compressed
from sparsecc.formats.levels.dense import Dense
from sparsecc.formats.levels.singleton import Singleton
from sparsecc.formats.names import bsr
from sparsecc.storage import compiled, limits
from sparsecc.storage.layout import AnyArray, is_nonzero
from sparsecc.storage.order import distinct, stable_argsort
from sparsecc.storage.pack import gather_blocks, pack, pack_dense, pack_levels, unpack, with_widths
from sparsecc.storage.sums import sum_tensor
from sparsecc.storage.tensor import SparseTensor

# -- what a format is ------------------------------------------------------------------------------


def is_rows(fmt: Format) -> bool:
    """Compressed rows of a matrix, or columns: CSR, CSC."""
    return fmt.levels == (Dense(), Compressed()) and fmt.is_permutation


def is_coordinates(fmt: Format) -> bool:
    """Sorted coordinates of a matrix, row by row or column by column."""
    head, tail = fmt.levels[:1], fmt.levels[1:]
    return head == (Compressed(unique=False),) and tail in ((Singleton(),), (Singleton(soa=True),))


def is_bsr(fmt: Format) -> bool:
    """Row-major blocks in compressed rows."""
    if len(fmt.exprs) != 4 or fmt.rank != 2:
        return False
    rows, columns = fmt.exprs[0].div, fmt.exprs[1].div
    return fmt.with_widths(0, 0) == bsr(rows, columns)


def is_sum(fmt: Format) -> bool:
    """A sum of parts, each in its own format."""
    return isinstance(fmt, SumFormat)


def is_relabelling(src: Format, dst: Format) -> bool:
    """Whether both store the same numbers: only widths, ``soa`` or ``batch`` differ."""
    if is_sum(src) or is_sum(dst):
        return False
    return src.exprs == dst.exprs and [_plain(a) for a in src.levels] == [
        _plain(b) for b in dst.levels
    ]


def _plain(level: Any) -> Any:
    if isinstance(level, Singleton):
        return Singleton(unique=level.unique, ordered=level.ordered)
    return Dense() if isinstance(level, Dense) else level


def walk(fmt: Format) -> tuple[int, ...]:
    """The order of dimensions in which entries are stored sorted; empty if there is none."""
    last = fmt.levels[-1] if fmt.levels else None
    if last is None or not fmt.ordered or not last.unique:
        return ()
    order = tuple(dict.fromkeys(e.dim for e in fmt.exprs))
    wanted = sorted(fmt.exprs, key=lambda e: (order.index(e.dim), -e.div))
    return order if wanted == list(fmt.exprs) else ()


def same_walk(src: Format, dst: Format) -> bool:
    """Whether the entries of one format, as they stand, are sorted for the other."""
    return bool(walk(src)) and walk(src) == walk(dst)


# -- the conversions -------------------------------------------------------------------------------


def relabel(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    return SparseTensor(tensor.shape, dst, _sized(dst, tensor.levels), tensor.values)


def rows_to_coordinates(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    level = tensor.levels[1]
    assert level.positions is not None and level.coordinates is not None
    extent = tensor.level_sizes[0]
    dtype = level.coordinates.dtype if extent <= limits.INT32_MAX else np.dtype(np.int64)
    rows = np.repeat(np.arange(extent, dtype=dtype), np.diff(level.positions))
    ends = np.array([0, len(rows)], dtype=level.positions.dtype)
    arrays = [LevelArrays(ends, rows), LevelArrays(None, level.coordinates)]
    return SparseTensor(tensor.shape, dst, _sized(dst, arrays), tensor.values)


def coordinates_to_rows(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    outer, inner = tensor.levels
    assert outer.coordinates is not None
    extent = tensor.level_sizes[0]
    limits.refuse_beyond(
        extent, 8, limits.MAX_DENSE_BYTES if limit is None else limit, "the positions", tensor.shape
    )
    arrays = [LevelArrays(), LevelArrays(_ends(outer.coordinates, extent), inner.coordinates)]
    return SparseTensor(tensor.shape, dst, _sized(dst, arrays), tensor.values)


def _ends(rows: AnyInts, extent: int) -> AnyInts:
    """Positions of sorted rows: where each row starts, and the end."""
    dtype = limits.inferred_dtype(len(rows))
    if len(rows) > 32 * extent:
        return np.searchsorted(rows, np.arange(extent + 1, dtype=rows.dtype)).astype(dtype)
    ends = np.zeros(extent + 1, dtype=dtype)
    np.cumsum(np.bincount(rows, minlength=extent), out=ends[1:])
    return ends


def transpose_rows(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    """Rows to columns or back, by a stable counting sort."""
    rows = _arrays(tensor)
    outer, inner = tensor.level_sizes
    cap = limits.MAX_DENSE_BYTES if limit is None else limit
    limits.refuse_beyond(inner, 8, cap, "the positions", tensor.shape)
    made = compiled.transposed(rows, (outer, inner))
    if made is None:
        positions, coordinates, values = rows
        order = stable_argsort(coordinates.astype(np.int64), inner)
        numbers = np.repeat(np.arange(outer, dtype=np.int64), np.diff(positions))[order]
        made = _ends(coordinates[order], inner), numbers, values[order]
    return _rows(tensor.shape, dst, *made)


def bsr_to_rows(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    """Block rows to rows; zeros are dropped."""
    positions, coordinates, values = _arrays(tensor)
    outer, across, high, wide = tensor.level_sizes
    blocks = positions, coordinates, values.reshape(-1, high, wide)
    made = compiled.blocks_to_rows(blocks, (outer * high, across * wide))
    starts, columns, values = _split_blocks(*blocks) if made is None else made
    flat = np.flatnonzero(is_nonzero(values))
    # Rows and columns beyond the shape, where a block hangs over the edge, hold zeros only.
    ends = np.searchsorted(flat, starts[: tensor.shape[0] + 1]).astype(starts.dtype)
    return _rows(tensor.shape, dst, ends, columns[flat], values[flat])


def _split_blocks(positions: AnyInts, coordinates: AnyInts, blocks: AnyArray) -> compiled.Rows:
    """``compiled.blocks_to_rows`` in NumPy: whole rows of blocks move."""
    high, wide = int(blocks.shape[1]), int(blocks.shape[2])
    counts = np.diff(positions.astype(np.int64))
    start = np.repeat(positions[:-1].astype(np.int64), counts)
    # Row i of block b of a block row with n blocks comes after the i rows of n blocks each.
    slot = np.arange(len(start)) + (high - 1) * start
    within = np.outer(np.repeat(counts, counts), np.arange(high, dtype=np.int64)).reshape(-1)
    slots = np.repeat(slot, high) + within
    values = np.empty((len(slots), wide), dtype=blocks.dtype)
    values[slots] = blocks.reshape(-1, wide)
    first = np.empty(len(slots), dtype=np.int64)
    first[slots] = np.repeat(coordinates.astype(np.int64) * wide, high)
    starts = np.zeros(len(counts) * high + 1, dtype=np.int64)
    np.cumsum(np.repeat(counts, high) * wide, out=starts[1:])
    columns = np.repeat(first, wide) + np.tile(np.arange(wide, dtype=np.int64), len(first))
    return starts, columns, values.reshape(-1)


def rows_to_bsr(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    """Rows to block rows: each entry goes to its place in its block, without sorting."""
    positions, coordinates, values = _arrays(tensor)
    outer, across, high, wide = sizes = dst.level_sizes(tensor.shape)
    cap = limits.MAX_DENSE_BYTES if limit is None else limit
    limits.refuse_beyond(outer * high - tensor.shape[0], 8, cap, "the positions", tensor.shape)
    cells = high * wide
    if min(len(values), outer * across) * cells * values.dtype.itemsize > cap:
        # Looked at closely only where blocks with one entry each would be too much.
        (rows, columns), _ = tensor.entries()
        key = (rows // high).astype(np.int64) * across + columns // wide
        count = len(distinct(key, outer * across)[0])
        if count * cells > len(values):
            limits.refuse_beyond(
                count * cells, values.dtype.itemsize, cap, f"{count} blocks", tensor.shape
            )
    over = np.full(outer * high - tensor.shape[0], positions[-1], dtype=positions.dtype)
    grown = np.concatenate((positions, over)) if len(over) else positions
    made = compiled.rows_to_blocks(
        (grown, coordinates, values), (outer * high, across * wide), (high, wide)
    )
    if made is not None:
        return _rows(tensor.shape, dst, *made)
    (rows, columns), values = tensor.entries()
    block_row, block_column = rows // high, columns // wide
    inner = [rows - block_row * high, columns - block_column * wide]
    coords = [block_row, block_column, *inner]
    gathered = gather_blocks(coords, values, sizes, 2)
    if gathered is None:
        return pack_levels(coords, values, tensor.shape, dst, max_dense_bytes=limit)
    return pack_levels(*gathered, tensor.shape, dst, True, limit)


def through_dense(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    """From a dense format, or to one."""
    cap = limits.MAX_DENSE_BYTES if limit is None else limit
    return pack_dense(tensor.to_numpy(cap), dst, limit)


def in_order(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    """All entries as they stand."""
    coords, values = unpack(tensor)
    return pack(coords, values, tensor.shape, dst, sorted_unique=True, max_dense_bytes=limit)


def through_entries(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    """The universal conversion: all entries, sorted anew."""
    coords, values = unpack(tensor)
    return pack(coords, values, tensor.shape, dst, max_dense_bytes=limit)


def relabel_parts(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    """A sum whose parts only change widths."""
    assert isinstance(dst, SumFormat)
    pairs = zip(tensor.parts, dst.parts, strict=True)
    return sum_tensor([p if p.format == f else relabel(p, f, limit) for p, f in pairs])


# -- helpers ---------------------------------------------------------------------------------------


def _arrays(tensor: SparseTensor) -> compiled.Rows:
    """Positions, coordinates and values of compressed rows."""
    level = tensor.levels[1]
    assert level.positions is not None and level.coordinates is not None
    return level.positions, level.coordinates, tensor.values


def _rows(
    shape: tuple[int, ...], dst: Format, positions: AnyInts, coordinates: AnyInts, values: AnyArray
) -> SparseTensor:
    """A tensor of compressed rows (or rows of blocks)."""
    below = (LevelArrays(),) * (dst.num_levels - 2)
    levels = (LevelArrays(), LevelArrays(positions, coordinates), *below)
    return SparseTensor(shape, dst, _sized(dst, levels), values.reshape(-1))


def _sized(dst: Format, arrays: Sequence[LevelArrays]) -> tuple[LevelArrays, ...]:
    """The arrays as they are where the format fixes no width and they agree on 32 or 64 bits."""
    for role, width in (("positions", dst.pos_width), ("coordinates", dst.crd_width)):
        found = {a.dtype.name for level in arrays for r, a in level if r == role}
        if width or len(found) > 1 or not found <= {"int32", "int64"}:
            return with_widths(dst, arrays)
    return tuple(arrays)
