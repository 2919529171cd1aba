"""Running a plan of GPU kernels: argument words by role, results, work memory, launches.

Memory of a launch: its inputs, its result, and what the kernel's text asks for as ``work``. Work memory comes from
torch's allocator; counters, which are zero before a launch and after it, are kept for each stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sparsecc.diagnostics import InternalError, UnsupportedError
from sparsecc.formats import parse_format
from sparsecc.kernel import Convert, Library, Plan, Reinterpret, TileLaunch
from sparsecc.runtime.compiled_kernel import BadOutput, in_format
from sparsecc.runtime.extents import result_shape
from sparsecc.runtime.gpu_libraries import LibraryLauncher
from sparsecc.runtime.machines import Machine, is_torch
from sparsecc.runtime.tile_operands import Bound, Item, address, bound, brought, dense_bound
from sparsecc.storage.tensor import SparseTensor

Tensor = Bound | SparseTensor
COUNTERS = "counters"


class ConversionOnGpu(UnsupportedError):
    text = "the program converts a tensor to {format} ({reason}), which is not done on a GPU"
    help_text = (
        "give it as a SparseTensor (sparsecc.asarray), which is converted before it is copied; or give the matrix "
        "under two names, each stored as it is read"
    )


class ResultNotOnGpu(UnsupportedError):
    text = "a result of format {format} is not put together on a GPU yet"
    help_text = "ask for a dense result (out='dense'), or compile for target='cpu'"


class TileProgram:
    """A plan on a machine; calling it maps operands to results."""

    def __init__(self, plan: Plan, target: str, machine: Machine) -> None:
        self.plan, self.machine = plan, machine
        self.steps = [self.runner(step, target) for step in plan.steps]
        launchers = [step.run for step in self.steps if isinstance(step, _TileLauncher)]
        self.notes: list[str] = [launcher.note for launcher in launchers if launcher.note]

    def runner(self, step: object, target: str) -> Any:
        match step:
            case TileLaunch():
                return _TileLauncher(step, target, self.machine)
            case Library():
                return LibraryLauncher(step, self.machine, step.dest in self.plan.results)
            case Convert():
                return _HostConverter(step)
            case Reinterpret():
                return _Reseen(step)
            case _:
                raise InternalError("a kernel for the CPU in a program for a GPU")

    def __call__(self, operands: Sequence[Tensor], out: Item | None = None) -> list[Tensor]:
        tensors: list[Tensor] = list(operands)
        last = self.plan.results[-1]
        for runner in self.steps:
            tensors.append(runner(tensors, out if runner.step.dest == last else None))
        return [tensors[n] for n in self.plan.results]


class _HostConverter:
    """A tensor of the host in another format, before it goes to the device; kept while the tensor lives."""

    def __init__(self, step: Convert) -> None:
        self.step = step
        self.format = parse_format(step.format)
        self.last: tuple[SparseTensor, SparseTensor] | None = None

    def __call__(self, tensors: Sequence[Tensor], _out: Item | None) -> Tensor:
        source = tensors[self.step.source]
        if isinstance(source, Bound) and source.host is not None:
            source = source.host()
        if not isinstance(source, SparseTensor):
            raise ConversionOnGpu(format=str(self.format), reason=self.step.reason)
        if self.last is None or self.last[0] is not source:
            self.last = (source, in_format(source, self.format))
        return self.last[1]


class _Reseen:
    """A tensor seen by its levels, or by its dimensions again: other extents over the same arrays."""

    def __init__(self, step: Reinterpret) -> None:
        self.step = step
        self.format = parse_format(step.format)

    def __call__(self, tensors: Sequence[Tensor], _out: Item | None) -> Tensor:
        source = tensors[self.step.source]
        if self.step.shape is not None:
            shape = tuple([tensors[n].shape[d] for n, d in self.step.shape])
        else:
            shape = source.format.level_sizes(source.shape)
        if isinstance(source, SparseTensor):
            return replace(source, shape=shape, format=self.format)
        return bound(shape, source.arrays, self.format, source.facts)


class _Call:
    """One launch."""

    __slots__ = ("inputs", "out", "work")

    def __init__(self, inputs: list[Bound], out: Bound) -> None:
        self.inputs, self.out = inputs, out
        self.work: dict[str, Item] = {}


class _TileLauncher:
    def __init__(self, step: TileLaunch, target: str, machine: Machine) -> None:
        self.step, self.launch, self.machine = step, step.launch, machine
        self.format = parse_format(self.launch.format, len(self.launch.shape))
        if self.launch.assembly not in ("dense", "pattern"):
            raise ResultNotOnGpu(format=str(self.format))
        self.run = machine.launcher(step.source, target)
        kinds = [kind for _, kind in step.source.arguments]
        self.readers = [_reader(r, k) for r, k in zip(step.source.roles, kinds, strict=True)]
        self.work = [role[5:] for role in step.source.roles if role.startswith("work.")]
        self.counters: dict[int, Item] = {}
        fill = self.launch.fill
        self.fill: Any = complex(*fill) if len(fill) == 2 and fill[1] else fill[0]
        self.uploaded: dict[int, tuple[SparseTensor, Bound]] = {}

    def __call__(self, tensors: Sequence[Tensor], out: Item | None) -> Bound:
        call = self.described(tensors, out, make=True)
        if self.work:
            self.take_work(call)
        self.run([read(call) for read in self.readers])
        return call.out

    def described(
        self, tensors: Sequence[Tensor], out: Item | None = None, *, make: bool = False
    ) -> _Call:
        """A launch: its inputs, and its result (``make``: with memory)."""
        launch = self.launch
        inputs = [self.there(n, tensors[n]) for n in launch.inputs]
        shape = result_shape(launch, tensors)
        if make:
            return _Call(inputs, self.result(shape, inputs, tensors, out))
        plain = bound(shape, {}, self.format)
        plain.words["values"] = 0
        return _Call(inputs, plain)

    def packed(self, number: int) -> bool:
        """Whether the kernel reads a tensor of the plan packed."""
        return any(self.launch.inputs[k] == number for k, _ in self.step.packs)

    def there(self, number: int, tensor: Tensor) -> Bound:
        """An input on the machine: one that was converted on the host is brought now, once."""
        if isinstance(tensor, Bound):
            return tensor
        known = self.uploaded.get(number)
        if known is None or known[0] is not tensor:
            known = self.uploaded[number] = (tensor, brought(tensor, self.machine))
        return known[1]

    # -- results -------------------------------------------------------------------------------

    def result(
        self,
        shape: tuple[int, ...],
        inputs: list[Bound],
        tensors: Sequence[Tensor],
        out: Item | None,
    ) -> Bound:
        launch = self.launch
        if launch.assembly == "pattern":
            assert launch.pattern is not None
            like = inputs[launch.pattern]
            values = like.arrays["values"]
            arrays = {**like.arrays, "values": self.start(tuple(values.shape))}
            return bound(shape, arrays, self.format)
        sizes = self.format.level_sizes(shape)
        if out is not None:
            if tuple(out.shape) != shape:
                problem = f"its shape is {tuple(out.shape)}"
                raise BadOutput(problem=problem, dtype=launch.dtype, shape=shape)
            if not launch.covers or launch.init is not None or self.fill:
                raise InternalError("out= for a result that is added to")
            return dense_bound(out, shape, _strides(out), self.format)
        if launch.init is not None:
            start = self.there(launch.init, tensors[launch.init])
            return bound(
                shape, {"values": self.machine.copied(start.arrays["values"])}, self.format
            )
        return bound(shape, {"values": self.start(sizes)}, self.format)

    def start(self, shape: tuple[int, ...]) -> Item:
        """Memory of a result: as it comes where the kernel writes all of it."""
        launch = self.launch
        if launch.covers and not self.fill:
            return self.machine.empty(shape, launch.dtype)
        return self.machine.full(shape, launch.dtype, self.fill)

    def take_work(self, call: _Call) -> None:
        """Work memory: the words that say its size are known."""
        words = [read(call) for read in self.readers]
        for name, size in self.run.work(words).items():
            call.work[name] = self.work_memory(name, size)

    def work_memory(self, name: str, size: int) -> Item:
        return self.zeros(size) if name == COUNTERS else self.machine.empty((size,), "u8")

    def zeros(self, size: int) -> Item:
        """Zeroed counters that launches on one stream share, since each leaves zeros behind. A launch that a graph
        captures has its own."""
        machine = self.machine
        if machine.capturing():
            return machine.zeros(size)
        stream = machine.stream()
        known = self.counters.get(stream)
        if known is None or known.shape[0] < size:
            known = self.counters[stream] = machine.zeros(size)
        return known


def _strides(array: Item) -> tuple[int, ...]:
    if is_torch(array):
        return tuple(array.stride())
    return tuple(step // array.itemsize for step in array.strides)


def _reader(role: str, kind: str) -> Callable[[_Call], Any]:
    """What gives the argument word of a role."""
    owner, _, what = role.partition(".")
    if owner == "work":
        return lambda call: address(call.work[what]) if what in call.work else 0
    if kind.startswith("tensordesc"):
        if owner == "out":
            return lambda call: (call.out.words["values"], call.out.shape, call.out.strides)
        k = int(owner[2:])
        return lambda call: (
            call.inputs[k].words["values"],
            call.inputs[k].shape,
            call.inputs[k].strides,
        )
    if owner == "out":
        return lambda call: call.out.words[what]
    k = int(owner[2:])
    return lambda call: call.inputs[k].words[what]
