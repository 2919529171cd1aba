"""The Python door: read, asarray, from_coords; compile, evaluate, einsum; Spec and SparseTensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from sparsecc import driver
from sparsecc.diagnostics import OperandError, UsageError
from sparsecc.elements import NAMES, name_of
from sparsecc.formats import Format, parse_format
from sparsecc.runtime.call_checks import (
    BadOption,
    checked_operands,
    checked_schedule,
    checked_text,
    checked_tokens,
    is_whole,
)
from sparsecc.runtime.compiled_kernel import Kernel, actual_format
from sparsecc.runtime.extents import ExtentsDiffer
from sparsecc.runtime.torch_guards import refuse_grad
from sparsecc.storage.entries import from_coords
from sparsecc.storage.ingest import asarray
from sparsecc.storage.tensor import SparseTensor
from sparsecc.targets import code_target

__all__ = [
    "Kernel", "SparseTensor", "Spec", "asarray", "compile", "compile_mlir", "einsum", "evaluate", "from_coords",
    "read",
]  # fmt: skip


class UnknownDtype(OperandError):
    text = "there is no element type {dtype!r}"
    help_text = f"known: {' '.join(NAMES)}"


class BadOut(UsageError):
    text = "out= takes a format or an array, not {kind}"


class NotForCpu(UsageError):
    text = "tokens, schedule, interpret and autotune are for GPU targets"
    help_text = "name a target: sm_90, or gpu for the GPU that is present"


_class_of: Callable[[Any], type] = type


@dataclass(frozen=True)
class Spec:
    """An operand to compile for: extents (None: any), element type (``f64`` … or a NumPy dtype), format
    (``*``: the compiler chooses; None: dense)."""

    shape: tuple[int | None, ...]
    dtype: Any = "f64"
    format: str | Format | None = None

    def operand(self) -> driver.OperandSpec:
        """What to compile for. Raises BadOption, UnknownDtype, FormatError."""
        shape: Any = self.shape
        if _class_of(shape) not in (tuple, list) or not all(
            n is None or is_whole(n) for n in shape
        ):
            wanted = "a tuple of whole numbers and None, as in (None, 64)"
            raise BadOption(name="shape", found=shape, wanted=wanted)
        if self.format is not None and not isinstance(cast(object, self.format), str | Format):
            raise BadOption(name="format", found=self.format, wanted="a name or a Format")
        name = _element_name(self.dtype)
        if self.format == "*":
            return driver.OperandSpec(_extents(self.shape), name, None)
        rank = len(self.shape)
        fmt = self.format or parse_format("dense", rank)
        fmt = parse_format(fmt, rank) if isinstance(fmt, str) else fmt
        return driver.OperandSpec(_extents(self.shape), name, str(fmt.with_default_widths(32)))


def _extents(shape: Sequence[Any]) -> tuple[int | None, ...]:
    """A shape with NumPy's integers as Python's; what is no integer stays, for the checker to name."""
    return tuple(int(n) if is_whole(n) else n for n in shape)


def read(
    path: str | Path, *, format: str | Format | None = None, key: str | None = None
) -> SparseTensor:
    """The tensor in a file, by its suffix: ``.mtx`` (``.gz``), ``.tns``, ``.npz``, ``.npy``.

    ``key`` names the array of an archive. Raises FileError, which names the line or key."""
    from sparsecc.storage import files

    return files.read(path, format=format, key=key)


def _element_name(dtype: Any) -> str:
    """Our name of an element type. Raises UnknownDtype."""
    # A NumPy dtype equals the strings that NumPy reads it from, and its 'i8' has eight bytes.
    if isinstance(dtype, str) and (dtype in NAMES or dtype == "bfloat16"):
        return "bf16" if dtype == "bfloat16" else dtype
    if str(dtype).startswith("torch."):
        return _element_name(str(dtype).removeprefix("torch."))
    try:
        found = name_of(np.dtype(dtype))
    except TypeError:
        found = None
    if found is None:
        raise UnknownDtype(dtype=str(dtype))
    return found


def _known_name(tensor: SparseTensor) -> str:
    """The element type of a tensor, which is one of ours."""
    return name_of(tensor.dtype) or str(tensor.dtype)


def _operand(name: str, given: Any, gpu: bool) -> tuple[driver.OperandSpec, Any]:
    """What an operand is compiled for, and the operand for a call (None: a Spec)."""
    if isinstance(given, Spec):
        return given.operand(), None
    if gpu and (spec := _gpu_operand(name, given)) is not None:
        return spec, given
    tensor = given if isinstance(given, SparseTensor) else asarray(given)
    spec = driver.OperandSpec(
        (None,) * tensor.rank, _known_name(tensor), str(actual_format(tensor))
    )
    return spec, tensor


def _gpu_operand(name: str, given: Any) -> driver.OperandSpec | None:
    """The same of a torch tensor or a packed operand, which stay where they are."""
    from sparsecc.runtime import machines, tile_operands

    if machines.is_torch(given):
        dtype = machines.OURS.get(str(given.dtype))
        if dtype is None:
            raise UnknownDtype(dtype=str(given.dtype))
        rank = given.dim()
        return driver.OperandSpec((None,) * rank, dtype, tile_operands.torch_format(given, name))
    if hasattr(given, "layout") and hasattr(given, "facts"):
        return Spec((None,) * len(given.shape), given.dtype, given.layout).operand()
    return None


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
    schedule: str | Mapping[str, str] | None = None, interpret: bool = False, autotune: bool = False, **named: Any,
) -> Kernel:  # fmt: skip
    """Compile an expression for operands given as tensors, arrays or Specs.

    ``operands`` holds those whose names are this function's keywords. ``out`` is the result's format
    (None: inferred). ``out_dtype`` (a name or a NumPy type) is what operands are converted to before anything
    is computed, and the type of the result: i8 by i8 to i32. ``target``: see
    ``sparsecc targets``; ``gpu`` is the GPU that is present.

    For GPUs: ``tokens``, how many tokens a contraction is made for (None: for what it meets, range by range);
    ``schedule``, of the kernel or of kernels by name, as ``explain()`` prints it; ``interpret``, run in Triton's
    interpreter on this processor; ``autotune``, measure the schedules when operands come.

    Raises ExpressionError, FormatError, OperandError, UnsupportedError, TargetError."""
    given = _named(operands, named)
    kernel, _ = _compile(
        "expression", expr, given, out, _interpreted(target, interpret), out_dtype,
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
        kernel = kernel.scheduled(schedule)
    if interpret or autotune:
        kernel = kernel.with_options(interpret=interpret, tune=autotune)
    return kernel


def _compile(
    kind: str,
    text: str,
    given: Mapping[str, Any],
    out: Any,
    target: str,
    out_dtype: Any = None,
    **options: Any,
) -> tuple[Kernel, dict[str, Any]]:
    checked_text(text)
    if target != "gpu":
        code_target(target)
    specs: list[tuple[str, driver.OperandSpec]] = []
    tensors: dict[str, Any] = {}
    for name, value in given.items():
        spec, tensor = _operand(name, value, target != "cpu")
        specs.append((name, spec))
        if tensor is not None:
            tensors[name] = tensor
    dtype = None if out_dtype is None else _element_name(out_dtype)
    request = driver.Request(kind, text, tuple(specs), _out_name(out), dtype, target, **options)
    return driver.compile_request(request), tensors


def evaluate(
    expr: str,
    /,
    *,
    out: Any = None,
    out_dtype: Any = None,
    target: str = "cpu",
    operands: Mapping[str, Any] | None = None,
    **named: Any,
) -> Any:
    """Compile (with the caches) and run. ``out``: a format, or an array that takes a dense result.

    Gives an ndarray if the result is dense, a NumPy scalar if it has rank 0, else a SparseTensor."""
    given = _named(operands, named)
    _refuse_grads(given)
    kernel, tensors = _compile(
        "expression", expr, given, out, _interpreted(target, False), out_dtype
    )
    try:
        return kernel.call(tensors, _memory(out))
    except ExtentsDiffer:
        # Said again with the places in the expression.
        known = kernel.plan.operands
        driver.check_extents(expr, [(o.name, tuple(tensors[o.name].shape), o.dtype) for o in known])
        raise


def einsum(
    subscripts: str, *operands: Any, out: Any = None, out_dtype: Any = None, target: str = "cpu"
) -> Any:
    """``numpy.einsum`` for sparse and dense operands: explicit, implicit and ellipsis forms."""
    given = {f"op{n}": operand for n, operand in enumerate(operands)}
    _refuse_grads(given)
    kernel, tensors = _compile(
        "einsum", subscripts, given, out, _interpreted(target, False), out_dtype
    )
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
) -> Kernel:  # fmt: skip
    """Compile function ``@entry`` of ``.mlir`` text, or of a file (a Path, or a string that ends in .mlir).

    The other options are those of ``compile``."""
    if not isinstance(program, Path):
        checked_text(program)
    name = "<program>"
    if isinstance(program, Path) or (program.endswith(".mlir") and "\n" not in program):
        from sparsecc.frontends.mlir_text import read_text

        name, program = str(program), read_text(program)
    target = _interpreted(target, interpret)
    request = driver.Request(
        "mlir", program, target=target, entry=entry, name=name, tokens=checked_tokens(tokens)
    )
    return _with_options(driver.compile_request(request), tokens, schedule, interpret, autotune)
