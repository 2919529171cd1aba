"""What is known of a function's arguments: ``sparsecc.statistics``, a dictionary as ``Statistics.to_json`` gives it,
and ``sparsecc.stored``, the format of the data that will be given::

    func.func @main(%A: tensor<?x?xf64, #ANY> {sparsecc.statistics = {dtype = "f64", exact = true, nnz = 5 : i64, …},
                                               sparsecc.stored = "CSR"}, …)

They are discardable: ``mlir-opt --allow-unregistered-dialect`` reads and keeps them. Who writes them may err, so that
all of them are checked when a module is verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from math import inf, prod
from typing import Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f64,
    i1,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from sparsecc.diagnostics import ErrorCollector, FormatError, IRError
from sparsecc.dialects.reading import dtype_name
from sparsecc.dialects.sparse_tensor.types import op_place, ranked_tensor
from sparsecc.formats import parse_format
from sparsecc.statistics import BlockFill, GroupFit, Lengths, Statistics

STATISTICS, STORED = "sparsecc.statistics", "sparsecc.stored"
SYMMETRIES = ("", "symmetric", "skew-symmetric", "hermitian", "pattern", "none")
PARTS: dict[str, type] = {
    "tuple[Lengths, ...]": Lengths,
    "tuple[BlockFill, ...]": BlockFill,
    "tuple[GroupFit, ...]": GroupFit,
}
WORDS = {
    "int": "a whole number, 0 or more",
    "float": "a finite number, 0 or more",
    "bool": "true or false",
    "str": "a text",
    "tuple[int, ...]": "whole numbers, 0 or more",
    **{kind: f"dictionaries of {part.__name__}" for kind, part in PARTS.items()},
}


class BadStatistics(IRError):
    text = "argument {number} of @{function}: {problem}"
    help_text = "sparsecc.statistics is the dictionary that Statistics.to_json() gives"


class BadStored(IRError):
    text = "argument {number} of @{function}: {problem}"
    help_text = 'sparsecc.stored is the format of the data that is given: "CSR"'


@dataclass(frozen=True)
class Facts:
    """What is known of one argument."""

    statistics: Statistics | None = None
    stored: str | None = None


# -- writing ---------------------------------------------------------------------------------------


def attribute_of(value: object) -> Attribute:
    """A plain value as an attribute."""
    match value:
        case bool():
            return IntegerAttr(int(value), i1)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case Mapping():
            data = cast("Mapping[str, object]", value)
            return DictionaryAttr({key: attribute_of(item) for key, item in data.items()})
        case _:
            items = tuple(cast("tuple[object, ...]", value))
            if all(isinstance(item, int) for item in items):
                return DenseArrayBase.from_list(i64, cast("tuple[int, ...]", items))
            return ArrayAttr([attribute_of(item) for item in items])


def write_facts(fn: FuncOp, facts: Mapping[int, Facts]) -> None:
    """Note what is known of arguments, by their numbers."""
    found: list[dict[str, Attribute]] = [dict(a.data) for a in _dictionaries(fn)]
    for number, known in facts.items():
        if known.statistics is not None:
            found[number][STATISTICS] = attribute_of(known.statistics.to_json())
        if known.stored is not None:
            found[number][STORED] = StringAttr(known.stored)
    if any(found):
        fn.properties["arg_attrs"] = ArrayAttr([DictionaryAttr(d) for d in found])


def _dictionaries(fn: FuncOp) -> list[DictionaryAttr]:
    """The attributes of each argument."""
    given = fn.arg_attrs.data if fn.arg_attrs is not None else ()
    count = len(fn.function_type.inputs.data)
    return [given[n] if n < len(given) else DictionaryAttr({}) for n in range(count)]


# -- reading ---------------------------------------------------------------------------------------


def read_facts(fn: FuncOp) -> list[Facts]:
    """What is known of each argument. Raises BadStatistics, BadStored."""
    errors = ErrorCollector()
    found = [_read(fn, n, attributes, errors) for n, attributes in enumerate(_dictionaries(fn))]
    errors.raise_if_any()
    return found


def verify_facts(root: Operation) -> None:
    """Raise what ``read_facts`` does, of every function beneath ``root``."""
    for op in root.walk():
        if isinstance(op, FuncOp) and op.arg_attrs is not None:
            read_facts(op)


def _read(fn: FuncOp, number: int, given: DictionaryAttr, errors: ErrorCollector) -> Facts:
    where: dict[str, Any] = {
        "number": number,
        "function": fn.sym_name.data,
        "place": op_place(fn),
    }
    type_ = fn.function_type.inputs.data[number]
    statistics: Statistics | None = None
    if (attribute := given.data.get(STATISTICS)) is not None:
        data = plain(attribute)
        problems = list(_shape_problems(Statistics, data, STATISTICS))
        if not problems:
            statistics = Statistics.from_json(cast("Mapping[str, Any]", data))
            problems = list(_problems(statistics)) or list(_misfits(statistics, type_))
        for problem in problems:
            errors.add(BadStatistics(problem=problem, **where))
    stored: str | None = None
    if (attribute := given.data.get(STORED)) is not None:
        type_ = ranked_tensor(type_)
        if type_ is None:
            errors.add(BadStored(problem=f"{STORED} is of tensors", **where))
        elif not isinstance(attribute, StringAttr):
            errors.add(BadStored(problem=f"{STORED} is {attribute}, no text", **where))
        else:
            stored = attribute.data
            try:
                parse_format(stored, type_.get_num_dims())
            except FormatError as error:
                errors.add(BadStored(problem=f"{STORED}: {error.message}", **where))
    return Facts(statistics, stored)


def plain(attribute: Attribute) -> object:
    """An attribute as plain data; what is none stays an attribute."""
    match attribute:
        case IntegerAttr():
            number = attribute.value.data
            return bool(number) if attribute.type == i1 else number
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case DenseArrayBase():
            return tuple(cast("DenseArrayBase[IntegerType]", attribute).get_values())
        case ArrayAttr():
            return tuple(plain(item) for item in attribute)
        case DictionaryAttr():
            return {key: plain(item) for key, item in attribute.data.items()}
        case _:
            return attribute


def _shape_problems(kind: type, data: object, where: str) -> Iterator[str]:
    """What is missing of a dataclass's fields, of the wrong type, or too much."""
    if not isinstance(data, Mapping):
        yield f"{where} is {data}, no dictionary"
        return
    given = cast("Mapping[str, object]", data)
    known = {f.name: f for f in fields(kind)}
    for name in given:
        if name not in known:
            yield f"{where} has no entry {name!r}"
    for name, field in known.items():
        if name not in given:
            if field.default is MISSING:
                yield f"{where} has to have the entry {name!r}"
        else:
            yield from _value_problems(str(field.type), given[name], f"{where}.{name}")


def _value_problems(kind: str, value: object, where: str) -> Iterator[str]:
    several = isinstance(value, tuple)
    items = cast("tuple[object, ...]", value) if several else ()
    if kind in PARTS and several:
        for number, item in enumerate(items):
            yield from _shape_problems(PARTS[kind], item, f"{where}[{number}]")
        return
    match kind:
        case "int":
            right = _is_count(value)
        case "float":
            right = _is_count(value) or (isinstance(value, float) and 0 <= value < inf)
        case "bool":
            right = isinstance(value, bool)
        case "str":
            right = isinstance(value, str)
        case _:
            right = several and all(map(_is_count, items))
    if not right:
        yield f"{where} is {value!r}, but it is {WORDS[kind]}"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _problems(s: Statistics) -> Iterator[str]:
    """What can't be true of any tensor."""
    rank = len(s.shape)
    if s.nnz > prod(s.shape):
        yield f"{STATISTICS} has {s.nnz} entries in a shape of {prod(s.shape)}"
    for name, found in (("slices", len(s.slices)), ("prefixes", len(s.prefixes))):
        if found != rank:
            yield f"{STATISTICS}.{name} has {found} parts for {rank} dimensions"
            return
    for dim, lengths in enumerate(s.slices):
        where = f"{STATISTICS}.slices[{dim}]"
        if lengths.extent != s.shape[dim]:
            yield f"{where}.extent is {lengths.extent}, but the shape has {s.shape[dim]}"
        elif lengths.used > lengths.extent:
            yield f"{where}.used is {lengths.used} of {lengths.extent}"
    for block in s.blocks:
        if min(block.rows, block.columns) < 1 or block.fill > 1:
            yield f"{STATISTICS}.blocks: a block of {block.rows} x {block.columns} filled by {block.fill}"
    for group in s.groups:
        if not 1 <= group.n <= group.m or group.fitting > 1:
            yield f"{STATISTICS}.groups: {group.n}:{group.m} fitting to {group.fitting}"
    if s.symmetry not in SYMMETRIES:
        yield f"{STATISTICS}.symmetry is {s.symmetry!r}, none of {', '.join(SYMMETRIES[1:])}"


def _misfits(s: Statistics, type_: Attribute) -> Iterator[str]:
    """What is not true of a tensor of a type."""
    tensor = ranked_tensor(type_)
    if tensor is None:
        yield f"{STATISTICS} is of tensors"
        return
    shape = tensor.get_shape()
    if len(shape) != len(s.shape) or any(
        a not in (DYNAMIC_INDEX, b) for a, b in zip(shape, s.shape, strict=False)
    ):
        extents = ", ".join("?" if n == DYNAMIC_INDEX else str(n) for n in shape)
        yield f"{STATISTICS} is of shape {s.shape}, but the tensor's is ({extents})"
    dtype = dtype_name(tensor.element_type)
    if s.dtype != dtype:
        yield f"{STATISTICS} is of {s.dtype}, but the tensor's elements are {dtype}"
