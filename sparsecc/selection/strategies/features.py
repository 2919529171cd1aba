"""What the tree looks at: numbers of a problem and of one plan for it.

Logarithms are to base 2 of 1 + x, so that nothing is 0.

================  ==============================================================================================
``log_nnz``       entries
``log_rows``      rows (the first dimension), ``log_columns`` columns (the last one)
``density``       entries of cells, as its logarithm
``log_width``     columns of the dense operand, terms of a sampled product, 1 for a vector
``itemsize``      bytes of an element
``mean_row``      entries of a row on the mean (log), ``deviation`` over the mean, ``longest`` over the mean (log)
``mean_column``   the same of columns, ``longest_column``
``band``          rows that the band spans, of all (1: no band)
``fill_2``        part of the cells of 2 x 2 blocks with an entry that hold one, ``fill_4``, ``fill_8``, ``fill_32``
``lines``         entries that share a line of 64 bytes with another one: reads of lines an entry
``operation``     0 SpMV, 1 SpMM, 2 SDDMM, 3 MTTKRP, 4 others; ``strided``: 1 where columns are not contiguous
``format``        the place of the plan's format in FORMATS, ``engine`` of its engine in ENGINES
``log_entries``   values that the format stores, padding too; ``padding``: over the entries, as its logarithm
``log_bytes``     bytes that it takes; ``log_dense``: bytes of the dense operands and the result
================  ==============================================================================================

A tree predicts the logarithm of the time over the time that the cost model predicts."""

from __future__ import annotations

from math import log2, prod

from sparsecc.selection.candidate import Candidate
from sparsecc.selection.costs import seen_from
from sparsecc.selection.costs.facts import Facts, lines_of, plain_statistics
from sparsecc.selection.footprint import blocks_of, footprint, largest
from sparsecc.selection.operations import GENERAL, MTTKRP, SDDMM, SPMM, SPMV
from sparsecc.selection.problem import Expression, Problem
from sparsecc.statistics import Statistics

NAMES = (
    "log_nnz", "log_rows", "log_columns", "density", "log_width", "itemsize", "mean_row", "deviation", "longest",
    "mean_column", "longest_column", "band", "fill_2", "fill_4", "fill_8", "fill_32", "lines", "operation", "strided",
    "format", "engine", "log_entries", "padding", "log_bytes", "log_dense",
)  # fmt: skip
FORMATS = (
    "dense", "CSR", "ELL", "COO", "DCSR", "CSC", "DCSC", "BSR(2,2)", "BSR(4,4)", "BSR(8,8)", "BSR(4,1)",
    "BSR(16,16)", "BSR(32,32)", "BSR(64,64)", "2:4", "2:4+CSR", "BITMAP", "CSF", "CSF(0,2,1)", "CSF(1,0,2)",
    "CSF(2,0,1)", "CSF(1,2,0)", "CSF(2,1,0)", "COO(3)",
)  # fmt: skip
"""Alike ones are neighbours, since a tree cuts the row in two. Others are at its end."""
ENGINES = ("generated", "blas", "scipy", "cublas", "cusparselt", "cusparse")
OPERATIONS = (SPMV, SPMM, SDDMM, MTTKRP, GENERAL)


def _log(x: float) -> float:
    return log2(1.0 + x)


def _place(names: tuple[str, ...], name: str) -> int:
    return names.index(name) if name in names else len(names)


def features(
    problem: Problem, expression: Expression, candidate: Candidate, engine: str
) -> list[float]:
    """The numbers of one expression in a plan, in the order of NAMES."""
    formats = problem.formats_of(dict(candidate.formats))
    facts = Facts(problem, seen_from(problem, expression, formats), formats)
    operation = facts.operation
    # What has no operand is seen from its result.
    matrix = operation.matrix or (*expression.inputs, expression.result)[0]
    s = facts.statistics(matrix.name, matrix.indices)
    fmt = facts.format_of(matrix.name)
    stored = footprint(fmt, s)
    inner = [i for i in expression.indices if i not in matrix.indices]
    width = prod(facts.extent(i, 16) for i in inner)
    dense = 0.0
    for access in (*operation.dense, expression.result):
        dense += prod(facts.extent(i) for i in access.indices) * facts.item(access.name)
    if not s.shape:  # a number is a vector with one element
        s = plain_statistics((1,), s.dtype, 1)
    first, last = s.shape[0], s.shape[-1]
    rows, columns = s.nnz / max(first, 1), s.nnz / max(last, 1)
    return [
        _log(s.nnz), _log(first), _log(last), _log(prod(s.shape) / max(s.nnz, 1)), _log(width),
        float(facts.item(matrix.name)), _log(rows), _deviation(s), _log(largest(s, 0) / max(rows, 1e-9)),
        _log(columns), _log(largest(s, -1) / max(columns, 1e-9)), _band(s),
        _fill(s, 2), _fill(s, 4), _fill(s, 8), _fill(s, 32),
        lines_of(s, len(s.shape) - 1, facts.item(matrix.name)) / max(s.nnz, 1),
        float(OPERATIONS.index(operation.kind)), float(bool(operation.x_order) and not operation.streams_columns),
        float(_place(FORMATS, fmt)), float(_place(ENGINES, engine)), _log(stored.entries),
        _log(stored.entries / max(s.nnz, 1)), _log(stored.bytes), _log(dense),
    ]  # fmt: skip


def _deviation(s: Statistics) -> float:
    if not s.slices:
        return 0.0
    return s.slices[0].deviation / max(s.slices[0].mean, 1e-9)


def _band(s: Statistics) -> float:
    if len(s.shape) != 2 or not (s.below or s.above or s.diagonals):
        return 1.0
    return min(1.0, (s.below + s.above + 1) / max(s.shape[1], 1))


def _fill(s: Statistics, size: int) -> float:
    if len(s.shape) != 2:
        return 0.0
    return s.nnz / max(blocks_of(s, size, size) * size * size, 1.0)
