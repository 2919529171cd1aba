"""Runs tensor-level modules densely on NumPy arrays: a check of the module builder.

Every tensor is an array; missing entries are zeros, and do not annihilate. Bodies are run once,
vectorised over the iteration space, with zero for the accumulator; reductions then sum over their
axes. What a body rounds at its end (``arith.truncf``) is summed first, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects import arith, builtin, func, tensor
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from tests.oracle.evaluator import Array

Env = dict[SSAValue, Any]


def numpy_type(attribute: Attribute) -> np.dtype[Any]:
    """The NumPy type of an element; signless integers are signed."""
    match attribute:
        case builtin.Float16Type():
            return np.dtype(np.float16)
        case builtin.BFloat16Type():
            return np.dtype(ml_dtypes.bfloat16)
        case builtin.Float32Type():
            return np.dtype(np.float32)
        case builtin.Float64Type():
            return np.dtype(np.float64)
        case builtin.IntegerType():
            width = attribute.width.data
            if width == 1:
                return np.dtype(np.bool_)
            unsigned = attribute.signedness.data == builtin.Signedness.UNSIGNED
            return np.dtype(f"{'u' if unsigned else ''}int{width}")
        case builtin.ComplexType():
            part = numpy_type(attribute.element_type)
            return np.dtype(np.complex64 if part == np.float32 else np.complex128)
        case _:
            raise NotImplementedError(str(attribute))


def run(module: builtin.ModuleOp, operands: dict[str, Array]) -> Array:
    """The result of ``@main``; operands by name, as its ``sparsecc.args`` says."""
    main = next(op for op in module.ops if isinstance(op, func.FuncOp))
    names = main.attributes["sparsecc.args"]
    assert isinstance(names, builtin.ArrayAttr)
    block = main.body.block
    env: Env = {}
    for name, argument in zip(cast(Iterable[Attribute], names), block.args, strict=True):
        assert isinstance(name, builtin.StringAttr)
        array = operands[name.data]
        assert numpy_type(_tensor(argument.type).element_type) == array.dtype
        env[argument] = array
    with np.errstate(all="ignore"):
        for op in block.ops:
            if isinstance(op, func.ReturnOp):
                return env[op.arguments[0]]
            env[op.results[0]] = _tensor_op(op, env)
    raise AssertionError("@main does not return")


def _tensor_op(op: Operation, env: Env) -> Any:
    match op:
        case tensor.DimOp():
            return env[op.source].shape[env[op.index]]
        case tensor.EmptyOp():
            return _zeros(op.tensor.type, [env[d] for d in op.dynamic_sizes])
        case tensor.SplatOp():
            return _zeros(op.result.type, [env[d] for d in op.dynamicSizes]) + env[op.input]
        case linalg.FillOp():
            return np.full_like(env[op.outputs[0]], env[op.inputs[0]])
        case linalg.GenericOp():
            return _generic(op, env)
        case _:
            return _scalar_op(op, env)


def _tensor(kind: Attribute) -> builtin.TensorType[Attribute]:
    assert isinstance(kind, builtin.TensorType)
    return cast(builtin.TensorType[Attribute], kind)


def _zeros(attribute: Attribute, dynamic: list[int]) -> Array:
    kind = _tensor(attribute)
    sizes = iter(dynamic)
    shape = [next(sizes) if d == builtin.DYNAMIC_INDEX else d for d in kind.get_shape()]
    return np.zeros(shape, numpy_type(kind.element_type))


def _generic(op: linalg.GenericOp, env: Env) -> Array:
    maps = [_positions(attribute.data) for attribute in op.indexing_maps]
    reduced = tuple(
        axis for axis, kind in enumerate(op.iterator_types) if kind == IteratorTypeAttr.reduction()
    )
    extents = [-1] * len(op.iterator_types)
    for operand, positions in zip(op.operands, maps, strict=True):
        for position, extent in zip(positions, env[operand].shape, strict=True):
            assert extents[position] in (-1, extent), "extents of an index differ"
            extents[position] = extent
    grid = [
        np.arange(n).reshape([n if a == axis else 1 for a in range(len(extents))])
        for axis, n in enumerate(extents)
    ]
    out = env[op.outputs[0]]
    local: Env = dict(env)
    for operand, positions, argument in zip(op.inputs, maps, op.body.block.args, strict=False):
        local[argument] = env[operand][tuple(grid[p] for p in positions)]
    local[op.body.block.args[-1]] = out.dtype.type(0)
    value: Any = None
    for inner in op.body.block.ops:
        if isinstance(inner, linalg.YieldOp):
            rounding = inner.arguments[0].owner
            rounds = isinstance(rounding, arith.TruncFOp)
            source = rounding.operands[0] if rounds else inner.arguments[0]
            value = np.broadcast_to(local[source], extents)
        else:
            local[inner.results[0]] = _scalar_op(inner, local)
    narrow = out.dtype.itemsize == 2 and out.dtype.kind not in "iu"
    wanted = np.dtype(np.float32) if narrow else out.dtype
    assert value.dtype == wanted, f"a body yields {value.dtype} into {out.dtype}"
    if not reduced:
        return value.transpose(maps[-1]).astype(out.dtype)
    assert maps[-1] == list(range(len(maps[-1])))
    if value.dtype == np.bool_:
        return out | value.any(axis=reduced)
    return (out + value.sum(axis=reduced, dtype=value.dtype)).astype(out.dtype)


def _positions(affine: AffineMap) -> list[int]:
    found: list[int] = []
    for result in affine.results:
        assert isinstance(result, AffineDimExpr)
        found.append(result.position)
    return found


_BINARY: dict[type[Operation], Callable[[Any, Any], Any]] = {
    arith.AddfOp: np.add,
    arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.DivfOp: np.divide,
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.OrIOp: np.bitwise_or,
    arith.AndIOp: np.bitwise_and,
    complex_dialect.AddOp: np.add,
    complex_dialect.SubOp: np.subtract,
    complex_dialect.MulOp: np.multiply,
    complex_dialect.DivOp: np.divide,
}


def _scalar_op(op: Operation, env: Env) -> Any:
    args = [np.asarray(env[operand]) for operand in op.operands]
    target = op.results[0].type
    if type(op) in _BINARY:
        assert args[0].dtype == args[1].dtype, f"{op.name} of {args[0].dtype}, {args[1].dtype}"
        return _BINARY[type(op)](*args)
    match op:
        case arith.ConstantOp():
            value = op.value
            assert isinstance(value, builtin.IntegerAttr | builtin.FloatAttr)
            if isinstance(target, builtin.IndexType):
                return value.value.data
            return np.asarray(value.value.data).astype(numpy_type(target))[()]
        case complex_dialect.ConstantOp():
            parts = [part.value.data for part in op.value]
            return numpy_type(target).type(complex(*parts))
        case arith.NegfOp() | complex_dialect.NegOp():
            return -args[0]
        case builtin.UnrealizedConversionCastOp():
            return args[0].view(numpy_type(target))
        case arith.ExtSIOp() | arith.SIToFPOp() | arith.ExtFOp() | arith.TruncFOp():
            return args[0].astype(numpy_type(target))
        case arith.ExtUIOp() | arith.UIToFPOp():
            return _unsigned(args[0]).astype(numpy_type(target))
        case complex_dialect.CreateOp():
            return (args[0] + 1j * args[1]).astype(numpy_type(target))
        case complex_dialect.ReOp():
            return np.real(args[0])
        case complex_dialect.ImOp():
            return np.imag(args[0])
        case _:
            raise NotImplementedError(op.name)


def _unsigned(values: Array) -> Array:
    if values.dtype == np.bool_:
        return values
    return values.view(f"uint{values.dtype.itemsize * 8}")
