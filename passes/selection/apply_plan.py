"""Writing a plan into a function: formats into types, engines onto generics, conversions where a plan wants a tensor
otherwise than the program has it. What the plan leaves open is for the rules of ``inferred``."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, SSAValue

from sparsecc.diagnostics import ErrorCollector, FormatError, PassError, UsageError, did_you_mean
from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.dialects.sparse_tensor.ops import ConvertOp
from sparsecc.dialects.sparse_tensor.types import format_of, ranked_tensor
from sparsecc.formats import Format, dense_format, parse_format
from sparsecc.passes.selection.inferred import choose, is_open, retype_init
from sparsecc.passes.selection.read_problem import View
from sparsecc.selection.candidate import GENERATED, Candidate
from sparsecc.selection.engines import ENGINES
from sparsecc.selection.problem import Tensor
from sparsecc.selection.widths import width_of

ENGINE, REASON = "sparsecc.engine", "sparsecc.format_reason"


THE_PLAN = "the plan"
"""Who gives a plan that no strategy has."""


class PlanMisfit(PassError):
    """A strategy's plan that is none of the program."""

    text = "{who} gives {plan}, which does not fit the program: {problem}"


class PlanUnfit(UsageError):
    """The same of a plan that a user gives."""

    text = "the plan {plan} does not fit the program: {problem}"


def fitted(view: View, plan: Candidate, who: str) -> Candidate:
    """The plan with an engine for each expression. Raises PlanMisfit (or PlanUnfit) for all that does not fit the
    program."""
    errors = ErrorCollector()

    def misfit(problem: str, help: str = "") -> None:
        misfit_of = PlanUnfit if who == THE_PLAN else PlanMisfit
        errors.add(misfit_of(who=who, plan=str(plan), problem=problem, help=help))

    known = view.tensors
    for name, spelling in plan.formats:
        if name not in known:
            misfit(f"there is no tensor {name!r}", did_you_mean(name, list(known)))
            continue
        try:
            fmt = parse_format(spelling, len(known[name].shape))
        except FormatError as error:
            misfit(f"{name}={spelling}: {error.message}", error.help)
            continue
        made = not isinstance(view.values[name], BlockArgument)
        if made and not known[name].open and _format(view, name) != fmt.with_widths(0, 0):
            misfit(f"the program makes {name} as {known[name].format}", "leave it out")
    for name in open_operands(view):
        if name not in dict(plan.formats):
            misfit(f"it leaves {name!r} open", "a plan names the format of every open operand")
    engines = plan.engines
    if set(engines) <= {GENERATED}:
        engines = (GENERATED,) * len(view.expressions)
    if len(engines) != len(view.expressions):
        count = len(view.expressions)
        misfit(f"it has {len(engines)} engines for {count} expressions", "name one for each")
    for engine in dict.fromkeys(engines):
        if engine != GENERATED and engine not in ENGINES:
            known_engines = [GENERATED, *ENGINES]
            misfit(f"there is no engine {engine!r}", did_you_mean(engine, known_engines))
    errors.raise_if_any()
    return Candidate(plan.formats, engines, plan.schedules)


def open_operands(view: View) -> list[str]:
    """The open tensors that a plan has to name: those of rank 2 and more that expressions read and do not make."""
    made = {e.result.name for e in view.expressions}
    read = dict.fromkeys(a.name for e in view.expressions for a in e.inputs)
    known = [view.tensors[name] for name in read if name not in made]
    return [t.name for t in known if t.open and len(t.shape) > 1]


def temporaries(view: View) -> tuple[str, ...]:
    """The open results that the function does not return."""
    last = view.function.body.block.last_op
    returned = set(last.operands) if last is not None else set[SSAValue]()
    made = dict.fromkeys(e.result.name for e in view.expressions)
    return tuple(n for n in made if view.tensors[n].open and view.values[n] not in returned)


def apply_plan(view: View, plan: Candidate, who: str) -> None:
    """Write a plan into the function that was viewed. Raises PlanMisfit, PlanUnfit."""
    plan = fitted(view, plan, who)
    for name, spelling in plan.formats:
        value, known = view.values[name], view.tensors[name]
        fmt = parse_format(spelling, len(known.shape))
        if is_open(value.type):
            choose(value, fmt, _width(known))
            _settle_result(value, f"{who} chose it")
        elif _format(view, name) != fmt.with_widths(0, 0):
            _convert(view, value, fmt.with_default_widths(_width(known)), f"{who} asks for it")
    for generic, engine in zip(view.generics, plan.engines, strict=True):
        if engine != GENERATED:
            generic.attributes[ENGINE] = StringAttr(engine)


def _format(view: View, name: str) -> Format | None:
    """The format of a tensor's type, widths aside."""
    fmt = format_of(view.values[name].type)
    return None if fmt is None else fmt.with_widths(0, 0)


def _width(known: Tensor) -> int:
    return width_of(known.statistics.nnz if known.statistics is not None else 0, known.shape)


def _settle_result(value: SSAValue, reason: str) -> None:
    """A chosen result: what it starts from takes its type, and the reason is noted."""
    generic = value.owner
    if not isinstance(generic, linalg.GenericOp):
        return
    generic.attributes[REASON] = StringAttr(reason)
    init = generic.outputs[0]
    if init.type != value.type and isinstance(init.owner, tensor.EmptyOp | linalg.FillOp):
        retype_init(init, value.type)


def _convert(view: View, value: SSAValue, fmt: Format, reason: str) -> None:
    """The expressions read a converted copy of a tensor; what is returned stays as it is."""
    type_ = ranked_tensor(value.type)
    assert type_ is not None
    plain = fmt.with_widths(0, 0) == dense_format(fmt.rank)
    wanted = (
        TensorType(type_.element_type, type_.shape)
        if plain
        else TensorType(type_.element_type, type_.shape, EncodingAttr(fmt))
    )
    op = ConvertOp(value, wanted)
    op.attributes["sparsecc.reason"] = StringAttr(reason)
    op.dest.name_hint = value.name_hint
    entry = view.function.body.block
    first = entry.first_op
    assert first is not None
    entry.insert_op_before(op, first)
    for generic in view.generics:
        for number, operand in enumerate(generic.inputs):
            if operand is value:
                generic.operands[number] = op.dest
