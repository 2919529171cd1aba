"""The whole compiler on one screen: a request becomes a module, passes rewrite it, a backend makes code of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from sparsecc.diagnostics import UsageError, did_you_mean
from sparsecc.runtime import kernel_cache
from sparsecc.runtime.compiled_kernel import Kernel
from sparsecc.targets import code_target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

STAGES = ("tensor", "selected", "iteration", "loops", "llvm", "c", "optimized", "asm")


@dataclass(frozen=True)
class OperandSpec:
    """What a program is compiled for: extents (None: any), element type, format (None: to be chosen)."""

    shape: tuple[int | None, ...]
    dtype: str
    format: str | None


@dataclass(frozen=True)
class Request:
    """All that a compilation depends on, as plain data: it is the key of the cache.

    ``out_dtype``: what operands are converted to before they are multiplied.
    ``kind``: ``expression``, ``einsum`` or ``mlir``."""

    kind: str
    text: str
    operands: tuple[tuple[str, OperandSpec], ...] = ()
    out: str | None = None
    out_dtype: str | None = None
    target: str = "cpu"
    entry: str = "main"
    name: str = "<expression>"


class UnknownStage(UsageError):
    text = "there is no stage {stage!r}"


def compile_request(request: Request) -> Kernel:
    """The kernel of a request: from this process, from the disk, or compiled."""
    return _compile(request)


def forget() -> None:
    """Drop the kernels that this process keeps."""
    _compile.cache_clear()


@lru_cache(maxsize=256)
def _compile(request: Request) -> Kernel:
    code_target(request.target)
    from sparsecc.backends.cpu import load

    times: dict[str, float] = {}
    start = perf_counter()
    key = kernel_cache.key(asdict(request), load.cpu_key())
    stored = kernel_cache.read(key)
    if stored is not None:
        plan, code = stored
        loaded = load.load_object(code, plan.kernels())
        times["cache"] = (perf_counter() - start) * 1e3
    else:
        from sparsecc.backends.cpu.emit import emit_llvm
        from sparsecc.backends.cpu.operands import host_plan

        module = _timed(times, "frontend", front, request)
        module = to_stage(module, "loops", times)
        text = _timed(times, "emit", emit_llvm, module)
        plan = host_plan(module, request.entry)
        code, _ = _timed(times, "llvm", load.compile_object, text)
        loaded = _timed(times, "load", load.load_object, code, plan.kernels())
        kernel_cache.write(key, plan, code)
    return Kernel(plan, loaded.functions, partial(stage_text, request), times, loaded)


def front(request: Request) -> ModuleOp:
    """Text or calls to tensor-level IR."""
    if request.kind == "mlir":
        from sparsecc.frontends.mlir_text import check_entry, parse_module

        module = parse_module(request.text, request.name)
        check_entry(module, request.entry)
        return module
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
    return build_module(resolve(program, types, out, request.out_dtype))


def check_extents(text: str, operands: Sequence[tuple[str, tuple[int, ...], str]]) -> None:
    """Raise the errors of an expression that operands of these shapes make, with their places."""
    from sparsecc.frontends.check import OperandType
    from sparsecc.frontends.index_notation import parse
    from sparsecc.frontends.resolve import resolve

    resolve(parse(text), {name: OperandType(shape, dtype) for name, shape, dtype in operands}, None)


def to_stage(module: ModuleOp, stage: str, times: dict[str, float] | None = None) -> ModuleOp:
    """Run the target's passes up to and including a stage."""
    from sparsecc.backends.cpu.pipeline import STAGES as passes
    from sparsecc.pipeline import run_passes

    for name, names in passes.items():
        module = run_passes(module, [(n, {}) for n in names], times=times)
        if name == stage:
            break
    return module


def stage_text(request: Request, stage: str) -> str:
    """A request's program at a stage, as text. Raises UnknownStage."""
    if stage not in STAGES:
        raise UnknownStage(stage=stage, help=did_you_mean(stage, STAGES))
    module = front(request)
    comment = f"// {request.text.strip()}\n" if request.kind != "mlir" else ""
    if stage in ("tensor", "selected", "iteration", "loops"):
        from sparsecc.dialects.text.printer import print_module

        return comment + print_module(to_stage(module, stage))
    from sparsecc.backends.cpu import load
    from sparsecc.backends.cpu.emit import emit_llvm
    from sparsecc.backends.cpu.emit_c import emit_c

    module = to_stage(module, "loops")
    if stage == "c":
        return emit_c(module)
    text = emit_llvm(module)
    if stage == "llvm":
        return text
    optimized = load.compile_object(text)[1]
    if stage == "optimized":
        return comment.replace("//", ";") + optimized
    return comment.replace("//", "#") + load.assembly(optimized)


def _timed(times: dict[str, float], name: str, function: Any, *args: Any) -> Any:
    start = perf_counter()
    result = function(*args)
    times[name] = (perf_counter() - start) * 1e3
    return result
