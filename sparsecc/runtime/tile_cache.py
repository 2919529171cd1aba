"""Machine code of GPU kernels on disk: the text as a module that runs by hand, cubin, PTX and facts beside it.

An entry is four files of one name, ``<kernel>_<target>_<digest>`` with ``.py .cubin .ptx .json``; the last holds
the facts and a checksum of the others, and is written last. The name is made of all that the code depends on.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from sparsecc.kernel import Compiled, TensorMap, TileSource
from sparsecc.runtime.kernel_cache import folder

MAX_ENTRIES = 1024
"""Beyond this many the least recently written quarter is removed; an entry takes some 50 kilobytes."""
_SUFFIXES = (".py", ".cubin", ".ptx")
_FACTS = (
    "target", "symbol", "threads", "shared", "registers", "spills", "parameters", "scratch", "programs", "compiler",
    "milliseconds",
)  # fmt: skip


@cache
def compiler_version() -> str:
    """The version of the compiler that is installed, without importing it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"triton {version('triton')}"
    except PackageNotFoundError:
        return "no triton"


_kept: dict[tuple[TileSource, str], Compiled] = {}


def compiled(source: TileSource, target: str) -> Compiled:
    """Machine code of a kernel: from this process, from the disk, or compiled in a process of its own."""
    found = _kept.get((source, target)) or read(source, target)
    if found is None:
        from sparsecc.backends.triton.load import compile_source

        found = compile_source(source, target)
        write(found)
    _kept[source, target] = found
    return found


def forget() -> None:
    """Drop the machine code that this process keeps."""
    _kept.clear()


def keep(found: Compiled) -> None:
    """Machine code that was made elsewhere."""
    write(found)
    _kept[found.source, found.target] = found


def entry_name(source: TileSource, target: str) -> str:
    """The name of a kernel's files; a Python identifier."""
    text = json.dumps([asdict(source), target, compiler_version()], sort_keys=True)
    return f"{source.entry}_{target}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def tiles_folder() -> Path | None:
    """Where entries are, or None if the cache is off."""
    where = folder()
    return None if where is None else where / "gpu"


def read(source: TileSource, target: str) -> Compiled | None:
    """An entry, or None if there is none that can be read (it is compiled anew then)."""
    where = tiles_folder()
    if where is None:
        return None
    name = entry_name(source, target)
    try:
        facts: dict[str, Any] = json.loads((where / f"{name}.json").read_bytes())
        text, cubin, ptx = ((where / f"{name}{suffix}").read_bytes() for suffix in _SUFFIXES)
        stated = facts.pop("checksum")
        if _checksum(facts, text, cubin, ptx) != stated or text.decode() != source.text:
            return None
        maps = tuple(
            TensorMap(**m | {"block": tuple(m["block"])}) for m in facts.pop("tensor_maps")
        )
        facts["parameters"] = tuple(facts["parameters"])
        return Compiled(source, cubin=cubin, ptx=ptx.decode(), tensor_maps=maps, **facts)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def write(found: Compiled) -> None:
    """Store an entry; a folder that can't be written is no error."""
    where = tiles_folder()
    if where is None:
        return
    name = entry_name(found.source, found.target)
    parts = (found.source.text.encode(), found.cubin, found.ptx.encode())
    facts: dict[str, Any] = {key: getattr(found, key) for key in _FACTS}
    facts["tensor_maps"] = [asdict(m) for m in found.tensor_maps]
    facts = json.loads(json.dumps(facts))
    facts["checksum"] = _checksum(facts, *parts)
    try:
        where.mkdir(parents=True, exist_ok=True)
        for suffix, data in zip(_SUFFIXES, parts, strict=True):
            _put(where / f"{name}{suffix}", data)
        _put(where / f"{name}.json", json.dumps(facts, indent=1).encode())
        prune(where)
    except OSError:
        return


def _put(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def _checksum(facts: dict[str, Any], *parts: bytes) -> str:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for part in parts:
        digest.update(b"%d\n" % len(part) + part)
    return digest.hexdigest()


def prune(where: Path) -> None:
    """Keep the folder within ``MAX_ENTRIES``."""
    with os.scandir(where) as found:
        entries = [e for e in found if e.name.endswith(".json")]
    if len(entries) <= MAX_ENTRIES:
        return
    entries.sort(key=lambda e: e.stat().st_mtime_ns)
    for entry in entries[: len(entries) - MAX_ENTRIES * 3 // 4]:
        for suffix in (".json", *_SUFFIXES):
            Path(entry.path).with_suffix(suffix).unlink(missing_ok=True)


def path_of(source: TileSource, target: str) -> Path | None:
    """The module of a kernel in the cache, if it is there."""
    where = tiles_folder()
    path = None if where is None else where / f"{entry_name(source, target)}.py"
    return path if path is not None and path.exists() else None
