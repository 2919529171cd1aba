"""Element types by name, and NumPy's promotion of them.

Constants are *weak*, as in NEP 50: ``2.5 * x`` keeps an f32 ``x`` f32, and makes an i32 ``x`` f64.
NumPy has no rule for ``bf16`` and integers of more than 8 bits, or f16: those of ``f16`` serve, and the
two floats of 16 bits meet in f32.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from sparsecc.elements import NAMES, NARROW, NUMPY, is_narrow, kind, name_of

__all__ = [
    "NAMES", "NARROW", "NUMPY", "Constant", "computed_in", "default_of", "fits", "is_inexact", "is_narrow", "kind",
    "promote", "promote_constant", "widens",
]  # fmt: skip

Constant = int | float | complex


def is_inexact(name: str) -> bool:
    """Float or complex."""
    return kind(name) in "fc"


def computed_in(name: str) -> str:
    """The type in which expressions of a type are computed: f32 for floats of 16 bits."""
    return "f32" if is_narrow(name) else name


@cache
def promote(a: str, b: str) -> str:
    """The type in which NumPy computes with an ``a`` and a ``b``."""
    if "bf16" in (a, b) and a != b:
        other = b if a == "bf16" else a
        if other == "f16":
            return "f32"
        found = promote("f16", other)
        return "bf16" if found == "f16" else found
    found = name_of(np.result_type(NUMPY[a], NUMPY[b]))
    assert found is not None
    return found


def widens(source: str, target: str) -> bool:
    """Whether each number of ``source`` is one of ``target``'s, by NumPy's rules."""
    return promote(source, target) == target


def promote_constant(name: str, value: Constant) -> str:
    """The type in which NumPy computes with a ``name`` and a Python constant."""
    if isinstance(value, complex):
        return name if kind(name) == "c" else "c64" if computed_in(name) == "f32" else "c128"
    if isinstance(value, float):
        return name if is_inexact(name) else "f64"
    return "i64" if name == "bool" else name


def default_of(value: Constant) -> str:
    """The type of a constant that meets no tensor."""
    return "c128" if isinstance(value, complex) else "f64" if isinstance(value, float) else "i64"


def fits(value: Constant, name: str) -> bool:
    """Whether a constant of a suitable kind is representable (integers: in range)."""
    if not isinstance(value, int):
        return True
    if kind(name) in "iu":
        info = np.iinfo(NUMPY[name].name)
        return int(info.min) <= value <= int(info.max)
    return abs(value) < 2**1023
