"""The dialects that our programs use, by name; each is imported when its name is met."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from xdsl.context import Context
from xdsl.ir import Dialect, Operation

DIALECTS: dict[str, str] = {
    "builtin": "xdsl.dialects.builtin:Builtin",
    "func": "xdsl.dialects.func:Func",
    "arith": "xdsl.dialects.arith:Arith",
    "math": "xdsl.dialects.math:Math",
    "complex": "xdsl.dialects.complex:Complex",
    "tensor": "xdsl.dialects.tensor:Tensor",
    "linalg": "xdsl.dialects.linalg:Linalg",
    "bufferization": "xdsl.dialects.bufferization:Bufferization",
    "scf": "xdsl.dialects.scf:Scf",
    "cf": "xdsl.dialects.cf:Cf",
    "memref": "xdsl.dialects.memref:MemRef",
    "vector": "xdsl.dialects.vector:Vector",
    "llvm": "xdsl.dialects.llvm:LLVM",
    "ub": "xdsl.dialects.ub:UB",
    "sparse_tensor": "sparsecc.dialects.sparse_tensor.dialect:SparseTensor",
    "iteration": "sparsecc.dialects.iteration:Iteration",
    "tile": "sparsecc.dialects.tile:Tile",
}
"""name -> ``module:Dialect``. Packages add theirs by an entry point ``sparsecc.dialects``."""

OWN = ("sparse_tensor", "iteration", "tile")
"""Those that xDSL does not ship."""

OVERLAYS: dict[str, tuple[str, ...]] = {
    "arith": ("syntax:CmpfSyntax", "syntax:CmpiSyntax"),
    "bufferization": ("extra_ops:DeallocTensorOp",),
    "linalg": ("syntax:GenericSyntax", "named_ops:OPS"),
    "tensor": ("extra_ops:GenerateOp",),
    "vector": ("syntax:VectorPrintSyntax",),
}
"""Operations (or lists of them) in :mod:`sparsecc.dialects.text` that join a stock dialect or
replace what it has of the same name."""


def dialect_names() -> dict[str, str]:
    """All dialects, those of installed packages included; the table's own entries win."""
    found = {point.name: point.value for point in entry_points(group="sparsecc.dialects")}
    return found | DIALECTS


def load(spec: str) -> Any:
    """The object that ``module:attribute`` names."""
    module, _, attribute = spec.partition(":")
    return getattr(import_module(module), attribute)


def dialect(name: str) -> Dialect:
    """A dialect by name, with the operations and the syntax that upstream has and xDSL lacks."""
    stock: Dialect = load(dialect_names()[name])
    if name not in OVERLAYS:
        return stock
    specs = [f"sparsecc.dialects.text.{spec}" for spec in OVERLAYS[name]]
    extra: list[type[Operation]] = []
    for spec in specs:
        found = load(spec)
        extra += found if isinstance(found, list) else [found]
    replaced = {op.name for op in extra}
    kept = [op for op in stock.operations if op.name not in replaced]
    return Dialect(name, [*kept, *extra], list(stock.attributes))


def make_context(allow_unregistered: bool = False) -> Context:
    """A context that knows every dialect and imports none but builtin before it is met."""
    context = Context(allow_unregistered=allow_unregistered)
    for name in dialect_names():
        context.register_dialect(name, _factory(name))
    context.load_registered_dialect("builtin")
    return context


def _factory(name: str) -> Callable[[], Dialect]:
    return lambda: dialect(name)
