"""What a call of a kernel refuses of torch tensors, whatever it computes: derivatives that would be lost in silence."""

from __future__ import annotations

import sys
from typing import Any

from sparsecc.diagnostics import OperandError
from sparsecc.storage.torch_plain import refuse_odd


class NeedsGrad(OperandError):
    text = "{which} requires a gradient, and a call of a kernel has no derivative"
    help_text = "pass x.detach(), call under torch.no_grad(), or use sparsecc.integrations.torch, which has derivatives"


def refuse_grad(which: str, value: object) -> None:
    """Raise NeedsGrad for a torch tensor whose derivative autograd would expect."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return
    tensor: Any = value
    if tensor.requires_grad and torch.is_grad_enabled():
        raise NeedsGrad(which=which)
    if forward_mode() and torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None:
        raise NeedsGrad(which=which)


def forward_mode() -> bool:
    """Whether forward derivatives are being taken, where operands may have tangents."""
    module: Any = sys.modules.get("torch.autograd.forward_ad")
    return module is not None and getattr(module, "_current_level", -1) >= 0


def refuse_unfit(which: str, tensor: Any) -> None:
    """Both guards, for a torch tensor that is read or written as it lies. Raises NeedsGrad, NotPlain."""
    refuse_grad(which, tensor)
    refuse_odd(which, tensor)


def version(tensor: Any) -> int | None:
    """How often it was changed in place; 0 where its kind doesn't count, None where torch keeps none (inference)."""
    try:
        return int(getattr(tensor, "_version", 0))
    except RuntimeError:
        return None
