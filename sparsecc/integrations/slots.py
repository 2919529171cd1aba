"""What is kept between calls for one weight: checked arrays, the transposed pattern, packed operands.

A custom op gets tensors and numbers only, so a weight's slot goes by number. What it keeps is good for tensors at the
same address and of the same version: an optimiser's step or a loaded state dict changes the version."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import torch

Tensor = torch.Tensor

_NUMBERS = count(1)
_SLOTS: WeakValueDictionary[int, Slot] = WeakValueDictionary()


class Slot:
    """The memory of one weight. Copies and unpickled ones start empty, under an own number."""

    def __init__(self) -> None:
        self.number = next(_NUMBERS)
        self.kept: dict[Hashable, tuple[tuple[Hashable, ...], Sequence[Tensor], Any]] = {}
        _SLOTS[self.number] = self

    def keep(self, key: Hashable, tensors: Sequence[Tensor], make: Callable[[], Any]) -> Any:
        """What ``make`` makes of the tensors; made again when one of them is another or has changed."""
        state = tuple(map(_state, tensors))
        if None in state:
            return make()
        found = self.kept.get(key)
        if found is not None and found[0] == state:
            return found[2]
        made = make()
        # The tensors are held, so that their addresses stay theirs.
        self.kept[key] = (state, [tensor.detach() for tensor in tensors], made)
        return made

    def forget(self) -> None:
        """Keep nothing: for values that were changed in ways that torch's version does not show."""
        self.kept.clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> Slot:
        return Slot()

    def __reduce__(self) -> tuple[type[Slot], tuple[()]]:
        return (Slot, ())


def slot_of(number: int) -> Slot:
    """The slot of a number; an empty one where its weight is gone."""
    return _SLOTS.get(number) or Slot()


def _state(tensor: Tensor) -> Hashable:
    """Where a tensor is and which version of it; None where torch keeps no version (inference tensors)."""
    if tensor.is_inference():
        return None
    return (tensor.data_ptr(), tensor._version, tensor.device, tensor.dtype, tuple(tensor.shape))
