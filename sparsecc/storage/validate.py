"""Whether untrusted level arrays are what their format says, before anything walks them."""

from __future__ import annotations

from collections.abc import Sequence

from sparsecc.formats import Format, LevelArrays
from sparsecc.storage.layout import AnyArray

DTYPES: tuple[str, ...] = (
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
"""The dtypes that values may have."""


def cheap_problems(
    shape: Sequence[int], fmt: Format, levels: Sequence[LevelArrays], values: AnyArray
) -> list[str]:
    """What is wrong with the number, dimension and dtype of the arrays; looks at no element of
    them."""
    if len(shape) != fmt.rank:
        return [f"the shape has {len(shape)} dimensions, the format {fmt.rank}"]
    if any(extent < 0 for extent in shape):
        return ["an extent is negative"]
    if len(levels) != fmt.num_levels:
        return [f"arrays of {len(levels)} levels for a format of {fmt.num_levels}"]
    found: list[str] = []
    if values.ndim != 1:
        found.append("values must be a one-dimensional array")
    elif values.dtype.name not in DTYPES:
        found.append(f"values of dtype {values.dtype} are not supported")
    for k, (level, arrays) in enumerate(zip(fmt.levels, levels, strict=True)):
        for role in ("positions", "coordinates"):
            array: AnyArray | None = getattr(arrays, role)
            if (array is not None) != (role in level.arrays):
                verb = "wants" if array is None else "has no"
                found.append(f"level {k} ({level}) {verb} {role}")
            elif array is not None and (array.ndim != 1 or array.dtype.kind not in "iu"):
                found.append(f"level {k}: {role} must be one-dimensional and of an integer dtype")
    return found


def level_problems(
    shape: Sequence[int], fmt: Format, levels: Sequence[LevelArrays], values: AnyArray
) -> list[str]:
    """What is wrong with the elements, level by level; stops at the first bad level. Expects no
    cheap problem."""
    count = 1
    for k, (level, size) in enumerate(zip(fmt.levels, fmt.level_sizes(shape), strict=True)):
        found, count = level.problems(levels[k], count, size)
        if found:
            return [f"level {k} ({level}): {problem}" for problem in found]
    if len(values) != count:
        return [f"{len(values)} values for {count} positions"]
    return []
