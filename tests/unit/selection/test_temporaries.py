"""Plans of programs with temporaries: formats of results are known when a plan is judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc import api
from sparsecc.selection.candidate import Candidate, Ranked
from sparsecc.selection.problem import Problem
from sparsecc.storage.entries import from_coords

CHAIN = "C[i,k] = A[i,j] * B[j,k]; y[i] = C[i,k] * x[k]"


def given(size: int = 30, density: float = 0.1) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    full = [rng.random((size, size)) * (rng.random((size, size)) < density) for _ in "AB"]
    return {
        "A": sc.asarray(full[0]).to("CSR"),
        "B": sc.asarray(full[1]).to("CSR"),
        "x": rng.random(size),
    }


def problem_of(text: str, **operands: Any) -> Problem:
    found = api.decide(text, operands=operands, formats="*", libraries=frozenset({"blas", "scipy"}))
    assert found is not None
    return found.problem


class Named:
    """A strategy that takes one plan."""

    name = "named"

    def __init__(self, plan: Candidate) -> None:
        self.plan = plan

    def rank(self, problem: Problem) -> list[Ranked]:
        del problem
        return [Ranked(self.plan)]


def test_engines_are_judged_by_the_formats_of_temporaries() -> None:
    problem = problem_of(CHAIN, **given())
    assert problem.temporaries == ("C",)
    rows = (("A", "CSR"), ("B", "CSR"))
    plans = {(plan.formats, plan.engines) for plan in problem.candidates}
    assert (rows, ("generated", "scipy")) in plans  # C is CSR
    assert (rows, ("generated", "blas")) not in plans
    assert ((*rows, ("C", "dense")), ("generated", "blas")) in plans  # the plan says so
    dense = {
        p for p in problem.candidates if dict(p.formats)["A"] == "dense" == dict(p.formats)["B"]
    }
    assert dense and all("C" not in dict(p.formats) for p in dense)  # it is anyway


@pytest.mark.filterwarnings("ignore::sparsecc.runtime.compiled_kernel.OperandConverted")
@pytest.mark.parametrize(
    "text",
    [
        CHAIN,
        "C[i,j] = A[i,j] + B[i,j]; y[i] = C[i,j] * x[j]",
        "C[i,j] = A[i,j] * B[i,j]; y[i] = C[i,j] * x[j]",
        "C[i,j] = 2 * A[i,j]; y[i] = C[i,j] * x[j]",
    ],
)
def test_every_plan_is_what_the_compiler_makes_of_it(text: str) -> None:
    operands = {n: v for n, v in given(12, 0.3).items() if f"{n}[" in text}
    problem = problem_of(text, **operands)
    full = {n: v.to_numpy() if n != "x" else v for n, v in operands.items()}
    a, b = full["A"], full.get("B")
    c = a @ b if text == CHAIN else a + b if "+" in text else a * b if b is not None else 2 * a
    for plan in problem.candidates[:: max(1, len(problem.candidates) // 24)]:
        kernel = sc.compile(text, **operands, formats="*", strategy=Named(plan))
        np.testing.assert_allclose(kernel.call(kernel.prepare(operands)), c @ full["x"])


def test_a_large_temporary_is_not_made_dense() -> None:
    size = 20_000
    at = np.arange(size)
    eye = from_coords((at, at), np.ones(size), (size, size), "CSR")
    problem = problem_of(CHAIN, A=eye, B=eye, x=np.ones(size))
    assert problem.candidates and all("C" not in dict(p.formats) for p in problem.candidates)


def test_a_temporary_costs_what_it_will_hold() -> None:
    few, many = (problem_of(CHAIN, **given(200, density)) for density in (0.01, 0.5))
    seconds: list[float] = []
    for problem in (few, many):
        plan = next(
            p for p in problem.candidates
            if p.formats == (("A", "CSR"), ("B", "CSR")) and p.engines == ("generated", "generated")
        )  # fmt: skip
        ranked = problem.predict(plan)
        assert "C's entries are estimated" in ranked.note and ranked.seconds is not None
        seconds.append(ranked.seconds)
    assert seconds[0] < seconds[1]
