"""The example in docs/selection.md is what the command prints, but for its numbers, and its table of keys is whole."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from sparsecc.cli import main
from sparsecc.explanation.report import explain
from tests.unit.explanation.decisions import linear
from tests.unit.test_cli_programs import output

DOC = Path(__file__).resolve().parents[3] / "docs" / "selection.md"
SECTION = "## Reading an explanation\n"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def section() -> str:
    return DOC.read_text(encoding="utf-8").split(SECTION)[1].split("\n## ")[0]


def masked(text: str) -> list[str]:
    """Lines without their numbers of times, sizes and shares, and without alignment."""
    lines = [re.sub(r"\d[\d.]*", "N", line) for line in text.splitlines()]
    unit = re.compile(r"N( [nmu]?s| [kMGT]?B?| %|x)?(?=[ ,;)/]|$)")
    return [unit.sub("N", " ".join(line.split())) for line in lines]


def test_the_example_is_real(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPARSECC_CALIBRATION", raising=False)
    monkeypatch.setenv("SPARSECC_CACHE", "")  # no rates but those that ship
    found = BLOCK.findall(section())
    code = next(text for language, text in found if language == "python")
    exec("import numpy as np\nrng = np.random.default_rng(0)\n" + code, {})
    command = next(text for language, text in found if language == "sh")
    assert main(shlex.split(command)[1:]) == 0
    printed = capsys.readouterr().out
    assert Path("weights.html").is_file()
    shown = next(text for language, text in found if language == "text")
    if request.config.getoption("--update-golden"):
        whole = DOC.read_text(encoding="utf-8")
        head, _, rest = whole.partition(SECTION)
        rest = rest.replace(f"```text\n{shown}```", f"```text\n{printed}```", 1)
        DOC.write_text(head + SECTION + rest, encoding="utf-8")
        return
    assert masked(shown) == masked(printed), "write it anew with pytest --update-golden"


def keys_said() -> dict[str, set[str]]:
    """The table of keys: by its first column, the names in its second."""
    rows = [line.strip("|").split("|") for line in section().splitlines() if line.startswith("| `")]
    found: dict[str, set[str]] = {}
    for key, what in rows:
        for name in re.findall(r"`([^`]+)`", key):
            found[name] = {w for text in re.findall(r"`([^`]+)`", what) for w in text.split()}
    return found


def test_the_table_of_keys_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    data: dict[str, Any] = json.loads(json.dumps(explain(linear()).to_json()))
    said = keys_said()
    assert {k for k in said if "[" not in k} == set(data)
    assert set(data["plans"][0]) == said["plans"]
    assert set(data["plans"][0]["plan"]) == said["plans[].plan"] - {"--plan", "plan="}
    predicted = data["plans"][0]["predicted"]
    assert set(predicted) | set(predicted["parts"][0]) == said["plans[].predicted"]
    assert set(data["operands"][0]) == said["operands"] - {"format"} | {"format"}
    assert set(data["refusals"][0]) == said["refusals"]
    assert set(data["offers"][0]) == said["offers"]
    assert set(data["rival"]) == said["rival"]
    sizes = data["sizes"]
    assert set(sizes) | set(sizes["rows"][0]) | set(sizes["ranges"][0]) == said["sizes"]
    assert set(data["target"]) | set(data["calibration"]) == said["target"]


def test_help_names_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    said = output(capsys, "explain", "--help")
    assert all(option in said for option in ("--plans", "--steps", "--html", "--json", "--size"))
