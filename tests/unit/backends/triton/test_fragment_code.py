"""Kernels on packed weights as machine code: the instructions they promise, registers, barriers."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any
from zlib import crc32

import pytest

from sparsecc.backends.triton import ring, staged
from sparsecc.backends.triton.compile_process import compile_many
from sparsecc.backends.triton.contraction import EpilogueStep
from sparsecc.backends.triton.epilogue_text import BINARY, UNARY
from sparsecc.backends.triton.load import missing_instructions, sass
from sparsecc.diagnostics import SparseccError
from sparsecc.kernel import TileSource
from tests.unit.backends.triton.contractions import (
    SUM,
    SUM_FACTS,
    Changes,
    biased,
    linear,
    made,
)

SCHEDULES: dict[str, tuple[Any, str, Changes]] = {
    "ring 8": (ring, "2:4", {"steps": 8}),
    "ring 16 tokens": (ring, "2:4", {"tokens": 16, "split": 2}),
    "ring seven tiles": (ring, "2:4", {"tiles": 7, "warps": 8, "steps": 8, "ahead": 1}),
    "ring split": (ring, "2:4", {"tiles": 1, "warps": 1, "split": 4, "splitk": 2}),
    "sum": (ring, SUM, {}),
    "sum seven tiles": (ring, SUM, {"tiles": 7, "warps": 8, "tokens": 16}),
    "staged": (staged, "2:4", {"tiles": 4, "warps": 4, "stages": 6, "splitk": 2}),
    "staged wide": (
        staged,
        "2:4",
        {"tiles": 8, "tokens": 64, "warps": 2, "token_warps": 2, "group": 8},
    ),
}
VARIANTS = {
    "plain": linear(),
    "bf16 epilogue": biased(dtype="bf16", out_dtype="f32", y_order="nt"),
    "i8": linear(dtype="i8"),
    "columns": linear(x_order="kt"),
    "elements": linear(aligned=False),
    "batches": biased(batched=(True, True), x_order="kt", y_order="nt"),
}
ALL = [
    (target, schedule, variant)
    for target, schedule, variant in product(("sm_80", "sm_90", "sm_100"), SCHEDULES, VARIANTS)
    if not (variant == "i8" and SCHEDULES[schedule][1] == SUM)
]


def sources(target: str, wanted: list[tuple[str, str, str]]) -> list[tuple[str, TileSource]]:
    found: list[tuple[str, TileSource]] = []
    for _, schedule, variant in wanted:
        writer, kind, changes = SCHEDULES[schedule]
        c = replace(VARIANTS[variant], target=target, weight=kind)
        if kind == SUM:
            c = replace(c, facts=SUM_FACTS)
        found.append((f"{schedule}, {variant}", made(writer, c, changes)))
    return found


def compile_and_look(target: str, wanted: list[tuple[str, str, str]]) -> None:
    named = sources(target, wanted)
    for (name, source), compiled in zip(
        named, compile_many([s for _, s in named], target), strict=True
    ):
        assert not isinstance(compiled, SparseccError), (name, compiled)
        assert not missing_instructions(compiled), name
        assert compiled.spills == 0, (name, compiled.registers)
        assert compiled.registers <= 255
        code = sass(compiled.cubin)
        assert not re.search(r"\b(LDL|STL)\b", code), name
        if "ring" in name or "sum" in name:
            assert re.search(r"LDG\.E\.(EF\.)?128", code), name
        # One barrier a round or stage; what follows the loop are the sums'.
        loop = re.search(r"for (round|stage) in range\((?:.*\n)*?\n", source.text)
        assert loop and loop.group(0).count("thread_barrier") == 1, name


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_machine_code(target: str) -> None:
    some = [a for a in ALL if a[0] == target and crc32(repr(a).encode()) % 32 == 0]
    some += [(target, "ring 8", "plain"), (target, "ring 8", "i8"), (target, "sum", "plain")]
    compile_and_look(target, sorted(set(some)))


@pytest.mark.full
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_machine_code_of_all(target: str) -> None:
    compile_and_look(target, [a for a in ALL if a[0] == target])


def test_loops_have_no_barrier_but_those_of_the_text() -> None:
    """Triton sees no access to shared memory in the loop, so it puts no barrier there."""
    named = [
        made(ring, linear(), {}),
        made(ring, linear(weight=SUM, facts=SUM_FACTS), {}),
        made(staged, linear(), {}),
    ]
    for compiled in compile_many(named, "sm_90"):
        assert not isinstance(compiled, SparseccError)
        lines = compiled.ptx.splitlines()
        labels = {
            line.partition(":")[0]: i
            for i, line in enumerate(lines)
            if re.match(r"\$L__BB\w+:", line)
        }
        loops = [
            lines[labels[found.group(1)] : i]
            for i, line in enumerate(lines)
            if (found := re.search(r"bra\S*\s+(\$L__BB\w+);", line)) and labels[found.group(1)] < i
        ]
        hot = [loop for loop in loops if any("mma.sp" in line for line in loop)]
        assert len(hot) == 1
        assert sum("bar.sync" in line for line in hot[0]) == 1


def test_every_scalar_operation_compiles() -> None:
    steps: list[EpilogueStep] = []
    last = "acc"
    for i, op in enumerate([*UNARY, *BINARY]):
        if not op.endswith("i"):
            steps.append(EpilogueStep(f"s{i}", op, (last,) if op in UNARY else (last, "acc")))
            last = f"s{i}"
    steps.append(EpilogueStep("less", "arith.cmpf", ("olt", last, "acc")))
    steps.append(EpilogueStep("end", "arith.select", ("less", last, "acc")))
    whole = [
        s
        for s in steps
        if "f" in s.op.rpartition(".")[2] or s.op.startswith("math") or s.dest == "end"
    ]
    c = linear(epilogue=tuple(whole))
    (compiled,) = compile_many([made(staged, c, {})], "sm_90")
    assert not isinstance(compiled, SparseccError), compiled
