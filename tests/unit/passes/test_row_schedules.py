"""Schedules of row kernels that are not the first choice everywhere: against NumPy, their text, their machine code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.backends.triton.load import compile_source
from sparsecc.dialects.tile import ScheduleAttr
from tests.rows import PATTERNS, SPMM, SPMV, Array, check, compiled, matrix, random, source, wide

Golden = Callable[[Path, str], None]
GOLDEN = Path(__file__).parent.parent / "backends" / "triton" / "golden"
SWEEPS = (
    {"columns": 64, "positions": 32, "sums": 0, "warps": 1},
    {"columns": 32, "positions": 32, "sums": 1, "warps": 1},
)
AHEAD = (
    {"lanes": 128, "ahead": 1, "warps": 1},
    {"lanes": 256, "ahead": 1, "warps": 1},
    {"lanes": 512, "ahead": 1, "warps": 2},
)


def with_schedule(text: str, operands: dict[str, Any], family: str, numbers: Any) -> Array:
    """The result of a product with a schedule, which its space has."""
    kernel = compiled(text, operands)
    chosen = str(ScheduleAttr.of(family, numbers))
    _, base = kernel.prepared(operands)
    made = base.scheduled({"rows0": chosen}).with_options(interpret=True)
    assert made.plan.tiles[0].schedule == chosen
    return made.call(operands)


@pytest.mark.parametrize("numbers", SWEEPS)
@pytest.mark.parametrize("dtype", ["f16", "f32", "i32"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_sweeps(pattern: str, dtype: str, numbers: Any) -> None:
    a = matrix(pattern, dtype)
    x = random(np.random.default_rng(1), (a.shape[1], 70), dtype)
    operands = {"A": sc.asarray(a).to("CSR"), "X": x}
    check(with_schedule(SPMM, operands, "row_sweeps", numbers), wide(a) @ wide(x), dtype)


@pytest.mark.parametrize("numbers", AHEAD)
@pytest.mark.parametrize("dtype", ["f16", "f32", "i32"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_entries_are_read_ahead(pattern: str, dtype: str, numbers: Any) -> None:
    a = matrix(pattern, dtype)
    x = random(np.random.default_rng(1), (a.shape[1],), dtype)
    operands = {"A": sc.asarray(a).to("CSR"), "x": x}
    check(with_schedule(SPMV, operands, "row_bins", numbers), wide(a) @ wide(x), dtype)


@pytest.mark.parametrize(("text", "family", "numbers"), [
    (SPMM, "row_segments", {"columns": 64, "positions": 32, "warps": 1}),
    (SPMM, "row_sweeps", SWEEPS[0]), (SPMV, "row_bins", AHEAD[1]),
])  # fmt: skip
def test_elements_that_nothing_is_multiplied_with_do_no_harm(
    text: str, family: str, numbers: Any
) -> None:
    """inf and NaN in places of x where no row has an entry; all programs read whole steps."""
    a = matrix("hub", "f32")
    a[:, 0] = a[:, 41] = 0
    x = random(np.random.default_rng(1), (a.shape[1], 64), "f32")
    x[0], x[41] = np.nan, np.inf
    x = x if text == SPMM else np.ascontiguousarray(x[:, 0])
    operands = {"A": sc.asarray(a).to("CSR"), text.partition("* ")[2][0]: x}
    expected = wide(a) @ wide(np.nan_to_num(x, posinf=0))
    check(with_schedule(text, operands, family, numbers), expected, "f32")


@pytest.mark.parametrize("columns", [64, 96])
def test_known_extents(columns: int) -> None:
    """No mask where all blocks of columns are whole, offsets of 32 bits where they fit."""
    a = matrix("hub", "f32")
    x = random(np.random.default_rng(1), (a.shape[1], columns), "f32")
    stored = sc.asarray(a).to("CSR")
    specs = {"A": sc.Spec(a.shape, "f32", "CSR"), "X": sc.Spec(x.shape, "f32")}
    kernel: Any = sc.compile(SPMM, operands=specs, target="sm_90", interpret=True)
    operands = {"A": stored, "X": x}
    _, base = kernel.prepared(operands)
    seen = 0
    for schedule in base.plan.tiles[0].space:
        if "columns = 64, positions = 32" not in schedule:
            continue
        made = base.scheduled({"rows0": schedule}).with_options(interpret=True)
        check(made.call(operands), wide(a) @ wide(x), "f32")
        text = made.plan.tiles[0].source.text
        assert (f"t < {columns}" in text) == (columns % 64 > 0)
        assert f"* {columns} + t)" in text and "column.to(tl.int64)" not in text
        seen += 1
    assert seen == 2


@pytest.mark.parametrize(
    ("name", "text", "family", "numbers"),
    [("sweeps", SPMM, "row_sweeps", SWEEPS[0]), ("ahead", SPMV, "row_bins", AHEAD[1])],
)
def test_text_of_schedules(golden: Golden, name: str, text: str, family: str, numbers: Any) -> None:
    schedule = str(ScheduleAttr.of(family, numbers))
    made = source(text, "f16", tokens="64", even="true", schedule=schedule)
    golden(GOLDEN / f"rows_{name}.py.txt", made.text)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(
    ("text", "family", "numbers", "most"),
    [(SPMM, "row_sweeps", n, 96) for n in SWEEPS] + [(SPMV, "row_bins", n, 64) for n in AHEAD],
)
def test_schedules_compile(text: str, family: str, numbers: Any, most: int, target: str) -> None:
    schedule = str(ScheduleAttr.of(family, numbers))
    made = source(text, "f16", target=target, tokens="64", even="true", schedule=schedule)
    assert made.text.partition("Schedule ")[2].startswith(family)
    code = compile_source(made, target)
    assert code.spills == 0 and code.registers <= most
    assert code.threads == 32 * numbers["warps"]
