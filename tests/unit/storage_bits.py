"""Arrays compared bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np


def same_bits(found: Any, wanted: Any, nan_payloads: bool = True) -> bool:
    """Whether two arrays hold the same bits; without ``nan_payloads`` any NaN is like any other."""
    a, b = np.asarray(found), np.asarray(wanted)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    words = f"u{min(a.dtype.itemsize, 8)}"  # complex: two words an element
    same = np.ascontiguousarray(a).view(words) == np.ascontiguousarray(b).view(words)
    if not nan_payloads:
        same |= (a != a) & (b != b)  # of real numbers
    return bool(same.all())
