"""Formats that are chosen when a program is compiled: the options, the decision, plans that are saved and replayed."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc import driver
from sparsecc.diagnostics import FormatError, PassError, SparseccError, UsageError
from sparsecc.formats import parse_format
from sparsecc.runtime.call_checks import BadOption
from sparsecc.runtime.compiled_kernel import OperandConverted
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.registry import BadStrategy, UnknownStrategy
from sparsecc.selection.strategies.measured import NothingToMeasure
from sparsecc.specs import StatisticsMisfit
from tests.unit.selections import (
    SPMV,
    A,
    Broken,
    First,
    Last,
    Picks,
    SmallSpace,
    X,
    same_code,
    spec,
    statistics_of,
)  # fmt: skip

ONCE = "tests.unit.test_selection_api:Counts"


@pytest.fixture(autouse=True)
def no_kernels() -> None:
    driver.forget()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of the tests' own space."""
    monkeypatch.setattr("sparsecc.selection.spaces.SPACES", {"cpu": SmallSpace()})


class Counts(Last):
    """Counts how often it is asked."""

    asked = 0

    def rank(self, problem: Any) -> Any:
        Counts.asked += 1
        return super().rank(problem)


# -- choosing --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("chosen", SmallSpace.matrices)
def test_the_plan_that_is_ranked_first_is_compiled(chosen: str) -> None:
    kernel = sc.compile(SPMV, A=spec(), x=X, strategy=Picks({"A": chosen}))
    assert kernel.formats["A"] == chosen
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OperandConverted)
        assert np.allclose(kernel(A=A, x=X), A @ X)
    decision = kernel.decision
    assert decision is not None
    assert decision.strategy == "picks"
    assert decision.candidate == Candidate.of({"A": chosen})
    assert len(decision.ranked) == len(SmallSpace.matrices)
    assert [r.what for r in decision.refusals] == ["A=2:4"]
    assert decision.milliseconds > 0
    # Nothing that runs is kept.
    assert (decision.problem.module, decision.problem.measure) == (None, None)
    assert decision.problem.extents == {"i": 6, "j": 8}


@pytest.mark.filterwarnings("ignore::sparsecc.runtime.compiled_kernel.OperandConverted")
@pytest.mark.parametrize("name", ["fixed", "always-dense", "bytes", "roofline"])
def test_strategies_by_name(name: str) -> None:
    kernel = sc.compile(SPMV, A=spec(), x=X, strategy=name)
    assert kernel.decision is not None
    assert kernel.decision.strategy == name
    wanted = {"fixed": "CSR", "always-dense": "dense"}
    assert kernel.formats["A"] == wanted.get(name, kernel.formats["A"])
    assert np.allclose(kernel(A=A, x=X), A @ X)


def test_what_is_known_of_an_open_operand_is_used_without_being_asked() -> None:
    kernel = sc.compile(SPMV, A=spec(), x=X)
    assert kernel.decision is not None
    assert kernel.decision.strategy == "roofline"


def test_nothing_is_chosen_where_nothing_is_known() -> None:
    kernel = sc.compile(SPMV, A=sc.Spec((None, None), "f64", "*"), x=X)
    assert kernel.decision is None
    assert kernel.formats["A"] == "CSR"
    assert sc.compile(SPMV, A=sc.asarray(A).to("COO"), x=X).decision is None
    assert sc.compile(SPMV, A=spec(), x=X, strategy="inferred").decision is None


def test_formats_opens_operands() -> None:
    a = sc.asarray(A).to("COO")
    for formats in ("*", {"A": "*"}):
        kernel = sc.compile(SPMV, A=a, x=X, formats=formats, strategy=First())
        assert kernel.decision is not None
        tensors = kernel.decision.problem.tensors
        assert tensors["A"].open and not tensors["x"].open
        assert tensors["A"].stored == "COO"
        known = tensors["A"].statistics
        assert known is not None
        assert known.nnz == np.count_nonzero(A)
        assert tensors["x"].shape == (8,)
        assert np.allclose(kernel(A=a, x=X), A @ X)


def test_a_dense_array_is_opened_by_its_name_only() -> None:
    assert sc.compile(SPMV, A=A, x=X, formats="*").decision is None
    kernel = sc.compile(SPMV, A=A, x=X, formats={"A": "*"})
    assert kernel.decision is not None
    assert kernel.decision.problem.tensors["A"].stored == "dense"


def test_formats_may_be_spelled() -> None:
    kernel = sc.compile(SPMV, A=sc.asarray(A).to("COO"), x=X, formats={"A": "CSC"})
    assert (kernel.decision, kernel.formats["A"]) == (None, "CSC")
    with pytest.warns(OperandConverted, match="operand A: COO converted to CSC"):
        assert np.allclose(kernel(A=sc.asarray(A).to("COO"), x=X), A @ X)


def test_evaluate_and_einsum() -> None:
    a = sc.asarray(A).to("CSR")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OperandConverted)
        for strategy in ("roofline", Last()):
            found = sc.evaluate(SPMV, A=a, x=X, formats="*", strategy=strategy)
            assert np.allclose(found, A @ X)
            found = sc.einsum("ij,j->i", a, X, formats={"op0": "*"}, strategy=strategy)
            assert np.allclose(found, A @ X)


@pytest.mark.usefixtures("small")
def test_expressions_that_share_a_tensor_choose_together() -> None:
    text = "t[i] = A[i,j] * x[j]; y[j] = A[i,j] * t[i]"
    kernel = sc.compile(text, A=spec(), x=X, strategy=Picks({"A": "CSC"}))
    assert kernel.decision is not None
    assert len(kernel.decision.problem.expressions) == 2
    assert kernel.formats["A"] == "CSC"
    assert np.allclose(kernel(A=sc.asarray(A).to("CSC"), x=X), A.T @ (A @ X))


def test_the_statistics_of_a_tensor_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    a = sc.asarray(A).to("CSR")
    counted: list[int] = []
    count = type(a).statistics
    monkeypatch.setattr(type(a), "statistics", lambda self: counted.append(0) or count(self))  # type: ignore[no-any-return]
    for _ in range(2):
        assert np.allclose(sc.evaluate(SPMV, A=a, x=X, formats="*", strategy="fixed"), A @ X)
    assert len(counted) == 1
    sc.compile(SPMV, A=sc.asarray(A).to("CSR"), x=X, formats="*", strategy="fixed")
    assert len(counted) == 2


@pytest.mark.filterwarnings("ignore::sparsecc.runtime.compiled_kernel.OperandConverted")
def test_calls_and_sizes_reach_the_strategy() -> None:
    x = sc.Spec((None, None), "f64")
    text = "C[i,k] = A[i,j] * x[j,k]"
    kernel = sc.compile(text, A=spec(stored="COO"), x=x, calls=7, sizes={"k": 32})
    assert kernel.decision is not None
    problem = kernel.decision.problem
    assert (problem.calls, problem.sizes, problem.extents["k"]) == (7, {"k": 32}, 32)
    assert problem.tensors["A"].stored == "COO"
    # The kernel is for any number of columns.
    assert np.allclose(kernel(A=A, x=np.ones((8, 3))), A @ np.ones((8, 3)))


def test_what_is_known_is_no_part_of_the_kernel() -> None:
    """Two sets of data that choose alike share machine code."""
    one = sc.compile(SPMV, A=spec(), x=X, strategy="fixed")
    other = sc.compile(SPMV, A=spec(A[:3]), x=X, strategy="fixed")
    asked = sc.compile(SPMV, A=sc.Spec((None, None), "f64", "CSR"), x=X)
    assert same_code(one, other)
    assert same_code(one, asked)
    assert one.decision != other.decision
    assert asked.decision is None


def test_a_kernel_from_the_cache_has_its_decision() -> None:
    Counts.asked = 0
    one = sc.compile(SPMV, A=spec(), x=X, strategy=ONCE)
    other = sc.compile(SPMV, A=spec(), x=X, strategy=ONCE)
    assert Counts.asked == 1
    assert one is other
    assert one.decision is not None


def test_a_kernel_from_the_disk_has_its_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARSECC_CACHE", str(tmp_path))
    sc.compile(SPMV, A=spec(), x=X, strategy="fixed")
    driver.forget()
    kernel = sc.compile(SPMV, A=spec(), x=X, strategy="fixed")
    assert "cache" in kernel.times
    assert kernel.decision is not None


def test_a_library_is_a_plan() -> None:
    kernel = sc.compile(SPMV, A=spec(), x=X, strategy="always-dense")
    assert kernel.decision is not None
    assert kernel.decision.candidate.engines == ("blas",)
    assert "BLAS" in kernel.explain()
    assert json.loads(kernel.plan_json())["engines"] == ["blas"]


def test_widths_hold_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = sc.compile(SPMV, A=spec(), x=X, strategy="fixed")
    monkeypatch.setattr("sparsecc.selection.widths.FITTING", 4)
    wide = sc.compile(SPMV, A=spec(A[:5]), x=X, strategy="fixed")
    widths = [parse_format(k.plan.operands[0].format).pos_width for k in (narrow, wide)]
    assert widths == [32, 64]


PROGRAM = """
#ANY = #sparse_tensor.encoding<*>
func.func @main(%A: tensor<?x?xf64, #ANY> FACTS, %x: tensor<?xf64>, %z: tensor<?xf64>) -> tensor<?xf64> {
  %y = linalg.matvec ins(%A, %x : tensor<?x?xf64, #ANY>, tensor<?xf64>) outs(%z : tensor<?xf64>) -> tensor<?xf64>
  return %y : tensor<?xf64>
}
"""
KNOWN = """{sparsecc.stored = "COO", sparsecc.statistics = {shape = array<i64: 6, 8>, dtype = "f64", nnz = 9 : i64,
  exact = true, prefixes = array<i64: 6, 9>, slices = [
    {extent = 6, used = 6, largest = 3, mean = 1.5, deviation = 0.5, bins = array<i64: 0, 3, 3>},
    {extent = 8, used = 8, largest = 3, mean = 1.1, deviation = 0.5, bins = array<i64: 0, 7, 1>}
  ]}}"""


@pytest.mark.filterwarnings("ignore::sparsecc.runtime.compiled_kernel.OperandConverted")
def test_programs_of_mlir_text() -> None:
    known = PROGRAM.replace("FACTS", KNOWN)
    for kernel, name in (
        (sc.compile_mlir(known), "roofline"),
        (sc.compile_mlir(known, strategy="fixed"), "fixed"),
        (sc.compile_mlir(PROGRAM.replace("FACTS", ""), strategy="fixed"), "fixed"),
    ):
        assert kernel.decision is not None
        assert kernel.decision.strategy == name
        assert np.allclose(kernel(A=A, x=X, z=np.ones(6)), A @ X + 1)
        driver.forget()
        again = sc.compile_mlir(known, plan=kernel.plan_json())
        assert again.formats == kernel.formats
        assert again.saved_plan is not None and kernel.saved_plan is not None
        assert again.saved_plan.candidate == kernel.saved_plan.candidate
    assert sc.compile_mlir(PROGRAM.replace("FACTS", "")).decision is None


# -- measuring -------------------------------------------------------------------------------------


def test_strategies_that_measure() -> None:
    for name in ("autotune", "oracle"):
        kernel = sc.compile(SPMV, A=sc.asarray(A).to("COO"), x=X, formats="*", strategy=name)
        assert kernel.decision is not None
        best = kernel.decision.ranked[0]
        assert best.seconds is not None and best.seconds > 0
        assert "measured" in best.terms


def test_measuring_wants_operands() -> None:
    with pytest.raises(NothingToMeasure):
        sc.compile(SPMV, A=spec(), x=X, strategy="oracle")


# -- mistakes --------------------------------------------------------------------------------------


class Plain:
    """No strategy."""


class Unranked:
    """One whose plans are none."""

    name = "unranked"

    def __init__(self, *plans: Any) -> None:
        self.plans = plans

    def rank(self, problem: Any) -> Any:
        return self.plans or None


OPTIONS: list[tuple[dict[str, Any], type[SparseccError], str]] = [
    ({"formats": 3}, BadOption, "formats= is 3"),
    ({"formats": "CSR"}, BadOption, "formats= is 'CSR'"),
    ({"formats": {"B": "*"}}, UsageError, "formats= names 'B', which is no operand"),
    ({"formats": {"x": "CSR"}}, FormatError, "'CSR' is for tensors of rank 2, not 1"),
    ({"formats": {"A": "CSC"}}, UsageError, "operand 'A' is a Spec of format .*CSR|compressed"),
    ({"calls": 0}, BadOption, "calls= is 0"),
    ({"calls": float("nan")}, BadOption, "calls= is nan"),
    ({"calls": True}, BadOption, "calls= is True"),
    ({"sizes": {"j": -1}}, BadOption, "sizes= is {'j': -1}"),
    ({"sizes": "m:16"}, BadOption, "sizes= is 'm:16'"),
    ({"strategy": "fastest"}, UnknownStrategy, "there is no strategy 'fastest'"),
    ({"strategy": "nowhere:Mine"}, BadStrategy, "No module named 'nowhere'"),
    ({"strategy": Plain()}, BadStrategy, "'Plain' can't be used: it has no method rank"),
    ({"strategy": Last}, BadStrategy, "it has no method rank"),
    ({"strategy": Unranked()}, BadStrategy, "rank.. gives NoneType, no sequence of Ranked"),
    ({"strategy": Unranked("CSR")}, BadStrategy, "gives 'CSR' among its plans, no Ranked of a"),
    ({"strategy": Broken()}, PassError, "strategy 'broken' fails: ZeroDivisionError"),
    ({"strategy": Picks({"A": "BSR(3,3)"})}, SparseccError, "A=BSR.3,3. by generated, which is no"),
    (
        {"plan": {"formats": {}}, "strategy": "fixed"},
        UsageError,
        "strategy= does not go with plan=",
    ),
]


@pytest.mark.parametrize(("options", "kind", "problem"), OPTIONS, ids=[o[2] for o in OPTIONS])
def test_options_that_are_wrong(options: dict[str, Any], kind: Any, problem: str) -> None:
    a = sc.Spec((None, None), "f64", "CSR") if "CSC" in str(options) else spec()
    with pytest.raises(kind, match=problem):
        sc.compile(SPMV, A=a, x=X, **options)


def test_statistics_of_another_tensor() -> None:
    with pytest.raises(StatisticsMisfit, match=r"f64 \(6, 8\), but the operand is f64 \(3, None\)"):
        sc.compile(SPMV, A=sc.Spec((3, None), "f64", "*", statistics_of(A)), x=X)
    with pytest.raises(StatisticsMisfit, match="but the operand is f32"):
        sc.compile(SPMV, A=sc.Spec((None, None), "f32", "*", statistics_of(A)), x=X)
    with pytest.raises(BadOption, match="statistics= is 3"):
        sc.compile(SPMV, A=sc.Spec((None, None), "f64", "*", 3), x=X)  # type: ignore[arg-type]


def test_measuring_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs of plans, with their operands on the machine, go to the timer of the tuner."""
    from sparsecc.runtime import autotune, machines, tile_kernel
    from sparsecc.runtime.tile_execute import TileProgram

    class Timer:
        """Gives CSR the least time."""

        def __init__(self, machine: object) -> None:
            assert isinstance(machine, machines.GpuMachine)

        def __call__(self, program: TileProgram, tensors: Any) -> float:
            program(tensors)
            return 1.0 if "compressed" in program.plan.operands[0].format else 2.0

    machine = machines.interpreter()
    monkeypatch.setattr(tile_kernel, "interpreting", lambda: True)
    monkeypatch.setattr(machines, "GpuMachine", type(machine))
    monkeypatch.setattr(autotune, "ColdTimer", Timer)
    dense = np.kron(A, np.ones((16, 16))).astype(np.float32)
    x = np.ones((128, 16), np.float32)
    kernel = sc.compile(
        "y[i,k] = A[i,j] * x[j,k]", A=dense, x=x, formats={"A": "*"}, strategy="oracle", target="sm_80"
    )  # fmt: skip
    assert kernel.decision is not None
    assert kernel.formats["A"] in ("CSR", "BSR(16,16)", "BSR(32,32)")
    assert kernel.decision.ranked[0].terms["measured"] == 1e-6
