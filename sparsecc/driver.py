"""The whole compiler on one screen: a request becomes a module, passes rewrite it, a backend makes code of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from sparsecc import plugins
from sparsecc.diagnostics import UsageError, did_you_mean
from sparsecc.request import OperandSpec, Request
from sparsecc.runtime import kernel_cache
from sparsecc.runtime.compiled_kernel import Kernel
from sparsecc.runtime.flow import Entry, Flow, timed
from sparsecc.targets import code_target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

__all__ = ["OperandSpec", "Request", "compile_request", "forget", "front", "stage_text", "to_stage"]


class UnknownStage(UsageError):
    text = "there is no stage {stage!r} for target {target}"


def flow_of(target: str) -> Flow:
    """The backend of a target. Raises UnknownTarget, NoCodeForTarget."""
    return plugins.load(plugins.backend(code_target(target).backend))


def compile_request(request: Request) -> Kernel:
    """The kernel of a request: from this process, from the disk, or compiled."""
    return _compile(replace(request, target=named_target(request.target)))


def named_target(name: str) -> str:
    """The name of a target; ``gpu`` is the one of the GPU that is present. Raises GpuAbsent."""
    if name == "gpu":
        from sparsecc.runtime.machines import present_target

        return present_target()
    return code_target(name).name


def forget() -> None:
    """Drop the kernels that this process keeps."""
    _compile.cache_clear()


@lru_cache(maxsize=256)
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
    return flow.kernel(entry, request, partial(stage_text, request), partial(_remake, request))


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

    for name, passes in flow_of(request.target).passes(request).items():
        module = run_passes(module, passes, times=times)
        if name == stage:
            break
    return module


def stage_text(request: Request, stage: str) -> str:
    """A request's program at a stage, as text. Raises UnknownStage."""
    flow = flow_of(request.target)
    if stage not in flow.stages:
        known = did_you_mean(stage, flow.stages)
        raise UnknownStage(stage=stage, target=request.target, help=known)
    module = front(request)
    if stage not in flow.passes(request):
        return flow.text(to_stage(module, None, request), request, stage)
    from sparsecc.dialects.text.printer import print_module

    comment = f"// {request.text.strip()}\n" if request.kind != "mlir" else ""
    return comment + print_module(to_stage(module, stage, request))
