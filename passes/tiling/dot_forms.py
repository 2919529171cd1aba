"""The loops of dot kernels: over the blocks of a row, and over groups of four that are spread in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import Attribute, Operation, SSAValue

from sparsecc.dialects.reading import block_type, element_type, integer_width
from sparsecc.dialects.sparse_tensor.types import format_of
from sparsecc.dialects.tile import blocks
from sparsecc.passes.tiling.contraction_view import ContractionView
from sparsecc.passes.tiling.dot_kernel import DotKernel, accumulator_type
from sparsecc.passes.tiling.dot_weights import BlockWeight
from sparsecc.passes.tiling.epilogues import Epilogue
from sparsecc.passes.tiling.problem import power_above
from sparsecc.passes.tiling.row_kernel import index_type

LEAST = 16
"""The smallest tile of ``tile.dot`` along rows and tokens."""


def least_depth(dtype: str) -> int:
    """The smallest tile along k: 32 bytes."""
    return 32 if dtype == "i8" else 16


class BlockRows(DotKernel):
    """One row of blocks a program; ``join`` blocks beside each other make one dot.

    A block whose extents are no powers of two lies in the next larger tile, whose rest is masked."""

    def __init__(
        self,
        view: ContractionView,
        epilogue: Epilogue,
        result: SSAValue,
        even: bool,
        weight: BlockWeight,
    ) -> None:
        super().__init__(view, epilogue, result, even)
        self.weight = weight
        type_ = view.generic.inputs[view.weight].type
        fmt = format_of(type_)
        assert fmt is not None
        self.weight_arrays = (
            ("positions1", index_type(fmt.pos_width)),
            ("coordinates1", index_type(fmt.crd_width)),
            ("values", element_type(type_)),
        )

    def block_rows(self) -> tuple[int, int]:
        height = self.weight.height
        return height, max(LEAST, power_above(height))

    def total(self) -> SSAValue:
        b, w, join = self.b, self.weight, self.numbers["join"]
        _, height = self.block_rows()
        width = power_above(w.width)
        if width * join < least_depth(self.view.dtype):
            width = least_depth(self.view.dtype) // join
        depth = width * join
        positions = self.weight_array("positions1")
        lo = self._index(self.load(positions, self.block_row))
        hi = self._index(self.load(positions, b.add(self.block_row, b.index(1))))
        lo.name_hint, hi.name_hint = "lo", "hi"
        start = self.zeros((height, self.numbers["tokens"]), accumulator_type(self.view))

        def body(position: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            # Along k, each of the joined blocks has ``width`` places.
            across, down = self.lanes(1, depth), self.lanes(0, depth)
            p, k, inside = self._within(position, across, width, join, hi)
            row_inside = None if w.height == height else b.lt(self.row, b.index(w.height))
            at = b.add(b.mul(p, b.index(w.height * w.width)), b.mul(self.row, b.index(w.width)))
            a = self.load(self.weight_array("values"), b.add(at, k), inside, row_inside)
            p, k, inside = self._within(position, down, width, join, hi)
            columns = self.weight_array("coordinates1")
            column = self._index(self.load(columns, p, inside if join > 1 else None))
            column.name_hint = "column"
            x = self.load_x(b.add(b.mul(column, b.index(w.width)), k), inside)
            return [b.add_op(blocks.DotOp(a, x, carried[0]))]

        return b.loop_for(lo, hi, join, [start], body, "position")[0]

    def _index(self, stored: SSAValue) -> SSAValue:
        """A stored position or coordinate as i32: there are fewer than 2**31 blocks and columns."""
        b, width = self.b, integer_width(element_type(stored.type))
        if width == 32:
            return stored
        return b.cast("extui" if width < 32 else "trunci", stored, i32)

    def _within(
        self, position: SSAValue, lanes: SSAValue, width: int, join: int, end: SSAValue
    ) -> tuple[SSAValue, SSAValue, SSAValue | None]:
        """Of lanes along k: the position of the block, the place in it, and whether there is one."""
        b, k = self.b, lanes
        inside: SSAValue | None = None
        if join > 1:
            by = b.fit(b.index(width), b.shape(lanes))
            position = b.add(position, b.add_op(arith.DivSIOp(lanes, by)))
            k = b.add_op(arith.RemSIOp(lanes, by))
            inside = b.lt(position, end)
        if self.weight.width < width:
            inside = b.both(inside, b.lt(k, b.index(self.weight.width)))
        return position, k, inside


class Groups(DotKernel):
    """A 2:4 weight in packed units, spread in registers: of each group of four, element i goes to the i-th of four
    tiles, which is multiplied by every fourth row of X.

    A word of the packed values holds the two values of a group, its nibble of metadata says which two."""

    def __init__(
        self, view: ContractionView, epilogue: Epilogue, result: SSAValue, even: bool
    ) -> None:
        super().__init__(view, epilogue, result, even)
        self.weight_arrays = (("packed", i32),)

    def block_rows(self) -> tuple[int, int]:
        return self.numbers["rows"], self.numbers["rows"]

    def total(self) -> SSAValue:
        b = self.b
        rows, tokens, groups = self.numbers["rows"], self.numbers["tokens"], self.numbers["groups"]
        element = element_type(self.view.generic.inputs[self.view.weight].type)
        units = b.add_op(arith.DivSIOp(b.add(self.extents["k"], b.index(63)), b.index(64)))
        units.name_hint = "units"
        start = self.zeros((rows, tokens), accumulator_type(self.view))
        n, j = self.at["n"], self.lanes(1, groups)
        tile = b.add_op(arith.DivSIOp(n, b.fit(b.index(16), b.shape(n))))
        if self.view.packed.batch is not None:
            height = b.div(b.add(self.extents["n"], b.index(15)), 16)
            tile = b.add(b.mul(self.at["b"], height), tile)
        row = self.rest(n, 16)
        all_groups = b.add_op(arith.MuliOp(units, b.index(16)))

        def body(first: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            group = b.add(first, j)
            inside = b.both(b.lt(group, all_groups), self.masks["n"])
            unit = self.quotient(group, 16)
            base = b.mul(b.add(b.mul(tile, units), unit), b.index(288))
            value_at, metadata_at, shift = self.places(row, self.rest(group, 16))
            packed = self.weight_array("packed")
            word = self.load(packed, b.add(base, value_at), inside)
            marks = self.load(packed, b.add(base, metadata_at), inside)
            nibble = self.bits(self.shifted(marks, shift), 15)
            low = self.half(word, element)
            high = self.half(self.shifted(word, b.index(16)), element)
            i0, i1 = self.bits(nibble, 3), self.shifted(nibble, b.index(2))
            sums = carried[0]
            k = self.pair(arith.MuliOp, b.add(first, self.lanes(0, groups)), b.index(4))
            zero = b.fit(b.zero(element), b.shape(word))
            for i in range(4):
                number = b.index(i)
                tile_i = b.select(b.eq(i1, number), high, zero)
                tile_i = b.select(b.eq(i0, number), low, tile_i)
                x = self.load_x(b.add(k, number))
                sums = b.add_op(blocks.DotOp(tile_i, x, sums))
            return [sums]

        return b.loop_for(b.index(0), all_groups, groups, [start], body, "group")[0]

    def places(self, row: SSAValue, group: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Of a row and a group of a unit of 16 x 64: the word of its values, that of its metadata, and the nibble's
        first bit. The order is the instruction's: rows g and g + 8 share a lane, so do groups 4 apart in a step."""
        b = self.b
        g, upper = self.rest(row, 8), self.quotient(row, 8)
        step, eight = self.quotient(group, 8), self.rest(group, 8)
        far, q = self.quotient(eight, 4), self.rest(eight, 4)
        value = self.sum((step, 128), (g, 16), (q, 4), (far, 2), (upper, 1))
        metadata = b.add(self.sum((g, 4), (step, 2), (far, 1)), b.index(256))
        shift = self.sum((upper, 16), (q, 4))
        return value, metadata, shift

    def sum(self, *terms: tuple[SSAValue, int]) -> SSAValue:
        b = self.b
        found: SSAValue | None = None
        for value, factor in terms:
            if factor > 1:
                value = self.pair(arith.MuliOp, value, b.index(factor))
            found = value if found is None else b.add(found, value)
        assert found is not None
        return found

    def pair(
        self, make: Callable[[SSAValue, SSAValue], Operation], a: SSAValue, b: SSAValue
    ) -> SSAValue:
        x, y = self.b.meet(a, b)
        return self.b.add_op(make(x, y))

    def quotient(self, value: SSAValue, by: int) -> SSAValue:
        return self.pair(arith.DivSIOp, value, self.b.index(by))

    def rest(self, value: SSAValue, by: int) -> SSAValue:
        return self.pair(arith.RemSIOp, value, self.b.index(by))

    def shifted(self, value: SSAValue, by: SSAValue) -> SSAValue:
        return self.pair(arith.ShRUIOp, value, by)

    def bits(self, value: SSAValue, mask: int) -> SSAValue:
        return self.pair(arith.AndIOp, value, self.b.index(mask))

    def half(self, word: SSAValue, element: Attribute) -> SSAValue:
        """The low 16 bits of a word as a float."""
        b = self.b
        low = b.add_op(blocks.CastOp("trunci", word, IntegerType(16)))
        return b.add_op(arith.BitcastOp(low, self.like(low, element)))

    def like(self, value: SSAValue, element: Attribute) -> Attribute:
        return block_type(self.b.shape(value), element)
