"""The legal schedules of a contraction with a packed weight, by target, weight, type and size; the first is chosen.

Families are ``ring`` (:mod:`space_ring`), ``staged`` (:mod:`space_staged`) and ``warpgroup`` (:mod:`space_warpgroup`),
which say what their parameters mean. Which leads depends on the number of tokens:

=============  ======================================================================
tokens         first
=============  ======================================================================
up to 16       ring
17 to 32       staged; ring where there are many rows
33 and more    warpgroup where the target has ``wgmma.sp``, else staged
=============  ======================================================================

A residual (``2:4+CSR``) runs in a ring for any number of tokens. What leads was measured on 132 multiprocessors, and is
the first guess of a search over the space.
"""

from __future__ import annotations

from sparsecc.passes.tiling import space_ring, space_staged, space_warpgroup
from sparsecc.passes.tiling.problem import Problem, Schedule, distinct, processors
from sparsecc.targets import Target, TargetAbility

LARGEST = 18
"""Members of a space: so many compile and run in the time that a search may take."""


class NoSchedule(Exception):
    """There is no legal schedule; the text says why."""


def space(target: Target, problem: Problem) -> tuple[Schedule, ...]:
    """All schedules of a problem, the chosen one first. Raises NoSchedule."""
    if not target.can(TargetAbility.SPARSE_MMA_2_4):
        raise NoSchedule(f"{target.name} has no sparse matrix instructions")
    if problem.residual and problem.dtype == "i8":
        raise NoSchedule("the entries of a residual are 16 bits wide, the weight's are 8")
    families = {
        "ring": space_ring.ring_schedules(target, problem),
        "staged": space_staged.staged_schedules(target, problem),
        "warpgroup": space_warpgroup.warpgroup_schedules(target, problem),
    }
    order = [name for name in preference(target, problem) if families[name]]
    if not order:
        raise NoSchedule(f"no schedule fits into the registers and shared memory of {target.name}")
    first, *others = order
    kept = families[first][: LARGEST - 6 * len(others)]
    for name in others:
        kept += families[name][:6]
    return tuple(distinct(kept))


def preference(target: Target, problem: Problem) -> tuple[str, ...]:
    """Families that are worth a try, best first."""
    if problem.residual:
        return ("ring",)
    if problem.m > 32:
        return ("warpgroup", "staged")
    if problem.m <= 16:
        return ("ring", "staged")
    each = None if problem.rows is None else problem.rows / processors(target)
    return ("staged", "ring") if each is None or each < 160 else ("ring", "staged")


def legal(target: Target, problem: Problem, schedule: Schedule) -> bool:
    """Whether a schedule is legal on a target."""
    checks = {
        "ring": space_ring.legal,
        "staged": space_staged.legal,
        "warpgroup": space_warpgroup.legal,
    }
    return checks[schedule.family](target, problem, schedule)
