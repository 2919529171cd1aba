"""What a packing leaves open is taken from the schedule that its kernel will have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsecc as sc


def test_chunks_of_a_residual_are_as_deep_as_the_first_schedule_reads_them() -> None:
    rng = np.random.default_rng(2)
    x, w = sc.Spec((None, None), "f16"), sc.Spec((None, None), "f16", "2:4+CSR")
    kernel: Any = sc.compile("Y[m,n] = X[m,k] * W[n,k]", X=x, W=w, target="sm_90")
    weight = ((rng.random((448, 512)) < 0.5) * rng.standard_normal((448, 512))).astype(np.float16)
    for tokens in (8, 16, 32):
        variant = kernel.variant(tokens, 448, 512)
        steps = int(variant.sized.schedule.split("steps = ")[1].split(",")[0])
        packed = kernel.pack(W=weight, tokens=tokens)
        assert packed.facts["steps"] == steps


def test_sums_of_halves_that_are_transposed_stay_wide() -> None:
    """y[j] sums over the rows of a CSR matrix: in f32 until the end, rounded once."""
    dense = np.zeros((9, 3), np.float16)
    dense[0, 1], dense[1:, 1] = 2048, 1
    a = sc.asarray(dense).to("CSR")
    kernel = sc.compile(
        "y[j] = A[i,j] * x[i]", A=a, x=sc.Spec((None,), "f16"), target="sm_90", interpret=True
    )
    found = kernel(A=a, x=np.ones(9, np.float16))
    assert found[1] == np.float16(2056)


@pytest.mark.parametrize("format", ["CSR", "CSC", "COO", "DCSR"])
def test_an_operand_may_be_read_both_ways(format: str) -> None:
    rng = np.random.default_rng(4)
    dense = ((rng.random((6, 6)) < 0.5) * rng.integers(1, 5, (6, 6))).astype(np.float32)
    s = sc.asarray(dense).to(format)
    kernel: Any = sc.compile(
        "C[i,j] = S[i,j] + S[j,i]", S=s, out="dense", target="sm_90", interpret=True
    )
    for _ in range(2):
        assert np.array_equal(kernel(S=s), dense + dense.T)
    other = sc.asarray(2 * dense).to(format)
    assert np.array_equal(kernel(S=other), 2 * (dense + dense.T))
