"""Between dimensions and levels: level coordinates are digits of dimension coordinates.

The same map in bulk turns a dense array into a *level array* (one axis a level) and back by reshape
and transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc.formats import Ability, Format
from sparsecc.formats.level import AnyInts

AnyArray = npt.NDArray[Any]


def is_nonzero(values: AnyArray) -> npt.NDArray[np.bool_]:
    """Where values are not 0 (NaN is not)."""
    if values.dtype.name in (
        "bfloat16",
        "float16",
    ):  # their own comparisons are slow, and bfloat16's warns of NaN
        return (values.view(np.uint16) & np.uint16(0x7FFF)) != 0
    return values != 0


def level_coordinates(fmt: Format, coords: Sequence[AnyInts]) -> list[AnyInts]:
    """The coordinate of each entry in each level, from those in each dimension."""
    result: list[AnyInts] = []
    for expr in fmt.exprs:
        digit = coords[expr.dim]
        if expr.div > 1:
            digit = digit // expr.div
        if expr.mod:
            digit = digit % expr.mod
        result.append(digit)
    return result


def dim_coordinates(fmt: Format, coords: Sequence[AnyInts]) -> list[AnyInts]:
    """The coordinate of each entry in each dimension, from those in each level (the inverse)."""
    result: list[AnyInts | None] = [None] * fmt.rank
    for expr, digit in zip(fmt.exprs, coords, strict=True):
        term = digit if expr.div == 1 else digit * np.int64(expr.div)
        known = result[expr.dim]
        result[expr.dim] = term if known is None else known + term
    return [c for c in result if c is not None]


def block_depth(fmt: Format) -> int:
    """The number of levels above the trailing dense ones."""
    depth = fmt.num_levels
    while depth and fmt.levels[depth - 1].can(Ability.FULL):
        depth -= 1
    return depth


def _digit_axes(fmt: Format) -> list[int]:
    """The levels in the order in which their digits make up a row-major array."""
    return sorted(range(fmt.num_levels), key=lambda k: (fmt.exprs[k].dim, -fmt.exprs[k].div))


def to_level_array(array: AnyArray, fmt: Format) -> AnyArray:
    """A dense array with one axis a level; a view where no block hangs over the edge."""
    sizes = fmt.level_sizes(array.shape)
    axes = _digit_axes(fmt)
    padded = _padded_shape(fmt, sizes)
    if padded != array.shape:
        grown = np.zeros(padded, dtype=array.dtype)
        grown[tuple(slice(0, extent) for extent in array.shape)] = array
        array = grown
    split = array if fmt.is_permutation else array.reshape([sizes[k] for k in axes])
    return split.transpose(np.argsort(axes)) if axes else split


def from_level_array(levels: AnyArray, fmt: Format, shape: Sequence[int]) -> AnyArray:
    """The inverse: a dense array of ``shape``; what blocks hold beyond the edge is dropped."""
    if not fmt.num_levels:
        return levels
    array = levels.transpose(_digit_axes(fmt))
    padded = _padded_shape(fmt, levels.shape)
    if array.shape != padded:
        array = array.reshape(padded)
    if padded == tuple(shape):
        return array
    return array[tuple(slice(0, extent) for extent in shape)]


def _padded_shape(fmt: Format, sizes: Sequence[int]) -> tuple[int, ...]:
    extents = [1] * fmt.rank
    for expr, size in zip(fmt.exprs, sizes, strict=True):
        extents[expr.dim] *= size
    return tuple(extents)
