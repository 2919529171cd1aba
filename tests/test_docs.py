"""The documents do what they say: their blocks run in order, their tables match the code."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from sparsecc.cli import main
from sparsecc.formats import parse_format
from sparsecc.formats.levels import LEVELS, level_class
from sparsecc.formats.names import NAMES
from sparsecc.research.generator import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path: Path) -> list[tuple[str, str, int]]:
    """Language, text and first line of each fenced block."""
    text = path.read_text(encoding="utf-8")
    return [(m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in FENCE.finditer(text)]


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", DOCS / "tutorial.md", DOCS / "selection.md"], ids=lambda p: p.name
)
def test_blocks_run_in_order(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    ran = 0
    for language, text, line in blocks(path):
        if language == "python":
            # The numbers of lines in a traceback are those of the document.
            exec(compile("\n" * (line - 1) + text, str(path), "exec"), names)
            ran += 1
        elif language == "sh":
            if not Path("A.mtx").exists():  # the README's commands take the files for granted
                exec("A.to('COO').save('A.mtx'); np.save('x.npy', x)", names)
            for command in text.splitlines():
                program, *arguments = shlex.split(command)
                assert program == "sparsecc"
                assert main(arguments) == 0, f"{command}\n{capsys.readouterr().err}"
            ran += 1
    assert ran >= 2


@pytest.mark.parametrize("name", ["cookbook/write_a_selection_pass.md", "research.md"])
def test_pages_of_the_research(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    sys.modules.pop("mine", None)
    names: dict[str, object] = {}
    ran = 0
    for language, text, line in blocks(DOCS / name):
        if language == "python":
            if text.startswith("# mine.py\n"):
                Path("mine.py").write_text(text, encoding="utf-8")
            exec(compile("\n" * (line - 1) + text, str(DOCS / name), "exec"), names)
            ran += 1
        elif language == "sh":
            for command in text.splitlines():
                program, *arguments = shlex.split(command)
                assert program == "sparsecc"
                assert main(arguments) == 0, f"{command}\n{capsys.readouterr().err}"
    assert ran


def test_families_of_the_research_page() -> None:
    found = rows((DOCS / "research.md").read_text(encoding="utf-8"), "Problems")
    families = {row[0].strip("`"): row[2] for row in found if row[0].startswith("`")}
    assert set(families) == set(FAMILIES)
    common = {"rows", "columns", "seed"}
    for family, told in families.items():
        assert set(re.findall(r"`(\w+)`", told)) == set(FAMILIES[family].parameters) - common


def test_readme_results(tmp_path: Path) -> None:
    code = next(text for language, text, _ in blocks(ROOT / "README.md") if language == "python")
    names: dict[str, object] = {}
    exec(code, names)
    assert np.array_equal(np.asarray(names["y"]), [7, 9, 14])


def rows(text: str, heading: str) -> list[list[str]]:
    """The rows of the table under a heading."""
    lines = text.split(f"\n## {heading}\n")[1].split("\n## ")[0].splitlines()
    table = [line for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def test_table_of_names() -> None:
    found = rows((DOCS / "formats.md").read_text(encoding="utf-8"), "Names")
    assert [row[0].strip("`").partition("(")[0] for row in found] == list(NAMES)
    for name, what, levels in found:
        assert what == NAMES[name.strip("`").partition("(")[0]][2]
        assert levels == f"`{parse_format(name.strip('`'))}`"


def test_table_of_levels() -> None:
    found = rows((DOCS / "formats.md").read_text(encoding="utf-8"), "Level types")
    assert [row[0].strip("`") for row in found] == list(LEVELS)
    for name, stores, _ in found:
        assert stores == (", ".join(level_class(name.strip("`")).arrays) or "nothing")


def test_maps_of_the_formats_page() -> None:
    page = DOCS / "formats.md"
    text = next(text for language, text, _ in blocks(page) if language == "text")
    maps = re.findall(r"^\(i, j\) -> \(.*?\)(?=  +\S|$)", text, re.MULTILINE | re.DOTALL)
    known = ["CSR", "CSC", "COO", "BSR(2,3)", "2:4"]
    assert [parse_format(m) for m in maps] == [parse_format(name) for name in known]


@pytest.mark.parametrize("path", sorted((DOCS / "cookbook").glob("*.md")), ids=lambda p: p.stem)
def test_cookbook_names_files_that_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = [name for name in re.findall(r"`([\w./<>]+/[\w./<>]*)`", text) if "<" not in name]
    assert named
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(path: Path) -> None:
    prose = re.sub(r"`[^`]*`", "", FENCE.sub("", path.read_text(encoding="utf-8")))
    for target in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (path.parent / target).exists(), target
