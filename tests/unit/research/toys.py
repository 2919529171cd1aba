"""A space and strategies for tests: small, and wrong in known ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sparsecc.diagnostics import PassError
from sparsecc.selection.candidate import Candidate, Ranked, Refusal
from sparsecc.selection.problem import Problem
from tests.unit.research.tiny import BSR, CSR, DENSE

ELL = Candidate.of({"A": "ELL"})
"""Legal, and in no table."""


class ToySpace:
    """Predicts two nanoseconds an entry, one a cell of what is dense, and five to convert a cell."""

    def candidates(self, problem: Problem) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...]]:
        return (CSR, DENSE, BSR, ELL), (Refusal("A=CSF", "a matrix has two dimensions"),)

    def predict(self, problem: Problem, candidate: Candidate) -> Ranked:
        known = problem.tensors["A"].statistics
        assert known is not None
        cells = known.shape[0] * known.shape[1]
        work = cells if candidate == DENSE else 2 * known.nnz
        seconds = work * 1e-9
        if problem.calls and candidate != CSR:
            seconds += 5e-9 * cells / problem.calls
        return Ranked(candidate, seconds, {"macs": work * 1e-9})


class Predicts:
    name = "predicts"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        found = [problem.predict(plan) for plan in problem.candidates]
        return sorted(found, key=lambda r: (r.seconds or 0.0, r.candidate))


class Always:
    """One plan, whatever the problem is."""

    def __init__(self, plan: Candidate, name: str = "always") -> None:
        self.plan, self.name = plan, name

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        others = [Ranked(c) for c in problem.candidates if c != self.plan]
        return [Ranked(self.plan), *others]


class Measures:
    name = "measures"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        assert problem.measure is not None
        found = [Ranked(c, problem.measure(c), {"measured": 1.0}) for c in problem.candidates]
        return sorted(found, key=lambda r: r.seconds or 0.0)


class Refuses:
    """Blocks are too much for it."""

    name = "refuses"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        known = problem.tensors["A"].statistics
        if known is not None and known.shape == (40, 40):
            raise PassError("it does not like squares")
        return [Ranked(CSR)]


class Nothing:
    name = "nothing"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        return []


class Odd:
    """Answers what it is told to."""

    name = "odd"

    def __init__(self, answer: Callable[[Problem], Any]) -> None:
        self.answer = answer

    def rank(self, problem: Problem) -> Any:
        return self.answer(problem)


class Divides(Odd):
    """By zero."""

    def __init__(self) -> None:
        super().__init__(lambda problem: 1 / 0)
