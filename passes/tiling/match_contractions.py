"""match-contractions: products with a weight in groups of four become kernels of sparse matrix instructions.

Before (a linear layer; W is 2:4)::

    %t0 = linalg.generic {maps = [(b, o, k) -> (b, k), (b, o, k) -> (o, k), (b, o, k) -> (b, o)], …}
        ins(%X, %W : tensor<?x?xf16>, tensor<?x?xf16, #NM_2_4>) … { mulf, addf } -> tensor<?x?xf16>
    %Y = linalg.generic {parallel, parallel} ins(%t0, %bias) … { addf } -> tensor<?x?xf16>

After: one kernel, with the bias in its epilogue, and a launch of it::

    %Y = iteration.launch @contraction0(%X, %W, %bias) : …
    func.func @contraction0(%X, %W, %bias, %Y) attributes {tile.kernel, tile.form = "fragments", tile.schedule = …} {
      %n = tile.span "rows" %W dim 0;  %t = tile.span "tokens" %X dim 0
      %sum = tile.accumulate %k along %W dim 1 carry %acc -> f32 {
        %values, %metadata = tile.load_packed %W[%n, %k]
        %x = tile.load_fragments %X[%t, %k]
        tile.sparse_dot "mma.sp" %values, %metadata, %x, %acc }
      %y = tile.epilogue (%s = %sum, %e = %bias[%n]) { addf, truncf }
      tile.store_fragments %y into %Y[%t, %n]
    }

Any order of operands and dimensions is recognised, with a batch outside of the matrices, factors that do not depend
on k, a start, and elementwise operations that follow as long as nobody else reads what is between them. Where a
weight is 2:4 but no instruction computes the product, the operation stays as it is and ``sparsecc.format_reason`` says
why. ``tokens``, ``rows`` and ``reduction`` say how large the problem will be where types do not (0: not known), and
``aligned`` whether rows of X begin at multiples of 16 bytes where extents are not known. ``steps`` is that of a weight
``2:4+CSR`` that is packed already.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import Float32Type, IntegerType, ModuleOp, StringAttr, UnitAttr
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
from sparsecc.passes.tiling.fragments_builder import KernelBuilder, bytes_of, static_extent
from sparsecc.passes.tiling.matching import explain, free_name, fused_with, replace_matches
from sparsecc.passes.tiling.spaces import NoSchedule, Problem, space
from sparsecc.targets import Target, known_target


class NegativeSize(PassError):
    text = "{option} is {value}; match-contractions wants 0 (not known) or more"


@dataclass(frozen=True)
class MatchContractions(ModulePass):
    """linalg.generic with packed weights -> fragments kernels and launches."""

    name = "match-contractions"

    target: str = "sm_90"
    tokens: int = 0
    rows: int = 0
    reduction: int = 0
    aligned: bool = True
    steps: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = known_target(self.target)
        for option in ("tokens", "rows", "reduction", "steps"):
            if (value := getattr(self, option)) < 0:
                raise NegativeSize(option=option, value=value)
        replace_matches(op, lambda generic: self._match(op, generic, target))

    def _match(self, module: ModuleOp, generic: linalg.GenericOp, target: Target) -> bool:
        try:
            view = view_contraction(generic, target)
            if view is None:
                return False
            problem = self._problem(view)
            schedules = space(target, problem)
            accumulator = IntegerType(32) if view.accumulator == "i32" else Float32Type()
            epilogue = Epilogue(view, accumulator)
        except (NoContraction, NoSchedule) as problem:
            explain(generic, f"not on the sparse tensor cores: {problem}")
            return False
        fused = fused_with(epilogue, generic)
        last = fused[-1]
        result = last.results[0]
        builder = KernelBuilder(view, epilogue, result, accumulator)
        name = free_name(module, "contraction")
        options = [ScheduleAttr.of(s.family, s.parameters) for s in schedules]
        kernel = builder.kernel(name, options, target.name)
        self._describe(kernel, view, last, schedules[0].reason)
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

    def _problem(self, view: ContractionView) -> Problem:
        """The sizes of a contraction, as far as they are known."""
        x, weight = (view.generic.inputs[k] for k in (view.x, view.weight))
        letters = view.letters_at(view.x)
        return Problem(
            view.packed.kind,
            view.dtype,
            static_extent(x, letters.index("t")) or self.tokens or None,
            static_extent(weight, view.packed.rows) or self.rows or None,
            static_extent(weight, view.packed.reduction) or self.reduction or None,
            self._aligned(x, letters),
            memory_order(x.type, letters).replace("b", ""),
            self.steps or None,
        )

    def _aligned(self, x: SSAValue, letters: str) -> bool:
        """Whether rows of X begin at multiples of 16 bytes."""
        inner = static_extent(x, letters.index(memory_order(x.type, letters)[-1]))
        return self.aligned if inner is None else inner * bytes_of(x) % 16 == 0

    def _describe(
        self, kernel: func.FuncOp, view: ContractionView, last: linalg.GenericOp, reason: str
    ) -> None:
        for key in ("sparsecc.source", "sparsecc.place", "sparsecc.format_reason"):
            if key in last.attributes:
                kernel.attributes[key] = last.attributes[key]
        text = f"the weight is {view.packed.kind} in {view.dtype}, summed in {view.accumulator}: {reason}"
        kernel.attributes["tile.reason"] = StringAttr(text)
        if self._aligned(view.generic.inputs[view.x], view.letters_at(view.x)):
            kernel.attributes["tile.aligned"] = UnitAttr()
