"""The sweep: a sample by hash here, all of it in ``make test-all``."""

from __future__ import annotations

import pytest

from tests.oracle.corpus import ROWS
from tests.sweep import Report, Trial, all_row_trials, random_trial, row_trials, run, sample

SEED = 0
SHARDS = 8


def check(report: Report) -> None:
    print(f"seed {SEED}: {report}")
    assert not report.wrong, f"{len(report.wrong)} wrong, first:\n" + "\n\n".join(report.wrong[:5])


def first_choices() -> list[Trial]:
    """Each row in the formats that the corpus names."""
    trials: list[Trial] = []
    for row in ROWS:
        pool = list(row_trials(row))
        trials += [pool[0], pool[-1], pool[len(pool) // 3]]
    return trials


@pytest.mark.parametrize("shard", range(4))
def test_every_row(shard: int) -> None:
    report = run(first_choices()[shard::4])
    check(report)
    assert report.cases >= len(ROWS) * 3 // 4


@pytest.mark.parametrize("shard", range(SHARDS))
def test_rows_in_all_formats(shard: int) -> None:
    """One in so many of all combinations of a row, its operands' formats and its result's."""
    chosen = sample((t for t in all_row_trials()), 110 * SHARDS, shard)
    check(run(chosen))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_generated_expressions(shard: int) -> None:
    check(run(random_trial(SEED + n) for n in range(shard, 800, SHARDS)))


@pytest.mark.full
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.number:02}-{row.name}")
def test_all_formats(row: object) -> None:
    """Every combination; rows of four operands by one in ten."""
    trials = list(row_trials(row))  # pyright: ignore[reportArgumentType] # parametrize types it as object
    check(run(trials if len(trials) <= 4608 else trials[::10]))


@pytest.mark.full
@pytest.mark.parametrize("shard", range(20))
def test_many_generated_expressions(shard: int) -> None:
    check(run(random_trial(100_000 + n) for n in range(shard, 20_000, 20)))
