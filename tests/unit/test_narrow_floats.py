"""f16 and bf16 from end to end: conversions bit for bit, sums rounded once, exchange and files; out_dtype."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import sparsecc as sc
from sparsecc import driver
from sparsecc.backends.cpu import load
from sparsecc.backends.cpu.emit_narrow import LIBRARY, RoundsTwice
from sparsecc.diagnostics import ExpressionError, OperandError, UnsupportedError
from sparsecc.elements import NUMPY, name_of
from tests.unit.storage_bits import same_bits

DTYPES = ("f16", "bf16")
EVERY = np.arange(1 << 16, dtype=np.uint16)
"""The bits of every number of 16 bits."""


def every(dtype: str) -> Any:
    return EVERY.view(NUMPY[dtype])


def matrix(dtype: str, shape: tuple[int, int] = (9, 7), seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    return np.where(rng.random(shape) < 0.4, values, 0).astype(NUMPY[dtype])


def test_names() -> None:
    assert NUMPY["bf16"] == ml_dtypes.bfloat16 and name_of(NUMPY["bf16"]) == "bf16"
    assert name_of(np.dtype(np.float16)) == "f16" and name_of(np.dtype("V2")) is None
    assert "bf16" in NUMPY and len(NUMPY) == len(list(NUMPY)) == 15
    with pytest.raises(KeyError):
        NUMPY["f8"]


# -- arithmetic ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_number_is_widened_exactly(dtype: str) -> None:
    found = sc.evaluate("y[i] = x[i]", x=every(dtype), out_dtype="f32")
    assert same_bits(found, every(dtype).astype(np.float32), nan_payloads=False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_is_to_nearest_even(dtype: str) -> None:
    """Halfway between two neighbours, a bit beside it, the smallest numbers and beyond the largest."""
    with np.errstate(all="ignore"):
        exact = every(dtype).astype(np.float32)
        follow = (EVERY + np.uint16(1)).view(NUMPY[dtype]).astype(np.float32)
        middle = exact + (follow - exact) / 2
        values = np.concatenate(
            [
                middle,
                np.nextafter(middle, exact),
                np.nextafter(middle, follow),
                [1e30, -3e38, 1e-45],
            ]
        ).astype(np.float32)
        ones = np.ones(len(values), NUMPY[dtype])
        wanted = values.astype(NUMPY[dtype])
    kernel = sc.compile_mlir(f"""
        func.func @main(%x: tensor<?xf32>, %o: tensor<?x{dtype}>) -> tensor<?x{dtype}> {{
          %y = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
              iterator_types = ["parallel"]}} ins(%x : tensor<?xf32>) outs(%o : tensor<?x{dtype}>) {{
          ^bb0(%a: f32, %b: {dtype}):
            %r = arith.truncf %a : f32 to {dtype}
            linalg.yield %r : {dtype}
          }} -> tensor<?x{dtype}>
          return %y : tensor<?x{dtype}>
        }}""")
    assert same_bits(kernel(x=values, o=ones), wanted, nan_payloads=False)


def test_the_library_converts_like_numpy() -> None:
    """The functions that stand in for what processors without f16 lack, called by name."""
    text = (
        LIBRARY
        + """
        define void @k_entry(ptr %args) {
        entry:
          %p0 = load ptr, ptr %args
          %at1 = getelementptr i64, ptr %args, i64 1
          %p1 = load ptr, ptr %at1
          %at2 = getelementptr i64, ptr %args, i64 2
          %p2 = load ptr, ptr %at2
          %at3 = getelementptr i64, ptr %args, i64 3
          %n = load i64, ptr %at3
          br label %head
        head:
          %i = phi i64 [ 0, %entry ], [ %next, %head ]
          %a = getelementptr half, ptr %p0, i64 %i
          %h = load half, ptr %a
          %f = call float @__extendhfsf2(half %h)
          %b = getelementptr float, ptr %p1, i64 %i
          %g = load float, ptr %b
          store float %f, ptr %b
          %r = call half @__truncsfhf2(float %g)
          %c = getelementptr half, ptr %p2, i64 %i
          store half %r, ptr %c
          %next = add i64 %i, 1
          %go = icmp slt i64 %next, %n
          br i1 %go, label %head, label %end
        end:
          ret void
        }
        """
    )
    code, _ = load.compile_object(text)
    loaded = load.load_object(code, ["k"])
    halves = every("f16").copy()
    rng = np.random.default_rng(0)
    floats = rng.integers(0, 1 << 32, len(halves), dtype=np.uint32).view(np.float32)
    floats[:40_000] = rng.standard_normal(40_000) * 10.0 ** rng.integers(-9, 6, 40_000)
    with np.errstate(all="ignore"):
        wanted = floats.astype(np.float16)
    widened, rounded = floats.copy(), np.zeros(len(halves), np.float16)
    addresses = [a.ctypes.data for a in (halves, widened, rounded)]
    words = (ctypes.c_int64 * 4)(*addresses, len(halves))
    loaded.functions["k"](ctypes.addressof(words))
    assert same_bits(widened, halves.astype(np.float32), nan_payloads=False)
    assert same_bits(rounded, wanted, nan_payloads=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", ["y[i] = A[i,j] * x[j]", "y[i] = A[j,i] * x[j]"])
def test_sums_are_rounded_once(dtype: str, text: str) -> None:
    """4096 ones: summed step by step in bf16 they stop at 256, in f16 at 2048; 4097 needs the rounding."""
    a = np.ones((4097, 4097) if "j,i" in text else (2, 4097), NUMPY[dtype])[:, :4097]
    a = a[:, :2] if "j,i" in text else a
    x = np.ones(4097, NUMPY[dtype])
    y = sc.evaluate(text, A=sc.asarray(a).to("CSR"), x=x)
    assert y.dtype == NUMPY[dtype]
    assert (y == np.float32(4097).astype(NUMPY[dtype])).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("out", ["CSR", "CSC", "COO", "BSR(2,2)", "dense"])
def test_sparse_sums_are_rounded_once(dtype: str, out: str) -> None:
    """Workspaces and unsorted entries too: 300 products of one entry."""
    a, b = np.ones((3, 4097), NUMPY[dtype]), np.ones((4097, 2), NUMPY[dtype])
    c: Any = sc.evaluate(
        "C[i,j] = A[i,k] * B[k,j]", A=sc.asarray(a).to("CSR"), B=sc.asarray(b).to("CSR"), out=out
    )
    c = c.to_numpy() if out != "dense" else c
    assert (c == np.float32(4097).astype(NUMPY[dtype])).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_expressions_are_rounded_at_their_end(dtype: str) -> None:
    """x * x overflows f16, and loses bits in bf16; the quotient is right again."""
    x = np.array([300, 1000, 257], NUMPY[dtype])
    assert (sc.evaluate("y[i] = x[i] * x[i] / x[i]", x=x) == x).all()
    b = np.array([1, 2, 3], NUMPY[dtype])
    found = sc.evaluate("y[i] = b[i] - A[i,j] * x[j]", b=b, A=np.diag(b), x=b)
    assert found.dtype == NUMPY[dtype] and (found == np.array([0, -2, -6])).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_bodies_of_16_bits(dtype: str) -> None:
    """Text may compute in 16 bits; sums are still kept in f32, and each other operation is rounded."""
    text = f"""
        #CSR = #sparse_tensor.encoding<{{ map = (i, j) -> (i : dense, j : compressed) }}>
        func.func @main(%A: tensor<?x?x{dtype}, #CSR>, %x: tensor<?x{dtype}>, %y: tensor<?x{dtype}>)
            -> tensor<?x{dtype}> {{
          %r = linalg.matvec ins(%A, %x : tensor<?x?x{dtype}, #CSR>, tensor<?x{dtype}>)
              outs(%y : tensor<?x{dtype}>) -> tensor<?x{dtype}>
          return %r : tensor<?x{dtype}>
        }}"""
    a, x, y = matrix(dtype), matrix(dtype, (7, 1), 1)[:, 0], matrix(dtype, (9, 1), 2)[:, 0]
    products = (a * x).astype(np.float32)
    wanted = (y.astype(np.float32) + products.sum(1)).astype(NUMPY[dtype])
    found = sc.compile_mlir(text)(A=sc.asarray(a).to("CSR"), x=x, y=y)
    np.testing.assert_allclose(found.astype("f4"), wanted.astype("f4"), rtol=1e-2, atol=1e-3)


def test_f64_is_not_rounded_twice() -> None:
    text = """
        func.func @main(%x: tensor<?xf64>, %o: tensor<?xbf16>) -> tensor<?xbf16> {
          %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
              iterator_types = ["parallel"]} ins(%x : tensor<?xf64>) outs(%o : tensor<?xbf16>) {
          ^bb0(%a: f64, %b: bf16):
            %r = arith.truncf %a : f64 to bf16
            linalg.yield %r : bf16
          } -> tensor<?xbf16>
          return %y : tensor<?xbf16>
        }"""
    with pytest.raises(RoundsTwice, match="round it to f32 first"):
        sc.compile_mlir(text)


def test_columns_are_vectors() -> None:
    """A matrix of columns goes in blocks, as it does in f32."""
    a, x = matrix("bf16", (20, 30)), matrix("bf16", (30, 77), 1)
    kernel = sc.compile("C[i,j] = A[i,k] * X[k,j]", A=sc.asarray(a).to("CSR"), X=x)
    assert "vector.load" in kernel.ir("loops")
    wanted = (a.astype("f4") @ x.astype("f4")).astype(a.dtype)
    a = sc.asarray(a).to("CSR")
    np.testing.assert_allclose(kernel(A=a, X=x).astype("f4"), wanted.astype("f4"), rtol=1e-2)


# -- storage -------------------------------------------------------------------------------------

FORMATS = ("dense", "dense:1,0", "CSR", "CSC", "COO", "DCSR", "BSR(2,3)", "ELL")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("source", FORMATS)
def test_conversions_keep_the_bits(dtype: str, source: str) -> None:
    values = matrix(dtype)
    values[0, 0], values[1, 2] = np.nan, -np.inf
    values.view(np.uint16)[3, 3] = 0xFFA5  # a NaN with a payload
    tensor = sc.asarray(values).to(source)
    for target in FORMATS:
        assert same_bits(tensor.to(target).check().to_numpy(), values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_repeated_entries_are_summed_in_f32(dtype: str) -> None:
    ones = np.ones(4097, NUMPY[dtype])
    tensor = sc.from_coords([np.zeros(4097, int), np.zeros(4097, int)], ones, (1, 1))
    assert tensor.values[0] == np.float32(4097).astype(NUMPY[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".mtx", ".tns"])
def test_files(dtype: str, suffix: str, tmp_path: Path) -> None:
    values = matrix(dtype)
    tensor = sc.asarray(values).to("dense" if suffix == ".npy" else "CSR")
    tensor.save(tmp_path / f"A{suffix}")
    found = sc.read(tmp_path / f"A{suffix}")
    if suffix in (".npy", ".npz"):
        assert found.dtype == NUMPY[dtype]
    assert (found.to_numpy().astype(NUMPY[dtype]) == values).all()


def test_scipy_has_no_such_values() -> None:
    with pytest.raises(UnsupportedError, match="convert the tensor to f32"):
        sc.asarray(matrix("f16")).to("CSR").to_scipy()


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch(dtype: str) -> None:
    torch: Any = pytest.importorskip("torch")
    values = matrix(dtype)
    kind = torch.bfloat16 if dtype == "bf16" else torch.float16
    for name in ("dense", "CSR", "COO"):
        made = sc.asarray(values).to(name).to_torch()
        assert made.dtype == kind
        assert (made.to_dense().float().numpy() == values.astype(np.float32)).all()
        back = sc.asarray(made)
        assert back.dtype == NUMPY[dtype] and same_bits(back.to_numpy(), values)
    shared = torch.zeros(3, dtype=kind)
    tensor = sc.asarray(shared)
    shared[1] = 2
    assert tensor.values[1] == 2


# -- out_dtype -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "cast"),
    [
        ("i8", "i32", "arith.extsi"), ("u8", "i32", "arith.extui"), ("f16", "f32", "arith.extf"),
        ("bf16", "f64", "arith.extf"), ("i32", "f64", "arith.sitofp"), ("u32", "f64", "arith.uitofp"),
        ("bool", "i32", "arith.extui"), ("f32", "c64", "complex.create"),
    ],
)  # fmt: skip
def test_operands_are_cast_before_they_are_multiplied(source: str, target: str, cast: str) -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 120, (5, 8)).astype(NUMPY[source])
    x = rng.integers(0, 120, 8).astype(NUMPY[source])
    rows = sc.asarray(a).to("CSR")
    kernel = sc.compile("y[i] = A[i,j] * x[j]", A=rows, x=x, out_dtype=target)
    text = kernel.ir("tensor")
    assert 0 < text.index(cast) < text.index("arith.mul" if target != "c64" else "complex.mul")
    found, wanted = kernel(A=rows, x=x), a.astype(NUMPY[target]) @ x.astype(NUMPY[target])
    assert found.dtype == NUMPY[target] and (found == wanted).all()
    assert (sc.einsum("ij,j->i", rows, x, out_dtype=NUMPY[target]) == wanted).all()
    assert (sc.evaluate("y[i] = A[i,j] * x[j]", A=rows, x=x, out_dtype=target) == wanted).all()


def test_temporaries_are_not_cast_again() -> None:
    a = np.arange(6, dtype=np.int8).reshape(2, 3)
    found = sc.evaluate("t[i] = A[i,j] * A[i,j]; s = t[i] * t[i]", A=a, out_dtype="i64")
    assert found == ((a.astype(int) ** 2).sum(1) ** 2).sum() and found.dtype == np.int64


def test_narrowing_is_refused() -> None:
    a = np.ones((2, 2), np.int32)
    with pytest.raises(OperandError, match="ask for out_dtype=i32"):
        sc.evaluate("y[i] = A[i,j]", A=a, out_dtype="i8")
    with pytest.raises(OperandError, match="ask for out_dtype=f64"):
        sc.evaluate("y[i] = A[i,j]", A=a, out_dtype="f32")
    with pytest.raises((ExpressionError, OperandError), match="computed in f64, which is not"):
        sc.evaluate("y[i] = A[i,j] / 2", A=a, out_dtype="i32")
    with pytest.raises(OperandError, match="no element type 'f9'"):
        sc.evaluate("y[i] = A[i,j]", A=a, out_dtype="f9")
    request = driver.Request(
        "expression", "y[i] = x[i]", (("x", sc.Spec((3,)).operand()),), None, "f9"
    )
    with pytest.raises(OperandError, match="known: bf16"):
        driver.front(request)
