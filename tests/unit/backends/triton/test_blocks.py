"""Blocks kernels as text: the text itself, compiled for each target, and run by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsecc.backends.triton.compile_process import compile_apart
from sparsecc.backends.triton.text_module import load_text, member
from sparsecc.backends.triton.toolchain import sass
from sparsecc.driver import OperandSpec, Request
from sparsecc.kernel import TileSource
from tests import tiles
from tests.conftest import Golden

TARGETS = ("sm_80", "sm_90", "sm_100")
CSR, DENSE, VECTOR = ("2", "CSR"), ("2", "dense"), ("1", "dense")

KERNELS: dict[str, tuple[str, dict[str, tuple[str, str]], str | None]] = {
    "spmv": ("y[i] = A[i,j] * x[j]", {"A": CSR, "x": VECTOR}, None),
    "spmv_coo": ("y[i] = A[i,j] * x[j]", {"A": ("2", "COO"), "x": VECTOR}, None),
    "spmm": ("C[i,j] = A[i,k] * X[k,j]", {"A": CSR, "X": DENSE}, None),
    "sddmm": ("C[i,j] = A[i,j] * U[i,k] * V[j,k]", {"A": CSR, "U": DENSE, "V": DENSE}, "CSR"),
    "add": ("C[i,j] = A[i,j] + B[i,j]", {"A": CSR, "B": CSR}, "dense"),
    "total": ("s = A[i,j]", {"A": CSR}, None),
    "ell": ("y[i] = A[i,j] * x[j]", {"A": ("2", "ELL"), "x": VECTOR}, None),
    "two_of_four": ("y[i] = A[i,j] * x[j]", {"A": ("2", "2:4"), "x": VECTOR}, None),
    "narrow": ("y[i] = A[i,j] * x[j]", {"A": ("2", "DCSR@i16/i8"), "x": VECTOR}, None),
    "mttkrp": (
        "Y[i,r] = B[i,k,l] * C[k,r] * D[l,r]",
        {"B": ("3", "CSF"), "C": DENSE, "D": DENSE},
        None,
    ),
}


def source(name: str, dtype: str = "f32", target: str = "sm_90", **schedule: str) -> TileSource:
    text, operands, out = KERNELS[name]
    specs = [
        (operand, OperandSpec((None,) * int(rank), dtype, format))
        for operand, (rank, format) in operands.items()
    ]
    module = tiles.tile_module(Request("expression", text, tuple(specs), out), target, schedule)
    sources = tiles.tile_sources(module, target)
    return sources[max(sources)]


@pytest.mark.parametrize("name", ["spmv", "spmm", "sddmm", "add"])
def test_text(golden: Golden, name: str) -> None:
    golden(Path(__file__).parent / "golden" / f"blocks_{name}.py.txt", source(name).text)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "dtype"), [("spmm", "f16"), ("spmv", "f32"), ("add", "f32")])
def test_compiles(name: str, dtype: str, target: str) -> None:
    done = compile_apart(source(name, dtype, target), target)
    assert done.spills == 0
    assert done.threads == 32 * source(name, dtype, target).warps


def test_text_of_shared_sums(golden: Golden) -> None:
    text = source("spmm", split="4").text
    golden(Path(__file__).parent / "golden" / "blocks_spmm_split.py.txt", text)


@pytest.mark.parametrize("target", TARGETS)
def test_shared_sums_compile(target: str) -> None:
    done = compile_apart(source("spmm", "f32", target, split="4"), target)
    assert done.spills == 0
    assert "ATOM" in sass(done.cubin)
    assert source("spmm", split="4").roles[-2:] == ("work.partial", "work.counters")


@pytest.mark.full
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i8", "i32", "bool"])
@pytest.mark.parametrize("name", KERNELS)
def test_all_compile(name: str, dtype: str, target: str) -> None:
    assert compile_apart(source(name, dtype, target), target).spills == 0


def test_a_program_for_each_block_of_rows() -> None:
    grid = member(load_text(source("spmv")), "grid")
    assert [grid(n) for n in (0, 1, 8, 9)] == [(0,), (1,), (1,), (2,)]


def test_offsets_of_rows_are_64_bits_wide() -> None:
    assert "k.to(tl.int64) * X_dim1 + j" in source("spmm").text


def test_roles_name_each_argument() -> None:
    spmm = source("spmm")
    names = dict(zip(spmm.roles, (n for n, _ in spmm.arguments), strict=True))
    assert names["in0.positions1"] == "A_positions1"
    assert names["out.values"] == "C_values"
    assert set(dict(spmm.arguments).values()) == {"*fp32", "*i32", "i32"}
