"""Two runs on the same problems, problem by problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from statistics import fmean
from typing import Any

import numpy as np

from sparsecc.diagnostics import UsageError
from sparsecc.research.harness import Run
from sparsecc.research.outcomes import Outcome, overlap

SAMPLES = 2000
"""Of the bootstrap."""


class NotComparable(UsageError):
    text = "the runs {one} and {other} can't be compared: {problem}"
    help_text = "compare results of one table: run both strategies on it"


@dataclass(frozen=True)
class Paired:
    """The first run against the second one on some problems. A tie: the same plan, or plans whose runs overlap."""

    name: str
    problems: int
    wins: int
    ties: int
    losses: int
    speedup: float
    """The geometric mean of the second run's time over the first one's: over 1 means that the first is faster."""
    low: float
    """Where 95 % of the means of resampled problems lie."""
    high: float
    regret: float
    """The mean of the first run's regret less the second one's: below 0 means that the first is better."""


@dataclass(frozen=True)
class Comparison:
    one: str
    other: str
    all: Paired
    families: tuple[Paired, ...]
    operations: tuple[Paired, ...]
    only_one: int
    """Problems for which the first run alone chose a measured plan, and the second alone."""
    only_other: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(one: Run, other: Run) -> Comparison:
    """Compare two runs on the problems that both decided. Raises NotComparable."""
    for what in ("table", "machine"):
        first, second = _fact(one, what), _fact(other, what)
        if first != second:
            problem = f"the {what} of one is {first!r}, of the other {second!r}"
            raise NotComparable(one=one.strategy, other=other.strategy, problem=problem)
    ours = {o.problem: o for o in one.decided}
    theirs = {o.problem: o for o in other.decided}
    pairs = [(o, theirs[id]) for id, o in ours.items() if id in theirs]
    if not pairs:
        problem = "there is no problem that both decided"
        raise NotComparable(one=one.strategy, other=other.strategy, problem=problem)
    return Comparison(
        one.strategy, other.strategy, paired("all", pairs), _parts(pairs, lambda o: o.family),
        _parts(pairs, lambda o: o.operation), len(ours.keys() - theirs), len(theirs.keys() - ours),
    )  # fmt: skip


def _fact(run: Run, what: str) -> str:
    return run.table if what == "table" else str(run.meta.get(what, ""))


Pairs = Sequence[tuple[Outcome, Outcome]]


def _parts(pairs: Pairs, key: Callable[[Outcome], str]) -> tuple[Paired, ...]:
    names = dict.fromkeys(key(o) for o, _ in pairs)
    return tuple(paired(name, [p for p in pairs if key(p[0]) == name]) for name in names)


def paired(name: str, pairs: Pairs) -> Paired:
    """The numbers of some pairs."""
    wins = ties = losses = 0
    logs: list[float] = []
    for one, other in pairs:
        assert one.seconds and other.seconds
        ratio = other.seconds / one.seconds
        logs.append(log(ratio))
        same = one.plan == other.plan
        if same or overlap(*((o.seconds, o.low, o.high) for o in (one, other))):
            ties += 1
        elif ratio > 1:
            wins += 1
        else:
            losses += 1
    low, high = _interval(logs)
    return Paired(
        name, len(pairs), wins, ties, losses, exp(fmean(logs)), exp(low), exp(high),
        fmean(one.regret - other.regret for one, other in pairs),
    )  # fmt: skip


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Where 95 % of the means of resampled values lie; always the same for the same values."""
    rng = np.random.default_rng(0)
    array = np.asarray(values)
    drawn = array[rng.integers(0, len(array), (SAMPLES, len(array)))].mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)
