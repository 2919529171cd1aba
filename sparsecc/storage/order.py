"""Sorting coordinates lexicographically and combining repeated ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc.formats.level import AnyInts, Ints
from sparsecc.storage.limits import INT64_MAX, volume

AnyArray = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


def linear_key(coords: Sequence[AnyInts], sizes: Sequence[int], count: int) -> Ints | None:
    """Row-major numbers of the coordinates, or None where the largest would not fit 64 bits."""
    if volume(sizes) > INT64_MAX:
        return None
    if not coords:
        return np.zeros(count, dtype=np.int64)
    key = coords[0].astype(np.int64)
    for coord, size in zip(coords[1:], sizes[1:], strict=True):
        key *= size
        key += coord
    return key


def split_key(key: Ints, sizes: Sequence[int]) -> list[AnyInts]:
    """The coordinates of row-major numbers: the inverse of ``linear_key``."""
    coords: list[AnyInts] = []
    for size in reversed(sizes[1:]):
        coords.append(key % size)
        key = key // size
    return [*([key] if len(sizes) else []), *reversed(coords)]


def distinct(key: Ints, bound: int) -> tuple[Ints, Ints]:
    """The distinct numbers of ``[0, bound)`` in ascending order, and which of them each entry
    is."""
    if bound <= 8 * len(key) + 1024:
        there = np.zeros(bound, dtype=np.bool_)
        there[key] = True
        return np.flatnonzero(there), (np.cumsum(there, dtype=np.int64) - 1)[key]
    order = stable_argsort(key, bound)
    ordered = key[order]
    new = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    which = np.empty(len(key), dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    return ordered[new], which


def _steps(coords: Sequence[AnyInts], count: int) -> tuple[Mask, Mask]:
    """For neighbours: whether the second is greater, and whether they are equal,
    lexicographically."""
    greater = np.zeros(max(count - 1, 0), dtype=np.bool_)
    equal = np.ones(max(count - 1, 0), dtype=np.bool_)
    for coord in coords:
        greater |= equal & (coord[1:] > coord[:-1])
        equal &= coord[1:] == coord[:-1]
    return greater, equal


def sorted_order(
    coords: Sequence[AnyInts], sizes: Sequence[int], count: int
) -> tuple[Ints | None, Mask | None]:
    """A stable order that sorts the entries (None: they are sorted), and which entries of the
    sorted ones differ from their predecessor (None: all do)."""
    if count < 2:
        return None, None
    key = linear_key(coords, sizes, count)
    if key is None:
        return _lexicographic_order(coords, count)
    step = key[1:] > key[:-1]
    if step.all():
        return None, None
    order: Ints | None = None
    if not (step | (key[1:] == key[:-1])).all():
        order = stable_argsort(key, volume(sizes))
        key = key[order]
    return order, _first(key[1:] != key[:-1])


def stable_argsort(key: Ints, bound: int) -> Ints:
    """A stable argsort of numbers in ``[0, bound)``."""
    bits = len(key).bit_length()
    if (bound << bits) > INT64_MAX:
        return np.argsort(key, kind="stable")
    # Key and entry number in one word: NumPy sorts plain int64 several times faster than it
    # argsorts.
    word = key << bits
    word |= np.arange(len(key), dtype=np.int64)
    word.sort()
    word &= (1 << bits) - 1
    return word


def _lexicographic_order(coords: Sequence[AnyInts], count: int) -> tuple[Ints | None, Mask | None]:
    greater, equal = _steps(coords, count)
    if greater.all():
        return None, None
    order: Ints | None = None
    if not (greater | equal).all():
        order = np.lexsort(tuple(reversed(list(coords))))
        _, equal = _steps([c[order] for c in coords], count)
    return order, _first(~equal)


def _first(changes: Mask) -> Mask | None:
    return None if changes.all() else np.concatenate(([True], changes))


def combine(values: AnyArray, first: Mask) -> AnyArray:
    """One value for each run of equal coordinates: the sum in the values' own dtype (integers wrap
    around as NumPy's do, bool is or; floats of 16 bits are summed in f32 and rounded once)."""
    starts = np.flatnonzero(first)
    if values.dtype.name in ("float16", "bfloat16"):
        return np.add.reduceat(values.astype(np.float32), starts).astype(values.dtype)
    if values.dtype == np.bool_:
        return np.logical_or.reduceat(values, starts)
    return np.add.reduceat(values, starts, dtype=values.dtype)


def sort_and_combine(
    coords: Sequence[AnyInts], values: AnyArray, sizes: Sequence[int]
) -> tuple[list[AnyInts], AnyArray]:
    """The entries sorted by coordinates, repeated ones combined."""
    order, first = sorted_order(coords, sizes, len(values))
    result = list(coords)
    if order is not None:
        result, values = [c[order] for c in result], values[order]
    if first is not None:
        result, values = [c[first] for c in result], combine(values, first)
    return result, values
