"""Whole runs with a timer, rivals and kernels of our own; their reports; the command."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sparsecc.bench import report, results
from sparsecc.bench.cells import Cell, all_cells
from sparsecc.bench.problem import Candidate, Problem
from sparsecc.bench.results import FIRST, OURS, Latency, Result, Run, Time, read_runs
from sparsecc.bench.runner import SKIPPED, DeviceLost, Runner, Settings
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
        yield self.candidate(problem, "default", 9.0)
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
        FIRST: ("default", 9.0),
        "dense": ("way 3", 17.0),
        "cuSPARSELt": ("default", 30.0),
    }
    assert result.ratio("dense") == pytest.approx(3.4)
    assert result.nnz == 64 * 32
    assert result.failures["cuSPARSELt: what follows default"] == "RuntimeError: no kernel image"
    assert result.failures["sparsecc: wrong"].startswith("wrong: error ")
    assert [(v["against"], v["passed"]) for v in result.verdicts()] == [
        (["dense"], True),
        (["cuSPARSELt"], True),
    ]
    # Of four ways only the best two of a first look stay: 3 rounds of 2 + 2 + 1, and 2 + 4 + 1 looks.
    assert len(fakes.timer.measured) == 3 * 5 + 7
    assert result.rivals == {"dense": 17.0, "cuSPARSELt": 30.0}


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

    with pytest.raises(DeviceLost, match="with sparsecc: ours: .*illegal memory access"):
        next(Fakes().runner(alive=fail).run([SMALL]))


@pytest.mark.parametrize("last", ["way 1", "default", "what follows default"])
def test_who_has_lost_the_device_is_named_and_can_be_left_out(last: str) -> None:
    """A run that begins anew without it measures the rest."""
    fakes = Fakes()
    lost = False
    family = "dense" if last.startswith("way") else "cuSPARSELt"

    def alive() -> None:
        if lost:
            raise RuntimeError("CUDA error: an illegal instruction was encountered")

    def lose() -> None:
        nonlocal lost
        lost = True

    def rival(problem: Problem) -> Iterator[Candidate]:
        for name in ("default", "way 1", "way 2"):
            made = fakes.candidate(problem, name, 20.0)
            if name == last:
                calls = (lambda: lose() or problem.reference.float(),)
                made = replace(made, calls=calls)
            yield made
            if last == f"what follows {name}":
                lose()

    def run(*skip: str) -> Result:
        nonlocal lost
        lost = False
        runner = fakes.runner(alive=alive, skip=frozenset((SMALL.name, name) for name in skip))
        runner.peers = {"dense": (fakes.dense,), "cuSPARSELt": (fakes.broken,)} | {family: (rival,)}
        return next(runner.run([SMALL]))

    with pytest.raises(DeviceLost) as error:
        run()
    assert error.value.facts["candidate"] == f"{family}: {last}"
    result = run(f"{family}: {last}")
    assert result.failures[f"{family}: {last}"] == SKIPPED
    assert set(result.times) == {OURS, FIRST, "dense", "cuSPARSELt"}


def test_a_slow_moment_is_measured_again() -> None:
    class Moments:
        best = 4.0
        rates = [2.0, 4.0, 3.9, 4.0]
        warmed = 0

        def now(self) -> float:
            return self.rates.pop(0)

        def warm(self) -> None:
            self.warmed += 1

    moments = Moments()
    (result,) = Fakes().runner(pace=moments).run([SMALL])
    assert (result.copied, moments.rates, moments.warmed) == (3.9, [], 1)


def test_a_rival_may_be_less_exact() -> None:
    fakes = Fakes()

    def rival(problem: Problem) -> Iterator[Candidate]:
        scale = float(problem.reference.square().mean().sqrt())
        yield fakes.candidate(problem, "close", 20.0, change=5e-5 * scale)
        yield fakes.candidate(problem, "far", 10.0, change=5e-4 * scale)

    runner = fakes.runner()
    runner.peers = {"dense": (rival,), "cuSPARSELt": (fakes.broken,)}
    (result,) = runner.run([SMALL])
    assert (result.times["dense"].candidate, result.times["dense"].loose) == ("close", True)
    assert "dense: far" in result.failures
    assert "20 (~)" in report.group_table([result])


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
