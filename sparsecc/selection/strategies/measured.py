"""Strategies that measure: the few plans that the model thinks best, or all of them."""

from __future__ import annotations

from collections.abc import Sequence

from sparsecc.diagnostics import PassError, SparseccError
from sparsecc.selection.candidate import Ranked
from sparsecc.selection.problem import Problem
from sparsecc.selection.strategies.predicted import Roofline

BEST = 5
"""Plans that ``autotune`` measures."""


class NothingToMeasure(PassError):
    text = "the strategy {name} measures plans, and there are no operands, or no machine, to measure with"
    help_text = "give operands for the target that is present, or name another strategy: roofline"


class NoneRan(PassError):
    text = "none of the {count} plans that the strategy {name} measured has run; the last one: {reason}"
    help_text = "name another strategy: roofline"


def measured(problem: Problem, plans: Sequence[Ranked], name: str) -> list[Ranked]:
    """Plans by their measured time, and the conversions' share that is predicted. Raises NothingToMeasure, NoneRan."""
    if problem.measure is None:
        raise NothingToMeasure(name=name)
    found: list[Ranked] = []
    reason = ""
    for plan in plans:
        try:
            seconds = problem.measure(plan.candidate)
        except SparseccError as error:
            reason = error.message
            continue
        share = plan.terms.get("conversion", 0.0)
        terms = {**plan.terms, "measured": seconds}
        found.append(Ranked(plan.candidate, seconds + share, terms, "measured"))
    if not found:
        raise NoneRan(count=len(plans), name=name, reason=reason or "there is none")
    return sorted(found, key=lambda r: (r.seconds or 0.0, r.candidate))


class Autotune:
    """Measures the plans that ``roofline`` thinks best."""

    name = "autotune"

    def __init__(self, best: int = BEST) -> None:
        self.best = best

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        ranked = Roofline().rank(problem)
        return [*measured(problem, ranked[: self.best], self.name), *ranked[self.best :]]


class Oracle:
    """Measures every legal plan."""

    name = "oracle"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        return measured(problem, Roofline().rank(problem), self.name)
