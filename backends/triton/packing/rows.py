"""Matrices of sparse rows with tables that share their entries out (``formats/row_tables.py``).

Values, positions and coordinates stay where they are. Tables are made there too, by a sort of the rows and sums over
them: for NumPy arrays on the host, for torch tensors on their device.
"""

from __future__ import annotations

from typing import Any

from sparsecc.backends.triton.packing.arrays import Array, Arrays, arrays_of, is_torch
from sparsecc.backends.triton.packing.packed import PackedOperand
from sparsecc.diagnostics import LimitError, OperandError
from sparsecc.formats import known_name, row_tables
from sparsecc.storage import limits
from sparsecc.storage.tensor import SparseTensor

Tables = tuple[dict[str, Array], dict[str, int]]
"""Arrays by role, and facts."""


class TooManyEntries(LimitError):
    text = "a matrix of {entries} entries has more than the {limit} that tables of 32 bits number"
    help_text = "split the matrix along its rows"


class NoSparseRows(OperandError):
    text = "the {layout} layout is made of a matrix in CSR or CSC, not of {found}"
    help_text = "convert it once: .to_sparse_csr() in torch, or sparsecc.asarray(A).to('CSR')"


def row_tables_of(layout: str, positions: Array) -> Tables:
    """The tables of a layout and its facts, from the positions of the rows."""
    xp = arrays_of(positions, "positions")
    p = xp.cast(positions, 64)
    lengths = p[1:] - p[:-1]
    count = int(lengths.shape[0])
    entries = int(p[-1]) if count else 0
    limit = limits.INT32_MAX - row_tables.ROOM
    if entries > limit:
        raise TooManyEntries(entries=entries, limit=limit)
    longest = int(lengths.max()) if count else 0
    facts = {"longest": longest, "mean": -(-entries // max(1, count))}
    make = {
        row_tables.SEGMENTS: _segment_tables,
        row_tables.BINNED: _bin_tables,
        row_tables.ENTRIES: _entry_tables,
    }[layout]
    arrays, more = make(xp, p, lengths)
    return arrays, facts | more


def _segment_tables(xp: Arrays, p: Array, lengths: Array) -> Tables:
    table, slots = _segments(xp, p, lengths, xp.arange(0, len(lengths)), row_tables.PART)
    size = table[:, 2] - table[:, 1]
    # Powers of two that a length is over: longer ones come first, so that no long part is left for the end.
    over, limit = size * 0, 1
    while limit < row_tables.PART:
        over, limit = over + (size > limit) * 1, 2 * limit
    place = row_tables.PLACES - 1 - table[:, 5] * row_tables.PLACES // table[:, 3]
    orders = {"segments": size, "sweeps": over * row_tables.PLACES + place}
    tables = {
        role: xp.contiguous(xp.cast(table[_falling(xp, keys)], 32)) for role, keys in orders.items()
    }
    return tables, {"segment_count": len(table), "slot_count": slots}


def _entry_tables(xp: Arrays, p: Array, lengths: Array) -> Tables:
    rows = xp.cast(xp.repeat(xp.arange(0, len(lengths)), lengths), 32)
    return {"rows": rows}, {"entry_count": len(rows)}


def _bin_tables(xp: Arrays, p: Array, lengths: Array) -> Tables:
    order = _falling(xp, lengths)
    entries = int(p[-1]) if len(order) else 0
    part = row_tables.long_part(entries, -(-entries // max(1, len(order))))
    falling = lengths[order]
    ends = [int((falling > cut).sum()) for cut, _, _ in row_tables.BINS]
    first, ends = ends[0], [*ends[1:], len(order)]
    table, slots = _segments(xp, p, lengths, order[:first], part)
    groups = [_groups(xp, 0, 0, len(table), 1)]
    begin = first
    for kind, (end, (_, rows, _)) in enumerate(zip(ends, row_tables.BINS, strict=True), 1):
        groups.append(_groups(xp, kind, begin, end, rows))
        begin = end
    table = xp.contiguous(xp.cast(table, 32))
    joined = xp.contiguous(xp.cast(xp.concatenate(groups), 32))
    arrays = {"order": xp.cast(order, 32), "long_segments": table, "groups": joined}
    return arrays, {
        "group_count": len(joined),
        "long_count": len(table),
        "long_slot_count": slots,
    }


def _groups(xp: Arrays, kind: int, begin: int, end: int, rows: int) -> Array:
    """Rows of a bin in groups of so many."""
    count = -(-(end - begin) // rows)
    table = xp.zeros((count, row_tables.GROUP), 64)
    at = xp.arange(0, count) * rows + begin
    table[:, 0] = kind
    table[:, 1] = at
    table[:, 2] = at + rows - (at + rows - end) * (at + rows > end)
    return table


def _segments(xp: Arrays, p: Array, lengths: Array, rows: Array, part: int) -> tuple[Array, int]:
    """Segments of some rows one after the other, and how many slots they take."""
    long = lengths[rows]
    parts = (long + part - 1) // part + (long == 0)
    of = xp.repeat(xp.arange(0, len(rows)), parts)
    number = xp.arange(0, len(of)) - (xp.cumsum(parts) - parts)[of]
    taken = parts * (parts > 1)
    slots = xp.cumsum(taken)
    table = xp.zeros((len(of), row_tables.SEGMENT), 64)
    row, count, length = rows[of], parts[of], long[of]
    table[:, 0] = row
    table[:, 1] = p[row] + number * length // count
    table[:, 2] = p[row] + (number + 1) * length // count
    table[:, 3] = count
    table[:, 4] = (slots - taken)[of]
    table[:, 5] = number
    return table, int(slots[-1]) if len(rows) else 0


def _falling(xp: Arrays, lengths: Array) -> Array:
    """The order of things by falling length; equal ones stay in order."""
    count = len(lengths)
    if not count:
        return xp.arange(0, 0)
    keys = (lengths.max() - lengths) * count + xp.arange(0, count)
    return xp.sort(keys) % count


def pack_rows(layout: str, matrix: Any) -> PackedOperand:
    """A matrix of sparse rows (a SparseTensor or a torch tensor in CSR, or in CSC for its columns) in a layout."""
    arrays = _arrays(matrix)
    if arrays is None:
        raise NoSparseRows(layout=layout, found=_described(matrix))
    tables, facts = row_tables_of(layout, arrays["positions1"])
    dtype = arrays_of(arrays["values"]).dtype(arrays["values"])
    shape = tuple(int(n) for n in matrix.shape)
    return PackedOperand(layout, shape, dtype, arrays | tables, facts)


def _arrays(matrix: Any) -> dict[str, Array] | None:
    """The arrays of a matrix by role; None if it has no sparse rows."""
    if isinstance(matrix, SparseTensor):
        if known_name(matrix.format.with_widths(0, 0)) not in ("CSR", "CSC"):
            return None
        level = matrix.levels[1]
        return {
            "positions1": level.positions,
            "coordinates1": level.coordinates,
            "values": matrix.values,
        }
    kind = str(matrix.layout) if is_torch(matrix) else ""
    if kind == "torch.sparse_csr":
        outer, inner = matrix.crow_indices(), matrix.col_indices()
    elif kind == "torch.sparse_csc":
        outer, inner = matrix.ccol_indices(), matrix.row_indices()
    else:
        return None
    return {
        "positions1": outer.detach(),
        "coordinates1": inner.detach(),
        "values": matrix.values().detach(),
    }


def _described(matrix: Any) -> str:
    if isinstance(matrix, SparseTensor):
        return f"a tensor in {known_name(matrix.format)}"
    return f"a tensor of layout {matrix.layout}" if is_torch(matrix) else type(matrix).__name__


def pack_segments(matrix: Any) -> PackedOperand:
    """``CSR-segments``: for products with a matrix."""
    return pack_rows(row_tables.SEGMENTS, matrix)


def pack_bins(matrix: Any) -> PackedOperand:
    """``CSR-bins``: for products with a vector."""
    return pack_rows(row_tables.BINNED, matrix)


def pack_entries(matrix: Any) -> PackedOperand:
    """``CSR-entries``: for products that are wanted at the entries alone."""
    return pack_rows(row_tables.ENTRIES, matrix)
