"""The Python door: read, asarray, from_coords; compile, evaluate, einsum; Spec and SparseTensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparsecc import driver
from sparsecc.diagnostics import UsageError
from sparsecc.formats import Format
from sparsecc.plan_options import PlanOptions
from sparsecc.runtime.call_checks import (
    checked_operands,
    checked_schedule,
    checked_text,
    checked_tokens,
)
from sparsecc.runtime.compiled_kernel import Kernel
from sparsecc.runtime.extents import ExtentsDiffer
from sparsecc.runtime.torch_guards import refuse_grad
from sparsecc.selection.decision import Decision
from sparsecc.specs import Given, Spec, element_name, given_operand
from sparsecc.storage.entries import from_coords
from sparsecc.storage.ingest import asarray
from sparsecc.storage.tensor import SparseTensor
from sparsecc.targets import code_target

__all__ = [
    "Kernel", "SparseTensor", "Spec", "asarray", "compile", "compile_mlir", "einsum", "evaluate", "from_coords",
    "read",
]  # fmt: skip


class BadOut(UsageError):
    text = "out= takes a format or an array, not {kind}"


class NotForCpu(UsageError):
    text = "tokens, schedule, interpret and autotune are for GPU targets"
    help_text = "name a target: sm_90, or gpu for the GPU that is present"


def read(
    path: str | Path, *, format: str | Format | None = None, key: str | None = None
) -> SparseTensor:
    """The tensor in a file, by its suffix: ``.mtx`` (``.gz``), ``.tns``, ``.npz``, ``.npy``.

    ``key`` names the array of an archive. Raises FileError, which names the line or key."""
    from sparsecc.storage import files

    return files.read(path, format=format, key=key)


def _out_name(out: Any) -> str | None:
    if out is None or isinstance(out, str):
        return out
    if isinstance(out, Format):
        return str(out)
    if isinstance(out, np.ndarray) or hasattr(out, "data_ptr"):
        return "dense"
    raise BadOut(kind=type(out).__name__)


def compile(
    expr: str, /, *, out: str | Format | None = None, out_dtype: Any = None, target: str = "cpu",
    operands: Mapping[str, Any] | None = None, tokens: int | None = None,
    schedule: str | Mapping[str, str] | None = None, interpret: bool = False, autotune: bool = False,
    formats: Mapping[str, str | Format] | str | None = None, strategy: Any = None, calls: float | None = None,
    sizes: Mapping[str, int] | None = None, plan: Any = None, **named: Any,
) -> Kernel:  # fmt: skip
    """Compile an expression for operands given as tensors, arrays or Specs.

    ``operands`` holds those whose names are this function's keywords. ``out`` is the result's format
    (None: inferred). ``out_dtype`` (a name or a NumPy type) is what operands are converted to before anything
    is computed, and the type of the result: i8 by i8 to i32. ``target``: see
    ``sparsecc targets``; ``gpu`` is the GPU that is present.

    For GPUs: ``tokens``, how many tokens a contraction is made for (None: for what it meets, range by range);
    ``schedule``, of the kernel or of kernels by name, as ``explain()`` prints it; ``interpret``, run in Triton's
    interpreter on this processor; ``autotune``, measure the schedules when operands come.

    How operands are stored: ``formats`` by operand, ``*`` where it is to be chosen (a bare ``*``: of all that are given
    as sparse tensors). ``strategy`` chooses: a name (see ``sparsecc strategies``), ``package.module:Class`` or an
    object that can ``rank(problem)``; None: roofline where something is known of an open operand. ``calls``: over how
    many calls conversions are spread (None: they are not counted); ``sizes``: extents of indices that no operand says,
    ``{"m": 16}``. ``plan`` says all of that already: a Candidate, or what ``kernel.plan_json()`` gives (text, mapping
    or file). What was ranked is ``kernel.decision``.

    Raises ExpressionError, FormatError, OperandError, UnsupportedError, TargetError, PassError, UsageError."""
    given = _named(operands, named)
    options = PlanOptions.of(formats, strategy, calls, sizes, plan)
    kernel, _ = _compile(
        "expression", expr, given, out, _interpreted(target, interpret), options, out_dtype,
        tokens=checked_tokens(tokens),
    )  # fmt: skip
    return _with_options(kernel, tokens, schedule, interpret, autotune)


def _interpreted(target: str, interpret: bool) -> str:
    """``gpu`` needs none where kernels are interpreted."""
    if target != "gpu":
        return target
    from sparsecc.runtime.tile_kernel import interpreting

    return "sm_80" if interpret or interpreting() else target


def _with_options(
    kernel: Kernel,
    tokens: int | None,
    schedule: str | Mapping[str, str] | None,
    interpret: bool,
    autotune: bool,
) -> Kernel:
    from sparsecc.runtime.tile_kernel import TileKernel

    schedule = checked_schedule(schedule)
    if not isinstance(kernel, TileKernel):
        if tokens is not None or schedule is not None or interpret or autotune:
            raise NotForCpu()
        return kernel
    if isinstance(schedule, str):
        schedule = {kernel.only_kernel(): schedule}
    if schedule:
        decision = kernel.decision
        kernel = kernel.scheduled(schedule)
        if decision is not None:
            kernel = replace(kernel, decision=decision, notes=[])
    if interpret or autotune:
        kernel = kernel.with_options(interpret=interpret, tune=autotune)
    return kernel


def _compile(
    kind: str, text: str, given: Mapping[str, Any], out: Any, target: str, options: PlanOptions, out_dtype: Any = None,
    **more: Any,
) -> tuple[Kernel, dict[str, Any]]:  # fmt: skip
    request, known, tensors = _request(kind, text, given, out, target, options, out_dtype, **more)
    return options.compile(request, tensors if len(tensors) == len(known) else None), tensors


def _request(
    kind: str, text: str, given: Mapping[str, Any], out: Any, target: str, options: PlanOptions, out_dtype: Any = None,
    **more: Any,
) -> tuple[driver.Request, dict[str, Given], dict[str, Any]]:  # fmt: skip
    """What is asked for, the operands as they are given, and those that can be called with."""
    checked_text(text)
    if target != "gpu":
        code_target(target)
    known = {name: given_operand(name, value, target != "cpu") for name, value in given.items()}
    tensors = {name: one.tensor for name, one in known.items() if one.tensor is not None}
    dtype = None if out_dtype is None else element_name(out_dtype)
    request = driver.Request(kind, text, (), _out_name(out), dtype, target, **more)
    return options.request(request, known), known, tensors


def decide(
    expr: str, /, *, out: str | Format | None = None, out_dtype: Any = None, target: str = "cpu",
    operands: Mapping[str, Any] | None = None, formats: Mapping[str, str | Format] | str | None = None,
    strategy: Any = None, calls: float | None = None, sizes: Mapping[str, int] | None = None,
    libraries: frozenset[str] | None = None, **named: Any,
) -> Decision | None:  # fmt: skip
    """What ``compile`` would choose, without compiling; None where nothing is to be chosen.

    ``libraries``: the engines to count on, for a machine that is not this one (None: those that are here). The other
    options, and what is raised, are those of ``compile``."""
    options = PlanOptions.of(formats, strategy, calls, sizes)
    given = _named(operands, named)
    request, _, _ = _request("expression", expr, given, out, target, options, out_dtype)
    return driver.decide(request, options.ranker, libraries)


def evaluate(
    expr: str, /, *, out: Any = None, out_dtype: Any = None, target: str = "cpu",
    operands: Mapping[str, Any] | None = None, formats: Mapping[str, str | Format] | str | None = None,
    strategy: Any = None, calls: float | None = 1, sizes: Mapping[str, int] | None = None, plan: Any = None,
    **named: Any,
) -> Any:  # fmt: skip
    """Compile (with the caches) and run. ``out``: a format, or an array that takes a dense result.

    The options that choose formats are those of ``compile``; ``calls`` is 1: conversions are for this call.

    Gives an ndarray if the result is dense, a NumPy scalar if it has rank 0, else a SparseTensor."""
    given = _named(operands, named)
    _refuse_grads(given)
    options = PlanOptions.of(formats, strategy, calls, sizes, plan)
    kernel, tensors = _compile(
        "expression", expr, given, out, _interpreted(target, False), options, out_dtype
    )
    if kernel.decision is not None or plan is not None:
        tensors = kernel.prepare(tensors)
    try:
        return kernel.call(tensors, _memory(out))
    except ExtentsDiffer:
        # Said again with the places in the expression.
        known = kernel.plan.operands
        driver.check_extents(expr, [(o.name, tuple(tensors[o.name].shape), o.dtype) for o in known])
        raise


def einsum(
    subscripts: str, *operands: Any, out: Any = None, out_dtype: Any = None, target: str = "cpu",
    formats: Mapping[str, str | Format] | str | None = None, strategy: Any = None, calls: float | None = 1,
    sizes: Mapping[str, int] | None = None, plan: Any = None,
) -> Any:  # fmt: skip
    """``numpy.einsum`` for sparse and dense operands: explicit, implicit and ellipsis forms.

    Operands are named ``op0``, ``op1`` … in ``formats`` and plans; the options are those of ``evaluate``."""
    given = {f"op{n}": operand for n, operand in enumerate(operands)}
    _refuse_grads(given)
    options = PlanOptions.of(formats, strategy, calls, sizes, plan)
    kernel, tensors = _compile(
        "einsum", subscripts, given, out, _interpreted(target, False), options, out_dtype
    )
    if kernel.decision is not None or plan is not None:
        tensors = kernel.prepare(tensors)
    return kernel.call(tensors, _memory(out))


def _named(operands: Mapping[str, Any] | None, named: dict[str, Any]) -> dict[str, Any]:
    """Operands of a mapping and of keywords. Raises BadOption."""
    if operands is None:
        return named
    checked_operands(operands, named=True)
    return {**operands, **named}


def _refuse_grads(given: Mapping[str, Any]) -> None:
    """Raise NeedsGrad, before conversions lose what autograd knows."""
    for name, value in given.items():
        refuse_grad(f"operand {name!r}", value)


def _memory(out: Any) -> Any:
    """``out=`` where it is memory for the result, and not a format."""
    return None if isinstance(out, str | Format) else out


def compile_mlir(
    program: str | Path, *, entry: str = "main", target: str = "cpu", tokens: int | None = None,
    schedule: str | Mapping[str, str] | None = None, interpret: bool = False, autotune: bool = False,
    strategy: Any = None, calls: float | None = None, sizes: Mapping[str, int] | None = None, plan: Any = None,
) -> Kernel:  # fmt: skip
    """Compile function ``@entry`` of ``.mlir`` text, or of a file (a Path, or a string that ends in .mlir).

    Its types say which formats are open (``#sparse_tensor.encoding<*>``), ``sparsecc.statistics`` of its arguments what
    is known of them. The other options are those of ``compile``."""
    options = PlanOptions.of(None, strategy, calls, sizes, plan)
    target = _interpreted(target, interpret)
    request = _mlir_request(program, entry, target)
    request = replace(request, tokens=checked_tokens(tokens))
    kernel = options.compile(options.request(request, {}))
    return _with_options(kernel, tokens, schedule, interpret, autotune)


def decide_mlir(
    program: str | Path, *, entry: str = "main", target: str = "cpu", strategy: Any = None,
    calls: float | None = None, sizes: Mapping[str, int] | None = None, libraries: frozenset[str] | None = None,
) -> Decision | None:  # fmt: skip
    """``decide`` for function ``@entry`` of a program that ``compile_mlir`` takes."""
    options = PlanOptions.of(None, strategy, calls, sizes)
    request = options.request(_mlir_request(program, entry, target), {})
    return driver.decide(request, options.ranker, libraries)


def _mlir_request(program: str | Path, entry: str, target: str) -> driver.Request:
    """The request of a program's text or file. Raises BadOption, FileError."""
    if not isinstance(program, Path):
        checked_text(program)
    name = "<program>"
    if isinstance(program, Path) or (program.endswith(".mlir") and "\n" not in program):
        from sparsecc.frontends.mlir_text import read_text

        name, program = str(program), read_text(program)
    return driver.Request("mlir", program, target=target, entry=entry, name=name)
