"""What a strategy's choice was worth on one problem: compared with the best of all measured plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, cast

from sparsecc.research.corpus import CorpusProblem
from sparsecc.research.table import Table, Time
from sparsecc.selection.candidate import GENERATED, Candidate, Ranked

KS = (1, 2, 3, 5)
"""Regret is that of the best of so many plans of a ranking."""
CALLS = (1.0, 10.0, 100.0, 1000.0, inf)
"""Over so many calls conversions are spread."""


def label(candidate: Candidate) -> str:
    """A plan without the names of tensors: ``CSR``, ``dense by blas``."""
    formats = " ".join(fmt for _, fmt in candidate.formats)
    engines = [engine for engine in dict.fromkeys(candidate.engines) if engine != GENERATED]
    return f"{formats} by {', '.join(engines)}" if engines else formats


def tie(one: Time, other: Time) -> bool:
    """Whether noise could have exchanged two plans: the tenth to the ninetieth per cent of their runs overlap."""
    if one.candidate == other.candidate:
        return True
    return overlap((one.seconds, one.low, one.high), (other.seconds, other.low, other.high))


def overlap(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    """The same for seconds with their bounds; equal seconds where bounds are not known."""
    if None in one or None in other:
        return one[0] == other[0]
    (_, low, high), (_, other_low, other_high) = (
        cast("list[float]", list(t)) for t in (one, other)
    )
    return low <= other_high and other_low <= high


def total(time: Time, calls: float) -> float | None:
    """Seconds of one call and its share of the conversions; None where those were not measured."""
    assert time.seconds is not None
    if calls == inf:
        return time.seconds
    return None if time.conversion is None else time.seconds + time.conversion / calls


@dataclass(frozen=True)
class Outcome:
    """A strategy's choice for one problem. Where it made none that was measured, ``failure`` says why, and no time is
    made up for it."""

    problem: str
    operation: str
    family: str
    held_out: bool
    best: Candidate
    best_seconds: float
    plan: Candidate | None = None
    seconds: float | None = None
    low: float | None = None
    """The tenth and the ninetieth per cent of the plan's runs."""
    high: float | None = None
    tied: bool = False
    """Whether the chosen plan is the best one, or can't be told from it."""
    regrets: Mapping[int, float] = field(default_factory=dict[int, float])
    """By k: how much longer than the best plan the best of the first k takes; 0.05 is five per cent."""
    amortised: Mapping[float, float] = field(default_factory=dict[float, float])
    """By the number of calls, which the strategy was told: the same with conversions spread over the calls."""
    undecided: Mapping[float, str] = field(default_factory=dict[float, str])
    """By the number of calls that it was told: why it made no choice that was measured."""
    selection: float = 0.0
    """Seconds that ranking took."""
    measured: int = 0
    """Plans that the strategy had measured before it chose."""
    conversion: float | None = None
    predicted: float | None = None
    failure: str = ""

    @property
    def regret(self) -> float:
        """Of the plan that was chosen. Only of outcomes without a failure."""
        return self.regrets[1]

    def row(self) -> dict[str, Any]:
        """A line of a results file."""
        found: dict[str, Any] = {
            "problem": self.problem,
            "operation": self.operation,
            "family": self.family,
            "held_out": int(self.held_out),
            **_plan("plan", self.plan),
            "seconds": self.seconds,
            "low": self.low,
            "high": self.high,
            **_plan("best", self.best),
            "best_seconds": self.best_seconds,
            "tied": int(self.tied),
        }
        found |= {f"regret_at_{k}": self.regrets.get(k) for k in KS}
        found |= {f"regret_{_calls(n)}": self.amortised.get(n) for n in CALLS}
        found |= {f"failure_{_calls(n)}": self.undecided.get(n) for n in CALLS}
        return found | {
            "selection_seconds": self.selection,
            "measured_plans": self.measured,
            "conversion_seconds": self.conversion,
            "predicted_seconds": self.predicted,
            "failure": self.failure or None,
        }

    @staticmethod
    def of_row(row: Mapping[str, Any]) -> Outcome:
        """The inverse. Raises KeyError, ValueError, TypeError."""

        def number(name: str) -> float | None:
            return None if row[name] is None else float(row[name])

        best, best_seconds = _candidate("best", row), number("best_seconds")
        if best is None or best_seconds is None:
            raise ValueError("there is no best plan")
        plan, seconds, failure = _candidate("plan", row), number("seconds"), row["failure"] or ""
        if (plan is None or seconds is None) != bool(failure):
            raise ValueError("a problem has either a plan with its seconds or a failure")
        regrets = {k: number(f"regret_at_{k}") for k in KS}
        amortised = {n: number(f"regret_{_calls(n)}") for n in CALLS}
        undecided = {n: str(row[f"failure_{_calls(n)}"] or "") for n in CALLS}
        return Outcome(
            str(row["problem"]), str(row["operation"]), str(row["family"]), bool(int(row["held_out"])), best,
            best_seconds, plan, seconds, number("low"), number("high"), bool(int(row["tied"])),
            {k: r for k, r in regrets.items() if r is not None},
            {n: r for n, r in amortised.items() if r is not None}, {n: f for n, f in undecided.items() if f},
            number("selection_seconds") or 0.0, int(row["measured_plans"]), number("conversion_seconds"),
            number("predicted_seconds"), failure,
        )  # fmt: skip


COLUMNS = (
    "problem", "operation", "family", "held_out", "plan_formats", "plan_engines", "seconds", "low", "high",
    "best_formats", "best_engines", "best_seconds", "tied", *(f"regret_at_{k}" for k in KS),
    "regret_calls_1", "regret_calls_10", "regret_calls_100", "regret_calls_1000", "regret_calls_inf",
    "failure_calls_1", "failure_calls_10", "failure_calls_100", "failure_calls_1000", "failure_calls_inf",
    "selection_seconds", "measured_plans", "conversion_seconds", "predicted_seconds", "failure",
)  # fmt: skip
"""The columns of a results file that are of problems."""


def _calls(n: float) -> str:
    return "calls_inf" if n == inf else f"calls_{n:.0f}"


def _plan(name: str, candidate: Candidate | None) -> dict[str, Any]:
    if candidate is None:
        return {f"{name}_formats": None, f"{name}_engines": None}
    return {
        f"{name}_formats": ";".join(f"{t}={f}" for t, f in candidate.formats),
        f"{name}_engines": ";".join(candidate.engines),
    }


def _candidate(name: str, row: Mapping[str, Any]) -> Candidate | None:
    formats, engines = row[f"{name}_formats"], row[f"{name}_engines"]
    if not formats or not engines:
        return None
    pairs = [part.partition("=") for part in str(formats).split(";")]
    return Candidate.of({n: f for n, _, f in pairs}, *str(engines).split(";"))


def judged(
    problem: CorpusProblem,
    table: Table,
    ranked: Sequence[Ranked],
    *,
    selection: float = 0.0,
    measured: int = 0,
) -> Outcome:
    """The outcome of a ranking, its first plan first. Amortised regrets are those of the caller."""
    runs = table.runs(problem.id)
    best = runs[0]
    assert best.seconds is not None
    known = {time.candidate: time for time in runs}
    base = Outcome(
        problem.id, problem.operation, problem.family, problem.held_out, best.candidate, best.seconds,
        selection=selection, measured=measured,
    )  # fmt: skip
    chosen = known.get(ranked[0].candidate) if ranked else None
    if chosen is None or chosen.seconds is None:
        return failed(base, _missing(ranked, table, problem.id))
    regrets: dict[int, float] = {}
    for k in KS:
        times = [known[r.candidate].seconds or inf for r in ranked[:k] if r.candidate in known]
        regrets[k] = min(times) / best.seconds - 1
    return Outcome(
        problem.id, problem.operation, problem.family, problem.held_out, best.candidate, best.seconds,
        chosen.candidate, chosen.seconds, chosen.low, chosen.high, tie(chosen, best), regrets, {}, {},
        selection, measured, chosen.conversion, ranked[0].seconds,
    )  # fmt: skip


def failed(base: Outcome, failure: str) -> Outcome:
    """The outcome of a problem that was not decided."""
    return Outcome(
        base.problem, base.operation, base.family, base.held_out, base.best, base.best_seconds,
        selection=base.selection, measured=base.measured, failure=failure,
    )  # fmt: skip


def undecided(problem: CorpusProblem, table: Table, failure: str) -> Outcome:
    """The outcome of a strategy that raised an error."""
    best = table.runs(problem.id)[0]
    assert best.seconds is not None
    return Outcome(
        problem.id, problem.operation, problem.family, problem.held_out, best.candidate, best.seconds,
        failure=failure or "an error without words",
    )  # fmt: skip


def _missing(ranked: Sequence[Ranked], table: Table, id: str) -> str:
    if not ranked:
        return "it ranked no plan"
    first = ranked[0].candidate
    for time in table.times.get(id, ()):
        if time.candidate == first:
            return f"it chose {first}, which failed when it was measured: {time.failure}"
    return f"it chose {first}, which was not measured"


def amortised(table: Table, id: str, plan: Candidate, calls: float) -> float | None:
    """The regret of a plan where conversions are spread over calls; None where the plan's conversion was not
    measured, or that of no plan."""
    totals = {time.candidate: total(time, calls) for time in table.runs(id)}
    counted = {c: t for c, t in totals.items() if t is not None}
    if plan not in counted:
        return None
    return counted[plan] / min(counted.values()) - 1
