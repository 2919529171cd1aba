"""Resolved programs to tensor-level IR: one ``linalg.generic`` a step, in one function ``@main``.

Types: a tensor that is not row-major dense has an encoding (``EncodingAttr(None)``: still to be
chosen). Unsigned integers are ``ui8`` … ``ui64`` in tensors and block arguments; bodies compute on
signless integers, so each is passed through ``builtin.unrealized_conversion_cast`` (to ``i8`` …)
when it enters a body and again when it is yielded. Conversions that need the sign
(``arith.uitofp`` against ``sitofp``) say so in the operation. Floats of 16 bits are ``arith.extf``-ed to f32 when
they enter and ``arith.truncf``-ed when the result is yielded; a sum ``truncf(extf(result) + term)`` is rounded once,
at the end of its reduction.

A dense result starts from ``tensor.empty`` and ``linalg.fill`` with zero (complex:
``tensor.splat``, for xDSL's fill takes no complex numbers); an encoded one from ``tensor.empty``
alone, and its missing entries are zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.frontends import dtypes
from sparsecc.frontends.resolve import OperandType, ResolvedProgram, Step
from sparsecc.frontends.scalar_ops import ELEMENT, BodyBuilder, narrow_type
from sparsecc.frontends.typed import Load, loads

_PARALLEL = IteratorTypeAttr.parallel()
_REDUCTION = IteratorTypeAttr.reduction()


def build_module(resolved: ResolvedProgram) -> ModuleOp:
    """The module of a resolved program; it verifies."""
    return _Builder(resolved).build()


def tensor_type(known: OperandType) -> TensorType[Attribute]:
    """The IR type of an operand, temporary or result."""
    shape = [DYNAMIC_INDEX if extent is None else extent for extent in known.shape]
    return TensorType(ELEMENT[known.dtype], shape, _encoding(known))


def _encoding(known: OperandType) -> Attribute:
    if not known.shape:
        return NoneAttr()
    if known.format is not None and known.format.is_row_major:
        return NoneAttr()
    return EncodingAttr(known.format)


class _Builder:
    def __init__(self, resolved: ResolvedProgram) -> None:
        self.resolved = resolved
        self.types = {name: tensor_type(known) for name, known in resolved.types.items()}
        self.entry = Block(arg_types=[self.types[name] for name in resolved.args])
        self.values: dict[str, SSAValue] = dict(zip(resolved.args, self.entry.args, strict=True))
        self.constants: dict[int, SSAValue] = {}
        self.dims: dict[tuple[str, int], SSAValue] = {}
        self.extents: dict[tuple[int, str], tuple[str, int]] = {}

    def add(self, op: Operation) -> SSAValue:
        self.entry.add_op(op)
        return op.results[0]

    def build(self) -> ModuleOp:
        resolved = self.resolved
        for name, value in self.values.items():
            value.name_hint = name
        for step in resolved.steps:
            self.step(step)
        result = self.values[resolved.result]
        self.entry.add_op(func.ReturnOp(result))
        function = func.FuncOp(
            "main",
            FunctionType.from_lists([arg.type for arg in self.entry.args], [result.type]),
            Region(self.entry),
        )
        function.attributes["sparsecc.expression"] = StringAttr(str(resolved.program))
        function.attributes["sparsecc.args"] = _strings(resolved.args)
        function.attributes["sparsecc.results"] = _strings([resolved.result])
        return ModuleOp([function])

    def step(self, step: Step) -> None:
        """One generic: ``outs = sum over step.reduced of step.value``."""
        space = {name: d for d, name in enumerate((*step.indices, *step.reduced))}
        accesses = list(dict.fromkeys(loads(step.value)))
        for access in accesses:
            for position, index in enumerate(access.indices):
                self.extents.setdefault((step.statement, index), (access.name, position))
        inputs = [self.values[access.name] for access in accesses]
        out = self.out(step)
        maps = [_map(space, access.indices) for access in accesses] + [_map(space, step.indices)]
        generic = linalg.GenericOp(
            inputs,
            [out],
            Region(self.body(step, accesses)),
            maps,
            [_PARALLEL] * len(step.indices) + [_REDUCTION] * len(step.reduced),
            [out.type],
        )
        generic.attributes["sparsecc.source"] = StringAttr(step.source)
        generic.attributes["sparsecc.indices"] = _strings(list(space))
        value = self.values[step.name] = self.add(generic)
        value.name_hint = step.name

    def body(self, step: Step, accesses: Sequence[Load]) -> Block:
        """Block arguments are the accesses in order, then the present value of the result."""
        dtype = self.resolved.types[step.name].dtype
        arg_types = [*(ELEMENT[access.dtype] for access in accesses), ELEMENT[dtype]]
        block = Block(arg_types=arg_types)
        body = BodyBuilder(block)
        known = {a: body.enter(arg, a.dtype) for a, arg in zip(accesses, block.args, strict=False)}
        value = body.value(step.value, known)
        if step.reduced:
            value = body.arith("+", body.enter(block.args[-1], dtype), value, dtype)
        block.add_op(linalg.YieldOp(body.leave(value, dtype)))
        return block

    # -- results -------------------------------------------------------------------------------

    def out(self, step: Step) -> SSAValue:
        """The initial value of a step's result: zeros, or empty storage where it is encoded."""
        known, result = self.resolved.types[step.name], self.types[step.name]
        dynamic = [
            self.dim(step.statement, index)
            for index, extent in zip(step.indices, known.shape, strict=True)
            if extent is None
        ]
        if not isinstance(result.encoding, NoneAttr):
            return self.add(tensor.EmptyOp(dynamic, result))
        zero = self.zero(known.dtype)
        if known.dtype.startswith("c"):
            return self.add(tensor.SplatOp(zero, dynamic, result))
        empty = self.add(tensor.EmptyOp(dynamic, result))
        return self.add(linalg.FillOp([zero], [empty]))

    def zero(self, dtype: str) -> SSAValue:
        if dtypes.is_narrow(dtype):
            return self.add(arith.ConstantOp(FloatAttr(0.0, narrow_type(dtype))))
        body = BodyBuilder(self.entry)
        return body.leave(body.constant(0, dtype), dtype)

    def dim(self, statement: int, index: str) -> SSAValue:
        """The extent of an index at run time, from the first tensor that has it."""
        where = self.extents[statement, index]
        if where not in self.dims:
            name, position = where
            op = tensor.DimOp(self.values[name], self.constant(position))
            self.dims[where] = self.add(op)
        return self.dims[where]

    def constant(self, value: int) -> SSAValue:
        if value not in self.constants:
            op = arith.ConstantOp(IntegerAttr(value, IndexType()))
            self.constants[value] = self.add(op)
        return self.constants[value]


def _map(space: dict[str, int], indices: Sequence[str]) -> AffineMapAttr:
    dims = tuple(AffineExpr.dimension(space[index]) for index in indices)
    return AffineMapAttr(AffineMap(len(space), 0, dims))


def _strings(names: Sequence[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(name) for name in names])
