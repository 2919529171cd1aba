"""Counting sorts and scatters that SciPy has compiled. SciPy is optional: each function gives None
without it.

Arrays in and out are those of compressed rows: ``positions`` of shape (rows + 1,), ``coordinates``
and ``values``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from sparsecc.formats.level import AnyInts
from sparsecc.storage.layout import AnyArray

USE_SCIPY = True
"""Tests turn it off to run NumPy's paths."""

Rows = tuple[AnyInts, AnyInts, AnyArray]


@cache
def installed() -> Any:
    try:
        from scipy import sparse
    except ImportError:
        return None
    return sparse


def scipy_sparse() -> Any:
    """``scipy.sparse``, or None."""
    return installed() if USE_SCIPY else None


def signed(array: AnyInts) -> AnyInts:
    """Indices as SciPy takes them: int32 or int64."""
    return array if array.dtype.name in ("int32", "int64") else array.astype(np.int64)


def _carried(values: AnyArray) -> AnyArray:
    """Values that SciPy moves about: it knows no floats of 16 bits, but their bits as integers."""
    return values.view(np.uint16) if values.dtype.name in ("float16", "bfloat16") else values


def _rows(library: Any, rows: Rows, shape: tuple[int, int]) -> Any:
    positions, coordinates, values = rows
    return library.csr_array(
        (_carried(values), signed(coordinates), signed(positions)), shape=shape
    )


def transposed(rows: Rows, shape: tuple[int, int]) -> Rows | None:
    """The columns of a matrix of compressed rows, each ascending."""
    library = scipy_sparse()
    if library is None or 0 in shape:
        return None
    columns = _rows(library, rows, shape).tocsc()
    return columns.indptr, columns.indices, columns.data.view(rows[2].dtype)


def rows_to_dense(rows: Rows, shape: tuple[int, int]) -> AnyArray | None:
    """The row-major dense array of compressed rows."""
    library = scipy_sparse()
    if library is None or 0 in shape:
        return None
    return _rows(library, rows, shape).toarray().view(rows[2].dtype)


def rows_to_blocks(rows: Rows, shape: tuple[int, int], block: tuple[int, int]) -> Rows | None:
    """Compressed rows of blocks, ``values`` of shape (blocks, *block); ``shape`` is a multiple of
    the block."""
    library = scipy_sparse()
    if library is None or 0 in shape:
        return None
    blocks = _rows(library, rows, shape).tobsr(block)
    blocks.sort_indices()
    return blocks.indptr, blocks.indices, blocks.data.view(rows[2].dtype)


def blocks_to_rows(blocks: Rows, shape: tuple[int, int]) -> Rows | None:
    """Compressed rows of all elements of blocks, zeros included; the inverse of
    ``rows_to_blocks``."""
    library = scipy_sparse()
    if library is None or 0 in shape:
        return None
    positions, coordinates, values = blocks
    arrays = (_carried(values), signed(coordinates), signed(positions))
    rows = library.bsr_array(arrays, shape=shape).tocsr()
    return rows.indptr, rows.indices, rows.data.view(values.dtype)


def entries_to_dense(
    rows: AnyInts, columns: AnyInts, values: AnyArray, shape: tuple[int, int]
) -> AnyArray | None:
    """The row-major dense array of distinct entries."""
    library = scipy_sparse()
    if library is None or 0 in shape:
        return None
    entries = library.coo_array((_carried(values), (rows, columns)), shape=shape)
    return entries.toarray().view(values.dtype)
