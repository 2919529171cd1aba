"""Programs of row kernels: a part of a row times columns of a matrix; groups of rows times a vector."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from sparsecc.dialects.tile import blocks
from sparsecc.formats import row_tables
from sparsecc.formats.row_tables import BINS, GROUP
from sparsecc.passes.tiling.row_kernel import RowKernel

LONG_LANES = 128
"""Lanes along a part of a long row."""


class Segments(RowKernel):
    """One part of a row and ``columns`` columns of X a program, ``positions`` entries a step."""

    layout = row_tables.SEGMENTS
    tables = ("segments",)
    counts = ("segment_count", "slot_count")
    segments, slots = "segments", "slot_count"

    def axes(self) -> list[blocks.Factor]:
        segments = blocks.Factor(f"{self.matrix}.segment_count")
        return [segments, self._factor("t", self.numbers["columns"])]

    def _body(self) -> None:
        b, columns, step = self.b, self.numbers["columns"], self.numbers["positions"]
        segment = b.add_op(blocks.ProgramIdOp(0))
        segment.name_hint = "segment"
        row, lo, hi, parts = self.segment(segment)
        column = b.add_op(arith.MuliOp(b.add_op(blocks.ProgramIdOp(1)), b.index(columns)))
        self.at["t"] = b.add(column, self.lanes(1, columns))
        self.masks["t"] = b.lt(self.at["t"], self.extents["t"])
        self.at["t"].name_hint = "t"

        def body(position: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            terms = self.terms(b.add(position, self.lanes(0, step)), hi)
            return [b.accumulate(carried[0], b.reduce("add", terms, 0))]

        start = self.zeros((1, columns), self.sum)
        (total,) = b.loop_for(lo, hi, step, [start], body, "position")

        def finish(whole: SSAValue, done: SSAValue | None) -> None:
            self.at["n"], self.masks["n"] = row, done
            self._finish(whole)

        self.together(total, segment, parts, finish, 0)


class Vector(RowKernel):
    """Rows times a vector."""

    def _rows(self, row: SSAValue, inside: SSAValue, lanes: int) -> None:
        """The sums of a group of rows, ``lanes`` entries of each at a time, up to the end of the longest."""
        b = self.b
        positions = self.array("positions1")
        lo = b.unsigned(self.load(positions, row, inside))
        hi = b.unsigned(self.load(positions, b.add(row, b.index(1)), inside))
        lo.name_hint, hi.name_hint = "lo", "hi"
        longest = b.reduce("max", b.sub(hi, lo), None)
        zero, longest = b.integers(b.index(0), longest)
        height = b.shape(row)[0]

        def body(done: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            position = b.add(b.add(lo, done), self.lanes(1, lanes))
            return [b.accumulate(carried[0], self.terms(position, hi))]

        start = self.zeros((height, lanes), self.sum)
        (sums,) = b.loop_for(zero, longest, lanes, [start], body, "done")
        self.at["n"], self.masks["n"] = row, inside
        self._finish(b.reduce("add", sums, 1))


class Groups(Vector):
    """``rows`` rows side by side a program, ``lanes`` entries of each a step: for rows of like lengths."""

    layout = row_tables.BINNED

    def axes(self) -> list[blocks.Factor]:
        return [self._factor("n", self.numbers["rows"])]

    def _body(self) -> None:
        b, rows = self.b, self.numbers["rows"]
        first = b.add_op(arith.MuliOp(b.add_op(blocks.ProgramIdOp(0)), b.index(rows)))
        row = b.add(first, self.lanes(0, rows))
        row.name_hint = "row"
        self._rows(row, b.lt(row, self.extents["n"]), self.numbers["lanes"])


class Bins(Vector):
    """A part of a long row, or a group of rows of like lengths a program, as the table of groups says."""

    layout = row_tables.BINNED
    tables = ("groups", "order", "long_segments")
    counts = ("group_count", "long_slot_count")
    segments, slots = "long_segments", "long_slot_count"

    def axes(self) -> list[blocks.Factor]:
        return [blocks.Factor(f"{self.matrix}.group_count")]

    def _body(self) -> None:
        b = self.b
        group = b.add_op(blocks.ProgramIdOp(0))
        group.name_hint = "group"
        kind, first, end = (self.word("groups", GROUP, group, n) for n in range(3))
        kind.name_hint, first.name_hint, end.name_hint = "kind", "begin", "end"
        b.branch_when(b.eq(kind, b.index(0)), lambda: self._part(first))
        for number, (_, rows, lanes) in enumerate(BINS, 1):
            b.branch_when(
                b.eq(kind, b.index(number)),
                lambda rows=rows, lanes=lanes: self._bin(first, end, rows, lanes),
            )

    def _part(self, segment: SSAValue) -> None:
        b = self.b
        row, lo, hi, parts = self.segment(segment)

        def body(position: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            terms = self.terms(b.add(position, self.lanes(1, LONG_LANES)), hi)
            return [b.accumulate(carried[0], terms)]

        start = self.zeros((1, LONG_LANES), self.sum)
        (sums,) = b.loop_for(lo, hi, LONG_LANES, [start], body, "position")

        def finish(whole: SSAValue, done: SSAValue | None) -> None:
            self.at["n"], self.masks["n"] = row, done
            self._finish(whole)

        self.together(b.reduce("add", sums, 1), segment, parts, finish, 1)

    def _bin(self, first: SSAValue, end: SSAValue, rows: int, lanes: int) -> None:
        b = self.b
        at = b.add(first, self.lanes(0, rows))
        inside = b.lt(at, end)
        row = self.load(self.array("order"), at, inside)
        row.name_hint = "row"
        self._rows(row, inside, lanes)
