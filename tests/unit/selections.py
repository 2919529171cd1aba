"""Problems of format selection for tests: a small space, strategies that pick by a rule, statistics without a pass
over data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

import sparsecc as sc
from sparsecc.runtime.compiled_kernel import Kernel
from sparsecc.selection.candidate import GENERATED, Candidate, Ranked, Refusal
from sparsecc.selection.problem import Problem
from sparsecc.statistics import Lengths, Statistics

MATRIX = ("dense", "CSR", "CSC", "COO", "DCSR", "BSR(2,2)", "ELL")
"""Formats of matrices that programs of one product take."""


class SmallSpace:
    """Every open operand in each of a few formats."""

    matrices: Sequence[str] = MATRIX

    def candidates(self, problem: Problem) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...]]:
        made = {e.result.name for e in problem.expressions}
        read = dict.fromkeys(a.name for e in problem.expressions for a in e.inputs)
        names = [n for n in read if problem.tensors[n].open and n not in made]
        choices = [self.formats(len(problem.tensors[name].shape)) for name in names]
        engines = (GENERATED,) * len(problem.expressions)
        plans = tuple(
            Candidate(tuple(sorted(zip(names, formats, strict=True))), engines)
            for formats in product(*choices)
        )
        refusals = [Refusal(f"{n}=2:4", "nobody has pruned it", "prune it to 2:4") for n in names]
        return plans, tuple(refusals)

    def formats(self, rank: int) -> Sequence[str]:
        if rank == 2:
            return self.matrices
        return ("dense", f"COO({rank})") if rank > 2 else ("dense",)

    def predict(self, problem: Problem, candidate: Candidate) -> Ranked:
        return Ranked(candidate, 1e-6 * len(candidate.formats), {"bytes": 1e-6})


@dataclass
class Picks:
    """Ranks the plan of these formats first."""

    formats: dict[str, str]
    name: str = "picks"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        wanted = Candidate.of(self.formats, *problem.candidates[0].engines)
        rest = [c for c in problem.candidates if c != wanted]
        return [problem.predict(c) for c in (wanted, *rest)]


class First:
    """The first plan."""

    name = "first"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        return [problem.predict(candidate) for candidate in problem.candidates]


class Last:
    """The last plan."""

    name = "last"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        return [problem.predict(candidate) for candidate in reversed(problem.candidates)]


class Broken:
    """One that fails."""

    name = "broken"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        raise ZeroDivisionError("no rate is known")


class Empty:
    """One that ranks nothing."""

    name = "empty"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        return []


class Elsewhere:
    """One that ranks a plan of another program."""

    name = "elsewhere"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        return [Ranked(Candidate.of({"A": "CSR", "B": "CSR"}))]


class Illegal:
    """One that ranks a plan that no space has."""

    name = "illegal"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        return [Ranked(Candidate.of({"A": "2:4"}))]


def statistics_of(array: npt.NDArray[Any], dtype: str = "f64") -> Statistics:
    """What is known of a pattern; the parts that few read are left out."""
    present = array != 0
    rank = array.ndim
    slices: list[Lengths] = []
    for dim in range(rank):
        counts = present.sum(axis=tuple(d for d in range(rank) if d != dim))
        bins = np.bincount([int(c).bit_length() for c in counts], minlength=1)
        slices.append(
            Lengths(
                array.shape[dim], int((counts > 0).sum()), int(counts.max(initial=0)),
                float(counts.mean()), float(counts.std()), tuple(map(int, bins)),
            )
        )  # fmt: skip
    coords = np.argwhere(present)
    prefixes = tuple(len(np.unique(coords[:, : d + 1], axis=0)) for d in range(rank))
    assert prod(array.shape) >= len(coords)
    return Statistics(array.shape, dtype, len(coords), True, tuple(slices), prefixes)


SPMV = "y[i] = A[i,j] * x[j]"
RANDOM = np.random.default_rng(4)
A: npt.NDArray[np.float64] = np.where(RANDOM.random((6, 8)) < 0.3, RANDOM.random((6, 8)), 0.0)
X: npt.NDArray[np.float64] = RANDOM.random(8)


def spec(array: npt.NDArray[np.float64] = A, stored: str | None = None) -> sc.Spec:
    """An open operand, and what is in it."""
    return sc.Spec((None, None), "f64", "*", statistics_of(array), stored)


def same_code(one: Kernel, other: Kernel) -> bool:
    return one.code is other.code
