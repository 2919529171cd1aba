"""What kernels on sparse rows share: tables of the matrix, sums over its entries, sums that programs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    AnyFloat,
    DictionaryAttr,
    FixedBitwidthType,
    IntegerType,
    Signedness,
    StringAttr,
    UnitAttr,
    i32,
)
from xdsl.ir import Attribute, SSAValue

from sparsecc.dialects.reading import block_shape, block_type, element_type
from sparsecc.dialects.tile import ScheduleAttr, blocks, sharing
from sparsecc.formats import Format
from sparsecc.formats.row_tables import SEGMENT
from sparsecc.passes.sparsification.kernel_arguments import buffer, width_type
from sparsecc.passes.tiling.block_builder import BlockBuilder
from sparsecc.passes.tiling.contraction_view import ContractionView
from sparsecc.passes.tiling.dot_kernel import DotKernel
from sparsecc.passes.tiling.epilogues import Epilogue
from sparsecc.passes.tiling.row_weights import sum_type

INT32_MAX = 2**31 - 1
TOGETHER = 256
"""Elements of slots that the last of a row's parts reads at a time: more take registers that all programs lack."""


def index_type(width: int) -> Attribute:
    """Positions or coordinates of a width; narrow ones are unsigned."""
    if 0 < width < 32:
        return IntegerType(width, Signedness.UNSIGNED)
    return width_type(width)


def matrix_arrays(fmt: Format, element: Attribute) -> list[tuple[str, Attribute]]:
    """The arrays of a matrix by role, with the types of their elements."""
    return [
        ("positions1", index_type(fmt.pos_width)),
        ("coordinates1", index_type(fmt.crd_width)),
        ("values", element),
    ]


def widened(b: BlockBuilder, value: SSAValue, wanted: Attribute) -> SSAValue:
    """Loaded elements in the type of their sums."""
    source = element_type(value.type)
    if source == wanted:
        return value
    if isinstance(source, AnyFloat):
        return b.add_op(arith.ExtFOp(value, block_type(block_shape(value.type), wanted)))
    return b.add_op(blocks.CastOp("extsi", value, wanted))


def times(b: BlockBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """The product of elements."""
    x, y = b.meet(x, y)
    return b.add_op(
        arith.MulfOp(x, y) if isinstance(element_type(x.type), AnyFloat) else arith.MuliOp(x, y)
    )


class RowKernel(DotKernel):
    """A product with a matrix of sparse rows; a form says what a program does."""

    sized = False
    layout = ""
    tables: Sequence[str] = ()
    counts: Sequence[str] = ()
    """Tables that the form reads, and numbers that count what is in them."""
    segments = slots = ""
    """Those of segments and of slots among them."""

    def __init__(
        self, view: ContractionView, epilogue: Epilogue, result: SSAValue, even: bool, fmt: Format
    ) -> None:
        super().__init__(view, epilogue, result, even)
        self.fmt = fmt
        self.sum = sum_type(view.accumulator)
        matrix = view.generic.inputs[view.weight]
        self.matrix = self.owner(matrix, view.letters_at(view.weight))
        self.weight_arrays = (
            *((table, i32) for table in self.tables),
            *matrix_arrays(fmt, element_type(matrix.type)),
        )

    def _arguments(self) -> None:
        super()._arguments()
        self._request([(f"{self.matrix}.{count}", i32) for count in self.counts])
        if self.slots:
            self._request([("work.partial", buffer(self.sum)), ("work.counters", buffer(i32))])

    def _attributes(self, fn: func.FuncOp, schedules: Sequence[ScheduleAttr], target: str) -> None:
        super()._attributes(fn, schedules, target)
        fn.attributes["tile.packs"] = DictionaryAttr({self.matrix: StringAttr(self.layout)})
        if self.slots:
            assert isinstance(self.sum, FixedBitwidthType)
            size = self.sum.bitwidth // 8
            slots = blocks.Factor(f"{self.matrix}.{self.slots}")
            sums, counters = [blocks.Factor("", size), slots], [blocks.Factor("", 4), slots]
            if "t" in self.letters:
                sums.append(self._factor("t", 1))
                counters.append(self._factor("t", self.numbers["columns"]))
            fn.attributes["tile.work"] = blocks.GridAttr.of([sums, counters])

    def multiples(self) -> list[str]:
        if not self.even or "t" not in self.letters:
            return []
        view = self.view
        x = self.owner(view.generic.inputs[view.x], view.letters_at(view.x))
        wide = {f"{x}.values", "out.values", "work.partial", self.extent_roles["t"]}
        return [role for role in self.roles if role in wide]

    # -- sums ----------------------------------------------------------------------------------

    def array(self, role: str) -> SSAValue:
        return self.values[f"{self.matrix}.{role}"]

    def word(self, table: str, width: int, number: SSAValue, at: int) -> SSAValue:
        """A word of a row of a table."""
        b = self.b
        place = b.add(b.mul(number, b.index(width)), b.index(at))
        return b.add_op(blocks.LoadOp(self.array(table), place, None))

    def segment(self, number: SSAValue) -> list[SSAValue]:
        """The row of a segment, where it starts and ends, and how many parts the row has."""
        words = [self.word(self.segments, SEGMENT, number, at) for at in range(4)]
        for word, name in zip(words, ("row", "lo", "hi", "parts"), strict=True):
            word.name_hint = name
        return words

    def offset(self, order: str, at: dict[str, SSAValue]) -> SSAValue:
        extents = [self._static(letter) for letter in order]
        size = prod(extent for extent in extents if extent is not None)
        if None in extents or size > INT32_MAX:
            return super().offset(order, at)
        # Known to fit: products with extents need no 64 bits.
        b = self.b
        found: SSAValue | None = None
        for letter in order:
            place = at[letter]
            if found is not None:
                row = arith.MuliOp(*b.integers(found, self.extents[letter]))
                place = b.add(b.add_op(row), place)
            found = place
        return b.index(0) if found is None else found

    def columns(self, column: SSAValue, width: int) -> None:
        """The program's columns of X, from the first on; no mask where all programs have ``width`` of them."""
        b = self.b
        self.at["t"] = b.add(column, self.lanes(1, width))
        extent = self._static("t")
        whole = extent is not None and extent % width == 0
        self.masks["t"] = None if whole else b.lt(self.at["t"], self.extents["t"])
        self.at["t"].name_hint = "t"

    def terms(self, position: SSAValue, end: SSAValue | None) -> SSAValue:
        """Products of entries, of those before an end if there is one, with what X holds for their coordinates."""
        inside = None if end is None else self.b.lt(position, end)
        return self.products(*self.entries(position, inside), inside)

    def entries(self, position: SSAValue, inside: SSAValue | None) -> tuple[SSAValue, SSAValue]:
        """The coordinates and values of entries."""
        column = self.b.unsigned(self.load(self.array("coordinates1"), position, inside))
        column.name_hint = "column"
        return column, self.load(self.array("values"), position, inside)

    def products(self, column: SSAValue, value: SSAValue, inside: SSAValue | None) -> SSAValue:
        """Entries times what X holds for their coordinates."""
        b, view = self.b, self.view
        value = widened(b, value, self.sum)
        x, letters = view.generic.inputs[view.x], view.letters_at(view.x)
        at = self.offset(letters if len(letters) == 1 else "kt", self.at | {"k": column})
        masks = [self.masks["t"]] if "t" in letters else []
        found = self.load(self.values[f"{self.owner(x, letters)}.values"], at, inside, *masks)
        return times(b, value, widened(b, found, self.sum))

    def together(
        self,
        total: SSAValue,
        segment: SSAValue,
        parts: SSAValue,
        then: Callable[[SSAValue, SSAValue | None], None],
        axis: int,
    ) -> None:
        """The sum of a row from those of its parts, which lie along ``axis`` when the last one reads them."""
        b = self.b
        shared = b.lt(b.index(1), parts)
        shape = block_shape(total.type)
        kind = total.type
        step = max(1, min(32, TOGETHER // max(shape)))

        def put() -> Sequence[SSAValue]:
            first = self.word(self.segments, SEGMENT, segment, 4)
            number = self.word(self.segments, SEGMENT, segment, 5)
            first.name_hint, number.name_hint = "first", "number"
            partial, counters = self.values["work.partial"], self.values["work.counters"]
            masks = [self.masks["t"]] if "t" in self.letters else []
            place, mask = (
                self._slot(b.add(first, number)),
                b.both(None, masks[0] if masks else None),
            )
            met = b.meet(total, place) if mask is None else b.meet(total, place, mask)
            b.do(blocks.StoreOp(met[0], partial, met[1], met[2] if mask is not None else None))
            counter = first
            if "t" in self.letters:
                column_blocks = b.div(
                    b.add(self.extents["t"], b.index(self.numbers["columns"] - 1)),
                    self.numbers["columns"],
                )
                counter = b.add(b.mul(first, column_blocks), self.program(1))
            last = b.add_op(sharing.ArriveOp(counters, counter, parts))
            last.name_hint = "last"

            def read(at: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                part = b.add(at, self.lanes(axis, step))
                inside = b.lt(part, parts)
                slot = self._slot(b.add(first, part))
                mask = b.both(inside, masks[0] if masks else None)
                assert mask is not None
                slot, mask = b.meet(slot, mask)
                load = blocks.LoadOp(partial, slot, mask)
                load.attributes[sharing.SHARED] = UnitAttr()
                return [b.accumulate(carried[0], b.reduce("add", b.add_op(load), axis))]

            nothing = self.zeros(shape, self.sum)
            (whole,) = b.branch(
                last,
                lambda: b.loop_for(b.index(0), parts, step, [nothing], read, "part"),
                lambda: [nothing],
                [kind],
            )
            return [whole, last]

        alone = b.lt(parts, b.index(2))
        whole, done = b.branch(
            shared, put, lambda: [total, alone], [kind, element_type(alone.type)]
        )
        done.name_hint = "done"
        then(whole, done)

    def _slot(self, slot: SSAValue) -> SSAValue:
        """Where a slot's sums lie."""
        b = self.b
        return b.add(b.mul(slot, self.extents["t"]), self.at["t"]) if "t" in self.letters else slot
