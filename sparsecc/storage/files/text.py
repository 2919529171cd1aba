"""Tables of numbers in text, parsed in bulk: the fast path reads all, the slow one names the line
of an error."""

from __future__ import annotations

import re
import warnings
from copy import copy
from typing import Any, NoReturn

import numpy as np

from sparsecc.formats.level import Ints
from sparsecc.storage.files.errors import BadLine
from sparsecc.storage.layout import AnyArray
from sparsecc.storage.limits import INT64_MAX

INTEGER = re.compile(rb"[+-]?[0-9]+")
REAL = re.compile(
    rb"[+-]?([0-9]+\.?[0-9]*(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|inf(inity)?|nan(\([^)]*\))?)",
    re.IGNORECASE,
)
BLANK = np.uint8(32)
KINDS: dict[str, tuple[type[np.generic], int, re.Pattern[bytes], str]] = {
    # field: (dtype, numbers of an entry, what a number looks like, what it is called)
    "real": (np.float64, 1, REAL, "number"),
    "complex": (np.float64, 2, REAL, "number"),
    "integer": (np.int64, 1, INTEGER, "integer"),
    "unsigned-integer": (np.uint64, 1, INTEGER, "unsigned integer"),
    "pattern": (np.float64, 0, REAL, "number"),
}


class TextTable:
    """The lines of a text from ``first_line`` on, as rows of numbers separated by white space.

    Comment lines start with ``comment``; they and blank lines may stand anywhere."""

    def __init__(self, name: str, body: bytes, first_line: int, comment: bytes) -> None:
        if comment in body:
            # Blanked and not removed: lines keep their numbers.
            pattern = rb"(?m)^[ \t]*" + re.escape(comment) + rb"[^\n]*"
            body = re.sub(pattern, lambda m: b" " * len(m[0]), body)
        if b"D" in body or b"d" in body:
            body = body.translate(bytes.maketrans(b"Dd", b"Ee"))  # Fortran's exponents
        self.name, self.body, self.first_line = name, body, first_line
        self.buffer = np.frombuffer(body, dtype=np.uint8)
        ink = self.buffer > 32
        ink[1:] &= ~ink[:-1].copy()
        self.starts = np.flatnonzero(ink)
        breaks = np.flatnonzero(self.buffer == 10)
        before = np.searchsorted(self.starts, breaks)  # tokens before the end of each line
        counts = np.diff(before, prepend=0, append=len(self.starts))
        self.line_of = np.repeat(np.arange(len(breaks) + 1), counts)

    @property
    def tokens(self) -> int:
        return len(self.starts)

    def place(self, token: int) -> str:
        """``file:line`` of a token."""
        return f"{self.name}:{self.first_line + int(self.line_of[token])}"

    @property
    def last_place(self) -> str:
        if self.tokens:
            return self.place(self.tokens - 1)
        return f"{self.name}:{max(1, self.first_line - 1)}"

    def widths(self) -> list[int]:
        """The number of tokens of each of the first three lines that have any (of lines below
        4096)."""
        counts = np.unique(self.line_of[:8192], return_counts=True)[1]
        return counts[:3].tolist()

    def after(self, tokens: int) -> TextTable:
        """The table without its first tokens, which end a line."""
        rest = copy(self)
        cut = int(self.starts[tokens]) if tokens < self.tokens else len(self.body)
        rest.body, rest.buffer = self.body[cut:], self.buffer[cut:]
        rest.starts, rest.line_of = self.starts[tokens:] - cut, self.line_of[tokens:]
        return rest

    def token(self, number: int) -> bytes:
        start = int(self.starts[number])
        return self.body[start : start + 4096].split(None, 1)[0]

    def row_count(self, width: int, wanted: str) -> int:
        """The rows, each of ``width`` numbers on its own line; raises BadLine."""
        rows, left = divmod(self.tokens, width)
        first, last = self.line_of[0::width], self.line_of[width - 1 :: width]
        if not left and (first == last).all() and (first[1:] > last[:-1]).all():
            return rows
        starts = np.flatnonzero(np.concatenate(([True], np.diff(self.line_of) > 0)))
        counts = np.diff(np.append(starts, self.tokens))
        row = int(np.argmax(counts != width))
        problem = f"{counts[row]} numbers, not {width}"
        raise BadLine(problem=problem, wanted=wanted, place=self.place(int(starts[row])))

    def columns(self, indices: int, kind: str, wanted: str) -> tuple[list[Ints], AnyArray]:
        """``indices`` columns of int64 and one of values, from rows of exactly those; complex of
        two numbers.

        Raises BadLine for what is no number, and for integers beyond 64 bits."""
        dtype, numbers, _, _ = KINDS[kind]
        width = indices + numbers
        rows = self.row_count(width, wanted)
        if not rows:
            empty = np.zeros(0, dtype=np.complex128 if kind == "complex" else dtype)
            return [np.zeros(0, dtype=np.int64)] * indices, empty
        coords: list[Ints] = []
        if kind == "integer" or not numbers:
            table = self._parse(self.buffer, np.int64, rows * width, indices, kind).reshape(
                rows, width
            )
            coords = [np.ascontiguousarray(table[:, d]) for d in range(indices)]
            values = table[:, indices].copy() if numbers else np.ones(rows)
        else:
            ahead, behind = self.buffer, self.buffer
            if indices:
                mask = self._value_bytes(indices, width)
                ahead, behind = (ahead & ~mask) | (BLANK & mask), (behind & mask) | (BLANK & ~mask)
                table = self._parse(ahead, np.int64, rows * indices, indices, kind)
                table = table.reshape(rows, indices)
                coords = [np.ascontiguousarray(table[:, d]) for d in range(indices)]
            values = self._parse(behind, dtype, rows * numbers, indices, kind)
            if kind == "complex":
                values = values.view(np.complex128)
        self._refuse_saturated(coords, values, width, kind)
        return coords, values

    def _value_bytes(self, indices: int, width: int) -> Any:
        """A mask of the text, 255 from the first value of each row to the next row, else 0."""
        first, second = self.starts[0::width], self.starts[indices::width]
        edges = np.empty(2 * len(first) + 2, dtype=np.int64)
        edges[0], edges[1:-1:2], edges[2:-1:2], edges[-1] = 0, first, second, len(self.body)
        flags = np.zeros(2 * len(first) + 1, dtype=np.uint8)
        flags[2::2] = 255
        return np.repeat(flags, np.diff(edges))

    def _parse(self, text: Any, dtype: Any, count: int, indices: int, kind: str) -> AnyArray:
        with warnings.catch_warnings():
            # A text that is not all numbers is a warning or an error by NumPy's version.
            warnings.simplefilter("error")
            try:
                parsed = np.fromstring(text.tobytes(), dtype=dtype, sep=" ")
            except (ValueError, DeprecationWarning):
                parsed = None
        if parsed is None or len(parsed) != count:
            self._name_bad_token(indices, kind)
        return parsed

    def _name_bad_token(self, indices: int, kind: str) -> NoReturn:
        _, numbers, pattern, called = KINDS[kind]
        for number in range(self.tokens):
            column = number % (indices + numbers)
            shape, what = (INTEGER, "integer index") if column < indices else (pattern, called)
            token = self.token(number)
            if not shape.fullmatch(token) or (what[0] == "u" and token[:1] == b"-"):
                shown = token[:40].decode("utf-8", "backslashreplace")
                self._bad(
                    number,
                    f"{shown!r} is not a {what}".replace("a i", "an i").replace("a u", "an u"),
                )
        self._bad(0, "the numbers can't be read")

    def _bad(self, token: int, problem: str) -> NoReturn:
        wanted = "correct the line"
        raise BadLine(problem=problem, wanted=wanted, place=self.place(token))

    def _refuse_saturated(
        self, coords: list[Ints], values: AnyArray, width: int, kind: str
    ) -> None:
        """NumPy's parser answers the largest integer for all that are beyond it."""
        columns: list[AnyArray] = list(coords)
        if kind in ("integer", "unsigned-integer"):
            columns.append(values)
        for c, column in enumerate(columns):
            limits = np.iinfo(column.dtype)
            ends = column == limits.max
            if limits.min:
                ends |= column == limits.min
            for row in np.flatnonzero(ends).tolist():
                token = self.token(row * width + c)
                if c < len(coords) or not limits.min <= int(token) <= limits.max:
                    shown = token.decode()
                    hint = (
                        " (the field unsigned-integer goes to 2**64-1)" if kind == "integer" else ""
                    )
                    self._bad(row * width + c, f"{shown} does not fit 64 bits{hint}")


def out_of_range(column: Ints, extent: int) -> int | None:
    """The first row whose 1-based index is outside ``[1, extent]``."""
    if not len(column) or (int(column.min()) >= 1 and int(column.max()) <= extent):
        return None
    return int(np.argmax((column < 1) | (column > min(extent, INT64_MAX))))
