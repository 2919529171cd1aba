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
from sparsecc.passes.tiling.row_schedules import (
    Facts,
    sampled_schedules,
    segment_schedules,
    vector_schedules,
)
from tests.rows import PATTERNS, SPMM, SPMV, Array, check, compiled, matrix, random, source, wide

Golden = Callable[[Path, str], None]
GOLDEN = Path(__file__).parent.parent / "backends" / "triton" / "golden"
SWEEPS = (
    {"columns": 64, "positions": 32, "warps": 1},
    {"columns": 128, "positions": 16, "warps": 1},
)
BINS = (
    {"lanes": 256, "warps": 1},
    {"lanes": 512, "warps": 1},
    {"lanes": 512, "warps": 2},
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


@pytest.mark.parametrize("numbers", BINS)
@pytest.mark.parametrize("dtype", ["f16", "f32", "i32"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_entries_are_read_ahead(pattern: str, dtype: str, numbers: Any) -> None:
    a = matrix(pattern, dtype)
    x = random(np.random.default_rng(1), (a.shape[1],), dtype)
    operands = {"A": sc.asarray(a).to("CSR"), "x": x}
    check(with_schedule(SPMV, operands, "row_bins", numbers), wide(a) @ wide(x), dtype)


@pytest.mark.parametrize(("text", "family", "numbers"), [
    (SPMM, "row_segments", {"columns": 64, "positions": 32, "warps": 1}),
    (SPMM, "row_sweeps", SWEEPS[0]), (SPMV, "row_bins", BINS[1]),
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


@pytest.mark.parametrize("packed", [False, True])
def test_one_packing_serves_every_schedule(packed: bool) -> None:
    """Which schedule comes first depends on the matrix, and tuning takes others: tables are there for all."""
    a = matrix("hub", "f32")
    x = random(np.random.default_rng(1), (a.shape[1], 64), "f32")
    operands: dict[str, Any] = {"A": sc.asarray(a).to("CSR"), "X": x}
    kernel = compiled(SPMM, operands)
    if packed:
        operands["A"] = kernel.pack(A=operands["A"])
    check(kernel.call(operands), wide(a) @ wide(x), "f32")
    _, chosen = kernel.prepared(operands)
    (step,) = chosen.plan.tiles
    families = {s.split('"')[1] for s in step.space}
    assert step.schedule == step.space[0] and families == {"row_segments", "row_sweeps"}
    for family in families:
        other = next(s for s in step.space if family in s)
        kernel.adopt(chosen, {"rows0": other})
        check(kernel.call(operands), wide(a) @ wide(x), "f32")
        assert kernel.prepared(operands)[1].plan.tiles[0].schedule == other


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


def test_text_of_sweeps(golden: Golden) -> None:
    schedule = str(ScheduleAttr.of("row_sweeps", SWEEPS[0]))
    made = source(SPMM, "f16", tokens="64", even="true", schedule=schedule)
    golden(GOLDEN / "rows_sweeps.py.txt", made.text)


FIRST = [
    # product, facts (type, columns of X, its rows, length, skewed), what is chosen
    ("spmm", ("f16", 512, 16384, 1024, False), "row_sweeps columns 64 positions 32 warps 1"),
    ("spmm", ("f32", 128, 16384, 512, True), "row_sweeps columns 64 positions 32 warps 1"),
    ("spmm", ("f32", 128, 16384, 128, True), "row_sweeps columns 64 positions 32 warps 1"),
    ("spmm", ("f16", 128, 16384, 128, True), "row_segments columns 128 positions 32 warps 1"),
    ("spmm", ("f16", 64, 16384, 16, True), "row_sweeps columns 64 positions 32 warps 1"),
    ("spmm", ("f32", 512, 16384, 16, True), "row_segments columns 128 positions 32 warps 1"),
    ("spmm", ("f32", 512, 16384, 128, False), "row_segments columns 32 positions 32 warps 1"),
    ("spmm", ("f16", 512, 16384, 16, False), "row_segments columns 256 positions 8 warps 1"),
    ("spmm", ("f16", 64, 16384, 16, False), "row_segments columns 64 positions 32 warps 1"),
    ("spmm", ("f32", 512, 1 << 20, 1024, False), "row_segments columns 256 positions 16 warps 2"),
    ("spmm", ("f64", 512, 4096, 1024, True), "row_segments columns 16 positions 32 warps 1"),
    ("spmm", ("f32", 16, 16384, 1024, True), "row_segments columns 16 positions 32 warps 1"),
    ("spmv", ("f32", 0, 16384, 1024, True), "row_bins lanes 256 warps 1"),
    ("spmv", ("f32", 0, 16384, 16, True), "row_bins lanes 512 warps 2"),
    ("spmv", ("f16", 0, 16384, 2048, False), "row_bins lanes 512 warps 2"),
    ("spmv", ("f32", 0, 16384, 2048, False), "row_bins lanes 512 warps 1"),
    ("spmv", ("f32", 0, 16384, 128, False), "row_groups rows 8 lanes 64 warps 1"),
    ("spmv", ("f32", 0, 16384, 16, False), "row_groups rows 8 lanes 32 warps 1"),
    ("sddmm", ("f16", 64, 16384, 128, True), "sampled_entries entries 32 depth 64 warps 2"),
    ("sddmm", ("f32", 64, 16384, 16, False), "sampled_entries entries 16 depth 64 warps 1"),
    ("sddmm", ("f32", 64, 16384, 128, False), "sampled_rows entries 32 depth 64 warps 1"),
    ("sddmm", ("f16", 256, 16384, 128, False), "sampled_rows entries 8 depth 128 warps 1"),
]  # fmt: skip


@pytest.mark.parametrize(("product", "facts", "expected"), FIRST)
def test_first_choices(product: str, facts: Any, expected: str) -> None:
    space = {"spmm": segment_schedules, "spmv": vector_schedules, "sddmm": sampled_schedules}
    found = space[product](Facts(*facts))
    family, *numbers = expected.split()
    values = dict(zip(numbers[::2], map(int, numbers[1::2]), strict=True))
    assert str(found[0]) == str(ScheduleAttr.of(family, values))
    assert len(found) <= 12 and len(set(map(str, found))) == len(found)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(
    ("text", "family", "numbers", "most"),
    [(SPMM, "row_sweeps", n, 96) for n in SWEEPS] + [(SPMV, "row_bins", n, 80) for n in BINS],
)
def test_schedules_compile(text: str, family: str, numbers: Any, most: int, target: str) -> None:
    schedule = str(ScheduleAttr.of(family, numbers))
    made = source(text, "f16", target=target, tokens="128", even="true", schedule=schedule)
    assert made.text.partition("Schedule ")[2].startswith(family)
    code = compile_source(made, target)
    assert code.spills == 0 and code.registers <= most
    assert code.threads == 32 * numbers["warps"]
