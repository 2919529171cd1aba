"""The choice over an extent that no operand says: who wins at each size, and by how much over staying dense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sparsecc.explanation.prediction import Prediction, of_ranked
from sparsecc.selection.candidate import Candidate, Ranked
from sparsecc.selection.operations import operation_of
from sparsecc.selection.problem import Problem
from sparsecc.selection.strategies.predicted import cautious

SIZES = (1, 8, 16, 32, 64, 128, 512, 2048)
USUAL = 16


@dataclass(frozen=True)
class SizeRow:
    """The best plan for an extent, and the best one in which everything is dense (None: none is legal)."""

    extent: int
    best: Prediction
    dense: Prediction | None

    @property
    def gain(self) -> float | None:
        """How many times as fast as dense."""
        if self.dense is None or not self.best.seconds:
            return None
        return self.dense.seconds / self.best.seconds

    def to_json(self) -> dict[str, Any]:
        return {
            "extent": self.extent,
            "plan": str(self.best.candidate),
            "seconds": self.best.seconds,
            "dense_plan": None if self.dense is None else str(self.dense.candidate),
            "dense_seconds": None if self.dense is None else self.dense.seconds,
            "gain": self.gain,
        }


def best(problem: Problem) -> Ranked:
    """The plan that the model thinks fastest."""
    found = (problem.predict(candidate) for candidate in problem.candidates)
    return min(found, key=lambda r: (cautious(r), r.candidate))


def unknown_indices(problem: Problem) -> list[str]:
    """Indices that have no extent by any operand; columns of a dense operand first."""
    plain = replace(problem, sizes={})
    found = [index for index, extent in plain.extents.items() if extent is None]
    tokens: set[str] = set()
    for expression in problem.expressions:
        letters = operation_of(problem, expression).letters or {}
        tokens |= {index for letter, index in letters.items() if letter in "tr"}
    return sorted(found, key=lambda index: index not in tokens)


def dense_best(problem: Problem) -> Prediction | None:
    """The fastest plan in which every operand is dense."""
    plans = [c for c in problem.candidates if all(fmt == "dense" for _, fmt in c.formats)]
    found = [problem.predict(c) for c in plans]
    if not found:
        return None
    return of_ranked(problem, min(found, key=lambda r: (cautious(r), r.candidate)))


def over_sizes(problem: Problem, index: str, sizes: Sequence[int] = SIZES) -> list[SizeRow]:
    """A row for each extent of an index."""
    rows: list[SizeRow] = []
    for extent in sizes:
        there = replace(problem, sizes={**problem.sizes, index: extent})
        rows.append(SizeRow(extent, of_ranked(there, best(there)), dense_best(there)))
    return rows


def ranges(rows: Sequence[SizeRow]) -> list[tuple[int, int, Candidate]]:
    """Neighbouring rows with one winner: the first and the last extent, and the plan."""
    found: list[tuple[int, int, Candidate]] = []
    for row in rows:
        if found and found[-1][2] == row.best.candidate:
            found[-1] = (found[-1][0], row.extent, row.best.candidate)
        else:
            found.append((row.extent, row.extent, row.best.candidate))
    return found
