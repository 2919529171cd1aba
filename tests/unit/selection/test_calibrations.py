"""Calibrations: what is read, what is refused, where they are looked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparsecc.selection import calibrations
from sparsecc.selection.calibrations import (
    BadCalibration,
    Calibration,
    NotCalibrated,
    calibration_of,
    read_calibration,
)
from sparsecc.selection.costs.families import FAMILIES, SIZES
from sparsecc.targets import TARGETS

GOOD: dict[str, Any] = {
    "version": 1, "target": "cpu", "machine": "a machine", "date": "2026-01-01",
    "sizes": {"l1": 1, "l2": 2, "l3": 3}, "families": {"general": {"step": 1e-9, "call": 0}},
}  # fmt: skip


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """No calibration of this machine, and none that is remembered."""
    monkeypatch.setenv("SPARSECC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARSECC_CALIBRATION", raising=False)
    calibrations.forget()
    yield
    calibrations.forget()


@pytest.mark.parametrize(("target", "backend"), [("cpu", "cpu"), ("sm_90", "triton")])
def test_what_ships_has_all_units(target: str, backend: str) -> None:
    found = calibration_of(target)
    assert found.target == target
    assert set(SIZES[backend]) <= set(found.sizes)
    for family, units in FAMILIES[backend].items():
        assert set(units) <= set(found.families[family]), family
    assert Calibration.from_json(found.to_json(), found.source, target) == found


def test_other_gpus_are_scaled_by_their_data() -> None:
    known, other = calibration_of("sm_90"), calibration_of("sm_80")
    assert "scaled" in other.machine
    assert other.sizes["processors"] == 108
    slower = TARGETS["sm_90"].rate("bandwidth"), TARGETS["sm_80"].rate("bandwidth")
    assert slower[0] and slower[1]
    ratio = slower[0].value / slower[1].value
    assert other.cost("cublas-16", "cold") == pytest.approx(known.cost("cublas-16", "cold") * ratio)
    assert other.cost("cublas-16", "mac") > known.cost("cublas-16", "mac")


def test_a_target_that_nobody_knows() -> None:
    with pytest.raises(NotCalibrated, match="sparsecc calibrate --target riscv"):
        calibration_of("riscv")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 2}, "version is 2"),
        ({"target": 3}, "'target' is not a string"),
        ({"sizes": [1]}, "sizes is not an object"),
        ({"families": {}}, "'families' is not an object"),
        ({"families": {"general": {"step": "fast"}}}, "'fast' for 'step'"),
        ({"families": {"general": {"step": -1}}}, "-1 for 'step'"),
        ({"families": {"general": {"step": True}}}, "True for 'step'"),
        ({"families": {"general": [1]}}, "family 'general' is not an object"),
        ({"errors": {"general": 1}}, "'errors'"),
        ({"errors": {"general": {"count": 1}}}, "'errors'"),
    ],
)
def test_hostile_files(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({**GOOD, **change}))
    with pytest.raises(BadCalibration) as raised:
        read_calibration(path)
    assert says in str(raised.value) and str(path) in str(raised.value)


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "{", "NaN", "\x00", '{"version": 1}', "[" * 100_000, '{"version": 1e999}'],
)
def test_text_that_is_no_calibration(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(BadCalibration):
        read_calibration(path)


def test_infinite_costs_and_large_files(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({**GOOD, "families": {"general": {"step": float("inf")}}}))
    with pytest.raises(BadCalibration, match="inf for 'step'"):
        read_calibration(path)
    path.write_text(" " * (calibrations.LARGEST + 1))
    with pytest.raises(BadCalibration, match="more than"):
        read_calibration(path)


def test_where_calibrations_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = calibrations.user_file("cpu")
    assert own is not None and own == tmp_path / "cache" / "calibrations" / "cpu.json"
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps({**GOOD, "machine": "of the cache"}))
    assert calibration_of("cpu").machine == "of the cache"
    named = tmp_path / "named.json"
    named.write_text(json.dumps({**GOOD, "machine": "named"}))
    monkeypatch.setenv("SPARSECC_CALIBRATION", str(named))
    assert calibration_of("cpu").machine == "named"
    assert calibration_of("sm_90").machine != "named"
    monkeypatch.setenv("SPARSECC_CALIBRATION", str(tmp_path / "gone.json"))
    with pytest.raises(BadCalibration, match="no such file"):
        calibration_of("cpu")
    monkeypatch.setenv("SPARSECC_CACHE", "")
    assert calibrations.user_file("cpu") is None


def test_a_file_without_a_family_says_which() -> None:
    found = Calibration.from_json(GOOD, "mine.json")
    with pytest.raises(BadCalibration, match="lacks 'entry' of the family 'spmv-rows'"):
        found.cost("spmv-rows", "entry")
