"""The machine that a run is of, and its copy bandwidth."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sparsecc.bench.timing import Timer
from sparsecc.bench.weights import torch_module
from sparsecc.diagnostics import TargetError

ROOT = Path(__file__).resolve().parents[2]
COPY_BYTES = 2 << 30


class NoGpu(TargetError):
    text = "there is no NVIDIA GPU that torch can use: {problem}"
    help_text = (
        "run this on a machine with one; 'sparsecc bench gpu --list' lists the cells anywhere"
    )


def find_gpu() -> str:
    """The target of the GPU here. Raises NoGpu."""
    try:
        torch = torch_module()
    except ImportError as error:
        raise NoGpu(problem=f"{error}") from None
    if not torch.cuda.is_available():
        raise NoGpu(problem="torch.cuda.is_available() is False")
    major, _ = torch.cuda.get_device_capability()
    return f"sm_{major}0"


def facts(timer: Timer) -> dict[str, Any]:
    """What the machine is, with the versions of what runs on it."""
    torch = torch_module()
    properties = torch.cuda.get_device_properties(0)
    return {
        "gpu": properties.name,
        "processors": properties.multi_processor_count,
        "memory": properties.total_memory,
        "l2": getattr(properties, "L2_cache_size", None),
        "driver": _first(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]),
        "cuda": torch.version.cuda,
        "versions": {name: _version(name) for name in ("torch", "triton", "sparsecc")},
        "cusparselt": torch.backends.cusparselt.version(),
        "commit": _commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "copy_bandwidth": copy_bandwidth(timer),
    }


def copy_bandwidth(timer: Timer) -> float:
    """Bytes a second, read and written, of a large copy on the device."""
    torch = torch_module()
    source = torch.zeros(COPY_BYTES // 4, device="cuda", dtype=torch.int32)
    dest = torch.empty_like(source)
    return 2 * COPY_BYTES / timer.us([lambda: dest.copy_(source)], 30.0) * 1e6


def _first(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _commit() -> str:
    """The checkout's commit, with a ``+`` if files differ from it; empty outside of git."""
    found = _first(["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"])
    changed = _first(["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no"])
    return found + ("+" if found and changed else "")
