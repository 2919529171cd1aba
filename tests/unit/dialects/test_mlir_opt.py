"""Upstream's mlir-opt, where installed: it reads what we print, we read what it prints."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from encodings_for_tests import ALL, MAPS, formats
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from test_printer import module_of
from test_sparse_tensor_ops import OPERATIONS, program

from sparsecc.dialects.text.printer import print_module
from sparsecc.formats import Format, parse_format
from sparsecc.frontends.mlir_text import parse_module, read_module

NAMES = ["mlir-opt", *(f"mlir-opt-{version}" for version in range(30, 18, -1))]
FOUND = next((path for name in NAMES if (path := shutil.which(name))), None)
MLIR_OPT = os.environ.get("MLIR_OPT", FOUND)

pytestmark = pytest.mark.skipif(
    MLIR_OPT is None, reason="no mlir-opt on PATH (Debian: mlir-19-tools); upstream is not asked"
)


def mlir_opt(text: str) -> str:
    assert MLIR_OPT is not None
    run = subprocess.run([MLIR_OPT], input=text, capture_output=True, text=True)
    assert run.returncode == 0, f"{run.stderr}\n{text}"
    return run.stdout


def upstream(fmt: Format) -> bool:
    """Whether upstream can invert its map: not one with blocks of a single row or column."""
    return all(expr.mod != 1 for expr in fmt.exprs)


def test_all_known_encodings():
    module = module_of([fmt for fmt in ALL if upstream(fmt)])
    again = parse_module(mlir_opt(print_module(module)))
    assert again.is_structurally_equivalent(module)


@pytest.mark.parametrize("text", MAPS)
def test_maps_are_printed_alike(text: str):
    printed = mlir_opt(print_module(module_of([parse_format(text)])))
    assert f"#sparse_tensor.encoding<{{ map = {text} }}>" in printed.splitlines()[0]


@seed(7)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(formats(upstream=True), min_size=20, max_size=40))
def test_random_encodings(encodings: list[Format | None]):
    module = module_of(encodings)
    assert parse_module(mlir_opt(print_module(module))).is_structurally_equivalent(module)


@pytest.mark.parametrize("body", OPERATIONS.values(), ids=OPERATIONS)
def test_operations(body: str):
    module = parse_module(program(body))
    again = parse_module(mlir_opt(print_module(module)))
    assert [op.name for op in again.walk()] == [op.name for op in module.walk()]
    assert again.is_structurally_equivalent(module)


def test_example():
    module = read_module(Path(__file__).parents[3] / "examples" / "spmm.mlir")
    again = parse_module(mlir_opt(print_module(module)))
    assert again.is_structurally_equivalent(module)
