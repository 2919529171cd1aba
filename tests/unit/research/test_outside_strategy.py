"""Somebody else's package adds a strategy by an entry point, and the harness runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparsecc.research.table import write_table
from tests.unit.research.tiny import tiny
from tests.unit.test_outside_package import ROOT, install, python

POINTS = "[sparsecc.strategies]\ncrossover = outside.crossover:Crossover\n"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    install(tmp_path, points=POINTS)
    write_table(tiny(), tmp_path)
    return tmp_path


def test_it_is_short() -> None:
    lines = (ROOT / "tests" / "outside" / "crossover.py").read_text().splitlines()
    assert len(lines) < 60


def test_it_is_unknown_without_the_package(tmp_path: Path) -> None:
    done = python(tmp_path, "-m", "sparsecc", "research", "run", "--strategy", "crossover")
    assert done.returncode == 2
    assert "there is no strategy 'crossover'" in done.stderr


@pytest.mark.parametrize("name", ["crossover", "outside.crossover:Crossover"])
def test_the_harness_runs_it(name: str, outside: Path) -> None:
    done = python(
        outside, "-m", "sparsecc", "research", "run", "--strategy", name,
        "--corpus", str(outside / "tiny"), "--all", "--json", "-o", str(outside / "results.csv"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["strategies"]
    assert found["strategy"] == "crossover"
    assert (found["all"]["problems"], found["all"]["failed"]) == (8, 0)
    # Dense, CSR, blocks, CSR: what is best in the tiny table.
    assert found["all"]["regret"] == 0
    assert len((outside / "results.csv").read_text().splitlines()) == 9


def test_the_compiler_asks_it(outside: Path) -> None:
    code = """
import numpy as np
import sparsecc as sc
A = sc.asarray(np.kron(np.eye(8), np.ones((4, 4)))).to("CSR")
X = np.ones((32, 3))
kernel = sc.compile("C[i,j] = A[i,k] * X[k,j]", A=A, X=X, formats={"A": "*"}, strategy="crossover")
assert "BSR(4,4)" in str(kernel.formats) or "mod 4" in str(kernel.formats), kernel.formats
assert np.array_equal(kernel(A=A, X=X), A.to_numpy() @ X)
"""
    done = python(outside, "-c", code)
    assert done.returncode == 0, done.stderr


def test_it_is_listed(outside: Path) -> None:
    done = python(outside, "-m", "sparsecc", "strategies")
    assert "outside.crossover:Crossover" in done.stdout
