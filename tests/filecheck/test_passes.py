"""Each pass on small programs, beside its path: ``<pass>.mlir`` is checked by filecheck, and
``<pass>_invalid.mlir`` holds programs (split by ``// -----``) with the error that each must raise.

``// RUN:`` lines read as the shell would; they run in this process.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser

from sparsecc.diagnostics import SparseccError
from sparsecc.passes.registry import PASSES
from sparsecc.pipeline import run_text

DIRECTORY = Path(__file__).parent / "passes"
FILES = sorted(DIRECTORY.rglob("*.mlir"))
RUN = re.compile(r"^// RUN: sparsecc opt %s -p '([^']*)'( \| filecheck %s)?$", re.MULTILINE)
EXPECTED = re.compile(r"^// expected-error \{\{(.*)\}\}$", re.MULTILINE)
VALID = [f for f in FILES if not f.stem.endswith("_invalid")]
PIECES = [
    (f"{f.stem}-{number}", piece)
    for f in FILES
    if f.stem.endswith("_invalid")
    for number, piece in enumerate(f.read_text(encoding="utf-8").split("// -----\n"))
]


def test_the_tests_stand_where_the_code_stands() -> None:
    for spec in PASSES.values():
        module = import_module(spec.partition(":")[0]).__name__
        where = DIRECTORY / Path(*module.split(".")[2:])
        assert where.with_suffix(".mlir") in FILES
        assert where.with_name(f"{where.name}_invalid.mlir") in FILES


@pytest.mark.parametrize("path", VALID, ids=lambda p: p.stem)
def test_pass(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = path.read_text(encoding="utf-8")
    runs = RUN.findall(text)
    assert len(runs) == text.count("// RUN:") == 1
    ((spec, piped),) = runs
    assert piped
    result = run_text(text, path.name, spec)
    options = Options(str(path))
    code = Matcher(options, FInput(path.name, result), Parser.from_opts(options)).run()
    assert code == 0, capsys.readouterr().err + result


@pytest.mark.parametrize(("name", "piece"), PIECES, ids=[name for name, _ in PIECES])
def test_refused(name: str, piece: str) -> None:
    runs, errors = RUN.findall(piece), EXPECTED.findall(piece)
    assert len(runs) == len(errors) == 1, "one run and one mistake a piece"
    with pytest.raises(SparseccError) as caught:
        run_text(piece, name, runs[0][0])
    assert errors[0] in caught.value.message
