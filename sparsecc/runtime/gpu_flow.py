"""GPUs: tile kernels become Triton or Gluon text, that becomes machine code when it is asked for or launched."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sparsecc.diagnostics import UsageError, did_you_mean
from sparsecc.kernel import Plan, TileSource
from sparsecc.request import Request
from sparsecc.runtime import tile_cache
from sparsecc.runtime.compiled_kernel import Kernel
from sparsecc.runtime.flow import Entry, Flow, Passes, Remake, Times, timed
from sparsecc.runtime.library_text import no_code
from sparsecc.runtime.schedules import clipped, read_schedule
from sparsecc.targets import known_target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp


SHOWN = 5
"""Legal schedules that a message names."""


class UnknownSchedule(UsageError):
    text = "kernel {kernel} has no schedule {schedule}"


class UnknownKernel(UsageError):
    text = "the program has no GPU kernel {kernel!r}"


def _passes(request: Request) -> Passes:
    from sparsecc.backends.triton.pipeline import FIXED, NUMBERS, OPTIONS, STAGES, WHOLE

    options: dict[str, dict[str, str]] = {
        name: {key: str(value) for key in keys if (value := getattr(request, key)) is not None}
        for name, keys in OPTIONS.items()
    }
    options.update({name: dict(fixed) for name, fixed in FIXED.items()})
    for _, schedule in request.schedules:
        family, numbers = read_schedule(schedule)
        if family in NUMBERS:
            options.setdefault(NUMBERS[family], {}).update(numbers)
        if family in WHOLE:
            options.setdefault(WHOLE[family], {})["schedule"] = schedule
    return {stage: [(n, options.get(n, {})) for n in names] for stage, names in STAGES.items()}


def _build(module: ModuleOp, request: Request, times: Times) -> tuple[Plan, bytes]:
    from sparsecc.backends.host import host_plan

    choose_schedules(module, request)
    return timed(times, "emit", host_plan, module, request.entry, _emitter(request)), b""


def _emitter(request: Request) -> Callable[[FuncOp], TileSource]:
    """What writes the kernels of a request; kernels of packed weights are told what is known of the packing."""
    emit_kernel: Any = import_module("sparsecc.backends.triton.emit").emit_kernel
    target = known_target(request.target)
    facts = {"steps": request.steps, "entries": request.entries}
    known = {key: value for key, value in facts.items() if value is not None}
    return lambda fn: emit_kernel(fn, target, known) if known else emit_kernel(fn, target)


def choose_schedules(module: ModuleOp, request: Request) -> None:
    """Give kernels the schedules that the request names. Raises UnknownKernel, UnknownSchedule."""
    from xdsl.dialects.builtin import StringAttr
    from xdsl.dialects.func import FuncOp

    from sparsecc.dialects.reading import elements

    kernels = {
        fn.sym_name.data: fn
        for fn in module.body.block.ops
        if isinstance(fn, FuncOp) and "tile.kernel" in fn.attributes
    }
    for name, wanted in request.schedules:
        if name not in kernels:
            raise UnknownKernel(kernel=name, help=did_you_mean(name, list(kernels)))
        attributes = kernels[name].attributes
        if wanted == str(attributes.get("tile.schedule")):
            continue  # a pass has made it so
        space = {str(s): s for s in elements(attributes.get("tile.space"))}
        if wanted not in space or attributes.get("tile.form") == StringAttr("blocks"):
            shown = list(space)[:SHOWN]
            more = f"; and {len(space) - SHOWN} more (explain())" if len(space) > SHOWN else ""
            legal = ("; ".join(shown) or "none") + more
            raise UnknownSchedule(kernel=name, schedule=clipped(wanted), help=f"legal: {legal}")
        attributes["tile.schedule"] = space[wanted]


def _text(module: ModuleOp, request: Request, stage: str) -> str:
    plan, _ = _build(module, request, {})
    return plan_text(plan, request.target, stage)


def plan_text(plan: Plan, target: str, stage: str) -> str:
    """The kernels of a plan as ``triton``, ``ptx`` or ``sass``, one after the other."""
    sources = [step.source for step in plan.tiles]
    if plan.libraries and not sources:
        return no_code(plan, "#" if stage == "triton" else "//")
    if stage == "triton":
        return "\n\n".join(source.text for source in sources)
    found = [tile_cache.compiled(source, target) for source in sources]
    if stage == "ptx":
        return "\n".join(one.ptx for one in found)
    from sparsecc.backends.triton.load import sass

    return "\n".join(sass(one.cubin) for one in found)


def _kernel(entry: Entry, request: Request, texts: Callable[[str], str], remake: Remake) -> Kernel:
    from sparsecc.runtime.tile_kernel import TileKernel

    return TileKernel.of(entry, request, texts, remake)


FLOW = Flow(
    stages=("tensor", "selected", "iteration", "tiles", "triton", "ptx", "sass"),
    passes=_passes,
    machine=tile_cache.compiler_version,
    build=_build,
    text=_text,
    kernel=_kernel,
)
