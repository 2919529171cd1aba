"""row-contractions: products with a matrix of sparse rows become kernels that share its entries out evenly.

Before (SpMM)::

    %C = linalg.generic {maps = [(i, j, k) -> (i, k), (i, j, k) -> (k, j), (i, j, k) -> (i, j)], …}
        ins(%A, %X : tensor<?x?xf16, #CSR>, tensor<?x?xf16>) … { mulf, addf } -> tensor<?x?xf16>

After (schedule ``#tile.schedule<"row_segments", {columns = 64, positions = 32, warps = 1}>``): a program has one
segment, which is a row or a part of a long one, and 64 columns::

    %C = iteration.launch @rows0(%A, %X) : …
    func.func @rows0(%A_segments, %A_coordinates1, %A_values, %X, %C, …)
        attributes {tile.form = "blocks", tile.packs = {in0 = "CSR-segments"}, …} {
      %row = tile.load %A_segments[6 * %segment]; %lo = …; %hi = …; %parts = …
      %total = scf.for %position = %lo to %hi step 32 iter_args(…) {
        %column = tile.load %A_coordinates1[%position + lanes] if %inside : vector<32x1xi32>
        %x = tile.load %X[%column * %J + %j] if … : vector<32x64xf16>
        tile.reduce add (%a * %x) axis 0 : vector<32x64xf32> -> vector<1x64xf32> }
      scf.if (%parts > 1) { leave %total in a slot; the last one to arrive sums the slots in order }
      tile.store … as f16, %C[%row * %J + %j] if %done
    }

``y[i] = A[i,j] * x[j]`` has rows in groups, or in bins by length where some are much longer. ``C[i,j] = A[i,j] *
U[i,k] * V[j,k]``, stored as A is, has programs for rows or for entries. The tables are those of
``formats/row_tables.py``. A is in CSR, or in CSC with its dimensions the other way round; X, U and V are dense and
contiguous along j, k and k. Factors, a start and elementwise operations that follow a product go into its kernel, as in
``match-contractions``. All else is left as it is.

Options say what types do not: ``tokens`` how many columns X has (or how many terms a sampled product sums),
``reduction`` its rows, ``length`` the mean length of A's rows, ``skewed`` whether some are much longer, ``even``
whether the contiguous extents are multiples of 16 and arrays begin at multiples of 16 bytes, which a launch checks,
``folded`` that more programs than the other axes of a grid have room for go along the first.
``member`` chooses from the space of schedules; so does ``schedule``, as it prints, where the space has it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from sparsecc.diagnostics import PassError
from sparsecc.dialects import iteration
from sparsecc.dialects.tile import ScheduleAttr
from sparsecc.passes.tiling.contraction_view import (
    ContractionView,
    NoContraction,
    memory_order,
    view_contraction,
)
from sparsecc.passes.tiling.epilogues import Epilogue
from sparsecc.passes.tiling.fragments_builder import static_extent
from sparsecc.passes.tiling.matching import explain, free_name, fused_with, replace_matches
from sparsecc.passes.tiling.row_forms import Bins, Groups, Segments, Sweeps
from sparsecc.passes.tiling.row_kernel import RowKernel
from sparsecc.passes.tiling.row_sampled import FORMS as SAMPLED
from sparsecc.passes.tiling.row_schedules import (
    Facts,
    sampled_schedules,
    segment_schedules,
    vector_schedules,
)
from sparsecc.passes.tiling.row_weights import (
    ACCUMULATORS,
    SampledView,
    rows_format,
    rows_weight,
    sum_type,
    view_sampled,
)
from sparsecc.targets import Target, known_target

FORMS: dict[str, type[RowKernel]] = {
    "row_segments": Segments,
    "row_sweeps": Sweeps,
    "row_groups": Groups,
    "row_bins": Bins,
}


class NegativeRowOption(PassError):
    text = "{option} is {value}; row-contractions wants 0 (not known) or more"


class NoSuchRowMember(PassError):
    text = "the space of this product has {count} schedules, and member of row-contractions is {member}"
    help_text = "members count from 0"


@dataclass(frozen=True)
class RowContractions(ModulePass):
    """linalg.generic with matrices of sparse rows -> balanced blocks kernels, and launches."""

    name = "row-contractions"

    target: str = "sm_90"
    tokens: int = 0
    reduction: int = 0
    length: int = 0
    skewed: bool = True
    even: bool = False
    folded: bool = False
    member: int = 0
    schedule: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = known_target(self.target)
        for option in ("tokens", "reduction", "length"):
            if (value := getattr(self, option)) < 0:
                raise NegativeRowOption(option=option, value=value)
        replace_matches(op, lambda generic: self._match(op, generic, target))

    def _match(self, module: ModuleOp, generic: linalg.GenericOp, target: Target) -> bool:
        sampled = view_sampled(generic)
        if sampled is not None:
            self._sampled(module, sampled, target)
            return True
        try:
            view = view_contraction(generic, target, rows_weight, ACCUMULATORS, vectors=True)
            if view is None or not _by_rows(view):
                return False
            epilogue = Epilogue(view, sum_type(view.accumulator))
        except NoContraction as problem:
            explain(generic, f"not as balanced rows: {problem}")
            return False
        fused = fused_with(epilogue, generic)
        schedules = self._chosen(self._schedules(view))
        fmt = rows_format(generic.inputs[view.weight].type)
        assert fmt is not None
        form = FORMS[schedules[0].family.data]
        last = fused[-1]
        builder = form(view, epilogue, last.results[0], self.even, fmt)
        self._launch(module, builder, schedules, fused, target)
        return True

    def _sampled(self, module: ModuleOp, view: SampledView, target: Target) -> None:
        generic = view.generic
        fmt = rows_format(generic.inputs[view.matrix].type)
        assert fmt is not None
        depth = static_extent(generic.inputs[view.by_row], view.letters_at(view.by_row).index("k"))
        facts = Facts(view.dtype, depth or self.tokens, self.reduction, self.length, self.skewed)
        schedules = self._chosen(sampled_schedules(facts))
        form = SAMPLED[schedules[0].family.data]
        builder = form(view, generic.results[0], self.even, fmt)
        self._launch(module, builder, schedules, [generic], target)

    def _schedules(self, view: ContractionView) -> list[ScheduleAttr]:
        """The legal schedules of a product, by what types and options say of it."""
        x, letters = view.generic.inputs[view.x], view.letters_at(view.x)
        tokens = _known(x, letters, "t") or self.tokens
        reduction = _known(x, letters, "k") or self.reduction
        facts = Facts(view.dtype, tokens, reduction, self.length, self.skewed)
        return segment_schedules(facts) if "t" in letters else vector_schedules(facts)

    def _chosen(self, schedules: list[ScheduleAttr]) -> list[ScheduleAttr]:
        """The schedules, with the one that options name in front."""
        if not 0 <= self.member < len(schedules):
            raise NoSuchRowMember(member=self.member, count=len(schedules))
        printed = [str(schedule) for schedule in schedules]
        chosen = printed.index(self.schedule) if self.schedule in printed else self.member
        schedules.insert(0, schedules.pop(chosen))
        return schedules

    def _launch(
        self, module: ModuleOp, builder: RowKernel, schedules: list[ScheduleAttr],
        fused: list[linalg.GenericOp], target: Target,
    ) -> None:  # fmt: skip
        """The kernel, and its launch in place of operations."""
        last = fused[-1]
        result = last.results[0]
        name = free_name(module, "rows")
        builder.fold(self.folded)
        kernel = builder.kernel(name, schedules, target.name)
        for key in ("sparsecc.source", "sparsecc.place", "sparsecc.format_reason"):
            if key in last.attributes:
                kernel.attributes[key] = last.attributes[key]
        kernel.attributes["tile.reason"] = StringAttr(
            f"the matrix has sparse rows in {builder.view.dtype}, summed in {builder.view.accumulator}"
        )
        module.body.block.add_op(kernel)
        launch = iteration.LaunchOp(name, builder.inputs, None, result.type)
        assert last.parent is not None
        last.parent.insert_op_before(launch, last)
        launch.result.name_hint = result.name_hint
        result.replace_all_uses_with(launch.result)
        for op in reversed(fused):
            op.detach()
            op.erase()


def _by_rows(view: ContractionView) -> bool:
    """Whether X and the result are contiguous along the columns of X, if it has any."""
    generic = view.generic
    x = memory_order(generic.inputs[view.x].type, view.letters_at(view.x))
    out = memory_order(generic.results[0].type, view.letters_at(len(generic.inputs)))
    return (x, out) in (("k", "n"), ("kt", "nt"))


def _known(tensor: SSAValue, letters: str, letter: str) -> int | None:
    return static_extent(tensor, letters.index(letter)) if letter in letters else None
