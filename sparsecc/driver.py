"""The whole compiler on one screen: a request becomes a module, passes rewrite it, a backend makes code of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from sparsecc import chooser, plugins
from sparsecc.diagnostics import UsageError, did_you_mean
from sparsecc.request import OperandSpec, Request
from sparsecc.runtime import kernel_cache
from sparsecc.runtime.compiled_kernel import Kernel
from sparsecc.runtime.flow import Entry, Flow, Passes, timed
from sparsecc.selection.candidate import GENERATED, Candidate
from sparsecc.selection.decision import Decision
from sparsecc.selection.problem import Strategy
from sparsecc.selection.saved_plans import SavedPlan
from sparsecc.targets import code_target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

__all__ = ["OperandSpec", "Request", "compile_request", "forget", "front", "stage_text", "to_stage"]


class UnknownStage(UsageError):
    text = "there is no stage {stage!r} for target {target}"


def flow_of(target: str) -> Flow:
    """The backend of a target. Raises UnknownTarget, NoCodeForTarget."""
    return plugins.load(plugins.backend(code_target(target).backend))


def compile_request(
    request: Request, strategy: Strategy | None = None, measure: chooser.Measure | None = None
) -> Kernel:
    """The kernel of a request: from this process, from the disk, or compiled.

    Where formats are open a strategy chooses them first: ``strategy``, or the one that the request names; ``measure``
    gives it the seconds of a plan."""
    request = replace(request, target=named_target(request.target))
    if strategy is None and not chooser.is_open(request):
        return _compile(chooser.without_facts(request))
    if strategy is None and request in _CHOSEN:
        _CHOSEN.move_to_end(request)
        return _CHOSEN[request]
    closed, decision = chooser.choose(request, front, strategy, measure)
    kernel = _compile(closed)
    if decision is not None:
        kernel = replace(kernel, decision=decision, notes=[])
    if strategy is None:
        _CHOSEN[request] = kernel
        if len(_CHOSEN) > KEPT:
            _CHOSEN.popitem(last=False)
    return kernel


KEPT = 256
"""Kernels that this process keeps."""
_CHOSEN: OrderedDict[Request, Kernel] = OrderedDict()
"""Those of open requests, with their decisions."""


def decide(
    request: Request, strategy: Strategy | None = None, libraries: frozenset[str] | None = None
) -> Decision | None:
    """What would be chosen for a request; None where nothing is open. Nothing is compiled."""
    request = replace(request, target=named_target(request.target))
    if strategy is None and not chooser.is_open(request):
        return None
    return chooser.decide(request, front, strategy, libraries=libraries)


def compile_plan(request: Request, plan: SavedPlan) -> Kernel:
    """The kernel of a plan that somebody has chosen. Raises PlanUnfit, OtherTarget, NoSchedules."""
    request = replace(request, target=named_target(request.target))
    return _compile(chooser.close(request, plan))


def named_target(name: str) -> str:
    """The name of a target; ``gpu`` is the one of the GPU that is present. Raises GpuAbsent."""
    if name == "gpu":
        from sparsecc.runtime.machines import present_target

        return present_target()
    return code_target(name).name


def forget() -> None:
    """Drop the kernels that this process keeps."""
    _compile.cache_clear()
    _CHOSEN.clear()


@lru_cache(maxsize=KEPT)
def _compile(request: Request) -> Kernel:
    flow = flow_of(request.target)
    times: dict[str, float] = {}
    start = perf_counter()
    key = kernel_cache.key(asdict(request), flow.machine())
    stored = kernel_cache.read(key)
    if stored is not None:
        times["cache"] = (perf_counter() - start) * 1e3
        entry = Entry(*stored, times)
    else:
        module = timed(times, "frontend", front, request)
        module = to_stage(module, None, request, times)
        entry = Entry(*flow.build(module, request, times), times)
        kernel_cache.write(key, entry.plan, entry.code)
    kernel = flow.kernel(entry, request, partial(stage_text, request), partial(_remake, request))
    kernel.saved_plan = chooser.replayable(request, entry.plan)
    return kernel


def _remake(request: Request, **options: Any) -> Kernel:
    """The kernel of the same program for other options."""
    return compile_request(replace(request, **options))


def front(request: Request) -> ModuleOp:
    """Text or calls to tensor-level IR."""
    if request.kind == "mlir":
        from sparsecc.frontends.mlir_text import check_entry, parse_module

        module = parse_module(request.text, request.name)
        check_entry(module, request.entry)
        return with_engines(module, request)
    from sparsecc.formats import parse_format
    from sparsecc.frontends.check import OperandType
    from sparsecc.frontends.einsum import einsum_program
    from sparsecc.frontends.index_notation import parse
    from sparsecc.frontends.module_builder import build_module
    from sparsecc.frontends.resolve import resolve

    types = {
        name: OperandType(
            s.shape, s.dtype, None if s.format is None else parse_format(s.format, len(s.shape))
        )
        for name, s in request.operands
    }
    if request.kind == "einsum":
        program = einsum_program(request.text, [len(t.shape) for t in types.values()])
    else:
        program = parse(request.text)
    out = (
        None
        if request.out is None
        else parse_format(request.out, len(getattr(program.statements[-1].target, "indices", ())))
    )
    return with_engines(build_module(resolve(program, types, out, request.out_dtype)), request)


def with_engines(module: ModuleOp, request: Request) -> ModuleOp:
    """The module with its operations marked by who computes them. Raises WrongEngines."""
    if request.engines:
        from sparsecc.frontends.engines import mark_engines

        mark_engines(module, request.entry if request.kind == "mlir" else "main", request.engines)
    return module


def check_extents(text: str, operands: Sequence[tuple[str, tuple[int, ...], str]]) -> None:
    """Raise the errors of an expression that operands of these shapes make, with their places."""
    from sparsecc.frontends.check import OperandType
    from sparsecc.frontends.index_notation import parse
    from sparsecc.frontends.resolve import resolve

    resolve(parse(text), {name: OperandType(shape, dtype) for name, shape, dtype in operands}, None)


def to_stage(
    module: ModuleOp, stage: str | None, request: Request, times: dict[str, float] | None = None
) -> ModuleOp:
    """Run the target's passes up to and including a stage (None: all)."""
    from sparsecc.pipeline import run_passes

    for name, passes in _passes(request).items():
        module = run_passes(module, passes, times=times)
        if name == stage:
            break
    return module


def _passes(request: Request) -> Passes:
    """The passes of a target by stage; ``select-formats`` is told the plan, where one is chosen."""
    found = flow_of(request.target).passes(request)
    if not request.chosen:
        return found
    plan = SavedPlan(Candidate(request.chosen, (GENERATED,)))
    told: Mapping[str, str] = {"plan": plan.text(), "entry": request.entry}
    return {
        stage: [(n, {**options, **told} if n == "select-formats" else options) for n, options in passes]
        for stage, passes in found.items()
    }  # fmt: skip


def stage_text(request: Request, stage: str) -> str:
    """A request's program at a stage, as text. Raises UnknownStage."""
    flow = flow_of(request.target)
    if stage not in flow.stages:
        known = did_you_mean(stage, flow.stages)
        raise UnknownStage(stage=stage, target=request.target, help=known)
    module = front(request)
    if stage not in _passes(request):
        return flow.text(to_stage(module, None, request), request, stage)
    from sparsecc.dialects.text.printer import print_module

    comment = f"// {request.text.strip()}\n" if request.kind != "mlir" else ""
    return comment + print_module(to_stage(module, stage, request))
