"""Kernel text to machine code, and machine code to something that can be launched."""

from __future__ import annotations

from sparsecc.backends.triton.interpret import interpret
from sparsecc.backends.triton.toolchain import sass
from sparsecc.diagnostics import TargetError
from sparsecc.kernel import Compiled, TileSource
from sparsecc.targets import code_target

__all__ = ["compile_source", "interpret", "missing_instructions", "sass"]


class NoGpuTarget(TargetError):
    text = "the target {name!r} is no GPU"
    help_text = "'sparsecc targets' lists them"


def compile_source(source: TileSource, target: str, *, apart: bool = True) -> Compiled:
    """Compile a kernel for a target; no GPU is needed.

    ``apart``: in a process of the compiler's own, so that its abort is an error (CompilerDied) and not the end of this
    one. Raises CompileFailed, CompilerDied, TritonMissing."""
    if code_target(target).backend != "triton":
        raise NoGpuTarget(name=target)
    if apart:
        from sparsecc.backends.triton.compile_process import compile_apart

        return compile_apart(source, target)
    from sparsecc.backends.triton.compile_text import compile_text

    return compile_text(source, target)


def missing_instructions(compiled: Compiled) -> list[str]:
    """The instructions that a kernel promises and its machine code lacks."""
    text = sass(compiled.cubin)
    return [name for name in compiled.source.instructions if name not in text]
