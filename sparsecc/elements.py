"""Element types by name, and NumPy's types for them.

``bf16`` is ml_dtypes' bfloat16, which is imported when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

NAMES = (
    "f64", "f32", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "c64", "c128",
)  # fmt: skip
"""The element types of this release; ``c64`` is a pair of f32."""

NARROW = ("f16", "bf16")
"""Floats of 16 bits: expressions of them are computed in f32 and rounded once."""

_KINDS = {"f": "float", "i": "int", "u": "uint", "c": "complex"}
_BUILT_IN: dict[str, np.dtype[Any]] = {
    name: np.dtype("bool" if name == "bool" else f"{_KINDS[name[0]]}{name[1:]}")
    for name in NAMES
    if name != "bf16"
}
_BY_NUMPY = {dtype: name for name, dtype in _BUILT_IN.items()}


class _Types(Mapping[str, np.dtype[Any]]):
    def __getitem__(self, name: str) -> np.dtype[Any]:
        found = _BUILT_IN.get(name)
        if found is None and name == "bf16":
            import ml_dtypes

            found = _BUILT_IN[name] = np.dtype(ml_dtypes.bfloat16)
            _BY_NUMPY[found] = name
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


NUMPY: Mapping[str, np.dtype[Any]] = _Types()
"""NumPy's type of each name."""


def name_of(dtype: np.dtype[Any]) -> str | None:
    """The name of a NumPy type; None if no tensor has such elements."""
    found = _BY_NUMPY.get(dtype)
    return "bf16" if found is None and dtype.name == "bfloat16" and dtype.isnative else found


def kind(name: str) -> str:
    """One of ``f i u b c``."""
    return "f" if name == "bf16" else name[0]


def is_narrow(name: str) -> bool:
    """Whether it is a float of 16 bits."""
    return name in NARROW
