"""Every format on a GPU: random products against float64, on poisoned memory, launched again and again.

``SPARSECC_GPU_REPORT=FILE`` appends a line a format: cases, wrong ones, seconds of all workers together.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from time import perf_counter

import pytest

from tests.gpu.cases import GROUPS, Program, programs, run
from tests.gpu.workers import Submit

pytestmark = pytest.mark.gpu

PROGRAMS, CASES = 20, 10
"""200 cases a format."""


def job(program: Program, count: int) -> list[str]:
    start = perf_counter()
    found = list(run(program, "cuda", count))
    return [*found, f"seconds {perf_counter() - start}"]


@pytest.fixture(scope="module")
def jobs(submit: Submit, request: pytest.FixtureRequest) -> Mapping[str, list[Future[list[str]]]]:
    """The work of all selected groups, given to the workers at once."""
    chosen = [
        group for group in GROUPS
        if any(item.name == f"test_format[{group}]" for item in request.session.items)
    ]  # fmt: skip
    return {g: [submit(job, p, CASES) for p in programs(g, PROGRAMS)] for g in chosen}


@pytest.mark.parametrize("group", GROUPS)
def test_format(group: str, jobs: Mapping[str, list[Future[list[str]]]]) -> None:
    texts = [text for future in jobs[group] for text in future.result()]
    seconds = sum(float(text.split()[1]) for text in texts if text.startswith("seconds "))
    cases = [text for text in texts if not text.startswith("seconds ")]
    wrong = [text for text in cases if text]
    report = os.environ.get("SPARSECC_GPU_REPORT")
    if report:
        line = {
            "format": group,
            "cases": len(cases),
            "wrong": len(wrong),
            "seconds": round(seconds, 1),
        }
        with Path(report).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    assert not wrong, f"{len(wrong)} of {len(cases)}\n" + "\n".join(wrong[:12])
    assert len(cases) == PROGRAMS * CASES
