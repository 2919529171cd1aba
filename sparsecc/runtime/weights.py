"""Packing the weights of a kernel: checked against its operands, in the layouts that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sparsecc.diagnostics import OperandError, UsageError, did_you_mean
from sparsecc.elements import name_of
from sparsecc.runtime import packs
from sparsecc.runtime.call_checks import checked_tokens
from sparsecc.runtime.compiled_kernel import UnknownOperandName, WrongDtype
from sparsecc.runtime.machines import OURS, is_torch
from sparsecc.runtime.tile_operands import Slot
from sparsecc.runtime.torch_formats import torch_format
from sparsecc.runtime.torch_indices import check as check_indices
from sparsecc.storage.tensor import SparseTensor
from sparsecc.storage.torch_plain import refuse_odd

Choose = Callable[[Slot, Any, "int | None"], dict[str, int]]
"""Options of a packer, for an operand, its weight and a number of tokens."""


class NoWeights(UsageError):
    text = "no weight is given to pack"
    help_text = "name one: kernel.pack({first}=...); packed: {known}"


class NoWeight(OperandError):
    text = "operand {name!r} is a {found}, which can't be packed"
    help_text = "pass a dense NumPy array or torch tensor, or a SparseTensor"


def pack(
    slots: Mapping[str, Slot], weights: Mapping[str, Any], tokens: int | None, choose: Choose
) -> Any:
    """Weights by name in the layouts of a kernel; ``choose`` says what those leave open.

    Raises UsageError and OperandError."""
    tokens = checked_tokens(tokens)
    known = [n for n, s in slots.items() if s.packing or s.tables]
    if not weights:
        raise NoWeights(first=known[0] if known else "W", known=", ".join(known) or "none")
    found: dict[str, Any] = {}
    for name, weight in weights.items():
        if name not in slots:
            raise UnknownOperandName(name=name, help=did_you_mean(name, list(slots)))
        slot = slots[name]
        layout = slot.packing or next(iter(slot.tables), None)
        if layout is None:
            raise packs.NotPacked(name=name, known=", ".join(known) or "none")
        check(slot, weight)
        found[name] = packs.pack(layout, weight, **choose(slot, weight, tokens))
    return next(iter(found.values())) if len(found) == 1 else found


def check(slot: Slot, weight: Any) -> None:
    """Raise for a weight that the kernel will not read: of another dtype, rank or shape, or no tensor."""
    name, given = slot.name, weight
    if is_torch(weight):
        refuse_odd(f"operand {name!r}", weight)
        if str(weight.layout) != "torch.strided":
            torch_format(weight, name)  # raises for layouts that nothing reads
            check_indices(name, weight, lambda: False)
        dtype: str | None = OURS.get(str(weight.dtype))
    elif isinstance(given, np.ndarray | SparseTensor):
        dtype = name_of(weight.dtype)
    else:
        raise NoWeight(name=name, found=type(weight).__name__)
    if dtype != slot.operand.dtype:
        raise WrongDtype(name=name, found=dtype or weight.dtype, wanted=slot.operand.dtype)
    slot.check_shape(tuple(int(extent) for extent in weight.shape))
