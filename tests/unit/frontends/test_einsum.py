"""NumPy's subscripts: the programs they become, their values, their mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecc.diagnostics import LimitError, SparseccError
from sparsecc.frontends import OperandType, einsum, mistakes, parse, resolve
from sparsecc.frontends.einsum import einsum_program
from tests.oracle.evaluator import evaluate

PROGRAMS = [
    ("ij,jk", (2, 2), "out[i,k] = op0[i,j] * op1[j,k]"),
    ("ij,jk->ki", (2, 2), "out[k,i] = op0[i,j] * op1[j,k]"),
    ("...ij,...jk->...ik", (3, 4), "out[d1,d0,i,k] = op0[d0,i,j] * op1[d1,d0,j,k]"),
    ("ii", (2,), "out = op0[i,i]"),
    ("ii->i", (2,), "out[i] = op0[i,i]"),
    (",", (0, 0), "out = op0 * op1"),
    (" i j , j -> i ", (2, 1), "out[i] = op0[i,j] * op1[j]"),
    ("...", (2,), "out[d1,d0] = op0[d1,d0]"),
    ("ba", (2,), "out[a,b] = op0[b,a]"),
    ("bA", (2,), "out[A,b] = op0[b,A]"),
    ("i...", (3,), "out[d1,d0,i] = op0[i,d1,d0]"),
    ("ij->...ij", (2,), "out[i,j] = op0[i,j]"),
    ("...i->i", (1,), "out[i] = op0[i]"),
]


@pytest.mark.parametrize("subscripts, ranks, text", PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_programs(subscripts: str, ranks: tuple[int, ...], text: str) -> None:
    program = einsum_program(subscripts, ranks)
    assert str(program) == text
    assert program == parse(text)


VALUES = [
    ("ij,jk", [(2, 3), (3, 5)]),
    ("ij,jk->ki", [(2, 3), (3, 5)]),
    ("ij,kj->ik", [(2, 3), (5, 3)]),
    ("ijk,kl,lm->im", [(2, 3, 4), (4, 5), (5, 2)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("iij->j", [(3, 3, 2)]),
    ("ij->", [(3, 2)]),
    ("ij->ji", [(3, 2)]),
    ("i,j", [(3,), (2,)]),
    ("i,i", [(3,), (3,)]),
    ("i,i->i", [(3,), (3,)]),
    (",ij", [(), (2, 3)]),
    ("...ij,...jk->...ik", [(4, 2, 3), (4, 3, 2)]),
    ("...ij,jk", [(4, 2, 3), (3, 2)]),
    ("...,...", [(2, 3), (2, 3)]),
    ("...,...", [(5, 2, 3), (2, 3)]),
    ("i...->...", [(3, 2, 4)]),
    ("...i->i...", [(3, 2, 4)]),
    ("...ii->...i", [(2, 3, 3)]),
    ("ijk,ilm,njm,nlk", [(2, 3, 4), (2, 5, 3), (2, 3, 3), (2, 5, 4)]),
    ("ba,cb", [(2, 3), (4, 2)]),
    ("ij,jk", [(0, 3), (3, 2)]),
    ("ij,jk", [(2, 0), (0, 2)]),
]


@pytest.mark.parametrize("subscripts, shapes", VALUES, ids=[f"{v[0]} {v[1]}" for v in VALUES])
def test_values_are_numpys(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 5, shape).astype(np.float64) for shape in shapes]
    program = einsum_program(subscripts, [len(shape) for shape in shapes])
    operands = {f"op{k}": (array, None) for k, array in enumerate(arrays)}
    values, _ = evaluate(program, operands)
    np.testing.assert_array_equal(values, np.einsum(subscripts, *arrays))
    types = {f"op{k}": OperandType(shape, "f64") for k, shape in enumerate(shapes)}
    assert resolve(program, types).result_type.shape == values.shape


BAD: list[tuple[str, tuple[int, ...], type[SparseccError], int, str]] = [
    ("ij,jk", (2,), einsum.OperandCount, 1, "for 2 operands, but there are 1"),
    ("ij", (2, 1), einsum.OperandCount, 1, "for 1 operands, but there are 2"),
    ("ij,j$", (2, 2), einsum.SubscriptCharacter, 5, "'$'"),
    ("i2", (2,), einsum.SubscriptCharacter, 2, "'2'"),
    ("i-j", (2,), einsum.SubscriptCharacter, 2, "'-'"),
    ("i->i,j", (1,), einsum.SubscriptCharacter, 5, "one output"),
    ("ij->ij->k", (2,), einsum.SubscriptArrow, 7, "one '->'"),
    ("i..j", (3,), einsum.SubscriptEllipsis, 2, "not part of an ellipsis"),
    ("......", (2,), einsum.SubscriptEllipsis, 4, "second ellipsis"),
    ("...i->i", (3,), einsum.SubscriptEllipsis, 7, "write '...' in the output"),
    ("ij->ik", (2,), einsum.OutputSubscript, 6, "'k' is in no operand"),
    ("ij->ii", (2,), einsum.OutputSubscript, 6, "'i' is repeated"),
    ("ijk", (2,), einsum.SubscriptRank, 1, "rank 2 but 3"),
    ("ij,i", (2, 2), einsum.SubscriptRank, 4, "operand 1 has rank 2 but 1"),
]


@pytest.mark.parametrize(
    "subscripts, ranks, kind, column, fragment", BAD, ids=[b[0] + str(b[1]) for b in BAD]
)
def test_mistakes(
    subscripts: str,
    ranks: tuple[int, ...],
    kind: type[SparseccError],
    column: int,
    fragment: str,
) -> None:
    with pytest.raises(SparseccError) as caught:
        einsum_program(subscripts, ranks)
    assert type(caught.value) is kind
    assert caught.value.span is not None
    assert caught.value.span.start + 1 == column
    assert fragment in caught.value.render()


def test_extent_mistakes_point_into_the_subscripts() -> None:
    program = einsum_program("ij,jk->ik", (2, 2))
    types = {"op0": OperandType((2, 3), "f64"), "op1": OperandType((4, 2), "f64")}
    with pytest.raises(mistakes.ExtentMismatch) as caught:
        resolve(program, types)
    assert "  ij,jk->ik\n     ^\n" in str(caught.value)


def test_size_one_does_not_broadcast() -> None:
    program = einsum_program("...i,...i->...", (2, 2))
    types = {"op0": OperandType((2, 3), "f64"), "op1": OperandType((1, 3), "f64")}
    with pytest.raises(mistakes.ExtentMismatch, match="an extent of 1 is not broadcast"):
        resolve(program, types)


def test_absurdly_many_operands() -> None:
    with pytest.raises(LimitError):
        einsum_program("," * 5000, (0,) * 5001)
