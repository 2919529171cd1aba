"""Formats: level formats, the formats built of them, and their three spellings. The ground floor."""

from sparsecc.formats.format import Format, LevelExpr, dense_format
from sparsecc.formats.level import Ability, Level, LevelArrays
from sparsecc.formats.names import known_name
from sparsecc.formats.spelling import parse as parse_format
from sparsecc.formats.sum_format import SumFormat, sum_format

__all__ = [
    "Ability",
    "Format",
    "Level",
    "LevelArrays",
    "LevelExpr",
    "SumFormat",
    "dense_format",
    "known_name",
    "parse_format",
    "sum_format",
]
