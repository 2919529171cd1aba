"""Programs with mistakes: ``// expected-error@+1 {{text}}`` above the line that must be blamed.

Pieces are split by ``// -----``, as upstream's ``-split-input-file -verify-diagnostics`` does.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparsecc.diagnostics import IRError
from sparsecc.frontends.mlir_text import parse_module

DIRECTORY = Path(__file__).parents[2] / "filecheck" / "dialects"
FILES = sorted(DIRECTORY.glob("*-invalid.mlir"))
EXPECTED = re.compile(r"// expected-error@\+1 \{\{(.*)\}\}")


def pieces() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for file in FILES:
        for number, piece in enumerate(file.read_text().split("// -----\n")):
            found.append((f"{file.stem}-{number}", piece))
    return found


PIECES = pieces()


def test_there_are_pieces():
    assert len(PIECES) > 50


@pytest.mark.parametrize(("name", "piece"), PIECES, ids=[name for name, _ in PIECES])
def test_error_on_its_line(name: str, piece: str):
    lines = piece.split("\n")
    wanted = [(k + 2, match[1]) for k, line in enumerate(lines) if (match := EXPECTED.search(line))]
    assert len(wanted) == 1, "one mistake a piece"
    line, text = wanted[0]
    with pytest.raises(IRError) as caught:
        parse_module(piece, name)
    error = caught.value
    assert text in error.message
    assert error.place.startswith(f"{name}:{line}:")
    assert error.span is not None and "^" in error.render()
