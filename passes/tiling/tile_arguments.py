"""What a blocks kernel is given, where a program stands in its grid, and what it can't do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerType, Signedness, i32
from xdsl.ir import Attribute, SSAValue

from sparsecc.diagnostics import LimitError, UnsupportedError
from sparsecc.dialects.reading import element_type, integer_width
from sparsecc.dialects.sparse_tensor.types import ranked_tensor
from sparsecc.kernel import LARGEST
from sparsecc.passes.sparsification.kernel_arguments import Arguments, buffer


class TypeNotOnGpu(UnsupportedError):
    text = "a GPU kernel can't compute on elements of type {type} yet"
    help_text = (
        "use f64, f32, f16, bf16, bool or integers of up to 64 bits, or compile for target='cpu'"
    )


class SparseResult(UnsupportedError):
    text = "a sparse result whose entries are not those of an operand can't be put together on a GPU yet"
    help_text = "ask for a dense result (out='dense'), or compile for target='cpu'"


class TooLargeExtent(LimitError):
    text = "an extent of {extent} is too large for a GPU kernel, which counts with 32 bits: at most {limit}"
    help_text = "split the operand, or compile for target='cpu'"


def refuse_large(extents: Iterable[int], place: str = "") -> None:
    """Raises TooLargeExtent for extents whose last block of coordinates would not fit 32 bits."""
    for extent in extents:
        if extent > LARGEST:
            raise TooLargeExtent(extent=extent, limit=LARGEST, place=place)


def refuse_large_types(types: Iterable[Attribute]) -> None:
    """The same for all extents that types of tensors say."""
    for type_ in types:
        ranked = ranked_tensor(type_)
        shape = () if ranked is None else ranked.get_shape()
        refuse_large(extent for extent in shape if extent != DYNAMIC_INDEX)


class TileArguments(Arguments):
    """The arguments of a blocks kernel: extents are i32, arrays of narrow positions unsigned."""

    def request(self, role: str, type_: Attribute) -> None:
        stored = role.partition(".")[2].startswith(("positions", "coordinates"))
        width = integer_width(element_type(type_))
        if isinstance(type_, IndexType):
            super().request(role, i32)
        elif stored and width < 32:
            super().request(role, buffer(IntegerType(width, Signedness.UNSIGNED)))
        else:
            super().request(role, type_)


@dataclass(frozen=True)
class Place:
    """Where a program stands along a grid loop: a number or a block of them, and which are inside (None: all)."""

    at: SSAValue
    inside: SSAValue | None
