"""Whether a matrix equals its mirror image at the main diagonal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sparsecc.formats import Ability
from sparsecc.storage import compiled
from sparsecc.storage.layout import AnyArray, is_nonzero
from sparsecc.storage.limits import volume
from sparsecc.storage.order import linear_key, stable_argsort
from sparsecc.storage.tensor import SparseTensor

TILE = 256
"""Rows and columns of an array that are compared with their mirror image at a time."""


def symmetry(tensor: SparseTensor) -> str:
    """``symmetric``, ``skew-symmetric``, ``hermitian``, ``pattern`` (of entries that are not 0) or ``none``."""
    if tensor.shape[0] != tensor.shape[1]:
        return "none"
    kinds = ["symmetric"]
    if tensor.dtype.kind == "c":
        kinds.append("hermitian")
    # Unsigned and boolean values have no negative.
    if tensor.dtype.kind in "ifcV":
        kinds.append("skew-symmetric")
    for values, mirrored in _pairs(tensor):
        if values is None or not np.array_equal(is_nonzero(values), is_nonzero(mirrored)):
            return "none"
        kinds = [kind for kind in kinds if _same(kind, values, mirrored)]
    return kinds[0] if kinds else "pattern"


def _same(kind: str, values: AnyArray, mirrored: AnyArray) -> bool:
    if kind == "hermitian":
        mirrored = np.conj(mirrored)
    elif kind == "skew-symmetric":
        mirrored = -mirrored
    return bool(np.array_equal(values, mirrored))


def _pairs(tensor: SparseTensor) -> Iterator[tuple[AnyArray | None, AnyArray]]:
    """Values and those at the mirrored places; None where an entry has no counterpart."""
    if tensor.format.is_dense:
        array = tensor.to_numpy(max_dense_bytes=tensor.nbytes + 1)
        for i in range(0, len(array), TILE):
            for j in range(0, i + 1, TILE):
                yield array[i : i + TILE, j : j + TILE], array[j : j + TILE, i : i + TILE].T
        return
    rows = _compressed_rows(tensor)
    turned = None if rows is None else compiled.transposed(rows, (tensor.shape[0], tensor.shape[1]))
    if rows is not None and turned is not None:
        same = all(
            np.array_equal(here, there) for here, there in zip(rows[:2], turned[:2], strict=True)
        )
        yield rows[2] if same else None, turned[2]
        return
    coordinates, values = tensor.to_coords()
    keep = is_nonzero(values)
    if not keep.all():
        coordinates, values = tuple(c[keep] for c in coordinates), values[keep]
    rows, columns = coordinates
    mirror = linear_key([columns, rows], tensor.shape, len(values))
    if mirror is None:
        order = np.lexsort((rows, columns))
    else:
        order = stable_argsort(mirror, volume(tensor.shape))
    if np.array_equal(columns[order], rows) and np.array_equal(rows[order], columns):
        yield values, values[order]
    else:
        yield None, values


def _compressed_rows(tensor: SparseTensor) -> compiled.Rows | None:
    """The arrays of CSR or CSC, if they hold no zeros."""
    fmt = tensor.format
    if not (fmt.num_levels == 2 and fmt.is_permutation and fmt.levels[0].can(Ability.FULL)):
        return None
    inner, arrays = fmt.levels[1], tensor.levels[1]
    if not (inner.name == "compressed" and inner.unique and inner.ordered):
        return None
    if arrays.positions is None or arrays.coordinates is None:
        return None
    return (
        (arrays.positions, arrays.coordinates, tensor.values)
        if is_nonzero(tensor.values).all()
        else None
    )
