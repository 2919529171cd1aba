"""What is known of a tensor's pattern without its entries: plain numbers, a kilobyte or two, no arrays.

``storage.statistics`` makes them; cost models, explanations and selectors of other packages read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, cast


@dataclass(frozen=True)
class Lengths:
    """The stored entries of the slices of one dimension: of a matrix's rows (dimension 0) or columns (1)."""

    extent: int
    used: int
    """Slices with an entry."""
    largest: int
    mean: float
    """Over all slices, empty ones too."""
    deviation: float
    """The standard deviation over all slices."""
    bins: tuple[int, ...]
    """How many slices have 0, 1, 2-3, 4-7, 8-15, ... entries."""
    smallest: int = 0


@dataclass(frozen=True)
class BlockFill:
    """Blocks of ``rows x columns`` on a grid from the origin: how many hold an entry, which part of their cells does.

    Cells beyond the edge count as cells."""

    rows: int
    columns: int
    count: int
    fill: float


@dataclass(frozen=True)
class GroupFit:
    """Groups of ``m`` neighbours along rows: which part of all has at most ``n`` entries, and how many entries are
    beyond the ``n`` of their group."""

    n: int
    m: int
    fitting: float
    overflow: int


@dataclass(frozen=True)
class Statistics:
    """The pattern of a tensor in numbers. ``exact`` is False if ``blocks`` and ``groups`` (of higher ranks
    ``prefixes`` and ``pairs``) are estimates from a sample of whole slices; everything else is always counted."""

    shape: tuple[int, ...]
    dtype: str
    nnz: int
    """Entries that are not zero. Everything here is of these alone, ``zeros`` apart."""
    exact: bool
    slices: tuple[Lengths, ...]
    """By dimension."""
    prefixes: tuple[int, ...]
    """Different coordinates of the first 1, 2, ... dimensions: the stored entries of each level of CSF."""
    blocks: tuple[BlockFill, ...] = ()
    """Of a matrix, by shape. Those of one row are the lines of a dense operand that a row reads: 64 bytes are 8 f64 or
    16 f32. Those of one column are the rows of a dense operand that so many rows of the matrix share."""
    groups: tuple[GroupFit, ...] = ()
    """Of a matrix: 2:4, 1:4, 4:8."""
    below: int = 0
    """Of a matrix: the largest distance of an entry below the main diagonal, and above it."""
    above: int = 0
    diagonals: int = 0
    """Of a matrix: diagonals with an entry."""
    symmetry: str = ""
    """Of a matrix: ``symmetric``, ``skew-symmetric``, ``hermitian``, ``pattern``, ``none``; empty: not known."""
    distance: float = 0.0
    """Of a matrix: mean |row - column| of the entries: how far from the place of its row an SpMV reads."""
    pairs: tuple[int, ...] = ()
    """Of rank 3: different coordinates of dimensions (0, 1), (0, 2), (1, 2): the middle level of CSF in other orders.
    0 though there are entries: not known."""

    zeros: int = 0
    """Zeros that the tensor stores as entries. Conversions between formats that store entries (CSR, COO, CSF) keep
    them, and formats with few places may not hold them (2:4). Dense arrays and padding have none."""

    @property
    def stored(self) -> int:
        """Entries that formats without padding store of the tensor: its zeros too."""
        return self.nnz + self.zeros

    @property
    def density(self) -> float:
        cells = prod(self.shape)
        return self.nnz / cells if cells else 0.0

    def block(self, rows: int, columns: int) -> BlockFill | None:
        """The fill of a block shape, None where it was not counted."""
        return next((b for b in self.blocks if (b.rows, b.columns) == (rows, columns)), None)

    def group(self, n: int, m: int) -> GroupFit | None:
        return next((g for g in self.groups if (g.n, g.m) == (n, m)), None)

    def level_entries(self, order: Sequence[int]) -> tuple[int, ...] | None:
        """The stored entries of each level of CSF with its levels in that order of dimensions; None: not known."""
        order = tuple(order)
        if order == tuple(range(len(self.shape))):
            return self.prefixes
        if len(order) == 2:
            return self.slices[order[0]].used, self.nnz
        if len(order) != 3 or not self.pairs:
            return None
        pair = self.pairs[sum(sorted(order[:2])) - 1]
        return (self.slices[order[0]].used, pair, self.nnz) if pair or not self.nnz else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Statistics:
        """The inverse of ``to_json``; also of the lists that JSON makes of tuples."""
        made = dict(data)
        for key, kind in (("slices", Lengths), ("blocks", BlockFill), ("groups", GroupFit)):
            made[key] = tuple(kind(**_tuples(item)) for item in made.get(key, ()))
        return Statistics(**_tuples(made))


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(cast("list[Any]", v)) if isinstance(v, list) else v for k, v in fields.items()}
