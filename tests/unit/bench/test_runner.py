"""One cell after the other with a timer, rivals and kernels of our own: who is checked, timed, left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sparsecc.bench import report
from sparsecc.bench.cells import all_cells
from sparsecc.bench.problem import Candidate, Problem
from sparsecc.bench.results import FIRST, OURS, Result
from sparsecc.bench.runner import SKIPPED, DeviceLost
from sparsecc.bench.weights import Matrix
from tests.unit.bench.fakes import Fakes

torch: Any = pytest.importorskip("torch")

CELL = next(c for c in all_cells() if c.group == "2:4")
SMALL = replace(CELL, rows=64, columns=64, width=8, dtype="f32")


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
