"""What is installed: the package list, the three links, and an import that stays light."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WINGS = ("dialects", "passes", "backends")


def test_packages_are_those_with_an_init_file() -> None:
    # A forgotten package would be missing from the wheel without a word.
    found = {
        path.parent.relative_to(ROOT).parts
        for folder in ("sparsecc", *WINGS)
        for path in (ROOT / folder).rglob("__init__.py")
    }
    names = {
        ".".join(parts) if parts[0] == "sparsecc" else ".".join(("sparsecc", *parts))
        for parts in found
    }
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed: list[str] = settings["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(names)


@pytest.mark.parametrize("folder", WINGS)
def test_links(folder: str) -> None:
    link = ROOT / "sparsecc" / folder
    assert link.is_symlink()
    assert str(link.readlink()) == f"../{folder}"


@pytest.mark.parametrize("folder", WINGS)
def test_a_bare_import_of_a_folder_is_refused(folder: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert f"import sparsecc.{folder}" in done.stderr


def test_import_is_light() -> None:
    heavy = ["xdsl", "llvmlite", "scipy", "lark", "networkx", "triton", "torch", "rich"]
    code = f"import sparsecc\nimport sys\nprint([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
