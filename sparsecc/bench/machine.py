"""The machine that a run is of, and its copy bandwidth."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from sparsecc.bench.weights import torch_module
from sparsecc.diagnostics import TargetError

ROOT = Path(__file__).resolve().parents[2]
COPY_BYTES = 4 << 30
PACE_BYTES = 1 << 30


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


def facts(pace: Pace) -> dict[str, Any]:
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
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "copy_bandwidth": pace.bandwidth(),
    }


class Pace:
    """How fast the device moves bytes: in general, and at a moment.

    A device that has been idle, or that does other work too, is slow for a while: times beside a slow moment are
    taken again."""

    def __init__(self) -> None:
        torch = self.torch = torch_module()
        self.source = torch.ones(PACE_BYTES // 4, device="cuda")
        self.dest = torch.empty_like(self.source)
        self.best = 0.0

    def warm(self, seconds: float = 0.3) -> None:
        """Keep the device busy so long."""
        end = perf_counter() + seconds
        while perf_counter() < end:
            for _ in range(20):
                self.torch.add(self.source, 1.0, out=self.dest)
            self.torch.cuda.synchronize()

    def now(self) -> float:
        """Bytes a second, read and written, at this moment."""
        found = max(2 * PACE_BYTES / s for s in self._seconds(self.source, self.dest, 3)[1])
        self.best = max(self.best, found)
        return found

    def bandwidth(self) -> float:
        """Bytes a second of a large copy: the median of the faster of a copy and a kernel that does as much."""
        self.warm(1.0)
        source = self.torch.ones(COPY_BYTES // 4, device="cuda")
        ways = self._seconds(source, self.torch.empty_like(source), 15)
        self.now()
        return 2 * COPY_BYTES / min(map(median, ways))

    def _seconds(self, source: Any, dest: Any, count: int) -> tuple[list[float], list[float]]:
        cuda = self.torch.cuda
        found: tuple[list[float], list[float]] = ([], [])
        for _ in range(count):
            for times, run in zip(
                found,
                (lambda: dest.copy_(source), lambda: self.torch.add(source, 1.0, out=dest)),
                strict=True,
            ):
                first, last = (cuda.Event(enable_timing=True) for _ in range(2))
                first.record()
                run()
                last.record()
                last.synchronize()
                times.append(first.elapsed_time(last) / 1e3)
        return found


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


def commit() -> str:
    """The checkout's commit, with a ``+`` if files differ from it; empty outside of git."""
    found = _first(["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"])
    changed = _first(["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no"])
    return found + ("+" if found and changed else "")
