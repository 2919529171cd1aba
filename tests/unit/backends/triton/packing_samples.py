"""Weights for the packing tests, and products of packed units by the instruction model."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tests.unit.backends.triton import instructions as model

AnyArray = npt.NDArray[Any]
KINDS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8}
WORDS = {"f16": 288, "bf16": 288, "i8": 160}
SHAPES = ((16, 64), (1, 4), (5, 12), (17, 68), (48, 128), (33, 132), (70, 260))


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> AnyArray:
    return (rng.standard_normal(shape) * 25).astype(KINDS[dtype])


def two_of_four(rng: np.random.Generator, rows: int, columns: int, dtype: str) -> AnyArray:
    """At most two nonzeros in each group of four, anywhere in it."""
    w = random(rng, (rows, columns // 4, 4), dtype)
    order = np.argsort(rng.random(w.shape), axis=-1)
    kept = rng.choice([0, 1, 2], size=w.shape[:2], p=[0.1, 0.2, 0.7])
    w[np.argsort(order, axis=-1) >= kept[..., None]] = 0
    return w.reshape(rows, columns)


def bits(a: AnyArray) -> AnyArray:
    return a.view(f"u{a.dtype.itemsize}")


def same_bits(a: AnyArray, b: AnyArray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(bits(a), bits(b))


def padded(x: AnyArray, rows: int, columns: int) -> AnyArray:
    out = np.zeros((rows, columns), dtype=x.dtype)
    out[: x.shape[0], : x.shape[1]] = x
    return out


def unit_registers(units: AnyArray, dtype: str) -> tuple[model.Registers, model.Registers]:
    """Values [..., steps, 32, 4] and metadata [..., 32] of units, as a kernel loads them."""
    words = model.lanes_of(units)
    steps = 1 if dtype == "i8" else 2
    return (
        words[..., : steps * 128].reshape(*words.shape[:-1], steps, 32, 4),
        words[..., steps * 128 :],
    )


def product(units: AnyArray, x: AnyArray, dtype: str) -> npt.NDArray[np.float64]:
    """``x @ w.T`` by mma.sp over units [row tiles, k units, words]; x is tokens x k."""
    tiles, across, _ = units.shape
    tokens = -(-x.shape[0] // 8) * 8
    x = padded(x, tokens, across * 64)
    values, metadata = unit_registers(units, dtype)
    out = np.zeros((tiles * 16, tokens))
    steps = values.shape[2]
    depth = 64 // steps
    for token in range(0, tokens, 8):
        for k in range(across):
            for step in range(steps):
                at = k * 64 + step * depth
                b = model.b_registers(x[token : token + 8, at : at + depth].T, dtype)
                a, m = values[:, k, step], metadata[:, k]
                d = (
                    model.mma_sp_m16n8k64(a, b, m)
                    if dtype == "i8"
                    else model.mma_sp_m16n8k32(a, b, m, step, dtype)
                )
                out[:, token : token + 8] += model.rows_of(d).reshape(-1, 8)
    return out.T
