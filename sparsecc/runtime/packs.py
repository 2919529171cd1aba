"""Packing weights for GPU kernels: which packer makes which layout."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sparsecc.diagnostics import UsageError

PACKERS: Mapping[str, str] = {
    "2:4": "pack_2_4",
    "2:4+CSR": "pack_sum_2_4",
    "bitmap": "pack_bitmap",
    "CSR-segments": "pack_segments",
    "CSR-bins": "pack_bins",
    "CSR-entries": "pack_entries",
}
"""Layouts, and the functions of ``sparsecc.backends.triton.operands`` that make them."""


class NotPacked(UsageError):
    text = "the kernel does not read operand {name!r} packed"
    help_text = "pass it as it is; packed: {known}"


def pack(layout: str, weight: Any, **options: Any) -> Any:
    """A weight in a layout, where its arrays are."""
    operands = import_module("sparsecc.backends.triton.operands")
    return getattr(operands, PACKERS[layout])(weight, **options)
