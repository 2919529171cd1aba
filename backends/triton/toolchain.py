"""Triton as it is installed: its modules, and its tools that show machine code as text."""

from __future__ import annotations

import re
import subprocess
import tempfile
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sparsecc.diagnostics import InternalError, TargetError


class TritonMissing(TargetError):
    text = "code for GPUs is made by Triton, which is not installed"
    help_text = "pip install 'triton>=3.6' (Linux only), or compile for the target 'cpu'"


def triton_module(name: str) -> Any:
    """A module of Triton, which has no types. Raises TritonMissing."""
    try:
        return import_module(name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "triton":
            raise TritonMissing() from None
        raise


@cache
def tools() -> Path:
    """The folder of Triton's own nvdisasm, cuobjdump and ptxas. Raises TritonMissing; imports nothing."""
    found = find_spec("triton")
    if found is None or found.origin is None:
        raise TritonMissing()
    return Path(found.origin).parent / "backends" / "nvidia" / "bin"


def sass(cubin: bytes) -> str:
    """The disassembly of a cubin."""
    return _run("nvdisasm", ["-c"], cubin)


def usage(cubin: bytes) -> tuple[int, int]:
    """Registers of a thread, and its bytes of local memory (spills and stack)."""
    text = _run("cuobjdump", ["-res-usage"], cubin)
    found = {key: int(value) for key, value in re.findall(r"\b(REG|STACK|LOCAL):(\d+)", text)}
    if "REG" not in found:
        raise InternalError(f"cuobjdump says nothing of registers: {text[-400:]}")
    return found["REG"], found.get("STACK", 0) + found.get("LOCAL", 0)


def _run(tool: str, options: list[str], cubin: bytes) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run(
            [str(tools() / tool), *options, file.name], capture_output=True, text=True
        )
    if done.returncode:
        raise InternalError(f"{tool} failed: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout
