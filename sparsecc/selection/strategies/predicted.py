"""roofline: the plan whose predicted time is least."""

from __future__ import annotations

from collections.abc import Sequence

from sparsecc.selection.candidate import Ranked
from sparsecc.selection.problem import Problem
from sparsecc.selection.strategies.plain import legal


class Roofline:
    """All legal plans by the time that the cost model predicts for a call, conversions spread over the calls."""

    name = "roofline"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        found = [problem.predict(plan) for plan in legal(problem, self.name)]
        return sorted(found, key=lambda r: (r.seconds or 0.0, r.candidate))
