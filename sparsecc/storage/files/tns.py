"""FROSTT files (``.tns``): one entry a line, 1-based indices and a value; ``#`` starts a comment.

The extended form has two more lines ahead: ``rank entries``, and the extent of each dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np

from sparsecc.formats import Format
from sparsecc.formats.names import coo
from sparsecc.storage import limits
from sparsecc.storage.entries import checked_shape, resolved
from sparsecc.storage.files.errors import (
    BadHeader,
    CannotHold,
    IndexOutOfRange,
    WrongCount,
    read_bytes,
)
from sparsecc.storage.files.mtx import write_rows
from sparsecc.storage.files.text import INTEGER, TextTable, out_of_range
from sparsecc.storage.pack import pack
from sparsecc.storage.tensor import SparseTensor

EXACT = 2**53
"""Integers up to here survive as 64-bit floats, which the values of the format are."""


def read_tns(
    path: Path, format: str | Format | None = None, shape: Sequence[int] | None = None
) -> SparseTensor:
    """The tensor of a ``.tns`` file: COO of float64 unless a format is named.

    The shape is ``shape``, that of an extended header, or the largest index in each dimension.
    Repeated entries are added. Raises FileError at ``path:line``."""
    name = str(path)
    content = read_bytes(path)
    table = TextTable(name, content, 1, b"#")
    declared: list[int] = []
    count, header_line = -1, 1
    if _extended(table):
        rank, count = int(table.token(0)), int(table.token(1))
        declared = [int(table.token(2 + d)) for d in range(rank)]
        if max(declared) > limits.INT64_MAX:
            problem = f"an extent of {max(declared)} is outside [0, 2**63)"
            raise BadHeader(problem=problem, wanted="correct the header", place=table.place(2))
        header_line = table.first_line + int(table.line_of[2])
        table = table.after(2 + rank)
    elif table.tokens:
        rank = table.widths()[0] - 1
    else:
        rank = len(declared) if shape is None else len(shape)
        if shape is None:
            problem = "the file has no entries, which leaves the shape open"
            raise BadHeader(problem=problem, wanted="pass shape=, or add a header", place=name)
    if shape is not None:
        declared = list(checked_shape(shape))
    if table.tokens and (rank < 1 or (declared and len(declared) != rank)):
        problem = f"entries of {rank} indices and a value"
        wanted = f"the shape {tuple(declared)} has {len(declared)} dimensions" if declared else ""
        raise BadHeader(
            problem=problem,
            wanted=wanted or "a line is indices, then a value",
            place=table.place(0),
        )
    wanted = f"an entry is a line of {rank} indices and a value"
    rows = table.row_count(rank + 1, wanted) if table.tokens else 0
    if count >= 0 and rows != count:
        more = rows > count
        where = "stand there; this is the " + ("first too many" if more else "last line")
        place = table.place(count * (rank + 1)) if more else table.last_place
        raise WrongCount(
            declared=count, found=rows, found_where=where, line=header_line - 1, place=place
        )
    coords, values = table.columns(rank, "real", wanted)
    extents = declared or [int(c.max()) if len(c) else 0 for c in coords]
    for d, column in enumerate(coords):
        row = out_of_range(column, extents[d] if declared else limits.INT64_MAX)
        if row is not None:
            raise IndexOutOfRange(
                index=int(column[row]),
                dim=d,
                extent=extents[d] if declared else "2**63 - 1",
                line=header_line,
                place=table.place(row * (rank + 1) + d),
            )
        column -= 1
    fmt = coo(rank) if format is None else resolved(format, rank)
    return pack(coords, values, extents, fmt)


def _extended(table: TextTable) -> bool:
    """Whether the first two lines are ``rank entries`` and extents, and not entries of a vector."""
    widths = table.widths()
    if len(widths) < 2 or widths[0] != 2 or table.tokens < 3:
        return False
    # A rank has few digits; more of them are an index.
    rank_token, count_token = table.token(0), table.token(1)
    if len(rank_token) > 2 or not rank_token.isdigit() or not count_token.isdigit():
        return False
    rank = int(rank_token)
    if rank < 1 or widths[1] != rank or len(count_token) > 19:
        return False
    if not all(INTEGER.fullmatch(t) and t.isdigit() and len(t) <= 20 for t in _row(table, 2, rank)):
        return False
    if rank != 2:
        return True  # lines of different lengths can't both be entries
    return int(count_token) == 0 if len(widths) == 2 else widths[2] == 3


def _row(table: TextTable, start: int, width: int) -> list[bytes]:
    return [table.token(start + k) for k in range(width)]


def write_tns(tensor: SparseTensor, out: BytesIO) -> None:
    """Entries sorted by coordinates, with an extended header where the entries don't show the
    shape."""
    remedy = "write a .npz file instead"
    if tensor.rank == 0:
        raise CannotHold(suffix=".tns", what="a scalar", remedy=remedy)
    if tensor.dtype.kind == "c":
        raise CannotHold(suffix=".tns", what="complex values", remedy=remedy)
    coords, values = tensor.to_coords()
    if tensor.dtype.kind in "iu" and len(values) and not _exact(values):
        raise CannotHold(
            suffix=".tns", what=f"integers beyond 2**53 ({tensor.dtype})", remedy=remedy
        )
    shown = tuple(int(c.max()) + 1 if len(c) else 0 for c in coords)
    if shown != tensor.shape or tensor.rank == 1 or not len(values):
        head = f"{tensor.rank} {len(values)}\n{' '.join(map(str, tensor.shape))}\n"
        out.write(("# extended FROSTT: rank entries, extents\n" + head).encode())
    numbers = values if values.dtype.kind in "iu" else values.astype(np.float64)
    write_rows(out, [*(c + 1 for c in coords), numbers])


def _exact(values: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> bool:
    return int(values.max()) <= EXACT and int(values.min()) >= -EXACT
