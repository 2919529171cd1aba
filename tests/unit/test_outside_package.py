"""Somebody else's package adds a level format and a pass by entry points; no file of ours knows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
POINTS = """\
[sparsecc.levels]
bytemap = outside.bytemap:Bytemap

[sparsecc.passes]
outside-mark = outside.mark:Mark

[sparsecc.strategies]
outside-crossover = outside.crossover:Crossover
"""
PREPARE = """\
import numpy as np
from sparsecc.storage.ingest import asarray
dense = np.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]])
A = asarray(dense).to("(i, j) -> (i : dense, j : bytemap)")
"""


def install(folder: Path, name: str = "outside", points: str = POINTS) -> None:
    """What pip leaves of a package: its modules, and a folder of metadata."""
    shutil.copytree(ROOT / "tests" / "outside", folder / name)
    (folder / name / "__init__.py").touch()
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(points)


def python(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Python in a process that has the package."""
    paths = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        input=stdin,
    )


def runs(folder: Path, code: str) -> None:
    done = python(folder, "-c", PREPARE + code)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    install(tmp_path)
    return tmp_path


def test_the_level_is_unknown_without_the_package(tmp_path: Path) -> None:
    done = python(tmp_path, "-c", PREPARE)
    assert done.returncode == 1
    assert "there is no level format 'bytemap'" in done.stderr


def test_spelling(outside: Path) -> None:
    runs(
        outside,
        """
from sparsecc.formats import parse_format
text = "(d0, d1) -> (d0 : dense, d1 : bytemap)"
assert str(A.format) == text and parse_format(text) == A.format
""",
    )


def test_storage(outside: Path) -> None:
    runs(
        outside,
        """
assert A.levels[1].coordinates.tolist() == [0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0]
assert A.values.tolist() == [0, 1.5, 0, 2, 0, 0, 0, 0, 3, 0, 4, 0]
assert A.nnz == 4 and (A.to_numpy() == dense).all()
for format in ("CSR", "CSC", "COO", "dense", "(i, j) -> (j : bytemap, i : bytemap)"):
    B = A.to(format)
    assert (B.to_numpy() == dense).all(), format
    assert (B.to(A.format).to_numpy() == dense).all(), format
""",
    )


def test_kernels_read_it(outside: Path) -> None:
    runs(
        outside,
        """
import sparsecc as sc
x = np.arange(4.0)
assert np.array_equal(sc.evaluate("y[i] = A[i,j] * x[j]", A=A, x=x), dense @ x)
B = asarray(dense[::-1].copy()).to("CSR")
for expression, expected in (("C[i,j] = A[i,j] + B[i,j]", dense + dense[::-1]),
                             ("C[i,j] = A[i,j] * B[i,j]", dense * dense[::-1]),
                             ("C[i,j] = A[i,k] * B[j,k]", dense @ dense[::-1].T)):
    for out in ("dense", "CSR"):
        C = sc.asarray(sc.evaluate(expression, A=A, B=B, out=out))
        assert np.array_equal(C.to_numpy(), expected), (expression, out)
""",
    )


def test_kernels_write_it(outside: Path) -> None:
    runs(
        outside,
        """
import sparsecc as sc
C = sc.evaluate("C[i,j] = 2 * A[i,j]", A=A.to("CSR"), out=str(A.format))
assert C.format == A.format and np.array_equal(C.to_numpy(), 2 * dense)
""",
    )


def test_the_pass_runs_and_is_listed(outside: Path) -> None:
    program = "func.func @f() {\n  return\n}\n"
    done = python(
        outside, "-m", "sparsecc", "opt", "-", "-p", "outside-mark{word=hello}", stdin=program
    )
    assert done.returncode == 0, done.stderr
    assert 'outside.mark = "hello"' in done.stdout
    done = python(outside, "-m", "sparsecc", "passes")
    assert "outside.mark:Mark" in done.stdout


def test_the_strategy_chooses_and_is_listed(outside: Path) -> None:
    runs(
        outside,
        """
import sparsecc as sc
x = np.arange(4.0)
for name in ("outside-crossover", "outside.crossover:Crossover"):
    k = sc.compile("y[i] = A[i,j] * x[j]", A=A, x=x, formats="*", strategy=name)
    assert np.array_equal(k(**k.prepare(A=A, x=x)), dense @ x)
    assert k.decision.candidate in k.decision.problem.candidates
""",
    )
    done = python(outside, "-m", "sparsecc", "strategies")
    assert "outside.crossover:Crossover" in done.stdout


@pytest.mark.parametrize(
    ("point", "code"),
    [
        ("[sparsecc.levels]\nbytemap = twin.bytemap:Bytemap\n", PREPARE),
        (
            "[sparsecc.passes]\noutside-mark = twin.mark:Mark\n",
            "from sparsecc import plugins\nplugins.passes()",
        ),
        (
            "[sparsecc.strategies]\noutside-crossover = twin.crossover:Crossover\n",
            "from sparsecc import plugins\nplugins.strategies()",
        ),
    ],
)
def test_two_packages_with_one_name_clash(point: str, code: str, outside: Path) -> None:
    install(outside, "twin", point)
    done = python(outside, "-c", code)
    assert done.returncode == 1
    assert "twin." in done.stderr
    assert "outside." in done.stderr
