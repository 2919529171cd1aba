"""lower-iteration: kernels of the iteration dialect become loops over positions, coordinates and values.

Before::

    %s = iterate %A, %a1, %zero {index = "j", levels = [1], …} ({ ^(%j, %a2, %sum): … value %A, %a2 … })

After::

    %lo = load %A_positions1[%i]; %hi = load %A_positions1[%i + 1]
    %s = scf.for %p = %lo to %hi iter_args(%sum = %zero) { %j = load %A_coordinates1[%p]; … %A_values[%p] … }

A kernel whose result size is not known beforehand becomes two functions: ``k_count`` and ``k``.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ModuleOp,
    StringAttr,
)
from xdsl.passes import ModulePass

from sparsecc.passes.sparsification.coiteration import LoopLowering
from sparsecc.passes.sparsification.sorting import sort_function


@dataclass(frozen=True)
class LowerIteration(ModulePass):
    """iteration kernels -> scf loops over memrefs."""

    name = "lower-iteration"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sorts = False
        for fn in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            if "iteration.kernel" not in fn.attributes:
                continue
            assert fn.parent is not None
            sorts = sorts or fn.attributes.get("iteration.assembly") == StringAttr("workspace")
            if "iteration.counted" in fn.attributes:
                fn.parent.insert_op_before(LoopLowering(fn, counting=True).run(), fn)
            fn.parent.insert_op_before(LoopLowering(fn, counting=False).run(), fn)
            fn.detach()
            fn.erase()
        if sorts:
            op.body.block.add_op(sort_function())
