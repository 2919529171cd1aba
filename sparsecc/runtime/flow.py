"""What the conductor knows of a backend: its stages, and how their last one becomes a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sparsecc.kernel import Plan
from sparsecc.request import Request

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from sparsecc.runtime.compiled_kernel import Kernel

Times = dict[str, float]
"""Milliseconds by step."""
Passes = Mapping[str, Sequence[tuple[str, Mapping[str, str]]]]
"""By stage: names of passes and their options."""
T = TypeVar("T")


class Remake(Protocol):
    """The kernel of the same program for other options (fields of Request)."""

    def __call__(self, **options: Any) -> Kernel: ...


@dataclass(frozen=True)
class Entry:
    """What a program became: its plan, its machine code (as far as the plan does not hold it), how long it took."""

    plan: Plan
    code: bytes
    times: Times


@dataclass(frozen=True)
class Flow:
    """One backend."""

    stages: tuple[str, ...]
    """All that can be shown, in order."""
    passes: Callable[[Request], Passes]
    """The passes that lead to each stage of IR; the last is what ``build`` takes."""
    machine: Callable[[], str]
    """What code depends on beside the program, for the cache's key."""
    build: Callable[[ModuleOp, Request, Times], tuple[Plan, bytes]]
    text: Callable[[ModuleOp, Request, str], str]
    """A stage after the IR, from the last IR."""
    kernel: Callable[[Entry, Request, Callable[[str], str], Remake], Kernel]


def timed(times: Times, name: str, function: Callable[..., T], *args: Any) -> T:
    """Call a function and note how long it takes."""
    start = perf_counter()
    result = function(*args)
    times[name] = times.get(name, 0.0) + (perf_counter() - start) * 1e3
    return result
