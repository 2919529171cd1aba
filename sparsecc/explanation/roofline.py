"""Plans against the ceilings of their machine: multiplications that count, for the bytes they move and in the time
they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from sparsecc.explanation.prediction import Prediction
from sparsecc.selection.calibrations import Calibration
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.footprint import ITEMSIZES
from sparsecc.selection.problem import Expression, Problem

WIDE = 128
"""Bytes of a wide vector step."""

STREAMS = {
    "cold": "memory",
    "from_dram": "memory",
    "from_l3": "third cache",
    "from_l2": "second cache",
    "warm": "second cache",
}
"""Units of bytes that come one after another, and from where."""


@dataclass(frozen=True)
class Point:
    """``intensity``: operations a byte; ``rate``: operations a second."""

    candidate: Candidate
    intensity: float
    rate: float


@dataclass(frozen=True)
class Roofline:
    """Two operations for each multiplication that the entries make necessary, whatever a plan does beside.

    ``slopes``: bytes a second by name; ``roofs``: operations a second by name."""

    points: tuple[Point, ...]
    slopes: tuple[tuple[str, float], ...]
    roofs: tuple[tuple[str, float], ...]


def roofline(
    problem: Problem, plans: Sequence[Prediction], calibration: Calibration
) -> Roofline | None:
    """The points of plans, and ceilings of the kernel families that they use; None where the operations can't be
    counted."""
    work = operations(problem)
    if not work:
        return None
    points = tuple(
        Point(p.candidate, work / p.moved, work / p.running) for p in plans if p.moved and p.running
    )
    if not points:
        return None
    families = {f: calibration.families[f] for p in plans for f in p.families}
    item = ITEMSIZES[next(iter(problem.tensors.values())).dtype]
    slopes: list[tuple[str, float]] = []
    for unit, name in STREAMS.items():
        costs = [units[unit] for units in families.values() if units.get(unit)]
        if costs:
            slopes.append((name, 1 / min(costs)))
    macs = [units["mac"] for units in families.values() if units.get("mac")]
    steps = [units["wide"] for units in families.values() if units.get("wide")]
    roofs: list[tuple[str, float]] = []
    if macs:
        scale = (
            item / 8 if problem.target.backend == "cpu" else 1.0
        )  # counted in elements of 8 bytes
        roofs.append(("matrix units" if scale == 1.0 else "BLAS", 2 / (min(macs) * scale)))
    if steps:
        roofs.append(("vectors", 2 * WIDE / item / min(steps)))
    slopes.sort(key=lambda slope: -slope[1])
    return Roofline(points, tuple(slopes), tuple(roofs))


def operations(problem: Problem) -> float | None:
    """Two for each multiplication that entries make necessary; None where that is not known."""
    counts = [_of_expression(problem, e) for e in problem.expressions if e.product]
    if len(counts) != len(problem.expressions) or any(c is None for c in counts):
        return None
    return 2.0 * sum(c for c in counts if c is not None)


def _of_expression(problem: Problem, expression: Expression) -> float | None:
    """Multiplications: entries of the emptiest operand times the extents of the other indices."""
    known = [a for a in expression.inputs if problem.tensors[a.name].statistics is not None]
    covered: set[str] = set()
    entries = 1.0
    if known:
        densities = {a: problem.tensors[a.name].statistics for a in known}
        access = min(known, key=lambda a: s.density if (s := densities[a]) else 1.0)
        statistics = densities[access]
        assert statistics is not None
        entries, covered = float(statistics.nnz), set(access.indices)
    extents = [problem.extents.get(i) for i in expression.indices if i not in covered]
    if any(extent is None for extent in extents):
        return None
    return entries * prod(extent for extent in extents if extent is not None)
