"""Files of the Deep Learning Matrix Collection (``.smtx``): a pattern without values.

The first line is ``rows, columns, entries``, the second one the positions of CSR (``rows + 1`` numbers), the third one
the columns of the entries. Numbers are separated by blanks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from sparsecc.research.pattern import Pattern
from sparsecc.storage.files.errors import BadHeader, BadLine, WrongCount, read_bytes

Ints = npt.NDArray[np.int64]
LARGEST = 2**31 - 1
SIZES = "the first line reads 'rows, columns, entries'"
LINES = {2: "row positions", 3: "columns"}


def read_smtx(path: Path) -> Pattern:
    """The pattern of a file; entries of a row are sorted. Raises FileError at ``path:line``."""
    lines = read_bytes(path).split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    rows, columns, entries = _sizes(path, lines[0] if lines else b"")
    if len(lines) > 3:
        raise BadLine(
            problem="there is a fourth line", wanted="three lines are a pattern", place=f"{path}:4"
        )
    positions = _numbers(path, lines, 2, rows + 1)
    found = _numbers(path, lines, 3, entries)
    lengths = np.diff(positions)
    if positions[0] != 0 or positions[-1] != entries or (lengths < 0).any():
        problem = f"row positions do not rise from 0 to {entries}"
        raise BadLine(problem=problem, wanted="they are those of CSR", place=f"{path}:2")
    if entries and not (0 <= int(found.min()) and int(found.max()) < columns):
        at = int(np.argmax((found < 0) | (found >= columns)))
        problem = f"column {found[at]} of entry {at} is outside [0, {columns})"
        raise BadLine(problem=problem, wanted="columns count from 0", place=f"{path}:3")
    keys = np.repeat(np.arange(rows, dtype=np.int64), lengths) * columns + found
    keys.sort()
    repeated = np.flatnonzero(keys[1:] == keys[:-1])
    if len(repeated):
        row, column = divmod(int(keys[repeated[0]]), columns)
        problem = f"entry ({row}, {column}) is there twice"
        raise BadLine(problem=problem, wanted="drop one of them", place=f"{path}:3")
    return Pattern((rows, columns), keys=keys)


def _sizes(path: Path, line: bytes) -> tuple[int, int, int]:
    words = line[:200].replace(b",", b" ").split()
    if len(words) != 3 or not all(word.isdigit() and len(word) <= 10 for word in words):
        shown = line[:40].decode("latin-1")
        raise BadHeader(problem=f"{shown!r} is not a size line", wanted=SIZES, place=f"{path}:1")
    rows, columns, entries = (int(word) for word in words)
    if max(rows, columns, entries) > LARGEST or entries > rows * columns:
        problem = f"{entries} entries of a {rows} x {columns} matrix"
        raise BadHeader(problem=problem, wanted=SIZES, place=f"{path}:1")
    return rows, columns, entries


def _numbers(path: Path, lines: list[bytes], number: int, count: int) -> Ints:
    """The whole numbers of a line, as many as they should be; memory is that of the line."""
    place = f"{path}:{number}"
    line = lines[number - 1] if len(lines) >= number else b""
    words = line.split()
    if len(words) != count:
        raise WrongCount(
            declared=count, found=len(words), found_where=f"{LINES[number]} stand there", line=1,
            place=place,
        )  # fmt: skip
    bad = next((word for word in words if len(word) > 10 or not word.isdigit()), None)
    if bad is not None:
        shown = bad[:40].decode("latin-1")
        problem = f"{shown!r} is not a whole number of at most ten digits"
        raise BadLine(problem=problem, wanted="numbers separated by blanks", place=place)
    return np.array(words or [b"0"]).astype(np.int64)[: len(words)]
