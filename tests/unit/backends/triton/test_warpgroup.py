"""Kernels of wgmma.mma_async.sp: their machine code, their arithmetic by a model, what they refuse."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparsecc.backends.triton.contraction import Contraction, EpilogueStep
from sparsecc.backends.triton.legality import LegalityError
from sparsecc.backends.triton.load import compile_source, missing_instructions, sass
from sparsecc.backends.triton.operands import pack_2_4
from sparsecc.backends.triton.warpgroup import NoWarpgroupKernel, emit
from sparsecc.diagnostics import SparseccError
from tests.conftest import Golden
from tests.unit.backends.triton import packing_samples, warpgroup_model

LINEAR = Contraction(
    name="linear",
    comments=("Y[t,n] = X[t,k] * W[n,k]",),
    target="sm_90",
    weight="2:4",
    dtype="f16",
    accumulator="f32",
    out_dtype="f16",
    x_order="tk",
    y_order="tn",
    batched=(False, False),
    aligned=True,
    epilogue=(),
)
SPMM = replace(LINEAR, name="spmm", x_order="kt", y_order="nt")
I8 = replace(LINEAR, dtype="i8", accumulator="i32", out_dtype="i32")
BIAS = replace(
    LINEAR,
    epilogue=(
        EpilogueStep("b", "load", ("bias",)),
        EpilogueStep("c", "cast", ("b", "f32")),
        EpilogueStep("d", "arith.addf", ("acc", "c")),
    ),
    operands=(("bias", "f16", "n"),),
)
Schedule = dict[str, int]
WS = {"warpgroups": 2, "specialised": 1, "row_tiles": 2, "tokens": 128, "steps": 4, "stages": 5}
WIDE = {**WS, "tokens": 192, "steps": 2, "stages": 6}
TALL = {**WS, "warpgroups": 3, "tokens": 64, "stages": 6}
PERSISTENT = {**WS, "programs": 132}
PLAIN = {"warpgroups": 1, "specialised": 0, "row_tiles": 2, "tokens": 128, "steps": 4, "stages": 3}
PAIR = {**PLAIN, "warpgroups": 2, "stages": 4}
SPLIT = {**PLAIN, "row_tiles": 1, "tokens": 64, "steps": 8, "stages": 4, "split": 4}
SPLIT_WS = {**SPLIT, "warpgroups": 2, "specialised": 1}

CASES: list[tuple[str, Contraction, Schedule]] = [
    ("specialised", LINEAR, WS),
    ("wide", LINEAR, WIDE),
    ("tall", LINEAR, TALL),
    ("256", LINEAR, {**WS, "row_tiles": 1, "tokens": 256, "stages": 3}),
    ("persistent", LINEAR, PERSISTENT),
    ("plain", LINEAR, PLAIN),
    ("pair", LINEAR, PAIR),
    ("split", LINEAR, SPLIT),
    ("split-specialised", replace(LINEAR, out_dtype="f32"), SPLIT_WS),
    ("spmm", SPMM, WS),
    ("spmm-wide-bf16", replace(SPMM, dtype="bf16", out_dtype="bf16"), {**WIDE, "stages": 5}),
    ("i8", I8, WS),
    ("i8-split", I8, SPLIT),
    ("bias", BIAS, WS),
    ("batched", replace(LINEAR, batched=(True, True)), WS),
    ("batched-split", replace(SPMM, batched=(True, False)), SPLIT),
]


OFTEN = ("specialised", "split", "spmm", "i8")


@pytest.mark.parametrize(
    ("contraction", "schedule"),
    [
        pytest.param(c, s, id=name, marks=() if name in OFTEN else pytest.mark.full)
        for name, c, s in CASES
    ],
)
def test_machine_code(contraction: Contraction, schedule: Schedule) -> None:
    source = emit(contraction, schedule)
    done = compile_source(source, "sm_90")
    assert missing_instructions(done) == []
    code = sass(done.cubin)
    owners = schedule["warpgroups"] if schedule["specialised"] else 1
    loops = owners * schedule["steps"] * schedule["row_tiles"]
    assert len(re.findall(r"\b[HI]GMMA\.SP\.64x", code)) == loops
    # One wait a chunk: more would mean that ptxas serialised the instructions.
    assert code.count("WARPGROUP.DEPBAR") == owners
    # Two registers are put aside before the loop where three sums of 96 leave no more.
    assert done.spills <= (8 if schedule["tokens"] == 192 else 0)
    assert len(re.findall(r"\b(LDL|STL)\b", code)) <= done.spills // 4
    assert "LDG.E.NA.128" in code
    # The assembly relies on X's stages at the begin of shared memory: every barrier lies above them.
    stage_bytes = schedule["steps"] * 64 * schedule["tokens"] * schedule["stages"]
    offsets = barrier_offsets(done.ptx)
    assert offsets and min(offsets) >= stage_bytes
    assert done.shared <= 227 * 1024


def barrier_offsets(ptx: str) -> list[int]:
    """Where barriers lie in shared memory."""
    value = {"global_smem": 0}
    found: list[int] = []
    for line in ptx.splitlines():
        if m := re.match(r"\s*mov\.b32\s+(%r\d+), global_smem;", line):
            value[m[1]] = 0
        if m := re.match(r"\s*add\.s32\s+(%r\d+), (%r\d+), (\d+);", line):
            if m[2] in value:
                value[m[1]] = value[m[2]] + int(m[3])
        if m := re.search(r"mbarrier\.init\.shared::cta\.b64 \[(%r\d+)\]", line):
            found.append(value[m[1]])
    return found


@pytest.mark.parametrize(
    ("dtype", "order", "tokens", "steps", "row_tiles"),
    [
        ("f16", "tk", 128, 4, 2),
        ("bf16", "tk", 192, 2, 2),
        ("f16", "kt", 128, 4, 2),
        ("bf16", "kt", 192, 4, 1),
        ("f16", "kt", 64, 8, 1),
        ("i8", "tk", 64, 4, 2),
        ("i8", "tk", 128, 2, 1),
    ],
)
def test_a_chunk_by_the_model(
    dtype: str, order: str, tokens: int, steps: int, row_tiles: int
) -> None:
    """The generated assembly on packed weights and swizzled X is the product, its tail included."""
    base = I8 if dtype == "i8" else replace(LINEAR, dtype=dtype, out_dtype=dtype)
    schedule = {**PLAIN, "tokens": tokens, "steps": steps, "row_tiles": row_tiles, "stages": 2}
    text = emit(replace(base, x_order=order), schedule).text
    columns = warpgroup_model.constant(text, "COLUMNS")
    rng = np.random.default_rng(7)
    rows, k = (
        64 * row_tiles - 20,
        columns + 68,
    )  # the last chunk has one full unit and one of 4 columns at most
    w = packing_samples.two_of_four(rng, rows, k, dtype)
    x = packing_samples.random(rng, (tokens - 3, k), dtype)
    packed = pack_2_4(w).arrays["packed"]
    across, tiles = -(-k // 64), -(-rows // 16)
    total = np.zeros((tokens, 64 * row_tiles))
    parts = tokens // 64
    for chunk in range(-(-k // columns)):
        registers = warpgroup_model.load(text, packed, tiles, 0, chunk * columns // 64, across)
        shared = warpgroup_model.fill(text, x, chunk * columns, order == "kt")
        sums = warpgroup_model.multiply(text, registers, shared, dtype)
        for i, piece in enumerate(sums):
            tile, part = divmod(i, parts)
            total[64 * part : 64 * part + 64, 64 * tile : 64 * tile + 64] += warpgroup_model.piece(
                text, piece
            )
    expected = x.astype(np.float64) @ w.astype(np.float64).T
    np.testing.assert_allclose(total[: tokens - 3, :rows], expected, rtol=1e-12, atol=1e-9)


def test_text(golden: Golden) -> None:
    here = Path(__file__).parent / "golden"
    golden(here / "warpgroup_specialised.py.txt", emit(BIAS, WS).text)
    golden(here / "warpgroup_split.py.txt", emit(SPMM, {**SPLIT, "tokens": 64}).text)


def test_work_and_grid() -> None:
    names: dict[str, object] = {}
    text = emit(LINEAR, {**SPLIT_WS, "split": 3}).text
    exec(text[text.index("def grid") :], names)
    grid, work = names["grid"], names["work"]
    assert callable(grid) and callable(work)
    sizes = {"M": 65, "N": 129, "K": 64, "ldx": 64, "ldy": 129}
    assert grid(**sizes) == (2 * 2 * 3, 1, 1)
    assert work(**sizes) == {"partial": 4 * 3 * 128 * 64 * 4, "counters": 4 * 2 * 4}


@pytest.mark.parametrize(
    ("contraction", "schedule", "error", "words"),
    [
        (replace(LINEAR, target="sm_80"), WS, NoWarpgroupKernel, "sm_80"),
        (replace(LINEAR, target="sm_100"), WS, NoWarpgroupKernel, "sm_100"),
        (replace(LINEAR, weight="2:4+CSR"), WS, NoWarpgroupKernel, "2:4\\+CSR"),
        (replace(LINEAR, aligned=False), WS, NoWarpgroupKernel, "multiples of 16 bytes"),
        (replace(I8, x_order="kt"), WS, NoWarpgroupKernel, "contiguous along k"),
        (replace(LINEAR, batched=(False, True)), WS, NoWarpgroupKernel, "batch"),
        (LINEAR, {**WS, "tokens": 96}, LegalityError, "tokens is 96"),
        (LINEAR, {**WS, "steps": 8}, LegalityError, "more values"),
        (LINEAR, {**WS, "tokens": 256}, LegalityError, "registers of a thread"),
        (LINEAR, {**WS, "warpgroups": 3}, LegalityError, "registers of a thread"),
        (
            LINEAR,
            {**TALL, "row_tiles": 1, "tokens": 256, "steps": 2},
            LegalityError,
            "start with 128",
        ),
        (LINEAR, {**WS, "stages": 9}, LegalityError, "shared memory"),
        (LINEAR, {**PLAIN, "programs": 132}, LegalityError, "copies ahead"),
        (LINEAR, {**WS, "ahead": 2}, LegalityError, "no meaning"),
        (LINEAR, {k: v for k, v in WS.items() if k != "stages"}, LegalityError, "stages"),
    ],
)
def test_refusals(
    contraction: Contraction, schedule: Schedule, error: type[SparseccError], words: str
) -> None:
    with pytest.raises(error, match=words) as refused:
        emit(contraction, schedule)
    assert refused.value.help
