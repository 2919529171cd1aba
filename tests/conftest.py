"""``--update-golden`` writes generated text anew instead of comparing with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

# Thousands of kernels that nobody needs again stay out of the user's cache.
os.environ["SPARSECC_CACHE"] = ""

Golden = Callable[[Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write generated text anew instead of comparing",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare text with a file; a missing file fails as a stale one does."""
    update = bool(request.config.getoption("--update-golden"))

    def check(path: Path, text: str) -> None:
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing; write it with pytest --update-golden"
        assert text == path.read_text(encoding="utf-8"), (
            f"{path.name} is stale; write it anew with pytest --update-golden (make docs)"
        )

    return check
