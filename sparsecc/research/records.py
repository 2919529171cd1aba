"""Rows of plain data in files: CSV by the standard library, Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, cast

from sparsecc.diagnostics import FileError, UsageError
from sparsecc.storage.files.whole import write_whole

Row = Mapping[str, Any]
NOTES = b"sparsecc"
"""The key of our notes in a Parquet file's metadata."""


class NoParquet(UsageError):
    text = "{path} is a Parquet file, and pyarrow is not installed"
    help_text = "pip install pyarrow, or use a name that ends in .csv"


class UnknownRecords(UsageError):
    text = "{path} is neither a .csv nor a .parquet file"
    help_text = "the suffix says how rows are written"


class BadRecords(FileError):
    text = "{problem}"
    help_text = "write it again, or correct the line"


def write_rows(path: Path, columns: Sequence[str], rows: Sequence[Row], notes: Any = None) -> None:
    """Write rows by the file's suffix, whole or not at all; None is an empty cell. ``notes`` are kept by Parquet alone.

    Raises UnknownRecords, NoParquet, FileError."""
    if path.suffix == ".csv":
        write_whole(path, csv_text(columns, rows).encode())
        return
    pyarrow = _pyarrow(path)
    from io import BytesIO

    data = pyarrow.table({name: [row.get(name) for row in rows] for name in columns})
    data = data.replace_schema_metadata({NOTES: json.dumps(notes).encode()})
    out = BytesIO()
    import_module("pyarrow.parquet").write_table(data, out)
    write_whole(path, out.getvalue())


def csv_text(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Rows as CSV with a head line. Floats keep all their digits."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if row.get(name) is None else row[name] for name in columns])
    return out.getvalue()


def read_rows(path: Path, columns: Sequence[str]) -> tuple[list[dict[str, Any]], Any]:
    """The rows that ``write_rows`` wrote, and the notes of a Parquet file. Cells of CSV are text, empty ones None.

    Raises BadRecords where a column is missing, UnknownRecords, NoParquet."""
    if path.suffix == ".csv":
        return [row for _, row in csv_rows(path, columns)], None
    _pyarrow(path)
    try:
        data = import_module("pyarrow.parquet").read_table(path)
    except OSError:
        raise
    except Exception as error:  # pyarrow has errors of its own
        raise BadRecords(problem=f"not a Parquet file: {error}", place=str(path)) from None
    found = cast("list[dict[str, Any]]", data.to_pylist())
    _refuse_missing(path, data.column_names, columns)
    notes = cast("dict[bytes, bytes]", data.schema.metadata or {}).get(NOTES)
    return found, None if notes is None else json.loads(notes)


def csv_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines of a CSV file, each with its number. Raises BadRecords."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRecords(problem=f"byte {error.start} is not UTF-8 text", place=str(path)) from None
    reader = csv.reader(StringIO(text), strict=True)
    try:
        head: list[str] = next(reader, list[str]())
        _refuse_missing(path, head, columns)
        for cells in reader:
            if len(cells) != len(head):
                problem = f"{len(cells)} cells, and the head line has {len(head)}"
                raise BadRecords(problem=problem, place=f"{path}:{reader.line_num}")
            yield reader.line_num, {n: c or None for n, c in zip(head, cells, strict=True)}
    except csv.Error as error:
        place = f"{path}:{reader.line_num}"
        raise BadRecords(problem=f"not CSV: {error}", place=place) from None


def _refuse_missing(path: Path, found: Sequence[str], wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in found]
    if missing:
        raise BadRecords(problem=f"there are no columns {', '.join(missing)}", place=str(path))


def _pyarrow(path: Path) -> Any:
    if path.suffix != ".parquet":
        raise UnknownRecords(path=path)
    try:
        return import_module("pyarrow")
    except ImportError:
        raise NoParquet(path=path) from None
