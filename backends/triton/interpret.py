"""Kernels of plain ``tl`` in Triton's interpreter: on the CPU, on NumPy arrays or torch tensors, without a GPU.

The interpreter is switched on for the text alone, while it is loaded and while it runs.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np

from sparsecc.backends.triton.text_module import load_text, member
from sparsecc.backends.triton.toolchain import triton_module
from sparsecc.diagnostics import InternalError, UnsupportedError, UsageError
from sparsecc.kernel import TileSource


class NotInterpreted(UnsupportedError):
    text = "kernel {kernel} places values in registers itself, which the interpreter can't follow"
    help_text = "run it on a GPU, or compile for target='cpu'"


class BadArgument(UsageError):
    text = "argument {name} of kernel {kernel} is {found}, not {wanted}"


class InterpreterFailed(InternalError):
    text = "kernel {kernel} failed in Triton's interpreter: {problem}"


_NUMBERS = {
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "fp32": "float32",
    "fp64": "float64",
}

_lock = RLock()
"""The interpreter replaces parts of Triton's language while it runs."""


@dataclass(frozen=True)
class _Word:
    """An argument and its type as Triton spells it: an address, or a number."""

    kind: str
    value: float | int


def interpret(source: TileSource, arguments: Mapping[str, Any]) -> None:
    """Run a kernel over its whole grid; what it stores is in the arrays that it was given.

    ``arguments``: contiguous NumPy arrays, torch CPU tensors or addresses for pointers, numbers for the rest. Raises
    NotInterpreted, BadArgument, InterpreterFailed."""
    if source.gluon or any(kind.startswith("tensordesc") for _, kind in source.arguments):
        raise NotInterpreted(kernel=source.entry)
    given = {name: _argument(source, name, kind, arguments) for name, kind in source.arguments}
    numbers = {n: w.value for n, w in given.items() if w.kind.startswith("i")}
    with _lock, _interpreter() as executor:
        module = load_text(source)
        function = member(module, source.entry)
        grid = member(module, "grid")(**numbers)
        if 0 in grid:
            return
        try:
            executor(function.rewrite(), function.arg_names, tuple(grid))(**given)
        except Exception as error:
            cause = error.__cause__ or error
            raise InterpreterFailed(
                kernel=source.entry, problem=f"{type(cause).__name__}: {cause}"
            ) from error


def _argument(source: TileSource, name: str, kind: str, arguments: Mapping[str, Any]) -> _Word:
    if name not in arguments:
        raise BadArgument(name=name, kernel=source.entry, found="not given", wanted=kind)
    value = arguments[name]
    if not kind.startswith("*"):
        if kind.startswith("i") and hasattr(value, "__index__"):
            return _Word(kind, int(value))
        if not kind.startswith("i") and isinstance(value, float | int):
            return _Word(kind, float(value))
        raise BadArgument(name=name, kernel=source.entry, found=type(value).__name__, wanted=kind)
    if isinstance(value, int):
        return _Word(kind, value)
    if hasattr(value, "__array_interface__"):
        if not value.flags.c_contiguous:
            raise BadArgument(name=name, kernel=source.entry, found="not contiguous", wanted=kind)
        return _Word(kind, value.ctypes.data)
    if hasattr(value, "data_ptr") and value.device.type == "cpu":
        return _Word(kind, value.data_ptr())
    raise BadArgument(
        name=name, kernel=source.entry, found=type(value).__name__, wanted=f"memory for {kind}"
    )


@contextmanager
def _interpreter() -> Generator[Any]:
    """Triton with its interpreter on; gives the class that runs a grid."""
    tl, knobs = triton_module("triton.language"), triton_module("triton").knobs
    inner = triton_module("triton.runtime.interpreter")
    compiled = triton_module("triton.runtime.jit").JITFunction

    class Executor(inner.GridExecutor):
        """Takes memory where it is: the arguments are in this process already."""

        def _init_args_hst(self, args_dev: Any, kwargs: Any) -> Any:
            return args_dev, kwargs

        def _restore_args_dev(self, *_args: Any) -> None:
            pass

    def convert(argument: Any) -> Any:
        if not isinstance(argument, _Word):
            return plain(argument)
        kind = tl.str_to_ty(argument.kind, None)
        dtype = "uint64" if argument.kind.startswith("*") else _NUMBERS[argument.kind]
        return tl.tensor(inner.TensorHandle(np.array([argument.value], dtype), kind), kind)

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        # Functions of Triton's own library were made for the compiler when it was imported.
        return inner.InterpretedFunction(function.fn)(*args, **kwargs)

    scopes: dict[Any, Any] = {}

    def patch(function: Any) -> Any:
        # Triton leaves what it replaces for a called function in place, and replaces it anew at each call.
        if function not in scopes:
            scopes[function] = scope = patch_language(function)
            # NumPy 2.4 makes numbers of arrays of rank 0 only.
            scope.set_attr(tl.tensor, "__index__", _integer)
        return _Kept

    def create_dot(self: Any, a: Any, b: Any, d: Any, *precision: Any) -> Any:
        # The interpreter keeps bf16 as integers, and would multiply those.
        if a.dtype == tl.bfloat16:
            a, b = (
                inner.TensorHandle((v.data.astype(np.uint32) << 16).view(np.float32), tl.float32)
                for v in (a, b)
            )
        return plain_dot(self, a, b, d, *precision)

    def create_splat(self: Any, kind: Any, value: Any) -> Any:
        # The interpreter repeats what a comparison says as numbers, which newer ones do not take as a mask.
        found = plain_splat(self, kind, value)
        if value.data.dtype == np.bool_:
            found.data = found.data.astype(np.bool_)
        return found

    builder = inner.InterpreterBuilder
    plain_dot, plain_splat = builder.create_dot, builder.create_splat
    plain, was, patch_language = inner._implicit_cvt, compiled.__call__, inner._patch_lang
    with knobs.runtime.scope():
        knobs.runtime.interpret = True
        inner._implicit_cvt, compiled.__call__, inner._patch_lang = convert, call, patch
        builder.create_dot, builder.create_splat = create_dot, create_splat
        try:
            yield Executor
        finally:
            inner._implicit_cvt, compiled.__call__, inner._patch_lang = plain, was, patch_language
            builder.create_dot, builder.create_splat = plain_dot, plain_splat
            for scope in reversed(scopes.values()):
                scope.restore()
            inner.InterpretedFunction.rewritten_fn.clear()


def _integer(scalar: Any) -> int:
    return int(scalar.handle.data.item())


class _Kept:
    """Replaced parts of the language that stay so until the kernel ends."""

    @staticmethod
    def restore() -> None:
        pass
