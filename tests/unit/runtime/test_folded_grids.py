"""More programs than the second and third axis of a grid have room for: all of them stand along the first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.backends.triton.launch import Grids
from sparsecc.kernel import TileSource
from sparsecc.runtime import tile_sizes
from sparsecc.runtime.tile_kernel import TileKernel
from tests.rows import matrix
from tests.unit.runtime.gpu_doubles import Library, Machine, torch

SPMM = "C[i,k] = A[i,j] * X[j,k]"
BATCHES = "Y[b,m,n] = X[b,m,k] * W[n,k]"


def source(text: str, **operands: sc.Spec) -> TileSource:
    kernel = sc.compile(text, target="sm_90", operands=operands)
    assert isinstance(kernel, TileKernel)
    return kernel.plan.tiles[0].source


def meeting(text: str, **operands: Any) -> TileKernel:
    """A kernel for open extents that meets extents for which axes are too short."""
    specs = {n: sc.Spec((None,) * len(s), d, f) for n, (s, d, f) in operands.items()}
    kernel = sc.compile(text, target="sm_90", interpret=True, operands=specs)
    assert isinstance(kernel, TileKernel)
    return kernel


def test_batches() -> None:
    x = sc.Spec((70000, 16, 64), "f16")
    for format in ("BSR(16,16)", "BITMAP"):
        made = source(BATCHES, X=x, W=sc.Spec((64, 64), "f16", format))
        (programs, y, z), _ = Grids(made).of(())
        assert (y, z) == (1, 1) and programs % 70000 == 0


def test_columns() -> None:
    made = source(SPMM, A=sc.Spec((None, 4), "f32", "CSR"), X=sc.Spec((4, 20_000_000), "f32"))
    numbers = {"segment_count": 4, "slot_count": 0}
    grids = Grids(made)
    words = [numbers[name.partition("_")[2]] if "count" in name else 4 for name in grids.names]
    (programs, y, z), _ = grids.of(tuple(words))
    assert (y, z) == (1, 1) and programs >= 4 * 20_000_000 // 512


def test_few_programs_stand_along_three_axes() -> None:
    x = sc.Spec((3, 16, 64), "f16")
    made = source(BATCHES, X=x, W=sc.Spec((64, 64), "f16", "BSR(16,16)"))
    assert Grids(made).of(())[0] == (4, 1, 3)


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("pattern", ["uniform", "hub"])
def test_products_of_sparse_rows(
    monkeypatch: pytest.MonkeyPatch, pattern: str, short: bool
) -> None:
    if short:
        monkeypatch.setattr(tile_sizes, "GRID", (2**31 - 1, 1, 1))
    a = matrix(pattern, "f32")
    x = np.random.default_rng(1).random((a.shape[1], 300)).astype("f4")
    kernel = meeting(SPMM, A=(a.shape, "f32", "CSR"), X=(x.shape, "f32", None))
    tensor = sc.asarray(a).to("CSR")
    for _ in range(2):  # counters are left at zero
        assert np.allclose(kernel(A=tensor, X=x), a.astype("f8") @ x, rtol=1e-4, atol=1e-3)
    (made,) = kernel.variants.values()
    assert ("tl.program_id(1)" in made.source) is not short


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("format", ["BSR(16,16)", "BITMAP"])
def test_products_of_tiles(monkeypatch: pytest.MonkeyPatch, format: str, short: bool) -> None:
    if short:
        monkeypatch.setattr(tile_sizes, "GRID", (2**31 - 1, 1, 1))
    rng = np.random.default_rng(2)
    w = np.where(rng.random((80, 64)) < 0.2, rng.random((80, 64)), 0).astype("f2")
    x = rng.random((3, 70, 64)).astype("f2")
    kernel = meeting(BATCHES, X=(x.shape, "f16", None), W=(w.shape, "f16", format))
    found = kernel(X=x, W=sc.asarray(w).to(format))
    assert np.allclose(found, x.astype("f4") @ w.T.astype("f4"), rtol=2e-3, atol=2e-3)
    (made,) = kernel.variants.values()
    assert ("tl.program_id(2)" in made.source) is not short


def test_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_sizes, "GRID", (2**31 - 1, 1, 1))
    library = Library()
    specs = {"A": sc.Spec((None, None), "f32", "CSR"), "X": sc.Spec((None, None), "f32")}
    kernel = sc.compile(SPMM, target="sm_90", operands=specs)
    assert isinstance(kernel, TileKernel)
    kernel._machine = Machine(library)  # pyright: ignore[reportPrivateUsage]
    a, x = torch.eye(3), torch.rand(3, 600)
    csr = a.to_sparse_csr()
    a32 = torch.sparse_csr_tensor(
        csr.crow_indices().int(), csr.col_indices().int(), csr.values(), size=(3, 3)
    )
    assert torch.equal(kernel(A=a32, X=x), x)
    ((_, (programs, y, z), _),) = library.launches
    assert programs > 3 and programs % 3 == 0 and (y, z) == (1, 1)
