"""Tables beside matrices of sparse rows: made once while positions live, shared by matrices and by kernels."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.backends.triton.operands import pack_stored
from sparsecc.runtime import row_operands

torch: Any = import_module("torch")  # its types are incomplete
SPMM = "C[i,j] = A[i,k] * X[k,j]"


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    """The tables that are kept."""
    kept: dict[Any, Any] = {}
    monkeypatch.setattr(row_operands, "_MADE", kept)
    return kept


def csr() -> Any:
    return (torch.rand(9, 12) * (torch.rand(9, 12) < 0.4)).to_sparse_csr()


def kernel_of(text: str = SPMM, **specs: Any) -> Any:
    specs = specs or {
        "A": sc.Spec((None, None), "f32", "CSR@i64/i64"),
        "X": sc.Spec((None, None), "f32"),
    }
    return sc.compile(text, operands=specs, target="sm_90", interpret=True)


def test_matrices_that_share_positions_share_tables(made: dict[Any, Any]) -> None:
    kernel, a, x = kernel_of(), csr(), torch.rand(12, 16)
    assert torch.allclose(kernel(A=a, X=x), a.to_dense() @ x, atol=1e-5)
    ((_, first),) = made.values()
    other = torch.sparse_csr_tensor(a.crow_indices(), a.col_indices(), 2 * a.values(), size=a.shape)
    assert torch.allclose(kernel(A=other, X=x), 2 * a.to_dense() @ x, atol=1e-5)
    assert torch.allclose(kernel_of()(A=other, X=x), 2 * a.to_dense() @ x, atol=1e-5)
    assert [tables for _, tables in made.values()] == [first]
    kernel(A=csr(), X=x)
    gc.collect()
    assert len(made) == 1  # those of the last matrix went with it


def test_tables_go_with_the_positions(made: dict[Any, Any]) -> None:
    kernel, a = kernel_of(), csr()
    kernel(A=a, X=torch.rand(12, 4))
    assert len(made) == 1
    del a
    gc.collect()
    assert not made and not kernel.gpu_slots["A"].kept


def test_values_that_change_in_place_are_seen() -> None:
    kernel, a, x = kernel_of(), csr(), torch.rand(12, 16)
    first = kernel(A=a, X=x)
    a.values().mul_(2)
    assert torch.equal(kernel(A=a, X=x), 2 * first)


def test_stored_arrays_get_tables_too() -> None:
    a = np.where(np.random.default_rng(0).random((9, 12)) < 0.4, 1.5, 0).astype(np.float32)
    tensor = sc.asarray(a).to("CSR@i32/i32")
    kernel = kernel_of(A=tensor, X=sc.Spec((None, None), "f32"))
    x = np.ones((12, 3), np.float32)
    for operand in (tensor, pack_stored(tensor), kernel.pack(A=tensor)):
        assert np.allclose(kernel(A=operand, X=x), a @ x)
    coo = sc.asarray(a).to("COO")
    with pytest.warns(UserWarning, match="COO converted to CSR"):
        assert np.allclose(kernel(A=coo, X=x), a @ x)


def test_two_kernels_read_one_matrix_each_with_its_tables(made: dict[Any, Any]) -> None:
    text = """
#CSR = #sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : compressed), posWidth = 64, crdWidth = 64 }>
func.func @main(%A: tensor<?x?xf32, #CSR>, %X: tensor<?x?xf32>, %v: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %m = tensor.dim %A, %0 : tensor<?x?xf32, #CSR>
  %n = tensor.dim %X, %1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %C = linalg.matmul ins(%A, %X : tensor<?x?xf32, #CSR>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  %g = tensor.empty(%m) : tensor<?xf32>
  %h = linalg.fill ins(%z : f32) outs(%g : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.matvec ins(%A, %v : tensor<?x?xf32, #CSR>, tensor<?xf32>) outs(%h : tensor<?xf32>) -> tensor<?xf32>
  return %C, %y : tensor<?x?xf32>, tensor<?xf32>
}
"""
    kernel: Any = sc.compile_mlir(text, target="sm_90", interpret=True)
    assert [t.packs for t in kernel.plan.tiles] == [((0, "CSR-segments"),), ((0, "CSR-bins"),)]
    a, x, v = csr(), torch.rand(12, 16), torch.rand(12)
    for operand in (a, kernel.pack(A=a)):
        c, y = kernel(A=operand, X=x, v=v)
        assert torch.allclose(c, a.to_dense() @ x, atol=1e-5)
        assert torch.allclose(y, a.to_dense() @ v, atol=1e-5)
    assert len(made) == 2
