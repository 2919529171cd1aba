"""The bits of positions and coordinates of a tensor whose format is chosen."""

from __future__ import annotations

from collections.abc import Iterable

NARROW, WIDE = 32, 64
FITTING = 1 << 31
"""Numbers below it have the narrow width."""


def width_of(entries: int, extents: Iterable[int | None]) -> int:
    """The width that counts so many entries, and the coordinates of those extents (None: not known)."""
    return WIDE if max(entries, *(extent or 0 for extent in extents), 0) >= FITTING else NARROW
