"""What the verifiers of several sparse_tensor operations ask. All raise VerifyException."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Attribute, Region
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from sparsecc.dialects.sparse_tensor.types import encoding_of, encoding_problem, ranked_tensor
from sparsecc.formats import Format


def encoded(type: Attribute, what: str) -> Format | None:
    """The format of a tensor that must be encoded; None if it has still to be chosen."""
    encoding = encoding_of(type)
    if encoding is None:
        raise VerifyException(f"{what} must be a tensor with a sparse encoding, not {type}")
    shape(type, what)
    return encoding.data


def chosen(type: Attribute, what: str) -> Format:
    """The format of a tensor that must be encoded, chosen already."""
    fmt = encoded(type, what)
    if fmt is None:
        raise VerifyException(f"{what} has no format yet (<*>); choose one first")
    return fmt


def shape(type: Attribute, what: str) -> tuple[int, ...]:
    """The shape of a ranked tensor whose encoding, if it has one, fits."""
    tensor = ranked_tensor(type)
    if tensor is None:
        raise VerifyException(f"{what} must be a ranked tensor, not {type}")
    if problem := encoding_problem(tensor.get_num_dims(), tensor.encoding):
        raise VerifyException(f"{what}: {problem}")
    return tensor.get_shape()


def element(type: Attribute) -> Attribute:
    """The element type of a ranked tensor."""
    tensor = ranked_tensor(type)
    if tensor is None:
        raise VerifyException(f"{type} is not a ranked tensor")
    return tensor.element_type


def same_shape(source: Attribute, dest: Attribute) -> None:
    """Equal ranks; sizes agree, and a dynamic size does not become static."""
    shapes = shape(source, "the source"), shape(dest, "the result")
    if len(shapes[0]) != len(shapes[1]):
        raise VerifyException(f"the source has rank {len(shapes[0])}, the result {len(shapes[1])}")
    for d, (a, b) in enumerate(zip(*shapes, strict=True)):
        if a != b and b != DYNAMIC_INDEX:
            spelled = "?" if a == DYNAMIC_INDEX else a
            raise VerifyException(f"dimension {d} is {spelled} in the source, {b} in the result")


def buffer(type: Attribute, element: Attribute, what: str) -> None:
    """A rank-1 memref of that element type."""
    if not isa(type, MemRefType[Attribute]) or type.get_num_dims() != 1:
        raise VerifyException(f"{what} are a memref of rank 1, not {type}")
    if type.element_type != element:
        raise VerifyException(f"{what} are of type {element} here, not {type.element_type}")


def buffer_count(fmt: Format) -> int:
    """How many level arrays an assembled tensor takes: a COO region's coordinates count as one
    interleaved array unless they are soa."""
    count = 0
    for k, level in enumerate(fmt.levels):
        interleaved = level.name == "singleton" and not getattr(level, "soa", False)
        count += 0 if interleaved and k else len(level.arrays)
    return count


def body(region: Region, inputs: Sequence[Attribute], output: Attribute, what: str) -> None:
    """A region is empty, or one block of these arguments that yields the output."""
    if not region.blocks:
        return
    block = region.block
    types = tuple(arg.type for arg in block.args)
    if types != tuple(inputs):
        raise VerifyException(f"the {what} region takes ({_list(inputs)}), not ({_list(types)})")
    last = block.last_op
    if last is None or last.name != "sparse_tensor.yield":
        raise VerifyException(f"the {what} region must end with sparse_tensor.yield")
    if tuple(last.operand_types) != (output,):
        found = _list(tuple(last.operand_types)) or "nothing"
        raise VerifyException(f"the {what} region yields {found}, but must yield {output}")


def _list(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))
