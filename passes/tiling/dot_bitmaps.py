"""The loop of dot kernels with a weight of bits and packed values: its tiles are decompressed in registers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import SSAValue

from sparsecc.dialects.reading import element_type
from sparsecc.dialects.tile import blocks
from sparsecc.passes.tiling.contraction_view import ContractionView
from sparsecc.passes.tiling.dot_kernel import DotKernel, accumulator_type
from sparsecc.passes.tiling.epilogues import Epilogue

TILE = 64
"""Rows and columns of a tile of the layout ``bitmap``."""
BITS = 32
"""Of a word: a dot takes one word of each row."""
WORDS = TILE // BITS


class Bitmaps(DotKernel):
    """A weight in the layout ``bitmap``: a program has ``rows`` of it, and goes along k a tile a step.

    Element c of a word stands where the word's values begin, behind as many as there are bits below c."""

    def __init__(
        self, view: ContractionView, epilogue: Epilogue, result: SSAValue, even: bool
    ) -> None:
        super().__init__(view, epilogue, result, even)
        element = element_type(view.generic.inputs[view.weight].type)
        self.weight_arrays = (
            ("words", i32), ("starts", IntegerType(16)), ("offsets", i32), ("values", element),
        )  # fmt: skip

    def block_rows(self) -> tuple[int, int]:
        return self.numbers["rows"], self.numbers["rows"]

    def total(self) -> SSAValue:
        b = self.b
        inside, lanes = self.masks["n"], self.lanes(1, BITS)
        across = b.div(b.add(self.extents["k"], b.index(TILE - 1)), TILE)
        across.name_hint = "across"
        down, row = b.div(self.at["n"], TILE), b.mod(self.at["n"], TILE)
        if self.view.packed.batch is not None:
            height = b.div(b.add(self.extents["n"], b.index(TILE - 1)), TILE)
            down = b.add(b.mul(self.at["b"], height), down)
        leftmost = b.mul(down, across)
        start = self.zeros(
            (self.numbers["rows"], self.numbers["tokens"]), accumulator_type(self.view)
        )

        def body(tile: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            number = b.add(leftmost, tile)
            offset = self.load(self.weight_array("offsets"), number, inside)
            number.name_hint, offset.name_hint = "number", "offset"
            sums = carried[0]
            for word in range(WORDS):
                at = b.add(b.mul(row, b.index(WORDS)), b.index(word))
                at = b.add(b.mul(number, b.index(TILE * WORDS)), at)
                bits = self.load(self.weight_array("words"), at, inside)
                before = b.unsigned(self.load(self.weight_array("starts"), at, inside))
                place = b.add(b.add(offset, before), b.bits_below(bits, lanes))
                a = self.load(self.weight_array("values"), place, b.bit(bits, lanes))
                k = b.add(b.mul(tile, b.index(TILE)), b.index(word * BITS))
                x = self.load_x(b.add(k, self.lanes(0, BITS)))
                bits.name_hint, before.name_hint, place.name_hint = "bits", "before", "place"
                a.name_hint, x.name_hint = "a", "x"
                sums = b.add_op(blocks.DotOp(a, x, sums))
            return [sums]

        return b.loop_for(b.index(0), across, 1, [start], body, "tile")[0]
