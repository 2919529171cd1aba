"""An executable model of the fragments form: kernels on NumPy arrays, chunk by chunk of k, without a machine.

Rows and tokens are not tiled: a kernel of the form says nothing about that. A weight's chunk is cut into values,
metadata (two indices a group) and entries here, independently of the packer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import builtin, func
from xdsl.ir import Operation, SSAValue

from sparsecc.dialects import iteration
from sparsecc.dialects.tile import fragments as tile
from sparsecc.dialects.tile.fragment_types import FragmentType, letters_of
from sparsecc.dialects.tile.weights import packed_weight
from sparsecc.runtime.reference_scalars import Data, apply, everywhere, numpy_type

Array = Any
CHUNK = 64


def run_module(module: builtin.ModuleOp, operands: Sequence[Array]) -> Array:
    """What ``@main`` returns where it does nothing but launch fragments kernels."""
    functions = {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, func.FuncOp)}
    main = functions["main"].body.block
    values: dict[SSAValue, Array] = dict(zip(main.args, operands, strict=True))
    for op in main.ops:
        if isinstance(op, func.ReturnOp):
            return values[op.arguments[0]]
        assert isinstance(op, iteration.LaunchOp), op
        inputs = [values[v] for v in op.inputs]
        values[op.result] = Kernel(functions[op.kernel.data], inputs).run()
    raise AssertionError("a function returns")


class Kernel:
    """One launch: values by operation, arrays with axes in the order ``b t n`` for sums."""

    def __init__(self, fn: func.FuncOp, inputs: Sequence[Array]) -> None:
        self.ops = list(fn.body.block.ops)
        self.arrays: dict[SSAValue, Array] = dict(zip(fn.body.block.args, inputs, strict=False))
        self.values: dict[SSAValue, Array] = {}
        self.extents: dict[str, int] = {}
        self.result: Array = None

    def run(self) -> Array:
        for op in self.ops:
            self.step(op)
        return self.result

    def step(self, op: Operation) -> None:
        match op:
            case tile.SpanOp():
                extent = self.arrays[op.tensor].shape[op.dim.value.data]
                self.extents[op.index_letter] = extent
            case tile.AccumulateOp():
                self.accumulate(op)
            case tile.LoadPackedOp():
                self.load_packed(op)
            case tile.LoadFragmentsOp():
                self.values[op.result] = self.chunk(op.tensor, letters_of(op.at), "btk")
            case tile.ScatterEntriesOp():
                self.values[op.result] = self.values[op.entries]
            case tile.ComplementOp():
                self.values[op.result] = complement(self.values[op.metadata])
            case tile.SparseDotOp():
                self.values[op.result] = self.dot(op)
            case tile.EpilogueOp():
                self.values[op.result] = self.epilogue(op)
            case tile.StoreFragmentsOp():
                self.store(op)
            case tile.NextOp() | func.ReturnOp():
                pass
            case _:
                raise AssertionError(f"the model knows no {op.name}")

    def whole(self, tensor: SSAValue, letters: str, wanted: str) -> Array:
        """A tensor with its axes in order, and axes of extent 1 for letters that it lacks."""
        array = np.transpose(
            self.arrays[tensor], [letters.index(c) for c in wanted if c in letters]
        )
        return array.reshape(
            [array.shape[letters_kept(wanted, letters, c)] if c in letters else 1 for c in wanted]
        )

    def chunk(self, tensor: SSAValue, letters: str, wanted: str) -> Array:
        """A chunk of k, the last axis; zeros beyond its end."""
        array = self.whole(tensor, letters, wanted)[..., self.at : self.at + CHUNK]
        missing = CHUNK - array.shape[-1]
        return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)])

    def accumulate(self, op: tile.AccumulateOp) -> None:
        extent = self.arrays[op.tensor].shape[op.dim.value.data]
        assert isinstance(op.result.type, FragmentType)
        shape = [self.extents.get(c, 1) for c in "btn"]
        total = np.zeros(shape, numpy_type(op.result.type.element))
        for self.at in range(0, extent, CHUNK):
            self.values[op.body.block.args[1]] = total
            for inner in op.body.block.ops:
                self.step(inner)
            last = op.body.block.last_op
            assert isinstance(last, tile.NextOp)
            total = self.values[last.value]
        self.values[op.result] = total

    def load_packed(self, op: tile.LoadPackedOp) -> None:
        weight = packed_weight(op.tensor.type)
        assert weight is not None
        dense = self.chunk(op.tensor, letters_of(op.at), "bnk")
        groups = dense.reshape(*dense.shape[:-1], CHUNK // 4, 4)
        size = np.abs(groups.astype(np.float64))
        kept = np.sort(np.argsort(-size, axis=-1, kind="stable")[..., :2], axis=-1)
        self.values[op.fragments[0]] = np.take_along_axis(groups, kept, -1)
        self.values[op.fragments[1]] = kept
        rest = np.take_along_axis(groups, complement(kept), -1)
        if weight.kind == "2:4":
            assert not rest.any(), "a group of a 2:4 weight has three entries"
        else:
            self.values[op.fragments[2]] = rest

    def dot(self, op: tile.SparseDotOp) -> Array:
        values, metadata = self.values[op.values], self.values[op.metadata]
        assert (metadata[..., 0] < metadata[..., 1]).all()
        groups = np.zeros((*values.shape[:-1], 4), values.dtype)
        np.put_along_axis(groups, metadata, values, -1)
        dense = groups.reshape(*groups.shape[:-2], CHUNK)
        total = self.values[op.accumulator]
        x = self.values[op.tokens].astype(total.dtype)
        return total + np.matmul(x, np.swapaxes(dense.astype(total.dtype), -1, -2))

    def epilogue(self, op: tile.EpilogueOp) -> Array:
        total, *elements = op.body.block.args
        known: dict[SSAValue, Data] = {total: everywhere(self.values[op.sum])}
        for element, (tensor, at) in zip(elements, op.accesses(), strict=True):
            known[element] = everywhere(self.whole(tensor, letters_of(at), "btn"))
        with np.errstate(all="ignore"):
            for inner in op.body.block.ops:
                if isinstance(inner, tile.FinishOp):
                    return known[inner.value].values
                known[inner.results[0]] = apply(inner, [known[v] for v in inner.operands])
        raise AssertionError("an epilogue finishes")

    def store(self, op: tile.StoreFragmentsOp) -> None:
        letters = letters_of(op.at)
        value = np.broadcast_to(self.values[op.value], [self.extents.get(c, 1) for c in "btn"])
        if "b" not in letters:
            value = value[0]
        order = "btn" if "b" in letters else "tn"
        self.result = np.transpose(value, [order.index(c) for c in letters]).copy()


def letters_kept(wanted: str, letters: str, letter: str) -> int:
    """The axis of a letter among those of a tensor in the wanted order."""
    return [c for c in wanted if c in letters].index(letter)


def complement(indices: Array) -> Array:
    """The two of 0 … 3 that each pair lacks, in order."""
    free = np.ones((*indices.shape[:-1], 4), bool)
    np.put_along_axis(free, indices, False, -1)
    places: Array = np.nonzero(free)[-1]
    return places.reshape(indices.shape)
