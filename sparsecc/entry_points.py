"""Tables of ``module:name`` by name, and what installed packages add to them by entry points."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from sparsecc.diagnostics import PassError


class NameClash(PassError):
    text = "{group} {name!r} is defined twice: by {first} and by {second}"
    help_text = "uninstall one of the packages, or rename its entry point"


def with_entry_points(group: str, own: Mapping[str, str]) -> dict[str, str]:
    """A table of ours and the entry points of a group; a name that means two things is an error."""
    table = dict(own)
    for point in entry_points(group=group):
        if table.setdefault(point.name, point.value) != point.value:
            raise NameClash(
                group=group, name=point.name, first=table[point.name], second=point.value
            )
    return table


def load(reference: str) -> Any:
    """The object of ``module:name``."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
