"""What is wrong with a file, and reading its bytes."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from sparsecc.diagnostics import FileError


class UnreadableFile(FileError):
    text = "the file can't be read: {reason}"


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
    """The content of a file, unzipped if it is gzip; raises UnreadableFile and DamagedFile."""
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnreadableFile(reason=reason, place=str(path)) from None
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedFile(reason=str(error), place=str(path)) from None
