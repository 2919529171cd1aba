"""Frontends: text and calls to tensor-level IR.

``parse`` makes a syntax tree, ``resolve`` binds and types it, ``module_builder.build_module``
makes the IR. Only the last imports xDSL, so that a cached kernel can be looked up without it.
"""

from sparsecc.frontends.ast import Program
from sparsecc.frontends.index_notation import parse
from sparsecc.frontends.resolve import OperandType, ResolvedProgram, resolve

__all__ = ["OperandType", "Program", "ResolvedProgram", "parse", "resolve"]
