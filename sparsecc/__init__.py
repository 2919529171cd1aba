"""sparsecc: a compiler for sparse tensor programs.

Everything is loaded when it is first asked for, so that ``import sparsecc`` costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsecc.api import (
        Kernel,
        SparseTensor,
        Spec,
        asarray,
        compile,
        compile_mlir,
        einsum,
        evaluate,
        from_coords,
        read,
    )
    from sparsecc.diagnostics import SparseccError

__version__ = "0.1.0"

_PUBLIC = {
    **dict.fromkeys(
        ["Kernel", "SparseTensor", "Spec", "asarray", "compile", "compile_mlir", "einsum", "evaluate",
         "from_coords", "read"],
        "sparsecc.api",
    ),
    "SparseccError": "sparsecc.diagnostics",
}  # fmt: skip

__all__ = [
    "Kernel", "SparseTensor", "SparseccError", "Spec", "__version__", "asarray", "compile", "compile_mlir",
    "einsum", "evaluate", "from_coords", "read",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'sparsecc' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
