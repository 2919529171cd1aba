"""A sparse tensor in memory: per level positions and coordinates, then values.

A tensor is a total function: what is not stored is ``fill_value`` (0). ``values[p]`` belongs to position ``p``
of the innermost level. Tensors are immutable by convention: operations give new ones, sharing arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc.formats import Format, LevelArrays
from sparsecc.formats.level import Ints

AnyArray = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class SparseTensor:
    """``levels[l]`` holds the arrays that the format's level ``l`` names; shapes are of dimensions."""

    shape: tuple[int, ...]
    format: Format
    levels: tuple[LevelArrays, ...]
    values: AnyArray
