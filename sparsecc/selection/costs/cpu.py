"""Work on a CPU (one thread), by kernel family.

Amounts, of a matrix with ``e`` stored entries (padding too), ``u`` units (blocks, else entries) and ``r`` rows; ``T``
columns of the dense operand, elements of ``s`` bytes:

``entry``, ``row``         entries walked, rows begun
``chain``                  entries (times steps) that wait for the sum of their row, see :mod:`facts`
``uneven``                 rows whose length is not that of the row before
``scattered``              entries (times steps) that have no neighbour, see :mod:`facts`
``begin``                  columns whose row of the dense operand is waited for, since it is not in the second cache
``soon``                   entries (times steps) of columns whose sum was written just before, see :mod:`facts`
``again``                  entries that are walked again for a few columns, where each step has a pass over the matrix
``used``                   rows of DCSR, which stores their numbers (or columns of DCSC)
``slot``, ``slots``        entries and rows of ELL, whose padding is skipped
``pair``, ``pairs``        entries and rows of COO, whose rows are looked for
``block``, ``cell``        blocks walked, their cells
``strip``, ``tall``        rows of blocks; cells (times steps) of blocks that have more than REGISTERS rows
``wide``, ``narrow``       vector steps of 128 and of 32 bytes: ``u * (T s // 128)`` and ``u * (rest // 32)``
``single``                 scalar steps: what is left, or all where columns are not contiguous
``gather_L``               lines of a dense vector read from level L (``l2 l3 dram``), see :mod:`facts`
``x_L``                    bytes of rows of the dense operand read from level L
``from_L``, ``to_L``       bytes of operands that stream from level L, and of the result that are written there
``step``, ``convert``      of expressions of no known kind: entries met, entries of operands that are not in rows
``call``                   1

Rows and entries are instructions (``issue``), ``from_L`` are ``bytes``, multiplications by a library ``macs``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparsecc.selection.costs.facts import (
    LINE,
    Facts,
    again_soon,
    chained,
    levels,
    lines_of,
    scattered,
    stream,
    uneven,
)
from sparsecc.selection.costs.work import Work
from sparsecc.selection.footprint import Footprint, block_of, fibers, order_of
from sparsecc.selection.operations import GENERAL, MTTKRP, SDDMM, SPMM, SPMV
from sparsecc.statistics import Statistics

WIDE, NARROW = 128, 32
"""Bytes of the vector steps of generated loops."""
REGISTERS = 4
"""Rows of a block whose sums stay in registers."""
Sizes = Mapping[str, float]

WALKS = {
    "CSR": "rows", "DCSR": "rows", "ELL": "rows", "COO": "rows", "CSC": "columns", "DCSC": "columns", "dense": "dense",
}  # fmt: skip
"""The family of a format's loops."""
EXTRAS: dict[str, tuple[str, str]] = {
    "DCSR": ("", "used"), "DCSC": ("", "used"), "ELL": ("slot", "slots"), "COO": ("pair", "pairs"),
}  # fmt: skip
"""What a format costs beside the plainest one of its family: units an entry, and a row."""
ADDED = {unit for units in EXTRAS.values() for unit in units} | {
    "again",
    "begin",
    "scattered",
    "soon",
}


def turned(fmt: str, by_rows: bool) -> str:
    """The format as it is seen from the index that is kept: CSC of a transposed access is rows."""
    swap = {"CSR": "CSC", "CSC": "CSR", "DCSR": "DCSC", "DCSC": "DCSR"}
    return fmt if by_rows else swap.get(fmt, fmt)


def walk_of(fmt: str) -> str:
    """How loops go along a matrix."""
    return "blocks" if fmt.startswith("BSR") else WALKS[fmt]


def extra(fmt: str, f: Footprint, steps: int = 1) -> dict[str, float]:
    """The amounts of the units that a format adds."""
    entry, row = EXTRAS.get(fmt, ("", ""))
    found = {entry: f.entries * max(steps, 1), row: f.slices * max(steps, 1)}
    return {unit: n for unit, n in found.items() if unit}


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


def _streamed(read: float, written: float, working_set: float, sizes: Sizes) -> dict[str, float]:
    """Bytes read and written by level, as units of ``bytes``."""
    reads = {f"from_{level}": n for level, n in stream(read, working_set, sizes).items()}
    return reads | {f"to_{level}": n for level, n in stream(written, working_set, sizes).items()}


def _add_reads(issue: dict[str, float], size: float, shares: Mapping[str, float]) -> None:
    """Add bytes of rows of a dense operand that are read from beyond the first cache."""
    for level, share in shares.items():
        if level != "l1":
            issue[f"x_{level}"] = issue.get(f"x_{level}", 0.0) + size * share


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
    fmt = turned(fmt, operation.by_rows)
    walk = walk_of(fmt)
    whole = f.bytes + (n + k) * item
    moved = _streamed(whole - n * item, n * item, whole, sizes)
    along = 1 if operation.by_rows else 0  # the dimension that is summed
    if walk == "dense":
        return Work("spmv-dense", moved, {}, {"cell": f.entries, "row": n}, {"call": 1})
    issue: dict[str, float] = {}
    if walk == "blocks":
        rows, _ = block_of(fmt) or (1, 1)
        issue = {"block": f.units, "cell": f.entries, "strip": f.units * rows, "row": f.slices}
    else:
        issue = {"entry": f.entries, "row": f.slices, **extra(fmt, f)}
    if walk == "columns":
        along = 1 - along  # the result is scattered to
        issue["soon"] = f.entries * again_soon(s, along)
    elif walk == "rows":
        issue["chain"] = f.entries * chained(s, 1 - along)
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
    fmt = turned(fmt, operation.by_rows)
    walk = walk_of(fmt)
    whole = f.bytes + (n + k) * t * item
    wide, narrow, single = vector_steps(t, item, operation.streams_columns)
    family = f"spmm-{walk}" if operation.streams_columns else f"strided-{walk}"
    steps = wide + narrow + single
    passes = steps if walk == "columns" else 1
    result = float(n * t * item)
    moved = _streamed(f.bytes * passes + k * t * item, result, whole, sizes)
    issue: dict[str, float] = {
        "wide": f.entries * wide,
        "narrow": f.entries * narrow,
        "single": f.entries * single,
        "row": f.slices * max(steps, 1),
        **extra(fmt, f, steps),
    }
    if walk == "blocks":
        rows, _ = block_of(fmt) or (1, 1)
        issue["block"] = f.units * max(steps, 1)
        issue["strip"] = f.units * rows * max(steps, 1)
        issue["tall"] = f.entries * steps if rows > REGISTERS else 0.0
    along = 1 if operation.by_rows else 0
    if walk == "columns":
        along = 1 - along
        issue["soon"] = f.entries * steps * again_soon(s, along)
        issue["begin"] = f.slices * steps * (1.0 - min(1.0, sizes["l2"] / max(whole, 1.0)))
        issue["again"] = f.entries * max(0, narrow + single - (wide == 0))
    elif walk == "rows":
        issue["chain"] = f.entries * steps * chained(s, 1 - along)
    if walk != "dense":
        issue["uneven"] = f.slices * max(steps, 1) * uneven(s, 1 - along)
        width = float(t * item)
        # Also where a pass touches a part of each row alone: rows lie powers of two apart, so the parts share few sets
        # of a cache.
        read = WIDE * wide + LINE * (narrow + single) if walk == "columns" else width
        _add_reads(issue, f.entries * read, levels(s, along, width, sizes))
        near = levels(s, along, width, sizes)["l1"]
        issue["scattered"] = f.entries * steps * scattered(s, along) * (1.0 - near)
    return Work(family, moved, {}, issue, {"call": 1})


def _sddmm(facts: Facts, sizes: Sizes) -> Work:
    operation = facts.operation
    assert operation.matrix is not None
    s = facts.statistics(operation.matrix.name, operation.matrix.indices)
    depth = facts.of_letter("k")
    item = facts.item(operation.matrix.name)
    fmt = facts.format_of(operation.matrix.name)
    f = facts.footprint(operation.matrix.name, s)
    walk = walk_of(fmt)
    whole = f.bytes + sum(s.shape) * depth * item
    moved = _streamed(whole, f.entries * item, whole, sizes)
    issue: dict[str, float] = {
        "entry": f.entries, "term": f.entries * depth, "row": f.slices, **extra(fmt, f),
    }  # fmt: skip
    if walk != "dense":
        along = 0 if walk == "columns" else 1
        issue["uneven"] = f.slices * uneven(s, 1 - along)
        width = float(depth * item)
        _add_reads(issue, f.entries * width, levels(s, along, width, sizes))
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
    # Where the result's rows do not come first, the whole tensor is walked for each vector step.
    passes = wide + narrow + single if walk in ("middle", "inner") else 1
    result = float(s.shape[kept] * columns * item)
    read = whole - result + f.bytes * (passes - 1)
    moved = _streamed(read, result, whole, sizes)
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
        _add_reads(issue, units * width, levels(s, order[-1], width, sizes))
        _add_reads(issue, inner * width, levels(s, order[1], width, sizes))
    return Work(f"mttkrp-{walk}", moved, {}, issue, {"call": 1})


def _general(facts: Facts, sizes: Sizes) -> Work:
    """Anything else: each entry that is stored of a sparse operand meets the coordinates of the other indices, of
    sparse operands as many as they have on the mean. Of several sparse operands those that are not in rows (CSR, CSF)
    are converted, searched, or make a result that is converted."""
    expression = facts.operation.expression
    moved = 0.0
    steps = 0.0
    covered: set[str] = set()
    entries = 1.0
    stored: list[tuple[str, float]] = []
    for access in expression.inputs:
        s = facts.statistics(access.name, access.indices)
        f = facts.footprint(access.name, s)
        moved += f.bytes
        if facts.format_of(access.name) == "dense":
            continue
        steps += f.entries
        stored.append((facts.format_of(access.name), f.entries))
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
    converted = sum(n for fmt, n in stored if fmt not in ("CSR", "CSF")) if len(stored) > 1 else 0.0
    return Work(
        "general",
        _streamed(moved, 0.0, moved, sizes),
        {},
        {"step": entries + steps, "convert": converted},
        {"call": 1},
    )


def _blas(facts: Facts, sizes: Sizes) -> Work:
    _, n, k, t, item = _operands(facts)
    whole = float(n * k + (n + k) * t) * item
    result = float(n * t * item)
    moved = _streamed(whole - result, result, whole, sizes)
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
    vector = operation.kind == SPMV
    ours = (_spmv if vector else _spmm)(facts, sizes)
    s, _, _, columns, _ = _operands(facts)
    assert operation.matrix is not None
    fmt = facts.format_of(operation.matrix.name)
    f = facts.footprint(operation.matrix.name, s)
    # Its loops differ by format in all they do, so what ours add to a plainer one's is not theirs.
    issue = {unit: n for unit, n in ours.issue.items() if unit not in ADDED}
    name = fmt.partition("(")[0].lower()
    if vector:
        return Work(f"scipy-spmv-{name}", ours.bytes, {}, issue, ours.launch)
    issue["entry"] = f.units
    if (block := block_of(fmt)) is not None:
        # Scalar products of rows of a block and columns of X, which it walks across.
        steps = {"wide": 0.0, "narrow": 0.0, "single": f.entries * columns, "tall": 0.0}
        issue |= {**steps, "block": f.units, "strip": f.units * block[0] * columns}
    return Work(f"scipy-spmm-{name}", ours.bytes, {}, issue, ours.launch)


GENERATED: dict[str, Callable[[Facts, Sizes], Work]] = {
    SPMV: _spmv,
    SPMM: _spmm,
    SDDMM: _sddmm,
    MTTKRP: _mttkrp,
    GENERAL: _general,
}
"""Generated kernels by operation."""
