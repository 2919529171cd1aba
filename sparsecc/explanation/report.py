"""The explanation of a decision as plain data; ``to_json()`` has the schema of docs/selection.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sparsecc.explanation import offers as offering
from sparsecc.explanation.offers import Offer
from sparsecc.explanation.prediction import (
    Prediction,
    errors_of,
    of_ranked,
    predict,
)
from sparsecc.explanation.reasons import reason
from sparsecc.explanation.sizes import SIZES, SizeRow, over_sizes, ranges, unknown_indices
from sparsecc.selection.calibrations import Calibration, calibration_of
from sparsecc.selection.candidate import GENERATED, Candidate, Refusal
from sparsecc.selection.decision import Decision
from sparsecc.selection.engines import ENGINES
from sparsecc.selection.problem import Problem, Tensor

SCHEMA = 1
"""Of ``to_json``; it changes when a key changes its meaning or goes."""


@dataclass(frozen=True)
class PlanRow:
    """A legal plan. ``rank``: by the strategy, from 1; None: it did not rank it, and it stands behind those that it
    ranked. ``seconds``: what the strategy says, else what the model predicts."""

    rank: int | None
    prediction: Prediction
    seconds: float
    measured: float | None
    note: str
    reason: str
    """Why it lost; empty of the winner."""

    @property
    def candidate(self) -> Candidate:
        return self.prediction.candidate

    @property
    def by_library(self) -> bool:
        return any(engine != GENERATED for engine in self.candidate.engines)

    def to_json(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "name": str(self.candidate),
            "plan": self.candidate.to_json(),
            "seconds": self.seconds,
            "measured": self.measured,
            "note": self.note,
            "reason": self.reason,
            "predicted": self.prediction.to_json(),
        }


@dataclass(frozen=True)
class Report:
    """What was decided and why. The first plan is the one that is used."""

    problem: Problem
    strategy: str
    milliseconds: float
    plans: tuple[PlanRow, ...]
    refusals: tuple[Refusal, ...]
    offers: tuple[Offer, ...]
    calibration: Calibration
    index: str | None = None
    """The index that ``sizes`` runs over, where no operand says its extent."""
    sizes: tuple[SizeRow, ...] = ()
    notes: tuple[str, ...] = ()
    """What else a reader should know: what was assumed of operands and libraries."""

    @property
    def winner(self) -> PlanRow:
        return self.plans[0]

    @property
    def runner_up(self) -> PlanRow | None:
        return self.plans[1] if len(self.plans) > 1 else None

    @property
    def margin(self) -> float | None:
        """By which part the second plan takes longer."""
        if self.runner_up is None or not self.winner.seconds:
            return None
        return self.runner_up.seconds / self.winner.seconds - 1

    @property
    def rival(self) -> PlanRow | None:
        """The best library plan where generated kernels win, the best generated plan where a library does."""
        wanted = not self.winner.by_library
        found = [row for row in self.plans if row.by_library == wanted]
        return min(found, key=lambda row: row.seconds, default=None)

    @property
    def uncertainty(self) -> float | None:
        """The larger of the median errors of the first two plans' kernel families; None where none is known."""
        rows = [row for row in self.plans[:2] if row.measured is None]
        found = [e.median for r in rows for e in errors_of(self.problem, r.prediction).values()]
        return max(found, default=None)

    @property
    def operands(self) -> list[Tensor]:
        """The tensors that the program reads and does not make."""
        made = {e.result.name for e in self.problem.expressions}
        read = dict.fromkeys(a.name for e in self.problem.expressions for a in e.inputs)
        return [self.problem.tensors[name] for name in read if name not in made]

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers; seconds and bytes."""
        problem, rival = self.problem, self.rival
        return {
            "schema": SCHEMA,
            "target": {"name": problem.target.name, "title": problem.target.title},
            "calibration": {"machine": self.calibration.machine, "date": self.calibration.date},
            "strategy": self.strategy,
            "milliseconds": self.milliseconds,
            "calls": problem.calls,
            "extents": dict(problem.extents),
            "libraries": sorted(problem.libraries),
            "expressions": [e.text for e in problem.expressions],
            "operands": [_operand(t) for t in self.operands],
            "plans": [row.to_json() for row in self.plans],
            "winner": self.winner.to_json()["name"],
            "margin": self.margin,
            "uncertainty": self.uncertainty,
            "rival": None
            if rival is None
            else {"name": str(rival.candidate), "library": rival.by_library, "seconds": rival.seconds},
            "refusals": [_refusal(r) for r in self.refusals],
            "offers": [offer.to_json() for offer in self.offers],
            "sizes": None
            if self.index is None
            else {
                "index": self.index,
                "rows": [row.to_json() for row in self.sizes],
                "ranges": [
                    {"from": first, "to": last, "plan": str(plan)}
                    for first, last, plan in ranges(self.sizes)
                ],
            },
            "notes": list(self.notes),
        }  # fmt: skip


def _refusal(refusal: Refusal) -> dict[str, str]:
    return {"what": refusal.what, "reason": refusal.reason, "remedy": refusal.remedy}


def _operand(tensor: Tensor) -> dict[str, Any]:
    known = tensor.statistics
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "format": tensor.format,
        "stored": tensor.stored,
        "statistics": None if known is None else known.to_json() | {"density": known.density},
    }


def explain(
    decision: Decision,
    *,
    notes: Sequence[str] = (),
    index: str | None = None,
    sizes: Sequence[int] = SIZES,
) -> Report:
    """The explanation of a decision. ``index``: the one to vary (None: the first whose extent nothing says).

    Raises NotCalibrated."""
    problem = decision.problem
    unknown = unknown_indices(problem)
    index = index or (unknown[0] if unknown else None)
    rows = _rows(decision)
    swept = () if index is None else tuple(over_sizes(problem, index, sizes))
    paying = offering.offers(problem, rows[0].prediction)
    if index is not None and not offering.is_sparse(decision.candidate):
        paying += offering.by_size(index, swept)
    return Report(
        problem,
        decision.strategy,
        decision.milliseconds,
        rows,
        decision.refusals,
        tuple(paying),
        calibration_of(problem.target.name),
        index,
        swept,
        (*notes, *_notes(problem, rows[0])),
    )


def _rows(decision: Decision) -> tuple[PlanRow, ...]:
    problem = decision.problem
    ranked = {r.candidate for r in decision.ranked}
    others = [of_ranked(problem, problem.predict(c)) for c in problem.candidates if c not in ranked]
    others.sort(key=lambda p: (p.seconds, p.candidate))
    first = predict(problem, decision.candidate)
    rows: list[PlanRow] = []
    for number, said in enumerate(decision.ranked):
        found = first if number == 0 else predict(problem, said.candidate)
        measured = said.terms.get("measured")
        seconds = found.seconds if said.seconds is None else said.seconds
        why = "" if number == 0 else _reason(problem, first, found, rows[0], seconds, measured)
        note = "" if said.note == found.assumed else said.note
        rows.append(PlanRow(number + 1, found, seconds, measured, note, why))
    for found in others:
        why = reason(problem, first, found)
        rows.append(PlanRow(None, found, found.seconds, None, "", why))
    return tuple(rows)


def _reason(
    problem: Problem,
    first: Prediction,
    found: Prediction,
    winner: PlanRow,
    seconds: float,
    measured: float | None,
) -> str:
    """Of a measured plan the measurement is the reason, where the model thinks otherwise."""
    if measured is not None and found.seconds <= first.seconds and seconds >= winner.seconds:
        return "measured slower, though the model expected it to be as fast"
    return reason(problem, first, found)


def _notes(problem: Problem, winner: PlanRow) -> list[str]:
    notes: list[str] = []
    if winner.prediction.assumed:
        notes.append(winner.prediction.assumed)
    absent = [ENGINES[r.what].title for r in problem.refusals if r.what in ENGINES]
    if absent and not winner.by_library:
        notes.append(f"not here, so not among the plans: {', '.join(absent)}")
    return notes
