"""Element types by name, and NumPy's promotion of them.

Constants are *weak*, as in NEP 50: ``2.5 * x`` keeps an f32 ``x`` f32, and makes an i32 ``x`` f64.
"""

from __future__ import annotations

from functools import cache

import numpy as np

NAMES = ("f64", "f32", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "c64", "c128")
"""The element types of this release; ``c64`` is a pair of f32."""

_KINDS = {"f": "float", "i": "int", "u": "uint", "b": "bool", "c": "complex"}
NUMPY: dict[str, np.dtype[np.generic]] = {
    name: np.dtype("bool" if name == "bool" else f"{_KINDS[name[0]]}{name[1:]}") for name in NAMES
}
_BY_NUMPY = {dtype: name for name, dtype in NUMPY.items()}

Constant = int | float | complex


def kind(name: str) -> str:
    """One of ``f i u b c``."""
    return name[0]


def is_inexact(name: str) -> bool:
    """Float or complex."""
    return name[0] in "fc"


@cache
def promote(a: str, b: str) -> str:
    """The type in which NumPy computes with an ``a`` and a ``b``."""
    return _BY_NUMPY[np.result_type(NUMPY[a], NUMPY[b])]


def promote_constant(name: str, value: Constant) -> str:
    """The type in which NumPy computes with a ``name`` and a Python constant."""
    if isinstance(value, complex):
        return name if kind(name) == "c" else "c64" if name == "f32" else "c128"
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
