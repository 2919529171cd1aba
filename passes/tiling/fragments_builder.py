"""The kernel of a contraction: a function of the tile dialect's fragments, from what was recognised."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    FunctionType,
    IndexType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from sparsecc.dialects.reading import element_type, strings
from sparsecc.dialects.sparse_tensor.types import ranked_tensor
from sparsecc.dialects.tile import ScheduleAttr
from sparsecc.dialects.tile import fragments as tile
from sparsecc.dialects.tile.fragment_types import fragment
from sparsecc.passes.tiling.contraction_view import ContractionView
from sparsecc.passes.tiling.epilogues import Epilogue
from sparsecc.passes.tiling.tile_arguments import refuse_large_types

Read = tuple[SSAValue, str]
"""A tensor of the program, and the letters of its dimensions."""
ORDER = "btnk"
"""The letters of loops, in the order in which the kernel's attributes name them."""


class KernelBuilder:
    """Builds ``func.func @name`` of a contraction and its epilogue."""

    def __init__(
        self, view: ContractionView, epilogue: Epilogue, result: SSAValue, accumulator: Attribute
    ) -> None:
        self.view, self.epilogue, self.result = view, epilogue, result
        self.accumulator = accumulator
        generic = view.generic
        self.x = (generic.inputs[view.x], view.letters_at(view.x))
        self.weight = (generic.inputs[view.weight], view.letters_at(view.weight))
        reads = dict.fromkeys([self.x, self.weight, *epilogue.operands])
        self.reads: list[Read] = sorted(reads, key=lambda r: _place(r[0], generic.inputs))
        types = [*(value.type for value, _ in self.reads), result.type]
        refuse_large_types(types)
        self.fn = func.FuncOp("contraction", FunctionType.from_lists(types, []))
        self.block = self.fn.body.block
        self.arguments = dict(zip(self.reads, self.block.args, strict=False))
        for argument, value in zip(self.block.args, [*self.inputs, result], strict=True):
            argument.name_hint = value.name_hint
        self.at: dict[str, SSAValue] = {}

    @property
    def inputs(self) -> list[SSAValue]:
        """The tensors of the launch; one that is read in two ways stands there twice."""
        return [value for value, _ in self.reads]

    def kernel(self, name: str, schedules: Sequence[ScheduleAttr], target: str) -> func.FuncOp:
        """The function, with the schedules that it may have: the first is chosen."""
        x, weight = self.arguments[self.x], self.arguments[self.weight]
        self._spans(x, weight)
        total = self._accumulate(x, weight, tile.instruction_of(schedules[0].family.data))
        element = self.epilogue.finish()
        self.epilogue.block.add_op(tile.FinishOp(element))
        value = total
        if len(self.epilogue.block.ops) > 1:
            accesses = [
                (self.arguments[read], [self.at[letter] for letter in read[1]])
                for read in self.epilogue.operands
            ]
            body = Region(self.epilogue.block)
            op = tile.EpilogueOp(total, accesses, element.type, body)
            value = self._add(op, "y")
        out = self.block.args[-1]
        self.block.add_op(
            tile.StoreFragmentsOp(value, out, [self.at[letter] for letter in self.epilogue.letters])
        )
        self.block.add_op(func.ReturnOp())
        self.fn.sym_name = StringAttr(name)
        self._attributes(schedules, target)
        return self.fn

    def _add(self, op: Operation, name: str) -> SSAValue:
        self.block.add_op(op)
        op.results[0].name_hint = name
        return op.results[0]

    def _spans(self, x: SSAValue, weight: SSAValue) -> None:
        view = self.view
        letters = view.letters_at(view.x)
        if "b" in letters:
            self.at["b"] = self._add(tile.SpanOp("batch", x, letters.index("b")), "b")
        self.at["n"] = self._add(tile.SpanOp("rows", weight, view.packed.rows), "n")
        self.at["t"] = self._add(tile.SpanOp("tokens", x, letters.index("t")), "t")

    def _accumulate(self, x: SSAValue, weight: SSAValue, instruction: str) -> SSAValue:
        view = self.view
        body = Block(arg_types=[IndexType(), fragment("sum", self.accumulator)])
        self.at["k"], total = body.args
        self.at["k"].name_hint, total.name_hint = "k", "acc"

        def add(op: Operation, *names: str) -> None:
            body.add_op(op)
            for result, name in zip(op.results, names, strict=True):
                result.name_hint = name

        def at(operand: int) -> list[SSAValue]:
            return [self.at[letter] for letter in view.letters_at(operand)]

        packed = tile.LoadPackedOp(weight, at(view.weight))
        add(packed, *("values", "metadata", "entries")[: len(packed.fragments)])
        values, metadata, *entries = packed.fragments
        loaded = tile.LoadFragmentsOp(x, at(view.x))
        add(loaded, "x")
        dot = tile.SparseDotOp(instruction, values, metadata, loaded.result, total)
        add(dot, "next")
        if entries:
            rest, others = tile.ScatterEntriesOp(entries[0]), tile.ComplementOp(metadata)
            add(rest, "rest")
            add(others, "others")
            dot.result.name_hint = "part"
            dot = tile.SparseDotOp(
                instruction, rest.result, others.result, loaded.result, dot.result
            )
            add(dot, "next")
        body.add_op(tile.NextOp(dot.result))
        loop = tile.AccumulateOp(weight, view.packed.reduction, self.accumulator, Region(body))
        return self._add(loop, "sum")

    def _attributes(self, schedules: Sequence[ScheduleAttr], target: str) -> None:
        attributes = self.fn.attributes
        attributes["tile.kernel"] = UnitAttr()
        attributes["tile.form"] = StringAttr("fragments")
        attributes["tile.target"] = StringAttr(target)
        attributes["tile.schedule"] = schedules[0]
        attributes["tile.space"] = ArrayAttr(list(schedules))
        # For the host: which extents have to agree, and that every element of the result is written.
        attributes["iteration.assembly"] = StringAttr("dense")
        attributes["iteration.covers"] = UnitAttr()
        letters = [letter for letter in ORDER if letter in self.at]
        names = strings(self.view.generic.attributes.get("sparsecc.indices"))
        loops = {letter: loop for loop, letter in self.view.letters.items()}
        named = [names[loops[c]] if names else c for c in letters]
        attributes["iteration.loops"] = ArrayAttr([StringAttr(name) for name in named])
        attributes["iteration.order"] = attributes["iteration.loops"]
        spelled = [*(mine for _, mine in self.reads), self.epilogue.letters]
        attributes["iteration.maps"] = ArrayAttr([_map(mine, letters) for mine in spelled])


def _place(value: SSAValue, inputs: Sequence[SSAValue]) -> int:
    """Operands stand as in the program; what an epilogue adds comes behind."""
    return list(inputs).index(value) if value in inputs else len(inputs)


def _map(mine: str, letters: Sequence[str]) -> AffineMapAttr:
    dims = [AffineDimExpr(letters.index(letter)) for letter in mine]
    return AffineMapAttr(AffineMap(len(letters), 0, tuple(dims)))


def static_extent(value: SSAValue, dim: int) -> int | None:
    """The extent of a dimension if the type says it."""
    type_ = ranked_tensor(value.type)
    if type_ is None or type_.get_shape()[dim] == DYNAMIC_INDEX:
        return None
    return type_.get_shape()[dim]


def bytes_of(value: SSAValue) -> int:
    """The bytes of an element."""
    return 1 if str(element_type(value.type)) == "i8" else 2
