"""Matrices of sparse rows and products with them, for the tests of row kernels."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp

import sparsecc as sc
from sparsecc import driver
from sparsecc.formats.row_tables import PART
from sparsecc.kernel import TileSource
from sparsecc.pipeline import run_passes
from sparsecc.runtime.tile_kernel import TileKernel
from tests.tiles import tile_sources

Array = Any
SPMM = "C[i,j] = A[i,k] * X[k,j]"
SPMV = "y[i] = A[i,k] * x[k]"
SDDMM = "C[i,j] = A[i,j] * U[i,k] * V[j,k]"
KINDS: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "i8": np.int8, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
PASSES: list[tuple[str, dict[str, str]]] = [
    ("generalize-named-ops", {}), ("select-formats", {}), ("row-contractions", {}),
]  # fmt: skip
LIMITS = {"f16": 4e-3, "bf16": 3e-2, "f32": 1e-5, "f64": 1e-12}
PATTERNS: dict[str, tuple[int, int, float, int]] = {
    # rows, columns, density, entries of one row
    "uniform": (21, 34, 0.3, 0),
    "sparse": (70, 40, 0.03, 0),
    "hub": (40, 2 * PART + 70, 0.004, 2 * PART + 70),
    "one row": (1, 9, 0.5, 0),
    "no entries": (5, 6, 0.0, 0),
    "no rows": (0, 6, 0.0, 0),
}


def matrix(name: str, dtype: str, seed: int = 0) -> Array:
    """A dense matrix of a pattern; every third row of it is empty."""
    rows, columns, density, hub = PATTERNS[name]
    rng = np.random.default_rng(seed)
    kept = rng.random((rows, columns)) < density
    kept[2::3] = False
    if hub:
        kept[1, :hub] = True
    return np.where(kept, random(rng, (rows, columns), dtype), 0).astype(KINDS[dtype])


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    if dtype.startswith("i"):
        return rng.integers(1, 5, shape).astype(KINDS[dtype])
    return (rng.random(shape) + 0.1).astype(KINDS[dtype]) * rng.choice([-1, 1], shape).astype(
        KINDS[dtype]
    )


def wide(a: Array) -> Array:
    return a.astype(np.int64 if a.dtype.kind == "i" else np.float64)


def compiled(text: str, operands: dict[str, Any], out: str | None = None) -> TileKernel:
    kernel = sc.compile(text, operands=operands, out=out, target="sm_90", interpret=True)
    assert isinstance(kernel, TileKernel)
    assert [t.launch.kernel for t in kernel.plan.tiles] == ["rows0"]
    return kernel


def check(found: Array, expected: Array, dtype: str) -> None:
    assert found.dtype == KINDS[dtype] and found.shape == expected.shape
    if dtype.startswith("i"):
        assert np.array_equal(found, expected.astype(KINDS[dtype]))
        return
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    assert np.abs(found.astype(np.float64) - expected).max(initial=0) <= scale * LIMITS[dtype]


def specs(text: str, dtype: str, width: int) -> tuple[tuple[str, driver.OperandSpec], ...]:
    return tuple(
        (
            name,
            driver.OperandSpec(
                (None,) * (rank.count(",") + 1),
                dtype,
                f"CSR@i{width}/i{width}" if name == "A" else "dense",
            ),
        )
        for name, rank in re.findall(r"(\w)\[([^\]]*)\]", text.partition("=")[2])
    )


def matched(text: str, dtype: str = "f32", width: int = 32, **options: str) -> ModuleOp:
    out = "CSR" if text == SDDMM else None
    module = driver.front(driver.Request("expression", text, specs(text, dtype, width), out))
    names: list[tuple[str, dict[str, str]]] = [
        ("generalize-named-ops", {}), ("select-formats", {}), ("row-contractions", options),
    ]  # fmt: skip
    return run_passes(module, names, verify=True)


def source(text: str, dtype: str = "f32", width: int = 32, **options: str) -> TileSource:
    (found,) = tile_sources(
        matched(text, dtype, width, **options), options.get("target", "sm_90")
    ).values()
    return found
