"""Contractions for the tests of the kernel writers, their operands, and what they must give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc.backends.triton.contraction import Contraction, EpilogueStep
from sparsecc.backends.triton.operands import pack_2_4, pack_sum_2_4
from sparsecc.kernel import TileSource
from tests.unit.backends.triton import gluon_model
from tests.unit.backends.triton.packing_samples import KINDS, random, two_of_four

AnyArray = npt.NDArray[Any]
Finish = Callable[..., AnyArray]
RING = {"tiles": 2, "warps": 2, "split": 1, "steps": 4, "ahead": 2, "tokens": 8, "splitk": 1}
STAGED = {
    "tiles": 2, "tokens": 8, "warps": 2, "token_warps": 1, "steps": 4, "stages": 3, "splitk": 1, "group": 1,
}  # fmt: skip
SUM = "2:4+CSR"
SUM_FACTS = (("steps", 4), ("entries", 60))
Changes = Mapping[str, Any]
NUMPY: dict[str, Any] = {**KINDS, "f32": np.float32, "i32": np.int32}
BIAS = EpilogueStep("bias", "load", ("bias", "n"))
WIDE = EpilogueStep("wide", "cast", ("bias", "f32"))
ADDED = EpilogueStep("sum", "arith.addf", ("acc", "wide"))
ZERO = EpilogueStep("zero", "constant", ("0.0",))
RELU = EpilogueStep("relu", "arith.maximumf", ("sum", "zero"))


def linear(**changes: Any) -> Contraction:
    """A linear layer in f16, and what a test changes of it."""
    base = Contraction(
        name="linear",
        comments=("Y[t,n] = X[t,k] * W[n,k]", "W: 2:4"),
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
    if changes.get("dtype") == "i8":
        base = replace(base, accumulator="i32", out_dtype="i32")
    return replace(base, **changes)


def biased(**changes: Any) -> Contraction:
    """The same with a bias along rows and a relu."""
    return linear(
        epilogue=(BIAS, WIDE, ADDED, ZERO, RELU), operands=(("bias", "f16", "n"),), **changes
    )


def biased_relu(sums: AnyArray, bias: AnyArray) -> AnyArray:
    return np.maximum(sums + bias, 0)


def _spread(operand: AnyArray, index: str) -> AnyArray:
    """An operand of the epilogue as [b, t, n]."""
    order = [index.index(letter) for letter in "btn" if letter in index]
    shape = [slice(None) if letter in index else None for letter in "btn"]
    return operand.astype(np.float64).transpose(order)[tuple(shape)]


def packed(c: Contraction, w: AnyArray, steps: int) -> tuple[Contraction, dict[str, AnyArray]]:
    """The weight's arrays, and the contraction with the facts of its packing."""
    if c.weight == "2:4":
        return c, {"packed": pack_2_4(w).arrays["packed"]}
    operand = pack_sum_2_4(w, steps=steps)
    facts = tuple(operand.facts.items())
    return replace(c, facts=facts), {key: operand.arrays[key] for key in ("packed", "offsets")}


def weight(c: Contraction, rng: np.random.Generator, batches: int, rows: int, k: int) -> AnyArray:
    if c.weight == "2:4":
        w = two_of_four(rng, batches * rows, k, c.dtype)
    else:
        w = random(rng, (batches * rows, k), c.dtype) * (rng.random((batches * rows, k)) < 0.5)
        w = w.astype(KINDS[c.dtype])
    return w.reshape(batches, rows, k)


def check(
    writer: Any,
    c: Contraction,
    schedule: dict[str, int],
    sizes: tuple[int, int, int],
    *,
    late: bool = True,
    seed: int = 0,
    finish: Finish | None = None,
) -> TileSource:
    """Run a kernel's text by the model, twice, on poisoned results, and compare with float64."""
    m, n, k = sizes
    rng = np.random.default_rng(seed)
    batches = 2 if c.batched[0] else 1
    wide = rng.random() < 0.5  # rows of X and Y further apart than they are long
    w = weight(c, rng, batches if c.batched[1] else 1, n, k)
    shape = w.shape if c.batched[1] else w.shape[1:]
    c, arrays = packed(c, w.reshape(shape), schedule["steps"])
    source = writer.emit(c, schedule)
    x = random(rng, (batches, m, k), c.dtype)
    x_rows = x if c.x_order == "tk" else np.swapaxes(x, 1, 2)
    ldx = x_rows.shape[2] + (16 if wide else 0)
    stored = np.zeros((batches, x_rows.shape[1], ldx), x.dtype)
    if c.dtype == "i8":
        stored[:] = 77
    else:
        stored[:] = np.nan
    stored[:, :, : x_rows.shape[2]] = x_rows
    extents = {"b": batches, "t": m, "n": n}
    operands = {
        name: rng.standard_normal([extents[letter] for letter in index]).astype(NUMPY[dtype])
        for name, dtype, index in c.operands
    }
    ys = (batches, m, n) if c.y_order == "tn" else (batches, n, m)
    ldy = ys[2] + (3 if wide else 0)
    integers = {"M": m, "N": n, "K": k, "ldx": ldx, "ldy": ldy}
    if c.batched[0]:
        integers |= {"batches": batches, "x_batch": stored[0].size, "y_batch": ys[1] * ldy}
    exact = x.astype(np.float64) @ np.swapaxes(w.astype(np.float64), 1, 2)
    if c.epilogue:
        on_tile = [_spread(operands[name], index) for name, _, index in c.operands]
        exact = (finish or biased_relu)(exact, *on_tile)
    want = exact if c.y_order == "tn" else np.swapaxes(exact, 1, 2)
    arrays |= {"x": stored, **{f"e_{name}": operand for name, operand in operands.items()}}
    for name, size in gluon_model.work(source, integers).items():
        arrays[name] = np.zeros(size // 4, np.int32)
        if name == "partial":
            arrays[name] = np.full(size // 4, np.nan, np.float32)
            if c.accumulator == "i32":
                arrays[name] = np.full(size // 4, -7, np.int32)
    for _ in range(2):
        y = np.full((batches, ys[1], ldy), 99, NUMPY[c.out_dtype])
        gluon_model.run(source, {**arrays, "y": y}, integers, late)
        got = y[:, :, : ys[2]].astype(np.float64)
        if c.out_dtype == "i8":
            want = want.astype(np.int64).astype(np.int8).astype(np.float64)
        bound = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-5}.get(c.out_dtype, 0)
        scale = np.abs(want).max() + 1
        assert np.abs(got - want).max() <= bound * scale, (schedule, sizes)
        assert (y[:, :, ys[2] :].astype(np.float64) == 99).all(), "stored beyond the rows of Y"
        assert not arrays.get("counters", np.zeros(1)).any(), "a counter is not left at zero"
    return source


def made(writer: Any, c: Contraction, changes: Changes) -> TileSource:
    return writer.emit(c, {**(RING if writer.FAMILY == "ring" else STAGED), **changes})
