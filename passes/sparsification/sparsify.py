"""sparsify: every scheduled linalg.generic becomes a kernel of the iteration dialect, and a launch of it.

Before (SpMV; ``schedule-loops`` has chosen the order i, j and a dense result)::

    %y = linalg.generic {…} ins(%A, %x) outs(%zeros)
        attrs = {sparsecc.order = [0, 1], sparsecc.assembly = "dense"} { mulf, addf } -> tensor<?xf64>

After::

    func.func @k0(%A, %x, %y) attributes {iteration.kernel, iteration.assembly = "dense"} {
      iterate i over [0, n) { locate A.0; iterate j over A.1 { value A * value x; sum }; insert at (i) }
    }
    %y = "iteration.launch"(%A, %x) <{kernel = "k0"}> …
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass

from sparsecc.dialects import iteration
from sparsecc.dialects.sparse_tensor.types import one_block
from sparsecc.passes.sparsification.host import drop_dead_host_ops, initial_value
from sparsecc.passes.sparsification.kernel_builder import KernelBuilder


@dataclass(frozen=True)
class Sparsify(ModulePass):
    """linalg.generic -> iteration kernels and launches."""

    name = "sparsify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = 0
        for fn in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            one_block(fn)
            for generic in [g for g in fn.walk() if isinstance(g, linalg.GenericOp)]:
                name = f"k{kernels}"
                kernels += 1
                op.body.block.add_op(KernelBuilder(generic, name).kernel())
                result = generic.results[0]
                launch = iteration.LaunchOp(
                    name, list(generic.inputs), initial_value(generic), result.type
                )
                assert generic.parent is not None
                generic.parent.insert_op_before(launch, generic)
                launch.result.name_hint = result.name_hint
                result.replace_all_uses_with(launch.result)
                generic.detach()
                generic.erase()
            drop_dead_host_ops(fn)
