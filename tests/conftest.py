"""``--update-golden`` writes generated text anew instead of comparing with it. Tests of a GPU are skipped, a module at
a time, where there is none."""

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


def no_gpu() -> str | None:
    """Why there is no GPU here; None where the driver has one, or the system has a device that it does not find."""
    from sparsecc.backends.triton.cuda import GpuAbsent, cuda

    try:
        cuda()
    except GpuAbsent as error:
        return None if Path("/dev/nvidia0").exists() else error.message
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of modules whose tests need a GPU, where there is none, one test is left, which is skipped with the reason."""
    if "gpu" not in str(config.option.markexpr) or "not gpu" in config.option.markexpr:
        return
    if (reason := no_gpu()) is None:
        return
    first: dict[Path, pytest.Item] = {}
    left, dropped = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        if item.get_closest_marker("gpu") is None:
            left.append(item)
        elif item.path in first:
            dropped.append(item)
        else:
            first[item.path] = item
            item.add_marker(pytest.mark.skip(reason=f"all tests of a GPU in this module: {reason}"))
            left.append(item)
    items[:] = left
    config.hook.pytest_deselected(items=dropped)
