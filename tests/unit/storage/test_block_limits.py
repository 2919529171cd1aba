"""Formats whose arrays follow from a shape say that they are too large before anything is allocated."""

from __future__ import annotations

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.diagnostics import LimitError
from sparsecc.storage.entries import from_coords

HUGE = (
    "BSR(100000,100000)",
    "BSR(100000000,100000000)",
    "BSR(1,1000000000000)",
    "BSR(1000000000000,1)",
)


@pytest.mark.parametrize("fmt", HUGE)
@pytest.mark.parametrize("stored", ["CSR", "CSC", "COO", "DCSR", "dense", "BSR(2,2)", "BITMAP"])
def test_blocks(stored: str, fmt: str) -> None:
    given = sc.asarray(np.eye(200)).to(stored)
    with pytest.raises(LimitError, match="max_dense_bytes"):
        given.to(fmt)


@pytest.mark.filterwarnings("ignore::sparsecc.runtime.compiled_kernel.OperandConverted")
def test_a_plan_of_them() -> None:
    given, x = sc.asarray(np.eye(200)).to("CSR"), np.ones(200)
    kernel = sc.compile(
        "y[i] = A[i,j] * x[j]", A=given, x=x, plan={"formats": {"A": "BSR(100000,100000)"}}
    )
    with pytest.raises(LimitError, match="1 blocks of shape"):
        kernel(A=given, x=x)


@pytest.mark.parametrize("fmt", ["dense", "ELL", "BITMAP", "2:4"])
def test_other_formats(fmt: str) -> None:
    """One long row, so that ELL pads all others to it."""
    columns = np.arange(1000)
    given = from_coords((np.zeros_like(columns), columns), np.ones(1000), (1_000_000, 1_000_000))
    with pytest.raises(sc.SparseccError):
        given.to(fmt)


def test_blocks_at_the_limit_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    given = sc.asarray(np.kron(np.eye(4), np.ones((8, 8)))).to("CSR")
    monkeypatch.setattr("sparsecc.storage.limits.MAX_DENSE_BYTES", 4 * 64 * 8)
    assert np.array_equal(given.to("BSR(8,8)").to("CSR").to_coords()[0], given.to_coords()[0])
    with pytest.raises(LimitError):
        given.to("BSR(16,16)")
