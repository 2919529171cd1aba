"""The entries of a tensor that are not 0, a portion after the other, so that what walks them needs little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import lcm

import numpy as np

from sparsecc.formats import Ability, LevelArrays
from sparsecc.formats.level import AnyInts
from sparsecc.storage import limits
from sparsecc.storage.layout import AnyArray, dim_coordinates, is_nonzero
from sparsecc.storage.order import linear_key
from sparsecc.storage.sums import sum_tensor
from sparsecc.storage.tensor import SparseTensor

PORTION = 1 << 18
"""Values of a portion, about: a few arrays of so many numbers stay in the cache."""

Coordinates = list[AnyInts]
Wanted = Callable[[int, int], bool]


def _all_rows(first: int, end: int) -> bool:
    return True


def nonzeros(
    tensor: SparseTensor, size: int = PORTION, wanted: Wanted = _all_rows
) -> Iterator[Coordinates]:
    """The coordinates by dimension of the entries that are not 0, each once, in the order in which they are stored.

    Integers of any width that holds the shape's extents, and 32 bits at least; portions of about ``size`` stored
    values, where the format can be cut. Portions of slices ``[first, end)`` of dimension 0 that are not ``wanted`` may
    be left out."""
    fmt = tensor.format
    if tensor.parts:
        yield from _summed(tensor, size, wanted)
    elif not _distinct(tensor):
        yield _once(tensor)
    elif fmt.is_permutation and _is_compressed(tensor):
        yield from _compressed(tensor, size)
    elif fmt.is_permutation and fmt.levels[0].name == "compressed" and _singletons(tensor):
        yield from _coordinate_lists(tensor, size)
    else:
        yield from _cut(tensor, size, wanted)


def _distinct(tensor: SparseTensor) -> bool:
    """Whether the format promises that no entry is repeated."""
    fmt = tensor.format
    return fmt.num_levels > 0 and fmt.ordered and fmt.levels[-1].unique


def _once(tensor: SparseTensor) -> Coordinates:
    """All entries, repeated ones added up before they are compared with 0."""
    coords, values = tensor.to_coords()
    keep = is_nonzero(values)
    return [c if keep.all() else c[keep] for c in coords]


def _is_compressed(tensor: SparseTensor) -> bool:
    """CSR, CSC and what is stored as they are."""
    levels = tensor.format.levels
    full = levels[0].can(Ability.FULL)
    return len(levels) == 2 and full and levels[1].name == "compressed"


def _singletons(tensor: SparseTensor) -> bool:
    return all(level.name == "singleton" for level in tensor.format.levels[1:])


def _wide(coordinates: AnyInts) -> AnyInts:
    """Coordinates that can be reckoned with: 8 and 16 bits would wrap around."""
    return coordinates if coordinates.itemsize >= 4 else coordinates.astype(np.int32)


def _kept(coords: Coordinates, values: AnyArray) -> Coordinates:
    keep = is_nonzero(values)
    return coords if keep.all() else [c[keep] for c in coords]


def _compressed(tensor: SparseTensor, size: int) -> Iterator[Coordinates]:
    arrays = tensor.levels[1]
    assert arrays.positions is not None and arrays.coordinates is not None
    positions = arrays.positions
    outer = len(positions) - 1
    total = int(positions[-1])
    marks = np.arange(size, total, size)
    # Portions end with whole rows: a long row is one of its own.
    ends = np.unique(np.searchsorted(positions, np.append(marks, total), side="left"))
    kind = limits.inferred_dtype(outer)
    row = 0
    for end in ends.tolist():
        a, b = int(positions[row]), int(positions[end])
        if b > a:
            lengths = np.diff(positions[row : end + 1])
            rows = np.repeat(np.arange(row, end, dtype=kind), lengths)
            pair: Coordinates = [rows, _wide(arrays.coordinates[a:b])]
            yield _kept([pair[k] for k in np.argsort(tensor.format.dim_order)], tensor.values[a:b])
        row = end


def _coordinate_lists(tensor: SparseTensor, size: int) -> Iterator[Coordinates]:
    lists = [level.coordinates for level in tensor.levels if level.coordinates is not None]
    order: list[int] = np.argsort(tensor.format.dim_order).tolist()
    for at in range(0, len(tensor.values), size):
        span = slice(at, at + size)
        yield _kept([_wide(lists[k][span]) for k in order], tensor.values[span])


def _cut(tensor: SparseTensor, size: int, wanted: Wanted) -> Iterator[Coordinates]:
    """Portions of outer positions, each a tensor of the same format."""
    first = tensor.format.levels[0]
    outer = _outer_positions(tensor)
    step = max(1, outer * size // max(1, len(tensor.values)))
    if outer <= step:
        yield _nonzero_entries(tensor)
        return
    expr = tensor.format.exprs[0]
    rows_are_outer = first.can(Ability.FULL) and expr.dim == 0
    for lo in range(0, outer, step):
        if rows_are_outer and not wanted(
            lo * expr.div, min((lo + step) * expr.div, tensor.shape[0])
        ):
            continue
        part = _part(tensor, lo, min(lo + step, outer))
        if part is None:
            yield _nonzero_entries(tensor)
            return
        coords = _nonzero_entries(part)
        if first.can(Ability.FULL):
            coords[expr.dim] += lo * expr.div
        yield coords


def _nonzero_entries(tensor: SparseTensor) -> Coordinates:
    coords, values = tensor.entries()
    coords = _kept(coords, values)
    return [c.astype(np.int64) for c in dim_coordinates(tensor.format, coords)]


def _outer_positions(tensor: SparseTensor) -> int:
    if tensor.format.levels[0].can(Ability.FULL):
        return tensor.level_sizes[0]
    coordinates = tensor.levels[0].coordinates
    return 0 if coordinates is None else len(coordinates)


def _summed(tensor: SparseTensor, size: int, wanted: Wanted) -> Iterator[Coordinates]:
    """Entries of the parts of a sum, some rows at a time; where one stands in several parts, of their sum."""
    firsts = [part.format.exprs[0] for part in tensor.parts]
    rows, stored = tensor.shape[0], sum(len(part.values) for part in tensor.parts)
    unit = lcm(*(first.div for first in firsts))
    step = max(1, rows * size // max(1, stored) // unit) * unit
    if not all(map(_distinct, tensor.parts)) or any(first.dim or first.mod for first in firsts):
        step = rows
    for lo in range(0, rows, step or 1):
        hi = min(lo + step, rows)
        if not wanted(lo, hi):
            continue
        parts = [
            _part(part, lo // first.div, -(-hi // first.div)) if step < rows else part
            for part, first in zip(tensor.parts, firsts, strict=True)
        ]
        cut = [part for part in parts if part is not None and part.shape[0] == hi - lo]
        if len(cut) < len(parts):
            yield _once(tensor)
            return
        found = [_nonzero_entries(part) for part in cut]
        if not all(map(_distinct, cut)) or not _disjoint(found, cut[0].shape):
            found = [_once(sum_tensor(cut))]
        for coords in found:
            coords[0] = coords[0] + lo
            yield coords


def _disjoint(found: list[Coordinates], shape: tuple[int, ...]) -> bool:
    keys = [linear_key(coords, shape, len(coords[0])) for coords in found]
    known = [key for key in keys if key is not None]
    together = np.concatenate(known) if len(known) == len(keys) else None
    if together is None:
        return False
    if limits.volume(shape) <= 64 * len(together) + 1024:
        there = np.zeros(limits.volume(shape), np.bool_)
        there[together] = True
        return int(np.count_nonzero(there)) == len(together)
    together.sort()
    return bool((together[1:] > together[:-1]).all())


def _part(tensor: SparseTensor, lo: int, hi: int) -> SparseTensor | None:
    """The part below the positions ``[lo, hi)`` of the outermost level; None: some level can't be cut.

    Where that level has every coordinate, the part's first one is ``lo`` and its shape is smaller."""
    fmt, sizes = tensor.format, tensor.level_sizes
    span, shape = (lo, hi), list(tensor.shape)
    outer = tensor.levels[0]
    if fmt.levels[0].can(Ability.FULL):
        expr = fmt.exprs[0]
        if expr.mod:
            return None
        shape[expr.dim] = min(hi * expr.div, shape[expr.dim]) - lo * expr.div
    elif fmt.levels[0].name == "compressed" and outer.positions is not None:
        assert outer.coordinates is not None
        ends = np.array([0, hi - lo], dtype=outer.positions.dtype)
        outer = LevelArrays(ends, outer.coordinates[lo:hi])
    else:
        return None
    levels = [outer]
    for level, arrays, size in zip(fmt.levels[1:], tensor.levels[1:], sizes[1:], strict=True):
        cut = level.cut(arrays, span, size)
        if cut is None:
            return None
        kept, span = cut
        levels.append(kept)
    part = replace(tensor, shape=tuple(shape), levels=tuple(levels))
    return replace(part, values=tensor.values[span[0] : span[1]])
