"""A predicted time in its parts: which amounts of which work, and what each of them takes.

The terms are those of ``selection.costs``: the larger of moving bytes, multiplying and other instructions, then what it
takes to start kernels and a call's share in conversions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparsecc.selection.calibrations import Error, calibration_of
from sparsecc.selection.candidate import TERMS, Candidate, Ranked
from sparsecc.selection.costs import work_of
from sparsecc.selection.footprint import footprint
from sparsecc.selection.operations import operands_to_choose
from sparsecc.selection.problem import Problem
from sparsecc.selection.spaces.space import PlanSpace

LARGEST_OF = ("bytes", "macs", "issue")
"""The terms of which an expression takes the largest."""
LINE = 64

WORDS: dict[str, str] = {
    "cold": "bytes of the matrix from memory",
    "warm": "bytes of dense operands and the result",
    "from_l2": "bytes from the second cache",
    "from_l3": "bytes from the third cache",
    "from_dram": "bytes from memory",
    "to_l2": "bytes of the result, into the second cache",
    "to_l3": "bytes of the result, into the third cache",
    "to_dram": "bytes of the result, to memory",
    "x_l2": "bytes of the dense operand, read again from the second cache",
    "x_turned": "bytes of the dense operand that lie across, read again from the second cache",
    "reread": "bytes of the matrix, read again for more tokens",
    "x_l3": "bytes of the dense operand, read again from the third cache",
    "x_dram": "bytes of the dense operand, read again from memory",
    "gather_l2": "lines of the vector from the second cache",
    "gather_l3": "lines of the vector from the third cache",
    "gather_dram": "lines of the vector from memory",
    "mac": "multiplications",
    **{f"mac_{bits}": f"multiplications of {bits} bits" for bits in (8, 16, 32, 64)},
    "weight": "bytes that the library rearranges",
    "result": "bytes of dense operands that the library rearranges",
    "entry": "entries walked one by one",
    "row": "row starts",
    "segment": "row starts",
    "uneven": "rows that are not as long as the one before",
    "chain": "steps that wait for the sum of their row",
    "scattered": "steps of entries without neighbours",
    "begin": "columns that wait for their row of the dense operand",
    "soon": "steps whose sum was written just before",
    "again": "entries walked again for the last columns",
    "slots": "rows with padding",
    "pairs": "rows that are looked for",
    "tall": "cells of blocks with more rows than registers",
    "used": "row numbers read",
    "slot": "slots looked at, padding too",
    "pair": "row numbers compared",
    "strip": "rows of blocks",
    "convert": "entries brought into rows at each call",
    "block": "blocks walked",
    "cell": "cells walked one by one",
    "line": "lines of blocks",
    "wide": "wide vector steps",
    "narrow": "narrow vector steps",
    "single": "steps without vectors",
    "stored": "bytes of the result",
    "term": "multiplications one by one",
    "fiber": "fibers begun",
    "fiber_wide": "wide vector steps of fibers",
    "fiber_narrow": "narrow vector steps of fibers",
    "fiber_single": "steps of fibers without vectors",
    "step": "steps of general loops",
    "wave": "rounds of programs",
    "decode": "places of entries decoded from bits",
    "program": "programs begun",
    "long": "entries of the longest row, which one program walks",
    "call": "calls",
    "split": "sums of parts of the reduction",
    "gap": "kernels before the main one",
}
"""What the units of work are."""


@dataclass(frozen=True)
class Part:
    """An amount of work of an expression (its number) by a kernel family, and its time."""

    expression: int
    family: str
    term: str
    unit: str
    amount: float
    seconds: float

    @property
    def words(self) -> str:
        return WORDS.get(self.unit, self.unit)

    @property
    def bytes(self) -> float:
        """What it moves, if it moves bytes."""
        if self.unit.startswith("gather_"):
            return self.amount * LINE
        moves = self.unit in ("cold", "warm") or self.unit.startswith(("from_", "to_", "x_"))
        return self.amount if moves else 0.0


@dataclass(frozen=True)
class Prediction:
    """The model's word on a plan. ``seconds``: of one call, conversions' share included."""

    candidate: Candidate
    seconds: float
    terms: Mapping[str, float]
    parts: tuple[Part, ...]
    memory: float | None
    """Bytes that the operands which are chosen take; None where nothing is known of one."""
    assumed: str = ""
    """What the model had to assume."""

    @property
    def conversion(self) -> float:
        return self.terms.get("conversion", 0.0)

    @property
    def launch(self) -> float:
        return self.terms.get("launch", 0.0)

    @property
    def running(self) -> float:
        """Seconds of a call without conversions."""
        return self.seconds - self.conversion

    @property
    def kernel(self) -> float:
        """Seconds of the largest terms, without starting and converting."""
        return self.running - self.launch

    @property
    def bound(self) -> str:
        """The term that is largest."""
        return max(LARGEST_OF, key=lambda term: self.terms.get(term, 0.0))

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.family for part in self.parts))

    def amount(self, term: str, unit: str) -> float:
        return sum(p.amount for p in self.parts if (p.term, p.unit) == (term, unit))

    @property
    def moved(self) -> float:
        """Bytes that the term ``bytes`` moves."""
        return sum(p.bytes for p in self.parts if p.term == "bytes")

    def largest(self, term: str) -> Part | None:
        """The part of a term that takes longest."""
        found = [p for p in self.parts if p.term == term]
        return max(found, key=lambda p: p.seconds, default=None)

    def to_json(self) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "terms": dict(self.terms),
            "bound": self.bound,
            "memory": self.memory,
            "parts": [
                {
                    "expression": p.expression, "family": p.family, "term": p.term, "unit": p.unit,
                    "amount": p.amount, "seconds": p.seconds, "what": p.words,
                }
                for p in self.parts
            ],
        }  # fmt: skip


def predict(problem: Problem, candidate: Candidate) -> Prediction:
    """What the model says of a plan. Raises NotCalibrated."""
    return of_ranked(problem, problem.predict(candidate))


def of_ranked(problem: Problem, ranked: Ranked) -> Prediction:
    """The same of a plan that the model has already ranked."""
    terms = {**dict.fromkeys(TERMS, 0.0), **ranked.terms}
    plan = ranked.candidate
    parts, memory = parts_of(problem, plan), memory_of(problem, plan)
    return Prediction(plan, ranked.seconds or 0.0, terms, parts, memory, ranked.note)


def by_costs(problem: Problem) -> bool:
    """Whether plans are predicted by ``selection.costs``, so that their parts are known."""
    space: object = problem.space
    # A space may stand before another one, of which it leaves plans out.
    return isinstance(getattr(space, "space", space), PlanSpace)


def parts_of(problem: Problem, candidate: Candidate) -> tuple[Part, ...]:
    """The parts of a predicted time; none where the space of plans is not one of ours."""
    if not by_costs(problem):
        return ()
    rates = calibration_of(problem.target.name)
    found: list[Part] = []
    for number, (work, _) in enumerate(work_of(problem, candidate, rates)):
        for term, amounts in (
            ("bytes", work.bytes),
            ("macs", work.macs),
            ("issue", work.issue),
            ("launch", work.launch),
        ):
            found += [
                Part(number, work.family, term, unit, amount, amount * rates.cost(work.family, unit))
                for unit, amount in amounts.items()
                if amount
            ]  # fmt: skip
    return tuple(found)


def memory_of(problem: Problem, candidate: Candidate) -> float | None:
    """Bytes of the operands that a plan chooses a format for."""
    formats = dict(candidate.formats)
    total = 0.0
    for tensor in operands_to_choose(problem):
        if tensor.name in formats:
            if tensor.statistics is None:
                return None
            total += footprint(formats[tensor.name], tensor.statistics).bytes
    return total


def errors_of(problem: Problem, prediction: Prediction) -> dict[str, Error]:
    """How far predictions of its kernel families were from measured times, where that is known."""
    if not by_costs(problem):
        return {}
    known = calibration_of(problem.target.name).errors
    return {family: known[family] for family in prediction.families if family in known}
