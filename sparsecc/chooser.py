"""Requests with open formats: a strategy chooses a plan, and a closed request is left, which the caches know.

Two sets of data for which the same plan is chosen share a closed request, and so a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sparsecc.diagnostics import UsageError
from sparsecc.formats import known_name, parse_format
from sparsecc.kernel import Plan
from sparsecc.request import OperandSpec, Request
from sparsecc.selection.candidate import GENERATED, Candidate
from sparsecc.selection.decision import Decision
from sparsecc.selection.problem import Strategy
from sparsecc.selection.registry import DEFAULT, INFERRED, strategy
from sparsecc.selection.saved_plans import SavedPlan
from sparsecc.selection.widths import NARROW, width_of
from sparsecc.targets import code_target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from sparsecc.passes.selection.read_problem import View

Front = Callable[[Request], "ModuleOp"]
"""Text or calls to tensor-level IR."""
Measure = Callable[[Candidate], float]
"""Seconds of a call of a plan."""


class PlanLeavesOpen(UsageError):
    text = "the plan leaves operand {name!r} open"
    help_text = "a plan names the format of every open operand"


class NoSchedules(UsageError):
    text = "the plan has schedules for {kernels}, but kernels of target {target} have none"
    help_text = "leave them out"


def is_open(request: Request) -> bool:
    """Whether somebody has to choose a plan, as far as that can be said without reading a program."""
    if request.strategy is not None:
        return request.strategy != INFERRED
    if request.chosen or request.engines:
        return False
    if request.kind == "mlir":
        return "sparsecc.statistics" in request.text
    known = dict(request.statistics)
    return any(spec.format is None and name in known for name, spec in request.operands)


def without_facts(request: Request) -> Request:
    """The request without what is for choosing alone."""
    return replace(
        request, statistics=(), stored=(), shapes=(), sizes=(), strategy=None, calls=None
    )


def choose(
    request: Request, front: Front, ranker: Strategy | None = None, measure: Measure | None = None
) -> tuple[Request, Decision | None]:
    """The closed request of a plan that a strategy chooses, and the decision; None where nothing is open.

    ``ranker`` is the strategy where the request names none. Raises PassError and what strategies raise."""
    decision = decide(request, front, ranker, measure)
    if decision is None:
        return without_facts(request), None
    return close(request, SavedPlan(decision.candidate)), decision


def decide(
    request: Request,
    front: Front,
    ranker: Strategy | None = None,
    measure: Measure | None = None,
    libraries: frozenset[str] | None = None,
) -> Decision | None:
    """The decision alone: nothing is compiled. ``libraries``: engines to count on (None: those that are here)."""
    from sparsecc.passes.selection.choose_plan import Circumstances, choose_plan

    view = _view(request, front)
    named = ranker is not None or request.strategy is not None
    if not view.expressions or not (named or _known(view)):
        return None
    ranker = ranker or strategy(request.strategy or DEFAULT)
    target = code_target(request.target)
    around = Circumstances(target, request.calls, dict(request.sizes), measure, libraries)
    return choose_plan(view, ranker, around)


def _known(view: View) -> bool:
    """Whether there are statistics of an open operand."""
    return any(t.open and t.statistics is not None for t in view.tensors.values())


def _view(request: Request, front: Front) -> View:
    """The program with all that is known of its operands, as strategies see it."""
    from xdsl.dialects.func import FuncOp

    from sparsecc.dialects.reading import strings
    from sparsecc.dialects.sparse_tensor.argument_facts import Facts, write_facts
    from sparsecc.passes.selection.read_problem import read_function
    from sparsecc.pipeline import run_passes

    shapes = dict(request.shapes)
    given = tuple(
        (name, replace(spec, shape=shapes.get(name, spec.shape))) for name, spec in request.operands
    )
    module = front(replace(without_facts(request), operands=given))
    module = run_passes(module, [("generalize-named-ops", {})])
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    fn = next(op for op in functions if op.sym_name.data == request.entry)
    statistics, stored = dict(request.statistics), dict(request.stored)
    names = strings(fn.attributes.get("sparsecc.args"))
    facts = {n: Facts(statistics.get(name), stored.get(name)) for n, name in enumerate(names)}
    write_facts(fn, facts)
    return read_function(fn)


def close(request: Request, plan: SavedPlan) -> Request:
    """The request with a plan filled in: what its operands and its result can say, they say; what is of another
    tensor is left for ``select-formats``, which checks that it fits. Raises FormatError, NoSchedules,
    OtherTarget, OtherProgram, PlanLeavesOpen."""
    if request.kind != "mlir":  # whose text holds facts of operands, which a plan is not bound to
        plan = plan.for_program(request.text)
    candidate = plan.for_target(request.target).candidate
    formats = dict(candidate.formats)
    operands: list[tuple[str, OperandSpec]] = []
    for name, spec in request.operands:
        spelling = formats.get(name)
        if spelling is not None:
            rank = len(spec.shape)
            wanted = str(parse_format(spelling, rank).with_default_widths(_width(request, name)))
            if spec.format in (None, wanted):
                spec = replace(spec, format=wanted)
                del formats[name]
        if spec.format is None and len(spec.shape) > 1:
            raise PlanLeavesOpen(name=name)
        operands.append((name, spec))
    generated = set(candidate.engines) <= {GENERATED}
    if candidate.schedules and code_target(request.target).backend == "cpu":
        kernels = ", ".join(name for name, _ in candidate.schedules)
        raise NoSchedules(kernels=kernels, target=request.target)
    schedules = {**dict(request.schedules), **dict(candidate.schedules)}
    return without_facts(
        replace(
            request,
            operands=tuple(operands),
            out=request.out if request.out is not None else plan.out,
            chosen=tuple(sorted(formats.items())),
            engines=() if generated else candidate.engines,
            schedules=tuple(sorted(schedules.items())),
        )
    )


def _width(request: Request, name: str) -> int:
    known = dict(request.statistics).get(name)
    shape = known.shape if known is not None else dict(request.shapes).get(name, ())
    return width_of(known.nnz if known is not None else 0, shape)


def replayable(request: Request, plan: Plan) -> SavedPlan:
    """The plan of a kernel: naming all of its operands, so that it makes the same one again (the text of an .mlir
    program names those that are not open)."""
    operands = () if request.kind == "mlir" else plan.operands
    formats = {o.name: _spelled(o.format, len(o.shape)) for o in operands if o.shape}
    candidate = Candidate.of(
        formats | dict(request.chosen), *request.engines, schedules=dict(request.schedules)
    )
    return SavedPlan(candidate, request.out, request.target, request.text)


def _spelled(text: str, rank: int) -> str:
    """A format in short, with its widths where they are not the usual ones."""
    fmt = parse_format(text, rank)
    short = known_name(fmt)
    same = parse_format(short, rank).with_default_widths(NARROW) == fmt
    return short if same else str(fmt)
