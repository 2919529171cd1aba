"""Problems of format selection as they are read off functions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from sparsecc import driver
from sparsecc.dialects.sparse_tensor.argument_facts import Facts, write_facts
from sparsecc.driver import OperandSpec, Request
from sparsecc.frontends.mlir_text import parse_module
from sparsecc.passes.selection.apply_plan import open_operands
from sparsecc.passes.selection.read_problem import (
    NotAnExpression,
    SizeDiffers,
    UnknownIndex,
    View,
    read_function,
)
from sparsecc.pipeline import run_passes
from sparsecc.selection.problem import Access
from sparsecc.targets import known_target
from tests.unit.selections import SmallSpace, statistics_of

CPU = known_target("cpu")


def function(
    text: str, out: str | None = None, dtype: str = "f64", **formats: str | None
) -> FuncOp:
    """The function of an expression; operands are of the rank that the text says, dense if nothing else is said."""
    ranks = {
        name: inner.count(",") + 1
        for name, inner in re.findall(r"(\w+)\[([\w,]+)\]", text)
        if not text.startswith(f"{name}[") and f"; {name}[" not in text
    }
    operands = tuple(
        (name, OperandSpec((None,) * rank, dtype, formats.get(name, "dense")))
        for name, rank in ranks.items()
    )
    module = driver.front(Request("expression", text, operands, out))
    return first(module)


def first(module: ModuleOp) -> FuncOp:
    return next(op for op in module.body.block.ops if isinstance(op, FuncOp))


def view(text: str) -> View:
    """An expression that A is an open operand of."""
    return read_function(function(text, A=None))


def test_one_product() -> None:
    found = view("C[i,k] = A[i,j] * B[j,k]")
    (expression,) = found.expressions
    assert expression.result == Access("C", ("i", "k"))
    assert expression.inputs == (Access("A", ("i", "j")), Access("B", ("j", "k")))
    assert expression.product
    assert expression.text == "C[i,k] = A[i,j] * B[j,k]"
    assert expression.indices == ("i", "k", "j")
    assert {n: (t.format, t.dtype, t.shape) for n, t in found.tensors.items()} == {
        "A": (None, "f64", (None, None)),
        "B": ("dense", "f64", (None, None)),
        "C": (None, "f64", (None, None)),
    }
    assert open_operands(found) == ["A"]


def test_expressions_that_share_a_tensor_are_one_problem() -> None:
    found = view("t[i] = A[i,j] * x[j]; y[j] = A[i,j] * t[i]")
    assert [e.result.name for e in found.expressions] == ["t", "y"]
    assert [e.inputs[0].name for e in found.expressions] == ["A", "A"]
    assert list(found.tensors) == ["A", "x", "t", "y"]
    assert open_operands(found) == ["A"]


PRODUCTS = [
    ("y[i] = A[i,j] * x[j]", [True]),
    ("y[i,j] = A[i,j] * B[i,j]", [True]),
    ("y[i,j] = A[i,k,l] * B[k,j] * C[l,j]", [True]),
    ("y[i] = 2 * A[i,j] * x[j]", [False]),
    ("y[i] = A[i,j] * x[j] * x[j]", [False]),
    ("y[i,j] = A[i,j] + B[i,j]", [False]),
    ("y[i] = -A[i,j] * x[j]", [False]),
    ("y[i] = b[i] - A[i,j] * x[j]", [True, False]),
]


@pytest.mark.parametrize(("text", "wanted"), PRODUCTS)
@pytest.mark.parametrize("dtype", ["f64", "f16", "u8", "i32", "c64"])
def test_what_is_a_product(text: str, wanted: list[bool], dtype: str) -> None:
    found = read_function(function(text, dtype=dtype, A=None)).expressions
    assert [e.product for e in found] == wanted


ADDS = """
func.func @main(%A: tensor<3x4xf64>, %x: tensor<4xf64>, %y: tensor<3xf64>) -> tensor<3xf64> {
  %r = linalg.matvec ins(%A, %x : tensor<3x4xf64>, tensor<4xf64>) outs(%y : tensor<3xf64>) -> tensor<3xf64>
  return %r : tensor<3xf64>
}
"""


def generalised(text: str) -> FuncOp:
    return first(run_passes(parse_module(text), [("generalize-named-ops", {})]))


def test_a_sum_into_a_tensor_that_is_there_is_no_product() -> None:
    (expression,) = read_function(generalised(ADDS)).expressions
    assert not expression.product
    assert expression.text == "r[d0] = f(A[d0,d1], x[d1])"


CONVOLUTION = """
func.func @main(%A: tensor<8xf64>, %k: tensor<3xf64>) -> tensor<6xf64> {
  %e = tensor.empty() : tensor<6xf64>
  %r = linalg.conv_1d ins(%A, %k : tensor<8xf64>, tensor<3xf64>) outs(%e : tensor<6xf64>) -> tensor<6xf64>
  return %r : tensor<6xf64>
}
"""


def test_subscripts_that_are_sums() -> None:
    found = read_function(generalised(CONVOLUTION))
    (expression,) = found.expressions
    assert expression.inputs[0] == Access("A", ("d0+d1",))
    assert not expression.product
    problem = found.problem(CPU, SmallSpace())
    assert problem.extents == {"d0+d1": 8, "d1": 3, "d0": 6}


def test_extents_go_from_operands_to_results() -> None:
    fn = function("t[i,k] = A[i,j] * B[j,k]; y[i] = t[i,k] * x[k]", A=None, B=None)
    statistics = statistics_of(np.eye(3, 5))
    write_facts(fn, {0: Facts(statistics, "COO"), 1: Facts(statistics_of(np.eye(5, 7)), None)})
    found = read_function(fn)
    assert found.tensors["A"].stored == "COO"
    assert found.tensors["A"].statistics == statistics
    assert found.tensors["t"].shape == (3, 7)
    problem = found.problem(CPU, SmallSpace())
    assert problem.extents == {"i": 3, "j": 5, "k": 7}


def test_an_index_with_two_extents_gets_two_names() -> None:
    """Each statement names its indices for itself."""
    fn = function("t[i] = A[i,j] * x[j]; y[i] = B[i,j] * z[j]; w = t[i] * y[i]", A=None, B=None)
    facts = {0: Facts(statistics_of(np.eye(3, 5))), 2: Facts(statistics_of(np.eye(3, 9)))}
    write_facts(fn, facts)
    found = read_function(fn)
    assert [e.inputs[0].indices for e in found.expressions] == [("i", "j"), ("i", "j_2"), ("i",)]
    assert found.problem(CPU, SmallSpace()).extents == {"i": 3, "j": 5, "j_2": 9}


def test_sizes() -> None:
    fn = function("C[i,k] = A[i,j] * B[j,k]", A=None)
    write_facts(fn, {0: Facts(statistics_of(np.eye(3, 5)))})
    found = read_function(fn)
    assert found.problem(CPU, SmallSpace(), sizes={"k": 16}).extents["k"] == 16
    with pytest.raises(UnknownIndex, match="the index 'n', which no expression has"):
        found.problem(CPU, SmallSpace(), sizes={"n": 16})
    with pytest.raises(SizeDiffers, match=r"index 'j' is 4, but it is 5 in A\[i,j\]"):
        found.problem(CPU, SmallSpace(), sizes={"j": 4})


SEVERAL = """
func.func @main(%A: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %e = tensor.empty() : tensor<3xf64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%A : tensor<3xf64>) outs(%e, %e : tensor<3xf64>, tensor<3xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    linalg.yield %a, %a : f64, f64
  } -> (tensor<3xf64>, tensor<3xf64>)
  return %r#0, %r#1 : tensor<3xf64>, tensor<3xf64>
}
"""


def test_several_results_are_refused() -> None:
    with pytest.raises(NotAnExpression, match="it has several results"):
        read_function(generalised(SEVERAL))
