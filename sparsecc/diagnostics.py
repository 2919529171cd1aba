"""What goes wrong, and where: sources with places, and the family of errors that users meet.

An error has a place, a fact and a next step::

    <expression>:1:19: error: index 'k' is 64 in A but 32 in B
      C[i,j] = A[i,k] * B[k,j]
                          ^
    help: transpose or slice one of the two

One class is one kind of mistake; its ``text`` and ``help_text`` are templates filled from keyword facts.
Rooms derive their own classes from the families here, next to the code that raises them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import ClassVar


@dataclass(frozen=True)
class Source:
    """A text that errors point into: an expression, or the content of a file."""

    text: str
    name: str = "<expression>"

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of a character offset."""
        starts = [0, *(i + 1 for i, c in enumerate(self.text) if c == "\n")]
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a 1-based line."""
        return self.text.split("\n")[number - 1]


@dataclass(frozen=True)
class Span:
    """Characters ``[start, end)`` of a source."""

    source: Source
    start: int
    end: int

    @property
    def place(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def excerpt(self) -> str:
        """The line of the span with carets beneath it."""
        line, column = self.source.position(self.start)
        text = self.source.line(line)
        width = max(1, min(self.end - self.start, len(text) - column + 1))
        return f"  {text}\n  {' ' * (column - 1)}{'^' * width}"


@dataclass(frozen=True)
class Note:
    """A second place that explains an error."""

    text: str
    span: Span | None = None

    def render(self) -> str:
        if self.span is None:
            return f"note: {self.text}"
        return f"{self.span.place}: note: {self.text}\n{self.span.excerpt()}"


class SparseccError(Exception):
    """Every error that a user can cause or meet.

    ``span`` is a place in a source, ``place`` a place in words (``A.mtx:3`` or ``operand A``);
    the remaining keywords fill the class's ``text`` and ``help_text``.
    """

    text: ClassVar[str] = "{message}"
    help_text: ClassVar[str] = ""

    def __init__(
        self,
        message: str = "",
        *,
        span: Span | None = None,
        place: str = "",
        notes: Sequence[Note] = (),
        help: str = "",
        **facts: object,
    ) -> None:
        self.span = span
        self.place = span.place if span is not None else place
        self.facts = facts
        self.message = self.text.format(message=message, **facts)
        self.help = help or self.help_text.format(message=message, **facts)
        self.notes = tuple(notes)
        super().__init__(self.render())

    def render(self) -> str:
        parts = [f"{self.place}: error: {self.message}" if self.place else f"error: {self.message}"]
        if self.span is not None:
            parts.append(self.span.excerpt())
        parts += [note.render() for note in self.notes]
        if self.help:
            parts.append(f"help: {self.help}")
        return "\n".join(parts)


class ExpressionError(SparseccError):
    """A tensor expression that is malformed or means nothing."""


class FormatError(SparseccError):
    """A storage format that is malformed or does not fit its tensor."""


class FileError(SparseccError):
    """A file that can't be read or written; ``place`` names the file and line or key."""


class OperandError(SparseccError):
    """A tensor given to the library that does not fit: wrong rank, extent, dtype, order or range."""


class IRError(SparseccError):
    """A program in ``.mlir`` text that is malformed or does not verify."""


class PassError(SparseccError):
    """A pass, option or pipeline that does not exist or does not apply."""


class TargetError(SparseccError):
    """A target that does not exist or can't run here."""


class UnsupportedError(SparseccError):
    """A right program that this version does not compile yet; never a wrong answer instead."""


class LimitError(SparseccError):
    """Refused before memory is taken: a size beyond a limit or an integer width."""


class UsageError(SparseccError):
    """A command line or keyword option that is used wrongly."""


class InternalError(SparseccError):
    """A fault of this compiler."""

    help_text = (
        "this is a bug in sparsecc: please report it with the program and the operand formats"
    )


@dataclass
class ErrorCollector:
    """Collects the errors of a checker, to be raised together."""

    errors: list[SparseccError] = field(default_factory=list[SparseccError])

    def add(self, error: SparseccError) -> None:
        self.errors.append(error)

    def raise_if_any(self) -> None:
        """Raise the only error as it is, several as one of the first one's class."""
        if not self.errors:
            return
        first = self.errors[0]
        if len(self.errors) > 1:
            text = "\n".join(
                [e.render() for e in self.errors] + [f"found {len(self.errors)} errors"]
            )
            first.args = (text,)
        raise first


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """``did you mean 'x'?`` or the list of known names."""
    close = get_close_matches(str(name), known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known: " + ", ".join(sorted(known)) if known else ""
