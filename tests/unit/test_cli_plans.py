"""The command line where formats are chosen: open operands, strategies, plans that are saved and replayed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sparsecc.storage import files
from sparsecc.storage.ingest import asarray
from tests.unit.test_cli_programs import MATRIX, SPMV, VECTOR, Capture, error, output

RESULT = "y = [ 7.,  9., 14.]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with A.mtx and x.npy."""
    monkeypatch.chdir(tmp_path)
    files.write(asarray(MATRIX).to("COO"), "A.mtx")
    np.save("x.npy", VECTOR)
    return tmp_path


@pytest.mark.parametrize(
    "how", [("A=A.mtx:*", "x=x.npy"), ("A=A.mtx", "x=x.npy", "--format", "A=*")], ids=["file", "option"]
)  # fmt: skip
@pytest.mark.parametrize("strategy", [(), ("--strategy", "fixed"), ("--strategy", "always-dense")])
def test_open_operands(
    folder: Path, capsys: Capture, how: tuple[str, ...], strategy: tuple[str, ...]
) -> None:
    assert output(capsys, "run", SPMV, *how, *strategy) == RESULT


def test_the_strategy_says_the_format(folder: Path, capsys: Capture) -> None:
    for strategy, wanted in (("always-dense", "dense"), ("fixed", "CSR")):
        text = output(capsys, "run", SPMV, "A=A.mtx:*", "x=x.npy", "--strategy", strategy, "--json")
        assert json.loads(text)["formats"]["A"] == wanted


def test_the_program_need_not_run_to_be_compiled(folder: Path, capsys: Capture) -> None:
    text = output(
        capsys, "compile", "C[i,k] = A[i,j] * X[j,k]", "A=A.mtx:*", "--strategy", "fixed", "--size", "k=16",
        "--calls", "100", "--emit", "selected",
    )  # fmt: skip
    assert "tensor<?x?xf64, #CSR_i32>" in text
    # Nothing is known of an operand that is not there: the rules say how it is stored.
    text = output(capsys, "compile", SPMV, "--format", "A=*", "--emit", "selected")
    assert "tensor<?x?xf64, #CSR_i32>" in text


def test_strategies_of_other_packages(folder: Path, capsys: Capture) -> None:
    strategy = ("--strategy", "tests.unit.selections:Last")
    assert output(capsys, "run", SPMV, "A=A.mtx:*", "x=x.npy", *strategy) == RESULT


def test_a_plan_is_saved_and_replayed(folder: Path, capsys: Capture) -> None:
    chosen = ("A=A.mtx:*", "x=x.npy", "--strategy", "always-dense")
    assert output(capsys, "run", SPMV, *chosen, "--save-plan", "plan.json") == RESULT
    plan = json.loads(Path("plan.json").read_text())
    assert plan["formats"] == {"A": "dense", "x": "dense"}
    assert plan["engines"] == ["blas"]
    replayed = ("A=A.mtx", "x=x.npy", "--plan", "plan.json")
    assert output(capsys, "run", SPMV, *replayed) == RESULT
    assert output(capsys, "run", SPMV, *replayed, "--save-plan", "again.json") == RESULT
    assert Path("again.json").read_text() == Path("plan.json").read_text()
    assert "BLAS" in output(capsys, "explain", SPMV, *replayed)


PROGRAM = """
func.func @main(%A: tensor<?x?xf64, #sparse_tensor.encoding<*>>, %x: tensor<?xf64>, %z: tensor<?xf64>)
    -> tensor<?xf64> {
  %y = linalg.matvec ins(%A, %x : tensor<?x?xf64, #sparse_tensor.encoding<*>>, tensor<?xf64>)
    outs(%z : tensor<?xf64>) -> tensor<?xf64>
  return %y : tensor<?xf64>
}
"""


def test_mlir_files(folder: Path, capsys: Capture) -> None:
    Path("f.mlir").write_text(PROGRAM)
    for strategy, wanted in (
        ("always-dense", "%A: tensor<?x?xf64>"),
        ("fixed", "%A: tensor<?x?xf64, #CSR"),
    ):
        text = output(capsys, "compile", "f.mlir", "--strategy", strategy, "--emit", "selected")
        assert wanted in text
    text = error(capsys, "run", "f.mlir", "A=A.mtx:*", status=2)
    assert "A=FILE:* does not go with an .mlir file" in text


WRONG = [
    (("--strategy", "fastest"), 2, "there is no strategy 'fastest'"),
    (("--strategy", "nowhere:Mine"), 2, "No module named 'nowhere'"),
    (("--strategy", "oracle", "--calls", "0"), 2, "invalid number of calls value: '0'"),
    (("--calls", "many"), 2, "invalid number of calls value: 'many'"),
    (("--size", "m"), 2, "'m' is not a size INDEX=NUMBER"),
    (("--size", "j=-3"), 2, "j=-3 is not a size"),
    (("--size", "m=16"), 2, "sizes names the index 'm', which no expression has"),
    (("--size", "j=16"), 2, "sizes says that index 'j' is 16, but it is 3 in A[i,j]"),
    (("--plan", "nowhere.json"), 1, "nowhere.json: error: no such file"),
    (("--plan", "bad.json"), 2, "bad.json: error: this is no plan: no JSON"),
    (("--plan", "other.json"), 2, "there is no tensor 'B'"),
    (("--plan", "open.json", "--strategy", "fixed"), 2, "strategy= does not go with plan="),
    (("--save-plan", "nowhere/plan.json"), 1, "nowhere"),
]


@pytest.mark.parametrize(("options", "status", "problem"), WRONG, ids=[w[2] for w in WRONG])
def test_wrong_usage(
    folder: Path, capsys: Capture, options: tuple[str, ...], status: int, problem: str
) -> None:
    Path("bad.json").write_text("{")
    Path("open.json").write_text('{"formats": {"A": "CSR"}}')
    Path("other.json").write_text('{"formats": {"A": "CSR", "B": "CSR"}}')
    text = error(capsys, "run", SPMV, "A=A.mtx:*", "x=x.npy", *options, status=status)
    assert problem in text


def test_what_can_not_be_opened(folder: Path, capsys: Capture) -> None:
    text = error(capsys, "run", SPMV, "A=A.mtx:**", "x=x.npy", status=2)
    assert "A.mtx" in text or "'**'" in text
    text = error(capsys, "inspect", "A.mtx:*", status=1)
    assert "'*'" in text
