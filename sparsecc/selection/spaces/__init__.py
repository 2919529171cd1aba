"""The legal plans of a target: one space a backend."""

from __future__ import annotations

from sparsecc.selection.problem import Space
from sparsecc.selection.spaces.cpu import CpuRules
from sparsecc.selection.spaces.gpu import GpuRules
from sparsecc.selection.spaces.space import PlanSpace
from sparsecc.targets import Target

SPACES: dict[str, PlanSpace] = {"cpu": PlanSpace(CpuRules()), "triton": PlanSpace(GpuRules())}
"""By backend."""


def space_of(target: Target) -> Space:
    """The space of a target's plans."""
    return SPACES[target.backend]
