"""The reference interpreter: tensor-level modules on NumPy arrays, entry by entry.

It shares nothing with the passes and backends, so that what they compile can be held against it. A
tensor is two arrays: its values, and where something is stored. The rules of structure:

* what is not stored is 0; a tensor of a dense type is stored everywhere;
* products and ``and`` are stored where all factors are (a missing one annihilates, inf or not);
  sums, differences, ``or`` and ``xor`` where any operand is; what is 0 at 0 where its operand is; a
  quotient where its numerator is, or its denominator is not; anything else, and constants,
  everywhere;
* a reduction is stored where any of its terms, or the value that it starts from, is;
* formats that store zeros of their own accord (blocks, n:m, ELL) can't tell stored zeros: they drop
  them, and so does filling a tensor that is not dense.

Everything is spread out over the whole iteration space: it is for small tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects import arith, builtin, func, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.utils.hints import isa

from sparsecc.diagnostics import OperandError, UsageError, did_you_mean
from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.dialects.sparse_tensor.ops import ConvertOp
from sparsecc.formats import Format, dense_format, parse_format
from sparsecc.runtime.reference_scalars import (
    Array,
    Data,
    NotInterpreted,
    apply,
    constant,
    everywhere,
    numpy_type,
    where,
)
from sparsecc.storage.entries import from_coords
from sparsecc.storage.ingest import asarray
from sparsecc.storage.layout import is_nonzero
from sparsecc.storage.tensor import SparseTensor

Env = dict[SSAValue, Data]

SUMS = {"arith.addf", "arith.addi", "arith.subf", "arith.subi", "arith.ori", "complex.add",
        "complex.sub"}  # fmt: skip
"""What a sum may be put together with: terms are summed first, then combined with the start."""


class NoFunction(UsageError):
    text = "the module has no function @{entry}"


class MissingValue(OperandError):
    text = "operand {name!r} is not given"


class UnknownValue(OperandError):
    text = "there is no operand {name!r}"


class NotOfType(OperandError):
    text = "{name} has shape {shape} and type {dtype}, which is no {type}"


class LoopExtents(OperandError):
    text = "loop {loop} has {first} coordinates in one operand and {second} in another"


def evaluate_module(
    module: builtin.ModuleOp, operands: Mapping[str, Any], entry: str = "main"
) -> tuple[SparseTensor | Array, ...]:
    """What ``@entry`` returns: arrays of dense types, else tensors in the format of their type.

    A format that is still to be chosen is COO here. Operands are tensors, arrays and scalars, by
    the names of the arguments. Raises OperandError, UnsupportedError (NotInterpreted),
    UsageError."""
    functions = {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, func.FuncOp)}
    if entry not in functions:
        raise NoFunction(entry=entry, help=did_you_mean(entry, list(functions)))
    block = functions[entry].body.block
    names = argument_names(functions[entry])
    for name in operands:
        if name not in names:
            raise UnknownValue(name=name, help=did_you_mean(name, names))
    env: Env = {}
    for name, argument in zip(names, block.args, strict=True):
        if name not in operands:
            raise MissingValue(name=name)
        env[argument] = _given(operands[name], argument.type, name)
    with np.errstate(all="ignore"):
        for op in block.ops:
            if isinstance(op, func.ReturnOp):
                return tuple(_result(env[v], v.type) for v in op.arguments)
            env.update(zip(op.results, _tensor_op(op, env), strict=True))
    raise NotInterpreted(what="a function that does not return")


def argument_names(function: func.FuncOp) -> list[str]:
    """What a caller calls the arguments: their names in the text, else ``arg0`` and so on."""
    names = function.attributes.get("sparsecc.args")
    if isa(names, builtin.ArrayAttr[builtin.StringAttr]):
        return [n.data for n in names.data]
    return [arg.name_hint or f"arg{n}" for n, arg in enumerate(function.body.block.args)]


# -- tensors in and out ----------------------------------------------------------------------------


def _format(type_: Attribute) -> Format | None:
    """The format of a type; None if it is still to be chosen."""
    if not isinstance(type_, builtin.TensorType):
        return dense_format(0)
    encoding: Attribute = type_.encoding
    rank = type_.get_num_dims()
    return encoding.data if isinstance(encoding, EncodingAttr) and rank else dense_format(rank)


def _parts(type_: Attribute) -> tuple[Attribute, tuple[int, ...]]:
    """The element type and shape of a type; a scalar has no dimensions."""
    if not isa(type_, builtin.TensorType[Attribute]):
        return type_, ()
    return type_.element_type, type_.get_shape()


def _settle(data: Data, type_: Attribute, name: str) -> Data:
    """The data as a tensor of that type holds it. Raises NotOfType."""
    element, shape = _parts(type_)
    found = data.values.shape
    fits = len(shape) == len(found) and all(
        wanted in (builtin.DYNAMIC_INDEX, extent)
        for wanted, extent in zip(shape, found, strict=True)
    )
    if not fits or data.values.dtype != numpy_type(element):
        raise NotOfType(name=name, shape=found, dtype=data.values.dtype, type=type_)
    fmt = _format(type_)
    if fmt is not None and fmt.is_dense:
        return everywhere(data.values, data.constant)
    if fmt is not None and fmt.padded:
        return where(data.stored & is_nonzero(data.values), data.values)
    return data


def _given(value: Any, type_: Attribute, name: str) -> Data:
    found = value if isinstance(value, SparseTensor) else asarray(value)
    values = np.asarray(found.to_numpy()).reshape(found.shape)
    if not found.shape and not isinstance(value, np.ndarray | np.generic | SparseTensor):
        values = values.astype(numpy_type(_parts(type_)[0]))  # a Python number fits itself in
    if found.format.is_dense:
        # Where a dense array becomes a sparse tensor its zeros are dropped.
        return _settle(Data(values, is_nonzero(values)), type_, name)
    stored = np.zeros(found.shape, np.bool_)
    stored[found.to_coords()[0]] = True
    return _settle(Data(values, stored), type_, name)


def _result(data: Data, type_: Attribute) -> SparseTensor | Array:
    fmt = _format(type_)
    if fmt is not None and fmt.is_dense:
        return data.values
    fmt = parse_format("COO", data.values.ndim) if fmt is None else fmt
    return from_coords(np.nonzero(data.stored), data.values[data.stored], data.values.shape, fmt)


# -- the function ----------------------------------------------------------------------------------


def _tensor_op(op: Operation, env: Env) -> list[Data]:
    match op:
        case tensor.DimOp():
            shape = env[op.source].values.shape
            return [everywhere(np.asarray(shape[int(env[op.index].values)]))]
        case tensor.EmptyOp():
            return [_filled(op.tensor.type, [env[d] for d in op.dynamic_sizes], None)]
        case tensor.SplatOp():
            return [_filled(op.result.type, [env[d] for d in op.dynamicSizes], env[op.input])]
        case tensor.CastOp():
            return [_settle(env[op.source], op.dest.type, "what tensor.cast gives")]
        case ConvertOp():
            return [_converted(env[op.source], op)]
        case linalg.FillOp():
            like, value = env[op.outputs[0]], env[op.inputs[0]]
            whole = np.full(like.values.shape, value.values, like.values.dtype)
            return [
                _settle(
                    Data(whole, is_nonzero(whole)), op.results[0].type, "what linalg.fill gives"
                )
            ]
        case LinalgStructuredOperation():
            return _Generic(op, env).run()
        case arith.ConstantOp():
            target: Attribute = op.result.type
            return [_settle(everywhere(constant(op.value, target), True), target, "a constant")]
        case _:
            return [apply(op, [env[v] for v in op.operands])]


def _filled(type_: Attribute, dynamic: Sequence[Data], value: Data | None) -> Data:
    """A tensor full of one value; of zeros, and empty unless it is dense, without one."""
    element, extents = _parts(type_)
    sizes = iter(int(d.values) for d in dynamic)
    shape = [next(sizes) if d == builtin.DYNAMIC_INDEX else d for d in extents]
    values = np.full(shape, 0 if value is None else value.values, numpy_type(element))
    return _settle(Data(values, is_nonzero(values)), type_, "a new tensor")


def _converted(data: Data, op: ConvertOp) -> Data:
    """Explicit zeros stay, but from and to formats that can't tell them."""
    source = _format(op.source.type)
    stored = data.stored
    if source is not None and (source.is_dense or source.padded):
        stored = stored & is_nonzero(data.values)
    dest: Attribute = op.dest.type
    values = data.values.astype(numpy_type(_parts(dest)[0]))
    return _settle(Data(values, stored), dest, "what sparse_tensor.convert gives")


class _Generic:
    """One structured operation over its iteration space.

    Loops that every result has are done at once; the others one point after the other, unless all
    that is done in them is to add to (or subtract from) the only result."""

    def __init__(self, op: LinalgStructuredOperation, env: Env) -> None:
        self.op = op
        self.env = env
        self.maps = [_positions(attribute.data) for attribute in op.get_indexing_maps()]
        self.block: Block = op.body.block
        self.tensors = [env[v] for v in op.operands]
        self.count = len(self.tensors) - len(op.outputs)
        loops = op.get_num_loops()
        self.extents = [-1] * loops
        for data, positions in zip(self.tensors, self.maps, strict=True):
            for loop, extent in zip(positions, data.values.shape, strict=True):
                known = self.extents[loop]
                if known not in (-1, extent):
                    raise LoopExtents(loop=loop, first=known, second=extent)
                self.extents[loop] = extent
        if -1 in self.extents:
            raise NotInterpreted(what="a loop that no operand gives an extent")
        self.in_all = [k for k in range(loops) if all(k in m for m in self.maps[self.count :])]
        self.others = [k for k in range(loops) if k not in self.in_all]

    def run(self, one_by_one: bool = False) -> list[Data]:
        """The results. ``one_by_one``: without the short cut for sums."""
        results = None if one_by_one or not self.others else self.sum()
        if results is None:
            results = self.visit()
        return [
            _settle(data, value.type, f"what {self.op.name} gives")
            for data, value in zip(results, self.op.res, strict=True)
        ]

    def visit(self) -> list[Data]:
        """Run the body at each point of the loops that some result lacks."""
        outputs = [Data(d.values.copy(), d.stored.copy()) for d in self.tensors[self.count :]]
        for point in product(*(range(self.extents[k]) for k in self.others)):
            space = _Space(self.extents, self.in_all, dict(zip(self.others, point, strict=True)))
            arguments = [*self.tensors[: self.count], *outputs]
            gathered = [space.gather(d, m) for d, m in zip(arguments, self.maps, strict=True)]
            yielded = _Body(self, space, gathered).yielded()
            for data, positions, value in zip(
                outputs, self.maps[self.count :], yielded, strict=True
            ):
                at = space.index(positions)
                data.values[at], data.stored[at] = value.values, value.stored
        return outputs

    def sum(self) -> list[Data] | None:
        """The result where the body adds one term to it, or None."""
        combine = self.addition()
        if combine is None:
            return None
        op, accumulator, term, rounding = combine
        space = _Space(self.extents, range(len(self.extents)), {})
        arguments = [space.gather(d, m) for d, m in zip(self.tensors, self.maps, strict=True)]
        value = _Body(self, space, arguments).value(term)
        order = [*self.maps[-1], *self.others]
        axes = tuple(range(len(self.maps[-1]), len(order)))
        values = np.broadcast_to(value.values, self.extents).transpose(order)
        stored = np.broadcast_to(value.stored, self.extents).transpose(order)
        reduce = np.bitwise_or if op.name == "arith.ori" else np.add
        narrow = values.dtype.itemsize == 2 and numpy_type(accumulator.type).kind not in "iu"
        wide = np.dtype(np.float32) if narrow else values.dtype
        total = where(stored.any(axis=axes), reduce.reduce(values, axis=axes, dtype=wide))
        start = self.tensors[-1]
        start = Data(start.values.astype(total.values.dtype), start.stored)
        both = [start, total]
        if narrow:  # a sum of floats of 16 bits is one of f32, rounded once
            left, right = both if accumulator is op.operands[0] else both[::-1]
            values = (np.subtract if "sub" in op.name else np.add)(left.values, right.values)
            values = values.astype(numpy_type(accumulator.type))
            return [where(left.stored | right.stored, values)]
        result = apply(op, both if accumulator is op.operands[0] else both[::-1])
        return [result if rounding is None else apply(rounding, [result])]

    def addition(self) -> tuple[Operation, SSAValue, SSAValue, Operation | None] | None:
        """What combines the only result with one term, the accumulator, the term, and what rounds
        the sum at the end, if it is wider than the result."""
        last = self.block.last_op
        if (
            len(self.op.outputs) != 1
            or last is None
            or len(set(self.maps[-1])) != len(self.maps[-1])
        ):
            return None
        op = last.operands[0].owner
        accumulator: SSAValue = self.block.args[-1]
        uses = accumulator.get_user_of_unique_use()
        rounding = None
        if isinstance(op, arith.TruncFOp) and isinstance(uses, arith.ExtFOp):
            rounding, op = op, op.operands[0].owner
            accumulator = uses.result
            uses = accumulator.get_user_of_unique_use()
        if not isinstance(op, Operation) or uses is not op or op.name not in SUMS:
            return None
        bits = numpy_type(accumulator.type) == np.bool_ and op.name != "arith.ori"
        if bits or ("sub" in op.name and op.operands[0] is not accumulator):
            return None
        term = op.operands[1 if op.operands[0] is accumulator else 0]
        return op, accumulator, term, rounding


class _Space:
    """A part of an iteration space: some loops whole, one axis each,
    the others at one coordinate."""

    def __init__(
        self, extents: Sequence[int], whole: Sequence[int], fixed: Mapping[int, int]
    ) -> None:
        self.shape = tuple(extents[k] for k in whole)
        self.coordinates: dict[int, Any] = dict(fixed)
        for axis, k in enumerate(whole):
            shape = [1] * len(whole)
            shape[axis] = extents[k]
            self.coordinates[k] = np.arange(extents[k]).reshape(shape)

    def index(self, positions: Sequence[int]) -> tuple[Any, ...]:
        return tuple(self.coordinates[k] for k in positions)

    def gather(self, data: Data, positions: Sequence[int]) -> Data:
        at = self.index(positions)
        return Data(np.asarray(data.values[at]), np.asarray(data.stored[at]), data.constant)


class _Body:
    """The body at a part of the space; operations are computed when they are asked for."""

    def __init__(self, generic: _Generic, space: _Space, arguments: Sequence[Data]) -> None:
        self.generic, self.space = generic, space
        self.known: Env = dict(zip(generic.block.args, arguments, strict=True))

    def yielded(self) -> list[Data]:
        last = self.generic.block.last_op
        assert last is not None
        found = [self.value(v) for v in last.operands]
        return [
            Data(
                np.broadcast_to(d.values, self.space.shape),
                np.broadcast_to(d.stored, self.space.shape),
            )
            for d in found
        ]

    def value(self, value: SSAValue) -> Data:
        if value not in self.known:
            self.known[value] = self.compute(value)
        return self.known[value]

    def compute(self, value: SSAValue) -> Data:
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not self.generic.block:
            return self.generic.env[value]
        if isinstance(op, linalg.IndexOp):
            return everywhere(np.asarray(self.space.coordinates[op.dim.value.data]))
        return apply(op, [self.value(v) for v in op.operands])


def _positions(affine: AffineMap) -> list[int]:
    found: list[int] = []
    for result in affine.results:
        if not isinstance(result, AffineDimExpr):
            raise NotInterpreted(what=f"the subscript '{result}'")
        found.append(result.position)
    return found
