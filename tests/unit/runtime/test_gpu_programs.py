"""Whole programs for GPUs without one: from an expression to numbers in the interpreter, and to machine code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.cli import main
from sparsecc.diagnostics import SparseccError
from sparsecc.runtime.tile_kernel import TileKernel
from tests.unit.runtime.gpu_doubles import Library, Machine, torch

LINEAR = "Y[m,n] = X[m,k] * W[n,k]"


def sparse(rows: int, columns: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return np.where(rng.random((rows, columns)) < 0.3, rng.random((rows, columns)), 0).astype("f4")


def two_of_four(rows: int, columns: int) -> Any:
    weight = torch.rand(rows, columns).half()
    weight.view(rows, columns // 4, 4)[:, :, 2:] = 0
    return weight


PROGRAMS: dict[str, tuple[str, Callable[[Any, Any, Any], Any]]] = {
    "spmv": ("y[i] = A[i,j] * x[j]", lambda a, u, v: a @ u[:, 0]),
    "spmm": ("C[i,k] = A[i,j] * U[j,k]", lambda a, u, v: a @ u),
    "sddmm": ("C[i,j] = A[i,j] * V[i,k] * U[j,k]", lambda a, u, v: a * (v @ u.T)),
    "scaled": ("C[i,j] = 2 * A[i,j]", lambda a, u, v: 2 * a),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_interpreted(name: str, library: str) -> None:
    text, wanted = PROGRAMS[name]
    a, u, v = sparse(13, 17), sparse(17, 5, 1), sparse(13, 5, 2)
    known: dict[str, Any] = {
        "A": sc.asarray(a).to("CSR@i32/i32"),
        "U": u,
        "V": v,
        "x": u[:, 0].copy(),
    }
    given = {key: value for key, value in known.items() if f"{key}[" in text}
    if library == "torch":
        rows = torch.from_numpy(a).to_sparse_csr()
        given["A"] = torch.sparse_csr_tensor(
            rows.crow_indices().int(), rows.col_indices().int(), rows.values(), size=a.shape
        )
        given |= {k: torch.from_numpy(x) for k, x in given.items() if k != "A"}
    out = "CSR" if name in ("sddmm", "scaled") else None
    kernel = sc.compile(text, target="gpu", interpret=True, operands=given, out=out)
    found: Any = kernel.call(given)
    if library == "torch":
        found = found.to_dense().numpy()
    elif type(found) is sc.SparseTensor:
        found = found.to_numpy()
    assert np.allclose(found, wanted(a, u, v), rtol=1e-5)


def torch_sparse(layout: str, a: Any) -> Any:
    tensor: Any = torch.from_numpy(a)
    if layout == "COO":
        return tensor.to_sparse().coalesce()
    if layout == "BSR":
        return tensor.to_sparse_bsr((2, 3))
    return tensor.to_sparse_csr() if layout == "CSR" else tensor.to_sparse_csc()


@pytest.mark.parametrize("layout", ["COO", "CSR", "CSC", "BSR"])
@pytest.mark.parametrize("name", ["spmv", "spmm", "scaled"])
@pytest.mark.parametrize("empty", [False, True])
def test_torchs_own_sparse_tensors_are_interpreted(name: str, layout: str, empty: bool) -> None:
    """With the 64-bit indices that torch makes."""
    text, wanted = PROGRAMS[name]
    a, u = sparse(12, 15), sparse(15, 5, 1)
    a *= not empty
    turned = layout == "CSC"  # else its columns would have to be converted to rows
    text = text.replace("A[i,j]", "A[j,i]") if turned else text
    known = {
        "A": torch_sparse(layout, a.T.copy() if turned else a),
        "U": torch.from_numpy(u),
        "x": torch.from_numpy(u)[:, 0],
    }
    given = {k: v.contiguous() if k == "x" else v for k, v in known.items() if f"{k}[" in text}
    kernel = sc.compile(text, target="gpu", interpret=True, operands=given, out="dense")
    np.testing.assert_allclose(kernel.call(given).numpy(), wanted(a, u, None), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_blocks_with_indices_of_any_width(width: int) -> None:
    a, u = sparse(12, 15), sparse(15, 5, 1)
    blocks = sc.asarray(a).to(f"BSR(2,3)@i{width}/i{width}")
    kernel = sc.compile(PROGRAMS["spmm"][0], target="gpu", interpret=True, A=blocks, U=u)
    assert "tl.dot" in kernel.source
    np.testing.assert_allclose(kernel(A=blocks, U=u), a @ u, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("tokens", [1, 16, 20])
def test_a_layer_of_blocks_on_a_driver_that_interprets(tokens: int) -> None:
    weight = torch.rand(64, 48)
    weight[16:48, :16] = 0
    x = torch.rand(tokens, 48)
    half = {"X": x.half(), "W": weight.half().to_sparse_bsr((16, 16))}
    half["W"] = torch.sparse_bsr_tensor(
        half["W"].crow_indices().int(),
        half["W"].col_indices().int(),
        half["W"].values(),
        size=(64, 48),
    )
    kernel = sc.compile(LINEAR, target="sm_90", operands=half)
    assert isinstance(kernel, TileKernel)
    kernel = kernel.with_options()
    kernel._machine = Machine(Library())  # pyright: ignore[reportPrivateUsage]
    for _ in range(2):
        y = kernel.call(half)
        wanted = half["X"].double() @ weight.half().double().T
        assert torch.allclose(y.double(), wanted, rtol=2e-3)
    (step,) = kernel.prepared(half)[1].plan.tiles
    assert (step.form, step.sizes is not None) == ("blocks", True)


def test_weights_are_packed_once_and_by_the_kernel() -> None:
    kernel = sc.compile(
        LINEAR,
        X=sc.Spec((None, None), "f16"),
        W=sc.Spec((None, None), "f16", "2:4"),
        target="sm_90",
    )
    assert isinstance(kernel, TileKernel)
    kernel = kernel.with_options()
    kernel._machine = Machine(Library())  # pyright: ignore[reportPrivateUsage]
    weight, x = two_of_four(64, 128), torch.rand(5, 128).half()
    packed = kernel.pack(W=weight)
    assert (packed.layout, packed.shape, packed.device) == ("2:4", (64, 128), "cpu")
    first, variant = kernel.prepared({"X": x, "W": packed})
    assert not kernel.notes
    assert first[1].arrays["packed"].data_ptr() == packed.arrays["packed"].data_ptr()
    (step,) = variant.plan.tiles
    assert step.packs == ((1, "2:4"),) and "in1.packed" in step.source.roles
    with pytest.warns(UserWarning, match="operand W: packed as 2:4"):
        kernel.prepared({"X": x, "W": weight})
    known = kernel.prepared({"X": x, "W": weight})[0][1]
    weight.mul_(2)  # changed in place: packed again
    assert kernel.prepared({"X": x, "W": weight})[0][1] is not known
    with pytest.raises(SparseccError, match="packed as 2:4.CSR, the kernel reads 2:4"):
        from sparsecc.backends.triton.operands import pack_sum_2_4

        kernel.prepared({"X": x, "W": pack_sum_2_4(weight)})
    with pytest.raises(SparseccError, match="more than two"):
        kernel.prepared({"X": x, "W": torch.ones(64, 128).half()})


def test_a_dense_weight_that_a_kernel_packs_is_called_again_and_changed(machine: Machine) -> None:
    spec = {"W": sc.Spec((64, 64), "f32", "BITMAP"), "X": sc.Spec((16, 64), "f32")}
    kernel = sc.compile(LINEAR, target="sm_90", operands=spec)
    assert isinstance(kernel, TileKernel)
    kernel = kernel.with_options()
    kernel._machine = machine  # pyright: ignore[reportPrivateUsage]
    weight, x = torch.rand(64, 64), torch.rand(16, 64)
    weight[weight < 0.5] = 0
    with pytest.warns(UserWarning, match="packed as bitmap"):
        kernel(X=x, W=weight)
    for _ in range(2):
        assert torch.allclose(kernel(X=x, W=weight), x @ weight.t(), rtol=1e-3)
        weight.mul_(2)


def test_a_residual_is_compiled_for_the_weight_it_meets() -> None:
    spec = sc.Spec((None, None), "f16", "2:4+CSR")
    kernel = sc.compile(LINEAR, X=sc.Spec((None, None), "f16"), W=spec, target="sm_90")
    assert isinstance(kernel, TileKernel)
    kernel = kernel.with_options()
    kernel._machine = Machine(Library())  # pyright: ignore[reportPrivateUsage]
    torch.manual_seed(0)
    weight = torch.where(torch.rand(64, 256) < 0.5, torch.rand(64, 256), 0).half()
    packed = kernel.pack(W=weight)
    variant = kernel.prepared({"X": torch.rand(3, 256).half(), "W": packed})[1]
    request = variant.request
    assert (request.tokens, request.rows, request.reduction, request.steps) == (8, 64, 256, 4)
    assert request.entries is not None and packed.facts["entries"] <= request.entries
    assert "steps = 4" in variant.plan.tiles[0].schedule


@pytest.mark.parametrize(
    ("arguments", "instruction"),
    [
        (["W=2:4", "sm_80"], "HMMA.SP"),
        (["W=2:4", "sm_90"], "HMMA.SP"),
        (["W=2:4", "sm_90", "--tokens", "512"], r"HGMMA\.SP"),
        (["W=2:4", "sm_100"], "HMMA.SP"),
        (["W=2:4+CSR", "sm_90"], "HMMA.SP"),
        (["W=BSR(32,32)", "sm_90"], "HMMA|HGMMA"),
    ],
)
def test_promised_instructions_are_in_the_machine_code(
    arguments: list[str], instruction: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fmt, target, *more = arguments
    path = tmp_path / "out.sass"
    command = ["compile", LINEAR, "--format", fmt, "--dtype", "f16", "--target", target, *more]
    assert main([*command, "--emit", "sass", "-o", str(path)]) == 0, capsys.readouterr().err
    assert re.search(instruction, path.read_text())
