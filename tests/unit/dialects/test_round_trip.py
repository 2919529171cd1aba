"""Every stage that is IR reads back: the text parses, verifies, and prints as it was."""

from __future__ import annotations

import pytest

import sparsecc as sc
from sparsecc.dialects.text.printer import print_module
from sparsecc.frontends.mlir_text import parse_module

PROGRAMS: list[tuple[str, dict[str, str], str]] = [
    # expression, operands as "rank dtype format", format of the result
    ("y[i] = A[i,j] * x[j]", {"A": "2 f64 CSR", "x": "1 f64"}, "dense"),
    ("y[i] = A[i,j] * x[j]", {"A": "2 f64 COO", "x": "1 f64"}, "dense"),
    ("y[i] = A[i,j] * x[j]", {"A": "2 c64 DCSR", "x": "1 c64 (d0) -> (d0 : compressed)"}, "dense"),
    ("y[i] = A[i,j] * x[j]", {"A": "2 bool CSC", "x": "1 bool"}, "dense"),
    ("y[i] = b[i] - A[i,j] * x[j]", {"A": "2 f32 CSR", "x": "1 f32", "b": "1 f32"}, "dense"),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "2 f64 CSR", "B": "2 f64 CSR"}, "CSR"),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "2 f64 COO", "B": "2 f64 DCSR"}, "DCSR"),
    ("C[i,j] = A[i,j] - B[i,j]", {"A": "2 i32 CSR", "B": "2 i32 CSR"}, "CSR"),
    ("C[i,j] = A[i,j] * B[i,j]", {"A": "2 u8 CSR", "B": "2 u8 COO"}, "CSR"),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "2 f64 CSR", "B": "2 f64 CSR"}, "CSR"),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "2 f64 CSR", "B": "2 f64"}, "dense"),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "2 f64 CSR", "B": "2 f64 CSR"}, "CSC"),
    (
        "C[i,j] = A[i,j] * U[i,k] * V[k,j]",
        {"A": "2 f64 CSR", "U": "2 f64", "V": "2 f64"},
        "CSR",
    ),
    (
        "D[i,j] = (A[i,j] + B[i,j]) * C[i,j]",
        {"A": "2 f64 CSR", "B": "2 f64 CSR", "C": "2 f64 CSR"},
        "CSR",
    ),
    ("s = A[i,j] * A[i,j]", {"A": "2 f64 CSR"}, "dense"),
    ("y[i] = 2.5 * x[i] + z[i]", {"x": "1 f64 (d0) -> (d0 : compressed)", "z": "1 f64"}, "dense"),
    ("C[i,j] = A[i,j] / B[i,j]", {"A": "2 f64 CSR", "B": "2 f64 CSR"}, "dense"),
    ("C[i,j] = r[i] * A[i,j]", {"A": "2 f64 BSR(2,2)", "r": "1 f64"}, "BSR(2,2)"),
]


def spec(text: str) -> sc.Spec:
    rank, dtype, *format = text.split(" ", 2)
    return sc.Spec((None,) * int(rank), dtype, format[0] if format else None)


@pytest.mark.parametrize(
    ("text", "operands", "out"), PROGRAMS, ids=[f"{n}:{p[0]}" for n, p in enumerate(PROGRAMS)]
)
def test_stages_read_back(text: str, operands: dict[str, str], out: str) -> None:
    specs = {name: spec(s) for name, s in operands.items()}
    kernel = sc.compile(text, out=out, operands=specs)
    for stage in ("tensor", "selected", "iteration", "loops"):
        printed = kernel.ir(stage)
        comment, _, body = printed.partition("\n")
        assert comment.startswith("// ")
        assert print_module(parse_module(body, stage)) == body, stage


LIBRARY = """
func.func @main(%A: tensor<?x?xf64>, %x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %s = iteration.library_call "blas"(%x, %x) as ["j"], ["j"] -> [] {note = "dot"}
    : (tensor<?xf64>, tensor<?xf64>) -> tensor<f64>
  %z = iteration.library_call "blas"(%A, %x) onto %y as ["i", "j"], ["j"] -> ["i"]
    : (tensor<?x?xf64>, tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %z : tensor<?xf64>
}
"""


def test_calls_of_libraries_read_back() -> None:
    printed = print_module(parse_module(LIBRARY, "library"))
    assert printed.count('iteration.library_call "blas"') == 2
    assert print_module(parse_module(printed, "again")) == printed


def test_iteration_ops_have_no_generic_form() -> None:
    kernel = sc.compile("C[i,j] = A[i,k] * B[k,j]", A=spec("2 f64 CSR"), B=spec("2 f64 CSR"))
    assert '"iteration.' not in kernel.ir("iteration").replace('iterate "', "")
