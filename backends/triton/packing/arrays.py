"""The dozen array operations of the packers, for NumPy arrays and for torch tensors where they are.

Packers move bits: they see values as signed integers of the same width. Operators, ``reshape`` and slices are the
same in both libraries; what differs is here. torch is imported only when an operand is a tensor of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from sparsecc.diagnostics import OperandError
from sparsecc.elements import NUMPY, name_of

Array = Any
"""A NumPy array or a torch tensor: their operators agree, their types have nothing in common."""

INTEGERS = {8: "int8", 16: "int16", 32: "int32", 64: "int64"}
BITS = {"f16": 16, "bf16": 16, "i8": 8, "f32": 32, "f64": 64}


class WrongArray(OperandError):
    text = "{what} is not a NumPy array, a strided torch tensor or a SparseTensor"
    help_text = "convert it with sparsecc.asarray() or numpy.asarray()"


class WrongDtype(OperandError):
    text = "the {layout} layout holds {known}, not {dtype}"
    help_text = "cast the weight first"


class Arrays(Protocol):
    """What both libraries do, under one name."""

    host: bool
    chunk: int
    """How many elements of a weight are worked on at a time."""

    def dtype(self, a: Array) -> str: ...
    def bits(self, a: Array) -> Array: ...
    def values(self, bits: Array, dtype: str) -> Array: ...
    def view(self, a: Array, width: int) -> Array: ...
    def cast(self, a: Array, width: int) -> Array: ...
    def zeros(self, shape: Sequence[int], width: int) -> Array: ...
    def arange(self, start: int, stop: int) -> Array: ...
    def table(self, a: npt.NDArray[Any]) -> Array: ...
    def take(self, table: Array, at: Array) -> Array: ...
    def permute(self, a: Array, axes: Sequence[int]) -> Array: ...
    def contiguous(self, a: Array) -> Array: ...
    def concatenate(self, parts: Sequence[Array]) -> Array: ...
    def nonzero(self, flat: Array) -> Array: ...
    def sort(self, flat: Array) -> Array: ...
    def cumsum(self, flat: Array) -> Array: ...
    def searchsorted(self, ascending: Array, at: Array) -> Array: ...
    def bincount(self, flat: Array, size: int) -> Array: ...
    def repeat(self, a: Array, counts: Array) -> Array: ...
    def sums(self, a: Array, b: Array, dtype: str) -> Array: ...


class NumpyArrays:
    host = True
    chunk = 1 << 20  # what is in work stays in the cache

    def dtype(self, a: Array) -> str:
        return name_of(a.dtype) or str(a.dtype)

    def bits(self, a: Array) -> Array:
        """The values as signed integers of the same width."""
        native = a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))
        return native.view(INTEGERS[a.dtype.itemsize * 8])

    def values(self, bits: Array, dtype: str) -> Array:
        return bits.view(NUMPY[dtype])

    def view(self, a: Array, width: int) -> Array:
        """Neighbours along the last axis as wider integers, or the other way round."""
        return np.ascontiguousarray(a).view(INTEGERS[width])

    def cast(self, a: Array, width: int) -> Array:
        """As integers of a width, cut to their low bits."""
        return a.astype(INTEGERS[width])

    def zeros(self, shape: Sequence[int], width: int) -> Array:
        return np.zeros(tuple(shape), dtype=INTEGERS[width])

    def arange(self, start: int, stop: int) -> Array:
        return np.arange(start, stop, dtype=np.int64)

    def table(self, a: npt.NDArray[Any]) -> Array:
        return a

    def take(self, table: Array, at: Array) -> Array:
        return table[at]

    def permute(self, a: Array, axes: Sequence[int]) -> Array:
        return a.transpose(axes)

    def contiguous(self, a: Array) -> Array:
        return np.ascontiguousarray(a)

    def concatenate(self, parts: Sequence[Array]) -> Array:
        return cast(Array, np.concatenate(list(parts)))

    def nonzero(self, flat: Array) -> Array:
        return np.flatnonzero(flat)

    def sort(self, flat: Array) -> Array:
        return np.sort(flat)

    def cumsum(self, flat: Array) -> Array:
        return np.cumsum(flat, dtype=np.int64)

    def searchsorted(self, ascending: Array, at: Array) -> Array:
        return ascending.searchsorted(at)

    def bincount(self, flat: Array, size: int) -> Array:
        return np.bincount(flat, minlength=size)

    def repeat(self, a: Array, counts: Array) -> Array:
        return np.repeat(a, counts)

    def sums(self, a: Array, b: Array, dtype: str) -> Array:
        """The bits of the sums of values given by their bits: added in f32 and rounded once."""
        one, other = (self.values(x, dtype).astype(np.float32) for x in (a, b))
        return self.bits((one + other).astype(self.values(a, dtype).dtype))


class TorchArrays:
    host = False
    chunk = 1 << 24

    def __init__(self, device: Any) -> None:
        import torch

        # torch's types are incomplete in strict mode: seen as Any, from here on.
        self.torch: Any = torch
        self.device = device
        self.integers: dict[int, Any] = {w: getattr(self.torch, n) for w, n in INTEGERS.items()}

    def dtype(self, a: Array) -> str:
        name = str(a.dtype).removeprefix("torch.")
        return next((ours for ours, numpy in NUMPY.items() if numpy.name == name), name)

    def bits(self, a: Array) -> Array:
        return a.detach().view(self.integers[a.dtype.itemsize * 8])

    def values(self, bits: Array, dtype: str) -> Array:
        return bits.view(getattr(self.torch, NUMPY[dtype].name))

    def view(self, a: Array, width: int) -> Array:
        a = a.contiguous()
        size = width // 8
        if not a.numel():  # torch gives nothing no strides that fit a wider view
            return self.zeros((*a.shape[:-1], a.shape[-1] * a.dtype.itemsize // size), width)
        if a.storage_offset() * a.dtype.itemsize % size or a.data_ptr() % size:
            a = a.clone()  # a wider view must begin at a multiple of its width
        return a.view(self.integers[width])

    def cast(self, a: Array, width: int) -> Array:
        return a.to(self.integers[width])

    def zeros(self, shape: Sequence[int], width: int) -> Array:
        return self.torch.zeros(tuple(shape), dtype=self.integers[width], device=self.device)

    def arange(self, start: int, stop: int) -> Array:
        return self.torch.arange(start, stop, device=self.device)

    def table(self, a: npt.NDArray[Any]) -> Array:
        return self.torch.from_numpy(a.copy()).to(self.device)

    def take(self, table: Array, at: Array) -> Array:
        return table[at]

    def permute(self, a: Array, axes: Sequence[int]) -> Array:
        return a.permute(tuple(axes))

    def contiguous(self, a: Array) -> Array:
        return a.contiguous()

    def concatenate(self, parts: Sequence[Array]) -> Array:
        return self.torch.cat(list(parts))

    def nonzero(self, flat: Array) -> Array:
        return flat.nonzero(as_tuple=True)[0]

    def sort(self, flat: Array) -> Array:
        return flat.sort().values

    def cumsum(self, flat: Array) -> Array:
        return flat.cumsum(0)

    def searchsorted(self, ascending: Array, at: Array) -> Array:
        return self.torch.searchsorted(ascending, at)

    def bincount(self, flat: Array, size: int) -> Array:
        return self.torch.bincount(flat, minlength=size)

    def repeat(self, a: Array, counts: Array) -> Array:
        return self.torch.repeat_interleave(a, counts)

    def sums(self, a: Array, b: Array, dtype: str) -> Array:
        one, other = (self.values(x, dtype) for x in (a, b))
        return self.bits((one.float() + other.float()).to(one.dtype))


def is_torch(a: object) -> bool:
    """Whether it is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(a, torch.Tensor)


def arrays_of(a: object, what: str = "the weight") -> Arrays:
    """The library that an operand's arrays belong to."""
    if isinstance(a, np.ndarray):
        return NumpyArrays()
    if is_torch(a):
        tensor: Any = a
        if str(tensor.layout) == "torch.strided":
            return TorchArrays(tensor.device)
        raise WrongArray(what=f"{what}, a tensor of layout {tensor.layout},")
    raise WrongArray(what=f"{what}, a {type(a).__name__},")
