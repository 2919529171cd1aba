"""Operands of GPU kernels: tensors where they are, as addresses and extents by role; what is not there is refused.

Nothing large is copied without a word: tensors of torch are taken as they lie or refused with the remedy; a
SparseTensor or a NumPy array is brought to the device, and a note says so.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsecc.diagnostics import OperandError
from sparsecc.formats import Format, known_name, parse_format
from sparsecc.formats.row_tables import COUNTS
from sparsecc.kernel import Operand
from sparsecc.runtime import packs
from sparsecc.runtime.compiled_kernel import WrongDtype, WrongExtent, WrongRank, in_format
from sparsecc.runtime.machines import OURS, Machine, is_torch
from sparsecc.runtime.row_operands import tables as tables_of
from sparsecc.runtime.torch_formats import WrongTorchLayout, compressed, torch_format
from sparsecc.runtime.torch_guards import refuse_unfit, version
from sparsecc.runtime.torch_indices import check as check_indices
from sparsecc.storage.ingest import asarray
from sparsecc.storage.tensor import SparseTensor


class NotContiguous(OperandError):
    text = "operand {name!r} has shape {shape} and strides {strides}, which the kernel can't follow"
    help_text = "copy it once with .contiguous()"


class NotCoalesced(OperandError):
    text = "operand {name!r} holds entries twice or out of order"
    help_text = "call .coalesce() once"


class WrongWidth(OperandError):
    text = "{what} of operand {name!r} are {found}, the kernel was compiled for {wanted}"
    help_text = "convert them once ({remedy}), or compile for the tensor that you have"


class WrongPacking(OperandError):
    text = "operand {name!r} is packed as {found}, the kernel reads {wanted}"
    help_text = "pack it with the kernel: kernel.pack({name}=...)"


class NoOperandOfGpu(OperandError):
    text = "operand {name!r} is a {found}, which has no place on a GPU"
    help_text = "pass a torch tensor, a packed operand, a SparseTensor or a NumPy array"


Item = Any
"""A torch tensor on a GPU, or a NumPy array for the interpreter: what they have in common has no type."""


@dataclass
class Bound:
    """A tensor on the machine: what each role of it is, and the arrays behind the addresses."""

    shape: tuple[int, ...]
    words: dict[str, int]
    """``values``, ``positions1``, ``packed`` … are addresses; ``dim0`` extents, ``stride0`` steps in elements."""
    arrays: dict[str, Item]
    format: Format
    facts: Mapping[str, int] = field(default_factory=dict[str, int])
    host: Callable[[], SparseTensor | None] | None = None
    """What it was brought from, for programs that also read it converted."""

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(self.words[f"stride{d}"] for d in range(len(self.shape)))

    def overlaps(self, array: Item) -> bool:
        """Whether an array shares memory with any of its own."""
        first, last = span(array)
        return any(a < last and first < b for a, b in map(span, self.arrays.values()))


def address(array: Item) -> int:
    """Where an array's elements are."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data_ptr()


def span(array: Item) -> tuple[int, int]:
    """The first address of an array's memory, and the one behind its last."""
    steps = [s // array.itemsize for s in array.strides] if not is_torch(array) else array.stride()
    if 0 in tuple(array.shape):
        return 0, 0
    last = sum((n - 1) * s for n, s in zip(array.shape, steps, strict=True))
    return address(array), address(array) + (last + 1) * array.itemsize


def bound(
    shape: tuple[int, ...],
    arrays: dict[str, Item],
    format: Format,
    facts: Mapping[str, int] | None = None,
) -> Bound:
    """A tensor of contiguous arrays; strides are those of its dimensions where it is dense."""
    words = {role: address(array) for role, array in arrays.items()}
    plain = format.is_dense and format.is_permutation
    step = 1
    for dim in reversed(format.dim_order if plain else range(len(shape))):
        words[f"dim{dim}"], words[f"stride{dim}"] = shape[dim], step
        step *= shape[dim]
    return Bound(shape, words | dict(facts or {}), arrays, format, facts or {})


def dense_bound(
    values: Item, shape: tuple[int, ...], strides: tuple[int, ...], format: Format
) -> Bound:
    """A dense tensor as it lies."""
    words = {"values": address(values)}
    for dim, (extent, step) in enumerate(zip(shape, strides, strict=True)):
        words[f"dim{dim}"], words[f"stride{dim}"] = extent, step
    return Bound(shape, words, {"values": values}, format)


def brought(tensor: SparseTensor, machine: Machine) -> Bound:
    """A tensor of the host on the machine."""
    arrays: dict[str, Item] = {"values": machine.upload(tensor.values)}
    for number, level in enumerate(tensor.levels):
        arrays |= {f"{role}{number}": machine.upload(array) for role, array in level}
    return bound(tensor.shape, arrays, tensor.format)


@dataclass
class Slot:
    """Where an operand goes: what the kernel wants, and how what is given gets there."""

    operand: Operand
    wanted: Format
    free: frozenset[int]
    """Dimensions of a dense tensor whose stride the kernel reads; the others are contiguous."""
    packing: str | None
    """The layout that the kernel reads it packed in."""
    converts: bool
    """Whether the plan converts it before any kernel sees it."""
    machine: Callable[[], Machine]
    say: Callable[[str], None]
    note: Callable[[str], object]
    tables: tuple[str, ...]
    """Layouts whose tables the kernels read beside its arrays as they are stored."""
    kept: dict[tuple[int, int, str], tuple[Any, Bound]] = field(
        default_factory=dict[tuple[int, int, str], tuple[Any, Bound]]
    )
    """Bound tensors by identity and version, while they live."""

    def __post_init__(self) -> None:
        self.name, self.rank = self.operand.name, len(self.operand.shape)
        self.torch_dtype = next(t for t, ours in OURS.items() if ours == self.operand.dtype)
        self.fixed = [(d, n) for d, n in enumerate(self.operand.shape) if n is not None]
        self.dense = self.wanted.is_dense and self.wanted.is_permutation
        self.order = self.wanted.dim_order if self.dense else ()
        self.layout = known_name(self.wanted)

    def take(self, given: Any) -> Bound | SparseTensor:
        """The operand for the plan. Raises OperandError."""
        if is_torch(given):
            return self.of_torch(given)
        if hasattr(given, "layout") and hasattr(given, "arrays"):
            return self.of_packed(given)
        if isinstance(given, SparseTensor):
            return self.of_host(given, given)
        if isinstance(given, np.ndarray | np.generic | int | float | complex):
            return self.of_host(asarray(given), None)
        if hasattr(given, "__dlpack__") or hasattr(given, "__cuda_array_interface__"):
            return self.of_torch(self.foreign(given))
        try:
            tensor = asarray(given)
        except OperandError:
            raise NoOperandOfGpu(name=self.name, found=type(given).__name__) from None
        return self.of_host(tensor, None)

    def foreign(self, given: Any) -> Any:
        """A tensor of another library, seen by torch without a copy."""
        from sparsecc.runtime.machines import torch_module

        torch = torch_module()
        if hasattr(given, "__dlpack__"):
            return torch.from_dlpack(given)
        return torch.as_tensor(given, device=self.machine().place)

    # -- tensors of torch ----------------------------------------------------------------------

    def of_torch(self, tensor: Any) -> Bound:
        refuse_unfit(f"operand {self.name!r}", tensor)
        self.machine().check(self.name, tensor)
        if str(tensor.dtype) != self.torch_dtype:
            found = OURS.get(str(tensor.dtype), str(tensor.dtype))
            raise WrongDtype(name=self.name, found=found, wanted=self.operand.dtype)
        shape = tuple(tensor.shape)
        self.check_shape(shape)
        strided = str(tensor.layout) == "torch.strided"
        if self.packing is not None and strided:
            return self.remembered(tensor, lambda: self.packed(tensor))
        if self.dense and strided:
            return self.as_it_lies(tensor, shape)
        return self.remembered(tensor, lambda: self.sparse(tensor, shape))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) != self.rank:
            raise WrongRank(name=self.name, found=len(shape), wanted=self.rank)
        for dim, extent in self.fixed:
            if shape[dim] != extent:
                raise WrongExtent(name=self.name, dim=dim, found=shape[dim], wanted=extent)

    def as_it_lies(self, tensor: Any, shape: tuple[int, ...]) -> Bound:
        strides = tuple(tensor.stride())
        step = 1
        if 0 in shape:  # strides of a tensor without elements lead nowhere
            return bound(shape, {"values": tensor}, self.wanted)
        for dim in reversed(self.order):
            if shape[dim] != 1 and strides[dim] != step and dim not in self.free:
                raise NotContiguous(name=self.name, shape=shape, strides=strides)
            step = strides[dim] * shape[dim] if shape[dim] != 1 else step * shape[dim]
        return dense_bound(tensor, shape, strides, self.wanted)

    def sparse(self, tensor: Any, shape: tuple[int, ...]) -> Bound:
        found = str(tensor.layout)
        if found == "torch.strided":
            raise WrongTorchLayout(
                name=self.name, found="strided", wanted=self.layout, remedy=self.remedy()
            )
        if known_name(parse_format(torch_format(tensor, self.name), self.rank)) != self.layout:
            raise WrongTorchLayout(
                name=self.name, found=found, wanted=self.layout, remedy=self.remedy()
            )
        if found == "torch.sparse_coo" and not tensor.is_coalesced():
            raise NotCoalesced(name=self.name)
        check_indices(self.name, tensor, self.machine().capturing)
        if found == "torch.sparse_coo":
            return self.coordinates(tensor, shape)
        outer, inner = compressed(tensor, found)
        # Parts of a tensor that autograd knows as such would keep it alive.
        parts = {"positions1": outer, "coordinates1": inner, "values": tensor.values()}
        arrays = {role: part.data for role, part in parts.items()}
        self.check_widths(arrays)
        self.check_contiguous(arrays)
        return self.complete(bound(shape, arrays, self.wanted))

    def check_widths(self, arrays: Mapping[str, Item]) -> None:
        for what, width in (
            ("positions", self.wanted.pos_width),
            ("coordinates", self.wanted.crd_width),
        ):
            array, kind = arrays[f"{what}1"], f"torch.int{width or 32}"
            if array.dtype.itemsize * 8 != (width or 32):
                raise WrongWidth(
                    what=what, name=self.name, found=str(array.dtype), wanted=kind, remedy=f".to({kind})"
                )  # fmt: skip

    def complete(self, tensor: Bound) -> Bound:
        """With the tables that the kernel reads beside its arrays."""
        if not self.tables:
            return tensor
        self.check_widths(tensor.arrays)
        arrays, facts = dict(tensor.arrays), dict(tensor.facts)
        for layout in self.tables:
            if COUNTS[layout] not in facts:
                more, known = tables_of(layout, tensor.arrays["positions1"])
                arrays, facts = arrays | more, facts | known
                self.note(
                    f"operand {self.name}: its rows are shared out by {layout}, tables of its positions"
                )
        return bound(tensor.shape, arrays, tensor.format, facts)

    def coordinates(self, tensor: Any, shape: tuple[int, ...]) -> Bound:
        indices, values = tensor.indices().data, tensor.values().data
        if self.wanted.crd_width not in (0, 64):
            raise WrongWidth(
                what="coordinates", name=self.name, found="torch.int64", remedy=".to_sparse_csr()",
                wanted=f"torch.int{self.wanted.crd_width}",
            )  # fmt: skip
        arrays: dict[str, Item] = {f"coordinates{n}": indices[n] for n in range(len(shape))}
        arrays["values"] = values
        self.check_contiguous(arrays)
        ends = self.machine().upload(np.array([0, values.shape[0]], np.int64))
        return bound(shape, arrays | {"positions0": ends, "indices": indices}, self.wanted)

    def check_contiguous(self, arrays: dict[str, Item]) -> None:
        for array in arrays.values():
            if is_torch(array) and not array.is_contiguous():
                raise NotContiguous(
                    name=self.name, shape=tuple(array.shape), strides=tuple(array.stride())
                )

    def remedy(self) -> str:
        if self.layout.startswith("BSR"):
            return f".to_sparse_bsr({self.layout[3:]})"
        return {"CSR": ".to_sparse_csr()", "CSC": ".to_sparse_csc()", "dense": ".to_dense()"}.get(
            self.layout, "sparsecc.asarray(...)"
        )

    # -- packed operands, and those of the host ------------------------------------------------

    def of_packed(self, given: Any) -> Bound:
        wanted = self.packing or self.layout
        found = packs.described(given.layout, given.facts)
        wanted = packs.described(wanted, packs.SIZES.get(wanted, {}))
        others = self.tables if self.packing else (*self.tables, self.layout)
        if found != wanted and given.layout not in others:
            raise WrongPacking(name=self.name, found=found, wanted=wanted)
        if given.dtype != self.operand.dtype:
            raise WrongDtype(name=self.name, found=given.dtype, wanted=self.operand.dtype)
        self.check_shape(tuple(given.shape))
        for array in given.arrays.values():
            if is_torch(array):
                self.machine().check(self.name, array)
        return self.remembered(given, lambda: self.unpacked(given))

    def unpacked(self, given: Any) -> Bound:
        machine = self.machine()
        moved = {
            role: machine.upload(array) if isinstance(array, np.ndarray) else array
            for role, array in given.arrays.items()
        }
        if any(isinstance(array, np.ndarray) for array in given.arrays.values()):
            self.tell_copy()
        tensor = bound(tuple(given.shape), moved, self.wanted, dict(given.facts))
        return self.complete(tensor)

    def packed(self, weight: Any) -> Bound:
        """A weight that is not packed yet: packed now, and kept while it lives."""
        assert self.packing is not None
        self.say(
            f"operand {self.name}: packed as {self.packing}; kernel.pack({self.name}=...) does it once for all"
        )
        return self.unpacked(packs.pack(self.packing, weight))

    def of_host(self, tensor: SparseTensor, owner: Any) -> Bound | SparseTensor:
        """A tensor of the host; kept on the device while its owner (None: nobody) lives."""
        self.check_shape(tensor.shape)
        machine = self.machine()
        from sparsecc.runtime.compiled_kernel import actual_format
        from sparsecc.runtime.machines import numpy_dtype

        wanted = numpy_dtype(self.operand.dtype)
        if tensor.dtype != wanted:
            if tensor.rank:
                raise WrongDtype(name=self.name, found=str(tensor.dtype), wanted=self.operand.dtype)
            tensor = asarray(np.asarray(tensor.values[0]).astype(wanted, casting="same_kind"))
        if self.converts:
            return tensor

        def make() -> Bound:
            if self.packing is not None:
                return self.packed(tensor)
            fitting = tensor
            if actual_format(tensor) != self.wanted:
                was = known_name(actual_format(tensor))
                self.say(f"operand {self.name}: {was} converted to {self.layout}")
                fitting = in_format(tensor, self.wanted)
            if not machine.interprets and tensor.rank:
                self.tell_copy()
            made = self.complete(brought(fitting, machine))
            # Kept while its owner lives, so it must not keep the owner alive.
            made.host = weakref.ref(tensor) if tensor is owner else lambda: tensor
            return made

        return make() if owner is None else self.remembered(owner, make)

    def tell_copy(self) -> None:
        self.say(f"operand {self.name}: copied to {self.machine().place}")

    def remembered(self, owner: Any, make: Callable[[], Bound]) -> Bound:
        """What was made of an object, made again only if that was changed in place."""
        now = version(owner)
        if now is None:
            return make()
        key = (id(owner), now, self.machine().place)
        known = self.kept.get(key)
        if known is not None and known[0]() is owner:
            return known[1]
        found = make()
        kept = self.kept
        for old in [k for k, (ref, _) in kept.items() if ref() is None or k[0] == key[0]]:
            del kept[old]
        kept[key] = (weakref.ref(owner, lambda _: kept.pop(key, None)), found)
        return found
