"""Explanations as data: what is said is what was decided, and numbers are the model's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import sparsecc as sc
from sparsecc.explanation.prediction import LARGEST_OF, WORDS, predict
from sparsecc.explanation.reasons import calls_to_pay_back, reason
from sparsecc.explanation.report import Report, explain
from sparsecc.explanation.sizes import SIZES, ranges
from sparsecc.explanation.text import page, plan_name
from sparsecc.selection.candidate import Candidate, Ranked
from sparsecc.selection.costs.families import FAMILIES
from sparsecc.selection.costs.work import total
from sparsecc.selection.decision import Decision
from sparsecc.selection.problem import Problem
from sparsecc.selection.strategies.plain import Fixed
from tests.unit.explanation.decisions import SPMV, grouped, linear, matrix, vector, weight

DECISIONS = {
    "half-full weight": lambda: linear(),
    "2:4 weight": lambda: linear(grouped()),
    "odd columns": lambda: linear(weight(0.5, 2046)),
    "vector": lambda: vector(),
    "vector, few calls": lambda: vector(calls=2),
}


@pytest.fixture(params=list(DECISIONS))
def decision(request: pytest.FixtureRequest) -> Decision:
    return DECISIONS[request.param]()


def test_the_winner_is_the_decisions(decision: Decision) -> None:
    report = explain(decision)
    assert report.winner.candidate == decision.candidate
    assert report.winner.rank == 1 and report.winner.reason == ""
    assert [row.candidate for row in report.plans] == [r.candidate for r in decision.ranked]
    assert report.refusals == decision.refusals


def test_numbers_are_the_models_and_sum(decision: Decision) -> None:
    for row, said in zip(explain(decision).plans, decision.ranked, strict=True):
        found = row.prediction
        assert row.seconds == found.seconds == said.seconds
        largest = max(found.terms[term] for term in LARGEST_OF)
        assert found.terms[found.bound] == largest
        assert found.seconds == pytest.approx(total(found.terms) + found.terms["conversion"])
        for term in (*LARGEST_OF, "launch"):
            parts = sum(p.seconds for p in found.parts if p.term == term)
            assert parts == pytest.approx(found.terms[term], abs=1e-15), term


def test_each_loser_has_a_reason(decision: Decision) -> None:
    report = explain(decision)
    assert all(row.reason for row in report.plans[1:])
    assert report.margin is not None and report.margin >= 0


def test_the_text_has_all_of_it(decision: Decision) -> None:
    report = explain(decision)
    text = page(report, plans=100)
    assert decision.problem.expressions[0].text in text
    assert f"target {decision.problem.target.name}" in text
    for row in report.plans[1:]:
        assert row.reason in text
    for refusal in report.refusals:
        assert refusal.what in text and refusal.reason in text and refusal.remedy in text
    for offer in report.offers:
        assert offer.change in text


def test_every_unit_of_work_has_words() -> None:
    units = {u for families in FAMILIES.values() for units in families.values() for u in units}
    assert units <= set(WORDS)


# -- reasons -----------------------------------------------------------------------------------


def row_of(report: Report, plan: Candidate) -> str:
    return next(row.reason for row in report.plans if row.candidate == plan)


def test_dense_reads_more_bytes_than_groups() -> None:
    report = explain(linear(grouped()))
    assert report.winner.candidate.formats == (("W", "2:4"),)
    why = row_of(report, Candidate.of({"W": "dense"}, "cublas"))
    dense, ours = (
        next(r for r in report.plans if r.candidate == c).prediction
        for c in (Candidate.of({"W": "dense"}, "cublas"), report.winner.candidate)
    )
    ratio = dense.moved / ours.moved
    assert ratio == pytest.approx(2 / 1.125, rel=0.1)
    assert why.startswith(("reads ", "starting it takes "))


def test_conversions_that_are_not_paid_back() -> None:
    report = explain(vector(calls=2))
    winner = report.winner.prediction
    found = [r for r in report.plans[1:] if r.reason.startswith("converting takes")]
    assert found
    for row in found:
        needed = calls_to_pay_back(winner, row.prediction, 2)
        if needed is None:
            assert row.reason.endswith("a call of it is no faster")
        else:
            # With so many calls the model thinks so too, with fewer it does not.
            assert f"which 2 calls do not pay back: {needed}" in row.reason
            more = replace(report.problem, calls=float(needed))
            assert predict(more, row.candidate).seconds <= predict(more, winner.candidate).seconds


def test_paying_back_is_counted_exactly() -> None:
    problem = vector(calls=2).problem
    stays = predict(problem, Candidate.of({"A": "COO"}))
    for plan in problem.candidates:
        other = predict(problem, plan)
        needed = calls_to_pay_back(stays, other, 2)
        if needed is None or other.running >= stays.running:
            continue
        more = replace(problem, calls=float(needed))
        assert predict(more, plan).seconds <= predict(more, stays.candidate).seconds * (1 + 1e-9)
        if needed > 1:
            fewer = replace(problem, calls=float(needed - 1))
            assert predict(fewer, plan).seconds > predict(fewer, stays.candidate).seconds


def test_a_choice_that_the_model_does_not_share() -> None:
    class Slowest:
        name = "slowest"

        def rank(self, problem: Problem) -> list[Ranked]:
            found = [problem.predict(c) for c in problem.candidates]
            return sorted(found, key=lambda r: -(r.seconds or 0.0))

    report = explain(linear(strategy=Slowest()))
    last = report.plans[-1]
    assert "the strategy chose otherwise" in last.reason
    assert "margin: none" in page(report)


def test_plans_that_a_strategy_does_not_rank_stand_behind() -> None:
    decision = linear(strategy=Fixed())
    assert len(decision.ranked) == 1
    report = explain(decision)
    assert {r.candidate for r in report.plans} == set(decision.problem.candidates)
    assert [r.rank for r in report.plans] == [1] + [None] * (len(report.plans) - 1)
    times = [r.seconds for r in report.plans[1:]]
    assert times == sorted(times)


def test_measured_times_are_shown() -> None:
    decision = vector()
    plans = [
        Ranked(r.candidate, 1e-6 * (n + 1), {**r.terms, "measured": 1e-6 * (n + 1)}, "measured")
        for n, r in enumerate(reversed(decision.ranked))
    ]
    report = explain(replace(decision, ranked=tuple(plans), strategy="oracle"))
    assert report.winner.measured == 1e-6 == report.winner.seconds
    assert "measured" in page(report)
    assert report.margin == pytest.approx(1.0)
    assert any("measured slower" in row.reason for row in report.plans)


def test_what_a_strategy_predicts_is_shown_beside_the_model() -> None:
    decision = vector()
    plans = [replace(r, seconds=2 * (r.seconds or 0.0)) for r in decision.ranked]
    report = explain(replace(decision, ranked=tuple(plans), strategy="doubled"))
    assert report.winner.seconds == 2 * report.winner.prediction.seconds
    assert "by doubled" in page(report) and "by doubled" not in page(explain(decision))


def test_reason_of_equals() -> None:
    problem = vector().problem
    one = predict(problem, Candidate.of({"A": "CSR"}))
    assert reason(problem, one, one) == "predicted to take as long"


# -- libraries, sizes ----------------------------------------------------------------------------


def test_a_librarys_margin_is_said() -> None:
    full = explain(linear(weight(1.0), m=512))
    assert full.winner.candidate == Candidate.of({"W": "dense"}, "cublas")
    rival = full.rival
    assert rival is not None and not rival.by_library
    assert "cuBLAS is " in page(full) and "the best generated plan" in page(full)
    ours = explain(linear(grouped()))
    assert ours.rival is not None and ours.rival.by_library
    assert "the best library plan" in page(ours)


def test_sizes_that_no_operand_says() -> None:
    decision = linear(grouped())
    report = explain(decision)
    assert report.index == "m"
    assert [row.extent for row in report.sizes] == list(SIZES)
    at = next(row for row in report.sizes if row.extent == 16)
    assert at.best.seconds == report.winner.seconds
    for row in report.sizes:
        there = replace(decision.problem, sizes={"m": row.extent})
        least = min(predict(there, c).seconds for c in there.candidates)
        assert row.best.seconds == least
        assert row.dense is not None
        assert row.gain == row.dense.seconds / row.best.seconds >= 1
    found = ranges(report.sizes)
    assert found[0][0] == 1 and found[-1][1] == SIZES[-1]
    assert "no operand says m" in page(report)


def test_no_size_is_open() -> None:
    report = explain(vector())
    assert report.index is None and report.sizes == ()
    assert "no operand says" not in page(report)


# -- JSON ----------------------------------------------------------------------------------------


def test_json_is_plain_and_whole(decision: Decision) -> None:
    report = explain(decision, notes=["a note"])
    found: dict[str, Any] = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert found["schema"] == 1
    assert found["winner"] == str(decision.candidate) == found["plans"][0]["name"]
    assert found["notes"][0] == "a note"
    assert len(found["plans"]) == len(decision.problem.candidates)
    for plan in found["plans"]:
        assert Candidate.from_json(plan["plan"]) in decision.problem.candidates
        parts = sum(p["seconds"] for p in plan["predicted"]["parts"] if p["term"] == "bytes")
        assert parts == pytest.approx(plan["predicted"]["terms"]["bytes"], abs=1e-15)
    known = {o["name"]: o["statistics"] for o in found["operands"]}
    assert sum(s is not None for s in known.values()) == 1


def test_matrices_of_files_are_not_needed() -> None:
    assert explain(vector(matrix(50, 40, 0.1))).plans


def test_kernels_explain_their_choice() -> None:
    kernel = sc.compile(SPMV, A=matrix(), x=sc.Spec((None,)), formats={"A": "*"})
    assert kernel.decision is not None
    text = kernel.explain()
    assert text.startswith(SPMV) and text.endswith(kernel.steps())
    assert f"winner: {plan_name(kernel.decision.candidate)}, " in text
    report = kernel.report()
    assert report is not None and report.winner.candidate == kernel.decision.candidate
    fixed = sc.compile(SPMV, A=matrix(), x=sc.Spec((None,)))
    assert fixed.report() is None and fixed.explain() == fixed.steps()
