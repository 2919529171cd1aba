"""Asking a strategy: its plans are checked, and the first is the one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

from sparsecc.diagnostics import PassError
from sparsecc.passes.selection.apply_plan import fitted, open_operands, temporaries
from sparsecc.passes.selection.keep_meaning import SameMeaning, unsafe_operation
from sparsecc.passes.selection.read_problem import View
from sparsecc.passes.selection.result_formats import ResultFormats
from sparsecc.selection.asking import ask
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.decision import Decision
from sparsecc.selection.engines import present
from sparsecc.selection.problem import Problem, Strategy
from sparsecc.selection.registry import space_of
from sparsecc.targets import Target


class IllegalPlan(PassError):
    text = "strategy {name!r} gives {plan}, which is no legal plan of the problem"


@dataclass(frozen=True)
class Circumstances:
    """What a choice depends on beside the program. ``calls``: over how many conversions are spread (None: they are
    not counted). ``sizes``: extents by index. ``measure``: seconds of a call of a plan, where plans can be run.
    ``libraries``: engines that are there (None: those that are installed here)."""

    target: Target
    calls: float | None = None
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    measure: Callable[[Candidate], float] | None = None
    libraries: frozenset[str] | None = None


def choose_plan(view: View, strategy: Strategy, around: Circumstances) -> Decision:
    """The plans of a function as a strategy ranks them, the first checked.

    Raises StrategyFailed, BadStrategy, IllegalPlan, PlanMisfit, and what the strategy raises of ours."""
    there = present(around.target) if around.libraries is None else around.libraries
    space = space_of(around.target)
    if operation := unsafe_operation(view.generics):
        space = SameMeaning(space, operation)
    problem = view.problem(around.target, space, around.calls, around.sizes, there)
    problem = replace(
        problem, measure=around.measure, inferred=ResultFormats(view), temporaries=temporaries(view)
    )
    name = strategy.name
    start = perf_counter()
    ranked = ask(strategy, problem)
    milliseconds = (perf_counter() - start) * 1e3
    first = ranked[0]
    plan = fitted(view, first.candidate, f"strategy {name!r}")
    _check_legal(view, problem, plan, name)
    ranked = (replace(first, candidate=plan), *ranked[1:])
    return Decision.of(problem, ranked, name, milliseconds)


def _check_legal(view: View, problem: Problem, plan: Candidate, name: str) -> None:
    """Raise IllegalPlan for what the target's space has not among its plans."""
    named = dict(plan.formats)
    for name in problem.temporaries:  # one whose format is named, and would be that anyway
        others = {n: f for n, f in named.items() if n != name}
        if name in named and problem.formats_of(others).get(name) == named[name]:
            named = others
    operands = frozenset((*open_operands(view), *problem.temporaries))
    wanted = _essence(replace(plan, formats=tuple(sorted(named.items()))), operands)
    count = len(view.expressions)
    for known in problem.candidates:
        engines = known.engines * count if len(known.engines) == 1 else known.engines
        if _essence(replace(known, engines=engines), operands) == wanted:
            return
    refused = next((r for r in problem.refusals if r.what in (str(plan), *_spelled(plan))), None)
    if refused is not None:
        raise IllegalPlan(
            name=name, plan=plan, help=f"{refused.reason}; {refused.remedy}".rstrip("; ")
        )
    help = f"it has {len(problem.candidates)} legal plans: take one of problem.candidates"
    raise IllegalPlan(name=name, plan=plan, help=help)


def _essence(plan: Candidate, operands: frozenset[str]) -> tuple[object, ...]:
    """What is compared of plans: formats of open operands and of temporaries, and engines."""
    return tuple(pair for pair in plan.formats if pair[0] in operands), plan.engines


def _spelled(plan: Candidate) -> list[str]:
    return [f"{name}={fmt}" for name, fmt in plan.formats]
