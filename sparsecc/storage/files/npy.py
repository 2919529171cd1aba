"""NumPy's ``.npy`` arrays, read with their header checked against the bytes that are there; nothing
is unpickled."""

from __future__ import annotations

import warnings
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from sparsecc.diagnostics import SparseccError
from sparsecc.elements import NUMPY
from sparsecc.formats import Format
from sparsecc.storage.entries import from_numpy
from sparsecc.storage.files.errors import BadArray, CannotHold, DamagedFile, read_bytes
from sparsecc.storage.layout import AnyArray
from sparsecc.storage.limits import INT64_MAX
from sparsecc.storage.tensor import SparseTensor
from sparsecc.storage.validate import DTYPES

MAX_HEADER = 10_000
MAX_DIMENSIONS = 64
"""NumPy's own limit."""


def parse_npy(content: bytes, place: str, key: str) -> AnyArray:
    """The array of the bytes of a ``.npy`` file; ``key`` names it in messages.

    Raises BadArray for Python objects and for sizes beyond the bytes, DamagedFile for a broken
    header."""
    stream = BytesIO(content)
    library: Any = np.lib.format
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers by Python 2
            first = library.read_magic(stream) == (1, 0)
            read = library.read_array_header_1_0 if first else library.read_array_header_2_0
            shape, fortran, dtype = read(stream, max_header_size=MAX_HEADER)
    except Exception as error:  # the header is a Python literal: whatever is wrong with it
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DamagedFile(reason=f"array {key!r}: {reason}", place=place) from None
    if dtype.hasobject:
        help = "save the array with a numeric dtype"
        raise BadArray(key=key, problem="it holds Python objects", place=place, help=help)
    if dtype.subdtype is not None:
        raise BadArray(key=key, problem=f"its items are arrays ({dtype})", place=place)
    if len(shape) > MAX_DIMENSIONS or any(
        isinstance(extent, bool) or extent > INT64_MAX for extent in shape
    ):
        problem = f"{str(shape)[:100]} is not the shape of an array"
        raise BadArray(key=key, problem=problem, place=place)
    there = len(content) - stream.tell()
    if any(extent < 0 for extent in shape) or prod(shape) * dtype.itemsize != there:
        needed = prod(shape) * dtype.itemsize
        problem = f"shape {shape} of {dtype} needs {needed} bytes, {there} are there"
        raise BadArray(key=key, problem=problem, place=place)
    if not dtype.itemsize:
        raise BadArray(key=key, problem=f"its dtype {dtype} has no size", place=place)
    flat = np.frombuffer(content, dtype=dtype, offset=stream.tell())
    try:
        return flat.reshape(shape, order="F" if fortran else "C")
    except ValueError as error:  # extents beside a 0 whose product is beyond 64 bits
        raise BadArray(key=key, problem=f"shape {shape}: {error}", place=place) from None


def numeric(array: AnyArray, place: str, key: str) -> AnyArray:
    """The array, if values may have its dtype. Items of two plain bytes are bf16: NumPy has no other
    way to write them."""
    if array.dtype == np.dtype("V2"):
        array = array.view(NUMPY["bf16"])
    if array.dtype.name not in DTYPES:
        help = f"supported: {', '.join(DTYPES)}"
        raise BadArray(
            key=key, problem=f"dtype {array.dtype} is not supported", place=place, help=help
        )
    return array


def read_npy(path: Path, format: str | Format | None = None) -> SparseTensor:
    """The dense tensor of a ``.npy`` file, in ``format`` if one is named. Raises FileError."""
    array = numeric(parse_npy(read_bytes(path), str(path), path.name), str(path), path.name)
    tensor = from_numpy(array)
    return tensor if format is None else tensor.to(format)


def write_npy(tensor: SparseTensor, out: BytesIO) -> None:
    """The dense array; raises CannotHold beyond 1 GiB."""
    try:
        array = tensor.to_numpy()
    except SparseccError as error:
        what = f"this sparse tensor: {error.message}"
        raise CannotHold(suffix=".npy", what=what, remedy="write a .npz file instead") from None
    np.save(out, array, allow_pickle=False)
