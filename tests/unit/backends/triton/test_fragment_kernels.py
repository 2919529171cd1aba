"""Kernels on packed weights: what their texts compute, by a model of the instructions, and what they compile to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from sparsecc.backends.triton import ring, staged
from sparsecc.backends.triton.contraction import Contraction, EpilogueStep
from sparsecc.backends.triton.epilogue_text import COMPARE
from sparsecc.backends.triton.legality import LegalityError
from sparsecc.diagnostics import UnsupportedError
from sparsecc.kernel import TileSource
from tests.conftest import Golden
from tests.unit.backends.triton import gluon_model
from tests.unit.backends.triton.contractions import (
    RING,
    STAGED,
    SUM,
    SUM_FACTS,
    Changes,
    biased,
    check,
    linear,
    made,
)

GOLDEN = Path(__file__).parent / "golden"

# Tokens, rows, columns: one unit; odd everything; more parts of K than there is work.
CASES: list[tuple[str, Any, Contraction, Changes, tuple[int, int, int]]] = [
    ("one token", ring, linear(), {}, (1, 16, 64)),
    ("least K", ring, linear(aligned=False), {}, (2, 3, 4)),
    ("spare warps", ring, linear(), {"tiles": 3, "warps": 4}, (5, 50, 584)),
    ("split", ring, linear(), {"split": 2, "splitk": 3}, (9, 40, 1096)),
    ("idle parts", ring, biased(), {"splitk": 7}, (9, 20, 264)),
    ("narrow tile of X", ring, linear(), {"warps": 8, "tiles": 5, "ahead": 1, "steps": 2}, (8, 90, 136)),
    ("columns of X", ring, linear(x_order="kt"), {"tokens": 16}, (24, 40, 300)),
    ("columns of X, 8", ring, linear(x_order="kt"), {"ahead": 1}, (8, 16, 260)),
    ("columns of X, 32", ring, linear(x_order="kt"), {"tokens": 32}, (40, 16, 260)),
    ("elements of columns", ring, linear(x_order="kt", aligned=False), {"tokens": 16}, (13, 16, 260)),
    ("elements of rows", ring, linear(aligned=False, dtype="bf16"), {"tokens": 16}, (13, 16, 260)),
    ("int8", ring, linear(dtype="i8"), {}, (8, 16, 512)),
    ("int8 columns", ring, linear(dtype="i8", x_order="kt", y_order="nt"), {}, (5, 18, 532)),
    ("int8 result", ring, linear(dtype="i8", out_dtype="i8", aligned=False), {}, (5, 18, 532)),
    ("epilogue", ring, biased(y_order="nt"), {"splitk": 2}, (5, 18, 528)),
    ("batches", ring, linear(dtype="bf16", out_dtype="f32", batched=(True, True)), {}, (11, 18, 136)),
    ("one weight", ring, linear(batched=(True, False)), {"splitk": 2}, (5, 18, 328)),
    ("sum", ring, linear(weight=SUM), {}, (8, 32, 256)),
    ("sum, tails", ring, linear(weight=SUM), {"tiles": 3, "warps": 4, "split": 2, "splitk": 2}, (11, 70, 808)),
    ("sum, batches", ring, linear(weight=SUM, batched=(True, True)), {"steps": 8}, (3, 20, 296)),
    ("sum, bf16", ring, linear(weight=SUM, dtype="bf16", aligned=False), {"tokens": 16}, (3, 20, 300)),
    ("staged", staged, linear(), {}, (8, 32, 512)),
    ("staged, least K", staged, linear(aligned=False), {}, (2, 3, 4)),
    (
        "staged, groups", staged, linear(),
        {"tiles": 4, "tokens": 32, "token_warps": 2, "steps": 2, "stages": 4, "splitk": 2, "group": 2}, (70, 90, 840),
    ),
    ("staged, columns", staged, linear(x_order="kt"), {"tokens": 64, "token_warps": 2}, (72, 20, 260)),
    ("staged, int8", staged, linear(dtype="i8"), {"stages": 2}, (9, 32, 528)),
    ("staged, int8 columns", staged, linear(dtype="i8", x_order="kt", y_order="nt"), {"splitk": 2}, (9, 32, 520)),
    ("staged, epilogue", staged, biased(aligned=False), {"tokens": 16, "splitk": 3}, (9, 33, 516)),
    ("staged, batches", staged, linear(batched=(True, True), dtype="bf16"), {"group": 3}, (20, 33, 512)),
]  # fmt: skip


@pytest.mark.parametrize("late", [True, False], ids=["late", "at once"])
@pytest.mark.parametrize(
    ("name", "writer", "c", "changes", "sizes"), CASES, ids=[c[0] for c in CASES]
)
def test_texts_compute_the_contraction(
    name: str,
    writer: Any,
    c: Contraction,
    changes: Changes,
    sizes: tuple[int, int, int],
    late: bool,
) -> None:
    schedule = {**(RING if writer is ring else STAGED), **changes}
    check(writer, c, schedule, sizes, late=late, seed=crc32(name.encode()))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(150))
def test_texts_compute_random_contractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pick: Any = rng.choice
    aligned = bool(rng.random() < 0.6)
    dtype = str(pick(["f16", "bf16", "i8"]))
    order = str(pick(["tk", "kt"]))
    c = linear(
        dtype=dtype,
        aligned=aligned,
        x_order=order,
        y_order=str(pick(["tn", "nt"])),
        weight=SUM if dtype != "i8" and rng.random() < 0.4 else "2:4",
    )
    m, n, k = (int(rng.integers(1, high)) for high in (40, 70, 300))
    k *= 4
    if aligned:
        each = 16 if dtype == "i8" else 8
        m, k = (m, -(-k // each) * each) if order == "tk" else (-(-m // each) * each, k)
    writer, schedule = random_schedule(rng, c)
    while not legal(writer, c, schedule):
        writer, schedule = random_schedule(rng, c)
    check(writer, c, schedule, (m, n, k), late=bool(rng.random() < 0.5), seed=seed)


def random_schedule(rng: np.random.Generator, c: Contraction) -> tuple[Any, dict[str, int]]:
    def pick(*numbers: int) -> int:
        return int(rng.choice(numbers))

    splitk = pick(1, 1, 2, 3)
    if c.weight == SUM or rng.random() < 0.5:
        warps = pick(1, 2, 4)
        return ring, {
            "tiles": int(rng.integers(1, warps + 1)), "warps": warps, "split": pick(1, 2, 4), "steps": pick(4, 8),
            "ahead": pick(1, 2, 4), "tokens": pick(8, 16, 32), "splitk": splitk,
        }  # fmt: skip
    warps, token_warps = pick(1, 2), pick(1, 2)
    return staged, {
        "tiles": warps * pick(1, 2), "tokens": 8 * token_warps * pick(1, 2), "warps": warps, "splitk": splitk,
        "token_warps": token_warps, "steps": pick(2, 4), "stages": pick(2, 3, 5), "group": pick(1, 2),
    }  # fmt: skip


def legal(writer: Any, c: Contraction, schedule: dict[str, int]) -> bool:
    """Whether a kernel has it, with as many entries in a chunk as there may be."""
    facts = (("steps", schedule["steps"]), ("entries", 64 * schedule["steps"]))
    try:
        writer.shape(replace(c, facts=facts), schedule)
    except LegalityError:
        return False
    return True


@pytest.mark.parametrize("index", ["", "n", "t", "tn", "nt", "b", "bn", "bt", "btn", "bnt"])
def test_operands_of_the_epilogue(index: str) -> None:
    steps = (EpilogueStep("e", "load", ("e", index)), EpilogueStep("r", "arith.mulf", ("acc", "e")))
    c = linear(
        out_dtype="f32",
        batched=("b" in index, False),
        epilogue=steps,
        operands=(("e", "f32", index),),
    )
    check(ring, c, RING, (11, 21, 136), finish=np.multiply)


def test_an_operand_with_its_batch_inside() -> None:
    c = linear(
        batched=(True, False),
        epilogue=(EpilogueStep("e", "load", ("e", "nb")),),
        operands=(("e", "f32", "nb"),),
    )
    with pytest.raises(UnsupportedError, match="'nb'"):
        made(ring, c, {})


@pytest.mark.parametrize("predicate", COMPARE)
def test_comparisons_of_the_epilogue(predicate: str) -> None:
    """On NaN too: unordered predicates answer yes."""
    a, b = (gluon_model.tensor(v, np.float32) for v in ([1, 2, 3, np.nan], [2, 2, 2, 2]))
    got = eval(COMPARE[predicate].format("a", "b"), {"a": a, "b": b})
    kind = {
        "eq": "f t f",
        "ne": "t f t",
        "lt": "t f f",
        "le": "t t f",
        "gt": "f f t",
        "ge": "f t t",
    }
    kind |= {"ne": "t f t", "rd": "t t t"}
    want = [letter == "t" for letter in kind[predicate[-2:]].split()]
    if predicate in kind or predicate[0] == "s":  # of integers
        got = got[:3]
    else:
        want.append(predicate[0] == "u")
    assert list(got) == want


class Broken:
    """A writer whose text has an error."""

    def __init__(self, writer: Any, old: str, new: str) -> None:
        self.writer, self.old, self.new = writer, old, new

    def emit(self, c: Contraction, schedule: dict[str, int]) -> TileSource:
        source = self.writer.emit(c, schedule)
        assert self.old in source.text
        return replace(source, text=source.text.replace(self.old, self.new))


@pytest.mark.parametrize(
    ("writer", "late", "old", "new"),
    [
        (ring, True, "        wait_copies(lane_index)\n", ""),
        (ring, False, "x_base + (1 - odd_round) * X_BYTES", "x_base + odd_round * X_BYTES"),
        (ring, True, "(x_row & 7)", "0"),
        (ring, True, "mask=here, other=0x44444444", "mask=True"),
        (staged, True, "cp.async.wait_group 1;", "cp.async.wait_group 2;"),
        (staged, False, "free = slot\n", "free = gl.where(slot == STAGES - 1, 0, slot + 1)\n"),
    ],
)
def test_the_model_sees_errors(writer: Any, late: bool, old: str, new: str) -> None:
    with pytest.raises(AssertionError):
        check(
            Broken(writer, old, new),
            linear(),
            RING if writer is ring else STAGED,
            (8, 33, 584),
            late=late,
        )


def test_text_of_a_ring(golden: Golden) -> None:
    golden(GOLDEN / "ring_2_4.py.txt", made(ring, biased(), {"steps": 8, "splitk": 2}).text)


def test_text_of_a_ring_with_a_residual(golden: Golden) -> None:
    c = linear(weight=SUM, facts=SUM_FACTS, comments=("Y[t,n] = X[t,k] * W[n,k]", "W: 2:4+CSR"))
    golden(GOLDEN / "ring_sum.py.txt", made(ring, c, {"tiles": 7, "warps": 8}).text)


def test_text_of_stages(golden: Golden) -> None:
    c = linear(x_order="kt", y_order="nt", batched=(True, False))
    golden(GOLDEN / "staged_2_4.py.txt", made(staged, c, {"group": 8, "tokens": 32}).text)


@pytest.mark.parametrize(
    ("writer", "c", "changes", "fact", "remedy"),
    [
        (ring, linear(), {"tiles": 3}, "3 row tiles need as many warps", "warps 4"),
        (ring, linear(), {"tokens": 12}, "tokens is 12", "1, 2, 4, 8"),
        (ring, linear(), {"tokens": 4}, "tokens is 4", "8, 16, 32, 64"),
        (ring, linear(), {"steps": 6}, "steps is 6", "2, 4, 8, 16"),
        (ring, linear(), {"warps": 16, "split": 4}, "64 warps", "at most 32"),
        (ring, linear(), {"splitk": 0}, "splitk is 0", "1 or more"),
        (ring, linear(), {"stages": 3}, "no meaning for 'stages'", "tiles, warps"),
        (ring, linear(), {"tokens": 64, "tiles": 1, "warps": 1, "split": 8, "steps": 4}, "524288 bytes", "smaller"),
        (ring, linear(), {"ahead": 8, "steps": 8}, "registers or more", "smaller ahead"),
        (ring, linear(target="sm_75"), {}, "sm_75 has no mma.sp kernels", "sm_80"),
        (ring, linear(weight=SUM), {}, "chunks of None", "steps None"),
        (ring, linear(weight=SUM, facts=(("steps", 8), ("entries", 9))), {}, "chunks of 8", "give steps 8"),
        (ring, linear(weight=SUM, dtype="i8"), {}, "16 bits", "2:4 or dense"),
        (ring, linear(weight="CSR"), {}, "the weight is CSR", "2:4 and 2:4+CSR"),
        (staged, linear(weight=SUM), {}, "the weight is 2:4+CSR", "ring"),
        (staged, linear(), {"tiles": 1}, "2 warps have 1 row tiles", "tiles 2"),
        (staged, linear(), {"token_warps": 2}, "2 warps have 8 tokens", "tokens 16"),
        (staged, linear(), {"tiles": 16, "tokens": 256}, "registers for its sums", "more warps"),
        (staged, linear(target="sm_80"), {"tokens": 128, "token_warps": 4, "stages": 12}, "sm_80 has 166912", "fewer"),
    ],
)  # fmt: skip
def test_illegal_schedules(
    writer: Any, c: Contraction, changes: Changes, fact: str, remedy: str
) -> None:
    with pytest.raises(LegalityError) as caught:
        made(writer, c, changes)
    assert fact in caught.value.message and remedy in caught.value.help


def test_a_missing_parameter() -> None:
    with pytest.raises(LegalityError, match="no parameter 'warps'"):
        ring.emit(linear(), {"tiles": 1})


def test_an_operation_that_no_epilogue_has() -> None:
    c = linear(epilogue=(EpilogueStep("r", "arith.remf", ("acc", "acc")),))
    with pytest.raises(UnsupportedError, match="arith.remf"):
        made(ring, c, {})


def test_a_launch_covers_everything() -> None:
    """The grid along rows is folded where one axis has no room for it."""
    space: dict[str, Any] = {}
    text = made(ring, linear(), {"splitk": 2}).text
    exec(text[text.index("def grid") :], space)
    sizes = {"M": 17, "N": 32 * 40000 + 1, "K": 4, "ldx": 4, "ldy": 9}
    assert space["grid"](**sizes) == (6, 32768, 2)
    assert space["work"](**sizes) == {
        "partial": 3 * 65536 * 2 * 8 * 32 * 4,
        "counters": 3 * 65536 * 4,
    }
