"""Work on a CPU (one thread), by kernel family.

Amounts, of a matrix with ``e`` stored entries (padding too), ``u`` units (blocks, else entries) and ``r`` rows; ``T``
columns of the dense operand, elements of ``s`` bytes:

``entry``, ``row``         entries walked, rows begun
``uneven``                 rows whose length is not that of the row before
``block``, ``cell``        blocks walked, their cells
``strip``                  rows of blocks
``wide``, ``narrow``       vector steps of 128 and of 32 bytes: ``u * (T s // 128)`` and ``u * (rest // 32)``
``single``                 scalar steps: what is left, or all where columns are not contiguous
``gather_L``               lines of a dense vector read from level L (``l2 l3 dram``), see :mod:`facts`
``x_L``                    bytes of rows of the dense operand read from level L
``from_L``                 bytes of all operands that stream from level L
``stored``                 bytes of the result
``call``                   1

Rows and entries are instructions (``issue``), ``from_L`` are ``bytes``, multiplications by a library ``macs``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparsecc.selection.costs.facts import Facts, levels, lines_of, stream, uneven
from sparsecc.selection.costs.work import Work
from sparsecc.selection.footprint import block_of, fibers, order_of
from sparsecc.selection.operations import GENERAL, MTTKRP, SDDMM, SPMM, SPMV
from sparsecc.statistics import Statistics

WIDE, NARROW = 128, 32
"""Bytes of the vector steps of generated loops."""
Sizes = Mapping[str, float]

WALKS = {
    "CSR": "rows", "CSC": "columns", "COO": "coordinates", "DCSR": "used-rows", "DCSC": "used-columns",
    "ELL": "padded", "dense": "dense",
}  # fmt: skip
"""The family of a format's loops."""


def walk_of(fmt: str, by_rows: bool) -> str:
    """How loops go along a matrix, seen from the index that is kept: CSC of a transposed access is rows."""
    if fmt.startswith("BSR"):
        return "blocks"
    if not by_rows:
        swap = {"CSR": "CSC", "CSC": "CSR", "DCSR": "DCSC", "DCSC": "DCSR"}
        fmt = swap.get(fmt, fmt)
    return WALKS[fmt]


def vector_steps(columns: int, item: int, contiguous: bool) -> tuple[int, int, int]:
    """Wide, narrow and scalar steps of one entry times ``columns`` elements."""
    if not contiguous:
        return 0, 0, columns
    wide, rest = divmod(columns * item, WIDE)
    narrow, rest = divmod(rest, NARROW)
    return wide, narrow, rest // item


def work(facts: Facts, engine: str, sizes: Sizes) -> Work:
    """The work of an expression."""
    kind = facts.operation.kind
    if engine == "blas":
        return _blas(facts, sizes)
    if engine == "scipy":
        return _scipy(facts, sizes)
    return GENERATED[kind](facts, sizes)


def _operands(facts: Facts) -> tuple[Statistics, int, int, int, int]:
    """Statistics of the matrix, the extents n, k, t, and bytes of an element."""
    operation = facts.operation
    assert operation.matrix is not None
    s = facts.statistics(operation.matrix.name, operation.matrix.indices)
    n, k, t = (facts.of_letter(letter) for letter in "nkt")
    return s, n, k, t, facts.item(operation.matrix.name)


def _spmv(facts: Facts, sizes: Sizes) -> Work:
    operation = facts.operation
    s, n, k, _, item = _operands(facts)
    assert operation.matrix is not None
    fmt = facts.format_of(operation.matrix.name)
    f = facts.footprint(operation.matrix.name, s)
    walk = walk_of(fmt, operation.by_rows)
    whole = f.bytes + (n + k) * item
    moved = {f"from_{level}": size for level, size in stream(whole, whole, sizes).items()}
    along = 1 if operation.by_rows else 0  # the dimension that is summed
    if walk == "dense":
        return Work("spmv-dense", moved, {}, {"cell": f.entries, "row": n}, {"call": 1})
    issue: dict[str, float] = {}
    if walk == "blocks":
        rows, _ = block_of(fmt) or (1, 1)
        issue = {"block": f.units, "cell": f.entries, "strip": f.units * rows, "row": f.slices}
    elif walk in ("columns", "used-columns"):
        along = 1 - along  # the result is scattered to
        issue = {"entry": f.entries, "row": f.slices}
    else:
        issue = {"entry": f.entries, "row": f.slices}
    issue["uneven"] = f.slices * uneven(s, 1 - along)
    touched = lines_of(s, along, item)
    for level, share in levels(s, along, item, sizes).items():
        if level != "l1":
            issue[f"gather_{level}"] = touched * share
    return Work(f"spmv-{walk}", moved, {}, issue, {"call": 1})


def _spmm(facts: Facts, sizes: Sizes) -> Work:
    operation = facts.operation
    s, n, k, t, item = _operands(facts)
    assert operation.matrix is not None
    fmt = facts.format_of(operation.matrix.name)
    f = facts.footprint(operation.matrix.name, s)
    walk = walk_of(fmt, operation.by_rows)
    whole = f.bytes + (n + k) * t * item
    moved = {f"from_{level}": size for level, size in stream(whole, whole, sizes).items()}
    wide, narrow, single = vector_steps(t, item, operation.streams_columns)
    family = f"spmm-{walk}" if operation.streams_columns else f"strided-{walk}"
    steps = wide + narrow + single
    issue: dict[str, float] = {
        "wide": f.entries * wide,
        "narrow": f.entries * narrow,
        "single": f.entries * single,
        "row": f.slices * max(steps, 1),
        "stored": float(n * t * item),
    }
    if walk == "blocks":
        rows, _ = block_of(fmt) or (1, 1)
        issue["block"] = f.units * max(steps, 1)
        issue["strip"] = f.units * rows * max(steps, 1)
    along = 1 if operation.by_rows else 0
    if walk in ("columns", "used-columns"):
        along = 1 - along
    if walk != "dense":
        issue["uneven"] = f.slices * max(steps, 1) * uneven(s, 1 - along)
        width = float(t * item)
        for level, share in levels(s, along, width, sizes).items():
            if level != "l1":
                issue[f"x_{level}"] = f.entries * width * share
    return Work(family, moved, {}, issue, {"call": 1})


def _sddmm(facts: Facts, sizes: Sizes) -> Work:
    operation = facts.operation
    assert operation.matrix is not None
    s = facts.statistics(operation.matrix.name, operation.matrix.indices)
    depth = facts.of_letter("k")
    item = facts.item(operation.matrix.name)
    fmt = facts.format_of(operation.matrix.name)
    f = facts.footprint(operation.matrix.name, s)
    walk = walk_of(fmt, True)
    whole = f.bytes + sum(s.shape) * depth * item
    moved = {f"from_{level}": size for level, size in stream(whole, whole, sizes).items()}
    issue: dict[str, float] = {
        "entry": f.entries, "term": f.entries * depth, "row": f.slices,
    }  # fmt: skip
    if walk != "dense":
        along = 0 if walk in ("columns", "used-columns") else 1
        issue["uneven"] = f.slices * uneven(s, 1 - along)
        width = float(depth * item)
        for level, share in levels(s, along, width, sizes).items():
            if level != "l1":
                issue[f"x_{level}"] = f.entries * width * share
    return Work(f"sddmm-{walk}", moved, {}, issue, {"call": 1})


def _mttkrp(facts: Facts, sizes: Sizes) -> Work:
    operation = facts.operation
    assert operation.matrix is not None and operation.letters is not None
    s = facts.statistics(operation.matrix.name, operation.matrix.indices)
    columns = facts.of_letter("r")
    item = facts.item(operation.matrix.name)
    fmt = facts.format_of(operation.matrix.name)
    f = facts.footprint(operation.matrix.name, s)
    whole = f.bytes + sum(s.shape) * columns * item
    moved = {f"from_{level}": size for level, size in stream(whole, whole, sizes).items()}
    wide, narrow, single = vector_steps(columns, item, True)
    kept = operation.matrix.indices.index(operation.letters["n"])
    if fmt == "dense":
        walk, inner, units = "dense", 0.0, f.entries
        order = (0, 1, 2)
    elif fmt.startswith("COO"):
        walk, order, inner, units = "coordinates", (0, 1, 2), 0.0, f.entries
    else:
        order = order_of(fmt) or (0, 1, 2)
        walk = ("outer", "middle", "inner")[order.index(kept)]
        inner, units = fibers(s, order)[1], f.entries
    issue: dict[str, float] = {
        "wide": units * wide,
        "narrow": units * narrow,
        "single": units * single,
        "fiber_wide": inner * wide,
        "fiber_narrow": inner * narrow,
        "fiber_single": inner * single,
        "fiber": inner,
    }
    if fmt != "dense":
        width = float(columns * item)
        for level, share in levels(s, order[-1], width, sizes).items():
            if level != "l1":
                issue[f"x_{level}"] = units * width * share
    return Work(f"mttkrp-{walk}", moved, {}, issue, {"call": 1})


def _general(facts: Facts, sizes: Sizes) -> Work:
    """Anything else: each entry that is stored of a sparse operand meets the coordinates of the other indices, of
    sparse operands as many as they have on the mean."""
    expression = facts.operation.expression
    moved = 0.0
    steps = 0.0
    covered: set[str] = set()
    entries = 1.0
    for access in expression.inputs:
        s = facts.statistics(access.name, access.indices)
        f = facts.footprint(access.name, s)
        moved += f.bytes
        if facts.format_of(access.name) == "dense":
            continue
        steps += f.entries
        shared = 1.0
        for d, index in enumerate(access.indices):
            if index in covered:
                shared *= max(s.shape[d], 1)
        entries *= max(f.entries / shared, 1e-9) if covered else f.entries
        covered |= set(access.indices)
    for index in expression.indices:
        if index not in covered:
            entries *= facts.extent(index)
    result = facts.item(expression.result.name)
    for index in expression.result.indices:
        result *= facts.extent(index)
    dense = facts.format_of(expression.result.name) == "dense" and not covered
    moved += result if dense else min(result, entries * 16)
    return Work(
        "general",
        {f"from_{level}": size for level, size in stream(moved, moved, sizes).items()},
        {},
        {"step": entries + steps},
        {"call": 1},
    )


def _blas(facts: Facts, sizes: Sizes) -> Work:
    _, n, k, t, item = _operands(facts)
    whole = float(n * k + (n + k) * t) * item
    moved = {f"from_{level}": size for level, size in stream(whole, whole, sizes).items()}
    if facts.operation.kind == SPMV or t == 1:
        return Work("blas-vector", moved, {"mac": float(n * k)}, {}, {"call": 1})
    # Of f32 a vector holds twice as many.
    macs = float(n * k * t) * item / 8
    return Work(
        "blas-matrix",
        moved,
        {"mac": macs, "weight": float(n * k * item), "result": float((n + k) * t * item)},
        {},
        {"call": 1},
    )


def _scipy(facts: Facts, sizes: Sizes) -> Work:
    operation = facts.operation
    generated = (_spmv if operation.kind == SPMV else _spmm)(facts, sizes)
    assert operation.matrix is not None
    family = facts.format_of(operation.matrix.name).split("(")[0].lower()
    vector = "spmv" if operation.kind == SPMV else "spmm"
    return Work(f"scipy-{vector}-{family}", generated.bytes, {}, generated.issue, generated.launch)


GENERATED: dict[str, Callable[[Facts, Sizes], Work]] = {
    SPMV: _spmv,
    SPMM: _spmm,
    SDDMM: _sddmm,
    MTTKRP: _mttkrp,
    GENERAL: _general,
}
"""Generated kernels by operation."""
