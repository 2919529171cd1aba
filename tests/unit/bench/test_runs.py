"""Whole runs with a timer, rivals and kernels of our own; their reports; the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sparsecc.bench import report
from sparsecc.bench.cells import Cell, all_cells
from sparsecc.bench.problem import Candidate, Problem
from sparsecc.bench.results import OURS, Latency, Result, Run, Time, read_runs
from sparsecc.bench.runner import DeviceLost, Runner, Settings
from sparsecc.bench.svg import Plot
from sparsecc.bench.weights import Matrix
from sparsecc.cli import bench as command
from sparsecc.cli import main
from sparsecc.diagnostics import FileError
from tests.unit.bench.fakes import FakeTimer

torch: Any = pytest.importorskip("torch")

CELLS = all_cells()
CELL = next(c for c in CELLS if c.group == "2:4")
SMALL = replace(CELL, rows=64, columns=64, width=8, dtype="f32")


class Fakes:
    """Candidates with known times; ``wrong``, ``broken`` and ``stopped`` ones are not to be timed."""

    def __init__(self) -> None:
        self.timer = FakeTimer()

    def candidate(self, problem: Problem, name: str, us: float, change: float = 0.0) -> Candidate:
        calls = (lambda: problem.reference.float() + change,)
        self.timer.times[id(calls)] = us
        return Candidate(name, calls, lambda y: y, 1000)

    def ours(self, problem: Problem) -> Iterator[Candidate]:
        yield self.candidate(problem, "slow", 9.0)
        yield self.candidate(problem, "fast", 5.0)
        yield self.candidate(problem, "wrong", 1.0, change=1.0)

    def dense(self, problem: Problem) -> Iterator[Candidate]:
        for n in range(4):
            yield self.candidate(problem, f"way {n}", 20.0 - n)

    def broken(self, problem: Problem) -> Iterator[Candidate]:
        yield self.candidate(problem, "default", 30.0)
        raise RuntimeError("no kernel image\nsecond line")

    def runner(self, **more: Any) -> Runner:
        peers = {"dense": (self.dense,), "cuSPARSELt": (self.broken,)}
        return Runner(self.timer, self.ours, Settings(rounds=3, device="cpu"), peers, **more)


def test_a_cell() -> None:
    fakes = Fakes()
    (result,) = fakes.runner().run([SMALL])
    assert {f: (t.candidate, t.us) for f, t in result.times.items()} == {
        OURS: ("fast", 5.0),
        "dense": ("way 3", 17.0),
        "cuSPARSELt": ("default", 30.0),
    }
    assert result.ratio("dense") == pytest.approx(3.4)
    assert result.nnz == 64 * 32
    assert result.failures["cuSPARSELt: broken"] == "RuntimeError: no kernel image"
    assert result.failures["sparsecc: wrong"].startswith("wrong: error ")
    assert [(v["against"], v["passed"]) for v in result.verdicts()] == [
        (["dense"], True),
        (["cuSPARSELt"], True),
    ]
    # Of four ways only the best two of a first look stay: 3 rounds of 2 + 2 + 1, and 4 looks.
    assert len(fakes.timer.measured) == 3 * 5 + 4


def test_without_a_time_of_ours_every_bar_is_missed() -> None:
    fakes = Fakes()
    runner = fakes.runner()
    runner.ours = fakes.broken

    def nothing(problem: Problem) -> Iterator[Candidate]:
        raise RuntimeError("not today")
        yield fakes.candidate(problem, "", 0.0)

    runner.ours = nothing
    (result,) = runner.run([SMALL])
    assert result.ours is None
    assert [v["passed"] for v in result.verdicts()] == [False, False]
    assert "MISSED" in report.group_table([result])


def test_cells_share_their_matrix_and_a_lost_device_ends_the_run() -> None:
    made: list[Matrix] = []

    def ours(problem: Problem) -> Iterator[Candidate]:
        made.append(problem.matrix)
        yield from Fakes().ours(problem)

    other = replace(SMALL, rows=128)
    runner = Fakes().runner()
    runner.ours = ours
    list(runner.run([SMALL, replace(SMALL, width=16), other]))
    assert made[0] is made[1] is not made[2]

    def fail() -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    runner = Fakes().runner(alive=fail)
    results = runner.run([SMALL, other])
    assert next(results).ours
    with pytest.raises(DeviceLost, match="illegal memory access"):
        next(results)


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
        "4096x4096, M = 8", "10", "1900", "15.5", "1.55", "15.5", "1.55",
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

    def facts(timer: object) -> dict[str, Any]:
        return dict(machine)

    def compile_all(cells: object, target: str, workers: int) -> Iterator[tuple[Cell, int | str]]:
        assert (cells, target, workers) == (small, "sm_90", 3)
        yield small[0], 17
        yield small[0], "no kernel for it"

    def ours(target: str) -> Any:
        return fakes.ours

    def latencies(target: str) -> list[Latency]:
        return [Latency("a call", 12.0, "us", 20.0)]

    fakes.timer = Timer()
    replacements: dict[str, Any] = {
        "GraphTimer": lambda: fakes.timer, "compile_all": compile_all, "Ours": ours,
        "measure_latencies": latencies, "Settings": lambda: Settings(device="cpu"),
    }  # fmt: skip
    for name, value in replacements.items():
        monkeypatch.setattr(command, name, value)
    monkeypatch.setattr(command.machine, "facts", facts)
    monkeypatch.setattr(command.machine, "find_gpu", lambda: "sm_90")
    monkeypatch.setattr(command.cell_table, "all_cells", lambda: small)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    path = tmp_path / "a.json"
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
