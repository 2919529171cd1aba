"""Which entries the first part of a sum takes: the largest of each group, if it is n:m, else all.

Magnitudes are compared as unsigned integers: the bits of a float without its sign ascend as its magnitude
does, and every NaN is the largest. Ties go to the lower index; zeros are never taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sparsecc.formats import Format
from sparsecc.formats.level import AnyInts
from sparsecc.formats.levels.structured import Structured
from sparsecc.storage.layout import AnyArray, from_level_array, level_coordinates, to_level_array
from sparsecc.storage.limits import volume
from sparsecc.storage.order import linear_key

Mask = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.unsignedinteger[Any]]

NARROW_GROUP = 8
"""Groups of so many are compared all with all; larger ones are sorted."""


def magnitudes(values: AnyArray) -> Keys:
    """Unsigned integers that ascend as magnitudes do; 0 for zeros, NaN largest."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "c":
        return magnitudes(np.asarray(np.abs(values)))
    if kind == "b":
        return cast(Keys, values.view(np.uint8))
    word: Any = np.dtype(f"u{size}")
    if kind in "iu":
        return cast(Keys, (np.abs(values) if kind == "i" else values).view(word))
    bits = np.ascontiguousarray(values).view(word)
    sizes = bits & word.type((1 << (8 * size - 1)) - 1)
    infinity = int(np.array(np.inf).astype(values.dtype).view(word))
    return cast(Keys, np.where(sizes > infinity, word.type((1 << 8 * size) - 1), sizes))


def structured_level(fmt: Format) -> Structured | None:
    """The n:m level of a format, if it has one: it can't hold everything."""
    last = fmt.levels[-1] if fmt.levels else None
    return last if isinstance(last, Structured) else None


def dense_leaders(array: AnyArray, fmt: Format) -> Mask:
    """Which elements of a dense array a part takes."""
    level = structured_level(fmt)
    keys = magnitudes(array)
    if level is None:
        return keys != 0
    grouped = to_level_array(keys, fmt)
    kept = largest(grouped.reshape(-1, level.m), level.n).reshape(grouped.shape)
    return np.ascontiguousarray(from_level_array(kept, fmt, array.shape))


def largest(keys: Keys, n: int) -> Mask:
    """The n largest of each row that are not 0; of equal ones the first."""
    groups, m = keys.shape
    if m > NARROW_GROUP:
        order = np.argsort(~keys, axis=1, kind="stable")[:, :n]
        kept = np.zeros(keys.shape, np.bool_)
        np.put_along_axis(kept, order, True, axis=1)
        return kept & (keys != 0)
    columns = np.ascontiguousarray(keys.T)
    found = np.empty((groups, m), np.bool_)
    for k in range(m):
        before = np.zeros(groups, np.uint8)
        for other in range(m):
            if other != k:
                ahead = columns[other] >= columns[k] if other < k else columns[other] > columns[k]
                before += ahead
        found[:, k] = (before < n) & (columns[k] != 0)
    return found


def entry_leaders(
    coords: Sequence[AnyInts], values: AnyArray, shape: Sequence[int], fmt: Format
) -> Mask:
    """Which of some distinct entries a part takes."""
    level = structured_level(fmt)
    if level is None:
        return np.ones(len(values), np.bool_)
    *outer, inner = level_coordinates(fmt, coords)
    keys = magnitudes(values)
    sizes = fmt.level_sizes(shape)[:-1]
    group = linear_key(outer, sizes, len(values))
    assert group is not None, "an n:m tensor of that many groups has no room for them"
    groups = volume(sizes)
    if groups * level.m <= 8 * len(values) + 1024:
        table = np.zeros((groups, level.m), keys.dtype)
        at = group * level.m + inner
        table.reshape(-1)[at] = keys
        return largest(table, level.n).reshape(-1)[at]
    order = np.lexsort((inner, ~keys, group))
    ordered = group[order]
    new = np.concatenate(([True], ordered[1:] != ordered[:-1])) if len(ordered) else ordered != 0
    starts = np.flatnonzero(new)
    rank = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    kept = np.zeros(len(values), np.bool_)
    kept[order] = rank < level.n
    return kept & (keys != 0)
