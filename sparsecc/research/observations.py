"""Recorded plans and conversions as work: what a calibration is fitted to, and how far its predictions are off."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from sparsecc.research.corpus import CorpusProblem
from sparsecc.research.table import Table
from sparsecc.selection.calibrations import Calibration, Error
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.costs import work, work_of
from sparsecc.selection.costs.conversions import FAMILY as CONVERSION
from sparsecc.selection.costs.conversions import amounts as conversion_amounts
from sparsecc.selection.costs.work import Work
from sparsecc.selection.problem import Problem
from sparsecc.selection.spaces import space_of
from sparsecc.targets import known_target

LEAST_WEIGHT = 0.05
"""The weight of a plan that takes 20 times as long as the best one, or longer."""


@dataclass(frozen=True)
class Observation:
    """A plan that was measured."""

    problem: str
    candidate: Candidate
    work: Work
    seconds: float
    best: float
    """Seconds of the best plan of the problem."""
    held_out: bool

    @property
    def weight(self) -> float:
        return max(LEAST_WEIGHT, self.best / self.seconds)


def problem_of(entry: CorpusProblem, libraries: Iterable[str] = ()) -> Problem:
    """The selection problem of a recorded one."""
    return entry.problem(space_of(known_target(entry.target)), libraries=libraries)


def observations(table: Table, calibration: Calibration) -> list[Observation]:
    """All plans that were measured, with the work that the model says they are."""
    found: list[Observation] = []
    for id, entry in table.problems.items():
        times = [t for t in table.times.get(id, ()) if t.seconds is not None]
        if not times:
            continue
        problem = problem_of(entry)
        best = min(t.seconds for t in times if t.seconds is not None)
        for time in times:
            ((todo, _),) = work_of(problem, time.candidate, calibration)
            assert time.seconds is not None
            found.append(Observation(id, time.candidate, todo, time.seconds, best, entry.held_out))
    return found


def conversions(table: Table) -> list[Observation]:
    """The conversions of operands that were measured, each matrix and format once, as work of its route."""
    found: dict[tuple[str, str, str], Observation] = {}
    for id, entry in table.problems.items():
        tensor = entry.sparse
        if tensor.statistics is None or tensor.stored is None:
            continue
        for time in table.times.get(id, ()):
            fmt = dict(time.candidate.formats).get(tensor.name, "")
            key = (json.dumps(dict(entry.pattern), sort_keys=True), tensor.dtype, fmt)
            if not time.conversion or key in found:
                continue
            by, amounts = conversion_amounts(tensor.stored, fmt, tensor.statistics)
            if by:
                call = {"call": amounts.pop("call")}
                todo = Work(f"{CONVERSION}-{by}", {}, {}, amounts, call)
                seconds = time.conversion
                found[key] = Observation(id, time.candidate, todo, seconds, seconds, entry.held_out)
    return list(found.values())


def by_family(seen: Iterable[Observation]) -> dict[str, list[Observation]]:
    """Observations by their kernel family."""
    found: dict[str, list[Observation]] = {}
    for o in seen:
        found.setdefault(o.work.family, []).append(o)
    return found


def predicted(o: Observation, calibration: Calibration) -> float:
    """Seconds of an observation by a calibration."""
    return work.total(o.work.seconds(calibration))


def errors(seen: Sequence[Observation], calibration: Calibration) -> Error:
    """How far predictions are from measured times."""
    off = sorted(
        float(np.exp(abs(np.log(predicted(o, calibration) / o.seconds)))) - 1 for o in seen
    )
    return Error(len(off), median(off), off[min(len(off) - 1, round(0.9 * len(off)))])
