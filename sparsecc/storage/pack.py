"""Between lists of entries and stored levels, vectorised: ``pack`` and its inverse ``unpack``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecc.formats import Format, LevelArrays
from sparsecc.formats.level import AnyInts, Ints
from sparsecc.storage import limits
from sparsecc.storage.layout import AnyArray, dim_coordinates, level_coordinates
from sparsecc.storage.order import sort_and_combine
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
    level_coords = level_coordinates(fmt, coords)
    return pack_levels(level_coords, values, shape, fmt, sorted_unique, max_dense_bytes)


def pack_levels(
    level_coords: Sequence[AnyInts],
    values: AnyArray,
    shape: Sequence[int],
    fmt: Format,
    sorted_unique: bool = False,
    max_dense_bytes: int | None = None,
) -> SparseTensor:
    """``pack`` for entries that are given by their coordinate in each level."""
    limit = limits.MAX_DENSE_BYTES if max_dense_bytes is None else max_dense_bytes
    sizes = fmt.level_sizes(shape)
    if not sorted_unique:
        level_coords, values = sort_and_combine(level_coords, values, sizes)
    parents: Ints = np.zeros(len(values), dtype=np.int64)
    count = 1
    arrays: list[LevelArrays] = []
    for level, coordinates, size in zip(fmt.levels, level_coords, sizes, strict=True):
        if level.arrays:
            limits.refuse_beyond(count, 8, limit, f"the {level} level", shape)
        packed = level.pack(parents, coordinates.astype(np.int64, copy=False), count, size)
        arrays.append(packed.arrays)
        parents, count = packed.positions, packed.count
    shape = tuple(int(extent) for extent in shape)
    return SparseTensor(
        shape, fmt, with_widths(fmt, arrays), _placed(values, parents, count, limit, shape)
    )


def _placed(
    values: AnyArray, positions: Ints, count: int, limit: int, shape: Sequence[int]
) -> AnyArray:
    """The values at their positions; positions that no entry has hold 0."""
    if count == len(values):
        return values  # distinct ascending positions below the count: they are 0, 1, 2, ...
    limits.refuse_beyond(count, values.dtype.itemsize, limit, "the values", shape)
    placed = np.zeros(count, dtype=values.dtype)
    placed[positions] = values
    return placed


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
    coords, values = tensor.entries()
    return dim_coordinates(tensor.format, coords), values
