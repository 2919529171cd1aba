"""Outcomes, summaries, comparisons and transfer, on made-up times that can be checked by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from math import inf, sqrt
from pathlib import Path
from typing import Any

import pytest

from sparsecc.diagnostics import FileError, UsageError
from sparsecc.research import compare, harness, metrics, records, report, transfer
from sparsecc.research.outcomes import amortised, label, overlap, tie, total
from sparsecc.research.table import Time
from sparsecc.selection.candidate import Candidate, Ranked
from sparsecc.selection.problem import Problem, Strategy
from sparsecc.targets import known_target
from tests.unit.research.tiny import BSR, CSR, DENSE, SCIPY, tiny, without
from tests.unit.research.toys import (
    ELL,
    Always,
    Measures,
    Nothing,
    Odd,
    Predicts,
    Refuses,
    ToySpace,
)

TABLE = tiny()


def run(strategy: Strategy, split: str = "all") -> harness.Run:
    return harness.run(strategy, TABLE, ToySpace(), split=split)


def summary(strategy: Strategy) -> metrics.Summary:
    return metrics.summary(run(strategy), TABLE)


def test_regret_of_a_fixed_choice() -> None:
    found = summary(Always(CSR))
    # 20 for 10, the best, 20 for 10, the best; each twice.
    assert found.all.problems == 8
    assert found.all.regret == pytest.approx(0.5)
    assert found.all.worst == pytest.approx(1.0)
    assert found.all.near == 0.5
    assert found.all.slowdown == pytest.approx(sqrt(2))
    assert found.median == pytest.approx(0.5)
    assert found.regret_at[1] == found.all.regret
    assert found.regret_at[2] < 0.5
    assert found.regret_at[5] == 0


def test_speed_ups() -> None:
    found = summary(Always(CSR))
    static = {a.what: a for a in found.statics}
    assert static["CSR"].speedup == pytest.approx(1)
    # dense: 10/20, 100/10, 80/20, 300/30
    assert static["dense by blas"].speedup == pytest.approx((0.5 * 10 * 4 * 10) ** 0.25)
    assert static["dense by blas"].problems == 8
    assert found.dense.speedup == found.vendor.speedup == static["dense by blas"].speedup
    # BSR: 30/20, 40/10, 10/20, 31/30 is worse than CSR for both operations.
    assert found.best_static.what == "SpMV: CSR, SpMM: CSR"
    assert found.best_static.speedup == pytest.approx(1)


def test_a_strategy_that_predicts() -> None:
    made = run(Predicts())
    by = {(o.family, o.operation): o.plan for o in made.outcomes}
    # 40x30 half full: 1200 cells, 1200 by entries and a tie by name; blocks look like CSR to it.
    assert by["stencil", "SpMV"] in (CSR, BSR)
    assert {p.plan for p in made.predictions} == {"CSR", "dense by blas", "BSR(4,4)"}
    assert len(made.predictions) == 24
    errors = {e.plan: e for e in metrics.errors(made.predictions)}
    assert errors["all plans"].count == 24
    assert errors["dense by blas"].bias < 0.1
    assert made.unmeasured == {"ELL": 8}


def test_the_oracle_measures_all() -> None:
    found = summary(Measures())
    assert found.all.regret == 0
    assert (found.all.tied, found.all.near) == (1, 1)
    assert found.measured == 3
    assert not found.errors  # what was measured is no prediction
    assert found.best_static.speedup is not None and found.best_static.speedup > 1.2


def test_ties() -> None:
    stencil = next(o for o in run(Always(BSR)).outcomes if o.family == "stencil")
    assert stencil.regret == pytest.approx(1 / 30)
    assert stencil.tied
    found = summary(Always(BSR))
    assert found.noise_aware is not None and found.all.regret is not None
    assert found.noise_aware < found.all.regret


def test_overlaps() -> None:
    def timed(low: float | None, high: float | None, format: str = "CSR") -> Time:
        return Time(Candidate.of({"A": format}), 1.0, low, high)

    assert tie(timed(1, 2), timed(1.9, 3, "CSC"))
    assert not tie(timed(1, 2), timed(2.1, 3, "CSC"))
    assert not tie(timed(2.1, 3), timed(1, 2, "CSC"))
    assert tie(timed(None, None), timed(None, None, "CSC"))  # equal seconds
    assert not overlap((1.0, None, None), (1.1, 1.0, 1.2))


def test_conversions_are_spread() -> None:
    first = next(iter(TABLE.problems))
    dense = TABLE.time(first, DENSE)
    assert total(dense, 1) == pytest.approx(11e-5)
    assert total(dense, 10) == pytest.approx(2e-5)
    assert total(dense, inf) == 1e-5
    assert amortised(TABLE, first, CSR, 1) == 0
    assert amortised(TABLE, first, DENSE, 1) == pytest.approx(4.5)
    # 10 + 100/1000 against 20: dense is best again.
    assert amortised(TABLE, first, CSR, 1000) == pytest.approx(20 / 10.1 - 1)
    unknown = replace(dense, conversion=None)
    table = replace(TABLE, times={**TABLE.times, first: (unknown, TABLE.time(first, CSR))})
    assert amortised(table, first, DENSE, 10) is None
    assert amortised(table, first, CSR, 10) == 0
    assert amortised(table, first, DENSE, inf) == 0


def test_strategies_are_told_the_calls() -> None:
    found = summary(Predicts())
    assert found.amortised[1.0][0] == 0  # CSR is there already
    assert set(found.amortised) == {1.0, 10.0, 100.0, 1000.0, inf}
    assert found.amortised[inf][0] == found.all.regret


def test_failures_are_no_zeros() -> None:
    found = summary(Refuses())
    assert (found.all.problems, found.all.failed) == (6, 2)
    assert found.failures == {"it does not like squares": 2}
    assert summary(Nothing()).failures == {
        "strategy 'nothing' can't be used: rank() gives no plan; staying dense is always legal": 8
    }
    assert summary(Nothing()).all.regret is None
    assert summary(Always(ELL)).failures == {
        "it chose A=ELL by generated, which was not measured": 8
    }
    (why,) = summary(Always(SCIPY)).failures
    assert "failed when it was measured: there is no SciPy" in why


TEXT: Any = "text"
ANSWERS: list[tuple[Callable[[Problem], Any], str]] = [
    (lambda p: 1 / 0, "strategy 'odd' fails: ZeroDivisionError: division by zero"),
    (lambda p: [Ranked(p.candidates[99])], "'odd' fails: IndexError"),
    (lambda p: 5, "rank() gives int, no sequence of Ranked"),
    (lambda p: None, "rank() gives NoneType"),
    (lambda p: (Ranked(c) for c in p.candidates), "rank() gives generator"),
    (lambda p: ["x"], "rank() gives 'x' among its plans"),
    (lambda p: [Ranked(CSR), CSR], "among its plans, no Ranked"),
    (lambda p: [Ranked(TEXT)], "no Ranked of a Candidate"),
    (lambda p: [Ranked(CSR, TEXT)], "rank() gives 'text' as the seconds"),
]


@pytest.mark.parametrize(("answer", "why"), ANSWERS)
def test_what_strategies_raise_and_answer_is_their_failure(
    answer: Callable[[Problem], Any], why: str
) -> None:
    found = summary(Odd(answer))
    assert (found.all.problems, found.all.failed) == (0, 8)
    (text,) = found.failures
    assert "'odd'" in text and why in text and found.failures[text] == 8
    assert why in report.undecided(found)[0].markdown()
    cell = transfer.transfer(Odd(answer), TABLE, "cpu", None, "all")
    assert (cell.problems, cell.failed) == (0, 8)


NO_CHOICES: list[Callable[[Problem], Any]] = [
    lambda p: [],
    lambda p: 1 / 0,
    lambda p: [Ranked(ELL)],
]


@pytest.mark.parametrize("answer", NO_CHOICES)
def test_failing_where_calls_are_told_is_counted(answer: Callable[[Problem], Any]) -> None:
    def steady(problem: Problem) -> Any:
        return [Ranked(CSR)] if problem.calls != 10 else answer(problem)

    made = run(Odd(steady))
    found = metrics.summary(made, TABLE)
    assert (found.all.problems, found.all.failed) == (8, 0)
    assert found.amortised[10.0] == (None, None, 0, 8)
    assert found.amortised[100.0][2:] == (8, 0)
    (why,) = found.failures
    assert why.startswith("told of 10 calls: ") and found.failures[why] == 8
    shown = {grid.title: grid.rows for grid in report.details(found)}
    rows = {
        row[0]: row[1:]
        for row in shown["conversions spread over calls, which the strategy is told"]
    }
    assert rows["10"] == ("0", "8", "-", "-") and rows["100"][:2] == ("8", "0")
    assert shown["not decided by odd"] == ((why, "8"),)
    assert found.to_json()["amortised"]["10"]["failed"] == 8


def test_failing_where_no_calls_are_told_loses_no_other_row() -> None:
    found = summary(Odd(lambda p: [Ranked(CSR)] if p.calls else 1 / 0))
    assert found.amortised[10.0][2:] == (8, 0)
    assert found.amortised[inf] == (None, None, 0, 8)


def test_many_reasons_are_counted() -> None:
    many = replace(summary(Nothing()), failures={f"reason {n}|": 1 for n in range(15)})
    (grid,) = report.undecided(many)
    assert grid.rows[-1] == ("... and 3 more reasons", "3")
    assert "reason 3\\|" in grid.markdown()


def test_plans_without_times() -> None:
    made = harness.run(Always(CSR), without(TABLE, CSR), ToySpace(), split="all")
    assert not made.decided
    assert made.unmeasured == {"CSR": 8, "ELL": 8}


def test_candidates_do_not_tell_the_best() -> None:
    for id in TABLE.problems:
        assert TABLE.problem(id).candidates == (BSR, CSR, DENSE)
        assert TABLE.problem(id, space=ToySpace()).candidates == (CSR, DENSE, BSR)


def test_splits() -> None:
    held = run(Always(CSR), "held-out").outcomes
    fit = run(Always(CSR), "fit").outcomes
    assert held and fit and len(held) + len(fit) == 8
    assert all(o.held_out for o in held)
    with pytest.raises(harness.NoProblems):
        run(Always(CSR), "other")


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    harness.run(
        Always(CSR), TABLE, None, split="all", progress=lambda done, of: seen.append((done, of))
    )
    assert seen == [(n, 8) for n in range(1, 9)]


@pytest.mark.parametrize(
    "strategy",
    [Predicts(), Refuses(), Always(BSR), Odd(lambda p: [] if p.calls else [Ranked(CSR)])],
    ids=lambda s: s.name,
)
def test_results_are_read_back(strategy: Strategy, tmp_path: Path) -> None:
    made = run(strategy)
    path = tmp_path / "results.csv"
    harness.write_results(made, path)
    again = harness.read_results(path)
    assert again.outcomes == made.outcomes
    assert (again.strategy, again.table, again.split) == (strategy.name, "tiny", "all")
    assert again.meta["machine"] == "a machine of the tests"
    assert again.meta["versions"] == "sparsecc=0 numpy=0"


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    made = run(Refuses())
    if find_spec("pyarrow") is None:
        with pytest.raises(records.NoParquet, match="pyarrow is not installed"):
            harness.write_results(made, path)
        assert not path.exists()
        return
    harness.write_results(made, path)
    assert harness.read_results(path).outcomes == made.outcomes


def test_bad_results(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    harness.write_results(run(Always(CSR)), path)
    text = path.read_text()
    for old, new, problem in (
        ("best_seconds", "best", "no columns best_seconds"),
        ("2e-05", "fast", "results.csv:2"),
        ("always,tiny", "other,tiny", "not the results of one strategy"),
    ):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(FileError, match=problem):
            harness.read_results(path)
    with pytest.raises(records.UnknownRecords):
        harness.read_results(tmp_path / "results.txt")


# -- comparisons -----------------------------------------------------------------------------------


def test_comparisons() -> None:
    found = compare.compare(run(Always(CSR, "one")), run(Always(BSR, "other")))
    assert (found.one, found.other) == ("one", "other")
    # 20 against 30, 10 against 40, 20 against 10; 30 against 31 overlap; each twice.
    assert (found.all.wins, found.all.ties, found.all.losses) == (4, 2, 2)
    assert found.all.speedup == pytest.approx((1.5 * 4 * 0.5 * 31 / 30) ** 0.25)
    assert found.all.low < found.all.speedup < found.all.high
    assert found.all.regret == pytest.approx((1 - 2 + 0 - 3 + 1 - 0 + 0 - 1 / 30) / 4)
    blocks = next(p for p in found.families if p.name == "block")
    assert (blocks.wins, blocks.losses) == (0, 2)
    assert {p.name for p in found.operations} == {"SpMV", "SpMM"}


def test_comparisons_of_parts() -> None:
    found = compare.compare(run(Refuses()), run(Always(CSR)))
    assert (found.all.problems, found.only_one, found.only_other) == (6, 0, 2)
    assert found.all.ties == 6 and found.all.speedup == 1


def test_what_is_not_comparable() -> None:
    one = run(Always(CSR))
    with pytest.raises(compare.NotComparable, match="the table of one is 'tiny', of the other 'x'"):
        compare.compare(one, replace(one, table="x"))
    with pytest.raises(compare.NotComparable, match="the machine of one"):
        compare.compare(one, replace(one, meta={"machine": "other"}))
    with pytest.raises(compare.NotComparable, match="no problem that both decided"):
        compare.compare(one, run(Nothing()))


# -- transfer --------------------------------------------------------------------------------------


class Believer:
    """Takes CSR where it believes to be on a GPU, dense elsewhere; names the library of that target."""

    name = "believer"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        gpu = problem.target.backend != "cpu"
        engine = "cublas" if gpu else "blas"
        assert engine in problem.libraries
        dense = Candidate.of({"A": "dense"}, engine)
        assert dense in problem.candidates
        return [Ranked(CSR if gpu else dense)]


def test_transfer() -> None:
    own, other = transfer.matrix(Believer(), [TABLE], ["cpu", "sm_90"], lambda target: None, "all")
    assert (own.believed, other.believed) == ("cpu", "sm_90")
    assert own.regret == pytest.approx((0 + 9 + 7 + 9) / 4)
    assert other.regret == pytest.approx(0.5)
    assert own.problems == other.problems == 8
    with pytest.raises(UsageError):
        transfer.matrix(Believer(), [TABLE], ["cpu"], lambda target: ToySpace(), "none")


def test_libraries_have_counterparts() -> None:
    for backend, engine in (("triton", "cublas"), ("cpu", "blas")):
        assert transfer.translated(DENSE, backend).engines == (engine,)
    assert transfer.translated(transfer.translated(SCIPY, "triton"), "cpu") == SCIPY
    assert "cusparselt" in transfer.problem_libraries(known_target("sm_90"))


def test_labels() -> None:
    assert label(DENSE) == "dense by blas"
    assert (
        label(Candidate.of({"A": "CSR", "B": "dense"}, "generated", "blas")) == "CSR dense by blas"
    )


def test_reports() -> None:
    found = summary(Predicts())
    grid = report.overview([found, summary(Nothing())])
    assert len(grid.rows) == 2
    assert all(len(row) == len(grid.heads) for row in grid.rows)
    for other in (*report.details(found), *report.details(summary(Nothing()))):
        assert all(len(row) == len(other.heads) for row in other.rows), other.title
    assert grid.markdown().count("\n") == 4
    assert [report.duration(s) for s in (2, 2e-3, 2.5e-6, 3e-9, None)] == [
        "2 s", "2 ms", "2.5 us", "3 ns", "-",
    ]  # fmt: skip
    tables = report.of_table(TABLE)
    assert ("SciPy" in tables[1].markdown()) is False
    assert ("CSR by scipy", "0", "0", "8") in tables[1].rows
    assert ("CSR", "8", "4", "0") in tables[1].rows
