"""Operands to compile for: extents and element types that are spelled in other ways, or that can't be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.diagnostics import SparseccError

torch: Any = pytest.importorskip("torch")


def test_torch_and_numpy_spell_types_and_extents() -> None:
    four: Any = np.int64(4)
    assert sc.Spec((four,), torch.bfloat16).operand() == sc.Spec((4,), "bf16").operand()


@pytest.mark.parametrize(
    ("extent", "words"), [(1.5, "whole numbers"), ("4", "whole numbers"), (True, "whole numbers"), (2**70, "beyond")]
)  # fmt: skip
def test_extents_are_integers(extent: Any, words: str) -> None:
    with pytest.raises(SparseccError, match=words):
        sc.compile("y[i] = A[i,j]", A=sc.Spec((extent, 4), "f64", "CSR"))


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_a_batch_of_products_is_dense(target: str) -> None:
    x, w = sc.Spec((None, None, None), "f16"), sc.Spec((None, None), "f16", "2:4")
    kernel = sc.compile("Y[b,m,n] = X[b,m,k] * W[n,k]", X=x, W=w, target=target)
    assert kernel.formats["Y"] == "dense"


@pytest.mark.parametrize("format", ["CSR", "COO", "BITMAP", "BSR(2,2)", "dense"])
@pytest.mark.parametrize("shape", [(0, 0, 0), (0, 5, 4), (3, 0, 4), (3, 5, 0)])
def test_extents_that_are_known_to_be_empty(format: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    kernel: Any = sc.compile(
        "Y[m,n] = X[m,k] * W[n,k]", X=sc.Spec((m, k), "f32"), W=sc.Spec((n, k), "f32", format),
        out="dense", target="sm_90", interpret=True,
    )  # fmt: skip
    w = sc.asarray(np.ones((n, k), np.float32)).to(format)
    assert np.array_equal(kernel(X=np.ones((m, k), np.float32), W=w), np.full((m, n), k))


def test_the_environment_asks_for_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSECC_INTERPRET", "1")
    a = sc.asarray(np.eye(3, dtype=np.float32)).to("CSR")
    x = np.arange(3, dtype=np.float32)
    assert np.array_equal(sc.evaluate("y[i] = A[i,j] * x[j]", A=a, x=x, target="gpu"), x)


def test_names_in_a_program_are_those_of_its_arguments() -> None:
    text = """func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32>
    attributes {{sparsecc.args = [{names}]}} {{
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.add ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}}"""
    for names in ('"a"', '"a", "a"', '"a", "b", "c"'):
        with pytest.raises(SparseccError, match="but there are 2 arguments"):
            sc.compile_mlir(text.format(names=names))
    kernel = sc.compile_mlir(text.format(names='"p", "q"'))
    one = np.ones(4, np.float32)
    assert np.array_equal(kernel(p=one, q=one), one + one)
