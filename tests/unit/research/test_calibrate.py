"""Calibrating: from a recorded table to a file that the cost model reads, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sparsecc.cli import main
from sparsecc.research import calibrate, corpus
from sparsecc.research.calibrate import NotMeasured, TooShort
from sparsecc.research.table import Table
from sparsecc.selection import calibrations
from sparsecc.selection.calibrations import calibration_of, read_calibration
from tests.unit.research.tiny import tiny

RATES = {"from_l2": 1e-11, "from_l3": 2e-11, "from_dram": 1e-10}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No machine is measured, and nothing outside of the test's folder is read or written."""
    monkeypatch.setenv("SPARSECC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARSECC_CALIBRATION", raising=False)
    monkeypatch.setattr(calibrate, "streams", lambda: RATES)
    monkeypatch.setattr(calibrate, "recorded", recorded(tiny()))
    calibrations.forget()


def recorded(table: Table) -> Callable[[str, str, float], Table]:
    return lambda target, backend, seconds: table


def test_a_table_becomes_a_calibration_that_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", "--target", "cpu", "--seconds", "20"]) == 0
    path = tmp_path / "cache" / "calibrations" / "cpu.json"
    found = read_calibration(path)
    assert found.machine == "a machine of the tests"
    assert calibration_of("cpu") == found
    # What the table has is fitted, what it has not keeps its cost, streams are those of the machine.
    assert found.errors["spmv-rows"].count == 4 and found.errors["spmm-blocks"].count == 4
    assert found.cost("mttkrp-outer", "from_dram") == 1e-10
    shown = capsys.readouterr()
    assert "spmv-rows" in shown.out and str(path) in shown.err


def test_a_file_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSECC_CACHE", "")
    assert main(["calibrate", "--seconds", "20"]) == 2
    path = tmp_path / "mine.json"
    assert main(["calibrate", "--seconds", "20", "-o", str(path)]) == 0
    assert json.loads(path.read_text())["target"] == "cpu"


def test_what_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TooShort):
        calibrate.calibrate("cpu", 5)
    with pytest.raises(TooShort):
        calibrate.calibrate("cpu", float("nan"))
    assert main(["calibrate", "--target", "abacus"]) == 1
    assert "no target 'abacus'" in capsys.readouterr().err


def test_another_machine_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    other = replace(tiny(), meta={**tiny().meta, "target": "sm_90"})
    for table, says in ((other, "is sm_90"), (replace(tiny(), times={}), "no plan has run")):
        with pytest.raises(NotMeasured, match=says):
            calibrate.checked(table, "cpu")


def test_streams_are_slower_from_memory_than_from_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(calibrate, "LEAST", 1000)
    monkeypatch.setattr(calibrate, "ROUNDS", 1)
    monkeypatch.setattr(calibrate, "STREAMS", {"from_l2": 1 << 14, "from_dram": 1 << 20})
    found = calibrate.streams()
    assert set(found) == {"from_l2", "from_dram"}
    assert all(1e-13 < cost < 1e-6 for cost in found.values())


def test_the_corpora_have_every_operation() -> None:
    cpu = {p.operation for p in corpus.problems("calibration-cpu")}
    gpu = {p.operation for p in corpus.problems("calibration-gpu")}
    assert cpu == {"SpMV", "SpMM", "SDDMM", "MTTKRP"}
    assert gpu == {"linear", "SpMM", "SpMV", "SDDMM"}
