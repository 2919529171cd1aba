"""Kernels of the blocks form read back as they were printed."""

from __future__ import annotations

from pathlib import Path

from sparsecc.dialects.text.printer import print_module
from sparsecc.dialects.tile import blocks
from sparsecc.frontends.mlir_text import parse_module

KERNEL = Path(__file__).parents[2] / "filecheck" / "dialects" / "tile_blocks.mlir"


def test_text_reads_back() -> None:
    text = KERNEL.read_text(encoding="utf-8")
    module = parse_module(text, KERNEL.name)
    assert print_module(module) == text
    assert {type(op) for op in module.walk()} >= set(blocks.OPS)
