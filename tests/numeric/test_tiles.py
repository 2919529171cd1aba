"""The sweep on the GPU path: tile kernels in Triton's interpreter against the oracle.

Schedules with blocks of two and four make every loop take several steps on small operands; the first is the default.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from sparsecc.diagnostics import UnsupportedError
from sparsecc.formats import parse_format
from sparsecc.passes.tiling.tile_arguments import SparseResult
from sparsecc.storage.entries import from_coords
from tests import tiles
from tests.oracle.corpus import ROWS, Row
from tests.sweep import Trial, problem, random_trial, row_trials, sample

SCHEDULES: tuple[dict[str, str], ...] = (
    {},
    {"rows": "2", "columns": "2", "positions": "2", "sums": "2", "late": "0"},
    {"rows": "1", "columns": "4", "positions": "1", "sums": "1"},
    {"rows": "4", "columns": "1", "positions": "4", "sums": "1"},
    {"rows": "2", "columns": "4", "positions": "1", "sums": "2"},
    {"rows": "1", "columns": "2", "positions": "1", "sums": "1", "split": "3"},
)
SHARDS = 4


def check(trials: Iterator[Trial], refused: type[Exception] | tuple[()] = ()) -> int:
    """How many trials ran; all must be right."""
    done = 0
    for trial in trials:
        schedule = SCHEDULES[trial.seed % len(SCHEDULES)]
        try:
            found = problem(trial, partial(tiles.evaluate, schedule=schedule))
        except refused:
            continue
        assert not found, f"{trial} {schedule}\n{found}"
        done += 1
    return done


def claimed(row: Row) -> Iterator[Trial]:
    """The trials of a row that a GPU kernel is claimed for: dense results in every format of the operands."""
    for trial in row_trials(row):
        if trial.out == "dense":
            yield trial


def patterns(row: Row) -> Iterator[Trial]:
    """Trials whose result is stored where the only sparse operand is, which is A if there is one."""
    for trial in row_trials(row):
        sparse = [f for f in trial.formats.values() if f != "dense"]
        if sparse == [trial.out] and trial.formats.get("A", trial.out) == trial.out:
            yield trial


def all_claimed() -> Iterator[Trial]:
    for row in ROWS:
        yield from claimed(row)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_row(shard: int) -> None:
    """Three trials of each row."""
    for row in ROWS[shard::SHARDS]:
        pool = list(claimed(row))
        assert check(iter((pool[0], pool[-1], pool[len(pool) // 3]))) == 3


@pytest.mark.parametrize("shard", range(SHARDS))
def test_rows_in_all_formats(shard: int) -> None:
    assert check(sample(all_claimed(), 499 * SHARDS, shard)) > 1


@pytest.mark.parametrize("name", ["scale", "sddmm", "sddmm_t", "row_scale", "diag_both"])
def test_results_in_the_format_of_an_operand(name: str) -> None:
    row = next(r for r in ROWS if r.name == name)
    trials = [t for t in patterns(row) if t.out in ("SV", "CSR", "CSC", "DCSR", "COO", "BSR(2,2)")]
    assert check(iter(trials)) == len(trials) > 0


@pytest.mark.parametrize("name", ["spmm", "sddmm", "spmv", "add2", "mttkrp"])
@pytest.mark.parametrize("kind", ["f16", "bf16", "i8", "u8", "bool"])
def test_element_types(name: str, kind: str) -> None:
    row = next(r for r in ROWS if r.name == name)
    trials = [
        replace(t, dtypes=dict.fromkeys(t.dtypes, kind))
        for t in claimed(row)
        if set(t.formats.values()) <= {"dense", "CSR", "CSF"}
    ]
    assert check(iter(trials[-2:])) == len(trials[-2:])


def test_random_expressions() -> None:
    """Generated expressions; a sparse temporary is refused, and complex numbers are."""
    trials = (replace(random_trial(n), out="dense") for n in range(32))
    kept = (t for t in trials if "c128" not in t.dtypes.values())
    assert check(kept, UnsupportedError) > 15


def test_sums_of_halves_are_kept_in_f32() -> None:
    ones = np.ones((1, 4099), np.float16)
    found = tiles.evaluate("y[i] = A[i,j] * x[j]", out="dense", operands={"A": ones, "x": ones[0]})
    # Summed in f16 it would stop at 2048.
    assert found[0] == np.float16(4099)


def test_long_rows_take_several_chunks() -> None:
    rng = np.random.default_rng(5)
    full = np.where(rng.random((9, 700)) < 0.3, rng.standard_normal((9, 700)), 0.0)
    matrix = from_coords(np.nonzero(full), full[full != 0], full.shape, parse_format("CSR"))
    x = rng.standard_normal((700, 33))
    found = tiles.evaluate("C[i,j] = A[i,k] * X[k,j]", out="dense", operands={"A": matrix, "X": x})
    assert np.allclose(found, full @ x)


@pytest.mark.full
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.number:02}-{row.name}")
def test_all_formats(row: object) -> None:
    """Every combination of formats with a dense result, rows of four operands by one in ten; and patterns."""
    trials = list(claimed(row))  # pyright: ignore[reportArgumentType] # parametrize types it as object
    assert check(iter(trials if len(trials) <= 600 else trials[::10]))
    check(sample(patterns(row), 5), SparseResult)  # pyright: ignore[reportArgumentType]
