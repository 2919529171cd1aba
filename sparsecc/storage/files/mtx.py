"""Matrix Market files: coordinate and array, every field and symmetry."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from sparsecc.diagnostics import did_you_mean
from sparsecc.formats import Format
from sparsecc.formats.level import Ints
from sparsecc.formats.names import coo
from sparsecc.storage import limits
from sparsecc.storage.entries import from_numpy, resolved
from sparsecc.storage.files.errors import (
    BadHeader,
    BadLine,
    CannotHold,
    IndexOutOfRange,
    WrongCount,
    read_bytes,
)
from sparsecc.storage.files.text import INTEGER, KINDS, TextTable, out_of_range
from sparsecc.storage.layout import AnyArray
from sparsecc.storage.pack import pack
from sparsecc.storage.tensor import SparseTensor

BANNER = "%%MatrixMarket matrix coordinate|array real|integer|complex|pattern general|symmetric"
WORDS: tuple[tuple[str, ...], ...] = (
    ("%%matrixmarket",),
    ("matrix",),
    ("coordinate", "array"),
    ("real", "double", "integer", "unsigned-integer", "complex", "pattern"),
    ("general", "symmetric", "skew-symmetric", "hermitian"),
)
CHUNK = 100_000


def read_mtx(path: Path, format: str | Format | None = None, mirror: bool = True) -> SparseTensor:
    """The matrix of a ``.mtx`` or ``.mtx.gz`` file: COO, or dense for ``array`` files, unless a
    format is named.

    Symmetric, skew-symmetric and hermitian files hold one triangle and mean both; ``mirror=False``
    keeps the one. Repeated entries are added. ``pattern`` reads as 1.0. Raises FileError at
    ``path:line``."""
    name = str(path)
    content = read_bytes(path)
    kind, field, symmetry, start, line = _header(name, content)
    sizes, start, size_line = _sizes(name, content, start, line, 3 if kind == "coordinate" else 2)
    table = TextTable(name, content[start:], size_line + 1, b"%")
    rows, columns = sizes[:2]
    if symmetry != "general" and rows != columns:
        problem = f"a {symmetry} matrix of {rows} rows and {columns} columns"
        raise BadHeader(problem=problem, wanted="it must be square", place=f"{name}:{size_line}")
    if kind == "array":
        return _array(table, sizes, field, symmetry, mirror, format, size_line)
    coords, values = _entries(table, sizes, field, symmetry, size_line)
    if mirror and symmetry != "general":
        coords, values = _mirrored(coords, values, symmetry)
    fmt = coo(2) if format is None else resolved(format, 2)
    return pack(coords, values, (rows, columns), fmt)


# -- the header ------------------------------------------------------------------------------------


def _lines(content: bytes, start: int, line: int) -> Iterator[tuple[bytes, int, int]]:
    """Lines with their number and the offset after them."""
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end + 1
        yield content[start:end].strip(), line, end
        start, line = end, line + 1


def _header(name: str, content: bytes) -> tuple[str, str, str, int, int]:
    content_start = 3 if content[:3] == b"\xef\xbb\xbf" else 0
    for text, line, end in _lines(content, content_start, 1):
        if not text:
            continue
        words = text[:200].decode("latin-1").lower().split()
        place = f"{name}:{line}"
        for word, known in zip(words, WORDS, strict=False):
            if word not in known:
                problem = f"the header says {word[:40]!r}; {did_you_mean(word[:40], known)}"
                raise BadHeader(
                    problem=problem, wanted=f"the first line reads {BANNER}", place=place
                )
        if len(words) != len(WORDS):
            problem = f"the header has {len(words)} words, not {len(WORDS)}"
            raise BadHeader(problem=problem, wanted=f"the first line reads {BANNER}", place=place)
        _, _, kind, field, symmetry = words
        field = "real" if field == "double" else field
        problem = ""
        if field == "pattern" and kind == "array":
            problem = "an array file has values, so its field can't be pattern"
        elif symmetry == "hermitian" and field != "complex":
            problem = f"a hermitian matrix is complex, not {field}"
        elif symmetry == "skew-symmetric" and field in ("pattern", "unsigned-integer"):
            problem = f"a skew-symmetric matrix has negative values, so its field can't be {field}"
        if problem:
            raise BadHeader(problem=problem, wanted="correct the first line", place=place)
        return kind, field, symmetry, end, line + 1
    raise BadHeader(
        problem="the file is empty", wanted=f"the first line reads {BANNER}", place=name
    )


def _sizes(
    name: str, content: bytes, start: int, line: int, count: int
) -> tuple[list[int], int, int]:
    wanted = "after the header and comments comes a line " + (
        "'rows columns entries'" if count == 3 else "'rows columns'"
    )
    for text, number, end in _lines(content, start, line):
        if not text or text.startswith(b"%"):
            continue
        line = number
        words = text[:200].split()
        place = f"{name}:{number}"
        if len(words) != count or not all(INTEGER.fullmatch(word) for word in words):
            shown = text[:40].decode("latin-1")
            raise BadHeader(problem=f"{shown!r} is not a size line", wanted=wanted, place=place)
        sizes = [int(word) for word in words]
        if min(sizes) < 0 or max(sizes) > limits.INT64_MAX:
            problem = (
                f"a size of {min(sizes) if min(sizes) < 0 else max(sizes)} is outside [0, 2**63)"
            )
            raise BadHeader(problem=problem, wanted=wanted, place=place)
        return sizes, end, number
    raise BadHeader(problem="there is no size line", wanted=wanted, place=f"{name}:{line}")


# -- the entries -----------------------------------------------------------------------------------


def _counted(table: TextTable, width: int, declared: int, size_line: int, wanted: str) -> None:
    """Raise WrongCount at the first line too many, or at the last one if there are too few."""
    found = table.row_count(width, wanted)
    if found > declared:
        place, where = table.place(declared * width), "stand there; this is the first too many"
    elif found < declared:
        place, where = table.last_place, "stand there; this is the last line"
    else:
        return
    raise WrongCount(declared=declared, found=found, found_where=where, line=size_line, place=place)


def _entries(
    table: TextTable, sizes: list[int], field: str, symmetry: str, size_line: int
) -> tuple[list[Ints], AnyArray]:
    width = 2 + KINDS[field][1]
    wanted = f"an entry of field {field} is a line of {width} numbers: row, column" + (
        ", value" if width > 2 else ""
    )
    _counted(table, width, sizes[2], size_line, wanted)
    coords, values = table.columns(2, field, wanted)
    for d in (0, 1):
        row = out_of_range(coords[d], sizes[d])
        if row is not None:
            raise IndexOutOfRange(
                index=int(coords[d][row]),
                dim=d,
                extent=sizes[d],
                line=size_line,
                place=table.place(row * width + d),
            )
        coords[d] -= 1
    if symmetry != "general":
        strict = symmetry == "skew-symmetric"
        above = coords[0] <= coords[1] if strict else coords[0] < coords[1]
        if above.any():
            row = int(np.argmax(above))
            at = f"({int(coords[0][row]) + 1}, {int(coords[1][row]) + 1})"
            raise BadLine(
                problem=f"entry {at} of a {symmetry} matrix is not below the diagonal",
                wanted="store the lower triangle only, or declare the matrix general",
                place=table.place(row * width),
            )
        _refuse_least(table, values, strict, width)
    if symmetry == "hermitian":
        _refuse_complex_diagonal(table, coords[0] == coords[1], values, width)
    return coords, values


def _refuse_complex_diagonal(table: TextTable, diagonal: Any, values: AnyArray, width: int) -> None:
    bad = diagonal & (np.imag(values) != 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise BadLine(
            problem=f"{values[row]} stands on the diagonal of a hermitian matrix, which is real",
            wanted="correct the entry, or declare the matrix general",
            place=table.place(row * width),
        )


def _refuse_least(table: TextTable, values: AnyArray, strict: bool, width: int) -> None:
    if strict and values.dtype == np.int64 and (values == -(2**63)).any():
        row = int(np.argmax(values == -(2**63)))
        raise BadLine(
            problem="-2**63 has no negative of 64 bits",
            wanted="declare the field real",
            place=table.place(row * width),
        )


def _mirrored(coords: list[Ints], values: AnyArray, symmetry: str) -> tuple[list[Ints], AnyArray]:
    """Both triangles from the lower one."""
    off = coords[0] != coords[1]
    rows, columns, other = coords[0][off], coords[1][off], values[off]
    if symmetry == "skew-symmetric":
        other = -other
    elif symmetry == "hermitian":
        other = other.conj()
    both = [np.concatenate((coords[0], columns)), np.concatenate((coords[1], rows))]
    return both, np.concatenate((values, other))


def _array(
    table: TextTable,
    sizes: list[int],
    field: str,
    symmetry: str,
    mirror: bool,
    format: str | Format | None,
    size_line: int,
) -> SparseTensor:
    """A dense matrix, given column by column (from the diagonal on if symmetric)."""
    rows, columns = sizes
    count = rows * columns
    if symmetry != "general":
        count = rows * (rows - 1) // 2 if symmetry == "skew-symmetric" else rows * (rows + 1) // 2
    wanted = f"an array file of field {field} has {KINDS[field][1]} numbers a line"
    _counted(table, KINDS[field][1], count, size_line, wanted)
    _, values = table.columns(0, field, wanted)
    if symmetry == "general":
        dense = values.reshape(columns, rows).T
    else:
        _refuse_least(table, values, symmetry == "skew-symmetric", KINDS[field][1])
        dense = np.zeros((rows, columns), dtype=values.dtype)
        column, row = np.triu_indices(rows, 1 if symmetry == "skew-symmetric" else 0)
        if symmetry == "hermitian":
            _refuse_complex_diagonal(table, row == column, values, KINDS[field][1])
        if mirror:
            both, other = _mirrored([row, column], values, symmetry)
            dense[both[0], both[1]] = other
        else:
            dense[row, column] = values
    tensor = from_numpy(np.ascontiguousarray(dense))
    return tensor if format is None else tensor.to(format)


# -- writing ---------------------------------------------------------------------------------------


def write_mtx(tensor: SparseTensor, out: BytesIO) -> None:
    """Coordinate, or array for dense tensors of rank 1 and 2; values with all their digits.

    bool is written as pattern (its entries that are False left out). Raises CannotHold."""
    if tensor.rank not in (1, 2) or (tensor.rank == 1 and not tensor.format.is_dense):
        what = f"a {'sparse ' if tensor.rank == 1 else ''}tensor of rank {tensor.rank}"
        raise CannotHold(suffix=".mtx", what=what, remedy="write a .tns or .npz file instead")
    if tensor.format.is_dense and tensor.dtype != np.bool_:
        array = tensor.to_numpy()
        array = array.reshape(len(array), 1) if array.ndim == 1 else array
        field, numbers = _field(array.T.reshape(-1))
        head = f"%%MatrixMarket matrix array {field} general\n{array.shape[0]} {array.shape[1]}\n"
        out.write(head.encode())
        write_rows(out, numbers)
        return
    coords, values = tensor.to_coords()
    if tensor.dtype == np.bool_:
        coords, values = tuple(c[values] for c in coords), values[values]
    field, numbers = _field(values)
    shape = tensor.shape if tensor.rank == 2 else (tensor.shape[0], 1)
    coords = coords if tensor.rank == 2 else (coords[0], np.zeros_like(coords[0]))
    head = f"%%MatrixMarket matrix coordinate {field} general\n"
    out.write(f"{head}{shape[0]} {shape[1]} {len(values)}\n".encode())
    write_rows(out, [c + 1 for c in coords] + numbers)


def _field(values: AnyArray) -> tuple[str, list[AnyArray]]:
    """The field of a dtype, and the columns of numbers of its values."""
    if values.dtype.kind == "b":
        return "pattern", []
    if values.dtype.kind == "c":
        wide = values.astype(np.complex128)
        return "complex", [wide.real, wide.imag]
    if values.dtype.kind == "f" or values.dtype.name == "bfloat16":
        return "real", [values.astype(np.float64)]
    return "unsigned-integer" if values.dtype == np.uint64 else "integer", [values]


def write_rows(out: BytesIO, columns: list[Any]) -> None:
    """One line a row; floats as Python's shortest spelling that reads back exactly."""
    for start in range(0, len(columns[0]) if columns else 0, CHUNK):
        parts = [map(repr, column[start : start + CHUNK].tolist()) for column in columns]
        out.write(("\n".join(map(" ".join, zip(*parts, strict=True))) + "\n").encode())
