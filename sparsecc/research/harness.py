"""Running a strategy over a table: it ranks the measured plans of every problem, and the table says what the first
plan was worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

from sparsecc.diagnostics import SparseccError, UsageError
from sparsecc.research import records
from sparsecc.research.outcomes import CALLS, COLUMNS, Outcome, amortised, judged, label, undecided
from sparsecc.research.records import BadRecords
from sparsecc.research.table import Table
from sparsecc.selection.asking import ask
from sparsecc.selection.candidate import Candidate, Ranked
from sparsecc.selection.problem import Problem, Space, Strategy

Progress = Callable[[int, int], None]
"""Is told how many of how many problems are done."""
SPLITS = ("held-out", "fit", "all")


class NoProblems(UsageError):
    text = "table {table!r} has no problem of the split {split!r} that ran"
    help_text = "the splits are held-out, fit and all"


@dataclass(frozen=True)
class Prediction:
    """What a strategy predicted of a plan, and what was measured; seconds of a call."""

    problem: str
    plan: str
    """Formats and engines without the names of tensors."""
    predicted: float
    measured: float


@dataclass(frozen=True)
class Run:
    """A strategy's outcomes on the problems of a table."""

    strategy: str
    table: str
    split: str
    outcomes: tuple[Outcome, ...]
    meta: Mapping[str, Any]
    """Of the table: machine, versions, commit, date."""
    predictions: tuple[Prediction, ...] = ()
    unmeasured: Mapping[str, int] = field(default_factory=dict[str, int])
    """Legal plans that the table has no time of, by label, with how many problems they are missing from."""

    @property
    def decided(self) -> tuple[Outcome, ...]:
        """The problems for which it chose a plan that was measured."""
        return tuple(outcome for outcome in self.outcomes if not outcome.failure)


def run(
    strategy: Strategy,
    table: Table,
    space: Space | None,
    *,
    split: str = "held-out",
    calls: Sequence[float] = CALLS,
    progress: Progress | None = None,
) -> Run:
    """Let a strategy rank the plans of each problem of a split of the table.

    ``space`` says which plans are legal and predicts their times; without one all plans that ran are legal, and
    strategies that ask for predictions fail. For each number of ``calls`` the strategy is asked anew, since it is told
    over how many calls conversions are spread. Whatever a strategy raises is its outcome. Raises NoProblems."""
    ids = [
        id for id, problem in table.problems.items()
        if split == "all" or problem.held_out == (split == "held-out")
    ]  # fmt: skip
    ids = [id for id in ids if table.runs(id)]
    if not ids or split not in SPLITS:
        raise NoProblems(table=table.name, split=split)
    outcomes: list[Outcome] = []
    predictions: list[Prediction] = []
    missing: dict[str, int] = {}
    for number, id in enumerate(ids):
        outcome, ranked, problem = decide(strategy, table, id, space)
        known = {time.candidate: time.seconds for time in table.runs(id)}
        for plan in ranked:
            measured = known.get(plan.candidate)
            if plan.seconds is not None and measured is not None and "measured" not in plan.terms:
                predictions.append(Prediction(id, label(plan.candidate), plan.seconds, measured))
        for plan in unmeasured(problem, space):
            missing[label(plan)] = missing.get(label(plan), 0) + 1
        outcomes.append(with_calls(outcome, strategy, table, space, calls))
        if progress is not None:
            progress(number + 1, len(ids))
    return Run(
        strategy.name, table.name, split, tuple(outcomes), table.meta, tuple(predictions), missing
    )


def decide(
    strategy: Strategy, table: Table, id: str, space: Space | None, calls: float | None = None
) -> tuple[Outcome, Sequence[Ranked], Problem]:
    """What a strategy chooses for one problem, its whole ranking, and the problem that it saw."""
    asked = 0
    problem = table.problem(id, space=space, calls=calls)
    look_up = problem.measure
    assert look_up is not None

    def measure(candidate: Candidate) -> float:
        nonlocal asked
        asked += 1
        return look_up(candidate)

    problem = replace(problem, measure=measure)
    known = table.problems[id]
    start = perf_counter()
    try:
        ranked = ask(strategy, problem)
    except SparseccError as error:
        return undecided(known, table, error.message), (), problem
    seconds = perf_counter() - start
    outcome = judged(known, table, ranked, selection=seconds, measured=asked)
    return outcome, ranked, problem


def with_calls(
    steady: Outcome, strategy: Strategy, table: Table, space: Space | None, calls: Sequence[float]
) -> Outcome:
    """An outcome with the regrets where conversions are spread over so many calls, or why there was no choice. Where
    conversions were not measured there is neither."""
    regrets: dict[float, float] = {}
    failures: dict[float, str] = {}
    for n in calls:
        outcome = steady
        if n != inf:
            outcome, _, _ = decide(strategy, table, steady.problem, space, n)
        if outcome.plan is None:
            failures[n] = outcome.failure
        elif (regret := amortised(table, steady.problem, outcome.plan, n)) is not None:
            regrets[n] = regret
    return replace(steady, amortised=regrets, undecided=failures)


def unmeasured(problem: Problem, space: Space | None) -> list[Candidate]:
    """Plans that the space calls legal and that did not run when the table was recorded."""
    if space is None:
        return []
    known = set(problem.candidates)
    return [plan for plan in space.candidates(problem)[0] if plan not in known]


# -- results files ---------------------------------------------------------------------------------

ABOUT = ("strategy", "table", "split", "machine", "versions", "commit", "date")
"""The columns that are the same in all lines of a run."""


def facts_of(meta: Mapping[str, Any]) -> dict[str, str]:
    """Machine and versions of a table as texts for columns."""

    def text(value: object) -> str:
        if isinstance(value, Mapping):
            items: Mapping[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
            return " ".join(f"{key}={item}" for key, item in items.items())
        return str(value)

    return {name: text(meta.get(name, "")) for name in ABOUT[3:]}


def write_results(run: Run, path: Path) -> None:
    """Write a line a problem, as CSV or Parquet by the suffix. Raises UnknownRecords, NoParquet, FileError."""
    about = {"strategy": run.strategy, "table": run.table, "split": run.split}
    about |= facts_of(run.meta)
    rows = [about | outcome.row() for outcome in run.outcomes]
    records.write_rows(path, (*ABOUT, *COLUMNS), rows, dict(run.meta))


def read_results(path: Path) -> Run:
    """A run that ``write_results`` wrote, without predictions. Raises BadRecords, UnknownRecords, NoParquet."""
    rows, _ = records.read_rows(path, (*ABOUT, *COLUMNS))
    outcomes: list[Outcome] = []
    for number, row in enumerate(rows, 2):
        try:
            outcomes.append(Outcome.of_row(row))
        except (KeyError, ValueError, TypeError) as error:
            raise BadRecords(problem=str(error), place=f"{path}:{number}") from None
    about = {name: {str(row[name] or "") for row in rows} for name in ABOUT}
    if any(len(about[name]) != 1 for name in ("strategy", "table", "split")):
        problem = "not the results of one strategy on one table"
        raise BadRecords(problem=problem, place=str(path))
    first = {name: min(values) for name, values in about.items()}
    meta = {name: first[name] for name in ABOUT[3:]}
    return Run(first["strategy"], first["table"], first["split"], tuple(outcomes), meta)
