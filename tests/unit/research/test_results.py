"""The page of results says what the command gives."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from sparsecc.bench.report import BEGIN, END
from sparsecc.cli import main
from sparsecc.cli.research_options import RESULTS_PAGE
from sparsecc.research import results

PAGE = Path(__file__).parents[3] / RESULTS_PAGE


@cache
def made() -> str:
    return results.markdown()


def test_the_page_is_what_the_command_gives() -> None:
    """All but how long choosing took. After a change: sparsecc research results --docs"""
    text = PAGE.read_text(encoding="utf-8")
    held = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    assert results.numbers(held.strip()) == results.numbers(made().strip())


def test_what_is_compared() -> None:
    """Each strategy's mean and worst regret are among it, the seconds of choosing are not."""
    row = next(line for line in made().splitlines() if line.startswith("| roofline |"))
    cells = row.split(" | ")
    assert len(cells) == 14 and cells[3].endswith("%") and cells[6].endswith("%")
    heads = "| strategy | choosing |\n|---|---|\n"
    slow, fast = (results.numbers(f"{heads}| a | {t} |\n\nb | c |") for t in ("1 ms", "2 s"))
    assert slow == fast and slow[-1] == "b | c |"
    assert results.numbers(f"{heads}| b | 1 ms |") != slow[:3]


def test_all_parts_are_there() -> None:
    for part in (
        "## CPU", "## NVIDIA Hopper", "## Across targets", "* machine: ", "* commit: ", "* date: ",
        "by family", "predictions by kernel family", "conversions spread over calls", "where it loses most",
        "against one plan for all",
        *(f"`{results.command_of(target)}`" for target in ("cpu", "sm_90")),
    ):  # fmt: skip
        assert part in made(), part
    for name in results.STRATEGIES:
        assert made().count(f"\n| {name} |") == 2


def test_pages_are_filled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "markdown", lambda: "**numbers**\n")
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    assert main(["research", "results", "--docs", str(page)]) == 0
    assert page.read_text() == f"before\n\n{BEGIN}\n\n**numbers**\n\n{END}\n\nafter\n"
    page.write_text("no markers")
    assert main(["research", "results", "--docs", str(page)]) == 1
    assert page.read_text() == "no markers"
    assert main(["research", "results", "--docs", str(tmp_path / "none.md")]) == 1
    assert "can't be read" in capsys.readouterr().err
    assert main(["research", "results"]) == 0
    assert capsys.readouterr().out == "**numbers**\n"
