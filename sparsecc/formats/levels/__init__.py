"""The level formats that ship, one file each; :data:`LEVELS` is their table.

Outsiders add theirs by an entry point ``sparsecc.levels`` whose value is a Level subclass.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from sparsecc.diagnostics import FormatError, did_you_mean
from sparsecc.formats.level import Level

LEVELS: dict[str, str] = {
    "dense": "sparsecc.formats.levels.dense:Dense",
    "batch": "sparsecc.formats.levels.dense:Batch",
    "compressed": "sparsecc.formats.levels.compressed:Compressed",
    "loose_compressed": "sparsecc.formats.levels.loose_compressed:LooseCompressed",
    "singleton": "sparsecc.formats.levels.singleton:Singleton",
    "structured": "sparsecc.formats.levels.structured:Structured",
    "bitmap": "sparsecc.formats.levels.bitmap:Bitmap",
    "padded": "sparsecc.formats.levels.padded:Padded",
}


class LevelClash(FormatError):
    text = "the level format {name!r} is defined twice: by {first} and by {second}"
    help_text = "uninstall one of the packages, or rename its level"


@cache
def level_names() -> dict[str, str]:
    """All level formats, those of installed packages included: name -> ``module:Class``."""
    names = dict(LEVELS)
    for point in entry_points(group="sparsecc.levels"):
        if names.setdefault(point.name, point.value) != point.value:
            raise LevelClash(name=point.name, first=names[point.name], second=point.value)
    return names


class UnknownLevel(FormatError):
    text = "there is no level format {name!r}"


@cache
def level_class(name: str) -> type[Level]:
    """The class of a level format by its keyword."""
    names = level_names()
    if name not in names:
        raise UnknownLevel(name=name, help=did_you_mean(name, list(names)))
    module, _, attribute = names[name].partition(":")
    return getattr(import_module(module), attribute)
