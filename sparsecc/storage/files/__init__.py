"""Files by suffix: ``read`` and ``write``. A line of :data:`SUFFIXES` is a file format."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from sparsecc.diagnostics import UsageError, did_you_mean
from sparsecc.formats import Format
from sparsecc.storage.files.errors import UnknownSuffix
from sparsecc.storage.files.whole import write_whole
from sparsecc.storage.tensor import SparseTensor

SUFFIXES: dict[str, tuple[str, tuple[str, ...]]] = {
    # suffix: (module and function without read_ and write_, the options its reader knows)
    ".mtx": ("sparsecc.storage.files.mtx:mtx", ("mirror",)),
    ".mtx.gz": ("sparsecc.storage.files.mtx:mtx", ("mirror",)),
    ".tns": ("sparsecc.storage.files.tns:tns", ("shape",)),
    ".npz": ("sparsecc.storage.files.npz:npz", ("key",)),
    ".npy": ("sparsecc.storage.files.npy:npy", ()),
}


def _function(path: Path, verb: str) -> tuple[Callable[..., Any], tuple[str, ...], str]:
    name = path.name.lower()
    suffix = max((s for s in SUFFIXES if name.endswith(s)), key=len, default="")
    if not suffix:
        help = did_you_mean("".join(path.suffixes[-2:]), list(SUFFIXES))
        raise UnknownSuffix(name=path.name, place=str(path), help=help)
    target, options = SUFFIXES[suffix]
    module, _, kind = target.partition(":")
    return getattr(import_module(module), f"{verb}_{kind}"), options, suffix


def _path(path: Any) -> Path:
    if isinstance(path, str | os.PathLike):
        return Path(cast("str | os.PathLike[str]", path))
    raise UsageError(f"a path is text or a pathlib.Path, not of type {type(path).__name__}")


def read(
    path: str | os.PathLike[str],
    *,
    format: str | Format | None = None,
    key: str | None = None,
    mirror: bool = True,
    shape: Sequence[int] | None = None,
) -> SparseTensor:
    """The tensor of a ``.mtx .mtx.gz .tns .npz .npy`` file, in ``format`` if one is named.

    ``key`` names an array of an ``.npz``; ``mirror=False`` keeps the one stored triangle of a
    symmetric ``.mtx``;
    ``shape`` is that of a ``.tns``. Files are untrusted: whatever is wrong is one FileError with
    its place."""
    where = _path(path)
    if key is not None and not isinstance(cast(Any, key), str):
        raise UsageError(f"key= is the name of an array, not {key!r}")
    function, options, _ = _function(where, "read")
    given = {"key": key, "mirror": mirror, "shape": shape}
    return function(where, format=format, **{name: given[name] for name in options})


def write(tensor: SparseTensor, path: str | os.PathLike[str]) -> None:
    """Write a file by its suffix. The file appears whole or not at all: it is written beside and
    renamed (a device or a pipe is written to as it is).

    Raises CannotHold where the file format can't hold the tensor, UnwritableFile where the file
    can't be written."""
    where = _path(path)
    function, _, suffix = _function(where, "write")
    out = BytesIO()
    function(tensor, out)
    content = out.getvalue()
    if suffix.endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    write_whole(path, content)
