"""The kernel of a product with a weight whose tiles go to ``tile.dot``: what its forms share.

A program makes ``height`` rows of the weight times ``tokens`` columns of X: ``total`` is ``[rows, tokens]``
whatever the order in memory; loads and stores have offsets of that shape, and Triton turns them as they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    Float32Type,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    VectorType,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from sparsecc.dialects.reading import block_shape, block_type, element_type, strings
from sparsecc.dialects.sparse_tensor.types import ranked_tensor
from sparsecc.dialects.tile import ScheduleAttr, blocks
from sparsecc.kernel import GRID
from sparsecc.passes.sparsification.kernel_arguments import buffer
from sparsecc.passes.tiling.block_builder import BlockBuilder, Shape
from sparsecc.passes.tiling.contraction_view import ContractionView, memory_order
from sparsecc.passes.tiling.epilogues import Epilogue
from sparsecc.passes.tiling.tile_arguments import refuse_large_types

ORDER = "btnk"
CASTS = {
    "arith.extsi": "extsi",
    "arith.trunci": "trunci",
    "arith.sitofp": "sitofp",
    "arith.fptosi": "fptosi",
}
EVEN = 16
"""Extents that are multiples of it make every row begin where wide loads may."""


class DotKernel:
    """Builds ``func.func @name``; a form adds the arrays of its weight and the loop over them."""

    weight_arrays: Sequence[tuple[str, Attribute]] = ()
    """Roles of the weight (without ``inN.``) and the types of their elements."""

    folded = False
    """Whether all programs stand along the first axis of the grid."""
    sized = True
    """Whether it is compiled for the extents that it meets."""

    def __init__(
        self, view: ContractionView, epilogue: Epilogue, result: SSAValue, even: bool
    ) -> None:
        self.view, self.epilogue, self.result, self.even = view, epilogue, result, even
        generic = view.generic
        self.reads = list(
            dict.fromkeys(
                [
                    (generic.inputs[view.x], view.letters_at(view.x)),
                    (generic.inputs[view.weight], view.letters_at(view.weight)),
                    *epilogue.operands,
                ]
            )
        )
        known = list(generic.inputs)
        self.reads.sort(key=lambda r: known.index(r[0]) if r[0] in known else len(known))
        refuse_large_types([*(value.type for value, _ in self.reads), result.type])
        self.letters = [c for c in ORDER if c in view.letters.values()]
        self.roles: list[str] = []
        self.types: list[Attribute] = []
        self.values: dict[str, SSAValue] = {}
        self.extents: dict[str, SSAValue] = {}
        self.extent_roles: dict[str, str] = {}
        self.at: dict[str, SSAValue] = {}
        self.masks: dict[str, SSAValue | None] = {}
        self.b: BlockBuilder

    @property
    def inputs(self) -> list[SSAValue]:
        """The tensors of the launch."""
        return [value for value, _ in self.reads]

    def owner(self, value: SSAValue, letters: str) -> str:
        return f"in{self.reads.index((value, letters))}"

    # -- the function --------------------------------------------------------------------------

    def kernel(self, name: str, schedules: Sequence[ScheduleAttr], target: str) -> func.FuncOp:
        """The function, with the schedules that it may have: the first is chosen."""
        self.numbers = schedules[0].numbers()
        self._arguments()
        fn = func.FuncOp(name, FunctionType.from_lists(self.types, []))
        block = fn.body.block
        for role, argument in zip(self.roles, block.args, strict=True):
            argument.name_hint = role.replace(".", "_")
            self.values[role] = argument
        self.b = BlockBuilder(block)
        for letter, role in self.extent_roles.items():
            static = self._static(letter)
            self.extents[letter] = self.values[role] if static is None else self.b.index(static)
        self._body()
        self.b.do(func.ReturnOp())
        self._attributes(fn, schedules, target)
        self._drop_unused(fn)
        return fn

    def fold(self, many: bool) -> None:
        """Put all programs along the first axis, if there are ``many`` of them, or types say so."""
        extents = [self._static(letter) or 0 for letter in "tb"]
        self.folded = many or any(n > most for n, most in zip(extents, GRID[1:], strict=True))

    def program(self, axis: int) -> SSAValue:
        """The program's number along an axis of :meth:`axes`, the first of which changes fastest."""
        b, axes = self.b, self.axes()
        if not self.folded or len(axes) == 1:
            return b.add_op(blocks.ProgramIdOp(axis))
        number = b.once((blocks.ProgramIdOp, 0), lambda: blocks.ProgramIdOp(0))
        for factor in axes[:axis]:
            number = b.add_op(arith.DivSIOp(*b.integers(number, self._count(factor))))
        if axis + 1 < len(axes):
            number = b.add_op(arith.RemSIOp(*b.integers(number, self._count(axes[axis]))))
        return number

    def _count(self, factor: blocks.Factor) -> SSAValue:
        """What a factor of the grid comes to."""
        b = self.b
        if not factor.extent:
            return b.index(factor.size)
        extent = self.values[factor.extent]
        return (
            extent
            if factor.size == 1
            else b.div(b.add(extent, b.index(factor.size - 1)), factor.size)
        )

    def _body(self) -> None:
        self._place()
        self._finish(self.total())

    def total(self) -> SSAValue:
        """The sums of the program's block, [rows, tokens] in the accumulator's type."""
        raise NotImplementedError

    def block_rows(self) -> tuple[int, int]:
        """Rows of a program, and of the tile that holds them (a power of two)."""
        raise NotImplementedError

    def _arguments(self) -> None:
        view, generic = self.view, self.view.generic
        weight = (generic.inputs[view.weight], view.letters_at(view.weight))
        for number, (value, letters) in enumerate(self.reads):
            if (value, letters) == weight:
                self._request(
                    [(f"in{number}.{role}", buffer(kind)) for role, kind in self.weight_arrays]
                )
            else:
                self._request([(f"in{number}.values", buffer(element_type(value.type)))])
        self._request([("out.values", buffer(element_type(self.result.type)))])
        for letter in self.letters:
            value, letters = next(r for r in self.reads if letter in r[1])
            role = f"{self.owner(value, letters)}.dim{letters.index(letter)}"
            self.extent_roles[letter] = role
            self._request([(role, i32)])

    def _request(self, pairs: Sequence[tuple[str, Attribute]]) -> None:
        for role, type_ in pairs:
            self.roles.append(role)
            self.types.append(type_)

    def _static(self, letter: str) -> int | None:
        """An extent that a type says."""
        for value, letters in self.reads:
            type_ = ranked_tensor(value.type)
            if letter in letters and type_ is not None:
                extent = type_.get_shape()[letters.index(letter)]
                if extent != DYNAMIC_INDEX:
                    return extent
        return None

    def _place(self) -> None:
        """Which block of the result a program owns."""
        b, tokens = self.b, self.numbers["tokens"]
        rows, height = self.block_rows()
        self.block_row = self.program(0)
        first = b.add_op(arith.MuliOp(self.block_row, b.index(rows)))
        self.row = self.lanes(0, height)
        self.at["n"] = b.add(first, self.row)
        self.masks["n"] = b.lt(self.at["n"], self.extents["n"])
        if rows < height:
            self.masks["n"] = b.both(self.masks["n"], b.lt(self.row, b.index(rows)))
        column = b.add_op(arith.MuliOp(self.program(1), b.index(tokens)))
        self.at["t"] = b.add(column, self.lanes(1, tokens))
        self.masks["t"] = b.lt(self.at["t"], self.extents["t"])
        self.at["n"].name_hint, self.at["t"].name_hint = "n", "t"
        if "b" in self.letters:
            self.at["b"] = self.program(2)
            self.at["b"].name_hint = "batch"

    def lanes(self, axis: int, count: int) -> SSAValue:
        """0, 1, 2 … along an axis."""
        shape = (count, 1) if axis == 0 else (1, count)
        return self.b.once(
            (blocks.IotaOp, axis, count), lambda: blocks.IotaOp(axis, VectorType(i32, shape))
        )

    def offset(self, order: str, at: dict[str, SSAValue]) -> SSAValue:
        """Where an element lies in a dense tensor, by the letters of its dimensions in memory's order."""
        b = self.b
        found = b.index(0)
        for letter in order:
            found = b.add(b.mul(found, self.extents[letter]), at[letter])
        return found

    def load(self, array: SSAValue, offsets: SSAValue, *masks: SSAValue | None) -> SSAValue:
        """Elements at offsets, in the joint shape of those and the masks."""
        b = self.b
        mask: SSAValue | None = None
        for other in masks:
            mask = b.both(mask, other)
        if mask is not None:
            offsets, mask = b.meet(offsets, mask)
        return b.add_op(blocks.LoadOp(array, offsets, mask))

    def load_x(self, k: SSAValue, *masks: SSAValue | None) -> SSAValue:
        """X at coordinates along axis 0 and the program's tokens along axis 1."""
        view = self.view
        value, letters = view.generic.inputs[view.x], view.letters_at(view.x)
        order = memory_order(value.type, letters)
        array = self.values[f"{self.owner(value, letters)}.values"]
        inside = self.b.lt(k, self.extents["k"])
        return self.load(
            array, self.offset(order, self.at | {"k": k}), inside, self.masks["t"], *masks
        )

    def weight_array(self, role: str) -> SSAValue:
        view = self.view
        owner = self.owner(view.generic.inputs[view.weight], view.letters_at(view.weight))
        return self.values[f"{owner}.{role}"]

    def zeros(self, shape: Shape, element: Attribute) -> SSAValue:
        return self.b.fit(self.b.zero(element), shape)

    # -- the epilogue --------------------------------------------------------------------------

    def _finish(self, total: SSAValue) -> None:
        """The region of the epilogue on blocks, and the store."""
        b, epilogue = self.b, self.epilogue
        element = epilogue.finish()
        known: dict[SSAValue, SSAValue] = {epilogue.block.args[0]: total}
        for argument, (tensor, letters) in zip(
            epilogue.block.args[1:], epilogue.operands, strict=True
        ):
            order = memory_order(tensor.type, letters) if letters else ""
            array = self.values[f"{self.owner(tensor, letters)}.values"]
            known[argument] = self.load(
                array, self.offset(order, self.at), *(self.masks.get(c) for c in letters)
            )
        for op in epilogue.block.ops:
            known[op.results[0]] = self._copied(op, [known[v] for v in op.operands])
        value = b.fit(known[element], block_shape(total.type))
        order = memory_order(self.result.type, epilogue.letters)
        inside = b.both(self.masks.get("n"), self.masks.get("t"))
        offsets = self.offset(order, self.at)
        if inside is None:
            value, offsets = b.meet(value, offsets)
        else:
            value, offsets, inside = b.meet(value, offsets, inside)
        b.do(blocks.StoreOp(value, self.values["out.values"], offsets, inside))

    def _copied(self, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
        """A scalar operation on blocks."""
        b = self.b
        if isinstance(op, arith.ConstantOp):
            return b.constant(cast("IntegerAttr[IntegerType] | FloatAttr", op.value))
        met = b.meet(*operands)
        if isinstance(op, arith.CmpiOp | arith.CmpfOp):
            names = (
                blocks.INTEGER_PREDICATES
                if isinstance(op, arith.CmpiOp)
                else blocks.FLOAT_PREDICATES
            )
            return b.add_op(blocks.CompareOp(names[op.predicate.value.data], *met))
        if isinstance(op, arith.SelectOp):
            return b.select(*met)
        kind = CASTS.get(op.name)
        if kind is not None:
            return b.add_op(blocks.CastOp(kind, met[0], op.results[0].type))
        wanted = block_type(b.shape(met[0]), op.results[0].type)
        return b.add_op(
            op.create(operands=met, result_types=[wanted], properties=dict(op.properties))
        )

    # -- attributes ----------------------------------------------------------------------------

    def _attributes(self, fn: func.FuncOp, schedules: Sequence[ScheduleAttr], target: str) -> None:
        attributes = fn.attributes
        attributes["tile.kernel"] = UnitAttr()
        attributes["tile.form"] = StringAttr("blocks")
        attributes["tile.target"] = StringAttr(target)
        attributes["tile.schedule"] = schedules[0]
        attributes["tile.space"] = ArrayAttr(list(schedules))
        attributes["tile.grid"] = blocks.GridAttr.of(
            [self.axes()] if self.folded else [[axis] for axis in self.axes()]
        )
        attributes["iteration.assembly"] = StringAttr("dense")
        attributes["iteration.covers"] = UnitAttr()
        names = strings(self.view.generic.attributes.get("sparsecc.indices"))
        loops = {letter: loop for loop, letter in self.view.letters.items()}
        named = ArrayAttr([StringAttr(names[loops[c]] if names else c) for c in self.letters])
        attributes["iteration.loops"] = attributes["iteration.order"] = named
        if self.sized:
            sizes = [names[loops[c]] if names else c for c in "tnk"]
            attributes["tile.sizes"] = ArrayAttr([StringAttr(name) for name in sizes])
        spelled = [*(letters for _, letters in self.reads), self.epilogue.letters]
        attributes["iteration.maps"] = ArrayAttr(
            [
                AffineMapAttr(
                    AffineMap(
                        len(self.letters),
                        0,
                        tuple(AffineDimExpr(self.letters.index(c)) for c in mine),
                    )
                )
                for mine in spelled
            ]
        )

    def axes(self) -> list[blocks.Factor]:
        """How many programs there are along each axis."""
        axes = [self._factor("n", self.block_rows()[0]), self._factor("t", self.numbers["tokens"])]
        return [*axes, self._factor("b", 1)] if "b" in self.letters else axes

    def _factor(self, letter: str, size: int) -> blocks.Factor:
        static = self._static(letter)
        if static is not None:
            return blocks.Factor("", -(-static // size))
        return blocks.Factor(self.extent_roles[letter], size)

    def _drop_unused(self, fn: func.FuncOp) -> None:
        """Erase constants and arguments that nothing reads; say which arguments wide loads rely on."""
        entry = fn.body.block
        for op in reversed(list(entry.ops)):
            if isinstance(op, arith.ConstantOp) and op.result.first_use is None:
                op.detach()
                op.erase()
        needed: set[str] = set()
        for key in ("tile.grid", "tile.work"):
            if isinstance(products := fn.attributes.get(key), blocks.GridAttr):
                needed |= {f.extent for axis in products.factors() for f in axis}
        for number in reversed(range(len(self.roles))):
            if entry.args[number].first_use is None and self.roles[number] not in needed:
                entry.erase_arg(entry.args[number])
                del self.roles[number]
        fn.function_type = FunctionType.from_lists([a.type for a in entry.args], [])
        fn.attributes["tile.args"] = ArrayAttr([StringAttr(r) for r in self.roles])
        fn.attributes["tile.multiples"] = ArrayAttr([StringAttr(r) for r in self.multiples()])

    def multiples(self) -> list[str]:
        """The roles of arguments that are multiples of 16."""
        extents = {self.extent_roles[c] for c in self._contiguous()} if self.even else set[str]()
        pointers = [r for r in self.roles if ".dim" not in r]
        return pointers + [r for r in self.roles if r in extents]

    def _contiguous(self) -> set[str]:
        """The letters of the innermost dimensions of X and the result."""
        view = self.view
        x = memory_order(view.generic.inputs[view.x].type, view.letters_at(view.x))
        return {x[-1], memory_order(self.result.type, self.epilogue.letters)[-1]}


def accumulator_type(view: ContractionView) -> Attribute:
    """What products are summed in."""
    return IntegerType(32) if view.accumulator == "i32" else Float32Type()
