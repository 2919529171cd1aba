"""Inputs that broke other tools, and the shapes where loops go wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.diagnostics import LimitError
from sparsecc.frontends.mistakes import ExtentMismatch
from sparsecc.kernel import Convert
from sparsecc.passes.sparsification.loop_nest import TooManyLoops
from sparsecc.runtime.compiled_kernel import BadOutput, WrongExtent
from sparsecc.runtime.extents import ExtentsDiffer
from sparsecc.storage.tensor import SparseTensor

Array = np.ndarray[Any, np.dtype[Any]]
SPARSE = ("CSR", "CSC", "COO", "DCSR", "BSR(2,2)", "ELL")


def matrix(rows: list[list[float]], fmt: str = "CSR") -> SparseTensor:
    return sc.asarray(np.array(rows)).to(fmt)


def dense(value: Any) -> Array:
    return value.to_numpy() if isinstance(value, SparseTensor) else np.asarray(value)


@pytest.mark.parametrize("fmt", SPARSE)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1.0, 1, 0, 0], [0.0, 0, 1, 1]),  # one row ends before the other begins: a tail of two
        ([1.0, 0, 1, 0, 0], [0.0, 1, 0, 1, 1]),
        ([0.0, 0, 0, 0], [0.0, 0, 1, 1]),
        ([1.0, 1, 1, 1], [1.0, 1, 1, 1]),
        ([0.0, 0, 0, 7], [5.0, 0, 0, 0]),
    ],
)
def test_tails_of_a_union(a: list[float], b: list[float], fmt: str) -> None:
    result = sc.evaluate(
        "C[i,j] = A[i,j] + B[i,j]", A=matrix([a], fmt), B=matrix([b], fmt), out=fmt
    )
    assert np.array_equal(dense(result), np.array([a]) + np.array([b]))


@pytest.mark.parametrize("fmt", SPARSE)
def test_empty_results(fmt: str) -> None:
    a, b = matrix([[1.0, 0], [0, 2]], fmt), matrix([[0.0, 3], [4, 0]], fmt)
    product = sc.evaluate("C[i,j] = A[i,j] * B[i,j]", A=a, B=b, out=fmt)
    assert product.nnz == 0 and product.shape == (2, 2)
    product.check("full")


def test_empty_intersection_of_a_product_has_positions() -> None:
    a = matrix([[1.0, 1, 0, 0], [1, 1, 0, 0]])
    b = matrix([[0.0, 0], [0, 0], [1, 1], [1, 1]])
    c = sc.evaluate("C[i,j] = A[i,k] * B[k,j]", A=a, B=b)
    assert c.format == a.format and c.levels[1].positions.tolist() == [0, 0, 0]


@pytest.mark.parametrize("fmt", SPARSE)
def test_empty_and_full_rows(fmt: str) -> None:
    rows = np.array([[0.0] * 5, [1, 2, 3, 4, 5], [0] * 5, [0, 0, 6, 0, 0], [0] * 5])
    a = sc.asarray(rows).to(fmt)
    x = np.arange(5.0)
    assert np.array_equal(sc.evaluate("y[i] = A[i,j] * x[j]", A=a, x=x), rows @ x)
    square = sc.evaluate("C[i,j] = A[i,k] * A[k,j]", A=a, out=fmt)
    assert np.array_equal(dense(square), rows @ rows)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1)])
def test_extents_of_zero_and_one(shape: tuple[int, int]) -> None:
    a = sc.asarray(np.ones(shape)).to("CSR")
    x, z = np.ones(shape[1]), np.ones((shape[1], 33))
    assert np.array_equal(sc.evaluate("y[i] = A[i,j] * x[j]", A=a, x=x), np.ones(shape) @ x)
    assert np.array_equal(sc.evaluate("C[i,j] = A[i,k] * X[k,j]", A=a, X=z), np.ones(shape) @ z)
    assert sc.evaluate("C[i,j] = A[i,k] * B[j,k]", A=a, B=a, out="CSR").shape == (
        shape[0],
        shape[0],
    )


def test_a_dirty_output_array_is_overwritten() -> None:
    a, out = matrix([[0.0, 0], [0, 0]]), np.full(2, 1e231)
    result = sc.evaluate("y[i] = A[i,j] * x[j]", A=a, x=np.ones(2), out=out)
    assert result is out and not out.any()
    out = np.full(2, np.nan)
    assert not sc.evaluate("y[j] = A[i,j] * x[i]", A=a, x=np.ones(2), out=out).any()


def test_a_missing_factor_annihilates_and_a_stored_zero_does_not() -> None:
    a = sc.from_coords([[0], [1]], [0.0], (2, 2), "CSR")  # one explicit zero
    x = np.array([np.inf, np.inf])
    assert np.array_equal(
        sc.evaluate("y[i] = A[i,j] * x[j]", A=a, x=x), [np.nan, 0.0], equal_nan=True
    )
    # … also where the factor is multiplied outside of the sum.
    y = sc.evaluate("y[i] = r[i] * A[i,j] * x[j]", A=a, r=np.full(2, np.inf), x=np.ones(2))
    assert np.array_equal(y, [np.nan, 0.0], equal_nan=True)


def test_scalars_are_numpy_scalars() -> None:
    total = sc.evaluate("s = A[i,j]", A=matrix([[1.0, 0], [0, 1]]))
    assert isinstance(total, np.float64) and total == 2.0


def test_an_operand_may_be_used_twice_and_transposed() -> None:
    rows = np.array([[1.0, 2, 0], [0, 0, 3], [4, 0, 0]])
    for fmt in SPARSE:
        a = sc.asarray(rows).to(fmt)
        assert sc.evaluate("s = A[i,j] * A[j,k] * A[i,k]", A=a) == np.einsum(
            "ij,jk,ik", rows, rows, rows
        )
        assert np.array_equal(
            dense(sc.evaluate("C[i,j] = A[i,j] + A[j,i]", A=a, out="CSR")), rows + rows.T
        )
        assert sc.evaluate("s = A[i,i]", A=a) == np.trace(rows)


@pytest.mark.parametrize("columns", [1, 7, 8, 31, 32, 33, 64, 72, 100])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_blocks_of_columns_and_their_tails(columns: int, dtype: str) -> None:
    rng = np.random.default_rng(columns)
    rows = (rng.integers(0, 4, (9, 11)) * (rng.random((9, 11)) < 0.4)).astype(dtype)
    x = rng.integers(0, 5, (11, columns)).astype(dtype)
    result = sc.evaluate("C[i,j] = A[i,k] * X[k,j]", A=sc.asarray(rows).to("CSR"), X=x)
    assert result.dtype == rows.dtype and np.array_equal(result, rows @ x)


def test_long_rows_are_sorted() -> None:
    """A row of the workspace is sorted, or scanned where it is crowded: both ways, past any insertion sort."""
    rng = np.random.default_rng(5)
    n = 3000
    coords = np.stack([np.zeros(300, np.int64), rng.permutation(n)[:300]])
    wide = sc.from_coords(coords, np.ones(300), (1, n), "CSR")
    spread = sc.from_coords(np.stack([np.arange(n), rng.permutation(n)]), np.ones(n), (n, n), "CSR")
    c = sc.evaluate("C[i,j] = A[i,k] * B[k,j]", A=wide, B=spread)
    c.check("full")
    assert np.array_equal(c.to_numpy(), wide.to_numpy() @ spread.to_numpy())
    crowded = sc.evaluate(
        "C[i,j] = A[i,k] * B[k,j]", A=spread, B=sc.asarray(np.ones((n, 5))).to("CSR")
    )
    crowded.check("full")
    assert crowded.nnz == 5 * n


def test_wide_indices() -> None:
    a = sc.from_coords(
        [[0, 4_000_000_000], [1, 3_999_999_999]], [2.0, 3.0], (4_000_000_001, 4_000_000_000), "DCSR"
    )
    b = sc.evaluate("C[i,j] = 2 * A[i,j]", A=a)
    assert b.nnz == 2 and b.to_coords()[0][0].tolist() == [0, 4_000_000_000]
    with pytest.raises(ExtentMismatch):
        sc.evaluate("C[i,j] = A[i,j] + B[i,j]", A=a, B=matrix([[1.0]]))


EXPECTED_CONVERSIONS = [
    ("y[i] = A[i,j] * x[j]", {"A": "CSR"}, "dense", 0),
    ("y[i] = A[i,j] * x[j]", {"A": "CSC"}, "dense", 0),
    ("y[i] = A[i,j] * x[j]", {"A": "COO"}, "dense", 0),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "CSR", "B": "CSR"}, "CSR", 0),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "CSC", "B": "CSC"}, "CSC", 0),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "CSR", "B": "CSR"}, "CSC", 1),
    ("C[i,j] = A[i,k] * B[j,k]", {"A": "CSR", "B": "CSR"}, "CSR", 1),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "CSR", "B": "CSR"}, "CSR", 0),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "CSR", "B": "CSC"}, "CSR", 1),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "DCSR", "B": "DCSR"}, "DCSR", 0),
    ("C[i,j] = r[i] * A[i,j]", {"A": "COO"}, "COO", 0),
    ("C[i,j] = A[i,j] * U[i,k] * V[k,j]", {"A": "ELL"}, "ELL", 0),
    ("Y[i,r] = B[i,k,l] * C[k,r] * D[l,r]", {"B": "CSF"}, "dense", 0),
]


@pytest.mark.parametrize(("text", "formats", "out", "count"), EXPECTED_CONVERSIONS)
def test_conversions_are_inserted_only_where_expected(
    text: str, formats: dict[str, str], out: str, count: int
) -> None:
    ranks = {"x": 1, "r": 1, "B": 3 if "B[i,k,l]" in text else 2}
    names = {n for n in "ABCDUVXxr" if f"{n}[" in text.split("=")[1]}
    specs = {n: sc.Spec((None,) * ranks.get(n, 2), "f64", formats.get(n)) for n in names}
    kernel = sc.compile(text, out=out, operands=specs)
    assert sum(isinstance(step, Convert) for step in kernel.plan.steps) == count, kernel.explain()


@pytest.mark.parametrize("fmt", SPARSE)
def test_strided_and_reversed_operands(fmt: str) -> None:
    rows = np.array([[1.0, 2, 0], [0, 0, 3], [4, 0, 0]])
    table = np.arange(24.0).reshape(6, 4)
    a = sc.asarray(rows).to(fmt)
    for x in (
        table[:3, 1],
        table[::2, 0],
        table[5:2:-1, 2],
        np.broadcast_to(3.0, 3),
        table.T[1, :3],
    ):
        assert np.array_equal(sc.evaluate("y[i] = A[i,j] * x[j]", A=a, x=x), rows @ x)
    for x in (table[::2, ::2], table[:3].T[:3], np.asfortranarray(table)[:3], table[:3, ::-1]):
        assert np.array_equal(sc.evaluate("C[i,j] = A[i,k] * X[k,j]", A=a, X=x), rows @ x)
    big_endian = np.arange(3).astype(">f8")
    assert np.array_equal(sc.evaluate("y[i] = A[i,j] * x[j]", A=a, x=big_endian), rows @ big_endian)


BLOCKS = (
    "BSR(2,2)",
    "BSR(2,3)",
    "BSR(3,1)",
    "(i, j) -> (j floordiv 2 : compressed, i floordiv 2 : compressed, i mod 2 : dense, j mod 2 : dense)",
    "(i, j) -> (i floordiv 4 : dense, j floordiv 2 : compressed, i mod 4 floordiv 2 : dense, i mod 2 : dense,"
    " j mod 2 : dense)",
)


@pytest.mark.parametrize("shape", [(7, 5), (8, 9), (6, 6), (1, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize("fmt", BLOCKS)
def test_blocks_are_walked_as_they_are(fmt: str, shape: tuple[int, int]) -> None:
    """Without a conversion, also where the last block reaches beyond the end."""
    rng = np.random.default_rng(3)
    rows = rng.integers(1, 5, shape) * (rng.random(shape) < 0.4) * 1.0
    a = sc.asarray(rows).to(fmt)
    x, z = rng.integers(0, 5, shape[1]) * 1.0, rng.integers(0, 5, (shape[1], 33)) * 1.0
    u, v = rng.integers(0, 5, (shape[0], 3)) * 1.0, rng.integers(0, 5, (3, shape[1])) * 1.0
    cases: list[tuple[str, dict[str, Any], str, Array]] = [
        ("y[i] = A[i,j] * x[j]", {"x": x}, "dense", rows @ x),
        ("y[j] = A[i,j] * x[i]", {"x": u[:, 0]}, "dense", rows.T @ u[:, 0]),
        ("C[i,j] = A[i,k] * X[k,j]", {"X": z}, "dense", rows @ z),
        ("s = A[i,j]", {}, "dense", np.asarray(rows.sum())),
        ("C[i,j] = A[i,j] + A[i,j] * A[i,j]", {}, "dense", rows + rows * rows),
        ("C[i,j] = A[i,j] + A[i,j] * A[i,j]", {}, fmt, rows + rows * rows),
        ("C[i,j] = A[i,j] * U[i,k] * V[k,j]", {"U": u, "V": v}, fmt, rows * (u @ v)),
    ]
    for text, others, out, wanted in cases:
        kernel = sc.compile(text, out=out, A=a, **others)
        if "+" not in text or out == "dense":
            assert not any(isinstance(step, Convert) for step in kernel.plan.steps), (
                kernel.explain()
            )
        assert np.array_equal(dense(kernel(A=a, **others)), wanted), text


def test_blocks_with_extents_that_differ_are_refused() -> None:
    a = sc.asarray(np.ones((4, 5))).to("BSR(2,2)")
    kernel = sc.compile("y[i] = A[i,j] * x[j]", A=a, x=np.ones(5))
    for n in (4, 6, 7):
        with pytest.raises(ExtentsDiffer):
            kernel(A=a, x=np.ones(n))


def test_blocks_beyond_the_end_do_not_count() -> None:
    """An index that only a block operand has, in a term that is not 0 where nothing is stored."""
    rows = np.arange(1.0, 50).reshape(7, 7)
    b = sc.asarray(rows).to("BSR(2,2)")
    a, wanted = np.arange(7.0), (np.arange(7.0)[:, None] - rows).sum()
    assert sc.evaluate("s = A[i] - B[i,l] * 1", A=a, B=b) == (a.sum() - rows.sum())
    assert sc.evaluate("s = (A[i] - B[i,l]) * c", A=a, B=b, c=1.0) == wanted


@pytest.mark.parametrize("widths", ["i8/i8", "i16/i16", "i64/i64", "i64/i32", "i8/i64"])
@pytest.mark.parametrize("fmt", ["CSR", "CSC", "COO", "DCSR", "BSR(2,2)", "ELL", "2:4"])
def test_widths_survive_the_conversions_that_the_compiler_inserts(fmt: str, widths: str) -> None:
    rng = np.random.default_rng(9)
    rows = rng.integers(1, 9, (6, 8)) * (rng.random((6, 8)) < 0.3) * 1.0
    rows[:, 2::4] = rows[:, 3::4] = 0  # two of four, so that 2:4 can hold them
    a, b = sc.asarray(rows).to("CSR"), sc.asarray(rows).to(f"{fmt}@{widths}")
    for out in ("CSR", f"{fmt}@{widths}", "CSC@i64/i64"):
        total = sc.evaluate("C[i,j] = A[i,j] + B[i,j]", A=a, B=b, out=out)
        total.check("full")
        assert np.array_equal(total.to_numpy(), 2 * rows)
    assert np.array_equal(
        sc.evaluate("C[i,j] = A[i,k] * B[j,k]", A=a, B=b, out="dense"), rows @ rows.T
    )
    # A temporary that shares an operand's positions has their width.
    scaled = sc.evaluate("T[i,j] = 2 * B[i,j]; C[i,j] = T[i,j] + A[i,j]", A=a, B=b, out="CSR")
    assert np.array_equal(scaled.to_numpy(), 3 * rows)


def test_blocks_that_are_converted_by_levels_keep_their_extents() -> None:
    rows = np.arange(15).reshape(3, 5) % 3 == 1
    d = sc.asarray(rows).to("BSR(2,2)")
    b = np.arange(25).reshape(5, 5) % 2 == 0
    result = sc.evaluate("C[m,i] = A + B[m,m] * D[i,k]", A=np.False_, B=b, D=d, out="dense")
    assert np.array_equal(result, np.diag(b)[:, None] & rows.any(axis=1)[None, :])


def test_looking_up_a_repeated_coordinate_finds_all_of_it() -> None:
    rows = np.arange(1.0, 19).reshape(3, 3, 2)
    for kind in ("compressed", "loose_compressed"):
        f = sc.asarray(rows).to(f"(i, j, k) -> (j : dense, i : {kind}(nonunique), k : singleton)")
        assert np.array_equal(sc.evaluate("y[k] = F[j,j,k]", F=f), np.einsum("jjk->k", rows))


def test_inner_coordinates_may_repeat_whatever_the_format_says() -> None:
    """A singleton above another one can't be unique: it is not taken at its word."""
    rng = np.random.default_rng(4)
    a = rng.integers(1, 5, (3, 3, 2, 2)) * 1.0
    d = rng.integers(1, 5, (2, 3, 3)) * 1.0
    levels = "i : compressed(nonunique), j : singleton, k : singleton, l : singleton"
    stored = sc.asarray(a).to(f"(i, j, k, l) -> ({levels})")
    total = sc.evaluate("s = A[l,k,i,j] * D[i,l,k]", A=stored, D=sc.asarray(d).to("CSF"))
    assert total == np.einsum("lkij,ilk->", a, d)


def test_an_output_that_is_an_operands_index_array_is_refused() -> None:
    a = sc.asarray(np.array([[1, 0, 2], [0, 0, 3], [0, 0, 0]], np.int32)).to("CSR")
    x, coordinates = np.ones(3, np.int32), a.levels[1].coordinates
    with pytest.raises(BadOutput):
        sc.compile("y[i] = A[i,j] * x[j]", A=a, x=x)(A=a, x=x, out=coordinates)


def test_extents_of_a_spec_are_kept() -> None:
    kernel = sc.compile("y[i] = A[i,j] * x[j]", A=sc.Spec((5, 4), "f64", "CSR"), x=sc.Spec((4,)))
    wide = sc.asarray(np.ones((5, 4))).to("CSR")
    assert np.array_equal(kernel(A=wide, x=np.ones(4)), np.full(5, 4.0))
    with pytest.raises(WrongExtent):
        kernel(A=sc.asarray(np.ones((3, 4))).to("CSR"), x=np.ones(4))
    with pytest.raises(ExtentMismatch):
        sc.compile("y[i] = A[i,j] * x[j]", A=sc.Spec((5, 4), "f64", "CSR"), x=sc.Spec((3,)))


def test_a_union_of_too_many_operands_is_refused_with_a_way_out() -> None:
    t = sc.asarray(np.ones((2, 2, 2))).to("CSF")
    names = "ABCDE"
    operands = dict.fromkeys(names, t)
    term = "[i,j,k] + ".join(names) + "[i,j,k]"
    with pytest.raises(TooManyLoops):
        sc.evaluate(f"Y[i,j,k] = {term}", out="CSF", operands=operands)
    parts = "T[i,j,k] = A[i,j,k] + B[i,j,k] + C[i,j,k]; Y[i,j,k] = T[i,j,k] + D[i,j,k] + E[i,j,k]"
    assert np.array_equal(
        sc.evaluate(parts, out="CSF", operands=operands).to_numpy(), np.full((2, 2, 2), 5.0)
    )


def test_huge_extents_take_memory_for_what_is_stored() -> None:
    a = sc.from_coords([[0, 2**40 - 1], [1, 2]], [1.0, 2.0], (2**40, 2**40), "DCSR")
    assert sc.evaluate("C[i,j] = A[i,j] + A[i,j] * A[i,j]", A=a).nnz == 2
    with pytest.raises(LimitError):
        sc.evaluate("C[i,j] = A[i,k] * A[k,j]", A=a)  # the workspace of a row


def test_dense_blocks_beside_sparse_ones() -> None:
    a = sc.asarray(np.ones(4)).to("(i) -> (i floordiv 2 : dense, i mod 2 : dense)")
    fmt = (
        "(i, j, k) -> (i : compressed, j floordiv 3 : compressed, k : compressed, j mod 3 : dense)"
    )
    b = sc.asarray(np.ones((7, 4, 5))).to(fmt)
    assert np.array_equal(
        sc.evaluate("y[k] = A[k] * B[j,k,i]", A=a, B=b, out="dense"), np.full(4, 35.0)
    )
