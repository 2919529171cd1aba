"""tile-iteration: kernels of the iteration dialect become tile kernels of the blocks form.

Before (SpMV over a CSR matrix, ``sparsify``'s)::

    iteration.iterate "i" extent %ni case %i {
      %s = iteration.iterate "j" over (%A at %a1 level 1) carry (%zero : f64) case %j with {0: %a2} carry (%sum) { … }
      iteration.insert %s into %y at (%i)
    }

After (schedule ``#tile.schedule<"loops", {rows = 8, positions = 32, …}>``): a program has eight rows, and
walks 32 positions of each at a time until the longest ends::

    %program = tile.program_id 0
    %i = %program * 8 + iota; %in = %i < %ni
    %lo = tile.load %A_positions1[%i] if %in; %hi = tile.load %A_positions1[%i + 1] if %in
    %acc = scf.for %p = 0 to (tile.reduce max (%hi - %lo)) step 32 iter_args(…) {
      … tile.load %A_coordinates1, %A_values, %x at %lo + %p + iota if …
    }
    %s = tile.reduce add %acc axis 1
    tile.store %s, %y[%i] if %in

Loops of the result go to the grid; loops inside become chunks, as :mod:`iteration_space` says; sums stay in registers.
Sums into elements that several programs share are refused: ``schedule-loops{target=…}`` orders loops so that there are
none, and converts what stands against it (COO and CSC to CSR). So the order of every sum is fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sparsecc.diagnostics import PassError
from sparsecc.passes.tiling.iteration_loops import KernelLoops, source
from sparsecc.passes.tiling.iteration_space import LoopSchedule, schedules
from sparsecc.passes.tiling.tile_loops import TileLoops


class BadWidth(PassError):
    text = "{option} of tile-iteration is {value}: a block has a power of two, from 1 to 4096"


@dataclass(frozen=True)
class TileIteration(ModulePass):
    """iteration kernels -> tile kernels. Options replace the default schedule's numbers."""

    name = "tile-iteration"

    rows: int = 0
    columns: int = 0
    positions: int = 0
    sums: int = 0
    warps: int = 0
    late: int = -1
    split: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for fn in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            if "iteration.kernel" not in fn.attributes:
                continue
            assert fn.parent is not None
            fn.parent.insert_op_before(self.tiled(fn), fn)
            fn.detach()
            fn.erase()

    def tiled(self, kernel: func.FuncOp) -> func.FuncOp:
        loops = KernelLoops.of(kernel)
        space = schedules(loops)
        return TileLoops(kernel, loops, self.chosen(space[0], source(kernel)), space).run()

    def chosen(self, default: LoopSchedule, place: str) -> LoopSchedule:
        """The default with the numbers that options give."""
        numbers = default.numbers()
        for option in numbers:
            value: int = getattr(self, option)
            if option == "late":
                numbers[option] = value if value in (0, 1) else numbers[option]
                continue
            if option == "split" and 0 < value <= 65535:
                numbers[option] = value
                continue
            if value < 0 or value & (value - 1) or value > 4096:
                raise BadWidth(option=option, value=value, place=place)
            numbers[option] = value or numbers[option]
        return LoopSchedule(**numbers)
