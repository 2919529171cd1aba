"""Whether the memory of a torch tensor holds its elements: not if they are lazy, packed, wrapped or nowhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from sparsecc.diagnostics import OperandError


class NotPlain(OperandError):
    text = "{which} is {what}: its memory does not hold its elements as they are"
    help_text = "{remedy}"


class Oddity(NamedTuple):
    """What a tensor is beside its elements in memory, and what makes a plain one of it."""

    what: str
    remedy: str
    lazy: bool = False
    """Whether ``resolved`` makes it plain, which is a copy."""


NEGATIVE = Oddity("lazily negated (is_neg())", "copy it once with .resolve_neg()", True)
CONJUGATE = Oddity("lazily conjugated (is_conj())", "copy it once with .resolve_conj()", True)
ZEROS = Oddity("a tensor of zeros without memory", "copy it once with .clone()", True)
NESTED = Oddity("a nested tensor", "pass its parts, or .to_padded_tensor(0)")
META = Oddity(
    "on the meta device, without elements", "make it on a device: torch.empty_like(x, device=...)"
)
QUANTIZED = Oddity("quantized", "call .dequantize(), or pass .int_repr()")
MKLDNN = Oddity("of layout torch._mkldnn", "call .to_dense()")
TRANSFORMED = Oddity(
    "inside a transformation of functions (vmap, grad)",
    "call the kernel outside of it, or inside a torch.library.custom_op",
)
_class_of: Callable[[Any], Any] = type
COMPRESSED = ("torch.sparse_csr", "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc")


def oddity(tensor: Any) -> Oddity | None:
    """What is not plain about a torch tensor, or the values of a sparse one."""
    torch: Any = sys.modules["torch"]
    kind = _class_of(tensor)
    if tensor.is_nested:
        return NESTED
    if kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return Oddity(f"a wrapper ({kind.__name__})", "pass the plain tensor that it holds")
    layout = str(tensor.layout)
    for found, odd in (
        (tensor.is_meta, META),
        (tensor.is_quantized, QUANTIZED),
        (layout == "torch._mkldnn", MKLDNN),
    ):
        if found:
            return odd
    if layout in COMPRESSED:
        return _lazy(tensor.values())
    return _lazy(tensor._values() if layout == "torch.sparse_coo" else tensor)


def _lazy(tensor: Any) -> Oddity | None:
    if tensor.is_neg():
        return NEGATIVE
    if tensor.is_conj():
        return CONJUGATE
    if tensor._is_zerotensor():
        return ZEROS
    try:
        tensor.data_ptr()
    except RuntimeError:
        return TRANSFORMED
    return None


def refuse_odd(which: str, tensor: Any) -> None:
    """Raise NotPlain for a tensor that a kernel can't read as it lies."""
    if (odd := oddity(tensor)) is not None:
        raise NotPlain(which=which, what=odd.what, remedy=odd.remedy)


def refuse_unreadable(tensor: Any) -> None:
    """Raise NotPlain for a tensor whose elements can't be had even by a copy."""
    odd = oddity(tensor)
    if odd is not None and not odd.lazy:
        raise NotPlain(which="a torch tensor", what=odd.what, remedy=odd.remedy)


def resolved(tensor: Any) -> Any:
    """The elements in memory of their own where they were lazy."""
    if tensor._is_zerotensor():
        return tensor.clone()
    return tensor.resolve_conj().resolve_neg()
