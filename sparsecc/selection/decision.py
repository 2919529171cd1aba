"""What was decided and why, for explanations: no IR, nothing that runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparsecc.selection.candidate import Candidate, Ranked, Refusal
from sparsecc.selection.problem import Problem


@dataclass(frozen=True)
class Decision:
    """The plans of a problem as a strategy ranks them; the first is the one that is used."""

    problem: Problem
    """Without its module and without a way to measure."""
    ranked: tuple[Ranked, ...]
    refusals: tuple[Refusal, ...]
    strategy: str
    milliseconds: float
    """What ranking took; statistics and compilation are not in it."""

    @property
    def candidate(self) -> Candidate:
        """The plan that was chosen."""
        return self.ranked[0].candidate

    @staticmethod
    def of(
        problem: Problem, ranked: tuple[Ranked, ...], strategy: str, milliseconds: float
    ) -> Decision:
        plain = replace(problem, module=None, measure=None)
        return Decision(plain, ranked, problem.refusals, strategy, milliseconds)
