"""A packed operand: flat arrays by role, as the kernels of a layout read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, cast

import numpy as np

from sparsecc.backends.triton.packing.arrays import Array, NumpyArrays, arrays_of
from sparsecc.diagnostics import OperandError


class WrongLayout(OperandError):
    text = "an operand packed as {found} is not {wanted}"
    help_text = "pack the weight for the kernel that reads it"


@dataclass(frozen=True, eq=False)
class PackedOperand:
    """An operand in a kernel's layout; immutable by convention."""

    layout: str
    """``2:4``, ``2:4+CSR``, ``bitmap``, or a format's name for arrays as they are stored."""
    shape: tuple[int, ...]
    dtype: str
    arrays: Mapping[str, Array]
    """By role: ``packed``, ``offsets``, ``values``, ``positions1`` …; all of one library and device."""
    facts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Numbers of the packing that a kernel's text depends on."""

    @property
    def nbytes(self) -> int:
        return sum(prod(a.shape) * a.dtype.itemsize for a in self.arrays.values())

    @property
    def device(self) -> str:
        """``host`` for NumPy arrays, else the torch device: ``cpu``, ``cuda:0``."""
        first = next(iter(self.arrays.values()))
        return "host" if isinstance(first, np.ndarray) else str(first.device)

    def to(self, device: Any) -> PackedOperand:
        """On a torch device, or on the ``host`` as NumPy arrays; itself if it is there."""
        if str(device) == self.device:
            return self
        move = _to_host if str(device) == "host" else _to_device
        return replace(
            self, arrays={role: move(a, device, self.dtype) for role, a in self.arrays.items()}
        )

    def expect(self, layout: str) -> PackedOperand:
        """Itself, if it has that layout."""
        if self.layout != layout:
            raise WrongLayout(found=self.layout, wanted=layout)
        return self


def _to_host(a: Array, device: Any, dtype: str) -> Array:
    xp = arrays_of(a)
    if xp.dtype(a) == dtype:  # values: NumPy knows bf16 by another name
        return NumpyArrays().values(xp.bits(a).cpu().numpy(), dtype)
    return a.cpu().numpy()


def _to_device(a: Array, device: Any, dtype: str) -> Array:
    if isinstance(a, np.ndarray):
        import torch

        xp, array = NumpyArrays(), cast(Array, a)
        values = xp.dtype(array) == dtype
        plain = np.require(xp.bits(array) if values else array, requirements=["C", "W"])
        tensor: Array = torch.from_numpy(plain)  # pyright: ignore[reportUnknownMemberType]
        a = arrays_of(tensor).values(tensor, dtype) if values else tensor
    return a.to(device)
