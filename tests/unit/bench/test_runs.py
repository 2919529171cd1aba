"""Whole runs with a timer, rivals and kernels of our own; their reports; the command."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sparsecc.bench import report, results
from sparsecc.bench.cells import Cell, all_cells
from sparsecc.bench.results import OURS, Latency, Result, Run, Time, read_runs
from sparsecc.bench.runner import Settings
from sparsecc.bench.svg import Plot
from sparsecc.cli import bench as command
from sparsecc.cli import main
from sparsecc.diagnostics import FileError
from tests.unit.bench.fakes import Fakes, FakeTimer

torch: Any = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]
CELLS = all_cells()
CELL = next(c for c in CELLS if c.group == "2:4")
SMALL = replace(CELL, rows=64, columns=64, width=8, dtype="f32")


def time(us: float) -> Time:
    return Time("some way", us, us, us, "graph", 19_000_000, 2e-4)


def a_run(cells: list[Cell], ours: float = 10.0) -> Run:
    machine = {"gpu": "a GPU", "copy_bandwidth": 4.3e12, "versions": {"torch": "2.13"}}
    results = [
        Result(
            c, 5, {OURS: time(ours), **{f: time(15.5) for f in c.operation.rivals}}, {"x: y": "why"}
        )
        for c in cells
    ]
    return Run(machine, tuple(results), (Latency("a call", 12.0, "us", 20.0),))


def test_json_and_back(tmp_path: Path) -> None:
    groups = [c for c in CELLS if c.width in (1, 16, 64)]
    run = a_run(groups)
    halves = [tmp_path / "a.json", tmp_path / "b.json"]
    # The second file's cells come first in the set, and one of them was measured again.
    halves[0].write_text(json.dumps(Run(run.machine, run.results[30:], run.latencies).to_json()))
    halves[1].write_text(json.dumps(Run(run.machine, run.results[:31]).to_json()))
    again = read_runs(halves)
    assert again.results == run.results
    assert again.latencies == run.latencies
    assert report.markdown(again) == report.markdown(run)


def test_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text in ("", "{}", '{"machine": {}, "cells": [{"cell": "none"}], "latencies": []}'):
        path.write_text(text)
        with pytest.raises(FileError, match=r"a.json: error: not a result of"):
            read_runs([path])


def test_tables() -> None:
    text = report.markdown(a_run([c for c in CELLS if c.width == 8 and c.group == "2:4"]))
    assert "| machine        |" in text
    assert "4.30 TB/s" in text
    lines = [line for line in text.splitlines() if line.startswith("| 4096x4096, M = 8")]
    assert len(lines) == 2  # f16 and bf16
    cells = [part.strip() for part in lines[0].strip("|").split("|")]
    assert cells == [
        "4096x4096, M = 8", "10", "", "1900", "15.5", "1.55", "15.5", "1.55",
        "1.6 dense, 1 cuSPARSELt", "MISSED, ok",
    ]  # fmt: skip
    assert "2:4/f16/2:4/2:4/50%/4096x4096/8: 1.55 of dense, bar 1.6" in text
    assert "| a call | 12 us    | 20 us | ok |" in text


def test_the_page(tmp_path: Path) -> None:
    page = tmp_path / "gpu.md"
    page.write_text(f"# Title\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    run = a_run([c for c in CELLS if c.group in ("2:4", "SDDMM")])
    written = report.write_page(run, page)
    text = page.read_text()
    assert text.startswith("# Title\n") and text.endswith("after\n") and "old" not in text
    assert {p.name for p in written} == {
        "gpu.md", "gpu-2of4-f16.svg", "gpu-2of4-bf16.svg", "gpu-sddmm-f16.svg", "gpu-sddmm-f32.svg",
    }  # fmt: skip
    assert all(
        (tmp_path / p.name).exists() and p.name in [*text.split("("), p.name] for p in written
    )
    report.write_page(run, page)
    assert page.read_text() == text
    page.write_text("# Title\n")
    with pytest.raises(FileError, match="two lines"):
        report.write_page(run, page)


def test_the_page_of_the_documents_has_its_markers() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "benchmarks" / "gpu.md"
    text = page.read_text(encoding="utf-8")
    assert text.count(report.BEGIN) == text.count(report.END) == 1


def test_plot() -> None:
    text = Plot(
        "a < b", "M", ["1", "8"], {"4096x4096": [2.0, None], "s": [1.0, 4.0]}, [(1.0, "equal")]
    ).svg()
    root = ElementTree.fromstring(text)
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    points = [line.attrib["points"] for line in lines]
    assert points[0].count(",") == 1
    first, last = (tuple(map(float, p.split(","))) for p in points[1].split())
    assert first[0] < last[0]
    assert first[1] > last[1]  # larger is higher


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gpu", "--list", "--only", "2:4 bf16 8", "--only", "latency"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2:4/bf16/2:4/2:4/50%/4096x4096/8"
    assert lines[-3:] == ["launch", "compile", "autotune"]
    assert len(lines) == 8
    assert main(["bench", "gpu", "--list", "--only", "latency"]) == 0
    assert capsys.readouterr().out.splitlines() == ["launch", "compile", "autotune"]
    assert main(["bench", "gpu", "--list", "--only", "COO"]) == 2
    assert "names look like" in capsys.readouterr().err


def test_pages_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "a.json", tmp_path / "gpu.md"
    path.write_text(json.dumps(a_run(list(CELLS[:8])).to_json()))
    page.write_text(f"{report.BEGIN}{report.END}")
    assert main(["bench", "gpu", "--from", str(path), "--docs", str(page)]) == 0
    out, err = capsys.readouterr()
    assert "4096x4096, M = 4096" in out
    assert "gpu-2of4-f16.svg" in err
    assert "4096x4096, M = 4096" in page.read_text()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gpu"]) == 1
    assert "there is no NVIDIA GPU" in capsys.readouterr().err


def test_the_command_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole command but the device: cells of the set made small, on the CPU."""
    fakes = Fakes()
    small = tuple(replace(c, rows=64, columns=64, width=8, dtype="f32") for c in CELLS[:1])
    machine = {"gpu": "a GPU", "copy_bandwidth": 4.3e12}

    class Timer(FakeTimer):
        def forget(self) -> None: ...

    class Pace:
        best = 4.3e12

        def now(self) -> float:
            return 4.2e12

    def facts(pace: object) -> dict[str, Any]:
        assert isinstance(pace, Pace)
        return dict(machine)

    def no_kernel(cell: Cell) -> str:
        return "no kernel for it"

    @contextmanager
    def compile_ahead(
        cells: Any, target: str, workers: int
    ) -> Generator[Callable[[Cell], int | str]]:
        assert (list(cells), target, workers) == (left, "sm_90", 3)
        yield no_kernel

    def ours(target: str) -> Any:
        return fakes.ours

    def latencies(target: str) -> list[Latency]:
        return [Latency("a call", 12.0, "us", 20.0)]

    fakes.timer = Timer()
    replacements: dict[str, Any] = {
        "GraphTimer": lambda: fakes.timer, "compile_ahead": compile_ahead, "Ours": ours,
        "measure_latencies": latencies, "Settings": lambda: Settings(device="cpu"),
    }  # fmt: skip
    for name, value in replacements.items():
        monkeypatch.setattr(command, name, value)
    monkeypatch.setattr(command.machine, "Pace", Pace)
    monkeypatch.setattr(command.machine, "facts", facts)
    monkeypatch.setattr(command.machine, "find_gpu", lambda: "sm_90")
    monkeypatch.setattr(command.cell_table, "all_cells", lambda: small)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    path = tmp_path / "a.json"
    left = list(small)
    assert main(["bench", "gpu", "--json", str(path), "--workers", "3"]) == 0
    out, err = capsys.readouterr()
    data = json.loads(path.read_text())
    assert data["machine"] == machine | {"target": "sm_90", "quick": False}
    assert data["cells"][0]["times"]["sparsecc"]["us"] == 5.0
    # torch's own products were run and checked on the CPU; cuSPARSELt is not there and says so.
    assert data["cells"][0]["times"]["dense"]["us"] == 10.0
    assert any(name.startswith("cuSPARSELt") for name in data["cells"][0]["failures"])
    assert [x["name"] for x in data["latencies"]] == ["a call"]
    assert "no kernel for it" in err
    assert "1/1 2:4/f32" in err
    assert "Cells: 1. Bars: 2, missed: 0." in out
    # A run that goes on has nothing left to do.
    left = []
    monkeypatch.setattr(results, "all_cells", lambda: small)
    command_line = ["bench", "gpu", "--json", str(path), "--resume", "--workers", "3"]
    assert main(command_line) == 0
    assert json.loads(path.read_text()) == data


def test_a_run_goes_on_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[list[str]] = []

    def execv(path: str, arguments: list[str]) -> None:
        assert path == arguments[0]
        begun.append(arguments[1:])

    monkeypatch.setattr(command.os, "execv", execv)
    options = Namespace(
        only=["2:4 f16", "latency"], skip=["a | b"], json="x.json", quick=True, docs=None, target=None, workers=2
    )  # fmt: skip
    command._go_on(options, "c | d: e")  # pyright: ignore[reportPrivateUsage] # ends the process elsewhere
    assert begun == [
        ["-m", "sparsecc", "bench", "gpu", "--json", "x.json", "--resume", "--only=2:4 f16", "--only=latency",
         "--skip=a | b", "--skip=c | d: e", "--quick", "--workers=2"]
    ]  # fmt: skip


@pytest.mark.parametrize("top", [1.0, 3.4, 7.0, 12.0, 90.0, 700.0])
def test_ticks_of_a_plot_do_not_overlap(top: float) -> None:
    root = ElementTree.fromstring(Plot("a", "b", ["1"], {"x": [top]}).svg())
    labels = root.findall("{http://www.w3.org/2000/svg}text")
    places = [float(t.get("y", "")) for t in labels if t.get("text-anchor") == "end"]
    assert 2 <= len(places) <= 12
    assert all(a - b > 15 for a, b in pairwise(places))


def test_plots_compare_with_a_rival_that_was_measured() -> None:
    page = ROOT / "docs" / "benchmarks" / "gpu.md"
    text = page.read_text(encoding="utf-8")
    assert "![Times of torch over ours](gpu-sddmm-f16.svg)" in text
    assert "![Times of cuSPARSE over ours](gpu-sddmm-f32.svg)" in text
    for plot in page.parent.glob("gpu-*.svg"):
        assert "<circle" in plot.read_text(encoding="utf-8"), plot.name
