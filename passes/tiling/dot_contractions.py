"""dot-contractions: products with weights of dense blocks, bitmaps, or spread groups of four become dots of tiles.

Before (SpMM with a weight in rows of 32 x 32 blocks)::

    %C = linalg.generic {maps = [(m, n, k) -> (m, k), (m, n, k) -> (k, n), (m, n, k) -> (m, n)], …}
        ins(%A, %B : tensor<?x?xf16, #BSR>, tensor<?x?xf16>) … { extf, mulf, addf, truncf } -> tensor<?x?xf16>

After (schedule ``#tile.schedule<"block_rows", {tokens = 128, join = 1, warps = 4, stages = 5}>``): a program has one
row of blocks and ``tokens`` columns::

    %C = iteration.launch @dot0(%A, %B) : …
    func.func @dot0(%A_positions1, %A_coordinates1, %A_values, %B, %C, …) attributes {tile.form = "blocks", …} {
      %lo = tile.load %A_positions1[%row]; %hi = tile.load %A_positions1[%row + 1]
      %acc = scf.for %position = %lo to %hi step 1 iter_args(…) {
        %a = tile.load %A_values[…] : vector<32x32xf16>
        %x = tile.load %B[%column * 32 + …] if … : vector<32x128xf16>
        tile.dot %a, %x, %acc : vector<32x128xf32> }
      tile.store %acc as f16, %C[…] if … }

What is recognised around the product (factors, a start, elementwise operations that follow) is what
``match-contractions`` recognises. A 2:4 weight that comes here (where no sparse matrix instruction is wanted, as on
sm_100) is read in its packed units, spread in registers and multiplied by dense instructions. So is one of bits and
packed values, whose words of 32 bits say which elements there are and where they stand. ``tokens`` says how many
tokens there will be where types do not, and ``even`` whether the contiguous extents of X and of the result are
multiples of 16 where types do not say: it makes wide loads possible, and is checked at each launch. ``folded`` lets one
axis of the grid count all programs: the others have room for 65535. ``member`` chooses from the space of schedules; so
does ``schedule``, as it prints, where the space has it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
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
from sparsecc.passes.tiling.dot_bitmaps import Bitmaps
from sparsecc.passes.tiling.dot_forms import BlockRows, Groups
from sparsecc.passes.tiling.dot_kernel import DotKernel, accumulator_type
from sparsecc.passes.tiling.dot_schedules import bitmap_schedules, block_schedules, group_schedules
from sparsecc.passes.tiling.dot_weights import BITMAP, BLOCKS, block_weight, dot_weight
from sparsecc.passes.tiling.epilogues import Epilogue
from sparsecc.passes.tiling.fragments_builder import static_extent
from sparsecc.passes.tiling.matching import explain, free_name, fused_with, replace_matches
from sparsecc.targets import Target, TargetAbility, known_target

ACCUMULATORS = {"f16": "f32", "bf16": "f32", "f32": "f32", "i8": "i32"}
HALVES = ("f16", "bf16")


class NoSuchMember(PassError):
    text = "the space of this product has {count} schedules, and member of dot-contractions is {member}"
    help_text = "members count from 0"


@dataclass(frozen=True)
class DotContractions(ModulePass):
    """linalg.generic with BSR, bitmap or 2:4 weights -> blocks kernels of dots, and launches."""

    name = "dot-contractions"

    target: str = "sm_90"
    tokens: int = 0
    even: bool = False
    folded: bool = False
    member: int = 0
    schedule: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = known_target(self.target)
        replace_matches(op, lambda generic: self._match(op, generic, target))

    def _match(self, module: ModuleOp, generic: linalg.GenericOp, target: Target) -> bool:
        try:
            view = view_contraction(generic, target, dot_weight, ACCUMULATORS)
            if view is None:
                return False
            if view.packed.kind == "2:4" and view.dtype not in HALVES:
                raise NoContraction(f"groups of four of {view.dtype} are not spread for dots yet")
            epilogue = Epilogue(view, accumulator_type(view))
        except NoContraction as problem:
            explain(generic, f"not as dots of tiles: {problem}")
            return False
        fused = fused_with(epilogue, generic)
        last = fused[-1]
        result = last.results[0]
        builder, schedules = self._form(view, epilogue, last, target)
        if not 0 <= self.member < len(schedules):
            raise NoSuchMember(member=self.member, count=len(schedules))
        printed = [str(schedule) for schedule in schedules]
        chosen = printed.index(self.schedule) if self.schedule in printed else self.member
        schedules.insert(0, schedules.pop(chosen))
        name = free_name(module, "dot")
        builder.fold(self.folded)
        kernel = builder.kernel(name, schedules, target.name)
        for key in ("sparsecc.source", "sparsecc.place", "sparsecc.format_reason"):
            if key in last.attributes:
                kernel.attributes[key] = last.attributes[key]
        kernel.attributes["tile.reason"] = StringAttr(_reason(view, target))
        module.body.block.add_op(kernel)
        launch = iteration.LaunchOp(name, builder.inputs, None, result.type)
        assert last.parent is not None
        last.parent.insert_op_before(launch, last)
        launch.result.name_hint = result.name_hint
        result.replace_all_uses_with(launch.result)
        for op in reversed(fused):
            op.detach()
            op.erase()
        return True

    def _form(
        self, view: ContractionView, epilogue: Epilogue, last: linalg.GenericOp, target: Target
    ) -> tuple[DotKernel, list[ScheduleAttr]]:
        """The builder of a kernel and its legal schedules, the chosen one first."""
        generic, result = view.generic, last.results[0]
        x, letters = generic.inputs[view.x], view.letters_at(view.x)
        tokens = static_extent(x, letters.index("t")) or self.tokens or None
        weight = block_weight(generic.inputs[view.weight].type)
        if weight is not None:
            inner = static_extent(x, letters.index(memory_order(x.type, letters)[-1]))
            even = self.even if inner is None else inner % 16 == 0
            return (
                BlockRows(view, epilogue, result, self.even, weight),
                block_schedules(weight, view.dtype, tokens, target, even),
            )
        if view.packed.kind == BITMAP:
            return Bitmaps(view, epilogue, result, self.even), bitmap_schedules(tokens)
        return Groups(view, epilogue, result, self.even), group_schedules(tokens)


def _reason(view: ContractionView, target: Target) -> str:
    """What becomes of the weight, for the plan."""
    dense = f"multiplied as dense {view.dtype}, summed in {view.accumulator}"
    if view.packed.kind == BLOCKS:
        return f"the weight's tiles are {dense}"
    by = " by tcgen05" if target.can(TargetAbility.TMEM) and view.dtype in HALVES else ""
    return f"the weight's tiles are decompressed on chip and {dense}{by}"
