"""The tables of what is there: those of this package, and what installed packages add by entry points."""

from __future__ import annotations

from functools import cache
from typing import Any

from sparsecc.diagnostics import PassError, did_you_mean
from sparsecc.entry_points import load, with_entry_points
from sparsecc.selection.registry import strategies

__all__ = ["backend", "load", "pass_class", "passes", "strategies"]


class UnknownPass(PassError):
    text = "there is no pass {name!r}"


@cache
def passes() -> dict[str, str]:
    """All passes: name -> ``module:Class``."""
    from sparsecc.passes.registry import PASSES

    return with_entry_points("sparsecc.passes", PASSES)


BACKENDS = {
    "cpu": "sparsecc.runtime.cpu_flow:FLOW",
    "triton": "sparsecc.runtime.gpu_flow:FLOW",
}


def backend(name: str) -> str:
    """``module:Flow`` of a backend; entry points are read for those of other packages alone, it takes a while."""
    return BACKENDS.get(name) or with_entry_points("sparsecc.backends", BACKENDS)[name]


@cache
def pass_class(name: str) -> Any:
    """The class of a pass. Raises UnknownPass."""
    table = passes()
    if name not in table:
        raise UnknownPass(name=name, help=did_you_mean(name, list(table)))
    return load(table[name])
