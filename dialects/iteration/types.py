"""Types of the iteration dialect, and how lists of numbers are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerType, i64
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition


@irdl_attr_definition
class CursorType(ParametrizedAttribute, TypeAttribute):
    """A node of an operand's tree of levels, or the absence of one."""

    name = "iteration.cursor"


cursor = CursorType()
index = IndexType()


def ints(values: Sequence[int]) -> DenseArrayBase:
    """Numbers as an attribute."""
    return DenseArrayBase.from_list(i64, values)


def numbers(array: Attribute) -> tuple[int, ...]:
    """The numbers of an attribute that :func:`ints` made."""
    assert isinstance(array, DenseArrayBase)
    return tuple(int(k) for k in cast("DenseArrayBase[IntegerType]", array).get_values())
