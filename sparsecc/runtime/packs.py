"""Packing weights for GPU kernels: which packer makes which layout."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sparsecc.diagnostics import UnsupportedError, UsageError
from sparsecc.formats.row_tables import LAYOUTS

PACKERS: Mapping[str, str] = {
    "2:4": "pack_2_4",
    "2:4+CSR": "pack_sum_2_4",
    "bitmap": "pack_bitmap",
    "CSR-segments": "pack_segments",
    "CSR-bins": "pack_bins",
    "CSR-entries": "pack_entries",
    "cuSPARSELt": "pack_cusparselt",
}
"""Layouts, and the functions of ``sparsecc.backends.triton.operands`` that make them."""


SIZES: Mapping[str, Mapping[str, int]] = {"bitmap": {"block_rows": 64, "block_columns": 64}}
"""Facts of a packing that every kernel relies on, by layout."""
OPEN = ("2:4+CSR",)
"""Layouts whose facts a kernel is compiled for."""


class NotPacked(UsageError):
    text = "the kernel does not read operand {name!r} packed"
    help_text = "pass it as it is; packed: {known}"


class ReadTwoWays(UnsupportedError):
    text = "operand {name!r} is read packed as {layout} by one kernel, and as it is stored elsewhere in the program"
    help_text = "give the tensor two names in the program, one for each use, and pass it twice"


def described(layout: str, facts: Mapping[str, int]) -> str:
    """A layout with those of its facts that every kernel relies on."""
    sizes = "x".join(str(facts.get(name, "?")) for name in SIZES.get(layout, ()))
    return f"{layout} {sizes}" if sizes else layout


def explained(operand: str, layout: str) -> list[str]:
    """What a plan says of an operand that a kernel reads in a layout."""
    lines = [f"    packed: {operand} as {layout}"]
    if layout not in LAYOUTS:
        lines.append(
            f"    inf, nan: tiles of {operand} hold zeros where nothing is stored, and times inf or NaN they give NaN"
        )
    return lines


def pack(layout: str, weight: Any, **options: Any) -> Any:
    """A weight in a layout, where its arrays are."""
    operands = import_module("sparsecc.backends.triton.operands")
    return getattr(operands, PACKERS[layout])(weight, **options)
