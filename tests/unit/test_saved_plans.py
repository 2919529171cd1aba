"""Plans that are saved and replayed, and operands that are stored otherwise than a plan wants them."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc import driver
from sparsecc.diagnostics import LimitError, SparseccError
from sparsecc.formats import parse_format
from sparsecc.runtime.compiled_kernel import OperandConverted
from sparsecc.selection.candidate import Candidate
from sparsecc.storage import limits
from tests.unit.selections import SPMV, A, Picks, SmallSpace, X, same_code, spec


@pytest.fixture(autouse=True)
def no_kernels() -> None:
    driver.forget()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of the tests' own space."""
    monkeypatch.setattr("sparsecc.selection.spaces.SPACES", {"cpu": SmallSpace()})


# -- plans -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("chosen", SmallSpace.matrices)
def test_a_saved_plan_makes_the_same_kernel(chosen: str, tmp_path: Path) -> None:
    kernel = sc.compile(SPMV, A=spec(), x=X, strategy=Picks({"A": chosen}))
    file = tmp_path / "plan.json"
    file.write_text(kernel.plan_json())
    for plan in (kernel.plan_json(), json.loads(kernel.plan_json()), str(file), file):
        for a in (sc.asarray(A).to("COO"), A, sc.Spec((None, None), "f64", "*")):
            again = sc.compile(SPMV, A=a, x=X, plan=plan)
            assert same_code(again, kernel)
            assert again.saved_plan == kernel.saved_plan


def test_any_kernel_has_a_plan() -> None:
    wide = sc.asarray(A).to(parse_format("CSC").with_widths(64, 64))
    for out in (None, "COO"):
        kernel = sc.compile("y[i,j] = A[i,j] * B[i,j]", A=wide, B=A, out=out)
        again = sc.compile("y[i,j] = A[i,j] * B[i,j]", A=A, B=A, plan=kernel.plan_json())
        assert same_code(again, kernel)


def test_a_plan_may_be_a_candidate() -> None:
    kernel = sc.compile(SPMV, A=A, x=X, plan=Candidate.of({"A": "CSR"}, "scipy"))
    assert (kernel.formats["A"], kernel.decision) == ("CSR", None)
    assert "SciPy" in kernel.explain()


def test_a_plan_names_results_and_temporaries() -> None:
    text = "t[i,k] = A[i,j] * B[j,k]; y[i,k] = t[i,k] * 2"
    b = sc.asarray(A.T.copy()).to("CSR")
    plan = {"formats": {"A": "CSR", "B": "CSR", "t": "DCSR", "y": "CSC"}}
    kernel = sc.compile(text, A=sc.asarray(A).to("CSR"), B=b, plan=plan)
    assert kernel.formats["y"] == "CSC"
    assert "#DCSR_i32" in kernel.ir("selected")
    assert "the plan chose it" in kernel.explain()
    found = kernel(A=sc.asarray(A).to("CSR"), B=b)
    assert np.allclose(found.to_numpy(), 2 * A @ A.T)


def test_a_fixed_operand_is_converted_in_the_program() -> None:
    plan = Candidate.of({"A": "CSC"})
    kernel = sc.compile(SPMV, A=sc.Spec((None, None), "f64", "COO"), x=X, plan=plan)
    assert kernel.formats["A"] == "COO"
    assert "A converted to CSC: the plan asks for it" in kernel.explain().replace("t2", "A")
    assert np.allclose(kernel(A=sc.asarray(A).to("COO"), x=X), A @ X)


MISFITS: list[tuple[Any, str]] = [
    ({"formats": {"B": "CSR", "A": "CSR"}}, "there is no tensor 'B'"),
    ({"formats": {}}, "the plan leaves operand 'A' open"),
    ({"formats": {"A": "CSR"}, "engines": ["generated", "blas"]}, "2 engines"),
    ({"formats": {"A": "CSR"}, "engines": ["mkl"]}, "there is no engine 'mkl'"),
    ({"formats": {"A": "CSR"}, "schedules": {"k0": "rows"}}, "kernels of target cpu have none"),
    ({"formats": {"A": "CSR"}, "target": "sm_90"}, "the plan is of target sm_90, not of cpu"),
    ({"formats": {"A": "CSRR"}}, "there is no format 'CSRR'"),
    ({"formats": {"A": "COO(3)"}}, "of rank 3, not 2"),
    ({"formats": {"A": 3}}, "its formats are"),
    ({"formats": {"A": "CSR"}, "engines": "blas"}, "its engines are 'blas', no list of names"),
    ({"formats": {"A": "CSR"}, "out": 3}, "its out is 3, no text"),
    ({"format": {"A": "CSR"}}, "it has no entry 'format'"),
    ({}, "it has to have the entry 'formats'"),
    ("{", "no JSON"),
    ("null", "its JSON, null, is no object"),
    ("5", "its JSON, 5, is no object"),
    (" []", "its JSON, [], is no object"),
    ('["CSR"]', 'its JSON, ["CSR"], is no object'),
    ('"CSR"', "is no object"),
    ('{"formats": {"A": "CSR"}, "formats": {"A": "CSC"}}', "it says 'formats' twice"),
    ('{"formats": {"A": "CSR", "A": "CSC"}}', "it says 'A' twice"),
    (
        {"formats": {"A": "CSR"}, "program": "y[i] = A[j,i] * x[j]"},
        "is of the program 'y[i] = A[j,i] * x[j]', not of",
    ),
    ("nowhere.json", "no such file"),
    (3, "it is int"),
]


@pytest.mark.parametrize(("plan", "problem"), MISFITS, ids=[m[1] for m in MISFITS])
def test_plans_that_do_not_fit(plan: Any, problem: str) -> None:
    with pytest.raises(SparseccError, match=re.escape(problem)):
        sc.compile(SPMV, A=sc.Spec((None, None), "f64", "*"), x=X, plan=plan)


def test_spaces_of_a_program_do_not_count() -> None:
    spaced = {"formats": {"A": "CSR"}, "program": f"  {SPMV} \n".replace(" = ", "  =\n")}
    given = sc.Spec((None, None), "f64", "*")
    assert sc.compile(SPMV, A=given, x=X, plan=spaced).formats["A"] == "CSR"
    told = json.loads(sc.compile(SPMV, A=A, x=X, formats={"A": "CSR"}).plan_json())
    with pytest.raises(SparseccError, match="is of the program"):
        sc.compile("y[i] = A[i,j] * x[j] * 2", A=given, x=X, plan=told)
    del told["program"]
    assert sc.compile("y[i] = A[i,j] * x[j] * 2", A=given, x=X, plan=told).formats["A"] == "CSR"


def test_a_file_may_be_named_like_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "5").write_text('{"formats": {"A": "CSC"}}')
    monkeypatch.chdir(tmp_path)
    assert sc.compile(SPMV, A=A, x=X, plan="5").formats["A"] == "CSC"
    (tmp_path / "5").write_text("null")
    with pytest.raises(SparseccError, match="null, is no object"):
        sc.compile(SPMV, A=A, x=X, plan="5")


# -- conversions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("stored", "chosen"), [("dense", "CSR"), ("CSR", "dense"), ("COO", "ELL")])
def test_operands_that_are_stored_otherwise_are_converted_and_it_is_said(
    stored: str, chosen: str
) -> None:
    kernel = sc.compile(SPMV, A=A, x=X, plan=Candidate.of({"A": chosen}))
    given = sc.asarray(A).to(stored)
    note = f"operand A: {stored} converted to {chosen}"
    with pytest.warns(OperandConverted, match=note):
        assert np.allclose(kernel(A=given, x=X), A @ X)
    assert kernel.notes == [note]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.allclose(kernel(A=given, x=X), A @ X)  # said once
        prepared = sc.compile(SPMV, A=A, x=X, plan=Candidate.of({"A": chosen}))
        assert np.allclose(prepared(**kernel.prepare(A=given, x=X)), A @ X)


@pytest.mark.parametrize("chosen", ["dense", "CSR", "BSR(16,16)"])
def test_torch_tensors_of_other_layouts_are_prepared(chosen: str) -> None:
    """A call on a GPU refuses them; they are converted once."""
    torch = pytest.importorskip("torch")
    dense = np.kron(A[:2, :4], np.ones((16, 16))).astype(np.float32)
    x = torch.ones(64, 16)
    kernel = sc.compile(
        "y[i,k] = A[i,j] * x[j,k]", A=dense, x=x, target="sm_80", interpret=True, plan=Candidate.of({"A": chosen})
    )  # fmt: skip
    strided = torch.from_numpy(dense)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in (strided, strided.to_sparse_csr(), sc.asarray(dense).to("COO"), dense):
            found = kernel(**kernel.prepare(A=given, x=x))
            assert isinstance(found, torch.Tensor)
            assert np.allclose(found.numpy(), dense.sum(1, keepdims=True), rtol=1e-5)
    fits = kernel.prepare(A=strided, x=x)
    assert (fits["A"] is strided) == (chosen == "dense")
    assert fits["x"] is x


def test_what_would_be_too_large_is_not_made_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = sc.compile(SPMV, A=spec(), x=X, strategy="always-dense")
    monkeypatch.setattr(limits, "MAX_DENSE_BYTES", 100)
    with pytest.raises(LimitError, match="max_dense_bytes=100"), pytest.warns(OperandConverted):
        kernel(A=sc.asarray(A).to("CSR"), x=X)
