"""Products by torch's libraries, on a machine whose memory is this processor's; cuSPARSELt by a model of it."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc import driver
from sparsecc.diagnostics import SparseccError
from sparsecc.kernel import Library, Plan
from sparsecc.runtime import sparselt_algorithms
from sparsecc.runtime.tile_kernel import TileKernel
from tests.unit.runtime.gpu_doubles import Machine, torch
from tests.unit.runtime.library_calls import arrays, compiled, einsum, every_order

EXTENTS = {"i": 5, "j": 7, "k": 3, "b": 2, "c": 4, "m": 6, "n": 16}
LINEAR = "Y[m,n] = X[m,k] * W[n,k]"


def on(machine: Any, text: str, given: Any, engine: str, **options: Any) -> TileKernel:
    made = compiled(text, given, engine, target="sm_90", **options)
    assert isinstance(made, TileKernel) and [type(s) for s in made.plan.steps] == [Library]
    kernel = made.with_options()
    kernel._machine = machine  # pyright: ignore[reportPrivateUsage]
    return kernel


def as_torch(given: dict[str, Any]) -> dict[str, Any]:
    return {name: torch.from_numpy(array) for name, array in given.items()}


def check(kernel: TileKernel, given: dict[str, Any], wanted: Any, tolerance: float = 1e-5) -> None:
    """A result in memory of its own, and in given memory."""
    found = kernel.call(given)
    assert tuple(found.shape) == wanted.shape
    np.testing.assert_allclose(found.double().numpy(), wanted, rtol=tolerance, atol=tolerance)
    if wanted.shape:
        out = torch.full(wanted.shape, float("nan"), dtype=found.dtype)
        assert kernel.call(given, out) is out
        assert torch.equal(out, found)


PRODUCTS = [
    *every_order("ij", "jk", "ik"),
    *every_order("ij", "j", "i"),
    *every_order("j", "j", ""),
    *every_order("bij", "bjk", "bik")[::17],
    *every_order("bij", "jk", "bik")[::7],
    *every_order("bcij", "cjk", "cbik")[::511],
    *every_order("bij", "bj", "bi")[::3],
    *every_order("bj", "jb", "b"),
]


def test_cublas_in_every_order(machine: Machine) -> None:
    for number, text in enumerate(PRODUCTS):
        given = arrays(text, EXTENTS, "f4", number)
        tensors = as_torch(given)
        check(on(machine, text, tensors, "cublas"), tensors, einsum(text, given))


@pytest.mark.parametrize(("dtype", "tolerance"), [("f16", 2e-3), ("bf16", 2e-2), ("f64", 1e-12)])
def test_cublas_types(machine: Machine, dtype: str, tolerance: float) -> None:
    kind = {"f16": "float16", "bf16": "bfloat16", "f64": "float64"}[dtype]
    given = {"X": torch.rand(6, 7).to(getattr(torch, kind)), "W": torch.rand(5, 7)}
    given["W"] = given["W"].to(given["X"].dtype)
    wanted = given["X"].double() @ given["W"].double().t()
    check(on(machine, LINEAR, given, "cublas"), given, wanted.numpy(), tolerance)


@pytest.mark.parametrize("empty", "ijkb")
def test_nothing_along_an_index(machine: Machine, empty: str) -> None:
    text = "C[b,i,k] = A[b,i,j] * B[k,j]"
    given = arrays(text, {**EXTENTS, empty: 0}, "f4")
    tensors = as_torch(given)
    check(on(machine, text, tensors, "cublas"), tensors, einsum(text, given))


def test_operands_as_they_lie(machine: Machine) -> None:
    spec = {name: sc.Spec((None, None), "f32") for name in "XW"}
    kernel = on(machine, LINEAR, spec, "cublas")
    wide, tall = torch.rand(12, 14), torch.rand(14, 10)
    for x, w in ((wide[:, ::2], tall.t()[:, :7]), (wide[2:5, 7:], tall[:7].t()), (wide, tall.t())):
        check(kernel, {"X": x, "W": w}, (x @ w.t()).numpy())
    assert not kernel.notes


def test_operands_of_the_host(machine: Machine) -> None:
    given = {"X": np.random.rand(6, 7), "W": np.random.rand(5, 7)}
    found = on(machine, LINEAR, given, "cublas").call(given)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, given["X"] @ given["W"].T)
    interpreted = compiled(LINEAR, given, "cublas", target="sm_90")
    assert isinstance(interpreted, TileKernel)
    found = interpreted.with_options(interpret=True).call(given)
    np.testing.assert_allclose(found, given["X"] @ given["W"].T)


def csr(rows: int, columns: int, dtype: Any = None) -> Any:
    dense = torch.rand(rows, columns) * (torch.rand(rows, columns) < 0.4)
    made = dense.to_sparse_csr()
    if dtype is None:
        return made
    parts = made.crow_indices().to(dtype), made.col_indices().to(dtype), made.values()
    return torch.sparse_csr_tensor(*parts, size=(rows, columns))


@pytest.mark.parametrize("width", [None, "int32"])
@pytest.mark.parametrize(
    "text",
    [
        "y[i] = A[i,j] * x[j]", "C[i,k] = A[i,j] * B[j,k]", "C[i,k] = A[i,j] * B[k,j]", "C[k,i] = A[i,j] * B[j,k]",
        "C[k,i] = B[k,j] * A[i,j]",
    ],
)  # fmt: skip
def test_cusparse(machine: Machine, text: str, width: str | None) -> None:
    given = arrays(text, EXTENTS, "f4")
    a = csr(5, 7, None if width is None else getattr(torch, width))
    tensors = {**as_torch({n: x for n, x in given.items() if n != "A"}), "A": a}
    kernel = on(machine, text, tensors, "cusparse", out="dense")
    check(kernel, tensors, einsum(text, {**given, "A": a.to_dense().numpy()}))
    matrices = kernel.programs[id(kernel), "cpu"].steps[0].matrices
    ((_, first),) = matrices.values()
    assert first.values().data_ptr() == a.values().data_ptr()
    kernel.call(tensors)
    assert [matrix for _, matrix in matrices.values()] == [first]
    wanted = einsum(text, {**given, "A": a.to_dense().numpy()})
    del first, tensors["A"]
    dense, shown = a.to_dense().numpy(), sc.asarray(a)
    del a
    gc.collect()
    assert not matrices
    host = {**given, "A": shown}
    found = on(machine, text, host, "cusparse", out="dense").call(host)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert np.array_equal(shown.to_numpy(), dense)


# -- cuSPARSELt --------------------------------------------------------------------------------


@dataclass
class Sparselt:
    """The library: compressed weights are flat, a dense operand has a multiple of 8 columns."""

    compressed: list[Any] = field(default_factory=list[Any])
    made: list[Any] = field(default_factory=list[Any])
    searched: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    used: list[int] = field(default_factory=list[int])

    def compress(self, weight: Any) -> Any:
        groups = (weight.reshape(weight.shape[0], -1, 4) != 0).sum(-1)
        assert int(groups.max()) <= 2
        self.compressed.append(tuple(weight.shape))
        made = weight.clone().reshape(-1)
        self.made.append(weakref.ref(made))
        return made

    def search(self, _weight: Any, dense: Any) -> int:
        self.searched.append(tuple(dense.shape))
        return 7

    def multiply(self, weight: Any, dense: Any, alg_id: int) -> Any:
        assert dense.shape[1] % 8 == 0 and (dense.is_contiguous() or dense.t().is_contiguous())
        self.used.append(alg_id)
        return weight.reshape(-1, dense.shape[0]) @ dense


@pytest.fixture
def sparselt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sparselt]:
    library = Sparselt()
    monkeypatch.setattr(torch, "_cslt_compress", library.compress)
    monkeypatch.setattr(torch, "_cslt_sparse_mm", library.multiply)
    monkeypatch.setattr(torch, "_cslt_sparse_mm_search", library.search)
    monkeypatch.setattr(torch.backends.cusparselt, "is_available", lambda: True)
    sparselt_algorithms.forget()
    yield library
    sparselt_algorithms.forget()


def two_of_four(rows: int, columns: int) -> Any:
    weight = torch.rand(rows, columns, dtype=torch.float16)
    weight.view(rows, -1, 4)[:, :, ::2] = -0.0
    return weight


def weight_spec(text: str, tokens: int = 2) -> dict[str, sc.Spec]:
    del text
    return {
        "W": sc.Spec((None, None), "f16", "2:4"),
        "X": sc.Spec((None,) * tokens, "f16"),
    }


@pytest.mark.parametrize("tokens", [1, 8, 13])
@pytest.mark.parametrize(
    "text", [LINEAR, "Y[n,m] = W[n,k] * X[k,m]", "Y[n,m] = X[m,k] * W[n,k]", "Y[m,n] = W[n,k] * X[k,m]"]
)  # fmt: skip
def test_cusparselt(machine: Machine, sparselt: Sparselt, text: str, tokens: int) -> None:
    kernel = on(machine, text, weight_spec(text), "cusparselt")
    w, first = two_of_four(32, 48), "X[m,k]" in text
    x = torch.rand((tokens, 48) if first else (48, tokens), dtype=torch.float16)
    wanted = w.double() @ (x.double().t() if first else x.double())
    wanted = wanted.t() if text.startswith("Y[m") else wanted
    with pytest.warns(UserWarning, match="operand W: packed as cuSPARSELt"):
        check(kernel, {"X": x, "W": w}, wanted.numpy(), 4e-3)
    assert len(sparselt.compressed) == 1 and len(sparselt.searched) == 1
    assert set(sparselt.used) == {7}
    packed = kernel.pack(W=w)
    check(kernel, {"X": x, "W": packed}, wanted.numpy(), 4e-3)
    host = sc.asarray(w.numpy()).to("2:4")
    check(kernel, {"X": x, "W": kernel.pack(W=host)}, wanted.numpy(), 4e-3)


def test_cusparselt_and_a_vector(machine: Machine, sparselt: Sparselt) -> None:
    kernel = on(machine, "y[n] = X[k] * W[n,k]", weight_spec("", 1), "cusparselt")
    w, x = two_of_four(16, 32), torch.rand(32, dtype=torch.float16)
    check(kernel, {"X": x, "W": kernel.pack(W=w)}, (w.double() @ x.double()).numpy(), 4e-3)
    assert sparselt.searched == [(32, 8)]


def test_a_weight_is_packed_again_when_it_changes_and_dies_with_its_owner(
    machine: Machine, sparselt: Sparselt
) -> None:
    kernel = on(machine, LINEAR, weight_spec(LINEAR), "cusparselt")
    w, x = two_of_four(16, 32), torch.rand(8, 32, dtype=torch.float16)
    with pytest.warns(UserWarning, match="packed as"):
        before = kernel.call({"X": x, "W": w}).clone()
    assert torch.equal(kernel.call({"X": x, "W": w}), before) and len(sparselt.compressed) == 1
    w.mul_(2)
    assert torch.allclose(kernel.call({"X": x, "W": w}), 2 * before, rtol=1e-2)
    assert len(sparselt.compressed) == 2
    packed = kernel.pack(W=w)
    for weight in (packed, w):
        kernel.call({"X": x, "W": weight})
    del w, weight, packed
    gc.collect()
    assert [made() for made in sparselt.made] == [None] * 3


def test_weights_that_cusparselt_does_not_take(machine: Machine, sparselt: Sparselt) -> None:
    kernel = on(machine, LINEAR, weight_spec(LINEAR), "cusparselt")
    x = torch.rand(8, 32, dtype=torch.float16)
    for weight, text in (
        (torch.rand(16, 32, dtype=torch.float16), "groups of four along k hold more than two"),
        (two_of_four(20, 32), "both multiples of 16"),
        (two_of_four(16, 32).float(), "is f32, the kernel was compiled for f16"),
    ):
        with pytest.raises(SparseccError, match=text):
            kernel.pack(W=weight)
    ours = compiled(LINEAR, weight_spec(LINEAR), target="sm_90")
    assert isinstance(ours, TileKernel)
    with pytest.raises(SparseccError, match="packed as 2:4, the kernel reads cuSPARSELt"):
        kernel.call({"X": x, "W": ours.pack(W=two_of_four(16, 32))})
    assert not sparselt.used


def test_an_algorithm_is_kept_on_disk_and_not_searched_in_a_graph(
    machine: Machine, sparselt: Sparselt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARSECC_CACHE", str(tmp_path))
    kernel = on(machine, LINEAR, weight_spec(LINEAR), "cusparselt")
    given = {"X": torch.rand(8, 32, dtype=torch.float16), "W": kernel.pack(W=two_of_four(16, 32))}
    machine.captures = True
    with pytest.raises(SparseccError, match="can't be searched while a graph is captured"):
        kernel.call(given)
    machine.captures = False
    kernel.call(given)
    assert len(list((tmp_path / "tuned").glob("cusparselt-*.json"))) == 1
    sparselt_algorithms.forget()
    machine.captures = True
    kernel.call(given)
    assert len(sparselt.searched) == 1
    driver.forget()


def test_libraries_that_are_not_here(machine: Machine) -> None:
    given = {"X": torch.rand(8, 32, dtype=torch.float16), "W": two_of_four(16, 32)}
    kernel = on(machine, LINEAR, weight_spec(LINEAR), "cusparselt")
    if not torch.backends.cusparselt.is_available():
        with pytest.raises(SparseccError, match="cuSPARSELt is not here: this torch"):
            kernel.call({**given, "W": kernel.pack(W=given["W"])})
    interpreted = kernel.with_options(interpret=True)
    with pytest.raises(SparseccError, match="not in the interpreter"):
        interpreted.call({**given, "W": interpreted.pack(W=given["W"])})


def test_what_is_said_of_it() -> None:
    kernel = compiled(LINEAR, weight_spec(LINEAR), "cusparselt", target="sm_90")
    assert isinstance(kernel, TileKernel)
    text = kernel.explain()
    assert "library cuSPARSELt: torch._cslt_sparse_mm" in text and "packed: W as cuSPARSELt" in text
    for code in (kernel.source, kernel.asm("ptx"), kernel.asm("sass")):
        assert "there is no generated code" in code and "cuSPARSELt" in code
    assert kernel.resources == {} and kernel.compiled == ()
    assert Plan.from_json(json.loads(json.dumps(kernel.plan.to_json()))) == kernel.plan
    for engine, target in (("blas", "sm_90"), ("cublas", "cpu")):
        spec = {name: sc.Spec((None, None), "f32") for name in "XW"}
        with pytest.raises(SparseccError, match=f"does not compute for {target}"):
            compiled(LINEAR, spec, engine, target=target)


def test_a_step_before_a_generated_kernel(machine: Machine) -> None:
    text = "T[m,n] = X[m,k] * W[n,k]; Y[m,n] = T[m,n] + B[m,n]"
    given = {"X": torch.rand(6, 7), "W": torch.rand(5, 7), "B": torch.rand(6, 5)}
    kernel = compiled(text, given, "cublas", "generated", target="sm_90")
    assert isinstance(kernel, TileKernel)
    assert len(kernel.plan.libraries) == len(kernel.plan.tiles) == 1
    kernel = kernel.with_options(interpret=True)
    wanted = given["X"] @ given["W"].t() + given["B"]
    assert torch.allclose(kernel.call(given), wanted, rtol=1e-5)
