"""2:4 weights whose last group of four is not whole: never packed, computed on the general path."""

from __future__ import annotations

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.runtime.tile_kernel import TileKernel

W = np.array([[1, 2, 0, 0, 3, 0], [0, 0, 1, 5, 0, 7], [0, 0, 0, 0, 0, 0]], "f2")


@pytest.mark.parametrize("format", ["2:4", "2:4+CSR"])
@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
@pytest.mark.filterwarnings("ignore:operand")
def test_columns_that_are_no_multiple_of_four(format: str, target: str) -> None:
    x = np.random.default_rng(0).random((5, 6)).astype("f2")
    kernel = sc.compile(
        "Y[m,n] = X[m,k] * W[n,k]",
        X=sc.Spec((5, 6), "f16"),
        W=sc.Spec((3, 6), "f16", format),
        target=target,
        interpret=True,
    )
    assert isinstance(kernel, TileKernel)
    assert "the weight has 6 columns, and only whole groups of four are packed" in kernel.explain()
    found = kernel(X=x, W=sc.asarray(W).to(format))
    assert np.allclose(found, x.astype("f4") @ W.T.astype("f4"), rtol=2e-3)
