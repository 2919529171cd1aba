"""Between lists of entries and stored levels, vectorised: ``pack`` and its inverse ``unpack``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparsecc.formats import Format, LevelArrays, SumFormat
from sparsecc.formats.level import AnyInts, Ints
from sparsecc.storage import limits
from sparsecc.storage.layout import (
    AnyArray,
    block_depth,
    dim_coordinates,
    is_nonzero,
    level_coordinates,
    to_level_array,
)
from sparsecc.storage.leaders import dense_leaders, entry_leaders
from sparsecc.storage.order import distinct, linear_key, sort_and_combine, split_key
from sparsecc.storage.sums import sum_tensor
from sparsecc.storage.tensor import SparseTensor


def pack(
    coords: Sequence[AnyInts],
    values: AnyArray,
    shape: Sequence[int],
    fmt: Format,
    *,
    sorted_unique: bool = False,
    max_dense_bytes: int | None = None,
) -> SparseTensor:
    """A tensor of trusted entries: ``coords[d][e]`` is entry e's coordinate in dimension d, in
    range.

    Entries come in any order; repeated ones are added (bool: or; integers wrap around in the
    values' dtype).
    ``sorted_unique`` promises that they ascend strictly in the order of the format's levels.
    Explicit zeros are stored. Raises LimitError (an array that follows from the shape exceeds
    ``max_dense_bytes``, 1 GiB by default; an index exceeds the format's width) and FormatError (a
    level can't hold the entries)."""
    if isinstance(fmt, SumFormat):
        return _pack_sum(coords, values, shape, fmt, max_dense_bytes)
    level_coords = level_coordinates(fmt, coords)
    return pack_levels(level_coords, values, shape, fmt, sorted_unique, max_dense_bytes)


def _pack_sum(
    coords: Sequence[AnyInts],
    values: AnyArray,
    shape: Sequence[int],
    fmt: SumFormat,
    limit: int | None,
) -> SparseTensor:
    """Each part takes what it can hold of what those before it have left; the last one takes the
    rest. Formats that store zeros of their own accord hold none that is an entry."""
    coords, values = sort_and_combine(coords, values, shape)
    if fmt.padded:
        there = is_nonzero(values)
        coords, values = [c[there] for c in coords], values[there]
    parts: list[SparseTensor] = []
    for part in fmt.parts[:-1]:
        taken = entry_leaders(coords, values, shape, part)
        parts.append(
            pack([c[taken] for c in coords], values[taken], shape, part, max_dense_bytes=limit)
        )
        coords, values = [c[~taken] for c in coords], values[~taken]
    parts.append(pack(coords, values, shape, fmt.parts[-1], max_dense_bytes=limit))
    return sum_tensor(parts)


def _pack_dense_sum(array: AnyArray, fmt: SumFormat, limit: int | None) -> SparseTensor:
    zero = array.dtype.type(0)
    parts: list[SparseTensor] = []
    for part in fmt.parts[:-1]:
        taken = dense_leaders(array, part)
        parts.append(pack_dense(np.where(taken, array, zero), part, limit))
        array = np.where(taken, zero, array)
    parts.append(pack_dense(array, fmt.parts[-1], limit))
    return sum_tensor(parts)


def pack_levels(
    level_coords: Sequence[AnyInts],
    values: AnyArray,
    shape: Sequence[int],
    fmt: Format,
    sorted_unique: bool = False,
    max_dense_bytes: int | None = None,
) -> SparseTensor:
    """``pack`` for entries that are given by their coordinate in each level.

    Coordinates of the trailing dense levels may be left out: then an entry is a whole block of
    them, and
    ``values`` has shape (entries, volume of a block)."""
    limit = limits.MAX_DENSE_BYTES if max_dense_bytes is None else max_dense_bytes
    sizes = fmt.level_sizes(shape)
    if not sorted_unique:
        depth = block_depth(fmt)
        if depth < len(level_coords):
            gathered = gather_blocks(level_coords, values, sizes, depth)
            if gathered is not None:
                return pack_levels(*gathered, shape, fmt, True, max_dense_bytes)
        level_coords, values = sort_and_combine(level_coords, values, sizes)
    extents = tuple(int(extent) for extent in shape)
    parents: Ints = np.zeros(len(values), dtype=np.int64)
    count = 1
    arrays: list[LevelArrays] = []
    for k, (coordinates, size) in enumerate(zip(level_coords, sizes, strict=False)):
        level = fmt.levels[k]
        if k == len(level_coords) - 1:
            level = replace(level, unique=False)  # entries are distinct: no need to look again
        if level.arrays:
            limits.refuse_beyond(count, 8, limit, f"the {fmt.levels[k]} level", shape)
        packed = level.pack(parents, coordinates.astype(np.int64, copy=False), count, size)
        arrays.append(packed.arrays)
        parents, count = packed.positions, packed.count
    arrays += [LevelArrays()] * (fmt.num_levels - len(arrays))
    if count != len(values):  # else they are distinct, ascending and below the count: 0, 1, 2, ...
        width = values.dtype.itemsize * limits.volume(values.shape[1:])
        limits.refuse_beyond(count, width, limit, "the values", extents)
        placed = np.zeros((count, *values.shape[1:]), dtype=values.dtype)
        placed[parents] = values
        values = placed
    return SparseTensor(extents, fmt, with_widths(fmt, arrays), values.reshape(-1))


def gather_blocks(
    level_coords: Sequence[AnyInts], values: AnyArray, sizes: Sequence[int], depth: int
) -> tuple[list[AnyInts], AnyArray] | None:
    """The entries as whole blocks of the levels from ``depth`` on, sorted by the coordinates above.

    Needs no order within a block. None where the numbers don't fit, or entries repeat (to be
    combined first)."""
    count, tail = len(values), limits.volume(sizes[depth:])
    key = linear_key(level_coords[:depth], sizes[:depth], count)
    inner = linear_key(level_coords[depth:], sizes[depth:], count)
    if key is None or inner is None or not depth or not count or tail > limits.MAX_BLOCK:
        return None
    blocks, at = distinct(key, limits.volume(sizes[:depth]))
    if len(blocks) * tail > 64 * count + limits.MAX_BLOCK:
        return None
    at = at * tail + inner
    taken = np.zeros(len(blocks) * tail, dtype=np.bool_)
    taken[at] = True
    if np.count_nonzero(taken) != count:
        return None
    filled = np.zeros(len(blocks) * tail, dtype=values.dtype)
    filled[at] = values
    return split_key(blocks, sizes[:depth]), filled.reshape(-1, tail)


def pack_dense(array: AnyArray, fmt: Format, max_dense_bytes: int | None = None) -> SparseTensor:
    """A tensor of the nonzeros of a dense array, or of its blocks that hold any."""
    if isinstance(fmt, SumFormat):
        return _pack_dense_sum(array, fmt, max_dense_bytes)
    shape, sizes = array.shape, fmt.level_sizes(array.shape)
    if array.size == 0:
        none = [np.zeros(0, dtype=np.int64)] * fmt.num_levels
        return pack_levels(none, array.reshape(-1), shape, fmt, True, max_dense_bytes)
    padded = limits.volume(sizes)
    if padded > array.size:
        limit = limits.MAX_DENSE_BYTES if max_dense_bytes is None else max_dense_bytes
        limits.refuse_beyond(padded, array.dtype.itemsize, limit, "the padded array", shape)
    ordered = np.ascontiguousarray(to_level_array(array, fmt)).reshape(-1)
    if fmt.is_dense:
        return SparseTensor(shape, fmt, (LevelArrays(),) * fmt.num_levels, ordered)
    depth = block_depth(fmt)
    if depth < fmt.num_levels:
        blocks = ordered.reshape(-1, limits.volume(sizes[depth:]))
        flat = np.flatnonzero(is_nonzero(blocks).any(axis=1))
        values = blocks[flat]
    else:
        flat = np.flatnonzero(is_nonzero(ordered))
        values = ordered[flat]
    coords = split_key(flat, sizes[:depth])
    return pack_levels(coords, values, shape, fmt, True, max_dense_bytes)


def with_widths(fmt: Format, arrays: Sequence[LevelArrays]) -> tuple[LevelArrays, ...]:
    """Index arrays in the format's widths, or the narrower of 32 and 64 bits that holds all of a
    role."""
    positions = _role_dtype(fmt, arrays, "positions", fmt.pos_width)
    coordinates = _role_dtype(fmt, arrays, "coordinates", fmt.crd_width)
    return tuple(
        LevelArrays(
            None if a.positions is None else limits.narrowed(a.positions, positions),
            None if a.coordinates is None else limits.narrowed(a.coordinates, coordinates),
        )
        for a in arrays
    )


def _role_dtype(
    fmt: Format, arrays: Sequence[LevelArrays], role: str, width: int
) -> type[np.integer]:
    largest = [
        limits.largest_of(a) if (a := getattr(level, role)) is not None else 0 for level in arrays
    ]
    if not width:
        return limits.inferred_dtype(max(largest, default=0))
    dtype = limits.WIDTH_DTYPES[width]
    for level, number in enumerate(largest):
        if number > np.iinfo(dtype).max:
            raise limits.WidthOverflow(role=role, level=level, number=number, width=width)
    return dtype


def unpack(tensor: SparseTensor) -> tuple[list[AnyInts], AnyArray]:
    """The stored entries in storage order: coordinates in each dimension, and values; the inverse
    of ``pack``.

    Padding is dropped: slots without a coordinate, and zeros of padded and of dense formats.
    Explicit zeros of formats without padding are kept."""
    if tensor.parts:
        coords, values = tensor.to_coords()
        return list(coords), values
    coords, values = tensor.entries()
    return dim_coordinates(tensor.format, coords), values
