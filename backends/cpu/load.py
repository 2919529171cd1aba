"""LLVM IR text to machine code, and machine code to callables, through llvmlite.

Explicit vectors come from the schedule, so LLVM's own loop vectoriser is off: it would cost as much time as
all the rest and give less.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import llvmlite.binding

llvm: Any = llvmlite.binding  # it has no types
_names = count()


@cache
def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, reloc="pic",
        codemodel="small", jit=True,
    )  # fmt: skip


@cache
def _jit() -> Any:
    return llvm.create_lljit_compiler(_machine())


@cache
def cpu_key() -> str:
    """What machine code depends on beside the program: CPU, its features, the code generator's version."""
    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} {llvmlite.__version__}"


def compile_object(text: str) -> tuple[bytes, str]:
    """Machine code (an object file) of LLVM IR text, and the text after optimisation."""
    machine = _machine()
    module: Any = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = False
    builder: Any = llvm.create_pass_builder(machine, options)
    # Only the passes that simplify functions. The rest of the module pipeline takes as long again
    # for nothing: there is nothing to inline but the entry, and a kernel whose buffers are noalias
    # arguments fares better than one that loads their addresses (SDDMM: by up to a third).
    passes = builder.getFunctionPassManager()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    return machine.emit_object(module), str(module)


def assembly(text: str) -> str:
    """The assembly of optimised LLVM IR text."""
    return _machine().emit_assembly(llvm.parse_assembly(text))


@dataclass(frozen=True)
class Loaded:
    """Callables by name; each takes the address of an array of argument words. ``tracker`` keeps the code."""

    functions: dict[str, Any]
    tracker: Any


_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def load_object(code: bytes, names: Sequence[str]) -> Loaded:
    """Link an object file into this process."""
    builder = llvm.JITLibraryBuilder().add_object_img(code)
    for name in names:
        builder.export_symbol(f"{name}_entry")
    tracker = builder.link(_jit(), f"sparsecc.{next(_names)}")
    functions = {name: _SIGNATURE(tracker[f"{name}_entry"]) for name in names}
    return Loaded(functions, tracker)
