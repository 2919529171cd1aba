"""What libraries take: the one judge that plans and passes ask."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sparsecc.diagnostics import SparseccError
from sparsecc.selection.engines import ENGINES, of_target, present, refusal
from sparsecc.selection.problem import Access, Expression
from sparsecc.selection.products import NoMatrixProduct, matrix_product

LINEAR = ("Y mn", "X mk", "W nk")


def access(text: str) -> Access:
    name, _, indices = text.partition(" ")
    return Access(name, tuple(indices))


def asked(
    engine: str, dtype: str, formats: dict[str, str] | None = None, tensors: tuple[str, ...] = LINEAR,
    product: bool = True, **more: int | bool,
) -> str:  # fmt: skip
    result, *inputs = map(access, tensors)
    expression = Expression(result, tuple(inputs), product, "")
    extents = {k: v for k, v in more.items() if k != "starts"}
    found = refusal(
        expression, formats or {}, dict.fromkeys((a.name for a in (result, *inputs)), dtype), engine,
        extents=extents, starts=bool(more.get("starts")),
    )  # fmt: skip
    return found or ""


Case = tuple[str, str, dict[str, str], tuple[str, ...]]
LEGAL: list[Case] = [
    ("blas", "f64", {}, LINEAR),
    ("blas", "c64", {"X": "(d0, d1) -> (d1 : dense, d0 : dense)"}, LINEAR),
    ("blas", "f32", {}, ("Y bmn", "X bmk", "W nk")),
    ("blas", "f32", {}, ("s", "x i", "y i")),
    ("scipy", "f64", {"W": "CSR"}, LINEAR),
    ("scipy", "i8", {"X": "BSR(4,4)"}, LINEAR),
    ("scipy", "f32", {"A": "COO"}, ("y i", "A ij", "x j")),
    ("cublas", "bf16", {}, LINEAR),
    ("cublas", "f16", {}, ("Y bmn", "X bmk", "W nk")),
    ("cusparselt", "f16", {"W": "2:4"}, LINEAR),
    ("cusparselt", "bf16", {"W": "2:4"}, ("y n", "W nk", "x k")),
    ("cusparse", "f32", {"W": "CSR"}, LINEAR),
    ("generated", "bool", {}, ("Y mn", "X mn")),
]


@pytest.mark.parametrize(("engine", "dtype", "formats", "tensors"), LEGAL)
def test_legal(engine: str, dtype: str, formats: dict[str, str], tensors: tuple[str, ...]) -> None:
    assert asked(engine, dtype, formats, tensors) == ""


REFUSED: list[tuple[str, str, dict[str, str], tuple[str, ...], str]] = [
    ("blas", "i32", {}, LINEAR, "BLAS has no integers"),
    ("blas", "f16", {}, LINEAR, "not f16"),
    ("blas", "bool", {}, LINEAR, "not bool"),
    ("blas", "f64", {"W": "CSR"}, LINEAR, "it takes dense operands; X is dense and W is CSR"),
    ("blas", "f64", {"Y": "CSR"}, LINEAR, "the result Y is CSR"),
    ("blas", "f64", {}, ("C ik", "A ij", "B jl"), "index l is summed in one operand alone"),
    ("blas", "f64", {}, ("C ik", "A ijl", "B jkl"), "it sums over j and l"),
    ("blas", "f64", {}, ("C ij", "A i", "B j"), "it sums over nothing"),
    ("blas", "f64", {}, ("C i", "A ii", "B i"), "index i is repeated"),
    ("blas", "f64", {}, ("C ij", "A ik", "B kj", "D ij"), "the sum of one product of two"),
    ("scipy", "f16", {"W": "CSR"}, LINEAR, "not f16"),
    ("scipy", "f64", {"W": "DCSR"}, LINEAR, "CSR, CSC, BSR, COO and a dense one; X is dense and W"),
    ("scipy", "f64", {"W": "CSR", "X": "CSR"}, LINEAR, "X is CSR and W is CSR"),
    ("scipy", "f64", {"A": "CSF"}, ("C imn", "A ijm", "B jn"), "A is CSF"),
    ("scipy", "f64", {"W": "CSR"}, ("Y bmn", "X bmk", "W nk"), "index b is one more"),
    ("scipy", "f64", {"W": "CSR@i8/i8"}, LINEAR, "have 8 bits and 8 bits; it takes 32 or 64"),
    ("scipy", "f64", {"W": "CSR@i64/i32"}, LINEAR, "have 32 bits and 64 bits"),
    ("cublas", "i8", {}, LINEAR, "not i8"),
    ("cublas", "f16", {"W": "2:4"}, LINEAR, "it takes dense operands"),
    ("cusparselt", "f32", {"W": "2:4"}, LINEAR, "rounded to tf32"),
    ("cusparselt", "f16", {"W": "CSR"}, LINEAR, "it takes one operand in 2:4"),
    ("cusparselt", "f16", {"W": "2:4"}, ("Y mn", "X mk", "W kn"), "groups of four of W do not run"),
    ("cusparse", "f32", {"W": "CSC"}, LINEAR, "it takes one operand in CSR"),
    ("cusparse", "f32", {"W": "CSR"}, ("Y mn", "X mk", "W kn"), "the rows of W do not run along k"),
]  # fmt: skip


@pytest.mark.parametrize(("engine", "dtype", "formats", "tensors", "reason"), REFUSED)
def test_refused(
    engine: str, dtype: str, formats: dict[str, str], tensors: tuple[str, ...], reason: str
) -> None:
    assert reason in asked(engine, dtype, formats, tensors)


def test_more_that_is_refused() -> None:
    assert "one product of two" in asked("blas", "f64", product=False)
    assert "it adds to a tensor" in asked("cublas", "f32", starts=True)
    assert asked("blas", "f32", starts=True) == ""
    four = {"W": "2:4"}
    assert "4100, which is no multiple of 16: pad it" in asked("cusparselt", "f16", four, k=4100)
    assert asked("cusparselt", "f16", four, k=4096, n=64, m=3) == ""
    assert "no multiple of 4" in asked("scipy", "f64", {"W": "BSR(4,8)"}, n=7)
    result, *inputs = map(access, LINEAR)
    mixed = refusal(
        Expression(result, tuple(inputs), True, ""), {}, {"X": "f32", "W": "f64", "Y": "f64"}, "blas"
    )  # fmt: skip
    assert mixed == "its tensors are f32, f64; a library converts none of them"
    with pytest.raises(SparseccError, match="no engine 'mkl'"):
        asked("mkl", "f64")


def test_how_operands_stand() -> None:
    found = matrix_product("mk", "nk", "mn")
    assert (found.left, found.row, found.column, found.summed) == (0, "m", "n", "k")
    assert matrix_product("nk", "mk", "mn").left == 1
    turned = matrix_product("nk", "mk", "nm")
    assert (turned.left, turned.row, turned.column) == (0, "n", "m")
    vector = matrix_product("j", "ij", "i")
    assert (vector.left, vector.row, vector.column) == (1, "i", None)
    batch = matrix_product("btk", "nk", "btn")
    assert batch.batch == ("b",) and batch.right_axes("nk").missing == (True, False, False)
    with pytest.raises(NoMatrixProduct, match="no operand has index z"):
        matrix_product("ij", "j", "iz")


def test_what_is_here() -> None:
    assert of_target("cpu") == ("blas", "scipy")
    assert of_target("sm_90") == ("cublas", "cusparselt", "cusparse")
    assert "blas" in present("cpu") <= {"blas", "scipy"}
    assert present("sm_90") <= set(of_target("sm_90"))
    assert set(of_target("cpu")) | set(of_target("sm_80")) == set(ENGINES)
    loads = "from sparsecc.selection.engines import present; present('cpu'); present('sm_90')"
    text = f"{loads}; import sys; print({{'scipy', 'torch'}} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
