"""The sweep on a GPU: expressions in random formats and types against the oracle."""

from __future__ import annotations

import pytest

from tests.gpu.trials import check, generated, whole_sweep
from tests.gpu.workers import Submit
from tests.sweep import Trial

pytestmark = pytest.mark.gpu

PART = 6


def results(submit: Submit, trials: list[Trial]) -> list[str]:
    jobs = [submit(check, trials[n : n + PART]) for n in range(0, len(trials), PART)]
    return [text for job in jobs for text in job.result()]


def test_claimed_expressions(submit: Submit) -> None:
    trials = list(whole_sweep())
    found = results(submit, trials)
    wrong = [text for text in found if text]
    assert not wrong, f"{len(wrong)} of {len(trials)}\n" + "\n\n".join(wrong[:8])
    assert len(found) == len(trials) > 250


def test_generated_expressions(submit: Submit) -> None:
    found = results(submit, list(generated(96)))
    wrong = [text for text in found if text and not text.startswith("refused: ")]
    assert not wrong, f"{len(wrong)} of {len(found)}\n" + "\n\n".join(wrong[:8])
    assert sum(not text for text in found) > len(found) // 2
