"""Numbers that bound what storage may take: integer widths and bytes of dense results."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from sparsecc.diagnostics import LimitError
from sparsecc.formats.level import AnyInts

INT32_MAX = 2**31 - 1
"""The largest number kept in 32 bits; tests lower it to run the 64-bit paths on tiny tensors."""

INT64_MAX = 2**63 - 1

MAX_DENSE_BYTES = 1 << 30
"""Arrays whose size follows from the shape and not from the entries are refused beyond this."""

WIDTH_DTYPES: dict[int, type[np.integer]] = {8: np.uint8, 16: np.uint16, 32: np.int32, 64: np.int64}
"""What a format's width is stored as; 32 and 64 bits are signed so that SciPy's arrays fit as they
are."""

MAX_BLOCK = 1 << 24
"""Elements of the dense levels below a sparse one up to which entries are gathered into whole
blocks."""


class TooLarge(LimitError):
    text = "{what} of shape {shape} takes {bytes} bytes, more than max_dense_bytes={limit}"
    help_text = "choose a format that stores entries only (COO), or raise max_dense_bytes"


class WidthOverflow(LimitError):
    text = "{role} of level {level} hold {number}, which does not fit the format's {width} bits"
    help_text = "choose a wider format, or leave the width out to have it inferred"


def refuse_beyond(count: int, itemsize: int, limit: int, what: str, shape: Sequence[int]) -> None:
    """Raise TooLarge if ``count`` items of that size exceed ``limit`` bytes."""
    if count * itemsize > limit:
        raise TooLarge(what=what, shape=tuple(shape), bytes=count * itemsize, limit=limit)


def volume(sizes: Sequence[int]) -> int:
    """The exact product, never wrapped."""
    return prod(int(size) for size in sizes)


def inferred_dtype(largest: int) -> type[np.integer]:
    """The index dtype for numbers up to ``largest``: int32 where they fit, else int64."""
    return np.int32 if largest <= INT32_MAX else np.int64


def largest_of(array: AnyInts) -> int:
    return int(array.max()) if len(array) else 0


def narrowed(array: AnyInts, dtype: type[np.integer]) -> npt.NDArray[np.integer]:
    """The array in that dtype, itself if it is there already."""
    return array.astype(dtype, copy=False)
