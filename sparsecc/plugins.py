"""The tables of what is there: those of this package, and what installed packages add by entry points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from sparsecc.diagnostics import PassError, did_you_mean


class NameClash(PassError):
    text = "{group} {name!r} is defined twice: by {first} and by {second}"
    help_text = "uninstall one of the packages, or rename its entry point"


class UnknownPass(PassError):
    text = "there is no pass {name!r}"


def with_entry_points(group: str, own: Mapping[str, str]) -> dict[str, str]:
    """A table of ours and the entry points of a group; a name that means two things is an error."""
    table = dict(own)
    for point in entry_points(group=group):
        if table.setdefault(point.name, point.value) != point.value:
            raise NameClash(
                group=group, name=point.name, first=table[point.name], second=point.value
            )
    return table


@cache
def passes() -> dict[str, str]:
    """All passes: name -> ``module:Class``."""
    from sparsecc.passes.registry import PASSES

    return with_entry_points("sparsecc.passes", PASSES)


@cache
def strategies() -> dict[str, str]:
    """All strategies of select-formats: name -> ``module:Class``."""
    from sparsecc.passes.registry import STRATEGIES

    return with_entry_points("sparsecc.strategies", STRATEGIES)


BACKENDS = {
    "cpu": "sparsecc.runtime.cpu_flow:FLOW",
    "triton": "sparsecc.runtime.gpu_flow:FLOW",
}


def backend(name: str) -> str:
    """``module:Flow`` of a backend; entry points are read for those of other packages alone, it takes a while."""
    return BACKENDS.get(name) or with_entry_points("sparsecc.backends", BACKENDS)[name]


def load(reference: str) -> Any:
    """The object of ``module:name``."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


@cache
def pass_class(name: str) -> Any:
    """The class of a pass. Raises UnknownPass."""
    table = passes()
    if name not in table:
        raise UnknownPass(name=name, help=did_you_mean(name, list(table)))
    return load(table[name])
