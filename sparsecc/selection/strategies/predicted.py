"""roofline: the plan whose predicted time is least, with caution."""

from __future__ import annotations

from collections.abc import Sequence

from sparsecc.selection.candidate import Ranked
from sparsecc.selection.costs import DOUBT
from sparsecc.selection.problem import Problem
from sparsecc.selection.strategies.plain import legal


class Roofline:
    """All legal plans by the time that the cost model predicts for a call, conversions spread over the calls, and the
    usual error of such a prediction: of two plans that are predicted alike, the one that is known better comes first,
    even where the other one is predicted a little faster."""

    name = "roofline"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        found = [problem.predict(plan) for plan in legal(problem, self.name)]
        return sorted(found, key=lambda r: (cautious(r), r.candidate))


def cautious(plan: Ranked) -> float:
    """The predicted seconds of a plan and the error to expect of them."""
    return (plan.seconds or 0.0) + plan.terms.get(DOUBT, 0.0)
