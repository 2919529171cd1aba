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
from sparsecc.storage import limits
from sparsecc.storage.layout import is_nonzero, level_coordinates
from sparsecc.storage.order import sort_and_combine, sorted_order
from sparsecc.storage.tensor import SparseTensor

AnyArray = npt.NDArray[Any]

BLOCK_SIZES = (2, 4, 8, 16)
GROUPS = ((2, 4), (1, 4), (4, 8))
MATRIX_FORMATS = tuple("dense CSR CSC COO DCSR DCSC BSR(2,2) BSR(4,4) ELL BITMAP 2:4".split())
TENSOR_FORMATS = ("dense", "COO", "CSF")
LARGEST_TRIAL = 1 << 26
"""Index entries that sizing a format may take for a while; larger formats are left out."""


@dataclass(frozen=True)
class Blocks:
    """Blocks of ``size x size``: how many hold an entry, and which part of their cells does."""

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
    """The facts of a tensor, in time linear in its entries but for sorting."""
    coords, values = tensor.to_coords()
    real = is_nonzero(values)
    nonzeros = int(np.count_nonzero(real))
    cells = limits.volume(tensor.shape)
    matrix, names = None, TENSOR_FORMATS if tensor.shape else ("dense",)
    if len(tensor.shape) == 2:
        matrix = inspect_matrix(coords[0][real], coords[1][real], values[real], tensor.shape)
        names = MATRIX_FORMATS
    return Inspection(
        shape=tensor.shape,
        dtype=str(tensor.dtype),
        format=known_name(tensor.format),
        stored=len(values),
        nonzeros=nonzeros,
        density=nonzeros / cells if cells else 0.0,
        bytes_here=tensor.nbytes,
        bytes_in=_bytes_in(names, coords, values, tensor.shape),
        matrix=matrix,
    )


# -- matrices ----------------------------------------------------------------------------------


def inspect_matrix(
    rows: AnyInts, columns: AnyInts, values: AnyArray, shape: Sequence[int]
) -> Matrix:
    """The facts of a matrix, from its nonzeros sorted by row and column."""
    _, counts = _runs([rows], shape[:1])
    empty = shape[0] - len(counts)
    offsets = columns.astype(np.int64) - rows
    return Matrix(
        rows_of=histogram(counts, empty),
        smallest_row=int(counts.min()) if not empty and len(counts) else 0,
        mean_row=len(rows) / shape[0] if shape[0] else 0.0,
        largest_row=int(counts.max()) if len(counts) else 0,
        below=max(0, -int(offsets.min())) if len(offsets) else 0,
        above=max(0, int(offsets.max())) if len(offsets) else 0,
        diagonals=len(np.unique(offsets)),
        symmetry=symmetry(rows, columns, values, shape),
        blocks=tuple(block_fill(rows, columns, size, shape) for size in BLOCK_SIZES),
        groups=tuple(group_fit(rows, columns, n, m, shape) for n, m in GROUPS),
    )


def _runs(keys: Sequence[AnyInts], sizes: Sequence[int]) -> tuple[list[AnyInts], Ints]:
    """The different keys in order, and how often each occurs; memory does not follow the sizes."""
    count = len(keys[0])
    order, first = sorted_order(keys, sizes, count)
    if order is not None:
        keys = [key[order] for key in keys]
    if first is None:
        return list(keys), np.ones(count, dtype=np.int64)
    starts = np.flatnonzero(first)
    return [key[starts] for key in keys], np.diff(starts, append=count)


def histogram(counts: Ints, empty: int) -> dict[str, int]:
    """How many rows have 0, 1, 2-3, 4-7, ... entries; ``counts`` are those of the others."""
    # frexp's exponent is the bit length of a small integer: exact, and vectorised.
    bits = np.bincount(np.frexp(counts.astype(np.float64))[1])
    found = {"0": empty}
    for bit in range(1, len(bits)):
        low, high = 1 << (bit - 1), (1 << bit) - 1
        found[str(low) if low == high else f"{low}-{high}"] = int(bits[bit])
    return found


def symmetry(rows: AnyInts, columns: AnyInts, values: AnyArray, shape: Sequence[int]) -> str:
    """``symmetric``, ``skew-symmetric``, ``hermitian``, ``in pattern only`` or ``none``."""
    if shape[0] != shape[1]:
        return "none (not square)"
    order = np.lexsort((rows, columns))
    if not (np.array_equal(columns[order], rows) and np.array_equal(rows[order], columns)):
        return "none"
    mirrored = values[order]
    if np.array_equal(mirrored, values):
        return "symmetric"
    if values.dtype.kind == "c" and np.array_equal(np.conj(mirrored), values):
        return "hermitian"
    # Unsigned and boolean values have no negative.
    if values.dtype.kind in "ifc" and np.array_equal(-mirrored, values):
        return "skew-symmetric"
    return "in pattern only"


def block_fill(rows: AnyInts, columns: AnyInts, size: int, shape: Sequence[int]) -> Blocks:
    """Blocks that hold an entry, and how full they are (cells beyond the edge do not count)."""
    sizes = [-(-extent // size) for extent in shape]
    corners, counts = _runs([rows // size, columns // size], sizes)
    heights, widths = (
        np.minimum(size, extent - corner * size)
        for extent, corner in zip(shape, corners, strict=True)
    )
    cells = int((heights * widths).sum())
    return Blocks(size, len(counts), len(rows) / cells if cells else 0.0)


def group_fit(rows: AnyInts, columns: AnyInts, n: int, m: int, shape: Sequence[int]) -> Group:
    """The part of all groups of ``m`` neighbours along rows that hold at most ``n`` entries."""
    width = -(-shape[1] // m)
    _, counts = _runs([rows, columns // m], [shape[0], width])
    groups = shape[0] * width
    return Group(n, m, 1 - int(np.count_nonzero(counts > n)) / groups if groups else 1.0)


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
