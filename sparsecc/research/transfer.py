"""What one target's knowledge is worth on another: a strategy that believes to be on target A chooses, and the table of
target B says what the choice costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from sparsecc.diagnostics import SparseccError
from sparsecc.research.harness import SPLITS, NoProblems
from sparsecc.research.outcomes import judged
from sparsecc.research.recorded import RecordedSpace
from sparsecc.research.table import Table
from sparsecc.selection.asking import ask
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.problem import Space, Strategy
from sparsecc.targets import Target, known_target

COUNTERPARTS = {"blas": "cublas", "scipy": "cusparse"}
"""Libraries of CPUs and those of GPUs that do the same."""


@dataclass(frozen=True)
class Transfer:
    """One cell of the cross-target matrix."""

    believed: str
    """The target whose plans and rates the strategy sees."""
    table: str
    problems: int
    """For which it chose a plan that the table has."""
    failed: int
    regret: float | None
    worst: float | None


def translated(candidate: Candidate, backend: str) -> Candidate:
    """A plan with the libraries of another backend; an engine without a counterpart stays as it is."""
    names = COUNTERPARTS if backend != "cpu" else {gpu: cpu for cpu, gpu in COUNTERPARTS.items()}
    return replace(candidate, engines=tuple(names.get(e, e) for e in candidate.engines))


def transfer(
    strategy: Strategy, table: Table, believed: str, space: Space | None, split: str = "held-out"
) -> Transfer:
    """A strategy's mean and worst regret on a table where it believes to be on another target, whose ``space`` this
    is. Raises UnknownTarget, NoProblems."""
    target = known_target(believed)
    regrets: list[float] = []
    failed = 0
    ids = [
        id for id, p in table.problems.items()
        if (split == "all" or p.held_out == (split == "held-out")) and table.runs(id)
    ]  # fmt: skip
    if not ids or split not in SPLITS:
        raise NoProblems(table=table.name, split=split)
    for id in ids:
        try:
            regret = _regret(strategy, table, id, target, space)
        except SparseccError:
            regret = None
        if regret is None:
            failed += 1
        else:
            regrets.append(regret)
    mean = fmean(regrets) if regrets else None
    return Transfer(believed, table.name, len(regrets), failed, mean, max(regrets, default=None))


def _regret(
    strategy: Strategy, table: Table, id: str, target: Target, space: Space | None
) -> float | None:
    back = {translated(t.candidate, target.backend): t.candidate for t in table.runs(id)}
    seen = RecordedSpace(tuple(back), space)
    problem = table.problem(id)
    libraries = frozenset(e for c in back for e in c.engines)
    problem = replace(
        problem, target=target, space=seen, libraries=libraries & problem_libraries(target),
        measure=None,
    )  # fmt: skip
    ranked = [r for r in ask(strategy, problem) if r.candidate in back]
    there = [replace(r, candidate=back[r.candidate]) for r in ranked]
    outcome = judged(table.problems[id], table, there)
    return None if outcome.failure else outcome.regret


def problem_libraries(target: Target) -> frozenset[str]:
    """The engines that a target can have beside ours."""
    pairs = (
        COUNTERPARTS.keys() if target.backend == "cpu" else {*COUNTERPARTS.values(), "cusparselt"}
    )
    return frozenset(pairs)


def matrix(
    strategy: Strategy,
    tables: Sequence[Table],
    targets: Sequence[str],
    space_of: Callable[[Target], Space | None],
    split: str = "held-out",
) -> list[Transfer]:
    """All pairs of a believed target and a table."""
    return [
        transfer(strategy, table, name, space_of(known_target(name)), split)
        for table in tables
        for name in targets
    ]
