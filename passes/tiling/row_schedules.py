"""Schedules of row kernels, by what is known of the matrix and of X; the first is chosen.

``row_segments``
    products with a matrix: ``columns`` of X and ``positions`` entries a step, ``warps`` of a program.
``row_sweeps``
    the same by segments that read the same rows of X side by side; ``sums`` 1: added up across a step at the end only.
``row_groups``, ``row_bins``
    products with a vector: ``rows`` of a group and their ``lanes``; or bins of rows by length, ``lanes`` along parts of
    the longest. ``ahead`` 1: whole steps without masks, what they leave is read ahead.
``sampled_rows``, ``sampled_entries``
    products at the entries of a matrix: a row or any entries a program, ``entries`` at a time, ``depth`` of the sum.

First choices are those that were fastest on an H200.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparsecc.dialects.tile import ScheduleAttr
from sparsecc.passes.tiling.problem import power_above

L2_BYTES = 50_000_000
"""What stays of X beside the matrix in the second cache of an H200."""
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i32": 4, "i64": 8}
Numbers = Mapping[str, int]
MOST = 12
"""Schedules of a product with a matrix."""
SEGMENTS = (
    (64, 32, 1), (64, 16, 1), (32, 32, 1), (128, 16, 1), (128, 32, 1), (256, 8, 1), (256, 16, 2),
    (16, 32, 1), (128, 8, 1), (8, 32, 1),
)  # fmt: skip
"""Columns, positions and warps."""
SWEEPS = ((64, 32, 0, 1), (64, 16, 1, 1), (32, 32, 1, 1), (128, 16, 0, 1), (128, 8, 1, 1))
"""Columns, positions, sums and warps."""
BINNED = ((128, 0, 1), (128, 0, 2), (128, 1, 1), (256, 1, 1), (512, 1, 1), (512, 1, 2))
"""Lanes along a part of a long row, ahead and warps."""


@dataclass(frozen=True)
class Facts:
    """What is known of operands (0: nothing): columns of X (or what a sampled product sums over), its rows, the mean
    length of the matrix's rows, and whether some rows are much longer."""

    dtype: str
    tokens: int = 0
    reduction: int = 0
    length: int = 0
    skewed: bool = True

    @property
    def size(self) -> int:
        return SIZES[self.dtype]

    @property
    def in_cache(self) -> bool:
        return self.tokens * self.reduction * self.size <= L2_BYTES


def segment_schedules(facts: Facts) -> list[ScheduleAttr]:
    """Of products with a matrix: a step reads ``positions`` rows of X, 128 bytes of each or more."""
    most = max(8, power_above(facts.tokens)) if facts.tokens else 1024
    line = max(16, 128 // facts.size)
    if facts.length and facts.length <= 24 and not facts.skewed:
        first = {"columns": min(most, 4 * line), "positions": 8, "warps": 1}
    elif facts.in_cache:
        first = {"columns": min(most, line), "positions": 32, "warps": 1}
    elif most >= 256:
        wide = 256 if facts.size == 4 else 128
        first = {"columns": wide, "positions": 16, "warps": 2 if facts.size == 4 else 1}
    else:
        first = {"columns": min(most, 64), "positions": 16 if facts.size > 2 else 32, "warps": 1}
    found = [first]
    for columns, positions, warps in SEGMENTS:
        if columns <= most:
            found.append({"columns": columns, "positions": positions, "warps": warps})
    sweeps: list[Numbers] = []
    for columns, positions, sums, warps in SWEEPS:
        if columns <= most:
            numbers = {"columns": columns, "positions": positions, "sums": sums, "warps": warps}
            sweeps.append(numbers)
    segments, swept = _space("row_segments", found), _space("row_sweeps", sweeps)
    return segments[: MOST - len(swept)] + swept


def vector_schedules(facts: Facts) -> list[ScheduleAttr]:
    """Of products with a vector: as many lanes as a row has entries, where rows are alike; else bins."""
    lanes = min(64, max(4, power_above(facts.length or 16)))
    groups = [{"rows": max(1, 256 // lanes), "lanes": lanes, "warps": 1}]
    for other in (lanes // 2, lanes, 2 * lanes):
        groups += [{"rows": volume // other, "lanes": other, "warps": 1} for volume in (256, 512)]
    bins = _space("row_bins", [{"lanes": n, "ahead": on, "warps": w} for n, on, w in BINNED])
    plain = _space("row_groups", groups)
    return bins + plain if facts.skewed else plain + bins


def sampled_schedules(facts: Facts) -> list[ScheduleAttr]:
    """Of products at the entries of a matrix."""
    depth = min(128, max(16, power_above(facts.tokens or 64)))
    wide = depth > 64
    entries = [{"entries": 8 if wide else 16, "depth": depth, "warps": 1 if wide else 2}]
    rows = [{"entries": 8 if wide else 32, "depth": depth, "warps": 1 if wide else 2}]
    for count in (8, 16, 32):
        for warps in (1, 2):
            if count * depth // (32 * warps) <= 64:
                entries.append({"entries": count, "depth": depth, "warps": warps})
                rows.append({"entries": count, "depth": depth, "warps": warps})
    by_entries, by_rows = _space("sampled_entries", entries), _space("sampled_rows", rows)
    short = facts.skewed or facts.length < 16
    return by_entries + by_rows if short else by_rows + by_entries


def _space(family: str, members: Iterable[Numbers]) -> list[ScheduleAttr]:
    """Schedules of a family, each once."""
    found: dict[tuple[tuple[str, int], ...], ScheduleAttr] = {}
    for numbers in members:
        found.setdefault(tuple(numbers.items()), ScheduleAttr.of(family, numbers))
    return list(found.values())
