"""The table of dialects: complete, lazy, and known to plain xdsl-opt."""

from __future__ import annotations

import subprocess
import sys

import pytest
from xdsl.dialects.linalg.ops import GenericOp

from sparsecc.dialects.registry import DIALECTS, OVERLAYS, OWN, dialect, load, make_context
from sparsecc.dialects.universe import SPARSECC
from sparsecc.frontends.mlir_text import parse_module

STOCK = [name for name in DIALECTS if name not in OWN]


@pytest.mark.parametrize("name", [*STOCK, "sparse_tensor"])
def test_dialect_loads(name: str):
    found = dialect(name)
    assert found.name == name
    assert list(found.operations) or list(found.attributes)


@pytest.mark.parametrize("name", OVERLAYS)
def test_overlays_keep_what_the_dialect_has(name: str):
    before = {op.name for op in load(DIALECTS[name]).operations}
    after = [op.name for op in dialect(name).operations]
    assert before <= set(after)
    assert len(after) == len(set(after))


def test_nothing_is_imported_before_it_is_met():
    script = (
        "import sys; from sparsecc.dialects.registry import make_context; make_context();"
        "print([m for m in sys.modules if m in ('xdsl.dialects.linalg', 'xdsl.dialects.scf',"
        " 'sparsecc.dialects.sparse_tensor.ops', 'xdsl.dialects.llvm')])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_operations_in_the_ir_are_the_stock_ones():
    text = """
    func.func @f(%a: tensor<4xf64>) -> tensor<4xf64> {
      %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        outs(%a : tensor<4xf64>) {
      ^bb0(%x: f64):
        linalg.yield %x : f64
      } -> tensor<4xf64>
      return %0 : tensor<4xf64>
    }"""
    module = parse_module(text)
    assert [type(op) for op in module.walk() if op.name == "linalg.generic"] == [GenericOp]


def test_universe_names_our_dialects_only():
    assert set(SPARSECC.all_dialects) == set(OWN)
    assert SPARSECC.all_dialects["sparse_tensor"]().name == "sparse_tensor"


def test_context_refuses_unknown_operations():
    assert make_context().get_optional_op("nosuch.op") is None
    assert make_context(allow_unregistered=True).get_optional_op("nosuch.op") is not None
