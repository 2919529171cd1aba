"""A weight that is multiplied by itself is no product of a weight and another tensor."""

from __future__ import annotations

import numpy as np
import pytest

import sparsecc as sc


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("format", ["BITMAP", "BSR(2,2)", "2:4", "2:4+CSR", "CSR"])
def test_sums_of_squares(format: str, dtype: str) -> None:
    dense = np.random.default_rng(3).integers(-3, 4, (8, 12)).astype(dtype)
    dense.reshape(8, 3, 4)[..., 2:] = 0
    a = sc.asarray(dense).to(format)
    expected = (dense.astype(float) ** 2).sum(1)
    for text, wanted in (
        ("y[i] = A[i,j] * A[i,j]", expected),
        ("s = A[i,j] * A[i,j]", expected.sum()),
    ):
        kernel = sc.compile(text, A=a, target="sm_90", interpret=True)
        assert np.allclose(kernel(A=a), wanted)
