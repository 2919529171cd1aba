"""Products by SciPy: formats, orders, types, and what is refused."""

from __future__ import annotations

from importlib import util
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc import driver
from sparsecc.diagnostics import SparseccError
from sparsecc.runtime import cpu_libraries
from sparsecc.selection import engines
from tests.unit.runtime.library_calls import arrays, compiled, einsum, every_order

pytest.importorskip("scipy")

FORMATS = ("CSR", "CSC", "COO", "BSR(2,3)", "CSR@i64/i64")
EXTENTS = {"i": 6, "j": 12, "k": 5}
TEXTS = [*every_order("ij", "jk", "ik"), *every_order("ij", "j", "i")]


def sparse(array: Any, format: str) -> sc.SparseTensor:
    rng = np.random.default_rng(7)
    kept = array.copy()
    kept[rng.random(array.shape) < 0.6] = 0
    return sc.asarray(kept).to(format)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i4", "u1"])
def test_every_order(format: str, dtype: str) -> None:
    for number, text in enumerate(TEXTS):
        extents = {**EXTENTS, "i": 12} if "BSR" in format else EXTENTS
        given = arrays(text, extents, dtype, number)
        given["A"] = sparse(given["A"], format)
        kernel = compiled(text, given, "scipy", out="dense")
        wanted = einsum(text, {**given, "A": given["A"].to_numpy()})
        found = kernel.call(given)
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        out = np.zeros(wanted.shape, wanted.dtype)
        assert kernel.call(given, out) is out
        np.testing.assert_array_equal(out, found)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_integers_wrap_as_ours_do(dtype: str) -> None:
    rng = np.random.default_rng(3)
    info = np.iinfo(dtype)
    a, x = (
        rng.integers(info.min, info.max, shape, dtype, endpoint=True) for shape in ((9, 14), (14,))
    )
    given = {"A": sparse(a, "CSR"), "x": x}
    text = "y[i] = A[i,j] * x[j]"
    ours, theirs = (compiled(text, given, engine).call(given) for engine in ("generated", "scipy"))
    assert ours.dtype == theirs.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("format", ["CSR", "CSC", "COO", "BSR(2,3)"])
@pytest.mark.parametrize("empty", "ijk")
def test_nothing_along_an_index(format: str, empty: str) -> None:
    text = "C[i,k] = A[i,j] * B[k,j]"
    given = arrays(text, {**EXTENTS, empty: 0}, "f8")
    wanted = einsum(text, given)
    given["A"] = sc.asarray(given["A"]).to(format)
    np.testing.assert_array_equal(compiled(text, given, "scipy", out="dense").call(given), wanted)


def test_the_arrays_are_shared_and_kept() -> None:
    text = "y[i] = A[i,j] * x[j]"
    given: dict[str, Any] = {"A": sparse(np.random.rand(9, 14), "CSR"), "x": np.random.rand(14)}
    kernel = compiled(text, given, "scipy")
    first = kernel.call(given)
    (caller,) = kernel.executor.steps
    assert isinstance(caller, cpu_libraries.LibraryCaller)
    known: Any = getattr(caller.multiply, "known")  # noqa: B009  # a callable to the type checker
    (matrix,) = known.values()
    assert np.shares_memory(matrix.data, given["A"].values)
    assert np.shares_memory(matrix.indices, given["A"].levels[1].coordinates)
    np.testing.assert_array_equal(kernel.call(given), first)
    assert list(known.values()) == [matrix]
    del matrix, given
    assert not known


def test_infinities_meet_stored_entries_alone() -> None:
    a = sc.asarray(np.array([[1.0, 0.0], [0.0, 2.0]])).to("CSR")
    given = {"A": a, "x": np.array([np.inf, 3.0])}
    for engine in ("scipy", "generated"):
        found = compiled("y[i] = A[i,j] * x[j]", given, engine).call(given)
        np.testing.assert_array_equal(found, [np.inf, 6.0])


MATVEC = """
#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @main(%A: tensor<?x?xf64, #CSR>, %x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %r = linalg.matvec ins(%A, %x : tensor<?x?xf64, #CSR>, tensor<?xf64>) outs(%y : tensor<?xf64>) -> tensor<?xf64>
  return %r : tensor<?xf64>
}
"""


def test_added_to_a_tensor() -> None:
    kernel = driver.compile_request(driver.Request("mlir", MATVEC, engines=("scipy",)))
    a, x, y = sparse(np.random.rand(9, 14), "CSR"), np.random.rand(14), np.random.rand(9)
    np.testing.assert_allclose(kernel(A=a, x=x, y=y), a.to_numpy() @ x + y)


def test_blocks_that_do_not_fill_the_matrix() -> None:
    given = {"A": sparse(np.random.rand(7, 12), "BSR(2,3)"), "x": np.random.rand(12)}
    kernel = compiled("y[i] = A[i,j] * x[j]", given, "scipy")
    with pytest.raises(SparseccError, match="an extent of 7, which is no multiple of 2: pad it"):
        kernel.call(given)


def test_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"A": sparse(np.random.rand(9, 14), "CSR"), "x": np.random.rand(14)}
    driver.forget()
    monkeypatch.delitem(__import__("sys").modules, "scipy")
    nothing: dict[str, Any] = {}
    monkeypatch.setattr(engines, "find_spec", nothing.get)
    assert util.find_spec("scipy") is not None
    with pytest.raises(SparseccError, match="SciPy is not here: it is not installed") as caught:
        compiled("y[i] = A[i,j] * x[j]", given, "scipy")
    assert "pip install scipy" in str(caught.value)
