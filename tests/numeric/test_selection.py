"""The sweep with formats that are chosen: every operand is open, and any legal plan gives the oracle's values."""

from __future__ import annotations

import random
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sparsecc import api
from sparsecc.runtime.compiled_kernel import OperandConverted
from sparsecc.selection.candidate import Ranked
from sparsecc.selection.problem import Problem
from sparsecc.storage.tensor import SparseTensor
from tests.oracle.corpus import ROWS
from tests.sweep import Report, Trial, random_trial, row_trials, run

SHARDS = 4


class Anything:
    """A legal plan by chance."""

    name = "anything"

    def __init__(self, seed: int, used: Counter[str]) -> None:
        self.seed, self.used = seed, used

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        chosen = random.Random(self.seed).choice(problem.candidates)
        self.used.update(fmt for _, fmt in chosen.formats)
        self.used.update(chosen.engines)
        return [Ranked(chosen)]


def by_any_plan(used: Counter[str]) -> Callable[..., Any]:
    """Computes a trial by a plan that its text and its operands draw."""

    def compute(text: str, *, out: str | None, operands: dict[str, Any]) -> Any:
        shapes = [t.shape for t in operands.values()]
        seed = zlib.crc32(f"{text} {out} {shapes}".encode())
        is_open = {name: "*" for name, t in operands.items() if len(t.shape) > 1}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OperandConverted)
            found = api.evaluate(
                text, out=out, operands=operands, formats=is_open, strategy=Anything(seed, used)
            )
        # What a result stores follows from the formats that were chosen; its values do not.
        return found.to_numpy() if isinstance(found, SparseTensor) else found

    return compute


def check(report: Report) -> None:
    assert not report.wrong, f"{len(report.wrong)} wrong, first:\n" + "\n\n".join(report.wrong[:5])


@pytest.mark.parametrize("shard", range(SHARDS))
def test_rows_of_the_corpus(shard: int) -> None:
    used: Counter[str] = Counter()
    trials: list[Trial] = []
    for row in ROWS[shard::SHARDS]:
        pool = list(row_trials(row))
        trials += pool[:: max(1, len(pool) // 12)]
    report = run(trials, by_any_plan(used))
    check(report)
    assert report.refusals.total() < report.cases / 4, report
    assert {"dense", "CSR", "generated"} <= used.keys(), used


@pytest.mark.parametrize("shard", range(SHARDS))
def test_generated_expressions(shard: int) -> None:
    used: Counter[str] = Counter()
    report = run(map(random_trial, range(50_000 + shard, 50_240, SHARDS)), by_any_plan(used))
    check(report)
    assert report.refusals.total() < report.cases / 4, report


@pytest.mark.full
@pytest.mark.parametrize("shard", range(20))
def test_many_generated_expressions(shard: int) -> None:
    check(run(map(random_trial, range(200_000 + shard, 206_000, 20)), by_any_plan(Counter())))
