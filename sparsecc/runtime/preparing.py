"""Bringing an operand into the format of a GPU's kernel once, where a call would refuse it as it lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sparsecc.formats import known_name
from sparsecc.runtime.compiled_kernel import actual_format, in_format
from sparsecc.runtime.machines import is_torch
from sparsecc.runtime.tile_operands import NotCoalesced, NotContiguous, Slot, WrongWidth
from sparsecc.runtime.torch_formats import WrongTorchLayout
from sparsecc.storage.ingest import asarray
from sparsecc.storage.tensor import SparseTensor

OTHERWISE = (WrongTorchLayout, WrongWidth, NotCoalesced, NotContiguous)
"""Why a torch tensor that holds the right numbers is refused."""


def prepared_operand(slot: Slot, given: Any, say: Callable[[str], None]) -> Any:
    """What calls take without a conversion. A torch tensor that fits, and a packed operand, stay as they are; what is
    converted goes through this processor, and is kept on the GPU while it lives. Raises OperandError, LimitError."""
    if hasattr(given, "layout") and hasattr(given, "facts"):
        return given
    if is_torch(given):
        try:
            slot.take(given)
            return given
        except OTHERWISE:
            given = asarray(given.detach().cpu())
    tensor = given if isinstance(given, SparseTensor) else asarray(given)
    slot.check_shape(tensor.shape)
    actual = actual_format(tensor)
    if actual == slot.wanted or not tensor.rank:
        return tensor
    say(f"operand {slot.name}: {known_name(actual)} converted to {known_name(slot.wanted)}")
    return in_format(tensor, slot.wanted)
