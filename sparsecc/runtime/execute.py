"""Running a plan: pack argument words, size results, call the kernels.

Memory of a launch: its inputs, its result, and the workspaces that ``explain`` names: for ``workspace`` one
row of values, markers and coordinates; for ``coordinates`` the unsorted entries.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc.diagnostics import InternalError, LimitError
from sparsecc.elements import NUMPY
from sparsecc.formats import Ability, LevelArrays, parse_format
from sparsecc.kernel import Convert, Launch, Library, Plan, Reinterpret, Step, TileLaunch
from sparsecc.runtime.cpu_libraries import LibraryCaller
from sparsecc.runtime.extents import result_shape
from sparsecc.storage import limits
from sparsecc.storage.convert import convert
from sparsecc.storage.tensor import SparseTensor

Array = npt.NDArray[Any]
Function = Callable[[int], None]

WIDTHS: dict[int, type[np.integer[Any]]] = {8: np.uint8, 16: np.uint16, 32: np.int32, 64: np.int64}


class ResultTooLarge(LimitError):
    text = "the result has {what} up to {count}, more than {width} bits can hold"
    help_text = "ask for wider ones, as in out='CSR@i64/i64'"


# NumPy's stubs know that arrays are buffers from Python 3.12 on only.
_from_buffer: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer


def address(array: Array) -> int:
    """Where an array's elements are."""
    try:
        # A quarter of the time that NumPy's own ways take; not for empty or read-only arrays.
        return ctypes.addressof(_from_buffer(array))
    except (TypeError, ValueError, BufferError):
        return array.ctypes.data


class Executor:
    """A plan bound to its machine code; calling it maps operand tensors to result tensors."""

    def __init__(self, plan: Plan, functions: Mapping[str, Function]) -> None:
        self.plan = plan
        self.steps = [_runner(step, functions) for step in plan.steps]

    def __call__(
        self, operands: Sequence[SparseTensor], out: Array | None = None
    ) -> list[SparseTensor]:
        tensors: list[SparseTensor] = list(operands)
        last = self.plan.results[-1]
        for step in self.steps:
            target = out if step.step.dest == last else None
            tensors.append(step(tensors, target))
        return [tensors[n] for n in self.plan.results]


def _runner(
    step: Step, functions: Mapping[str, Function]
) -> _Launcher | _Reinterpreter | _Converter | LibraryCaller:
    match step:
        case Launch():
            return _Launcher(step, functions)
        case Reinterpret():
            return _Reinterpreter(step)
        case Convert():
            return _Converter(step)
        case Library():
            return LibraryCaller(step)
        case TileLaunch():
            raise InternalError("a kernel for a GPU in a program for the CPU")


class _Converter:
    def __init__(self, step: Convert) -> None:
        self.step = step
        self.format = parse_format(step.format)

    def __call__(self, tensors: Sequence[SparseTensor], out: Array | None) -> SparseTensor:
        tensor = convert(tensors[self.step.source], self.format)
        for part in tensor.parts or (tensor,):
            widths = {"positions": part.format.pos_width, "coordinates": part.format.crd_width}
            for level in part.levels:
                for role, array in level:
                    if array.dtype != WIDTHS[widths[role]]:
                        raise InternalError(
                            f"{role} of {array.dtype} where {widths[role]} bits were asked for"
                        )
        return tensor


class _Reinterpreter:
    def __init__(self, step: Reinterpret) -> None:
        self.step = step
        self.format = parse_format(step.format)

    def __call__(self, tensors: Sequence[SparseTensor], out: Array | None) -> SparseTensor:
        source = tensors[self.step.source]
        extents = self.step.shape
        shape = (
            source.level_sizes
            if extents is None
            else tuple(tensors[n].shape[d] for n, d in extents)
        )
        return replace(source, shape=shape, format=self.format)


class _Launcher:
    def __init__(self, step: Launch, functions: Mapping[str, Function]) -> None:
        self.step = step
        self.format = parse_format(step.format, len(step.shape))
        self.dtype = NUMPY[step.dtype]
        self.function = functions[step.kernel]
        self.counter = functions.get(f"{step.kernel}_count")
        self.readers = [_reader(role) for role in step.roles]
        self.count_readers = [_reader(role) for role in step.count_roles]
        self.words = ctypes.c_int64 * len(self.readers)
        self.count_words = ctypes.c_int64 * len(self.count_readers)
        parts = step.fill
        self.fill: Any = np.array(_from_parts(self.dtype, parts), self.dtype)
        self.no_arrays = (LevelArrays(),) * len(step.shape)

    def __call__(self, tensors: Sequence[SparseTensor], out: Array | None) -> SparseTensor:
        step = self.step
        inputs = [tensors[n] for n in step.inputs]
        shape = result_shape(step, tensors)
        call = _Call(inputs, shape)
        match step.assembly:
            case "dense":
                return self.dense(call, tensors, out)
            case "pattern":
                return self.pattern(call)
            case _:
                return self.assembled(call)

    def run(self, call: _Call, counting: bool = False) -> None:
        readers = self.count_readers if counting else self.readers
        words = (self.count_words if counting else self.words)(*[read(call) for read in readers])
        function = self.counter if counting else self.function
        assert function is not None
        function(ctypes.addressof(words))

    # -- results -------------------------------------------------------------------------------

    def dense(
        self, call: _Call, tensors: Sequence[SparseTensor], out: Array | None
    ) -> SparseTensor:
        size = limits.volume(self.format.level_sizes(call.shape))
        limits.refuse_beyond(
            size, self.dtype.itemsize, limits.MAX_DENSE_BYTES, "result", call.shape
        )
        if any(self.step.fill):
            call.values = np.empty(size, self.dtype) if out is None else out.reshape(-1)
            call.values.fill(self.fill)
        elif self.step.init is not None:
            call.values = np.array(tensors[self.step.init].values, dtype=self.dtype, copy=True)
        elif out is not None:
            call.values = out.reshape(-1)
            if not self.step.covers:
                call.values.fill(0)
        else:
            call.values = (
                np.empty(size, self.dtype) if self.step.covers else np.zeros(size, self.dtype)
            )
        self.run(call)
        return SparseTensor(call.shape, self.format, self.no_arrays, call.values)

    def pattern(self, call: _Call) -> SparseTensor:
        assert self.step.pattern is not None
        like = call.inputs[self.step.pattern]
        call.values = np.zeros(len(like.values), self.dtype)
        self.run(call)
        return SparseTensor(call.shape, like.format, like.levels, call.values)

    def assembled(self, call: _Call) -> SparseTensor:
        step, fmt = self.step, self.format
        sparse = [n for n, level in enumerate(fmt.levels) if not level.can(Ability.FULL)]
        call.counters = np.zeros(max(1, len(sparse)), np.int64)
        sizes = fmt.level_sizes(call.shape)
        if step.assembly == "workspace":
            extent = sizes[-1]
            limits.refuse_beyond(
                extent,
                16 + self.dtype.itemsize,
                limits.MAX_DENSE_BYTES,
                "workspace of a row",
                call.shape,
            )
            call.work = {
                "values": np.empty(extent, self.dtype),
                "marker": np.zeros(extent, np.int64),
                "list": np.empty(extent + 1, np.int64),
            }
        if step.bound is None:
            self.run(call, counting=True)
            counts = [int(c) for c in call.counters]
        else:
            bound = sum(len(call.inputs[k].values) for k in step.bound)
            counts = [bound] * len(call.counters)
        if step.assembly == "workspace":
            call.work["marker"].fill(0)
        if step.assembly == "coordinates":
            return self.unsorted(call, counts[0])
        return self.appended(call, counts, sparse, sizes)

    def unsorted(self, call: _Call, count: int) -> SparseTensor:
        rank = len(call.shape)
        coordinates = [np.empty(count, np.int64) for _ in range(rank)]
        call.coordinates = dict(enumerate(coordinates))
        call.values = np.empty(count, self.dtype)
        self.run(call)
        used = int(call.counters[0])
        self.check_count(used, count)
        ends = np.array([0, used], np.int64)
        levels = tuple(
            LevelArrays(ends if n == 0 else None, c[:used]) for n, c in enumerate(coordinates)
        )
        return SparseTensor(call.shape, self.format.with_widths(64, 64), levels, call.values[:used])

    def check_count(self, used: int, room: int) -> None:
        if used > room:
            raise InternalError(
                f"kernel {self.step.kernel} stored {used} entries in room for {room}"
            )

    def appended(
        self, call: _Call, counts: Sequence[int], sparse: Sequence[int], sizes: Sequence[int]
    ) -> SparseTensor:
        fmt = self.format
        pos_type, crd_type = WIDTHS[fmt.pos_width or 32], WIDTHS[fmt.crd_width or 32]
        if max(counts) > np.iinfo(pos_type).max:
            raise ResultTooLarge(what="positions", count=max(counts), width=fmt.pos_width or 32)
        largest = max(sizes[level] for level in sparse) - 1
        if largest > np.iinfo(crd_type).max:
            raise ResultTooLarge(what="coordinates", count=largest, width=fmt.crd_width or 32)
        parents = limits.volume(sizes[: sparse[0]])
        prefix = parents
        for n, level in enumerate(sparse):
            call.positions[level] = np.zeros(parents + 1, pos_type)
            call.coordinates[level] = np.empty(counts[n], crd_type)
            parents = counts[n]
        block = limits.volume(sizes[sparse[-1] + 1 :])
        limits.refuse_beyond(
            counts[-1] * block, self.dtype.itemsize, limits.MAX_DENSE_BYTES, "result", call.shape
        )
        make = np.empty if sparse[-1] == fmt.num_levels - 1 else np.zeros
        call.values = make(counts[-1] * block, self.dtype)
        self.run(call)
        used = [int(c) for c in call.counters[: len(sparse)]]
        levels = [LevelArrays()] * fmt.num_levels
        above = prefix
        for n, level in enumerate(sparse):
            self.check_count(used[n], counts[n])
            ends = call.positions[level][: above + 1]
            if n == 0 and sparse[0] > 0:
                # Rows that no loop visited end where the row before them ends.
                np.maximum.accumulate(ends, out=ends)
            levels[level] = LevelArrays(ends, _trimmed(call.coordinates[level], used[n]))
            above = used[n]
        return SparseTensor(call.shape, fmt, tuple(levels), _trimmed(call.values, used[-1] * block))


def _trimmed(array: Array, count: int) -> Array:
    """The first ``count`` elements; copied where the rest would waste more than they take."""
    return array[:count] if 2 * count >= len(array) else array[:count].copy()


def _from_parts(dtype: np.dtype[Any], parts: Sequence[float]) -> complex | float:
    """A number from its real (or integer) and imaginary part."""
    return complex(*parts) if dtype.kind == "c" else parts[0]


class _Call:
    """One launch: its inputs, and the buffers of its result and workspaces."""

    __slots__ = ("coordinates", "counters", "inputs", "positions", "shape", "values", "work")

    def __init__(self, inputs: Sequence[SparseTensor], shape: tuple[int, ...]) -> None:
        self.inputs, self.shape = inputs, shape
        self.values: Array
        self.counters: npt.NDArray[np.int64]
        self.positions: dict[int, Array] = {}
        self.coordinates: dict[int, Array] = {}
        self.work: dict[str, Array] = {}


def _reader(role: str) -> Callable[[_Call], int]:
    """What gives the argument word of a role."""
    owner, _, what = role.partition(".")
    if owner == "counters":
        return lambda call: address(call.counters)
    if owner == "work":
        return lambda call: address(call.work[what])
    digits = what.lstrip("abcdefghijklmnopqrstuvwxyz")
    number = int(digits or 0)
    what = what.removesuffix(digits)
    if owner == "out":
        of_result: dict[str, Callable[[_Call], int]] = {
            "values": lambda call: address(call.values),
            "positions": lambda call: address(call.positions[number]),
            "coordinates": lambda call: address(call.coordinates[number]),
            "dim": lambda call: call.shape[number],
        }
        return of_result[what]
    k = int(owner[2:])

    def positions(call: _Call) -> int:
        array = call.inputs[k].levels[number].positions
        assert array is not None
        return address(array)

    def coordinates(call: _Call) -> int:
        array = call.inputs[k].levels[number].coordinates
        assert array is not None
        return address(array)

    of_input: dict[str, Callable[[_Call], int]] = {
        "values": lambda call: address(call.inputs[k].values),
        "positions": positions,
        "coordinates": coordinates,
        "dim": lambda call: call.inputs[k].shape[number],
    }
    return of_input[what]
