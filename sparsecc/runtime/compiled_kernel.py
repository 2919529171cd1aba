"""A compiled program that can be called with tensors, and asked what it is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from sparsecc.diagnostics import OperandError, UsageError, did_you_mean
from sparsecc.elements import NUMPY, name_of
from sparsecc.formats import (
    Format,
    LevelArrays,
    dense_format,
    known_name,
    parse_format,
    sum_format,
)
from sparsecc.kernel import (
    Convert,
    Launch,
    Library,
    Operand,
    Plan,
    Reinterpret,
    TileLaunch,
    launch_of,
)
from sparsecc.runtime.call_checks import checked_operands, missing_help, unwritable
from sparsecc.runtime.execute import Executor, Function
from sparsecc.runtime.library_text import library_lines
from sparsecc.runtime.torch_guards import refuse_grad
from sparsecc.selection.decision import Decision
from sparsecc.selection.saved_plans import SavedPlan
from sparsecc.storage.convert import convert
from sparsecc.storage.ingest import asarray
from sparsecc.storage.tensor import SparseTensor

if TYPE_CHECKING:
    from sparsecc.explanation.report import Report


class MissingOperand(OperandError):
    text = "operand {name!r} is not given"
    help_text = "the kernel takes {known}"


class UnknownOperandName(OperandError):
    text = "the kernel has no operand {name!r}"


class WrongRank(OperandError):
    text = "operand {name!r} has {found} dimensions, the kernel was compiled for {wanted}"


class WrongDtype(OperandError):
    text = "operand {name!r} is {found}, the kernel was compiled for {wanted}"
    help_text = "convert the operand, or compile for {found}"


class WrongExtent(OperandError):
    text = "operand {name!r} has {found} coordinates in dimension {dim}, the kernel was compiled for {wanted}"


class BadOutput(UsageError):
    text = "out= can't take the result: {problem}"
    help_text = "pass a C-contiguous {dtype} array of shape {shape}"


class OperandConverted(UserWarning):
    """An operand was not in the format that the kernel was compiled for, and was converted."""


def actual_format(tensor: SparseTensor) -> Format:
    """A tensor's format with the widths that its arrays really have (the larger, where they differ)."""
    if tensor.parts:
        return sum_format([actual_format(part) for part in tensor.parts])
    pos_width, crd_width = _widths(tensor)
    return tensor.format.with_widths(pos_width, crd_width)


def _widths(tensor: SparseTensor) -> tuple[int, ...]:
    """The bits of positions and of coordinates (of those of each part)."""
    if tensor.parts:
        return tuple(width for part in tensor.parts for width in _widths(part))
    pos = crd = 0
    for arrays in tensor.levels:
        if arrays.positions is not None:
            pos = max(pos, arrays.positions.itemsize * 8)
        if arrays.coordinates is not None:
            crd = max(crd, arrays.coordinates.itemsize * 8)
    return pos, crd


def in_format(tensor: SparseTensor, wanted: Format) -> SparseTensor:
    """The tensor in a format, widths included."""
    fitting = convert(tensor, wanted)
    assert actual_format(fitting) == wanted, (actual_format(fitting), wanted)
    return fitting


def _out_extents(step: Launch | None, operands: int) -> list[tuple[int, int] | None]:
    """For each dimension of a result, an operand and a dimension of it that have its extent."""
    if step is None:
        return []
    known = [next((d for d in dims if d[0] < operands), None) for _, dims in step.extents]
    return [known[group] for group in step.shape]


def _shares_memory(array: npt.NDArray[Any], tensors: Sequence[SparseTensor]) -> bool:
    """Whether an array may overlap any array of some tensors."""
    overlap = np.may_share_memory
    for tensor in tensors:
        if overlap(array, tensor.values) or _shares_memory(array, tensor.parts):
            return True
        for level in tensor.levels:
            positions, coordinates = level.positions, level.coordinates
            if positions is not None and overlap(array, positions):
                return True
            if coordinates is not None and overlap(array, coordinates):
                return True
    return False


class _Slot:
    """Where an operand goes, and what lets most operands through without a second look: comparing
    formats and widths in full takes longer than a small kernel."""

    def __init__(self, operand: Operand, wanted: Format) -> None:
        self.operand, self.wanted = operand, wanted
        self.dtype = NUMPY[operand.dtype]
        self.rank = len(operand.shape)
        self.any_extents = all(extent is None for extent in operand.shape)
        self.plain = wanted == dense_format(self.rank)
        self.no_arrays = (LevelArrays(),) * self.rank
        self.seen: Format | None = None
        """The format object of an operand that fitted, and its widths."""
        self.widths: tuple[int, ...] = (0, 0)

    def at_a_glance(self, given: Any) -> SparseTensor | None:
        """The operand as a tensor, if it is plainly what the kernel wants."""
        if not self.any_extents:
            return None
        if isinstance(given, SparseTensor):
            known = given.format is self.seen and given.values.dtype == self.dtype
            return given if known and _widths(given) == self.widths else None
        if type(given) is not np.ndarray:
            return None
        array: npt.NDArray[Any] = given
        if not self.plain or array.ndim != self.rank or array.dtype != self.dtype:
            return None
        if not array.flags.c_contiguous:
            return None
        return SparseTensor(array.shape, self.wanted, self.no_arrays, array.reshape(-1))

    def remember(self, tensor: SparseTensor) -> None:
        """Know the format of a tensor that has been found to fit."""
        self.seen, self.widths = tensor.format, _widths(tensor)


@dataclass
class Kernel:
    """Call it with operands by name; ``formats``, ``explain()``, ``ir()``, ``source``, ``asm()``, ``times`` tell
    what it is."""

    plan: Plan
    functions: Mapping[str, Function]
    texts: Callable[[str], str]
    """The text of a stage: compiled again on demand, since most kernels are never looked at."""
    times: dict[str, float] = field(default_factory=dict[str, float])
    """Milliseconds of each step of the compilation (``cache``: it came from there)."""
    code: Any = None
    """Keeps the machine code in memory."""
    notes: list[str] = field(default_factory=list[str])
    """What calls have done beside running: conversions of operands."""
    decision: Decision | None = None
    """The plans that a strategy ranked for it; None where nothing was to be chosen."""
    saved_plan: SavedPlan | None = None

    def __post_init__(self) -> None:
        results = self.plan.results
        self.last = next((s for s in reversed(self.plan.steps) if s.dest == results[-1]), None)
        last = launch_of(self.last)
        self.out_dtype = None if last is None else NUMPY[last.dtype]
        self.out_row_major = (
            last is not None and parse_format(last.format, len(last.shape)).is_row_major
        )
        self.out_extents = _out_extents(last, len(self.plan.operands))
        self.executor = Executor(self.plan, self.functions)
        self.wanted = [parse_format(o.format, len(o.shape)) for o in self.plan.operands]
        slots = [_Slot(o, w) for o, w in zip(self.plan.operands, self.wanted, strict=True)]
        self.slots = {slot.operand.name: slot for slot in slots}

    # -- calling -------------------------------------------------------------------------------

    def __call__(self, /, *, out: Any = None, **operands: Any) -> Any:
        """The result: an ndarray if it is dense, a NumPy scalar if it has rank 0, else a SparseTensor.

        ``out``: an array that takes a dense result (an operand of that name: see ``call``). Raises OperandError."""
        return self.call(operands, out)

    def call(self, operands: Mapping[str, Any], out: Any = None) -> Any:
        """``__call__`` with the operands in a mapping (for names that are Python's)."""
        checked_operands(operands)
        tensors = self.bind(operands)
        if out is not None:
            self.check_output(out, tensors)
        results = [self.finish(t, out) for t in self.executor(tensors, out)]
        return results[0] if len(results) == 1 else tuple(results)

    def bind(self, operands: Mapping[str, Any]) -> list[SparseTensor]:
        for name in operands:
            if name not in self.slots:
                raise UnknownOperandName(name=name, help=did_you_mean(name, list(self.slots)))
        tensors: list[SparseTensor] = []
        for name, slot in self.slots.items():
            if name not in operands:
                help = missing_help(name, ", ".join(self.slots))
                raise MissingOperand(name=name, known="", help=help)
            given = operands[name]
            tensors.append(slot.at_a_glance(given) or self.fit(given, slot))
        return tensors

    def fit(self, given: Any, slot: _Slot) -> SparseTensor:
        operand, wanted = slot.operand, slot.wanted
        refuse_grad(f"operand {operand.name!r}", given)
        tensor = given if isinstance(given, SparseTensor) else asarray(given)
        if tensor.rank != len(operand.shape):
            raise WrongRank(name=operand.name, found=tensor.rank, wanted=len(operand.shape))
        if tensor.dtype != NUMPY[operand.dtype]:
            if tensor.rank:
                found = name_of(tensor.dtype) or str(tensor.dtype)
                raise WrongDtype(name=operand.name, found=found, wanted=operand.dtype)
            tensor = asarray(
                np.asarray(tensor.values[0]).astype(NUMPY[operand.dtype], casting="same_kind")
            )
        for dim, (extent, known) in enumerate(zip(tensor.shape, operand.shape, strict=True)):
            if known is not None and known != extent:
                raise WrongExtent(name=operand.name, dim=dim, found=extent, wanted=known)
        actual = actual_format(tensor)
        if actual != wanted:
            note = f"operand {operand.name}: {known_name(actual)} converted to {known_name(wanted)}"
            if note not in self.notes:
                self.notes.append(note)
                warnings.warn(note, OperandConverted, stacklevel=5)
            tensor = in_format(tensor, wanted)
        slot.remember(tensor)
        return tensor

    def check_output(self, out: Any, tensors: list[SparseTensor]) -> None:
        last = launch_of(self.last)
        if last is None or last.assembly != "dense" or last.init is not None:
            raise BadOutput(
                problem="the result is not dense", dtype="", shape="", help="leave out= away"
            )
        if not self.out_row_major:
            raise BadOutput(
                problem="the result is not row-major", dtype="", shape="", help="leave out= away"
            )
        shape = tuple(
            None if at is None else tensors[at[0]].shape[at[1]] for at in self.out_extents
        )
        array: npt.NDArray[Any] | None = (
            cast("npt.NDArray[Any]", out) if isinstance(out, np.ndarray) else None
        )
        problem = ""
        if array is None or array.dtype.newbyteorder("=") != self.out_dtype:
            problem = f"it is no array of {last.dtype}"
        elif array.ndim != len(shape) or any(
            wanted not in (None, found) for wanted, found in zip(shape, array.shape, strict=True)
        ):
            problem = f"its shape is {array.shape}"
        elif (bad := unwritable(array)) or not array.flags.c_contiguous:
            problem = bad or "it is not contiguous"
        elif _shares_memory(array, tensors):
            problem = "it shares memory with an operand"
        if problem:
            raise BadOutput(problem=problem, dtype=last.dtype, shape=shape)

    def finish(self, tensor: SparseTensor, out: Any) -> Any:
        if not tensor.format.is_dense:
            # Widths are what the kernel was made with: the arrays have them, the format need not.
            return replace(tensor, format=tensor.format.with_widths(0, 0))
        if tensor.rank == 0:
            return tensor.values[0] if out is None else out
        if out is not None:
            return out
        return (
            tensor.values.reshape(tensor.shape) if tensor.format.is_row_major else tensor.to_numpy()
        )

    def prepare(self, operands: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """Operands in the formats of this kernel, to be given to calls that then convert nothing.

        ``operands`` holds those whose names are not Python's. Raises OperandError."""
        checked_operands(operands or {})
        tensors = self.bind({**(operands or {}), **named})
        return dict(zip(self.slots, tensors, strict=True))

    # -- asking --------------------------------------------------------------------------------

    def plan_json(self) -> str:
        """The plan that it was made with, as JSON: ``plan=`` of it makes the same kernel again."""
        assert self.saved_plan is not None, "a kernel that the driver has not made"
        return self.saved_plan.text()

    @cached_property
    def formats(self) -> dict[str, str]:
        """The format of each operand and result, by name."""
        found = {
            o.name: known_name(f) for o, f in zip(self.plan.operands, self.wanted, strict=True)
        }
        for name, number in zip(self.plan.names, self.plan.results, strict=True):
            step = next((s for s in self.plan.steps if s.dest == number), None)
            if step is not None:
                rank = len(step.shape) if isinstance(step, Launch | TileLaunch | Library) else None
                found[name] = known_name(parse_format(step.format, rank))
        return found

    def ir(self, stage: str = "tensor") -> str:
        """The program at a stage: ``tensor``, ``selected``, ``iteration``, ``loops``."""
        return self.texts(stage)

    @property
    def source(self) -> str:
        """The kernel as C, for reading."""
        return self.texts("c")

    def asm(self, what: str = "asm") -> str:
        """``llvm``: optimised LLVM IR; ``asm``: the machine's assembly."""
        return self.texts(what if what == "asm" else "optimized")

    def explain(self) -> str:
        """What was chosen and why, where something was; then what runs, in which order, in which formats."""
        found = self.report()
        if found is None:
            return self.steps()
        from sparsecc.explanation.text import page

        return f"{page(found)}\n\n{self.steps()}"

    def report(self) -> Report | None:
        """The choice as data (``to_json()``); None where nothing was to be chosen."""
        from sparsecc.explanation.report import explain

        return None if self.decision is None else explain(self.decision)

    def steps(self) -> str:
        """What runs, in which order, in which formats, and why."""
        lines = ["operands:"]
        for operand, wanted in zip(self.plan.operands, self.wanted, strict=True):
            lines.append(f"  {operand.name}: {operand.dtype}, {known_name(wanted)}")
        names = {n: o.name for n, o in enumerate(self.plan.operands)}
        names.update(zip(self.plan.results, self.plan.names, strict=True))
        lines.append("steps:")
        for step in self.plan.steps:
            name = names.setdefault(step.dest, f"t{step.dest}")
            if isinstance(step, Convert):
                target = known_name(parse_format(step.format))
                lines.append(
                    f"  {name} = {names[step.source]} converted to {target}: {step.reason}"
                )
            elif isinstance(step, Reinterpret):
                what = "seen by its levels" if step.shape is None else "seen as its blocks again"
                lines.append(f"  {name} = {names[step.source]} {what} (no copy)")
            elif isinstance(step, Library):
                lines += library_lines(step, name, names)
            else:
                lines += self._launch_lines(step, name)
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _launch_lines(self, step: Launch | TileLaunch, name: str) -> list[str]:
        step = step.launch if isinstance(step, TileLaunch) else step
        fmt = known_name(parse_format(step.format, len(step.shape)))
        lines = [f"  {name} = {step.source}  (kernel {step.kernel}, result {fmt})"]
        text = {
            "dense": "stored directly" if step.covers else "added into zeros",
            "pattern": f"shares the positions and coordinates of input {step.pattern}",
            "append": "entries are appended in order",
            "workspace": "rows are collected in a dense workspace of one row (values, marker, list), then appended",
            "coordinates": "entries come unsorted into a coordinate buffer, to be sorted and combined",
        }[step.assembly]
        if step.order:
            lines.append(f"    loops: {', '.join(step.order)}")
        if step.reason:
            lines.append(f"    format: {step.reason}")
        lines.append(f"    assembly: {text}")
        if step.count_roles:
            lines.append("    size: counted by a first run of the same loops")
        elif step.bound is not None:
            lines.append("    size: bounded by the stored entries of its inputs")
        return lines
