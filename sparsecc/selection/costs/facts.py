"""The numbers that work is computed from: extents, statistics, and where a gathered operand stays.

**Assumed** where nothing says it: an extent is ASSUMED_EXTENT (of the columns of a dense operand ASSUMED_COLUMNS), and
a sparse tensor without statistics has ASSUMED_DENSITY of its cells filled, anywhere. A prediction notes it.

**Where a gathered operand stays.** Entries of a matrix read elements (or rows) of a dense operand. The share of the
reads that a cache of ``C`` bytes serves is the larger of two: ``C / window``, where the window is what the matrix's
band spans (all of the operand where there is no band), and the share of the entries that lie in the most popular
columns that fit into ``C`` together. Neighbours share a line of 64 bytes: entries of a row in one line read it once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from sparsecc.selection.footprint import ITEMSIZES, Footprint, blocks_of, footprint
from sparsecc.selection.operations import Operation
from sparsecc.selection.problem import Problem, Tensor
from sparsecc.statistics import Statistics

ASSUMED_EXTENT = 4096
ASSUMED_COLUMNS = 16
ASSUMED_DENSITY = 0.05
LINE = 64
"""Bytes of a cache line."""
LEVELS = ("l1", "l2", "l3", "dram")


@dataclass
class Facts:
    """What is known, or assumed, of an expression in a plan."""

    problem: Problem
    operation: Operation
    formats: Mapping[str, str]
    """Of open tensors, as the plan says."""
    notes: list[str] = field(default_factory=list[str])

    def extent(self, index: str, otherwise: int = ASSUMED_EXTENT) -> int:
        """The extent of an index."""
        found = self.problem.extents.get(index)
        if found is None:
            self.notes.append(f"{index} is not known: {otherwise} is assumed")
            return otherwise
        return found

    def of_letter(self, letter: str) -> int:
        """The extent of the index of a letter; of ``t`` a few columns if nothing says it."""
        assert self.operation.letters is not None
        index = self.operation.letters.get(letter)
        if index is None:
            return 1
        return self.extent(index, ASSUMED_COLUMNS if letter in "tr" else ASSUMED_EXTENT)

    def tensor(self, name: str) -> Tensor:
        return self.problem.tensors[name]

    def format_of(self, name: str) -> str:
        """The format of a tensor in the plan; results whose format is inferred count as dense."""
        return self.formats.get(name) or self.tensor(name).format or "dense"

    def item(self, name: str) -> int:
        """Bytes of an element."""
        return ITEMSIZES[self.tensor(name).dtype]

    def statistics(self, name: str, indices: tuple[str, ...]) -> Statistics:
        """What is known of a tensor's pattern; assumed where nothing is."""
        tensor = self.tensor(name)
        if tensor.statistics is not None:
            return tensor.statistics
        shape = tuple(self.extent(i) for i in indices)
        cells = prod(shape)
        if self.format_of(name) == "dense":
            return plain_statistics(shape, tensor.dtype, cells)
        self.notes.append(f"nothing is known of {name}'s entries: {ASSUMED_DENSITY:.0%} is assumed")
        return plain_statistics(shape, tensor.dtype, round(ASSUMED_DENSITY * cells))

    def footprint(self, name: str, s: Statistics) -> Footprint:
        return footprint(self.format_of(name), s)


def plain_statistics(shape: tuple[int, ...], dtype: str, nnz: int) -> Statistics:
    """Of a tensor whose entries stand anywhere."""
    prefixes = tuple(min(prod(shape[: k + 1]), nnz) for k in range(len(shape)))
    return Statistics(shape, dtype, nnz, False, (), prefixes)


def hits(s: Statistics, dim: int, width: float, capacity: float) -> float:
    """The share of reads of slices of an operand that a cache serves: an entry reads the slice of its coordinate along
    ``dim``, ``width`` bytes wide."""
    extent = max(s.shape[dim], 1)
    window = extent
    if len(s.shape) == 2 and (s.below or s.above or s.diagonals):
        window = min(extent, s.below + s.above + 1)
    share = min(1.0, capacity / max(window * width, 1.0))
    return max(share, popular(s, dim, capacity / max(width, 1.0)))


def popular(s: Statistics, dim: int, slices: float) -> float:
    """The share of the entries that lie in the ``slices`` longest slices of a dimension, from the histogram."""
    if not s.slices or not s.nnz:
        return 0.0
    left, inside, seen = slices, 0.0, 0.0
    for k in range(len(s.slices[dim].bins) - 1, 0, -1):
        count = s.slices[dim].bins[k]
        if not count:
            continue
        low, high = 2 ** (k - 1), min(2**k - 1, s.slices[dim].largest)
        entries = count * (low + high) / 2
        seen += entries
        taken = min(1.0, left / count)
        inside += entries * taken
        left -= count * taken
    return min(1.0, inside / seen) if seen else 0.0


def levels(s: Statistics, dim: int, width: float, sizes: Mapping[str, float]) -> dict[str, float]:
    """The share of the reads of a gathered operand that each level of the memory serves."""
    found: dict[str, float] = {}
    before = 0.0
    for level in LEVELS[:-1]:
        share = max(before, hits(s, dim, width, sizes[level]))
        found[level] = share - before
        before = share
    return {**found, "dram": 1.0 - before}


def lines_of(s: Statistics, dim: int, width: int) -> float:
    """Reads of a vector's lines: entries of a row that share a line read it once."""
    per = max(1, LINE // max(width, 1))
    if len(s.shape) != 2 or per == 1:
        return float(s.nnz)
    return min(float(s.nnz), blocks_of(s, *((1, per) if dim == 1 else (per, 1))))


def uneven(s: Statistics, dim: int) -> float:
    """How often a slice has another length than the one before, about: loops over its entries then end where the
    processor did not expect it."""
    return min(1.0, s.slices[dim].deviation) if s.slices else 1.0


def scattered(s: Statistics, dim: int) -> float:
    """The part of the entries that have no neighbour along a dimension: rows of a dense operand that are read in order
    come before they are asked for."""
    length, block = (4, s.block(4, 1)) if dim == 0 else (8, s.block(1, 8))
    if len(s.shape) != 2 or not s.nnz:
        return 1.0
    count = block.count if block is not None else blocks_of(s, *((4, 1) if dim == 0 else (1, 8)))
    full = s.nnz / max(count * length, 1.0)
    return min(1.0, max(0.0, (1.0 - full) / (1.0 - 1.0 / length)))


def again_soon(s: Statistics, dim: int) -> float:
    """The part of the entries whose slice of a dimension was written by one of the last UNDER_WAY entries, walked the
    other way, where nobody could expect it: of hubs."""
    if not s.slices or not s.nnz:
        return 0.0
    alike = 0.0
    for k, count in enumerate(s.slices[dim].bins):
        if k and count:
            length = (2 ** (k - 1) + min(2**k - 1, s.slices[dim].largest)) / 2
            alike += count * (length / s.nnz) ** 2
    return min(1.0, UNDER_WAY * alike)


UNDER_WAY = 32
"""Entries whose sums are still on their way to the cache."""
WINDOW = 64
"""Entries of loops that a processor works on at once, about."""


def chained(s: Statistics, dim: int) -> float:
    """The part of the entries that wait for the sum before them: in short slices the next slice's are begun meanwhile,
    in long ones nothing else is there to do."""
    if not s.slices:
        mean = s.nnz / max(s.shape[dim], 1)
        return mean / (mean + WINDOW)
    waiting = seen = 0.0
    for k, count in enumerate(s.slices[dim].bins):
        if k and count:
            length = (2 ** (k - 1) + min(2**k - 1, s.slices[dim].largest)) / 2
            seen += count * length
            waiting += count * length * length / (length + WINDOW)
    return waiting / seen if seen else 0.0


def stream(size: float, working_set: float, sizes: Mapping[str, float]) -> dict[str, float]:
    """Bytes by the level that they come from at the next call, where ``working_set`` bytes take turns."""
    found: dict[str, float] = {}
    before = 0.0
    for level in ("l2", "l3"):
        share = min(1.0, (sizes[level] / max(working_set, 1.0)) ** 2)
        found[level] = size * max(0.0, share - before)
        before = max(before, share)
    return {**found, "dram": size * (1.0 - before)}
