"""The C text of kernels: what it looks like, and that it computes what the machine code does."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sparsecc as sc
from sparsecc.backends.cpu.emit_c import emit_c
from sparsecc.elements import NUMPY
from sparsecc.frontends.ast import Access, names_read, walk
from sparsecc.frontends.index_notation import parse
from sparsecc.frontends.mlir_text import parse_module
from sparsecc.runtime.compiled_kernel import Kernel
from sparsecc.runtime.execute import Executor
from sparsecc.storage.ingest import asarray
from tests.oracle.corpus import ROWS

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
EXTENTS = dict(i=5, j=7, k=5, l=4, m=3, r=11, b=2, v=6, o=4, a2=2, b2=3, c2=2)
TEXTS = {row.number: row.text for row in ROWS}

SPMV = """\
#include <stdbool.h>
#include <stdint.h>

/* y[i] = A[i,j] * x[j] */
static void k0(
    const double *restrict in0_values,          /* values of A */
    const uint32_t *restrict in0_positions1,    /* positions of A's level 1 */
    const uint32_t *restrict in0_coordinates1,  /* coordinates of A's level 1 */
    int64_t in0_dim0,                           /* extent of A's dimension 0 */
    int64_t in0_dim1,                           /* extent of A's dimension 1 */
    const double *restrict in1_values,          /* values of x */
    int64_t in1_dim0,                           /* extent of x's dimension 0 */
    int64_t out_dim0,                           /* extent of y's dimension 0 */
    double *restrict out_values)                /* values of y */
{
    for (int64_t i = 0; i < in0_dim0; ++i) {
        int64_t lo = in0_positions1[i];
        int64_t hi = in0_positions1[i + 1];
        double sum = 0.0;
        for (int64_t p = lo; p < hi; ++p) {
            int64_t j = in0_coordinates1[p];
            sum += in0_values[p] * in1_values[j];
        }
        out_values[i] = sum;
    }
}

void k0_entry(const int64_t *args) {
    k0(
        (const double *)(intptr_t)args[0],
        (const uint32_t *)(intptr_t)args[1],
        (const uint32_t *)(intptr_t)args[2],
        args[3],
        args[4],
        (const double *)(intptr_t)args[5],
        args[6],
        args[7],
        (double *)(intptr_t)args[8]);
}
"""


def test_spmv() -> None:
    matrix, vector = sc.Spec((None, None), "f64", "CSR"), sc.Spec((None,), "f64")
    kernel = sc.compile("y[i] = A[i,j] * x[j]", out="dense", A=matrix, x=vector)
    assert kernel.source == SPMV


LOOPS = """
func.func @k0(%n: index, %out: memref<?xf64>) attributes {loops.args = ["in0.dim0", "out.values"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f64
  %x, %y, %z = scf.for %i = %c0 to %n step %c1 iter_args(%s = %one, %t = %one, %u = %one)
      -> (f64, f64, f64) {
    %q = arith.addf %s, %t : f64
    scf.yield %t, %u, %q : f64, f64, f64
  }
  %old = memref.load %out[%c1] : memref<?xf64>
  memref.store %x, %out[%c1] : memref<?xf64>
  %sum = arith.subf %y, %z : f64
  %d = arith.subf %old, %sum : f64
  memref.store %d, %out[%c0] : memref<?xf64>
  return
}
"""


def test_assigns_all_at_once_and_reads_before_it_writes() -> None:
    text = emit_c(parse_module(LOOPS))
    body = text[text.index("{\n") + 2 : text.index("\n}")]
    assert [line.strip() for line in body.splitlines()] == [
        "double s = 1.0;",
        "double t = 1.0;",
        "double u = 1.0;",
        "for (int64_t i = 0; i < n; ++i) {",
        "double old = s;",
        "s = t;",
        "double old2 = t;",
        "t = u;",
        "u = old + old2;",
        "}",
        "double old3 = out[1];",
        "out[1] = s;",
        "out[0] = old3 - (t - u);",
    ]


VECTOR = "(d0) -> (d0 : compressed)"

PROGRAMS: list[tuple[int | str, str, dict[str, str], str]] = [
    # row of the corpus or expression, dtype, formats of the sparse operands, format of the result
    (1, "f64", {"x": VECTOR}, "dense"),
    (3, "c64", {"x": VECTOR, "y": VECTOR}, "dense"),
    (4, "f64", {"A": "CSR"}, "dense"),
    (4, "c128", {"A": "CSR"}, "dense"),
    (4, "bool", {"A": "DCSR"}, "dense"),
    (4, "i8", {"A": "CSR@i8/i16"}, "dense"),
    (4, "f32", {"A": "CSR@i64/i64"}, "dense"),
    (6, "i32", {"A": "COO"}, "dense"),
    (7, "f64", {"A": "DCSR", "x": VECTOR}, VECTOR),
    (9, "f32", {"A": "CSR"}, "dense"),
    (10, "f64", {"A": "CSR"}, "dense"),
    (12, "f64", {"A": "CSR"}, "dense"),
    (12, "i16", {"A": "DCSR"}, "dense"),
    (12, "c64", {"A": "CSR"}, "dense"),
    (14, "f64", {"A": "CSR", "B": "CSR"}, "CSR"),
    (14, "u8", {"A": "CSR", "B": "CSR"}, "CSC"),
    (14, "bool", {"A": "CSR", "B": "CSR"}, "CSR"),
    (15, "f64", {"A": "CSR", "B": "CSR"}, "CSR"),
    (19, "f64", {"A": "CSR"}, "CSR"),
    (22, "f64", {"M": "CSR", "A": "CSR", "B": "CSC"}, "CSR"),
    (23, "f64", {"A": "CSR", "B": "CSR"}, "CSR"),
    (23, "bool", {"A": "COO", "B": "DCSR"}, "DCSR"),
    (24, "i32", {"A": "CSR", "B": "DCSR", "D": "COO"}, "CSR"),
    (26, "u16", {"A": "CSR", "B": "CSR"}, "CSR"),
    (28, "c128", {"A": "CSR", "B": "CSR", "D": "CSR"}, "CSR"),
    (36, "f64", {"A": "CSR"}, "dense"),
    (42, "f64", {"B": "CSF"}, "dense"),
    (46, "i64", {"B": "CSF", "C": "CSF"}, "CSF"),
    (50, "f32", {"A": "CSR"}, "dense"),
    ("C[i,j] = A[i,j] / B[i,j]", "c128", {"A": "CSR", "B": "CSR"}, "dense"),
    ("C[i,j] = A[i,j] / x[j]", "f64", {"A": "CSR"}, "CSR"),
    ("y[i] = -x[i] + 3 * z[i]", "i32", {"x": VECTOR, "z": VECTOR}, "dense"),
]


def draw(text: str, dtype: str, formats: dict[str, str]) -> dict[str, Any]:
    """Operands of small whole numbers: their sums of products are exact, fused or not."""
    rng = np.random.default_rng(len(text))
    statement = parse(text).statements[-1]
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(sorted(names_read(statement.expr)), ())
    for node in walk(statement.expr):
        if isinstance(node, Access):
            # For i8: coordinates beyond 127 in bytes, and sums that wrap around.
            extents = EXTENTS | {"j": 200} if dtype == "i8" else EXTENTS
            shapes[node.name] = tuple(extents[str(i)] for i in node.indices)
    made: dict[str, Any] = {}
    for name, shape in shapes.items():
        values: npt.NDArray[Any] = rng.integers(1, 9, shape)
        if dtype[0] == "c":
            values = values + 1j * rng.integers(-4, 5, shape)
        if name in formats:
            values = np.where(rng.random(shape) < 0.4, values, 0)
        tensor = asarray(np.asarray(values).astype(NUMPY[dtype]))
        made[name] = tensor.to(formats[name]) if name in formats else tensor
    return made


def functions_from_c(kernel: Kernel, folder: Path) -> dict[str, Any]:
    """The kernel's functions, compiled from its C text."""
    assert COMPILER is not None
    source, library = folder / "kernel.c", folder / "kernel.so"
    source.write_text(kernel.source, encoding="utf-8")
    flags = "-std=c99 -O1 -shared -fPIC -Wall -Wextra -Werror -pedantic".split()
    quiet = ["-Wno-unused-parameter", "-Wno-sign-compare"]
    command = [COMPILER, *flags, *quiet, "-o", str(library), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + kernel.source
    loaded = ctypes.CDLL(str(library))
    signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    return {
        name: ctypes.cast(getattr(loaded, f"{name}_entry"), signature)
        for name in kernel.plan.kernels()
    }


@pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc, clang) is on PATH")
@pytest.mark.parametrize(
    ("what", "dtype", "formats", "out"),
    PROGRAMS,
    ids=[f"{p[0]}-{p[1]}-{n}" for n, p in enumerate(PROGRAMS)],
)
def test_computes_what_the_machine_code_does(
    what: int | str, dtype: str, formats: dict[str, str], out: str, tmp_path: Path
) -> None:
    text = TEXTS[what] if isinstance(what, int) else what
    operands = draw(text, dtype, formats)
    kernel = sc.compile(text, out=out, **operands)
    tensors = kernel.bind(operands)
    (wanted,) = kernel.executor(tensors)
    (found,) = Executor(kernel.plan, functions_from_c(kernel, tmp_path))(tensors)
    assert found.format == wanted.format
    assert found.shape == wanted.shape
    assert len(wanted.values) > 0
    for mine, its in zip(found.levels, wanted.levels, strict=True):
        for (role, a), (_, b) in zip(mine, its, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=role)
    if "/" in text:
        np.testing.assert_allclose(found.values, wanted.values, rtol=1e-13)
    else:
        np.testing.assert_array_equal(found.values, wanted.values)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc, clang) is on PATH")
def test_integers_divide_by_zero_as_in_machine_code(tmp_path: Path) -> None:
    body = "\n".join(
        f"%{name} = arith.{name} %a, %b : i32" for name in ("divsi", "remsi", "divui", "remui")
    )
    kernel = sc.compile_mlir(f"""
      func.func @main(%x: tensor<?xi32>, %y: tensor<?xi32>) -> tensor<?xi32> {{
        %c0 = arith.constant 0 : index
        %n = tensor.dim %x, %c0 : tensor<?xi32>
        %e = tensor.empty(%n) : tensor<?xi32>
        %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                             affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
          ins(%x, %y : tensor<?xi32>, tensor<?xi32>) outs(%e : tensor<?xi32>) {{
        ^bb0(%a: i32, %b: i32, %c: i32):
          {body}
          %s = arith.addi %divsi, %remsi : i32
          %t = arith.xori %divui, %remui : i32
          %u = arith.addi %s, %t : i32
          linalg.yield %u : i32
        }} -> tensor<?xi32>
        return %r : tensor<?xi32>
      }}""")
    x = np.array([7, -7, 5, -(2**31), 3, -(2**31)], np.int32)
    y = np.array([2, 2, 0, -1, -1, 0], np.int32)
    tensors = kernel.bind({"x": x, "y": y})
    (wanted,) = kernel.executor(tensors)
    (found,) = Executor(kernel.plan, functions_from_c(kernel, tmp_path))(tensors)
    np.testing.assert_array_equal(found.values, wanted.values)
    assert wanted.values[2] == wanted.values[5] == 0
