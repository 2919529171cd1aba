"""Products by BLAS: every order of operands and dimensions, types, extents, memory, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc import driver
from sparsecc.diagnostics import SparseccError
from sparsecc.kernel import Library, Plan
from tests.unit.runtime.library_calls import arrays, compiled, einsum, every_order

EXTENTS = {"i": 5, "j": 7, "k": 3, "b": 2, "c": 4}
PRODUCTS = {
    "matrices": every_order("ij", "jk", "ik"),
    "matrix and vector": every_order("ij", "j", "i"),
    "vectors": every_order("j", "j", ""),
    "batch": every_order("bij", "bjk", "bik")[::5],
    "batch of one": every_order("bij", "jk", "bik")[::3],
    "batches": every_order("bcij", "cjk", "cbik")[::197],
    "batch of vectors": every_order("bij", "bj", "bi"),
    "batch of dots": every_order("bj", "jb", "b"),
    "the other's batch": every_order("bj", "cjk", "bck"),
}


def check(text: str, extents: dict[str, int], dtype: Any = "f8", seed: int = 0) -> None:
    given = arrays(text, extents, dtype, seed)
    kernel = compiled(text, given, "blas")
    assert [type(step) for step in kernel.plan.steps] == [Library]
    wanted = einsum(text, given)
    found = kernel.call(given)
    tolerance = 1e-5 if np.dtype(dtype).itemsize < 8 or dtype == "c8" else 1e-12
    assert found.dtype == wanted.dtype == np.dtype(dtype) and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    if wanted.shape:
        out = np.full(wanted.shape, np.nan, dtype)
        assert kernel.call(given, out) is out
        np.testing.assert_array_equal(out, found)


@pytest.mark.parametrize("kind", PRODUCTS)
def test_every_order(kind: str) -> None:
    assert len(PRODUCTS[kind]) > 1
    for number, text in enumerate(PRODUCTS[kind]):
        check(text, EXTENTS, seed=number)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("text", ["C[i,k] = A[i,j] * B[k,j]", "C[b,i,k] = A[b,i,j] * B[j,k]"])
def test_types(text: str, dtype: str) -> None:
    check(text, EXTENTS, dtype)


@pytest.mark.parametrize("empty", "ijkb")
@pytest.mark.parametrize("text", ["C[b,i,k] = A[b,i,j] * B[k,j]", "C[i,k] = A[i,j] * B[j,k]"])
def test_nothing_along_an_index(text: str, empty: str) -> None:
    check(text, {**EXTENTS, empty: 0})


@pytest.mark.parametrize("one", "ijkb")
def test_extents_of_one(one: str) -> None:
    check("C[b,i,k] = A[b,i,j] * B[k,j]", {**EXTENTS, one: 1})


def test_operands_that_lie_otherwise() -> None:
    text = "C[i,k] = A[i,j] * B[j,k]"
    rng = np.random.default_rng(1)
    wide, tall = rng.random((11, 14)), rng.random((14, 6))
    for a, b in (
        (wide[:, ::2], tall[:7]),
        (wide[::-1, :7], tall[7:]),
        (np.asfortranarray(wide), np.asfortranarray(tall)),
        (wide, tall.T.copy().T),
    ):
        np.testing.assert_allclose(compiled(text, {"A": a, "B": b}, "blas")(A=a, B=b), a @ b)


def test_column_major_operands_and_results_are_views() -> None:
    columns = "(d0, d1) -> (d1 : dense, d0 : dense)"
    specs = {"A": sc.Spec((None, None), "f64", columns), "B": sc.Spec((None, None), "f64")}
    kernel = compiled("C[i,k] = A[i,j] * B[j,k]", specs, "blas", out=columns)
    a, b = np.asfortranarray(np.random.rand(5, 7)), np.random.rand(7, 3)
    np.testing.assert_allclose(kernel(A=a, B=b), a @ b)
    assert not kernel.notes


def test_memory_that_cannot_take_it() -> None:
    a = np.random.rand(4, 4)
    kernel = compiled("C[i,k] = A[i,j] * B[j,k]", {"A": a, "B": a}, "blas")
    for out, text in (
        (a, "shares memory"),
        (np.empty((4, 5)), "its shape"),
        (a.astype("f4"), "f64"),
    ):
        with pytest.raises(SparseccError, match=text):
            kernel.call({"A": a, "B": a.copy()}, out)
    with pytest.raises(SparseccError, match="index 'j' has 4 coordinates in one operand and 5"):
        kernel(A=a, B=np.random.rand(5, 4))


MATMUL = """
func.func @main(%A: tensor<?x?xf64>, %B: tensor<?x?xf64>, %C: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %D = linalg.matmul ins(%A, %B : tensor<?x?xf64>, tensor<?x?xf64>) outs(%C : tensor<?x?xf64>) -> tensor<?x?xf64>
  return %D : tensor<?x?xf64>
}
"""


@pytest.mark.parametrize("engines", [("blas",), ("generated",), ()])
def test_added_to_a_tensor(engines: tuple[str, ...]) -> None:
    kernel = driver.compile_request(driver.Request("mlir", MATMUL, engines=engines))
    a, b, c = np.random.rand(5, 7), np.random.rand(7, 3), np.random.rand(5, 3)
    kept = c.copy()
    np.testing.assert_allclose(kernel(A=a, B=b, C=c), a @ b + kept)
    np.testing.assert_array_equal(c, kept)
    assert bool(kernel.plan.libraries) == ("blas" in engines)


def test_one_step_of_a_program() -> None:
    text = "T[i,k] = A[i,j] * B[j,k]; y[i] = T[i,k] * S[i,k] + z[i]"
    a, b, z = np.random.rand(5, 7), np.random.rand(7, 3), np.random.rand(5)
    s = sc.asarray(np.random.rand(5, 3)).to("CSR")
    given = {"A": a, "B": b, "S": s, "z": z}
    count = len(compiled(text, given).plan.steps)
    kernel = compiled(text, given, "blas", *["generated"] * (count - 1))
    assert isinstance(kernel.plan.steps[0], Library) and kernel.plan.kernels()
    np.testing.assert_allclose(kernel.call(given), ((a @ b) * s.to_numpy()).sum(1) + z)
    assert "library BLAS: numpy.matmul" in kernel.explain()
    with pytest.raises(SparseccError, match="1 engines are named for a program of"):
        compiled(text, given, "blas")


def test_what_is_said_of_it() -> None:
    spec = sc.Spec((None, None), "f64")
    kernel = compiled("C[i,k] = A[i,j] * B[j,k]", {"A": spec, "B": spec}, "blas")
    assert "library BLAS: numpy.matmul" in kernel.explain()
    assert kernel.formats == {"A": "dense", "B": "dense", "C": "dense"}
    assert 'iteration.library_call "blas"' in kernel.ir("selected")
    for text in (kernel.source, kernel.asm(), kernel.asm("llvm"), kernel.texts("llvm")):
        assert "there is no generated code" in text and "numpy.matmul" in text
    assert not {"llvm", "load"} & kernel.times.keys()


def test_plans_come_from_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = sc.Spec((None, None), "f64")
    plan = compiled("C[i,k] = A[i,j] * B[k,j]", {"A": spec, "B": spec}, "blas").plan
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    monkeypatch.setenv("SPARSECC_CACHE", str(tmp_path))
    for cached in (False, True):
        driver.forget()
        kernel = compiled("C[i,k] = A[i,j] * B[k,j]", {"A": spec, "B": spec}, "blas")
        assert ("cache" in kernel.times) == cached and kernel.plan == plan
        a, b = np.random.rand(5, 7), np.random.rand(3, 7)
        np.testing.assert_allclose(kernel(A=a, B=b), a @ b.T)
    driver.forget()
