"""Programs of sampled products: the products of rows of two matrices where a third has entries."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue

from sparsecc.dialects.reading import block_type, element_type
from sparsecc.dialects.tile import ScheduleAttr, blocks
from sparsecc.formats import Format, row_tables
from sparsecc.passes.tiling.contraction_view import ContractionView
from sparsecc.passes.tiling.epilogues import Epilogue
from sparsecc.passes.tiling.row_kernel import RowKernel, times, widened
from sparsecc.passes.tiling.row_weights import SampledView, rows_weight


class _Entries(Epilogue):
    """What a sampled product reads beside the matrix and V, and how its result is indexed."""

    def __init__(self, generic: linalg.GenericOp, u: int, letters: str) -> None:
        self.operands: list[tuple[SSAValue, str]] = [(generic.inputs[u], "nk")]
        self.letters = letters


class Sampled(RowKernel):
    """``C[n, t] = A[n, t] * sum over k of U[n, k] * V[t, k]``; the columns are called t."""

    layout = row_tables.ENTRIES

    def __init__(self, sampled: SampledView, result: SSAValue, even: bool, fmt: Format) -> None:
        generic = sampled.generic
        letters = {loop: {"m": "t"}.get(c, c) for loop, c in sampled.letters.items()}
        weight = rows_weight(generic.inputs[sampled.matrix].type)
        assert weight is not None
        view = ContractionView(
            generic, sampled.matrix, sampled.by_column, weight, letters, sampled.dtype,
            sampled.accumulator, element_type(result.type), (), 1, False,
        )  # fmt: skip
        out = view.letters_at(len(generic.inputs))
        super().__init__(view, _Entries(generic, sampled.by_row, out), result, even, fmt)
        self.u = self.owner(generic.inputs[sampled.by_row], view.letters_at(sampled.by_row))
        self.v = self.owner(generic.inputs[sampled.by_column], view.letters_at(sampled.by_column))

    def _attributes(self, fn: func.FuncOp, schedules: Sequence[ScheduleAttr], target: str) -> None:
        super()._attributes(fn, schedules, target)
        number = int(self.matrix.removeprefix("in"))
        fn.attributes["iteration.assembly"] = StringAttr("pattern")
        fn.attributes["iteration.pattern"] = IntegerAttr.from_index_int_value(number)

    def multiples(self) -> list[str]:
        if not self.even:
            return []
        wide = {f"{self.u}.values", f"{self.v}.values", self.extent_roles["k"]}
        return [role for role in self.roles if role in wide]

    def sums(self, row: SSAValue, position: SSAValue, inside: SSAValue) -> None:
        """The elements at positions [entries, 1] of rows (or of one row), stored."""
        b, depth = self.b, self.numbers["depth"]
        column = b.unsigned(self.load(self.array("coordinates1"), position, inside))
        row.name_hint, column.name_hint = "row", "column"

        def part(of: str, at: SSAValue, k: SSAValue) -> SSAValue:
            b = self.b
            place = b.add(b.mul(at, self.extents["k"]), k)
            masks = [b.lt(k, self.extents["k"])]
            if b.shape(at):
                masks.append(inside)
            return widened(b, self.load(self.values[f"{of}.values"], place, *masks), self.sum)

        def body(first: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            k = b.add(first, self.lanes(1, depth))
            k.name_hint = "k"
            product = times(b, part(self.u, row, k), part(self.v, column, k))
            return [b.accumulate(carried[0], b.reduce("add", product, 1))]

        start = self.zeros((self.numbers["entries"], 1), self.sum)
        (total,) = b.loop_for(b.index(0), self.extents["k"], depth, [start], body, "first")
        value = widened(b, self.load(self.array("values"), position, inside), self.sum)
        element = self._rounded(times(b, total, value), element_type(self.result.type))
        element, position, inside = b.meet(element, position, inside)
        b.do(blocks.StoreOp(element, self.values["out.values"], position, inside))

    def _rounded(self, value: SSAValue, wanted: Attribute) -> SSAValue:
        if element_type(value.type) == wanted:
            return value
        if self.view.accumulator.startswith("f"):
            return self.b.add_op(arith.TruncFOp(value, block_type(self.b.shape(value), wanted)))
        return self.b.add_op(blocks.CastOp("trunci", value, wanted))


class SampledEntries(Sampled):
    """``entries`` entries a program, of whatever rows: for rows of unlike lengths."""

    tables = ("rows",)
    counts = ("entry_count",)

    def axes(self) -> list[blocks.Factor]:
        return [blocks.Factor(f"{self.matrix}.entry_count", self.numbers["entries"])]

    def _body(self) -> None:
        b, entries = self.b, self.numbers["entries"]
        first = b.add_op(arith.MuliOp(b.add_op(blocks.ProgramIdOp(0)), b.index(entries)))
        position = b.add(first, self.lanes(0, entries))
        position.name_hint = "position"
        inside = b.lt(position, self.values[f"{self.matrix}.entry_count"])
        self.sums(self.load(self.array("rows"), position, inside), position, inside)


class SampledRows(Sampled):
    """One row a program, ``entries`` of its entries a step: for rows of like lengths."""

    def axes(self) -> list[blocks.Factor]:
        return [self._factor("n", 1)]

    def _body(self) -> None:
        b, entries = self.b, self.numbers["entries"]
        row = b.add_op(blocks.ProgramIdOp(0))
        positions = self.array("positions1")
        lo = b.unsigned(self.load(positions, row))
        hi = b.unsigned(self.load(positions, b.add(row, b.index(1))))
        lo.name_hint, hi.name_hint = "lo", "hi"

        def body(first: SSAValue, _carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            position = b.add(first, self.lanes(0, entries))
            self.sums(row, position, b.lt(position, hi))
            return []

        b.loop_for(lo, hi, entries, [], body, "begin")


FORMS: dict[str, type[Sampled]] = {"sampled_entries": SampledEntries, "sampled_rows": SampledRows}
