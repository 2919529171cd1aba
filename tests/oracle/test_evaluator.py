"""The oracle itself: corpus against direct NumPy formulas, and the rules of what is stored."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from sparsecc.frontends.ast import Access, names_read, walk
from sparsecc.frontends.index_notation import parse
from tests.oracle.corpus import ROWS, Row
from tests.oracle.evaluator import Array, Mask, Operand, evaluate

EXTENTS = dict(i=4, j=5, k=3, l=2, m=3, r=4, b=2, v=6, o=3, a2=2, b2=3, c2=2)

# What each row is in NumPy.
FORMULAS = {
    1: "2.5 * x",
    2: "a * x + z",
    3: "np.dot(x, y)",
    4: "A @ x",
    5: "A @ x",
    6: "A @ x",
    7: "A @ x",
    8: "A.T @ x",
    9: "b - A @ x",
    10: "a * (A.T @ x) + b * z",
    11: "x @ A @ y",
    12: "A @ X",
    13: "A @ X",
    14: "A @ B",
    15: "A @ B.T",
    19: "A * (U @ V)",
    20: "A * (U @ V.T)",
    21: "(A * (U @ V.T)) @ W",
    22: "M * (A @ B)",
    23: "A + B",
    24: "A + B + D",
    26: "A - B",
    27: "A * B",
    28: "(A + B) * D",
    30: "r[:, None] * A",
    31: "r[:, None] * A * c",
    32: "A.sum(axis=1)",
    33: "A.sum(axis=0)",
    34: "A.sum()",
    35: "(A**2).sum()",
    36: "np.trace(A)",
    37: "np.diag(A)",
    39: "np.outer(x, y)",
    40: "B @ c",
    41: "B @ C",
    42: "np.einsum('ikl,kr,lr->ir', B, C, D)",
    43: "np.einsum('iklm,kr,lr,mr->ir', B, C, D, E)",
    45: "np.vdot(B, C)",
    46: "B + C",
    47: "np.einsum('ijk,ia,jb,kc->abc', B, U, V, W)",
    49: "A @ X",
    50: "d * (A @ q) + (1 - d) / n",
    66: "B @ T",
    68: "X @ W.T + bias",
}


def draw(row: Row) -> dict[str, Operand]:
    """Operands of a corpus row: a pattern where its formats name a sparse tensor."""
    rng = np.random.default_rng(zlib.crc32(row.name.encode()))
    (statement,) = parse(row.text).statements
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(sorted(names_read(statement.expr)), ())
    for node in walk(statement.expr):
        if isinstance(node, Access):
            shapes[node.name] = tuple(EXTENTS[str(i)] for i in node.indices)
    made: dict[str, Operand] = {}
    for name, shape in shapes.items():
        values = rng.integers(1, 9, shape).astype(np.float64)
        stored = rng.random(shape) < 0.5 if name in row.formats else None
        made[name] = (values if stored is None else np.where(stored, values, 0.0), stored)
    return made


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_corpus_against_numpy(row: Row) -> None:
    operands = draw(row)
    values, stored = evaluate(row.text, operands)
    arrays = {name: array for name, (array, _) in operands.items()}
    expected = eval(FORMULAS[row.number], {"np": np}, arrays)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    assert not values[~stored].any()


def test_corpus_numbers_are_those_of_this_release() -> None:
    assert sorted(row.number for row in ROWS) == sorted(FORMULAS)
    assert len({row.name for row in ROWS}) == len(ROWS)


# -- what is stored -------------------------------------------------------------------------------

nan, inf = np.nan, np.inf


def sparse(*entries: float | None) -> Operand:
    """A vector; None is a missing entry."""
    values = np.array([0.0 if e is None else e for e in entries])
    return values, np.array([e is not None for e in entries])


def dense(*entries: float) -> Operand:
    return np.array(entries), None


def scalar(value: float) -> Operand:
    return np.array(value), None


def check(
    text: str, values: float | list[float], stored: int | list[int], **operands: Operand
) -> None:
    got, mask = evaluate(text, operands)
    np.testing.assert_array_equal(got, values)
    np.testing.assert_array_equal(mask, np.array(stored, bool))


def test_union() -> None:
    a, b = sparse(1, 2, None, None), sparse(1, None, 3, None)
    check("y[i] = a[i] + b[i]", [2, 2, 3, 0], [1, 1, 1, 0], a=a, b=b)
    check("y[i] = a[i] - b[i]", [0, 2, -3, 0], [1, 1, 1, 0], a=a, b=b)
    check("y[i] = a[i] + b[i]", [2, 2, 1, 1], [1, 1, 1, 1], a=a, b=dense(1, 0, 1, 1))
    check("y[i] = a[i] + 1", [2, 3, 1, 1], [1, 1, 1, 1], a=a)


def test_the_tail_of_a_union_is_kept() -> None:
    left, right = sparse(1, 1, None, None), sparse(None, None, 1, 1)
    check("y[i] = a[i] + b[i]", [1, 1, 1, 1], [1, 1, 1, 1], a=left, b=right)


def test_intersection() -> None:
    a, b = sparse(1, 2, None, None), sparse(3, None, 3, None)
    check("y[i] = a[i] * b[i]", [3, 0, 0, 0], [1, 0, 0, 0], a=a, b=b)
    check("y[i] = 2 * a[i]", [2, 4, 0, 0], [1, 1, 0, 0], a=a)
    check("y[i] = -a[i]", [-1, -2, 0, 0], [1, 1, 0, 0], a=a)


def test_a_missing_factor_annihilates_a_stored_zero_does_not() -> None:
    a, b = sparse(0, None, 0, None), dense(inf, inf, nan, nan)
    check("y[i] = a[i] * b[i]", [nan, 0, nan, 0], [1, 0, 1, 0], a=a, b=b)
    check("y[i] = b[i] * a[i]", [nan, 0, nan, 0], [1, 0, 1, 0], a=a, b=b)
    check("y = a[i] * b[i]", nan, 1, a=a, b=b)
    check("y[i] = a[i] * inf", [nan, 0, nan, 0], [1, 0, 1, 0], a=a)


def test_garbage_under_a_missing_entry_is_not_read() -> None:
    garbage = (np.array([1.0, nan]), np.array([True, False]))
    check("y[i] = a[i] + 0 * a[i]", [1, 0], [1, 0], a=garbage)


def test_division() -> None:
    a = sparse(6, None, 6, None, 0)
    b = sparse(2, 2, None, None, None)
    check("y[i] = a[i] / b[i]", [3, 0, inf, nan, nan], [1, 0, 1, 1, 1], a=a, b=b)
    check("y[i] = a[i] / c[i]", [3, 0], [1, 0], a=sparse(6, None), c=dense(2, 0))
    check("y[i] = c[i] / a[i]", [3, -inf], [1, 1], a=sparse(2, None), c=dense(6, -1))
    check("y[i] = a[i] / 2", [3, 0], [1, 0], a=sparse(6, None))


def test_a_sum_is_stored_where_any_term_is() -> None:
    values = np.array([[1.0, -1.0], [0.0, 0.0], [2.0, 0.0]])
    mask: Mask = np.array([[1, 1], [0, 0], [0, 1]], bool)
    check("y[i] = A[i,j]", [0, 0, 0], [1, 0, 1], A=(values, mask))


def test_an_empty_sum_is_zero() -> None:
    check("y[i] = A[i,j]", [0, 0], [0, 0], A=(np.zeros((2, 0)), np.zeros((2, 0), bool)))


# -- where sums stand -----------------------------------------------------------------------------

MATRIX = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
ROW: Operand = (np.array([10.0, 20.0]), None)


def test_sums_stand_at_the_term() -> None:
    check("y[i] = b[i] + A[i,j]", [16, 35], [1, 1], b=ROW, A=(MATRIX, None))
    check("y[i] = 1 - A[i,j]", [-5, -14], [1, 1], A=(MATRIX, None))
    check("y[i] = -(b[i] - A[i,j])", [-4, -5], [1, 1], b=ROW, A=(MATRIX, None))


def test_a_sum_takes_the_whole_product() -> None:
    expected = [(MATRIX[0] + 10).sum() * 10, (MATRIX[1] + 20).sum() * 20]
    check("y[i] = (A[i,j] + b[i]) * b[i]", expected, [1, 1], b=ROW, A=(MATRIX, None))
    check("y = b[i] / 10", 3, 1, b=ROW)


def test_statements() -> None:
    text = "t[j] = A[i,j]; y = t[j] * t[j]"
    check(text, 25 + 49 + 81, 1, A=(MATRIX, None))


def test_a_temporary_keeps_its_pattern() -> None:
    text = "t[i] = 2 * a[i]; y[i] = t[i] * c"
    check(text, [inf, 0], [1, 0], a=sparse(1, None), c=scalar(inf))


# -- types ----------------------------------------------------------------------------------------


def typed(dtype: str, *entries: int) -> Operand:
    return np.array(entries, dtype), None


@pytest.mark.parametrize(
    "text, operands, expected",
    [
        ("y = a[i] * b[i]", {"a": typed("i1", 100, 2), "b": typed("i1", 2, 1)}, np.int8(-54)),
        ("y = a[i]", {"a": typed("u1", 200, 100)}, np.uint8(44)),
        ("y = a[i] + b[i]", {"a": typed("u1", 200), "b": typed("i1", -1)}, np.int16(199)),
        ("y = a[i] / b[i]", {"a": typed("i4", 1), "b": typed("i4", 2)}, np.float64(0.5)),
        ("y = 2.5 * a[i]", {"a": typed("f4", 2)}, np.float32(5)),
        ("y = 2.5 * a[i]", {"a": typed("i4", 2)}, np.float64(5)),
        ("y = 2 * a[i]", {"a": typed("i1", 100)}, np.int8(-56)),
        ("y = 2j * a[i]", {"a": typed("f4", 3)}, np.complex64(6j)),
        ("y = -a[i]", {"a": typed("u1", 1)}, np.uint8(255)),
        ("y = a[i]", {"a": typed("?", 1, 1)}, np.True_),
        ("y = a[i] * b[i]", {"a": typed("?", 1, 0), "b": typed("?", 0, 1)}, np.False_),
        ("y = 1 / 2 + a", {"a": (np.array(1, "f4"), None)}, np.float32(1.5)),
    ],
)
def test_types_are_numpys(text: str, operands: dict[str, Operand], expected: Any) -> None:
    values, _ = evaluate(text, operands)
    assert values.dtype == expected.dtype
    assert values == expected


def test_bool_has_no_minus() -> None:
    with pytest.raises(TypeError):
        evaluate("y[i] = a[i] - a[i]", {"a": typed("?", 1)})


def test_results_are_in_the_order_of_the_target() -> None:
    array: Array = np.arange(24.0).reshape(2, 3, 4)
    values, _ = evaluate("y[k,i,j] = A[i,j,k]", {"A": (array, None)})
    np.testing.assert_array_equal(values, array.transpose(2, 0, 1))
