"""Tensors in sum formats as ``.npz`` archives: SciPy has no layout for them, so this one is ours.

``format`` is ``sum``, ``shape`` the extents, ``spelling`` the format as it prints; ``part0.values``,
``part0.positions1``, ``part0.coordinates1``, … are the arrays of each part by level.
"""

from __future__ import annotations

from typing import Any, Protocol

from sparsecc.diagnostics import FormatError, SparseccError
from sparsecc.formats import Format, LevelArrays, SumFormat, parse_format
from sparsecc.formats.level import AnyInts
from sparsecc.storage.files.errors import BadArray
from sparsecc.storage.files.npy import numeric
from sparsecc.storage.layout import AnyArray
from sparsecc.storage.sums import SumTensor, sum_tensor
from sparsecc.storage.tensor import SparseTensor

MAX_SPELLING = 4096


class Arrays(Protocol):
    """The arrays of an archive by name."""

    place: str
    names: list[str]

    def __getitem__(self, key: str) -> AnyArray: ...


def sum_arrays(tensor: SparseTensor) -> dict[str, Any]:
    """What an archive of a tensor holds, but for its shape."""
    found: dict[str, Any] = {"format": b"sum", "spelling": str(tensor.format).encode()}
    for number, part in enumerate(tensor.parts):
        found[f"part{number}.values"] = part.values
        for level, arrays in enumerate(part.levels):
            found |= {f"part{number}.{role}{level}": array for role, array in arrays}
    return found


def read_sum(arrays: Arrays, shape: tuple[int, ...]) -> SumTensor:
    """The tensor of an archive; every part is checked in full. Raises BadArray, UnknownKey."""
    raw = arrays["spelling"]
    spelling: Any = raw.item() if raw.ndim == 0 and raw.dtype.kind in "SU" else b""
    spelling = spelling.decode("latin-1") if isinstance(spelling, bytes) else spelling
    if not 0 < len(spelling) <= MAX_SPELLING:
        problem = f"{len(spelling)} characters are not the spelling of a sum of formats"
        raise BadArray(key="spelling", problem=problem, place=arrays.place)
    try:
        fmt = parse_format(spelling, len(shape))
    except FormatError as error:
        raise BadArray(key="spelling", problem=error.message, place=arrays.place) from None
    if not isinstance(fmt, SumFormat):
        problem = f"{spelling!r} is no sum of formats"
        raise BadArray(key="spelling", problem=problem, place=arrays.place)
    parts = [_part(arrays, number, part, shape) for number, part in enumerate(fmt.parts)]
    if len({part.dtype for part in parts}) > 1:
        kinds = ", ".join(str(part.dtype) for part in parts)
        problem = f"the values of the parts have dtypes {kinds}, not one"
        raise BadArray(key="part1.values", problem=problem, place=arrays.place)
    return sum_tensor(parts)


def _part(arrays: Arrays, number: int, fmt: Format, shape: tuple[int, ...]) -> SparseTensor:
    key = f"part{number}.values"
    values = numeric(arrays[key], arrays.place, key)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    levels: list[LevelArrays] = []
    for level, kind in enumerate(fmt.levels):
        words = kind.least_crd_width > 0  # no coordinates, and with a sign
        roles = {
            role: _indices(arrays, f"part{number}.{role}{level}", words and role == "coordinates")
            for role in kind.arrays
        }
        levels.append(LevelArrays(**roles))
    try:
        return SparseTensor(shape, fmt, tuple(levels), values).check("full", arrays.place)
    except SparseccError as error:
        raise BadArray(key=f"part{number}", problem=error.message, place=arrays.place) from None


def _indices(arrays: Arrays, key: str, signed: bool) -> AnyInts:
    array = arrays[key]
    if array.dtype.kind not in "iu" or array.ndim != 1:
        problem = f"shape {array.shape} and dtype {array.dtype}, not a list of integers"
        raise BadArray(key=key, problem=problem, place=arrays.place)
    if not signed and array.dtype.kind == "i" and len(array) and int(array.min()) < 0:
        raise BadArray(key=key, problem=f"it holds {int(array.min())}", place=arrays.place)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
