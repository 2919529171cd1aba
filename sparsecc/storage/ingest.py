"""From the objects of other libraries to tensors: validated, zero-copy where possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecc.formats import Format
from sparsecc.storage.entries import UnknownObject, from_coords, from_numpy
from sparsecc.storage.exchange import from_scipy, from_torch
from sparsecc.storage.tensor import SparseTensor

__all__ = ["asarray", "from_coords"]


def asarray(obj: Any, format: str | Format | None = None) -> SparseTensor:
    """A tensor of an array: NumPy, SciPy sparse (every class), torch (dense, COO, CSR), nested
    lists, scalars.

    Without ``format`` the storage of the object is kept and shared where it can be; SciPy's and
    torch's entries are sorted and repeated ones combined. Raises OperandError for what can't be
    read or holds entries out of range."""
    tensor = _as_it_is(obj)
    return tensor if format is None else tensor.to(format)


def _as_it_is(obj: Any) -> SparseTensor:
    if isinstance(obj, SparseTensor):
        return obj
    module = type(obj).__module__.partition(".")[0]
    if module == "scipy" and hasattr(obj, "tocoo"):
        return from_scipy(obj)
    if module == "torch":
        return from_torch(obj)
    if isinstance(obj, np.ndarray | np.generic | bool | int | float | complex | list | tuple):
        return from_numpy(obj)
    if hasattr(obj, "__array__"):
        return from_numpy(np.asarray(obj))
    raise UnknownObject(what=f"an object of type {type(obj).__name__}")
