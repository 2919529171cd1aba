"""What programs are compiled for: an operand's type, from a Spec or from the operand itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from weakref import ref

import numpy as np

from sparsecc.diagnostics import OperandError, UsageError
from sparsecc.elements import NAMES, name_of
from sparsecc.formats import Format, known_name, parse_format
from sparsecc.request import OperandSpec
from sparsecc.runtime.call_checks import BadOption, is_whole
from sparsecc.runtime.compiled_kernel import actual_format
from sparsecc.statistics import Statistics
from sparsecc.storage.ingest import asarray
from sparsecc.storage.tensor import SparseTensor

OPEN = "*"
"""Spells a format that is to be chosen."""


class UnknownDtype(OperandError):
    text = "there is no element type {dtype!r}"
    help_text = f"known: {' '.join(NAMES)}"


class StatisticsMisfit(OperandError):
    text = "the statistics are of {found}, but the operand is {wanted}"
    help_text = "they are those of A.statistics(), of a tensor A of that shape and type"


class PackedStays(UsageError):
    text = "operand {name!r} is packed as {layout}, its format can't be chosen"
    help_text = "give the tensor that it was packed from"


_class_of: Callable[[Any], type] = type


@dataclass(frozen=True)
class Spec:
    """An operand to compile for: extents (None: any), element type (``f64`` … or a NumPy dtype), format
    (``*``: the compiler chooses; None: dense). ``statistics`` and ``stored`` (a format) are what is known of the data
    that will be given, to choose by: ``A.statistics()``."""

    shape: tuple[int | None, ...]
    dtype: Any = "f64"
    format: str | Format | None = None
    statistics: Statistics | None = None
    stored: str | Format | None = None

    def operand(self) -> OperandSpec:
        """What to compile for. Raises BadOption, UnknownDtype, FormatError, StatisticsMisfit."""
        shape: Any = self.shape
        if _class_of(shape) not in (tuple, list) or not all(
            n is None or is_whole(n) for n in shape
        ):
            wanted = "a tuple of whole numbers and None, as in (None, 64)"
            raise BadOption(name="shape", found=shape, wanted=wanted)
        if self.format is not None and not isinstance(cast(object, self.format), str | Format):
            raise BadOption(name="format", found=self.format, wanted="a name or a Format")
        name = element_name(self.dtype)
        self.check_statistics(name)
        if self.format == OPEN:
            return OperandSpec(extents(self.shape), name, None)
        rank = len(self.shape)
        fmt = self.format or parse_format("dense", rank)
        fmt = parse_format(fmt, rank) if isinstance(fmt, str) else fmt
        return OperandSpec(extents(self.shape), name, str(fmt.with_default_widths(32)))

    def check_statistics(self, dtype: str) -> None:
        """Raise BadOption, StatisticsMisfit, FormatError for what does not go with the shape."""
        known = self.statistics
        if known is not None:
            if not isinstance(cast(object, known), Statistics):
                raise BadOption(name="statistics", found=known, wanted="what A.statistics() gives")
            same = len(known.shape) == len(self.shape) and all(
                a in (None, b) for a, b in zip(self.shape, known.shape, strict=True)
            )
            if not same or known.dtype != dtype:
                found, wanted = f"{known.dtype} {known.shape}", f"{dtype} {tuple(self.shape)}"
                raise StatisticsMisfit(found=found, wanted=wanted)
        if self.stored is not None:
            short_name(self.stored, len(self.shape))


@dataclass(frozen=True)
class Given:
    """An operand as it is given: what to compile for, what to call with (None: a Spec), and what is known of it."""

    spec: OperandSpec
    tensor: Any = None
    statistics: Statistics | None = None
    stored: str | None = None
    shape: tuple[int, ...] | None = None

    def in_format(self, wanted: str | Format) -> Given:
        """The same to be compiled for a format. Raises FormatError."""
        rank = len(self.spec.shape)
        fmt = parse_format(wanted, rank) if isinstance(wanted, str) else wanted
        return replace(self, spec=replace(self.spec, format=str(fmt.with_default_widths(32))))

    def without_format(self) -> Given:
        """The same, its format left to a plan."""
        return replace(self, spec=replace(self.spec, format=None))

    def open(self, name: str) -> Given:
        """The same, its format to be chosen by what is in it. Raises PackedStays."""
        tensor = self.tensor
        if not self.spec.shape:
            return self
        if tensor is None or self.spec.format is None:
            return self.without_format()
        if hasattr(tensor, "layout") and hasattr(tensor, "facts"):
            raise PackedStays(name=name, layout=tensor.layout)
        if hasattr(tensor, "detach"):  # of torch, on a GPU maybe
            tensor = tensor.detach().cpu()
        stored = tensor if isinstance(tensor, SparseTensor) else asarray(tensor)
        return replace(self.without_format(), statistics=statistics_of(stored))

    @property
    def sparse(self) -> bool:
        """Whether it is there, and stored otherwise than densely."""
        return self.tensor is not None and self.stored not in (None, "dense")


_COUNTED: dict[int, tuple[ref[SparseTensor], Statistics]] = {}
"""By the identity of tensors that live."""


def statistics_of(tensor: SparseTensor) -> Statistics:
    """The statistics of a tensor, counted once while it lives."""
    key = id(tensor)
    found = _COUNTED.get(key)
    if found is not None and found[0]() is tensor:
        return found[1]
    counted = tensor.statistics()
    _COUNTED[key] = (ref(tensor, lambda _: _COUNTED.pop(key, None)), counted)
    return counted


def given_operand(name: str, value: Any, gpu: bool) -> Given:
    """An operand of a call of ours. Raises OperandError, BadOption, FormatError."""
    if isinstance(value, Spec):
        stored = None if value.stored is None else short_name(value.stored, len(value.shape))
        return Given(value.operand(), None, value.statistics, stored)
    if gpu and (spec := _gpu_operand(name, value)) is not None:
        assert spec.format is not None
        shape = tuple(int(n) for n in value.shape)
        return Given(spec, value, None, short_name(spec.format, len(shape)), shape)
    tensor = value if isinstance(value, SparseTensor) else asarray(value)
    fmt = actual_format(tensor)
    spec = OperandSpec((None,) * tensor.rank, known_dtype(tensor), str(fmt))
    return Given(spec, tensor, None, known_name(fmt), tensor.shape)


def _gpu_operand(name: str, given: Any) -> OperandSpec | None:
    """What a torch tensor or a packed operand is compiled for, which stay where they are."""
    from sparsecc.runtime import machines, tile_operands

    if machines.is_torch(given):
        dtype = machines.OURS.get(str(given.dtype))
        if dtype is None:
            raise UnknownDtype(dtype=str(given.dtype))
        rank = given.dim()
        return OperandSpec((None,) * rank, dtype, tile_operands.torch_format(given, name))
    if hasattr(given, "layout") and hasattr(given, "facts"):
        return Spec((None,) * len(given.shape), given.dtype, given.layout).operand()
    return None


def extents(shape: Sequence[Any]) -> tuple[int | None, ...]:
    """A shape with NumPy's integers as Python's; what is no integer stays, for the checker to name."""
    return tuple(int(n) if is_whole(n) else n for n in shape)


def short_name(fmt: str | Format, rank: int) -> str:
    """A format in short. Raises FormatError."""
    return known_name(parse_format(fmt, rank) if isinstance(fmt, str) else fmt)


def element_name(dtype: Any) -> str:
    """Our name of an element type. Raises UnknownDtype."""
    # A NumPy dtype equals the strings that NumPy reads it from, and its 'i8' has eight bytes.
    if isinstance(dtype, str) and (dtype in NAMES or dtype == "bfloat16"):
        return "bf16" if dtype == "bfloat16" else dtype
    if str(dtype).startswith("torch."):
        return element_name(str(dtype).removeprefix("torch."))
    try:
        found = name_of(np.dtype(dtype))
    except TypeError:
        found = None
    if found is None:
        raise UnknownDtype(dtype=str(dtype))
    return found


def known_dtype(tensor: SparseTensor) -> str:
    """The element type of a tensor, which is one of ours."""
    return name_of(tensor.dtype) or str(tensor.dtype)
