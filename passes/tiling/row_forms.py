"""Programs of row kernels: a part of a row times columns of a matrix; groups of rows times a vector."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from sparsecc.dialects.tile import blocks
from sparsecc.formats import row_tables
from sparsecc.formats.row_tables import BINS, GROUP
from sparsecc.passes.tiling.row_kernel import RowKernel

LINE = 32
"""Entries whose coordinates lie in one line of memory."""


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
        segment = self.program(0)
        segment.name_hint = "segment"
        row, lo, hi, parts = self.segment(segment)
        column = b.add_op(arith.MuliOp(self.program(1), b.index(columns)))
        self.columns(column, columns)
        total = self._total(lo, hi, columns, step)

        def finish(whole: SSAValue, done: SSAValue | None) -> None:
            self.at["n"], self.masks["n"] = row, done
            self._finish(whole)

        self.together(total, segment, parts, finish, 0)

    def _total(self, lo: SSAValue, hi: SSAValue, columns: int, step: int) -> SSAValue:
        """The sums of entries in [lo, hi), ``step`` of them at a time."""
        b = self.b

        def body(position: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            terms = self.terms(b.add(position, self.lanes(0, step)), hi)
            return [b.accumulate(carried[0], b.reduce("add", terms, 0))]

        start = self.zeros((1, columns), self.sum)
        return b.loop_for(lo, hi, step, [start], body, "position")[0]


class Sweeps(Segments):
    """Segments in the order in which they read rows of X. Entries are read a step ahead, whole steps have no masks."""

    tables = ("sweeps",)
    segments = "sweeps"

    def _total(self, lo: SSAValue, hi: SSAValue, columns: int, step: int) -> SSAValue:
        b, lane = self.b, self.lanes(0, step)

        def entries(position: SSAValue) -> Sequence[SSAValue]:
            at = b.add(position, lane)
            return self.entries(at, b.lt(at, hi))

        def added(old: SSAValue, terms: SSAValue) -> SSAValue:
            return b.accumulate(old, b.reduce("add", terms, 0))

        def whole(position: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            sums, column, value = carried
            following = entries(b.add(position, b.index(step)))
            return [added(sums, self.products(column, value, None)), *following]

        rest = b.add(lo, b.masked(b.sub(hi, lo), -step))
        rest.name_hint = "rest"
        start = [self.zeros((1, columns), self.sum), *entries(lo)]
        sums, column, value = b.loop_for(lo, rest, step, start, whole, "position")

        def last(position: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            inside = b.lt(b.add(position, lane), hi)
            return [added(carried[0], self.products(column, value, inside))]

        return b.loop_for(rest, hi, step, [sums], last, "position")[0]


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
    counts = ("group_count", "long_count", "long_slot_count")
    segments, slots = "long_segments", "long_slot_count"

    def axes(self) -> list[blocks.Factor]:
        return [blocks.Factor(f"{self.matrix}.group_count")]

    def _body(self) -> None:
        b = self.b
        group = b.add_op(blocks.ProgramIdOp(0))
        group.name_hint = "group"
        # Segments come first: their programs need not wait for the table of groups.
        count = self.array("long_count")
        b.branch_when(b.lt(group, count), lambda: self._part(group))
        kind, first, end = (self.word("groups", GROUP, group, n) for n in range(3))
        kind.name_hint, first.name_hint, end.name_hint = "kind", "begin", "end"
        for number, (_, rows, lanes) in enumerate(BINS, 1):
            b.branch_when(
                b.eq(kind, b.index(number)),
                lambda rows=rows, lanes=lanes: self._bin(first, end, rows, lanes),
            )

    def _part(self, segment: SSAValue) -> None:
        row, lo, hi, parts = self.segment(segment)
        total = self._total(lo, hi)

        def finish(whole: SSAValue, done: SSAValue | None) -> None:
            self.at["n"], self.masks["n"] = row, done
            self._finish(whole)

        self.together(total, segment, parts, finish, 1)

    def _total(self, lo: SSAValue, hi: SSAValue) -> SSAValue:
        """The sum of entries in [lo, hi), which are read a step before what X holds for them, from where lines of
        memory begin."""
        b, lanes = self.b, self.numbers["lanes"]
        lane = self.lanes(1, lanes)

        def before(position: SSAValue) -> SSAValue:
            return b.lt(lane, b.sub(hi, position))

        def inside(position: SSAValue) -> SSAValue | None:
            return b.both(before(position), b.compare("sge", lane, b.sub(lo, position)))

        def entries(position: SSAValue, mask: SSAValue | None) -> Sequence[SSAValue]:
            # Sums of 64 bits can't overflow, so a step's addresses are one and numbers that the code holds.
            return self.entries(b.add(b.wide(position), lane), mask)

        def body(position: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            sums, column, value = carried
            after = b.add(position, b.index(lanes))
            following = entries(after, before(after))
            terms = self.products(column, value, inside(position))
            return [b.accumulate(sums, terms), *following]

        begin = b.masked(lo, -LINE)
        begin.name_hint = "begin"
        start = [self.zeros((1, lanes), self.sum), *entries(begin, inside(begin))]
        sums, *_ = b.loop_for(begin, hi, lanes, start, body, "position")
        return b.reduce("add", sums, 1)

    def _bin(self, first: SSAValue, end: SSAValue, rows: int, lanes: int) -> None:
        b = self.b
        at = b.add(first, self.lanes(0, rows))
        inside = b.lt(at, end)
        row = self.load(self.array("order"), at, inside)
        row.name_hint = "row"
        self._rows(row, inside, lanes)
