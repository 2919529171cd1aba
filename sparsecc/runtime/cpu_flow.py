"""The CPU: loops become LLVM IR, that becomes an object file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sparsecc.kernel import Plan
from sparsecc.request import Request
from sparsecc.runtime.compiled_kernel import Kernel
from sparsecc.runtime.flow import Entry, Flow, Passes, Remake, Times, timed
from sparsecc.runtime.library_text import no_code

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def _passes(_request: Request) -> Passes:
    from sparsecc.backends.cpu.pipeline import STAGES

    return {stage: [(name, {}) for name in names] for stage, names in STAGES.items()}


def _machine() -> str:
    from sparsecc.backends.cpu import load

    return load.cpu_key()


def _build(module: ModuleOp, request: Request, times: Times) -> tuple[Plan, bytes]:
    from sparsecc.backends.cpu import load
    from sparsecc.backends.cpu.emit import emit_llvm
    from sparsecc.backends.host import host_plan

    plan = host_plan(module, request.entry)
    if not plan.kernels():
        return plan, b""  # libraries do all of it
    text = timed(times, "emit", emit_llvm, module)
    code, _ = timed(times, "llvm", load.compile_object, text)
    return plan, code


def _text(module: ModuleOp, request: Request, stage: str) -> str:
    from sparsecc.backends.cpu import load
    from sparsecc.backends.cpu.emit import emit_llvm
    from sparsecc.backends.cpu.emit_c import emit_c
    from sparsecc.backends.host import host_plan

    plan = host_plan(module, request.entry)
    if plan.libraries and not plan.kernels():
        return no_code(plan, {"c": "//", "asm": "#"}.get(stage, ";"))
    comment = f"{request.text.strip()}\n" if request.kind != "mlir" else ""
    if stage == "c":
        return emit_c(module)
    text = emit_llvm(module)
    if stage == "llvm":
        return text
    optimized = load.compile_object(text)[1]
    if stage == "optimized":
        return (comment and f"; {comment}") + optimized
    return (comment and f"# {comment}") + load.assembly(optimized)


def _kernel(entry: Entry, _request: Request, texts: Callable[[str], str], _: Remake) -> Kernel:
    if not entry.code:
        return Kernel(entry.plan, {}, texts, entry.times)
    from sparsecc.backends.cpu import load

    loaded = timed(entry.times, "load", load.load_object, entry.code, entry.plan.kernels())
    return Kernel(entry.plan, loaded.functions, texts, entry.times, loaded)


FLOW = Flow(
    stages=("tensor", "selected", "iteration", "loops", "llvm", "c", "optimized", "asm"),
    passes=_passes,
    machine=_machine,
    build=_build,
    text=_text,
    kernel=_kernel,
)
