"""Arrays and formats that the storage tests share."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from sparsecc.storage.validate import DTYPES

MATRIX_FORMATS = (
    *("dense", "dense:1,0", "CSR", "CSC", "COO", "DCSR", "DCSC", "ELL", "ds", "sd", "ds:1,0"),
    *("BSR(2,2)", "BSR(2,3)", "BSR(5,1)", "CSR@i8/i16", "COO@i16/i8", "CSC@i64/i64", "ELL@i32/i32"),
    *("COO:1,0", "BITMAP", "BITMAP@i64/i64"),
    "(i, j) -> (i : dense, j floordiv 32 : dense, j mod 32 : bitmap)",
    "(i, j) -> (j : dense, i : bitmap)",
    "(i, j) -> (i : bitmap, j : bitmap)",
    "(i, j) -> (i floordiv 2 : bitmap, j floordiv 3 : bitmap, i mod 2 : dense, j mod 3 : dense)",
    "(i, j) -> (i : compressed(nonunique), j : singleton(soa))",
    "(i, j) -> (i : dense, j : loose_compressed)",
    "(i, j) -> (i : batch, j : compressed)",
    "(i, j) -> (j floordiv 2 : compressed, i : compressed, j mod 2 : dense)",
    "(i, j) -> (i floordiv 2 : dense, j floordiv 2 : compressed, "
    "i mod 2 : compressed, j mod 2 : dense)",
)
MATRIX_SHAPES = ((0, 0), (0, 5), (5, 0), (1, 1), (1, 7), (7, 1), (7, 11), (4, 8))
CUBE_FORMATS = (
    *(
        "dense",
        "dense:2,0,1",
        "CSF",
        "CSF(2,0,1)",
        "CSF(1,2,0)",
        "COO(3)",
        "dss",
        "sds",
        "ssd",
        "BITMAP",
    ),
    "(i, j, k) -> (i : dense, j : compressed(nonunique), k : singleton)",
    "(i, j, k) -> (i : batch, j : dense, k : compressed)",
)
CUBE_SHAPES = ((0, 2, 3), (1, 1, 1), (3, 5, 2), (2, 0, 3))
QUAD_FORMATS = ("dense", "CSF(0,1,2,3)", "CSF(3,1,0,2)", "COO(4)", "dsds")
ALL_DTYPES = DTYPES


def sample(
    shape: tuple[int, ...], dtype: str = "float64", density: float = 0.4, seed: int = 0
) -> Any:
    """A dense array with small nonzero integers in places."""
    rng = np.random.default_rng([seed, *shape])
    kind: Any = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    values: Any = rng.integers(1, 100, shape).astype(kind)
    if dtype.startswith("complex"):
        values = values * (1 + 2j)
    return np.where(rng.random(shape) < density, values, 0).astype(kind)


def two_of_four(shape: tuple[int, ...], seed: int = 0) -> Any:
    """A dense array with at most two nonzeros in each aligned four of the last dimension."""
    array = sample(shape, density=0.9, seed=seed)
    array[..., 1::4] = 0
    array[..., 2::4] = 0
    return array


def tiles(there: Any, rows: int, columns: int) -> Any:
    """The entries of each block of a matrix, filled up beyond the edge."""
    grown = [(0, -there.shape[0] % rows), (0, -there.shape[1] % columns)]
    padded = np.pad(there, grown)
    split = (padded.shape[0] // rows, rows, padded.shape[1] // columns, columns)
    return np.count_nonzero(padded.reshape(split), axis=(1, 3))
