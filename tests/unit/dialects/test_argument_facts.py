"""What is known of arguments: written, printed, read again."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.dialects.func import FuncOp

from sparsecc.dialects.sparse_tensor.argument_facts import (
    BadStatistics,
    Facts,
    attribute_of,
    plain,
    read_facts,
    write_facts,
)
from sparsecc.dialects.text.printer import print_module
from sparsecc.frontends.mlir_text import parse_module
from sparsecc.statistics import Statistics
from sparsecc.storage.ingest import asarray

TEXT = """
func.func @main(%x: tensor<4xf64>, %A: tensor<?x?xf32, #sparse_tensor.encoding<*>> {sparsecc.note = "kept"})
    -> tensor<4xf64> {
  return %x : tensor<4xf64>
}
"""


def function(text: str) -> FuncOp:
    (found,) = (op for op in parse_module(text).body.block.ops if isinstance(op, FuncOp))
    return found


def printed(fn: FuncOp) -> str:
    module = fn.parent_op()
    assert module is not None
    return print_module(module)  # type: ignore[arg-type]


RANDOM = np.random.default_rng(3)
ARRAYS = [
    np.zeros((0, 3), np.float32),
    np.zeros((5, 3), np.float32),
    np.eye(64, dtype=np.float32),
    RANDOM.random((37, 41)).astype(np.float32),
    np.where(RANDOM.random((70, 130)) < 0.1, 1, 0).astype(np.float32),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: "x".join(map(str, a.shape)))
def test_statistics_survive_the_text(array: npt.NDArray[np.float32]) -> None:
    known = asarray(array).statistics()
    fn = function(TEXT)
    write_facts(fn, {1: Facts(known, "BSR(4,4)")})
    text = printed(fn)
    assert 'sparsecc.note = "kept"' in text
    again = function(text)
    assert read_facts(again) == [Facts(), Facts(known, "BSR(4,4)")]
    assert printed(again) == text


def test_nothing_is_written_where_nothing_is_known() -> None:
    fn = function(TEXT.replace(' {sparsecc.note = "kept"}', ""))
    write_facts(fn, {0: Facts(), 1: Facts()})
    assert fn.arg_attrs is None
    assert read_facts(fn) == [Facts(), Facts()]


def test_all_mistakes_are_named_at_once() -> None:
    fn = function(TEXT)
    known = Statistics((2, 2), "f32", 1, True, (), ())
    data = known.to_json() | {"below": -1, "diagonals": "many"}
    write_facts(fn, {1: Facts(known)})
    attributes = fn.arg_attrs
    assert attributes is not None
    wrong = DictionaryAttr({"sparsecc.statistics": attribute_of(data)})
    fn.properties["arg_attrs"] = type(attributes)([attributes.data[0], wrong])
    with pytest.raises(BadStatistics) as caught:
        read_facts(fn)
    text = str(caught.value)
    assert "argument 1 of @main: sparsecc.statistics.below is -1" in text
    assert "sparsecc.statistics.diagonals is 'many'" in text
    assert "found 2 errors" in text


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.5])
def test_numbers_that_are_none(value: float) -> None:
    fn = function(TEXT)
    known = asarray(np.eye(4, dtype=np.float32)).statistics()
    write_facts(fn, {1: Facts(known)})
    text = printed(fn)
    number = str(known.slices[0].deviation)
    data = known.to_json()
    data["slices"][0]["deviation"] = value
    attributes = fn.arg_attrs
    assert attributes is not None and number in text
    wrong = DictionaryAttr({"sparsecc.statistics": attribute_of(data)})
    fn.properties["arg_attrs"] = type(attributes)([attributes.data[0], wrong])
    with pytest.raises(BadStatistics, match=r"slices\[0\].deviation is .*, but it is a finite"):
        read_facts(fn)


def test_plain_data_becomes_attributes_and_back() -> None:
    data = {"a": 1, "b": (True, 2.5), "c": "x", "d": (), "e": (1, -2), "f": ({"g": 0.1},)}
    assert plain(attribute_of(data)) == data
