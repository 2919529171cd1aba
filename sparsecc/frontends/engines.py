"""Who computes which operation of a program: names of engines as attributes, for ``call-libraries``."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation

from sparsecc.diagnostics import UsageError
from sparsecc.selection.candidate import GENERATED
from sparsecc.selection.engines import known_engine

ENGINE = "sparsecc.engine"


class WrongEngines(UsageError):
    text = "{given} engines are named for a program of {count} operations"
    help_text = "name one for each: a library, or 'generated'"


def computations(module: ModuleOp, entry: str) -> list[LinalgStructuredOperation]:
    """The ``linalg`` operations of a function that compute something, in order."""
    functions = [f for f in module.body.block.ops if isinstance(f, func.FuncOp)]
    return [
        op
        for fn in functions
        if fn.sym_name.data == entry
        for op in fn.walk()
        if isinstance(op, LinalgStructuredOperation) and not isinstance(op, linalg.FillOp)
    ]


def mark_engines(module: ModuleOp, entry: str, engines: Sequence[str]) -> None:
    """Mark the operations of ``@entry``. Raises UnknownEngine, WrongEngines."""
    found = computations(module, entry)
    if len(found) != len(engines):
        raise WrongEngines(given=len(engines), count=len(found))
    for op, name in zip(found, engines, strict=True):
        known_engine(name)
        if name != GENERATED:
            op.attributes[ENGINE] = StringAttr(name)
