"""Operands on a command line: ``NAME=FILE[:FORMAT]``, ``NAME=2.5``, and options about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecc.diagnostics import (
    ErrorCollector,
    FileError,
    FormatError,
    UsageError,
    did_you_mean,
)

if TYPE_CHECKING:
    from sparsecc.formats import Format
    from sparsecc.storage.tensor import SparseTensor

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
OPEN = "*"
"""In place of a format: it is to be chosen."""
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?j?|[-+]?(inf|nan)")

DTYPES: dict[str, str] = {
    # a type's name: NumPy's name for it, which is accepted too
    "bool": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
    "c64": "complex64", "c128": "complex128",
}  # fmt: skip


@dataclass(frozen=True)
class FileOperand:
    """A file, and the format to bring it into (None: as it comes; ``*``: one that is chosen)."""

    path: Path
    format: str | None


Operand = FileOperand | int | float | complex


def pairs(texts: Iterable[str], what: str) -> dict[str, str]:
    """``NAME=VALUE`` texts as a dictionary.

    Raises UsageError on anything else and on repeated names."""
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not value or not NAME.fullmatch(name):
            raise UsageError(f"{text!r} is not {what}", place="sparsecc", help=f"write {what}")
        if name in found:
            raise UsageError(
                f"{name!r} is given twice: {found[name]!r} and {value!r}", place="sparsecc"
            )
        found[name] = value
    return found


def parse_operands(texts: Iterable[str]) -> dict[str, Operand]:
    """The operands of a command line, in its order."""
    return {
        name: parse_value(value)
        for name, value in pairs(texts, "an operand NAME=FILE[:FORMAT]").items()
    }


def parse_value(text: str) -> Operand:
    """A number, or a file with an optional format behind a colon."""
    if NUMBER.fullmatch(text):
        for kind in (int, float, complex):
            try:
                return kind(text)
            except ValueError:
                continue
    return FileOperand(*split_format(text))


def split_format(text: str) -> tuple[Path, str | None]:
    """``FILE[:FORMAT]``, where both may contain colons: ``W.npy:2:4``, ``a:b.mtx``; ``FILE:*`` leaves the format open.

    A file that exists decides; without one, the first colon with a format behind it does."""
    splits = [(Path(text[:at]), text[at + 1 :]) for at, c in enumerate(text) if c == ":"]
    if not splits or Path(text).exists():
        return Path(text), None
    for path, format in splits:
        if path.is_file():
            if format != OPEN:
                check_format(format)
            return path, format
    for path, format in splits:
        if format == OPEN or _is_format(format):
            return path, format
    return Path(text), None


def _is_format(text: str) -> bool:
    from sparsecc.formats import parse_format

    try:
        parse_format(text)
    except FormatError:
        return False
    return True


def check_format(text: str, rank: int | None = None) -> Format:
    """The format of a spelling; one that is none is wrong usage."""
    from sparsecc.formats import parse_format

    try:
        return parse_format(text, rank)
    except FormatError as error:
        raise UsageError(error.message, place="sparsecc", help=error.help) from None


def check_dtype(text: str) -> str:
    """The name of a type, from it or NumPy's. Raises UsageError."""
    for name, numpy_name in DTYPES.items():
        if text in (name, numpy_name):
            return name
    raise UsageError(
        f"there is no type {text!r}", place="sparsecc", help=did_you_mean(text, list(DTYPES))
    )


def parse_dtypes(texts: Sequence[str]) -> dict[str, str]:
    """``--dtype f32`` and ``--dtype A=f32``: types by operand, ``""`` stands for all others."""
    common = [text for text in texts if "=" not in text]
    if len(common) > 1:
        raise UsageError(
            f"--dtype is given twice: {common[0]!r} and {common[1]!r}", place="sparsecc"
        )
    named = pairs((text for text in texts if "=" in text), "a type NAME=DTYPE")
    found = {name: check_dtype(dtype) for name, dtype in named.items()}
    return found | ({"": check_dtype(common[0])} if common else {})


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int | None, ...]]:
    """``--shape A=100x?``: extents by operand; None is known at run time only."""
    shapes: dict[str, tuple[int | None, ...]] = {}
    for name, text in pairs(texts, "a shape NAME=ROWSxCOLUMNS").items():
        parts = text.split("x")
        if not all(part == "?" or part.isdecimal() for part in parts):
            raise UsageError(
                f"{text!r} is not a shape",
                place="sparsecc",
                help="write extents such as 100x20, '?' for an unknown one",
            )
        shapes[name] = tuple(None if part == "?" else int(part) for part in parts)
    return shapes


def read_operand(
    path: Path, format: str | None, dtype: str | None = None, key: str | None = None
) -> SparseTensor:
    """The tensor of a file, in the format and with the type that are asked for."""
    from sparsecc.elements import NUMPY
    from sparsecc.storage import files

    if not path.exists():
        raise _no_file(path)
    tensor = files.read(path, format=format, key=key)
    if dtype is None or str(tensor.dtype) == DTYPES[dtype]:
        return tensor
    if not _becomes(tensor.dtype, dtype):
        raise UsageError(
            f"{path} holds {tensor.dtype}, which does not become {DTYPES[dtype]}",
            place="sparsecc",
            help="leave --dtype out, or convert the file",
        )
    return tensor.astype(NUMPY[dtype])


def _becomes(found: Any, wanted: str) -> bool:
    """Whether values of a NumPy type may be read as another: integers and floats as floats, …"""
    import numpy as np

    from sparsecc.elements import NUMPY

    # NumPy's rules don't know bf16; f16 stands for it.
    found, target = (
        np.dtype(np.float16) if t.name == "bfloat16" else t for t in (found, NUMPY[wanted])
    )
    return np.can_cast(found, target, casting="same_kind")


def load(
    operands: dict[str, Operand], formats: dict[str, str], dtypes: dict[str, str]
) -> dict[str, Any]:
    """The operands themselves: tensors of files, and numbers.

    Every file that is not there is named before any is read."""
    missing = ErrorCollector()
    for operand in operands.values():
        if isinstance(operand, FileOperand) and not operand.path.exists():
            missing.add(_no_file(operand.path))
    missing.raise_if_any()
    loaded: dict[str, Any] = {}
    for name, operand in operands.items():
        if isinstance(operand, FileOperand):
            format = operand.format or formats.get(name)
            format = None if format == OPEN else format
            dtype = dtypes.get(name, dtypes.get(""))
            loaded[name] = read_operand(operand.path, format, dtype)
        else:
            loaded[name] = operand
    return loaded


def _no_file(path: Path) -> FileError:
    return FileError("there is no such file", place=str(path))
