"""Extents that 32 bits don't hold, or whose last block they don't: refused, by types at once and else at the call."""

from __future__ import annotations

import pytest

import sparsecc as sc
from sparsecc.backends.triton.launch import Grids, TooLargeArgument, TooLargeGrid
from sparsecc.kernel import LARGEST
from sparsecc.passes.tiling.tile_arguments import TooLargeExtent
from sparsecc.runtime.tile_kernel import TileKernel
from tests.unit.runtime.gpu_doubles import MATMUL, TOTAL

FEW = sc.Spec((4,), "f32")
ENDS = (LARGEST + 1, 2**31 - 1, 2**31, 2**31 + 4096, 2**32 + 4096)


def made(text: str, **operands: sc.Spec) -> TileKernel:
    kernel = sc.compile(text, target="sm_90", operands=operands)
    assert isinstance(kernel, TileKernel)
    return kernel


@pytest.mark.parametrize("n", ENDS)
def test_elementwise(n: int) -> None:
    with pytest.raises(TooLargeExtent, match=f"an extent of {n} .* at most {LARGEST}"):
        made("y[i] = a[i] + b[i]", a=sc.Spec((n,), "i8"), b=sc.Spec((n,), "i8"))
    with pytest.raises(TooLargeExtent, match=str(n)):
        made("y[i,j] = a[i,j] + b[i,j]", a=sc.Spec((n, 4), "i8"), b=sc.Spec((n, 4), "i8"))
    with pytest.raises(TooLargeExtent, match=str(n)):
        made("s = a[i] * b[i]", a=sc.Spec((n,), "i8"), b=sc.Spec((n,), "i8"))


@pytest.mark.parametrize("format", ["dense", "CSR", "DCSR", "COO"])
def test_rows_of_a_matrix(format: str) -> None:
    for n in ENDS[1:3]:
        with pytest.raises(TooLargeExtent, match=str(n)):
            made("y[i] = A[i,j] * x[j]", A=sc.Spec((n, 4), "f32", format), x=FEW)


def test_columns_of_a_dense_operand() -> None:
    for n in ENDS[1:3]:
        a, x = sc.Spec((4, 4), "f32", "CSR"), sc.Spec((4, n), "f32")
        with pytest.raises(TooLargeExtent, match=str(n)):
            made("C[i,k] = A[i,j] * X[j,k]", A=a, X=x)


@pytest.mark.parametrize("format", ["2:4", "2:4+CSR", "BSR(16,16)", "BITMAP"])
def test_tokens(format: str) -> None:
    for n in ENDS[1:3]:
        x, w = sc.Spec((n, 64), "f16"), sc.Spec((64, 64), "f16", format)
        with pytest.raises(TooLargeExtent, match=str(n)):
            made("Y[m,n] = X[m,k] * W[n,k]", X=x, W=w)


def test_the_largest_extents_end_within_32_bits() -> None:
    text = made("y[i] = a[i] + b[i]", a=sc.Spec((LARGEST,), "i8"), b=sc.Spec((LARGEST,), "i8"))
    (programs, *_), _ = Grids(text.plan.tiles[0].source).of(())
    assert LARGEST % programs == 0 and LARGEST // programs <= 4096


def test_open_extents_at_the_call() -> None:
    grids = Grids(TOTAL)
    assert grids.of((LARGEST,))[0] == (LARGEST // 16, 1, 1)
    with pytest.raises(TooLargeArgument, match=f"n is {LARGEST + 1}, at most {LARGEST}"):
        grids.of((LARGEST + 1,))


def test_grids_that_no_gpu_runs() -> None:
    rows = 65536 * 16
    with pytest.raises(TooLargeGrid, match=r"matmul would have \(1, 65536, 1\) programs"):
        Grids(MATMUL).of((16, rows, 64, 64, 64))
    a = sc.Spec((2**30, 2**30), "i8")
    text = made("y[i,j] = a[i,j] + b[i,j]", a=a, b=a)
    with pytest.raises(TooLargeGrid, match="a GPU runs"):
        Grids(text.plan.tiles[0].source).of(())
