"""Which algorithm of cuSPARSELt is the fastest for a product: searched by the library once, kept on disk.

Its default loses to a dense product for few columns. What was found is good for a GPU, the versions, a type and the
extents.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from sparsecc.diagnostics import UsageError
from sparsecc.runtime.kernel_cache import folder
from sparsecc.runtime.machines import GpuMachine


class NotSearched(UsageError):
    text = (
        "cuSPARSELt's algorithm for {tokens} tokens of {reduction} values is not known yet,"
        " and it can't be searched while a graph is captured"
    )
    help_text = "call the kernel with operands of these extents once before the capture"


_found: dict[str, int] = {}


def algorithm(machine: GpuMachine, weight: Any, dense: Any) -> int:
    """The number of the algorithm for a compressed weight and a dense operand [K, tokens]; from this
    process, from the disk, or searched, which takes some milliseconds and waits for the GPU. Raises NotSearched."""
    torch = machine.torch
    reduction, tokens = dense.shape
    facts = [
        machine.device.name, torch.__version__, torch.backends.cusparselt.version(), str(dense.dtype),
        list(weight.shape), reduction, tokens, bool(dense.is_contiguous()),
    ]  # fmt: skip
    key = json.dumps(facts)
    found = _found.get(key)
    if found is None:
        path = _path(key)
        found = _read(path)
        if found is None:
            if machine.capturing():
                raise NotSearched(reduction=reduction, tokens=tokens)
            # With transpose_result=True the search of torch 2.11 ends the device with an illegal instruction.
            found = int(torch._cslt_sparse_mm_search(weight, dense))
            _write(path, facts, found)
        _found[key] = found
    return found


def forget() -> None:
    """Drop what this process knows."""
    _found.clear()


def _path(key: str) -> Path | None:
    where = folder()
    name = hashlib.sha256(key.encode()).hexdigest()
    return None if where is None else where / "tuned" / f"cusparselt-{name}.json"


def _read(path: Path | None) -> int | None:
    if path is None:
        return None
    try:
        return int(json.loads(path.read_bytes())["algorithm"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path | None, facts: list[Any], found: int) -> None:
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"algorithm": found, "for": facts}, file)
        os.replace(temporary, path)
    except OSError:
        return
