"""Schedules of row kernels, by what is known of the matrix and of X; the first is chosen.

``row_segments``
    products with a matrix: ``columns`` of X and ``positions`` entries a step, ``warps`` of a program.
``row_sweeps``
    the same by segments that read the same rows of X side by side, entries read a step ahead.
``row_groups``, ``row_bins``
    products with a vector: ``rows`` of a group and their ``lanes``; or bins of rows by length, ``lanes`` along parts of
    the longest, entries read a step ahead.
``sampled_rows``, ``sampled_entries``
    products at the entries of a matrix: a row or any entries a program, ``entries`` at a time, ``depth`` of the sum.

First choices are those that were fastest on an H200, for elements of 2 and 4 bytes and 64 columns of X or more.
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
SHORT, LONG = 24, 512
"""Mean lengths of rows: of a step or so, and of many."""
SEGMENTS = (
    (64, 32, 1), (128, 32, 1), (256, 8, 1), (32, 32, 1), (128, 8, 1), (64, 16, 1), (128, 16, 1),
    (16, 32, 1), (8, 32, 1),
)  # fmt: skip
"""Columns, positions and warps."""
SWEEPS = ((64, 32, 1), (128, 16, 1))
"""The same."""
BINNED = ((256, 1), (512, 1), (512, 2))
"""Lanes along a part of a long row, and warps."""


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
    def short(self) -> bool:
        return 0 < self.length <= SHORT

    @property
    def in_cache(self) -> bool:
        return self.tokens * self.reduction * self.size <= L2_BYTES


def segment_schedules(facts: Facts) -> list[ScheduleAttr]:
    """Of products with a matrix, the first one chosen."""
    most = max(8, power_above(facts.tokens)) if facts.tokens else 1024
    first = _first_segments(facts, most)
    segments = [_columns(*numbers) for numbers in SEGMENTS if numbers[0] <= most]
    sweeps = [_columns(*numbers) for numbers in SWEEPS if numbers[0] <= most]
    if _sweeps(facts, most):
        return _space("row_sweeps", [first, *sweeps]) + _space("row_segments", segments)
    return _space("row_segments", [first, *segments]) + _space("row_sweeps", sweeps)


def _sweeps(facts: Facts, most: int) -> bool:
    """Whether programs side by side gain from rows of X that others have read: where rows have many entries, and where
    what some of them read most is more than a line of it, or all of it."""
    if facts.size not in (2, 4) or not facts.in_cache or most < 64 or not facts.length:
        return False
    return facts.length >= LONG or (
        facts.skewed and (most == 64 or (facts.size == 4 and not facts.short))
    )


def _first_segments(facts: Facts, most: int) -> Numbers:
    """A step reads ``positions`` rows of X, 128 bytes of each or more."""
    line = max(16, 128 // facts.size)
    if _sweeps(facts, most):
        return _columns(64, 32, 1)
    if facts.short and not facts.skewed:
        # A step holds most rows, so that wide ones of X hide how long each takes to come.
        return _columns(min(most, 4 * line), 8 if most > 64 else 32, 1)
    if facts.in_cache:
        hubs = facts.skewed and facts.length > 0 and facts.size in (2, 4)
        return _columns(min(most, 128 if hubs else line), 32, 1)
    if most >= 256:
        return _columns(256, 16, 2) if facts.size == 4 else _columns(128, 16, 1)
    return _columns(min(most, 64), 16 if facts.size > 2 else 32, 1)


def _columns(columns: int, positions: int, warps: int) -> Numbers:
    return {"columns": columns, "positions": positions, "warps": warps}


def vector_schedules(facts: Facts) -> list[ScheduleAttr]:
    """Of products with a vector: bins where rows are unlike or long; else twice as many lanes as a row has entries,
    which hold almost all rows in one step."""
    lanes = min(64, max(8, 2 * power_above(facts.length or 16)))
    groups = [{"rows": max(8, 256 // lanes), "lanes": lanes, "warps": 1}]
    for other in (lanes // 2, lanes, 2 * lanes):
        groups += [{"rows": volume // other, "lanes": other, "warps": 1} for volume in (256, 512)]
    first = (256, 1)
    if facts.short or not facts.skewed:
        first = (512, 2 if facts.short or facts.size == 2 else 1)
    members = [first, *BINNED]
    bins = _space("row_bins", [{"lanes": n, "warps": w} for n, w in members])
    plain = _space("row_groups", groups)
    return bins + plain if facts.skewed or facts.length >= LONG else plain + bins


def sampled_schedules(facts: Facts) -> list[ScheduleAttr]:
    """Of products at the entries of a matrix."""
    depth = min(128, max(16, power_above(facts.tokens or 64)))
    wide = depth > 64
    if wide:
        entries = [{"entries": 8, "depth": depth, "warps": 1}]
        rows = [{"entries": 8, "depth": depth, "warps": 1}]
    else:
        # Rows of U that many entries share are in the first cache: more entries are under way by two warps.
        most = 32 if facts.size <= 4 else 16
        count = most if facts.skewed else min(most, 64 // facts.size)
        entries = [{"entries": count, "depth": depth, "warps": 2 if facts.skewed else 1}]
        rows = [{"entries": most, "depth": depth, "warps": 1}]
    for count in (8, 16, 32):
        for warps in (1, 2):
            if count * depth // (32 * warps) <= 64:
                entries.append({"entries": count, "depth": depth, "warps": warps})
                rows.append({"entries": count, "depth": depth, "warps": warps})
    by_entries, by_rows = _space("sampled_entries", entries), _space("sampled_rows", rows)
    alike = facts.length > SHORT and not facts.skewed
    return by_rows + by_entries if alike else by_entries + by_rows


def _space(family: str, members: Iterable[Numbers]) -> list[ScheduleAttr]:
    """Schedules of a family, each once."""
    found: dict[tuple[tuple[str, int], ...], ScheduleAttr] = {}
    for numbers in members:
        found.setdefault(tuple(numbers.items()), ScheduleAttr.of(family, numbers))
    return list(found.values())
