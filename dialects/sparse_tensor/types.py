"""Questions about encoded tensor types, and their check over a whole module."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import FileLineColLoc, IndexType, IntegerType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from sparsecc.diagnostics import ErrorCollector, IRError, UnsupportedError
from sparsecc.dialects.sparse_tensor.attributes import EncodingAttr
from sparsecc.formats import Format, dense_format


class WrongType(IRError):
    text = "'{op}': {problem}"


def ranked_tensor(type: Attribute) -> TensorType[Attribute] | None:
    """The type itself if it is a ranked tensor."""
    return cast(TensorType[Attribute], type) if isinstance(type, TensorType) else None


def encoding_of(type: Attribute) -> EncodingAttr | None:
    """The encoding of a tensor type; None for unencoded (dense) tensors and other types."""
    tensor = ranked_tensor(type)
    if tensor is not None and isinstance(tensor.encoding, EncodingAttr):
        return tensor.encoding
    return None


def format_of(type: Attribute) -> Format | None:
    """The format of a ranked tensor: row-major dense without an encoding, None if not yet chosen.

    A type that is no ranked tensor has none either."""
    tensor = ranked_tensor(type)
    if tensor is None:
        return None
    encoding = encoding_of(type)
    return dense_format(tensor.get_num_dims()) if encoding is None else encoding.data


def with_format(type: Attribute, fmt: Format | None) -> TensorType[Attribute]:
    """The tensor type with another encoding; ``None`` leaves the choice open."""
    tensor = ranked_tensor(type)
    if tensor is None:
        raise VerifyException(f"{type} is not a ranked tensor")
    return TensorType[Attribute](tensor.element_type, tensor.get_shape(), EncodingAttr(fmt))


def encoding_problem(rank: int, encoding: Attribute) -> str:
    """Why the encoding does not fit a tensor of that rank; empty if it does."""
    if not isinstance(encoding, EncodingAttr):
        return ""
    if rank == 0:
        return "a tensor of rank 0 can't be sparse; remove its encoding"
    if encoding.data is not None and encoding.data.rank != rank:
        return (
            f"the encoding maps {encoding.data.rank} dimensions, but the tensor has {rank}; "
            f"use a map over {rank} dimensions"
        )
    return ""


def width_type(width: int) -> IntegerType | IndexType:
    """The element type of positions or coordinates of a width."""
    return IntegerType(width) if width else IndexType()


def op_place(op: Operation) -> str:
    """``file:line:col`` of an operation, as far as it is known."""
    loc: Attribute = op.location
    if isinstance(loc, FileLineColLoc):
        return f"{loc.filename.data}:{loc.line.data}:{loc.column.data}"
    return ""


class NotOneBlock(UnsupportedError):
    text = "function @{name} {problem}"
    help_text = "tensor-level passes want functions with a body of one block, without branches"


def one_block(fn: FuncOp) -> None:
    """Raise NotOneBlock for a function that is only declared, or that has branches."""
    count = len(fn.body.blocks)
    if count != 1:
        problem = f"has {count} blocks" if count else "has no body"
        raise NotOneBlock(name=fn.sym_name.data, problem=problem, place=op_place(fn))


def verify_types(root: Operation) -> None:
    """Check the encoding of every tensor type beneath ``root``; raises one IRError for all."""
    found = ErrorCollector()
    for op in root.walk():
        blocks = [block for region in op.regions for block in region.blocks]
        values = [*op.operands, *op.results, *(arg for block in blocks for arg in block.args)]
        problems = dict.fromkeys(_type_problem(value.type) for value in values)
        for problem in filter(None, problems):
            found.add(WrongType(op=op.name, problem=problem, place=op_place(op)))
    found.raise_if_any()


def _type_problem(type: Attribute) -> str:
    tensor = ranked_tensor(type)
    if tensor is None:
        return ""
    problem = encoding_problem(tensor.get_num_dims(), tensor.encoding)
    return f"in {type}: {problem}" if problem else ""
