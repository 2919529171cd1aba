"""The direct conversions: what two formats have in common decides how one becomes the other.

Each takes a tensor and the wanted format and gives the tensor; when each applies, and at what cost,
is the table of :mod:`sparsecc.storage.conversion_graph`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsecc.formats import Format, LevelArrays
from sparsecc.formats.level import AnyInts, Ints
from sparsecc.formats.levels.compressed import Compressed
from sparsecc.formats.levels.dense import Dense
from sparsecc.formats.levels.singleton import Singleton
from sparsecc.formats.names import bsr
from sparsecc.storage import limits
from sparsecc.storage.order import stable_argsort
from sparsecc.storage.pack import gather_blocks, pack, pack_dense, pack_levels, unpack, with_widths
from sparsecc.storage.tensor import SparseTensor

USE_SCIPY = True
"""Whether counting sorts may use SciPy's compiled ones; tests turn it off to run NumPy's."""


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


def is_relabelling(src: Format, dst: Format) -> bool:
    """Whether both store the same numbers: only widths, ``soa`` or ``batch`` differ."""
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
    return bool(walk(src)) and walk(src) == walk(dst) and not src.is_dense and not dst.is_dense


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


def _ends(rows: AnyInts, extent: int) -> Ints:
    """Positions of sorted rows: where each row starts, and the end."""
    if len(rows) > 8 * extent:
        return np.searchsorted(rows, np.arange(extent + 1, dtype=rows.dtype)).astype(np.int64)
    ends = np.zeros(extent + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=extent), out=ends[1:])
    return ends


def transpose_rows(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    """Rows to columns or back, by a stable counting sort."""
    level = tensor.levels[1]
    assert level.positions is not None and level.coordinates is not None
    outer, inner = tensor.level_sizes
    limits.refuse_beyond(
        inner, 8, limits.MAX_DENSE_BYTES if limit is None else limit, "the positions", tensor.shape
    )
    library = _scipy() if limits.volume(tensor.shape) else None
    if library is not None:
        coordinates, positions = _signed(level.coordinates), _signed(level.positions)
        rows = library.csr_array((tensor.values, coordinates, positions), shape=(outer, inner))
        columns = rows.tocsc()
        arrays = [LevelArrays(), LevelArrays(columns.indptr, columns.indices)]
        return SparseTensor(tensor.shape, dst, _sized(dst, arrays), columns.data)
    counts = np.diff(level.positions)
    order = stable_argsort(level.coordinates.astype(np.int64), inner)
    rows = np.repeat(np.arange(outer, dtype=np.int64), counts)[order]
    arrays = [LevelArrays(), LevelArrays(_ends(level.coordinates[order], inner), rows)]
    return SparseTensor(tensor.shape, dst, with_widths(dst, arrays), tensor.values[order])


def bsr_to_rows(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    """Block rows to rows: whole rows of blocks move, then zeros are dropped."""
    level = tensor.levels[1]
    assert level.positions is not None and level.coordinates is not None
    _, _, high, wide = tensor.level_sizes
    positions = level.positions.astype(np.int64)
    counts = np.diff(positions)
    start = np.repeat(positions[:-1], counts)
    # Row i of block b of a block row with n blocks comes after the i rows of n blocks each.
    slot = np.arange(len(start)) + (high - 1) * start
    slots = (slot[:, None] + np.arange(high) * np.repeat(counts, counts)[:, None]).reshape(-1)
    values = np.empty((len(slots), wide), dtype=tensor.dtype)
    values[slots] = tensor.values.reshape(-1, wide)
    first = np.empty(len(slots), dtype=np.int64)
    first[slots] = np.repeat(level.coordinates.astype(np.int64) * wide, high)
    flat = np.flatnonzero(values.reshape(-1) != 0)
    piece = flat // wide
    coordinates = first[piece] + (flat - piece * wide)
    pieces = np.zeros(len(counts) * high + 1, dtype=np.int64)
    np.cumsum(np.repeat(counts, high), out=pieces[1:])
    ends = np.searchsorted(flat, pieces[: tensor.shape[0] + 1] * wide)
    arrays = [LevelArrays(), LevelArrays(ends.astype(np.int64), coordinates)]
    return SparseTensor(tensor.shape, dst, with_widths(dst, arrays), values.reshape(-1)[flat])


def rows_to_bsr(tensor: SparseTensor, dst: Format, limit: int | None) -> SparseTensor:
    """Rows to block rows: each entry goes to its place in its block, without sorting."""
    (rows, columns), values = tensor.entries()
    _, _, high, wide = sizes = dst.level_sizes(tensor.shape)
    outer, across = rows // high, columns // wide
    coords = [outer, across, rows - outer * high, columns - across * wide]
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


# -- helpers ---------------------------------------------------------------------------------------


def _scipy() -> Any:
    if not USE_SCIPY:
        return None
    try:
        from scipy import sparse
    except ImportError:
        return None
    return sparse


def _signed(array: AnyInts) -> AnyInts:
    return array if array.dtype.name in ("int32", "int64") else array.astype(np.int64)


def _sized(dst: Format, arrays: Sequence[LevelArrays]) -> tuple[LevelArrays, ...]:
    """The arrays as they are where the format fixes no width and they agree on 32 or 64 bits."""
    for role, width in (("positions", dst.pos_width), ("coordinates", dst.crd_width)):
        found = {a.dtype.name for level in arrays for r, a in level if r == role}
        if width or len(found) > 1 or not found <= {"int32", "int64"}:
            return with_widths(dst, arrays)
    return tuple(arrays)
