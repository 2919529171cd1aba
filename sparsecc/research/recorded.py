"""The plans of a table as the plans of a problem: what a strategy may choose where nothing can be measured."""

from __future__ import annotations

from dataclasses import dataclass

from sparsecc.diagnostics import UnsupportedError
from sparsecc.selection.candidate import Candidate, Ranked, Refusal
from sparsecc.selection.problem import Problem, Space


class NoModel(UnsupportedError):
    text = "nothing predicts the time of {candidate}: the problem was made without a cost model"
    help_text = "pass space= when you ask the table for the problem"


@dataclass(frozen=True)
class RecordedSpace:
    """Those of a target's legal plans that were measured; ``inner`` says what is legal and predicts.

    Legal plans that nobody measured are refusals, so that they are seen. Without ``inner`` all that ran is legal, and
    nothing is predicted."""

    recorded: tuple[Candidate, ...]
    inner: Space | None = None

    def candidates(self, problem: Problem) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...]]:
        if self.inner is None:
            return self.recorded, ()
        legal, refusals = self.inner.candidates(problem)
        known = set(self.recorded)
        unknown = [
            Refusal(str(plan), "the table has no time of it") for plan in legal if plan not in known
        ]
        return tuple(plan for plan in legal if plan in known), (*refusals, *unknown)

    def predict(self, problem: Problem, candidate: Candidate) -> Ranked:
        """Raises NoModel without ``inner``."""
        if self.inner is None:
            raise NoModel(candidate=candidate)
        return self.inner.predict(problem, candidate)
