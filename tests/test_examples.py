"""Every example runs, and checks its own results."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    named = {"demo", "spmm", "sddmm", "mttkrp", "sparse_linear", "block_linear", "graph_attention"}
    assert named <= {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="example")["main"]()
    assert capsys.readouterr().out
