"""Tensors of torch without elements, and tensors whose rows overlap."""

from __future__ import annotations

from typing import Any

import pytest

import sparsecc as sc
from sparsecc.runtime.tile_kernel import TileKernel
from tests.unit.runtime.gpu_doubles import Library, Machine, torch
from tests.unit.runtime.test_gpu_programs import two_of_four


def csr(dense: Any) -> Any:
    found = dense.to_sparse_csr()
    return torch.sparse_csr_tensor(
        found.crow_indices().int(), found.col_indices().int(), found.values(), size=dense.shape
    )


def run(text: str, out: str | None = None, **operands: Any) -> Any:
    specs = {
        name: sc.Spec((None,) * t.ndim, "f32", "CSR" if "csr" in str(t.layout) else None)
        for name, t in operands.items()
    }
    kernel = sc.compile(text, target="sm_90", interpret=True, operands=specs, out=out)
    assert isinstance(kernel, TileKernel)
    return kernel.call(operands)


SPMM = "C[i,k] = A[i,j] * X[j,k]"


@pytest.mark.parametrize(("rows", "inner", "columns"), [(3, 4, 0), (0, 4, 2), (3, 0, 2), (3, 0, 0)])
@pytest.mark.parametrize("sparse", [False, True])
def test_products_without_elements(rows: int, inner: int, columns: int, sparse: bool) -> None:
    a = torch.ones(rows, inner)
    found = run(SPMM, A=csr(a) if sparse else a, X=torch.ones(inner, columns))
    assert torch.equal(found, torch.zeros(rows, columns))


def test_sampled_products_of_width_zero() -> None:
    a = csr(torch.eye(4)[:3])
    for text, v in (
        ("C[i,j] = A[i,j] * U[i,k] * V[j,k]", torch.zeros(4, 0)),
        ("C[i,j] = A[i,j] * U[i,k] * V[k,j]", torch.zeros(0, 4)),
    ):
        found = run(text, "CSR", A=a, U=torch.zeros(3, 0), V=v)
        assert torch.equal(found.values(), torch.zeros(3))
        assert torch.equal(found.crow_indices(), a.crow_indices())


def test_elements_of_a_tensor_without_any() -> None:
    empty = torch.zeros(4, 0)
    assert run("C[i,j] = A[i,j] + B[i,j]", A=empty, B=empty).shape == (4, 0)


@pytest.mark.parametrize(
    ("x", "bulk"),
    [
        (torch.zeros(512, 64).half(), True),
        (torch.zeros(1, 64).half().expand(512, 64), False),
        (torch.zeros(8 * 511 + 64).half().as_strided((512, 64), (8, 1)), False),
        (torch.zeros(512, 0).half(), False),
    ],
)
def test_rows_that_bulk_copies_can_not_read(x: Any, bulk: bool) -> None:
    specs = {"X": sc.Spec((None, None), "f16"), "W": sc.Spec((None, None), "f16", "2:4")}
    kernel = sc.compile("Y[m,n] = X[m,k] * W[n,k]", target="sm_90", operands=specs)
    assert isinstance(kernel, TileKernel)
    kernel._machine = Machine(Library())  # pyright: ignore[reportPrivateUsage]
    weight = kernel.pack(W=two_of_four(4096, x.shape[1]))
    _, variant = kernel.prepared({"X": x, "W": weight})
    kinds = [kind for _, kind in variant.plan.tiles[0].source.arguments]
    assert any(kind.startswith("tensordesc") for kind in kinds) is bulk
