"""Passes that stand in for those that make tile kernels: the kernel is written by hand, the IR only says so."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from sparsecc.dialects.tile import ScheduleAttr
from sparsecc.kernel import TileSource
from sparsecc.targets import Target
from tests.unit.backends.triton.kernels import SPMV


@dataclass(frozen=True)
class MarkTiles(ModulePass):
    """Calls every iteration kernel a tile kernel."""

    name = "mark-tiles"
    rows: int = 4
    tokens: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for fn in op.body.block.ops:
            if isinstance(fn, FuncOp) and "iteration.kernel" in fn.attributes:
                space = [ScheduleAttr.of("loops", {"rows": n}) for n in (self.rows, 4, 8)]
                fn.attributes["tile.kernel"] = UnitAttr()
                fn.attributes["tile.form"] = StringAttr("blocks")
                fn.attributes["tile.schedule"] = space[0]
                fn.attributes["tile.space"] = ArrayAttr(space)


def emit_kernel(fn: FuncOp, target: Target) -> TileSource:
    """The product of a matrix and a vector, whatever the kernel is."""
    from dataclasses import replace

    schedule = fn.attributes["tile.schedule"]
    return replace(SPMV, text=f"# {schedule} for {target.name}\n{SPMV.text}")
