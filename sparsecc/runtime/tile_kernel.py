"""A program compiled for a GPU: called with tensors where they are, and asked what it is.

Where every operand is NumPy's or a SparseTensor the result comes back as the CPU would give it; one torch tensor among
them makes it a torch tensor. Contractions with open extents are compiled for the extents that they meet: per range of
tokens, and per weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sparsecc.diagnostics import UsageError, did_you_mean
from sparsecc.formats import parse_format
from sparsecc.formats.row_tables import LAYOUTS
from sparsecc.kernel import Compiled, Launch, Library, TileLaunch
from sparsecc.request import Request
from sparsecc.runtime import packs, row_sizes, tile_cache
from sparsecc.runtime import weights as weights_of
from sparsecc.runtime.call_checks import checked_operands, missing_help
from sparsecc.runtime.compiled_kernel import (
    Kernel,
    MissingOperand,
    UnknownOperandName,
)
from sparsecc.runtime.flow import Entry, Remake
from sparsecc.runtime.machines import (
    Machine,
    current_gpu,
    gpu,
    interpreter,
    interpreting,
    is_torch,
)
from sparsecc.runtime.schedules import read_schedule
from sparsecc.runtime.tile_execute import TileProgram
from sparsecc.runtime.tile_operands import Slot
from sparsecc.runtime.tile_out import check_out
from sparsecc.runtime.tile_recipe import Recipes
from sparsecc.runtime.tile_results import host_result, torch_result
from sparsecc.runtime.tile_sizes import bucket as bucket
from sparsecc.runtime.tile_sizes import sizes_of

TOKENS = 16
"""Tokens that are assumed where nobody says how many there will be."""


class NoMachineCode(UsageError):
    text = "the kernel has no {what!r}"
    help_text = "known: ptx, sass"


class SeveralKernels(UsageError):
    text = "one schedule is given, but the program's kernels are: {names}"
    help_text = "give a mapping from names of kernels to schedules"


@dataclass
class TileKernel(Kernel):
    """Call it with operands by name: torch tensors on the GPU, packed operands, SparseTensors, NumPy arrays.

    ``pack``, ``resources`` and ``autotune`` are a GPU's own; the rest is as for any kernel."""

    request: Request = Request("expression", "")
    remake: Remake | None = None
    interpret: bool = False
    tune: bool = False
    """Whether schedules are measured when operands of other extents come."""

    @staticmethod
    def of(
        entry: Entry, request: Request, texts: Callable[[str], str], remake: Remake
    ) -> TileKernel:
        return TileKernel(entry.plan, {}, texts, entry.times, request=request, remake=remake)

    def __post_init__(self) -> None:
        self.interpret = self.interpret or interpreting()
        plan = self.plan
        self.last = next((s for s in reversed(plan.steps) if s.dest == plan.results[-1]), None)
        self.wanted = [parse_format(o.format, len(o.shape)) for o in plan.operands]
        self.programs: dict[tuple[int, str], TileProgram] = {}
        self.tuned: dict[int, TileKernel] = {}
        """Variants by identity, and what stands for them since they were measured."""
        self.variants: dict[tuple[Any, ...], TileKernel] = {}
        self._machine: Machine | None = None
        self.gpu_slots = {s.name: s for s in self._slots()}
        self.recipes = Recipes([o.name for o in plan.operands])
        self.sized = next((t for t in plan.tiles if t.sizes is not None), None)
        self.tabled = row_sizes.tabled(plan)

    def _slots(self) -> list[Slot]:
        slots: list[Slot] = []
        for number, (operand, wanted) in enumerate(
            zip(self.plan.operands, self.wanted, strict=True)
        ):
            strides: list[set[int]] = []
            packing: str | None = None
            tables: list[str] = []
            launched = plain = False
            for step in (*self.plan.tiles, *self.plan.libraries):
                for k, source in enumerate(step.launch.inputs):
                    if source != number:
                        continue
                    launched = True
                    layout = next((layout for at, layout in step.packs if at == k), None)
                    if layout in LAYOUTS:
                        tables.append(layout)  # beside the arrays as they are stored
                    else:
                        packing, plain = layout or packing, plain or layout is None
                    strides.append(_free_strides(step, k, len(operand.shape)))
            converted = any(getattr(s, "source", None) == number for s in self.plan.steps)
            if packing is not None and (plain or converted):
                raise packs.ReadTwoWays(name=operand.name, layout=packing)
            free = frozenset(set[int].intersection(*strides)) if strides else frozenset[int]()
            converts = converted and not launched
            say, beside = (self._say, self._note), tuple(dict.fromkeys(tables))
            slots.append(Slot(operand, wanted, free, packing, converts, self.machine, *say, beside))
        return slots

    def _note(self, note: str) -> bool:
        """Keep a note; whether it is new."""
        new = note not in self.notes
        self.notes += [note] if new else []
        return new

    def _say(self, note: str) -> None:
        import warnings

        from sparsecc.runtime.compiled_kernel import OperandConverted

        if self._note(note):
            warnings.warn(note, OperandConverted, stacklevel=6)

    def machine(self) -> Machine:
        """Where it runs. Raises GpuAbsent and the like."""
        if self._machine is None:
            self._machine = interpreter() if self.interpret else gpu(current_gpu())
        return self._machine

    def with_options(self, *, interpret: bool = False, tune: bool = False) -> TileKernel:
        """The same program, run in the interpreter, or tuned as it meets operands."""
        return replace(self, interpret=interpret, tune=tune, notes=[])

    # -- calling -------------------------------------------------------------------------------

    def call(self, operands: Mapping[str, Any], out: Any = None) -> Any:
        """``__call__`` with the operands in a mapping."""
        checked_operands(operands)
        if (known := self.recipes.key(operands, out)) is not None:
            recipe = self.recipes.known.get(known[0])
            if recipe is not None and (made := recipe.run(known[1])) is not None:
                return made
        tensors, kernel = self.prepared(operands, out)
        if (
            self.tune
            and id(kernel) not in self.tuned
            and any(len(t.space) > 1 for t in kernel.plan.tiles)
        ):
            self.autotune(operands)
            tensors, kernel = self.prepared(operands, out)
        if out is not None:
            check_out(out, self.last, self.machine(), tensors)
        program = self.program(kernel)
        results = program(tensors, out)
        self.recipes.add(program, tensors, operands, out)
        if out is not None:
            return out
        give = torch_result if any(map(_of_torch, operands.values())) else host_result
        machine = self.machine()
        given = [give(result, machine) for result in results]
        return given[0] if len(given) == 1 else tuple(given)

    def prepared(
        self, operands: Mapping[str, Any], out: Any = None
    ) -> tuple[list[Any], TileKernel]:
        """The operands on the machine, and this program for their extents."""
        slots = self.gpu_slots
        if operands.keys() != slots.keys():
            self.check_names(operands)
        if not self.interpret:
            self.settle(operands)
        tensors = [slot.take(operands[name]) for name, slot in slots.items()]
        kernel = self.fitting(tensors, out)
        return tensors, self.tuned.get(id(kernel), kernel)

    def prepare(self, operands: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """Operands in the formats of this kernel: torch tensors of other layouts, which calls refuse, are converted."""
        from sparsecc.runtime.preparing import prepared_operand

        checked_operands(operands or {})
        given = {**(operands or {}), **named}
        self.check_names(given)
        if not self.interpret:
            self.settle(given)
        slots = self.gpu_slots
        return {name: prepared_operand(slots[name], given[name], self._say) for name in slots}

    def check_names(self, operands: Mapping[str, Any]) -> None:
        for name in operands:
            if name not in self.gpu_slots:
                known = did_you_mean(name, list(self.gpu_slots))
                raise UnknownOperandName(name=name, help=known)
        for name in self.gpu_slots:
            if name not in operands:
                help = missing_help(name, ", ".join(self.gpu_slots))
                raise MissingOperand(name=name, known="", help=help)

    def settle(self, operands: Mapping[str, Any]) -> None:
        """The first operand that is on a GPU says which one this call runs on."""
        for value in operands.values():
            if is_torch(value) and value.is_cuda:
                number = value.get_device()
                if self._machine is None or self._machine.number != number:
                    self._machine = gpu(number)
                return

    def program(self, kernel: TileKernel) -> TileProgram:
        """The code of this program or of a variant of it, loaded."""
        machine = self.machine()
        found = self.programs.get((id(kernel), machine.place))
        if found is None:
            found = TileProgram(kernel.plan, self.request.target, machine)
            self.programs[id(kernel), machine.place] = found
            self.notes += [note for note in found.notes if note not in self.notes]
        return found

    def only_kernel(self) -> str:
        """The name of its kernel. Raises SeveralKernels."""
        names = [step.launch.kernel for step in self.plan.tiles]
        if len(names) != 1:
            raise SeveralKernels(names=", ".join(names) or "none")
        return names[0]

    def scheduled(self, schedules: Mapping[str, str]) -> TileKernel:
        """This program with other schedules, by kernel. Raises UnknownSchedule, UnknownKernel."""
        assert self.remake is not None
        merged = {**dict(self.request.schedules), **schedules}
        made = self.remake(schedules=tuple(sorted(merged.items())))
        assert isinstance(made, TileKernel)
        return made

    def adopt(self, variant: TileKernel, schedules: Mapping[str, str]) -> None:
        """Use a variant of this program with these schedules from now on."""
        made = variant.scheduled(schedules)
        key = next((k for k, v in self.tuned.items() if v is variant), id(variant))
        self.tuned[key] = made
        self.tuned[id(made)] = made
        self.recipes.known.clear()

    def fitting(self, tensors: list[Any], out: Any = None) -> TileKernel:
        """This program compiled for operands, where its code depends on more of them than their types say."""
        tokens, options = self.request.tokens, None
        if self.sized is not None:
            options = sizes_of(tokens, self.plan, self.sized, tensors)
        elif self.tabled is not None:
            options = row_sizes.rows_of(tokens, *self.tabled, tensors, out)
        if options is None:
            return self
        key = tuple(options.values())
        found = self.variants.get(key)
        if found is None:
            found = self.variants[key] = self.variant(**options)
        return found

    def variant(
        self, tokens: int | None, rows: int | None = None, reduction: int | None = None, **more: Any
    ) -> TileKernel:
        """This program compiled for a size, a packing and an alignment of its operands."""
        assert self.remake is not None
        made = self.remake(tokens=tokens, rows=rows, reduction=reduction, **more)
        assert isinstance(made, TileKernel)
        return made

    def pack(
        self, weights: Mapping[str, Any] | None = None, /, *, tokens: int | None = None, **named: Any
    ) -> Any:  # fmt: skip
        """Weights in the layout that the kernel reads: one PackedOperand, or several by name.

        A weight is a dense NumPy array or torch tensor (packed where it is), or a SparseTensor, as the kernel's operand
        is. ``tokens``: how many the weight will mostly be multiplied with, for layouts that have a choice (2:4+CSR: how
        deep its chunks are). ``weights`` holds those whose names are this function's keywords."""
        checked_operands(weights or {})
        given = {**(weights or {}), **named}
        return weights_of.pack(self.gpu_slots, given, tokens, self._choice)

    def _choice(self, slot: Slot, weight: Any, tokens: int | None) -> dict[str, int]:
        """What a layout leaves open, as the first schedule for such a weight has it."""
        if slot.packing != "2:4+CSR" or self.remake is None:
            return {}
        rows, reduction = (int(n) for n in weight.shape[-2:])
        wanted = self.variant(bucket(tokens or self.request.tokens or TOKENS), rows, reduction)
        assert wanted.sized is not None
        return {"steps": int(read_schedule(wanted.sized.schedule)[1]["steps"])}

    def autotune(
        self, operands: Mapping[str, Any] | None = None, /, *, timer: Any = None, seconds: float = 30.0,
        workers: int | None = None, again: bool = False, **named: Any,
    ) -> Any:  # fmt: skip
        """Measure the schedules of its kernels on operands like these, and use the fastest for them from then on.

        Gives what was measured (``sparsecc.runtime.autotune.Tuned``)."""
        from sparsecc.runtime.autotune import autotune

        checked_operands(operands or {})
        given = {**(operands or {}), **named}
        return autotune(self, given, timer=timer, seconds=seconds, workers=workers, again=again)

    # -- asking --------------------------------------------------------------------------------

    @cached_property
    def compiled(self) -> tuple[Compiled, ...]:
        """The machine code of its kernels, compiled when first asked for; no GPU is needed."""
        target = self.request.target
        return tuple(tile_cache.compiled(step.source, target) for step in self.plan.tiles)

    @property
    def resources(self) -> dict[str, dict[str, int]]:
        """By kernel: registers and spilled bytes of a thread, bytes of shared memory, threads of a block."""
        return {
            step.launch.kernel: {
                "registers": code.registers, "spills": code.spills, "shared": code.shared, "threads": code.threads,
            }
            for step, code in zip(self.plan.tiles, self.compiled, strict=True)
        }  # fmt: skip

    @property
    def source(self) -> str:
        """The kernels as Triton or Gluon text."""
        return self.texts("triton")

    def asm(self, what: str = "sass") -> str:
        """``ptx`` or ``sass``, for any target and without a GPU."""
        if what not in ("ptx", "sass"):
            raise NoMachineCode(what=what)
        return self.texts(what)

    def _launch_lines(self, step: Launch | TileLaunch, name: str) -> list[str]:
        if isinstance(step, Launch):
            return super()._launch_lines(step, name)
        lines = super()._launch_lines(step.launch, name)
        lines.append(
            f"    code: {step.form} for {self.request.target}, {step.schedule or 'no schedule'}"
        )
        if len(step.space) > 1:
            lines.append(
                f"    schedules: {len(step.space)} are legal; kernel.autotune() measures them"
            )
        for k, layout in step.packs:
            operand = self.plan.operands[step.launch.inputs[k]].name
            lines += packs.explained(operand, layout)
        path = tile_cache.path_of(step.source, self.request.target)
        if path is not None:
            lines.append(f"    text: {path}")
        return lines


def _of_torch(value: Any) -> bool:
    """Whether an operand is torch's, by itself or as what is packed."""
    return is_torch(value) or (hasattr(value, "facts") and value.device != "host")


def _free_strides(step: TileLaunch | Library, k: int, rank: int) -> set[int]:
    """Dimensions of an input whose strides the kernel reads."""
    if isinstance(step, Library):
        return set(range(rank))
    roles = step.source.roles
    described = any(
        role == f"in{k}.values" and kind.startswith("tensordesc")
        for role, (_, kind) in zip(roles, step.source.arguments, strict=True)
    )
    if described:
        return set(range(rank - 1))
    return {d for d in range(rank) if f"in{k}.stride{d}" in roles}
