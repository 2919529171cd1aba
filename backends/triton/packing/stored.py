"""Operands whose arrays kernels read as they are stored: CSR, COO, DCSR, BSR, ELL, dense, and so on.

Roles are those of a kernel's arguments: ``values``, ``positions{level}``, ``coordinates{level}``. Values are not
copied; a BSR tensor's are [blocks, rows, columns], contiguous. Positions and coordinates are int32, the type that
kernels address with: arrays of another width are converted.
"""

from __future__ import annotations

import numpy as np

from sparsecc.backends.triton.packing.arrays import Array, NumpyArrays
from sparsecc.backends.triton.packing.packed import PackedOperand
from sparsecc.diagnostics import LimitError, UnsupportedError
from sparsecc.formats import known_name
from sparsecc.formats.level import AnyInts
from sparsecc.storage import limits
from sparsecc.storage.tensor import SparseTensor


class IndexTooWide(LimitError):
    text = (
        "{role} of level {level} hold {number}, more than the 32 bits that GPU kernels address with"
    )
    help_text = "split the tensor along its rows"


class HasParts(UnsupportedError):
    text = "a tensor in the sum format {format} has no arrays of its own that a kernel reads"
    help_text = "pack it as 2:4+CSR or as a bitmap, or convert it to CSR"


def pack_stored(tensor: SparseTensor) -> PackedOperand:
    """The arrays of a tensor by role, without a copy where positions and coordinates have 32 bits."""
    if tensor.parts:
        raise HasParts(format=known_name(tensor.format))
    arrays: dict[str, Array] = {"values": tensor.values}
    for number, level in enumerate(tensor.levels):
        for role, array in level:
            arrays[f"{role}{number}"] = _narrow(array, role, number)
    dtype = NumpyArrays().dtype(tensor.values)
    return PackedOperand(known_name(tensor.format.with_widths(0, 0)), tensor.shape, dtype, arrays)


def _narrow(array: AnyInts, role: str, level: int) -> Array:
    if array.dtype == np.int32:
        return array
    largest = limits.largest_of(array)
    if largest > limits.INT32_MAX:
        raise IndexTooWide(role=role, level=level, number=largest)
    return array.astype(np.int32)
