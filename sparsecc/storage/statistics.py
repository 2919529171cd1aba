"""The pattern of a tensor in numbers (``sparsecc.statistics``), counted in one pass over its entries.

Lengths of slices, bands and diagonals are counted of all entries. Blocks and groups want them sorted, which costs more:
of large matrices they are counted in panels of 64 rows that are spread over the matrix, and scaled by entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from sparsecc.elements import name_of
from sparsecc.formats.level import AnyInts, Ints
from sparsecc.statistics import Statistics
from sparsecc.storage.layout import AnyArray, from_level_array, is_nonzero
from sparsecc.storage.limits import INT32_MAX
from sparsecc.storage.nonzeros import nonzeros
from sparsecc.storage.order import linear_key, sorted_order
from sparsecc.storage.samples import Sample, windows
from sparsecc.storage.symmetry import symmetry
from sparsecc.storage.tallies import Tally, lengths
from sparsecc.storage.tensor import SparseTensor
from sparsecc.storage.tile_bits import SIDE, BitCounts, Found, block_fills, group_fits

MOST_ENTRIES = 1 << 21
"""Entries up to which everything is counted, unless it is said otherwise."""

SAMPLED = 0.5
"""Of so many entries, the part that a sample is: to tell panels apart costs some of the time of counting all."""

DENSE_CELLS = 32
"""Elements of an array that are looked at in the time of an entry that is sorted."""

MASK_CELLS = 64
"""Elements for an entry up to which a matrix is spread out to an array of bits and not sorted."""

MOST_MASK = 1 << 26
"""Elements of such an array at most."""

DENSE_PORTION = 1 << 19
"""Elements of an array that are looked at together."""

NARROW = 4 * SIDE
"""Columns of an array below which its entries are looked at one by one."""

SAMPLED_ROWS = 16 * SIDE
"""Rows of a sample of an array that are looked at together."""

LEAST_SHARE = 1 << 12
"""Entries of a class of slices that are looked at, if it has so many."""

Mask = npt.NDArray[np.bool_]


def statistics(tensor: SparseTensor, *, most_entries: int | None = MOST_ENTRIES) -> Statistics:
    """The statistics of a tensor of any format. Stored zeros are not entries, they are counted for
    themselves (``Statistics.zeros``); entries that are stored in parts are one.

    Up to ``most_entries`` entries (of dense arrays: 32 times as many elements) everything is counted; beyond, what
    ``Statistics.exact`` names is estimated from about half so many, always the same ones. None: no limit."""
    if tensor.rank == 2:
        return _of_matrix(tensor, most_entries)
    return _of_tensor(tensor, most_entries)


# -- matrices ----------------------------------------------------------------------------------


class _Tallies:
    """What is counted of all entries of a matrix, portion by portion."""

    def __init__(self, shape: tuple[int, ...], expected: int) -> None:
        self.shape = shape
        self.rows, self.columns = (Tally(extent, expected) for extent in shape)
        self.offsets = Tally(sum(shape), expected)
        """Column less row, and as much more as makes it at least 1."""

    def add(self, rows: AnyInts, columns: AnyInts) -> None:
        self.rows.add(rows)
        self.columns.add(columns)
        kind = np.int32 if sum(self.shape) <= INT32_MAX else np.int64
        self.offsets.add(columns.astype(kind, copy=False) + kind(self.shape[0]) - rows)

    def add_mask(self, mask: Mask, first: int) -> None:
        """Neighbouring rows from the first on: where they have entries."""
        if mask.shape[1] < NARROW:
            rows, columns = np.nonzero(mask)
            self.add(rows + first, columns)
            return
        self.rows.add_counts(np.count_nonzero(mask, axis=1), first)
        self.columns.add_counts(_column_counts(mask))
        for at in range(0, len(mask), SIDE):
            slanted = _slanted(panel := mask[at : at + SIDE])
            lowest = self.shape[0] - (first + at + len(panel)) + 1
            self.offsets.add_counts(_column_counts(slanted), lowest)

    def may_be_symmetric(self) -> bool:
        """Whether rows are as long as columns, and diagonals as their mirror images."""
        if self.shape[0] != self.shape[1]:
            return False
        diagonals, counts = self.offsets.used()
        same = np.array_equal(counts, counts[::-1])
        same = same and np.array_equal(2 * self.shape[0] - diagonals[::-1], diagonals)
        pairs = zip(self.rows.used(), self.columns.used(), strict=True)
        return same and all(np.array_equal(row, column) for row, column in pairs)


def _column_counts(mask: Mask) -> Ints:
    # Sums of 255 bytes fit a byte: NumPy adds these many times faster than it counts along an axis.
    counts = np.zeros(mask.shape[1], np.int64)
    for at in range(0, len(mask), 255):
        counts += np.add.reduce(mask[at : at + 255].view(np.uint8), axis=0, dtype=np.uint8)
    return counts


def _slanted(mask: Mask) -> Mask:
    """The rows, each one place further to the left than the one before: columns are diagonals, the lowest first."""
    height, columns = mask.shape
    width = columns + height - 1
    wide = np.zeros(height * width, np.bool_)
    shape, strides = (height, columns), (width - 1, 1)
    np.lib.stride_tricks.as_strided(wide[height - 1 :], shape, strides)[...] = mask
    return wide.reshape(height, width)


def _panels(array: AnyArray) -> Iterator[tuple[int, Mask]]:
    """Where a dense matrix has entries, some panels of rows at a time, and the first row of these."""
    rows, columns = array.shape
    step = max(1, DENSE_PORTION // max(1, columns * SIDE)) * SIDE
    for first in range(0, rows, step):
        yield first, np.ascontiguousarray(is_nonzero(array[first : first + step]))


def _of_array(array: AnyArray, most_entries: int | None) -> tuple[_Tallies, Found, bool]:
    few = most_entries is None or array.size <= DENSE_CELLS * most_entries
    tallies, bits = _Tallies(array.shape, array.size), BitCounts()
    for first, mask in _panels(array):
        tallies.add_mask(mask, first)
        if few:
            bits.add_mask(mask)
    if most_entries is None or few:
        return tallies, bits.found, True
    used, counts = tallies.rows.used()
    sample = Sample.of(
        len(array), used, counts, SIDE, SAMPLED * DENSE_CELLS * most_entries / array.size
    )
    found: Found = Counter()
    rows = np.arange(len(array))
    for which, entries in sample.split(rows):
        bits = BitCounts()
        taken = which[sample.takes(which)]
        for at in range(0, len(taken), SAMPLED_ROWS):
            bits.add_mask(is_nonzero(array[taken[at : at + SAMPLED_ROWS]]))
        found += bits.scaled(entries)
    return tallies, found, bool(sample.chosen[sample.classes > 0].all())


def _of_entries(tensor: SparseTensor, most_entries: int | None) -> tuple[_Tallies, Found, bool]:
    shape, expected = tensor.shape, _stored(tensor, most_entries)
    tallies = _Tallies(shape, expected)
    kept: list[Sequence[AnyInts]] = []
    few = most_entries is None or expected <= most_entries
    for rows, columns in nonzeros(tensor):
        tallies.add(rows, columns)
        if few:
            kept.append((rows, columns))
    if most_entries is None or few:
        bits = BitCounts()
        rows, columns = _joined(kept, 2)
        _add_coordinates(bits, rows, columns, shape)
        return tallies, bits.found, True
    used, counts = tallies.rows.used()
    part = SAMPLED * most_entries / expected
    sample = Sample.of(shape[0], used, counts, SIDE, part)
    for rows, columns in nonzeros(tensor, wanted=sample.has_some):
        taken = np.flatnonzero(sample.takes(rows))
        kept.append((rows[taken], columns[taken]))
    all_rows, all_columns = _joined(kept, 2)
    found: Found = Counter()
    whole = bool(sample.chosen[sample.classes > 0].all())
    for which, entries in sample.split(all_rows):
        rows, columns = all_rows[which], all_columns[which]
        share = max(LEAST_SHARE, round(part * entries))
        if len(rows) > 2 * share:
            # A few long rows hold more than was to be looked at: of them, windows of columns are drawn.
            taken = windows(columns, shape[1], SIDE, share / len(rows))
            rows, columns, whole = rows[taken], columns[taken], False
        bits = BitCounts()
        _add_coordinates(bits, rows, columns, shape)
        found += bits.scaled(entries)
    return tallies, found, whole


def _joined(portions: Sequence[Sequence[AnyInts]], rank: int) -> list[AnyInts]:
    """Portions of coordinates put together, by dimension."""
    none = np.zeros(0, np.int32)
    return [np.concatenate([none, *(portion[d] for portion in portions)]) for d in range(rank)]


def _add_coordinates(
    bits: BitCounts, rows: AnyInts, columns: AnyInts, shape: tuple[int, ...]
) -> None:
    if prod(shape) <= min(MASK_CELLS * len(rows), MOST_MASK):
        mask = np.zeros(shape, np.bool_)
        mask[rows, columns] = True
        bits.add_mask(mask)
    else:
        bits.add_coordinates(rows, columns, shape)


def _of_matrix(tensor: SparseTensor, most_entries: int | None) -> Statistics:
    shape, fmt = tensor.shape, tensor.format
    if fmt.is_dense:
        levels = tensor.values.reshape(tensor.level_sizes)
        tallies, found, exact = _of_array(from_level_array(levels, fmt, shape), most_entries)
    else:
        tallies, found, exact = _of_entries(tensor, most_entries)
    diagonals, on_diagonal = tallies.offsets.used()
    diagonals -= shape[0]
    row_counts, column_counts = tallies.rows.used()[1], tallies.columns.used()[1]
    nnz = int(row_counts.sum())
    kind = "none"
    if tallies.may_be_symmetric():
        kind = symmetry(tensor) if exact else ""
    return Statistics(
        shape=shape,
        dtype=_dtype(tensor),
        nnz=nnz,
        exact=exact,
        slices=(lengths(shape[0], row_counts), lengths(shape[1], column_counts)),
        prefixes=(len(row_counts), nnz),
        blocks=block_fills(found, shape, nnz),
        groups=group_fits(found, shape),
        below=max(0, -int(diagonals[0])) if nnz else 0,
        above=max(0, int(diagonals[-1])) if nnz else 0,
        diagonals=len(diagonals),
        distance=float(np.abs(diagonals) @ on_diagonal) / nnz if nnz else 0.0,
        symmetry=kind,
        zeros=_zeros(tensor),
    )


def _stored(tensor: SparseTensor, most_entries: int | None) -> int:
    """No fewer than the entries that are not 0; those exactly, if it decides whether they are few."""
    if tensor.parts:
        return sum(_stored(part, most_entries) for part in tensor.parts)
    stored = len(tensor.values)
    if tensor.format.is_dense or most_entries is None or stored <= most_entries:
        return stored
    return int(np.count_nonzero(is_nonzero(tensor.values)))


def _zeros(tensor: SparseTensor) -> int:
    """Zeros that are stored as entries: in formats whose places are those of entries."""
    if tensor.parts:
        return sum(map(_zeros, tensor.parts))
    if tensor.format.is_dense or tensor.format.padded:
        return 0
    return len(tensor.values) - int(np.count_nonzero(is_nonzero(tensor.values)))


def _dtype(tensor: SparseTensor) -> str:
    return name_of(tensor.dtype) or str(tensor.dtype)


# -- tensors of other ranks ----------------------------------------------------------------------


def _of_tensor(tensor: SparseTensor, most_entries: int | None) -> Statistics:
    shape, rank = tensor.shape, tensor.rank
    expected = _stored(tensor, most_entries)
    tallies = [Tally(extent, expected) for extent in shape]
    few = rank < 3 or most_entries is None or expected <= most_entries
    kept: list[Sequence[AnyInts]] = []
    nnz = 0 if rank else int(np.count_nonzero(is_nonzero(tensor.values)))
    for coords in nonzeros(tensor) if rank else ():
        nnz += len(coords[0])
        for tally, coordinates in zip(tallies, coords, strict=True):
            tally.add(coordinates)
        if few and rank > 2:
            kept.append(coords)
    wanted = _sets_of_dimensions(rank)
    sample = None
    if most_entries is None or few:
        coords = _joined(kept, rank)
        found = [count_distinct(coords, shape, dims) for dims in wanted]
    else:
        used, counts = tallies[0].used()
        sample = Sample.of(shape[0], used, counts, 1, SAMPLED * most_entries / expected)
        for coords in nonzeros(tensor, wanted=sample.has_some):
            taken = np.flatnonzero(sample.takes(coords[0]))
            kept.append([c[taken] for c in coords])
        found = _estimated(_joined(kept, rank), shape, sample, wanted)
    slices = tuple(lengths(t.extent, t.used()[1]) for t in tallies)
    outer, last = [slices[0].used] if rank > 1 else [], [nnz] if rank else []
    return Statistics(
        shape=shape,
        dtype=_dtype(tensor),
        nnz=nnz,
        exact=sample is None or bool(sample.chosen[sample.classes > 0].all()),
        slices=slices,
        prefixes=(*outer, *found[: max(0, rank - 2)], *last),
        pairs=tuple(found) if rank == 3 else (),
        zeros=_zeros(tensor),
    )


def _sets_of_dimensions(rank: int) -> list[tuple[int, ...]]:
    """Those whose different coordinates are counted: what prefixes have, then the other pairs of rank 3."""
    prefixes = [tuple(range(depth)) for depth in range(2, rank)]
    return [*prefixes, (0, 2), (1, 2)] if rank == 3 else prefixes


def _estimated(
    coords: Sequence[AnyInts], shape: Sequence[int], sample: Sample, wanted: list[tuple[int, ...]]
) -> list[int]:
    """Different coordinates of all entries, of those of whole slices of dimension 0. 0 (not known) where these say
    nothing: without dimension 0, slices share coordinates."""
    found = [0] * len(wanted)
    for which, entries in sample.split(coords[0]):
        some = [c[which] for c in coords]
        for k, dims in enumerate(wanted):
            if 0 in dims:
                counted = count_distinct(some, shape, dims)
                found[k] += round(counted * entries / len(which))
    return found


def count_distinct(coords: Sequence[AnyInts], shape: Sequence[int], dims: Sequence[int]) -> int:
    """How many different coordinates entries have in some of their dimensions."""
    coords, sizes = [coords[d] for d in dims], [shape[d] for d in dims]
    count = len(coords[0])
    key = linear_key(coords, sizes, count)
    if key is None:
        _, first = sorted_order(coords, sizes, count)
        return count if first is None else int(np.count_nonzero(first))
    if prod(sizes) <= 8 * count + 1024:
        there = np.zeros(prod(sizes), np.bool_)
        there[key] = True
        return int(np.count_nonzero(there))
    if (key[1:] < key[:-1]).any():
        key.sort()
    return min(count, 1) + int(np.count_nonzero(key[1:] != key[:-1]))
