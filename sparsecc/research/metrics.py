"""Numbers of a run: regret, speed-ups over what one would do without a strategy, ties, costs, errors of predictions.

Regret is relative: 0.05 means that the chosen plan takes 5 % longer than the best measured one. Means of regrets are
arithmetic, means of ratios geometric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from statistics import fmean, median
from typing import Any

from sparsecc.research.harness import Prediction, Run
from sparsecc.research.outcomes import CALLS, KS, Outcome, label
from sparsecc.research.table import Table, Time
from sparsecc.selection.candidate import GENERATED

NEAR = 0.05


def geomean(ratios: Iterable[float]) -> float | None:
    """The geometric mean; None of nothing."""
    logs = [log(ratio) for ratio in ratios]
    return exp(fmean(logs)) if logs else None


@dataclass(frozen=True)
class Against:
    """How much faster than something else the choices are: over 1 is faster. ``problems``: where both ran."""

    what: str
    speedup: float | None
    problems: int


@dataclass(frozen=True)
class Part:
    """Some of the problems: a family, an operation, or all."""

    name: str
    problems: int
    """For which a measured plan was chosen."""
    failed: int
    regret: float | None
    """The mean."""
    worst: float | None
    worst_problem: str
    tied: float | None
    """The share of problems where the choice is the best plan or can't be told from it."""
    near: float | None
    """The share within five per cent of the best plan."""
    slowdown: float | None
    """The geometric mean of the chosen plan's time over the best one's."""


def part(name: str, outcomes: Sequence[Outcome]) -> Part:
    """The numbers of some outcomes."""
    done = [o for o in outcomes if not o.failure]
    failed = len(outcomes) - len(done)
    if not done:
        return Part(name, 0, failed, None, None, "", None, None, None)
    worst = max(done, key=lambda o: o.regret)
    return Part(
        name, len(done), failed, fmean(o.regret for o in done), worst.regret, worst.problem,
        fmean(o.tied for o in done), fmean(o.regret <= NEAR for o in done),
        geomean(1 + o.regret for o in done),
    )  # fmt: skip


def parts(outcomes: Sequence[Outcome], key: Callable[[Outcome], str]) -> list[Part]:
    """The numbers by family, operation, or what else ``key`` says."""
    names = dict.fromkeys(key(o) for o in outcomes)
    return [part(name, [o for o in outcomes if key(o) == name]) for name in names]


@dataclass(frozen=True)
class Error:
    """How far predictions of one kind of plan are from what was measured."""

    plan: str
    count: int
    bias: float
    """The geometric mean of predicted over measured: over 1 is pessimistic."""
    error: float
    """The typical factor between the two, less 1: 0.2 is twenty per cent either way."""


def errors(predictions: Sequence[Prediction]) -> list[Error]:
    """Errors by kind of plan, those of all plans first."""
    kinds: dict[str, list[float]] = {"all plans": []}
    for p in predictions:
        if p.predicted > 0:
            ratio = log(p.predicted / p.measured)
            kinds["all plans"].append(ratio)
            kinds.setdefault(p.plan, []).append(ratio)
    return [
        Error(name, len(logs), exp(fmean(logs)), exp(fmean(map(abs, logs))) - 1)
        for name, logs in kinds.items()
        if logs
    ]


@dataclass(frozen=True)
class Summary:
    """All numbers of a run."""

    strategy: str
    table: str
    split: str
    all: Part
    regret_at: Mapping[int, float]
    """By k, the mean."""
    noise_aware: float | None
    """The mean regret with that of ties counted as 0."""
    median: float | None
    amortised: Mapping[float, tuple[float | None, float | None, int, int]]
    """By calls: the mean regret, the worst one, of how many problems they are, and for how many there was no choice."""
    statics: tuple[Against, ...]
    """Against each plan that is the same for all problems, where it ran."""
    best_static: Against
    """Against the best such plan of each operation: of those that ran for most of its problems the fastest."""
    dense: Against
    """Against the fastest dense plan."""
    vendor: Against
    """Against the fastest library."""
    selection_mean: float
    selection_worst: float
    measured: float
    """Plans measured before choosing, the mean."""
    conversion: float | None
    """Seconds of the conversions of the chosen plans, the mean."""
    families: tuple[Part, ...]
    operations: tuple[Part, ...]
    errors: tuple[Error, ...]
    failures: Mapping[str, int]
    """Why there was no choice, and how often; what is of numbers of calls alone says so."""
    unmeasured: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        found = asdict(self)
        found["amortised"] = {
            f"{calls:g}": dict(zip(("mean", "worst", "problems", "failed"), numbers, strict=True))
            for calls, numbers in self.amortised.items()
        }
        return found


def summary(run: Run, table: Table) -> Summary:
    """The numbers of a run on a table."""
    done = run.decided
    regret_at = {k: fmean(o.regrets[k] for o in done) for k in KS} if done else {}
    conversions = [o.conversion for o in done if o.conversion is not None]
    failures = Counter(o.failure for o in run.outcomes if o.failure)
    told = Counter(
        f"told of {n:g} calls: {why}"
        for o in run.outcomes
        for n, why in o.undecided.items()
        if why != o.failure
    )
    return Summary(
        run.strategy, run.table, run.split, part("all", run.outcomes), regret_at,
        fmean(0.0 if o.tied else o.regret for o in done) if done else None,
        median(o.regret for o in done) if done else None,
        dict(spread_over_calls(run.outcomes)),
        tuple(statics(done, table)), best_static(done, table),
        against("the fastest dense plan", done, table, is_dense),
        against("the fastest library", done, table, is_library),
        fmean(o.selection for o in run.outcomes), max(o.selection for o in run.outcomes),
        fmean(o.measured for o in run.outcomes), fmean(conversions) if conversions else None,
        tuple(parts(run.outcomes, lambda o: o.family)), tuple(parts(run.outcomes, lambda o: o.operation)),
        tuple(errors(run.predictions)), {**failures, **told}, run.unmeasured,
    )  # fmt: skip


def spread_over_calls(
    outcomes: Sequence[Outcome],
) -> Generator[tuple[float, tuple[float | None, float | None, int, int]]]:
    """By calls: mean and worst regret, and how many problems have one and how many failed."""
    for n in CALLS:
        regrets = [o.amortised[n] for o in outcomes if n in o.amortised]
        failed = sum(n in o.undecided for o in outcomes)
        if regrets:
            yield n, (fmean(regrets), max(regrets), len(regrets), failed)
        elif failed:
            yield n, (None, None, 0, failed)


def is_dense(time: Time) -> bool:
    return all(fmt == "dense" for _, fmt in time.candidate.formats)


def is_library(time: Time) -> bool:
    return any(engine != GENERATED for engine in time.candidate.engines)


def against(
    what: str, outcomes: Sequence[Outcome], table: Table, which: Callable[[Time], bool]
) -> Against:
    """Against the fastest plan of some kind, where one ran."""
    ratios: list[float] = []
    for outcome in outcomes:
        times = [t.seconds for t in table.runs(outcome.problem) if t.seconds and which(t)]
        if times and outcome.seconds:
            ratios.append(min(times) / outcome.seconds)
    return Against(what, geomean(ratios), len(ratios))


def statics(outcomes: Sequence[Outcome], table: Table) -> list[Against]:
    """Against each plan that is the same everywhere, those that ran most often first."""
    ratios = _ratios(outcomes, table)
    found = [Against(name, geomean(by.values()), len(by)) for name, by in ratios.items()]
    return sorted(found, key=lambda a: (-a.problems, a.speedup or 0.0))


def best_static(outcomes: Sequence[Outcome], table: Table) -> Against:
    """Against the best plan of each operation that does not look at the problem."""
    ratios: list[float] = []
    names: list[str] = []
    for operation in dict.fromkeys(o.operation for o in outcomes):
        by = _ratios([o for o in outcomes if o.operation == operation], table)
        if not by:  # all plans have schedules of their own
            continue
        most = max(len(found) for found in by.values())
        name, found = min(
            ((n, f) for n, f in by.items() if len(f) == most),
            key=lambda pair: geomean(pair[1].values()) or 0.0,
        )
        names.append(f"{operation}: {name}")
        ratios += found.values()
    return Against(", ".join(names), geomean(ratios), len(ratios))


def _ratios(outcomes: Sequence[Outcome], table: Table) -> dict[str, dict[str, float]]:
    """By plan and problem: its time over that of the choice."""
    found: dict[str, dict[str, float]] = {}
    for outcome in outcomes:
        for time in table.runs(outcome.problem):
            if time.seconds and outcome.seconds and not time.candidate.schedules:
                by = found.setdefault(label(time.candidate), {})
                by[outcome.problem] = time.seconds / outcome.seconds
    return found
