"""What is wrong with a file, and reading its bytes."""

from __future__ import annotations

import gzip
import zlib
from io import BytesIO
from pathlib import Path

from sparsecc.diagnostics import FileError

MAX_UNFOLDED = 256 << 20
MAX_RATIO = 200
"""Gzip may unfold to the larger of so many bytes and so many times its own."""


class UnreadableFile(FileError):
    text = "the file can't be read: {reason}"


class UnwritableFile(FileError):
    text = "the file can't be written: {reason}"


class InflatedFile(FileError):
    text = "{compressed} bytes of gzip unfold to more than {limit}"
    help_text = "unzip it first, if it is meant to"


class DamagedFile(FileError):
    text = "the file is damaged: {reason}"
    help_text = "fetch or write it again"


class UnknownSuffix(FileError):
    text = "there is no reader or writer for files named {name!r}"


class BadHeader(FileError):
    text = "{problem}"
    help_text = "{wanted}"


class BadLine(FileError):
    text = "{problem}"
    help_text = "{wanted}"


class WrongCount(FileError):
    text = "{declared} entries are declared, but {found} {found_where}"
    help_text = "correct the count in line {line}, or the entries"


class IndexOutOfRange(FileError):
    text = "index {index} of dimension {dim} is outside [1, {extent}]"
    help_text = "indices count from 1; check the sizes in line {line}"


class UnknownKey(FileError):
    text = "{problem}"
    help_text = "pass key=; the file holds: {keys}"


class BadArray(FileError):
    text = "array {key!r}: {problem}"


class CannotHold(FileError):
    text = "a {suffix} file can't hold {what}"
    help_text = "{remedy}"


def read_bytes(path: Path) -> bytes:
    """The content of a file, unzipped if it is gzip; raises UnreadableFile, DamagedFile, and
    InflatedFile for gzip that unfolds without measure."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableFile(reason=reason, place=str(path)) from None
    if content[:2] != b"\x1f\x8b":
        return content
    limit = max(MAX_UNFOLDED, MAX_RATIO * len(content))
    try:
        with gzip.GzipFile(fileobj=BytesIO(content)) as stream:
            unfolded = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedFile(reason=str(error), place=str(path)) from None
    if len(unfolded) > limit:
        raise InflatedFile(compressed=len(content), limit=limit, place=str(path))
    return unfolded
