"""Reading blocks kernels for their text: who uses a value, what to call it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from sparsecc.backends.triton import tl_text
from sparsecc.backends.triton.tl_text import ATOM, Text
from sparsecc.dialects.reading import element_type
from sparsecc.dialects.tile import blocks


def users(value: SSAValue) -> list[Operation]:
    """What reads a value, through operations that only repeat it."""
    found: list[Operation] = []
    for use in value.uses:
        op = use.operation
        if isinstance(op, blocks.SplatOp | blocks.BroadcastOp):
            found += users(op.result)
        else:
            found.append(op)
    return found


def to_tensor(text: Text, element: Attribute) -> Text:
    """A counter as Triton's number."""
    return tl_text.to(text, element) if text.counter else text


def iota(axis: int, shape: Sequence[int]) -> Text:
    """``tl.arange(0, 32)[None, :]``."""
    lanes = f"tl.arange(0, {shape[axis]})"
    if len(shape) == 1:
        return Text(lanes, shape=tuple(shape))
    places = ", ".join(":" if k == axis else "None" for k in range(len(shape)))
    return Text(f"{lanes}[{places}]", ATOM, tuple(shape))


def hint(op: Operation) -> str:
    """A name for what an operation gives."""
    match op:
        case blocks.CompareOp():
            return "inside"
        case blocks.ReduceOp():
            return "total"
        case arith.AndIOp():
            return "mask" if element_type(op.result.type) == IntegerType(1) else "bits"
        case blocks.IotaOp():
            return "lane"
        case _ if element_type(op.results[0].type) in (IntegerType(32), IntegerType(64)):
            return "n"
        case _:
            return "t"
