"""A call of a GPU kernel that has been made before: nothing but addresses is new, so nothing else is looked at again.

A recipe belongs to a signature: of dense tensors the shapes, strides, dtypes, devices and alignments, of sparse and
packed ones the very objects. It holds the argument words of the launch with gaps for addresses.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparsecc.kernel import TileLaunch
from sparsecc.runtime.gpu_libraries import LibraryLauncher
from sparsecc.runtime.library_recipe import LibraryRecipe
from sparsecc.runtime.machines import TORCH, GpuMachine, is_torch
from sparsecc.runtime.tile_execute import TileProgram
from sparsecc.runtime.torch_guards import forward_mode, version

Key = tuple[Any, ...]
_class_of: Callable[[Any], type] = type
MOST = 64
"""Recipes that a kernel keeps."""


@dataclass(frozen=True)
class Recipe:
    """One launch, but for the addresses of dense operands, of the result and of work memory."""

    launch: Any
    words: tuple[Any, ...]
    gaps: tuple[tuple[int, int], ...]
    """Places among the words, and the operands whose addresses go there."""
    maps: tuple[tuple[int, int, tuple[int, ...], tuple[int, ...]], ...]
    """The same for tensor maps, with extents and strides."""
    result: tuple[int, ...]
    """Places of the result's address."""
    result_map: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]
    work: tuple[tuple[int, str, int], ...]
    """Places of work memory, which it is, and its bytes."""
    alive: tuple[tuple[int, Any, int | None], ...]
    """Operands that must be the same objects, as weak references; of weights that were packed from a dense tensor also
    its version."""
    empty: Any
    """Makes the memory of the result; None: the last of what is given is it."""
    step: Any

    def run(self, given: Sequence[Any]) -> Any:
        """The result; None if an operand is not the one that it was, or may share memory with the result."""
        for place, reference, known in self.alive:
            value = given[place]
            if reference() is not value or (known is not None and version(value) != known):
                return None
        words = list(self.words)
        for place, number in self.gaps:
            words[place] = given[number].data_ptr()
        for place, number, shape, strides in self.maps:
            words[place] = (given[number].data_ptr(), shape, strides)
        if self.empty is not None:
            out = self.empty()
        else:
            *operands, out = given
            memory = out.untyped_storage().data_ptr()
            for _, number in self.gaps:
                if operands[number].untyped_storage().data_ptr() == memory:
                    return None
        for place in self.result:
            words[place] = out.data_ptr()
        for place, shape, strides in self.result_map:
            words[place] = (out.data_ptr(), shape, strides)
        held: list[Any] = []  # until the launch is queued
        for place, name, size in self.work:
            held.append(self.step.work_memory(name, size))
            words[place] = held[-1].data_ptr()
        self.launch(words)
        return out


class Recipes:
    """The recipes of one kernel."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.known: dict[Key, Recipe | LibraryRecipe] = {}
        self.tensors: set[type] = set()
        self.packed: set[type] = set()
        self.strided: Any = None
        self.grad_enabled: Callable[[], bool] = bool

    def key(self, operands: Mapping[str, Any], out: Any) -> tuple[Key, list[Any]] | None:
        """The signature of a call, and the operands in order, ``out`` last; None if it has none."""
        try:
            return self.signature(operands, out)
        except RuntimeError:
            return None  # a tensor without memory, or without a version: looked at in full

    def signature(self, operands: Mapping[str, Any], out: Any) -> tuple[Key, list[Any]] | None:
        """The same. Raises RuntimeError where a tensor has no memory of its own."""
        if len(operands) != len(self.names) or forward_mode():
            return None
        given: list[Any] = [operands.get(name) for name in self.names]
        if out is not None:
            given.append(out)
        parts: list[Any] = [out is None]
        for value in given:
            kind = _class_of(value)
            if kind in self.tensors:
                if value.requires_grad and self.grad_enabled():
                    return None
                if value.layout is self.strided:
                    if (
                        value.is_neg()
                    ):  # no kernel takes complex numbers, which alone are conjugated
                        return None
                    start: int = value.data_ptr()
                    parts.append(
                        (
                            value.shape,
                            value.stride(),
                            value.dtype,
                            value.get_device(),
                            start & 15 if start else -1,
                        )
                    )
                else:
                    parts.append((id(value), value._version))
            elif kind in self.packed:
                parts.append(id(value))
            else:
                return None
        return tuple(parts), given

    def learn(self, operands: Mapping[str, Any]) -> None:
        """Know the classes of the operands of a call."""
        for value in operands.values():
            kind = _class_of(value)
            if is_torch(value):
                from sparsecc.runtime.machines import torch_module

                torch = torch_module()
                self.tensors.add(kind)
                self.strided, self.grad_enabled = torch.strided, torch.is_grad_enabled
            elif hasattr(value, "facts"):
                self.packed.add(kind)

    def add(
        self, program: TileProgram, tensors: Sequence[Any], operands: Mapping[str, Any], out: Any
    ) -> None:
        """Keep the recipe of a call that has just been made, if it is plain enough for one."""
        self.learn(operands)
        found = self.key(operands, out)
        machine = program.machine
        if found is None or not isinstance(machine, GpuMachine) or len(program.steps) != 1:
            return
        made = self.make(program, machine, tensors, found[1][: len(self.names)], out is None)
        if made is not None:
            if len(self.known) >= MOST:
                self.known.clear()
            self.known[found[0]] = made

    def make(
        self, program: TileProgram, machine: GpuMachine, tensors: Sequence[Any], given: list[Any],
        allocates: bool,
    ) -> Recipe | LibraryRecipe | None:  # fmt: skip
        step: Any = program.steps[0]
        launched: object = step.step
        if isinstance(step, LibraryLauncher):
            return step.recipe(tensors, given, allocates)
        if not isinstance(launched, TileLaunch):
            return None
        launch = launched.launch
        plain = launch.assembly == "dense" and launch.covers and launch.init is None
        if not plain or any(launch.fill) or not step.format.is_row_major:
            return None
        packed = {
            number: version(value)
            for number, value in enumerate(given)
            if step.packed(number) and _strided(value, self.strided)
        }
        if None in packed.values():
            return None  # who knows whether it is packed as it is now
        call: Any = step.described(tensors)
        shape: tuple[int, ...] = call.out.shape
        words: list[Any] = [read(call) for read in step.readers]
        gaps: list[tuple[int, int]] = []
        maps: list[tuple[int, int, tuple[int, ...], tuple[int, ...]]] = []
        result: list[int] = []
        result_map: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
        work: list[tuple[int, str, int]] = []
        sizes: dict[str, int] = step.run.work(words) if step.work else {}
        for place, role in enumerate(launched.source.roles):
            owner, _, what = role.partition(".")
            word: Any = words[place]
            if owner == "work":
                work.append((place, what, sizes[what]))
            elif what == "values" and owner == "out":
                if word.__class__ is tuple:
                    result_map.append((place, word[1], word[2]))
                else:
                    result.append(place)
            elif what == "values":
                number = launch.inputs[int(owner[2:])]
                if number in packed or not _strided(given[number], self.strided):
                    continue
                if word.__class__ is tuple:
                    maps.append((place, number, word[1], word[2]))
                else:
                    gaps.append((place, number))
        alive = tuple(
            (number, weakref.ref(value), packed.get(number))
            for number, value in enumerate(given)
            if not _strided(value, self.strided) or number in packed
        )
        torch: Any = machine.torch
        kind, device = getattr(torch, TORCH[launch.dtype]), torch.device(machine.place)
        return Recipe(
            step.run, tuple(words), tuple(gaps), tuple(maps), tuple(result), tuple(result_map), tuple(work), alive,
            (lambda: torch.empty(shape, dtype=kind, device=device)) if allocates else None, step,
        )  # fmt: skip


def _strided(value: Any, strided: Any) -> bool:
    return is_torch(value) and value.layout is strided
