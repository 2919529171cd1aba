"""Plans of the CPU, run, checked and timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsecc.diagnostics import SparseccError
from sparsecc.research import measure_cpu, measuring
from sparsecc.research.corpus import CorpusProblem, Matrix, of_matrix
from sparsecc.research.cpu_plans import Call, Plans, Ready, WrongResult, check
from sparsecc.research.measure_cpu import CpuMeasure, Settings, measured, sampled
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.problem import Problem

FEW = Settings(rounds=2, ms=0.01)
IID: dict[str, Any] = {"family": "iid", "rows": 24, "columns": 32, "density": 0.3}
CUBE: dict[str, Any] = {"family": "tensor-iid", "shape": [8, 9, 10], "entries": 60}
PROBLEMS = [
    of_matrix(Matrix(IID, "f64"), "SpMV", None, "cpu"),
    of_matrix(Matrix(IID), "SpMM", 5, "cpu"),
    of_matrix(Matrix(IID, "f64", "dense"), "linear", 5, "cpu"),
    of_matrix(Matrix(IID), "SDDMM", 4, "cpu"),
    of_matrix(Matrix(CUBE, "f64", "COO(3)"), "MTTKRP", 4, "cpu"),
]


def plans_of(entry: CorpusProblem) -> tuple[Plans, Problem]:
    problem = measuring.measurable(entry, settings=FEW)
    assert isinstance(problem.measure, CpuMeasure)
    return problem.measure.plans, problem


@pytest.mark.parametrize("entry", PROBLEMS, ids=lambda entry: entry.operation)
def test_every_plan_runs_and_is_right(entry: CorpusProblem) -> None:
    plans, problem = plans_of(entry)
    found = measured(plans, problem.candidates, FEW)
    assert [t.candidate for t in found] == list(problem.candidates)
    assert [t.failure for t in found if t.failure] == []
    for time in found:
        assert time.checked and time.runs >= 1 and time.bytes
        assert time.seconds and time.low and time.high and time.low <= time.seconds <= time.high


def test_libraries_are_among_them() -> None:
    _, problem = plans_of(PROBLEMS[1])
    engines = {c.engines[0] for c in problem.candidates}
    assert engines == {"generated", "blas", "scipy"}


def test_a_matrix_that_is_stored_so_costs_no_conversion() -> None:
    plans, _ = plans_of(PROBLEMS[1])
    assert plans.convert("A", "CSR")[1] == 0.0
    made, seconds = plans.convert("A", "BSR(4,4)")
    assert seconds > 0 and made.format.with_widths(0, 0) != plans.operands["A"].format
    assert plans.convert("A", "BSR(4,4)")[0] is made  # once


@pytest.mark.parametrize("entry", PROBLEMS, ids=lambda entry: entry.operation)
def test_wrong_results_are_not_timed(entry: CorpusProblem) -> None:
    plans, problem = plans_of(entry)
    ready = plans.ready(problem.candidates[0])
    coordinates, values = plans.reference()
    check(ready, (coordinates, values))
    spoiled = values.copy()
    spoiled.reshape(-1)[-1] += 0.5
    with pytest.raises(WrongResult):
        check(ready, (coordinates, spoiled))
    with pytest.raises(WrongResult):
        check(ready, (coordinates, values[:-1]))
    spoiled.reshape(-1)[-1] = np.nan
    with pytest.raises(WrongResult):
        check(ready, (coordinates, spoiled))


@pytest.mark.parametrize("entry", PROBLEMS, ids=lambda entry: entry.operation)
def test_arrays_elsewhere_hold_the_same(entry: CorpusProblem) -> None:
    plans, problem = plans_of(entry)
    for candidate in problem.candidates:
        ready = plans.ready(candidate)
        first, moved = ready.call(), ready.elsewhere()()
        pairs = [(first, moved)]
        if not isinstance(first, np.ndarray):
            pairs = [(first.to_numpy(), moved.to_numpy())]
            assert not np.shares_memory(first.values, moved.values)
        for one, other in pairs:
            assert np.array_equal(one, other) and not np.shares_memory(one, other)


def test_plans_move_every_few_rounds() -> None:
    made: list[str] = []

    def call() -> None: ...

    def elsewhere() -> Call:
        made.append("again")
        return call

    plan = Candidate.of({"A": "CSR"})
    settings = measure_cpu.Settings(rounds=7, stay=3, ms=0.001)
    found = measure_cpu.sampled({plan: call}, {plan: 1e-6}, settings, {plan: elsewhere})
    assert len(found[plan]) == 7 and len(made) == 2


def test_an_entry_elsewhere_is_wrong() -> None:
    plans, _ = plans_of(PROBLEMS[3])
    dense = np.zeros((24, 32), np.float32)
    coordinates, values = plans.reference()
    dense[coordinates] = values
    from sparsecc import asarray

    def ready(array: Any, form: str) -> Ready:
        tensor = asarray(array).to(form)
        return Ready(lambda: tensor, lambda: lambda: tensor, 0, 0.0, 0.0)

    # Zeros that are stored where the mask has nothing are no entries of the result.
    for form in ("CSR", "dense"):
        check(ready(dense, form), (coordinates, values))
    missing = dense.copy()
    missing[coordinates[0][0], coordinates[1][0]] = 0
    empty = next(zip(*np.nonzero(dense == 0), strict=True))
    beyond = dense.copy()
    beyond[empty] = 1
    for wrong in (missing, beyond):
        with pytest.raises(WrongResult):
            check(ready(wrong, "CSR"), (coordinates, values))


def test_a_plan_that_fails_says_why() -> None:
    plans, problem = plans_of(PROBLEMS[0])
    refused = Candidate.of({"A": "CSR"}, "blas")
    good = problem.candidates[0]
    found = measured(plans, [refused, good], FEW)
    assert found[0].seconds is None and "blas" in found[0].failure.lower()
    assert found[1].seconds is not None
    assert problem.measure is not None
    with pytest.raises(SparseccError, match="(?i)blas"):
        problem.measure(refused)


def test_what_was_measured_once_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    _, problem = plans_of(PROBLEMS[0])
    assert problem.measure is not None
    first = {c: problem.measure(c) for c in problem.candidates}
    monkeypatch.setattr(measure_cpu, "measured", lambda *_: pytest.fail("again"))  # pyright: ignore
    assert {c: problem.measure(c) for c in problem.candidates} == first
    assert all(seconds > 0 for seconds in first.values())


def test_a_table_can_be_measured_on_the_spot(capsys: pytest.CaptureFixture[str]) -> None:
    table = measuring.measured_table([PROBLEMS[0]], "cpu", seconds=60.0)
    assert table.target == "cpu" and list(table.problems) == [PROBLEMS[0].id]
    assert len(table.runs(PROBLEMS[0].id)) == len(table.times[PROBLEMS[0].id])
    assert "1 of 1 problems" in capsys.readouterr().err


# -- samples -------------------------------------------------------------------------------------


class Clock:
    """Calls that take so many seconds, and how often each was made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **seconds: float) -> None:
        self.now = 0.0
        self.seconds = {Candidate.of({"A": name}): s for name, s in seconds.items()}
        self.made = dict.fromkeys(self.seconds, 0)
        monkeypatch.setattr(measure_cpu, "thread_time_ns", lambda: round(self.now * 1e9))

    def calls(self) -> dict[Candidate, Any]:
        def call(candidate: Candidate) -> Any:
            def run() -> None:
                self.made[candidate] += 1
                self.now += self.seconds[candidate]

            return run

        return {candidate: call(candidate) for candidate in self.seconds}

    def sampled(self, settings: Settings) -> list[list[float]]:
        return list(sampled(self.calls(), self.seconds, settings).values())


def test_short_calls_are_repeated_and_long_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, short=1e-5, long=3e-3)
    settings = Settings(rounds=5, ms=2.0, far=1e9)
    short, long = clock.sampled(settings)
    assert short == pytest.approx([1e-5] * 5) and long == pytest.approx([3e-3] * 5)
    assert list(clock.made.values()) == [2 + 5 * 200, 5]


def test_hopeless_plans_are_sampled_less(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, best=1e-3, slow=20e-3, slowest=0.5)
    best, slow, slowest = clock.sampled(Settings(rounds=9, ms=1.0, most_ms=200.0, least=3))
    assert [len(best), len(slow), len(slowest)] == [9, 3, 1]
    assert (
        clock.made[Candidate.of({"A": "slowest"})] == 0
    )  # the call that was checked is its sample
    assert slowest == [0.5]


def test_long_plans_near_the_best_end_early(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, one=0.15, other=0.16)
    found = clock.sampled(Settings(rounds=9, most_ms=200.0, least=3))
    assert [len(times) for times in found] == [3, 3]
