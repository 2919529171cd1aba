"""The tile dialect: what one program of a GPU kernel does, on blocks of values.

``blocks`` holds programs that Triton lays out by itself, ``fragments`` those whose registers hold the operands of a
matrix instruction in that instruction's own order.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from sparsecc.dialects.tile import blocks, fragments, sharing
from sparsecc.dialects.tile.schedule import ScheduleAttr

Tile = Dialect(
    "tile",
    [*blocks.OPS, *sharing.OPS, *fragments.OPS],
    [ScheduleAttr, *blocks.ATTRIBUTES, *fragments.ATTRIBUTES],
)

__all__ = ["ScheduleAttr", "Tile"]
