"""What a format stores of a tensor whose statistics are known: entries with their padding, slices, bytes.

Padding and blocks are counted where the statistics have them, else as they would be if entries stood anywhere
(each cell as likely as any other)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from sparsecc.formats.format import LevelExpr
from sparsecc.statistics import Statistics

INDEX = 4
"""Bytes of a position or a coordinate."""
ITEMSIZES = {
    "bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "bf16": 2, "i32": 4, "u32": 4, "f32": 4,
    "i64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16, "f8e4m3": 1, "f8e5m2": 1,
}  # fmt: skip
"""Bytes of an element."""


@dataclass(frozen=True)
class Footprint:
    """``entries``: values that are stored, padding too. ``units``: what loops walk one by one (blocks, else
    entries). ``slices``: of the outermost level (rows; those with entries where only they are stored)."""

    entries: float
    units: float
    slices: float
    bytes: float


def block_of(name: str) -> tuple[int, int] | None:
    """The rows and columns of ``BSR(r,c)``, else None."""
    if not name.startswith("BSR("):
        return None
    rows, _, columns = name[4:-1].partition(",")
    return int(rows), int(columns)


def order_of(name: str) -> tuple[int, ...]:
    """The dimensions of ``CSF(2,0,1)``, outer to inner; of ``CSF`` none, which means as they come."""
    inside = name[4:-1] if name.startswith("CSF(") else ""
    return tuple(int(part) for part in inside.split(",")) if inside else ()


def blocks_of(s: Statistics, rows: int, columns: int) -> float:
    """Blocks with an entry: counted, or of entries that stand anywhere."""
    known = s.block(rows, columns)
    grid = LevelExpr(0, rows).size(s.shape[0]) * LevelExpr(1, columns).size(s.shape[1])
    if known is not None:
        count = float(known.count)
    else:
        count = min(grid * (1 - (1 - s.density) ** (rows * columns)), float(s.nnz))
    # Where zeros that are stored stand nobody knows: elsewhere, at worst.
    return min(float(grid), count + s.zeros)


def used(s: Statistics, dim: int) -> int:
    """Slices of a dimension with an entry."""
    return min(s.shape[dim], (s.slices[dim].used if s.slices else s.nnz) + s.zeros)


def largest(s: Statistics, dim: int) -> int:
    """Entries of the longest slice of a dimension."""
    extent = max(1, s.shape[dim])
    if not s.slices:
        return ceil(s.stored / extent)
    cells = prod(s.shape) // extent
    return min(cells, s.slices[dim].largest + ceil(s.zeros / extent))


def fibers(s: Statistics, order: tuple[int, ...]) -> list[float]:
    """Entries of each level of CSF in an order: counted, or of entries that stand anywhere."""
    order = order or tuple(range(len(s.shape)))
    natural = order == tuple(range(len(s.shape)))
    known = s.level_entries(order) if s.prefixes and (s.slices or natural) else None
    if known is not None:
        return [*(float(n) for n in known[:-1]), float(s.stored)]
    found: list[float] = []
    for depth in range(1, len(order)):
        cells = prod(used(s, d) for d in order[:depth])
        # Entries that fall anywhere into so many cells.
        found.append(cells * (1 - (1 - 1 / cells) ** s.nnz) if cells else 0.0)
    return [*found, float(s.stored)]


def footprint(name: str, s: Statistics) -> Footprint:
    """What is stored of a tensor with statistics ``s`` in the format of a name.

    The names are those of a plan: ``dense CSR CSC COO DCSR DCSC BSR(r,c) ELL 2:4 2:4+CSR BITMAP CSF COO(3) SV``; any
    other counts as coordinates."""
    item = ITEMSIZES[s.dtype]
    cells, nnz = prod(s.shape), s.stored
    if name == "dense":
        return Footprint(cells, cells, s.shape[0] if s.shape else 1, cells * item)
    if name in ("CSR", "CSC"):
        rows = s.shape[0 if name == "CSR" else 1]
        return Footprint(nnz, nnz, rows, nnz * (item + INDEX) + (rows + 1) * INDEX)
    if name in ("DCSR", "DCSC"):
        rows = used(s, 0 if name == "DCSR" else 1)
        return Footprint(nnz, nnz, rows, nnz * (item + INDEX) + (2 * rows + 3) * INDEX)
    if (block := block_of(name)) is not None:
        rows, columns = block
        count = blocks_of(s, rows, columns)
        strips = ceil(s.shape[0] / rows)
        size = rows * columns
        return Footprint(
            count * size, count, strips, count * (size * item + INDEX) + (strips + 1) * INDEX
        )
    if name == "ELL":
        slots = s.shape[0] * largest(s, 0)
        return Footprint(slots, slots, s.shape[0], slots * (item + INDEX))
    if name == "2:4":
        kept = ceil(cells / 2)
        return Footprint(kept, kept, s.shape[0], kept * item + cells / 8)
    if name == "2:4+CSR":
        group = s.group(2, 4)
        rest = (group.overflow if group is not None else expected_overflow(s)) + s.zeros
        kept = ceil(cells / 2)
        rest = min(rest, cells - kept)
        size = kept * item + cells / 8 + rest * (item + INDEX) + (s.shape[0] + 1) * INDEX
        return Footprint(kept + rest, kept + rest, s.shape[0], size)
    if name.startswith("BITMAP"):
        return Footprint(nnz, cells, s.shape[0], nnz * item + cells / 8 + cells / 64 * INDEX)
    if name.startswith("CSF"):
        levels = fibers(s, order_of(name))
        return Footprint(
            nnz, nnz, levels[0], nnz * (item + INDEX) + 2 * INDEX * sum(levels[:-1]) + 2 * INDEX
        )
    return Footprint(nnz, nnz, used(s, 0) if s.shape else 1, nnz * (item + INDEX * len(s.shape)))


def expected_overflow(s: Statistics) -> float:
    """Entries beyond the two of their group of four, where entries stand anywhere."""
    d = s.density
    three, four = 4 * d**3 * (1 - d), d**4
    return prod(s.shape) / 4 * (three + 2 * four)
