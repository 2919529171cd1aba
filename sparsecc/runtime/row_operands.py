"""The tables that kernels read beside the arrays of a matrix of sparse rows, made once while its positions live.

Tables depend on positions only: matrices that share them share the tables, whatever their values are. Positions that
are written to in place keep the tables of what they were, as torch keeps what it has checked of them.
"""

from __future__ import annotations

import weakref
from importlib import import_module
from typing import Any

from sparsecc.runtime.machines import is_torch

Made = tuple[dict[str, Any], dict[str, int]]
"""Tables by role, and facts."""
_MADE: dict[tuple[int, int, str, str], tuple[Any, Made]] = {}
"""Tables by the address and length of positions, device and layout, with a weak reference to the memory."""


def tables(layout: str, positions: Any) -> Made:
    """The tables of a layout for positions, where those are."""
    torch = is_torch(positions)
    owner = positions.untyped_storage() if torch else positions
    place = str(positions.device) if torch else "host"
    first = positions.data_ptr() if torch else positions.ctypes.data
    key = (first, int(positions.shape[0]), f"{place} {positions.dtype}", layout)
    known = _MADE.get(key)
    if known is not None and known[0]() is owner:
        return known[1]
    made = import_module("sparsecc.backends.triton.operands").row_tables_of(layout, positions)
    reference = weakref.ref(owner, lambda gone: _forget(key, gone))
    _MADE[key] = (reference, made)
    return made


def _forget(key: tuple[int, int, str, str], gone: Any) -> None:
    known = _MADE.get(key)
    if known is not None and known[0] is gone:
        del _MADE[key]
