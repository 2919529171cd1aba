"""Compiled kernels on disk: a request's key to its plan and machine code.

An entry is one file: a line with a checksum and the plan as JSON, then the object code. Keys hold everything that the
code depends on: the request, the CPU and its features, the code generator's version, and this package's
own files. ``SPARSECC_CACHE`` names the folder; empty switches the cache off.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sparsecc.kernel import Plan

_MAGIC = b"sparsecc kernel 2\n"
MAX_ENTRIES = 4096
"""Beyond this many the least recently written quarter is removed; an entry takes a few kilobytes."""


def folder() -> Path | None:
    """Where entries are, or None if the cache is off."""
    named = os.environ.get("SPARSECC_CACHE")
    if named is not None:
        return Path(named) if named else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "sparsecc"


@cache
def package_fingerprint() -> str:
    """Changes when a file of this package does."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parent.parent
    roots = [root, *(root / name for name in ("dialects", "passes", "backends"))]
    seen: set[Path] = set()
    for top in roots:
        for directory, _, files in os.walk(top):
            for name in sorted(files):
                path = Path(directory, name).resolve()
                if name.endswith((".py", ".lark")) and path not in seen:
                    seen.add(path)
                    status = path.stat()
                    digest.update(f"{path} {status.st_mtime_ns} {status.st_size}\n".encode())
    return digest.hexdigest()


def key(request: Mapping[str, Any], machine: str) -> str:
    """The name of a request's entry."""
    text = json.dumps([request, machine, package_fingerprint()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read(name: str) -> tuple[Plan, bytes] | None:
    """An entry, or None if there is none that can be read (it is compiled anew then)."""
    where = folder()
    if where is None:
        return None
    try:
        data = (where / f"{name}.kernel").read_bytes()
    except OSError:
        return None
    if not data.startswith(_MAGIC):
        return None
    head, _, rest = data[len(_MAGIC) :].partition(b"\n")
    try:
        digest, _, plan = head.partition(b" ")
        if hashlib.sha256(plan + rest).hexdigest().encode() != digest:
            return None
        return Plan.from_json(json.loads(plan)), rest
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def write(name: str, plan: Plan, code: bytes) -> None:
    """Store an entry; a folder that can't be written is no error."""
    where = folder()
    if where is None:
        return
    text = json.dumps(plan.to_json()).encode()
    digest = hashlib.sha256(text + code).hexdigest().encode()
    try:
        where.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=where)
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + digest + b" " + text + b"\n" + code)
        os.replace(temporary, where / f"{name}.kernel")
        prune(where)
    except OSError:
        return


def prune(where: Path) -> None:
    """Keep the folder within ``MAX_ENTRIES``."""
    with os.scandir(where) as found:
        entries = [e for e in found if e.name.endswith(".kernel")]
    if len(entries) <= MAX_ENTRIES:
        return
    entries.sort(key=lambda e: e.stat().st_mtime_ns)
    for entry in entries[: len(entries) - MAX_ENTRIES * 3 // 4]:
        Path(entry.path).unlink(missing_ok=True)
