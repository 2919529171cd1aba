"""Arrays as kernels read them: plain memory, all positions of a tensor in one width, all
coordinates in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sparsecc.diagnostics import OperandError
from sparsecc.formats import LevelArrays
from sparsecc.formats.level import AnyInts
from sparsecc.storage import limits

CONTIGUOUS_AND_ALIGNED = 0x0101
"""NPY_ARRAY_C_CONTIGUOUS and NPY_ARRAY_ALIGNED, of ``flags.num``."""

INDEX_DTYPES: frozenset[np.dtype[Any]] = frozenset(
    np.dtype(dtype) for dtype in limits.WIDTH_DTYPES.values()
)

WIDTHS: dict[int, np.dtype[Any] | None] = {0: None} | {
    width: np.dtype(dtype) for width, dtype in limits.WIDTH_DTYPES.items()
}


class NotIndices(OperandError):
    text = "the {role} of a tensor must be of an integer dtype, not {dtype}"
    help_text = "convert them first, e.g. with .astype('int64')"


def plain(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The array in that dtype, contiguous and aligned; itself if it is that already."""
    return np.require(array, dtype, ["C", "A"])


def plain_levels(levels: Sequence[LevelArrays], pos_width: int = 0, crd_width: int = 0) -> Any:
    """The levels themselves if kernels can read their arrays, else converted ones.

    Raises NotIndices, and WidthOverflow where an array does not fit the width that is asked for."""
    positions = WIDTHS[pos_width]
    coordinates = WIDTHS[crd_width]
    for level in levels:
        array = level.positions
        if array is not None:
            dtype = array.dtype
            positions = dtype if positions is None else positions
            if dtype != positions or not _is_plain(array):
                break
        array = level.coordinates
        if array is not None:
            dtype = array.dtype
            coordinates = dtype if coordinates is None else coordinates
            if dtype != coordinates or not _is_plain(array):
                break
    else:
        return levels
    of_positions = plain_indices([a.positions for a in levels], "positions", pos_width)
    of_coordinates = plain_indices([a.coordinates for a in levels], "coordinates", crd_width)
    return tuple(map(LevelArrays, of_positions, of_coordinates))


def _is_plain(array: AnyInts) -> bool:
    both = CONTIGUOUS_AND_ALIGNED
    return array.dtype in INDEX_DTYPES and array.flags.num & both == both


def plain_indices(
    arrays: Sequence[Any], role: str = "coordinates", width: int = 0
) -> list[AnyInts | None]:
    """Arrays of one role in one dtype: theirs, if they share one that kernels know, else the
    narrower of int32 and int64 that holds all of their dtypes. Raises NotIndices."""
    there = [array for array in arrays if array is not None]
    for array in there:
        if array.dtype.kind not in "iu":
            raise NotIndices(role=role, dtype=array.dtype)
    dtypes = {array.dtype.newbyteorder("=") for array in there}
    if width:
        target = np.dtype(limits.WIDTH_DTYPES[width])
        for level, array in enumerate(arrays):
            if array is not None and array.dtype != target:
                number = limits.largest_of(array)
                if number > np.iinfo(target).max:
                    raise limits.WidthOverflow(role=role, level=level, number=number, width=width)
    elif len(dtypes) == 1 and dtypes <= INDEX_DTYPES:
        target = dtypes.pop()
    else:
        narrow = all(np.can_cast(dtype, np.int32) for dtype in dtypes)
        target = np.dtype(np.int32 if narrow else np.int64)
    return [
        None if array is None else cast(AnyInts, plain(np.asarray(array), target))
        for array in arrays
    ]
