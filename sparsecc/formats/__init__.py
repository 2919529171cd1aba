"""Formats: level formats, the formats built of them, and their three spellings. The ground floor."""

from sparsecc.formats.format import Format, LevelExpr, dense_format
from sparsecc.formats.level import Ability, Level, LevelArrays
from sparsecc.formats.names import known_name
from sparsecc.formats.spelling import parse as parse_format

__all__ = [
    "Ability",
    "Format",
    "Level",
    "LevelArrays",
    "LevelExpr",
    "dense_format",
    "known_name",
    "parse_format",
]
