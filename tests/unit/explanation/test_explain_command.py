"""``sparsecc explain`` and ``inspect --target``: what is opened, what is printed, and what is needed for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.cli import main
from sparsecc.storage import files
from tests.unit.explanation.decisions import LINEAR, SPMM, SPMV, matrix
from tests.unit.test_cli_programs import error, output
from tests.unit.test_selection_api import KNOWN, PROGRAM

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with W.npy (f16, half full), D.npy (f64, half full), F.npy (full), A.mtx, x.npy and B.npy."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    half = np.where(rng.random((256, 128)) < 0.5, rng.random((256, 128)) + 1, 0)
    np.save("W.npy", half.astype(np.float16))
    np.save("D.npy", half)
    np.save("F.npy", rng.random((256, 128)) + 1)
    np.save("odd.npy", half[:, :126].astype(np.float16))
    np.save("Z.npy", half.astype(np.complex128))
    files.write(matrix(), "A.mtx")
    np.save("x.npy", rng.random(600))
    np.save("B.npy", rng.random((600, 8)) + 1)
    return tmp_path


def test_a_linear_layer_for_a_gpu_that_is_not_here(folder: Path, capsys: Capture) -> None:
    found = output(capsys, "explain", LINEAR, "W=W.npy", "--target", "sm_90")
    assert "X  16 x 128 f16, dense" in found
    assert "W  256 x 128 f16, open, stored as dense" in found
    assert "no operand says m; what wins for a few" in found
    rows = found.split("what wins for a few\n")[1].splitlines()[1:9]
    assert [row.split()[0] for row in rows] == "1 8 16 32 64 128 512 2048".split()
    assert "what follows is for m = 16" in found
    assert "by cuBLAS" in found


def test_json_of_a_size(folder: Path, capsys: Capture) -> None:
    arguments = ["explain", LINEAR, "W=W.npy", "--target", "sm_90", "--size", "m=64", "--json"]
    found = json.loads(output(capsys, *arguments))
    assert found["extents"]["m"] == 64 and found["sizes"]["index"] == "m"
    row = next(r for r in found["sizes"]["rows"] if r["extent"] == 64)
    assert row["plan"] == found["winner"]
    assert row["seconds"] == found["plans"][0]["seconds"]
    assert set(found["libraries"]) == {"cublas", "cusparselt", "cusparse"}


def test_columns_that_no_group_takes(folder: Path, capsys: Capture) -> None:
    found = output(capsys, "explain", LINEAR, "W=odd.npy", "--target", "sm_90")
    assert "k = 126 is not a multiple of 4; pad it to 128" in found


def test_types_without_kernels(folder: Path, capsys: Capture) -> None:
    found = output(capsys, "explain", LINEAR, "W=D.npy", "--target", "sm_90")
    assert "W is f64: 2:4 has kernels of f16, bf16, i8" in found and "--dtype f16" in found
    found = output(capsys, "explain", LINEAR, "W=D.npy", "--target", "sm_90", "--dtype", "f16")
    assert "X  16 x 128 f16, dense" in found and "--dtype f16" not in found
    said = error(capsys, "explain", LINEAR, "W=Z.npy", "--target", "sm_90")
    assert "is c128, for which target sm_90 has no kernels" in said


def test_full_files_stay_dense_beside_sparse_ones(folder: Path, capsys: Capture) -> None:
    found = output(capsys, "explain", SPMM, "A=A.mtx", "B=B.npy")
    assert "A  400 x 600 f64, open, stored as COO" in found and "B  600 x 8 f64, dense" in found
    assert "note: B has hardly a zero and stays dense; B=FILE:* opens it" in found
    found = output(capsys, "explain", SPMM, "A=A.mtx", "B=B.npy:*", "--json")
    assert {p["plan"]["formats"]["B"] for p in json.loads(found)["plans"]} > {"dense"}
    found = output(capsys, "explain", LINEAR, "W=F.npy")
    assert "W  256 x 128 f64, open" in found


def test_formats_that_are_spelled_are_not_opened(folder: Path, capsys: Capture) -> None:
    for arguments in (["A=A.mtx:CSR"], ["A=A.mtx", "--format", "A=CSR"]):
        found = output(capsys, "explain", SPMV, *arguments, "x=x.npy")
        assert found.startswith("operands:") and "A: f64, CSR" in found
        assert "--json is for a choice" in error(
            capsys, "explain", SPMV, *arguments, "x=x.npy", "--json", status=2
        )


def test_steps_are_of_the_plan_that_is_printed(folder: Path, capsys: Capture) -> None:
    found = output(capsys, "explain", SPMV, "A=A.mtx", "x=x.npy", "--steps", "--strategy", "bytes")
    choice, _, steps = found.partition("\noperands:\n")
    winner = next(line for line in choice.splitlines() if line.startswith("winner: "))
    assert f"  A: f64, {winner.split('=')[1].split(' ')[0].rstrip(',')}" in steps
    assert "steps:" in steps


@pytest.mark.parametrize("target", ["cpu", "sm_80", "sm_90", "sm_100"])
def test_the_winner_compiles(folder: Path, capsys: Capture, target: str) -> None:
    for size in (1, 64):
        arguments = [LINEAR, "W=W.npy" if target != "cpu" else "W=D.npy", "--target", target]
        found = json.loads(output(capsys, "explain", *arguments, "--size", f"m={size}", "--json"))
        best = found["plans"][0]["plan"]
        dtype = "f64" if target == "cpu" else "f16"
        w = sc.read("D.npy" if target == "cpu" else "W.npy")
        x = sc.Spec((None, None), dtype)
        kernel = sc.compile(LINEAR, W=w, X=x, target=target, plan=best)
        assert kernel.formats["W"] == best["formats"]["W"]


def test_strategies_that_measure(folder: Path, capsys: Capture) -> None:
    found = json.loads(
        output(capsys, "explain", SPMV, "A=A.mtx", "x=x.npy", "--strategy", "autotune", "--json")
    )
    times = [p["measured"] for p in found["plans"] if p["measured"] is not None]
    assert found["strategy"] == "autotune" and times == sorted(times) and times[0] > 0
    said = error(capsys, "explain", SPMM, "A=A.mtx", "--strategy", "autotune")
    assert "there are no operands" in said


def test_calls_and_plans(folder: Path, capsys: Capture) -> None:
    found = output(capsys, "explain", SPMV, "A=A.mtx", "x=x.npy", "--calls", "3", "--plans", "2")
    assert "conversions are spread over 3 calls" in found
    assert "more, behind these" in found
    assert len(found.split("why the others lost\n")[1].split("\n\n")[0].splitlines()) == 1


def test_a_page_is_written(folder: Path, capsys: Capture) -> None:
    assert main(["explain", LINEAR, "W=W.npy", "--target", "sm_90", "--html", "W.html"]) == 0
    out, err = capsys.readouterr()
    assert "winner: " in out and "written to W.html" in err
    text = Path("W.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "data:image/png;base64," in text


def test_programs_of_mlir_text(folder: Path, capsys: Capture) -> None:
    Path("open.mlir").write_text(PROGRAM.replace("FACTS", KNOWN))
    found = output(capsys, "explain", "open.mlir")
    assert "A  6 x 8 f64, open, stored as COO" in found and "winner: A=" in found
    Path("closed.mlir").write_text(PROGRAM.replace("FACTS", ""))
    assert output(capsys, "explain", "closed.mlir").startswith("operands:")
    said = error(capsys, "explain", "open.mlir", "A=A.mtx:*", status=2)
    assert "does not go with an .mlir file" in said


def test_mistakes(folder: Path, capsys: Capture) -> None:
    assert "there is no such file" in error(capsys, "explain", LINEAR, "W=none.npy")
    said = error(capsys, "explain", "Y[m,n] = X[m,k] * W[n,k", "W=W.npy")
    assert "<expression>:1:24" in said
    assert "there is no target" in error(capsys, "explain", LINEAR, "W=W.npy", "--target", "sm_9")
    said = error(capsys, "explain", LINEAR, "W=W.npy", "--target", "sm_90", "--size", "z=4", status=2)  # fmt: skip
    assert "'z'" in said
    assert "strategy 'none'" in error(capsys, "explain", LINEAR, "W=W.npy", "--strategy", "none", status=2)  # fmt: skip
    assert "neither an expression" in error(capsys, "explain", "W.npy", status=2)
    assert main(["explain", LINEAR, "W=W.npy", "--plans", "0"]) == 2


BLOCKED = """
import sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "triton", "llvmlite", "scipy", "sklearn"):
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Wall())
from sparsecc.cli import main
status = main(sys.argv[1:])
assert not {"torch", "triton", "llvmlite", "scipy"} & set(sys.modules)
sys.exit(status)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", LINEAR, "W=W.npy", "--target", "sm_90", "--html", "o.html"],
        ["explain", SPMV, "A=A.mtx", "x=x.npy"],
        ["inspect", "W.npy", "--target", "sm_90"],
    ],
    ids=lambda a: " ".join(a[:1]),
)
def test_neither_torch_nor_llvmlite_nor_a_gpu_is_needed(folder: Path, arguments: list[str]) -> None:
    environment = {"PYTHONPATH": str(ROOT), "SPARSECC_CACHE": "", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, *arguments], capture_output=True, text=True, env=environment, cwd=folder
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout


# -- inspect ---------------------------------------------------------------------------------------


def test_inspect_predicts_gains(folder: Path, capsys: Capture) -> None:
    found = output(capsys, "inspect", "W.npy", "--target", "sm_90")
    assert "predicted for sm_90" in found and "m = 512" in found
    data = json.loads(output(capsys, "inspect", "A.mtx", "--target", "cpu", "--json"))["predicted"]
    assert [w["width"] for w in data["widths"]] == ["a vector", "m = 8", "m = 32", "m = 128"]
    for width in data["widths"]:
        for fmt, one in width["formats"].items():
            assert one["gain"] == pytest.approx(width["dense_seconds"] / one["seconds"]), fmt
        assert width["formats"]["dense"]["gain"] == 1
    # The same model answers explain.
    plans = json.loads(output(capsys, "explain", SPMV, "A=A.mtx", "x=x.npy", "--json"))["plans"]
    least = min(one["seconds"] for one in data["widths"][0]["formats"].values())
    assert least == pytest.approx(plans[0]["seconds"])


def test_inspect_of_what_is_no_matrix(folder: Path, capsys: Capture) -> None:
    assert main(["inspect", "x.npy", "--target", "cpu"]) == 0
    out, err = capsys.readouterr()
    assert "predicted" not in out and "gains are predicted for matrices" in err
    assert "there is no target" in error(capsys, "inspect", "x.npy", "--target", "none")
    assert "predicted" not in output(capsys, "inspect", "A.mtx")
