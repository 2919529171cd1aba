"""``sparsecc research``, over the tiny table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparsecc.cli import main
from sparsecc.research import generator
from sparsecc.research.table import read_table, write_table
from sparsecc.selection import registry
from sparsecc.selection.problem import Space
from sparsecc.targets import Target
from tests.unit.research.tiny import tiny
from tests.unit.research.toys import ToySpace

Capture = pytest.CaptureFixture[str]
PREDICTS = "tests.unit.research.toys:Predicts"
MEASURES = "tests.unit.research.toys:Measures"
REFUSES = "tests.unit.research.toys:Refuses"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    def space_of(target: Target) -> Space:
        return ToySpace()

    monkeypatch.setattr(registry, "space_of", space_of)
    write_table(tiny(), tmp_path)
    return str(tmp_path / "tiny")


def done(capsys: Capture, *arguments: str) -> str:
    assert main(["research", *arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def fails(capsys: Capture, *arguments: str) -> tuple[int, str]:
    status = main(["research", *arguments])
    out, err = capsys.readouterr()
    assert out == ""
    return status, err


def test_run(table: str, capsys: Capture) -> None:
    out = done(capsys, "run", "--strategy", PREDICTS, "--corpus", table, "--all")
    for text in ("table tiny, all problems", "predicts", "by family", "stencil", "BSR(4,4)", "ELL"):
        assert text in out
    assert "1000" in out and "inf" in out


def test_run_of_several(table: str, capsys: Capture) -> None:
    out = done(capsys, "run", "--strategy", MEASURES, "--strategy", REFUSES, "--corpus", table,
               "--markdown", "--all")  # fmt: skip
    lines = [line for line in out.splitlines() if line.startswith("|")]
    assert [line.split("|")[1].strip() for line in lines[2:4]] == ["measures", "refuses"]
    assert "not decided by refuses" in out
    assert "it does not like squares" in out


def test_a_strategy_that_raises_is_reported(table: str, capsys: Capture) -> None:
    out = done(capsys, "run", "--strategy", "tests.unit.research.toys:Divides", "--corpus", table,
               "--all")  # fmt: skip
    assert "strategy 'odd' fails: ZeroDivisionError: division by zero" in out
    assert "not decided by odd" in out


def test_json(table: str, capsys: Capture) -> None:
    found = json.loads(done(capsys, "run", "--strategy", MEASURES, "--corpus", table, "--json"))
    assert found["split"] == "held-out"
    assert found["meta"]["machine"] == "a machine of the tests"
    (strategy,) = found["strategies"]
    assert strategy["all"]["regret"] == 0
    assert strategy["amortised"]["inf"]["problems"] == strategy["all"]["problems"]


def test_results_and_comparisons(table: str, tmp_path: Path, capsys: Capture) -> None:
    files = [str(tmp_path / f"{k}.csv") for k in "ab"]
    for strategy, path in zip((MEASURES, PREDICTS), files, strict=True):
        done(capsys, "run", "--strategy", strategy, "--corpus", table, "--all", "-o", path)
    out = done(capsys, "compare", *files)
    assert "measures against predicts" in out
    mixed = done(capsys, "compare", MEASURES, files[1], "--corpus", table, "--all", "--json")
    assert json.loads(mixed)["all"]["losses"] == 0


def test_transfer(table: str, capsys: Capture) -> None:
    out = done(capsys, "transfer", "--strategy", PREDICTS, "--table", table, "--all",
               "--believed", "cpu", "--believed", "sm_90")  # fmt: skip
    assert "predicts: mean regret (worst) with the rates of" in out
    assert "sm_90" in out
    cells = json.loads(done(capsys, "transfer", "--strategy", PREDICTS, "--table", table, "--json"))
    assert cells["predicts"][0]["believed"] == "cpu"


def test_corpora(capsys: Capture) -> None:
    out = done(capsys, "corpus")
    assert "corpus cpu: 348 problems" in out
    assert "preferential" in out
    out = done(capsys, "corpus", "gpu")
    assert "linear-16/f16/iid/14336x4096/density=0.5" in out
    assert json.loads(done(capsys, "corpus", "--json"))["cpu"] == 348
    assert len(json.loads(done(capsys, "corpus", "gpu", "--json"))) > 150


def test_tables(table: str, tmp_path: Path, capsys: Capture) -> None:
    done(capsys, "table")
    out = done(capsys, "table", table, "-o", str(tmp_path / "all.csv"))
    assert "machine: a machine of the tests" in out
    assert "CSR by scipy" in out
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 33


def test_files_are_measured_here(tmp_path: Path, capsys: Capture) -> None:
    generator.tensor({"family": "iid", "rows": 40, "columns": 30, "density": 0.2}).save(
        tmp_path / "a.mtx"
    )
    out = done(capsys, "run", "--corpus", str(tmp_path), "--measure", "--only", "SpMV",
               "--strategy", "oracle", "--strategy", "fixed", "--json")  # fmt: skip
    found = json.loads(out)
    assert found["split"] == "all"
    oracle, fixed = found["strategies"]
    assert oracle["all"]["problems"] == fixed["all"]["problems"] == 1
    assert oracle["all"]["regret"] == 0
    assert fixed["all"]["regret"] >= 0
    assert oracle["statics"]


def test_recording(tmp_path: Path, capsys: Capture) -> None:
    prefix = tmp_path / "mine"
    done(capsys, "record", "--only", "SpMM-1/f32/wanda/384x1536", "-o", str(prefix))
    table = read_table(str(prefix))
    assert list(table.problems) == ["SpMM-1/f32/wanda/384x1536/density=0.1"]
    assert table.meta["command"].startswith("sparsecc research record")
    done(capsys, "run", "--corpus", str(prefix), "--all", "--strategy", "roofline")


def test_usage(table: str, tmp_path: Path, capsys: Capture) -> None:
    for arguments, text in (
        (("rnu",), "did you mean 'run'?"),
        (("run", "--strategy", "nothing", "--corpus", table), "there is no strategy 'nothing'"),
        (("run", "--strategy", PREDICTS, "--corpus", table, "--target", "sm_90"), "is of cpu, not of sm_90"),
        (("run", "--strategy", PREDICTS, "--corpus", "nowhere"), "there is no table 'nowhere'"),
        (("run", "--strategy", PREDICTS, "--corpus", str(tmp_path)), "nothing is recorded of"),
        (("run", "--corpus", str(tmp_path / "sub"), "--measure"), "there is no corpus"),
        (("run", "--corpus", table, "--only", "nothing", "--strategy", PREDICTS), "has no problem of the split"),
        (("run", "--strategy", PREDICTS, "--corpus", table, "-o", "x.txt"), "neither a .csv nor"),
        (("run", "--strategy", PREDICTS, "--strategy", MEASURES, "--corpus", table, "-o", "x.csv"), "one strategy"),
        (("run", "--corpus", str(tmp_path), "--measure", "--dtype", "f33"), "there is no type 'f33'"),
        (("corpus", "cup"), "did you mean 'cpu'?"),
    ):  # fmt: skip
        status, err = fails(capsys, *arguments)
        assert (status, text in err) == (2, True), err
    assert main(["research"]) == 2
    assert "run" in capsys.readouterr().err
