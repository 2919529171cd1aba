"""What a tensor holds: its pattern in numbers, and what each format would take to store it.

``inspect(tensor).text()`` is what ``sparsecc inspect`` prints; ``.to_json()`` is for programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc.diagnostics import FormatError, LimitError
from sparsecc.formats import Format, known_name, parse_format
from sparsecc.formats.level import AnyInts, Ints
from sparsecc.statistics import Statistics
from sparsecc.storage import limits
from sparsecc.storage.layout import level_coordinates
from sparsecc.storage.order import sort_and_combine
from sparsecc.storage.statistics import statistics
from sparsecc.storage.tensor import SparseTensor

AnyArray = npt.NDArray[Any]

BLOCK_SIZES = (2, 4, 8, 16)
MATRIX_FORMATS = tuple("dense CSR CSC COO DCSR DCSC BSR(2,2) BSR(4,4) ELL BITMAP 2:4".split())
TENSOR_FORMATS = ("dense", "COO", "CSF")
LARGEST_TRIAL = 1 << 26
"""Index entries that sizing a format may take for a while; larger formats are left out."""


@dataclass(frozen=True)
class Blocks:
    """Blocks of ``size x size``: how many hold an entry, and which part of their cells does (those beyond the edge
    count: they are stored)."""

    size: int
    count: int
    fill: float


@dataclass(frozen=True)
class Group:
    """Groups of ``m`` neighbours in a row: which part has at most ``n`` nonzeros."""

    n: int
    m: int
    fitting: float


@dataclass(frozen=True)
class Matrix:
    """What only a matrix has. Row counts are binned: 0, 1, 2-3, 4-7, ... entries."""

    rows_of: dict[str, int]
    smallest_row: int
    mean_row: float
    largest_row: int
    below: int
    above: int
    diagonals: int
    symmetry: str
    blocks: tuple[Blocks, ...]
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Inspection:
    """The facts of one tensor. ``bytes_in`` has None for formats that can't hold it."""

    shape: tuple[int, ...]
    dtype: str
    format: str
    stored: int
    nonzeros: int
    density: float
    bytes_here: int
    bytes_in: dict[str, int | None]
    matrix: Matrix | None
    statistics: Statistics
    """All that cost models and strategies know of the tensor."""

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers."""
        return asdict(self)

    def text(self) -> str:
        """Some twenty lines for a person."""
        shape = " x ".join(map(str, self.shape)) or "scalar"
        zeros = f", {self.stored - self.nonzeros} of them 0" if self.stored > self.nonzeros else ""
        lines = [
            f"shape      {shape}",
            f"dtype      {self.dtype}",
            f"format     {self.format}, {_bytes(self.bytes_here)}",
            f"entries    {self.stored}{zeros}",
            f"density    {self.density:.4%}",
        ]
        if self.matrix is not None:
            lines += _matrix_lines(self.matrix)
        lines.append("bytes in")
        known = sorted((size, name) for name, size in self.bytes_in.items() if size is not None)
        lines += [f"  {name:9}{_bytes(size)}" for size, name in known]
        refused = [name for name, size in self.bytes_in.items() if size is None]
        lines += [f"  {name:9}can't hold it" for name in refused]
        return "\n".join(lines)


def _bytes(count: int) -> str:
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def _matrix_lines(matrix: Matrix) -> list[str]:
    rows = ", ".join(f"{count} of {bin}" for bin, count in matrix.rows_of.items() if count)
    lines = [
        f"rows       {matrix.smallest_row} to {matrix.largest_row} entries, "
        f"{matrix.mean_row:.2f} on average",
        f"           by entries: {rows or 'none'}",
        f"band       {matrix.below} below, {matrix.above} above the diagonal; "
        f"{matrix.diagonals} diagonals",
        f"symmetry   {matrix.symmetry}",
    ]
    for b in matrix.blocks:
        lines.append(f"{f'{b.size} x {b.size}':11}{b.count} blocks, {b.fill:.1%} full")
    lines += [f"{f'{g.n}:{g.m}':11}{g.fitting:.1%} of the groups fit" for g in matrix.groups]
    return lines


def inspect(tensor: SparseTensor) -> Inspection:
    """The facts of a tensor, in time linear in its entries but for sorting. Nothing is estimated."""
    coords, values = tensor.to_coords()
    found = statistics(tensor, most_entries=None)
    matrix, names = None, TENSOR_FORMATS if tensor.shape else ("dense",)
    if len(tensor.shape) == 2:
        matrix = matrix_facts(found)
        names = MATRIX_FORMATS
    return Inspection(
        shape=tensor.shape,
        dtype=str(tensor.dtype),
        format=known_name(tensor.format),
        stored=len(values),
        nonzeros=found.nnz,
        density=found.density,
        bytes_here=tensor.nbytes,
        bytes_in=_bytes_in(names, coords, values, tensor.shape),
        matrix=matrix,
        statistics=found,
    )


# -- matrices ----------------------------------------------------------------------------------


def matrix_facts(found: Statistics) -> Matrix:
    """What is printed of the statistics of a matrix."""
    rows = found.slices[0]
    return Matrix(
        rows_of=histogram(rows.bins),
        smallest_row=rows.smallest,
        mean_row=rows.mean,
        largest_row=rows.largest,
        below=found.below,
        above=found.above,
        diagonals=found.diagonals,
        symmetry=_symmetry(found),
        blocks=tuple(
            Blocks(b.rows, b.count, b.fill)
            for b in found.blocks
            if b.rows == b.columns and b.rows in BLOCK_SIZES
        ),
        groups=tuple(Group(g.n, g.m, g.fitting) for g in found.groups),
    )


def histogram(bins: Sequence[int]) -> dict[str, int]:
    """How many rows have 0, 1, 2-3, 4-7, ... entries."""
    found = {"0": bins[0] if bins else 0}
    for bit, count in enumerate(bins[1:], 1):
        low, high = 1 << (bit - 1), (1 << bit) - 1
        found[str(low) if low == high else f"{low}-{high}"] = count
    return found


def _symmetry(found: Statistics) -> str:
    if found.shape[0] != found.shape[1]:
        return "none (not square)"
    return "in pattern only" if found.symmetry == "pattern" else found.symmetry


# -- bytes -------------------------------------------------------------------------------------


def _bytes_in(
    names: Sequence[str], coords: Sequence[AnyInts], values: AnyArray, shape: Sequence[int]
) -> dict[str, int | None]:
    sizes: dict[str, int | None] = {}
    for name in names:
        try:
            sizes[name] = bytes_in(parse_format(name, len(shape)), coords, values, shape)
        except FormatError:
            sizes[name] = None
        except (LimitError, _TooLargeToTry):
            continue
    return sizes


class _TooLargeToTry(Exception):
    """Sizing this format would take more memory than an inspection should."""


def bytes_in(fmt: Format, coords: Sequence[AnyInts], values: AnyArray, shape: Sequence[int]) -> int:
    """Bytes of values, positions and coordinates in a format; the values are not laid out.

    Raises FormatError if the format can't hold the entries."""
    sizes = fmt.level_sizes(shape)
    digits, values = sort_and_combine(level_coordinates(fmt, coords), values, sizes)
    parents: Ints = np.zeros(len(values), dtype=np.int64)
    count, total = 1, 0
    limit = max(LARGEST_TRIAL, 4 * len(values))
    for level, coordinates, size in zip(fmt.levels, digits, sizes, strict=True):
        if level.arrays and count > limit:
            raise _TooLargeToTry
        if level.padded and count * _slots(parents, size) > limit:
            raise _TooLargeToTry
        packed = level.pack(parents, coordinates.astype(np.int64, copy=False), count, size)
        for _, array in packed.arrays:
            total += len(array) * np.dtype(limits.inferred_dtype(limits.largest_of(array))).itemsize
        parents, count = packed.positions, packed.count
    return total + count * values.dtype.itemsize


def _slots(parents: Ints, size: int) -> int:
    """No fewer slots than a padded level of that size gives to a parent."""
    fullest = int(np.bincount(parents).max()) if len(parents) else 0
    return max(fullest, min(size, 64))
