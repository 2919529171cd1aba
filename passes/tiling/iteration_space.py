"""Schedules of kernels that ``tile-iteration`` makes: how wide each loop's block is, and how many warps a program has.

Family ``loops``. ``rows``: coordinates of the last but one grid loop (of the only one) in a program; ``columns``: of
the last one, if there are two; ``positions``: of a level in one step of a walk; ``sums``: coordinates in one step of a
dense loop inside a program; ``late``: whether each lane keeps a sum of its own to the end of a walk (more registers),
or they are added at each step (more exchange between warps); ``warps``. Other grid loops have one coordinate a program.
``split``: a sum longer than one step of each is shared by so many programs (:mod:`shared_sums`); 1 where it is not.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sparsecc.dialects.tile import ScheduleAttr
from sparsecc.passes.tiling.iteration_loops import KernelLoops

FAMILY = "loops"


@dataclass(frozen=True)
class LoopSchedule:
    """One schedule; widths are powers of two."""

    rows: int = 1
    columns: int = 1
    positions: int = 1
    sums: int = 1
    warps: int = 4
    late: int = 1
    split: int = 1

    def numbers(self) -> dict[str, int]:
        return asdict(self)

    def attribute(self) -> ScheduleAttr:
        return ScheduleAttr.of(FAMILY, self.numbers())


def schedules(loops: KernelLoops) -> list[LoopSchedule]:
    """The legal space that is worth trying, the default first."""
    columns, walks = len(loops.grid) > 1, bool(loops.walks)
    dense, merges = bool(loops.dense), loops.merges
    found: list[tuple[int, ...]]
    if columns and walks:
        # A row of a sparse matrix times columns: sums of few positions at a time stay in registers.
        found = [(1, 128, 8, 1, 1, 0)]
        found += [
            (1, c, p, 1, 1, 0) for c, p in ((32, 32), (64, 16), (64, 32), (128, 16), (256, 8))
        ]
        found += [(1, 256, p, 1, 2, 0) for p in (8, 16)]
        found += [(1, c, 16, 1, w, 1) for c in (64, 128, 256) for w in (2, 4)]
        found += [(1, 128, 16, 1, 1, 0, 8), (1, 64, 32, 1, 1, 0, 8), (1, 128, 16, 1, 4, 1, 4)]
        found += [(1, 128, 32, 1, 8, 1), (4, 64, 8, 1, 4, 1), (4, 32, 8, 1, 4, 1)]
    elif columns and merges:
        found = [(1, 128, 1, 1, 1), (1, 64, 1, 1, 1), (1, 256, 1, 1, 2), (32, 1, 1, 1, 1)]
    elif columns and dense:
        found = [(16, 64, 1, 1, 4), (32, 64, 1, 1, 4), (16, 128, 1, 1, 4), (64, 64, 1, 1, 8)]
    elif columns:
        found = [(1, 1024, 1, 1, 4), (1, 256, 1, 1, 2), (8, 128, 1, 1, 4)]
    elif walks and dense:
        # Stored places times a dense sum: SDDMM.
        found = [
            (1, 1, p, s, w) for p, s, w in ((16, 64, 2), (32, 64, 4), (32, 32, 2), (16, 128, 4))
        ]
        found += [(1, 1, 16, 32, 1), (1, 1, 8, 128, 2), (1, 1, 64, 64, 4)]
    elif walks:
        found = [
            (8, 1, 32, 1, 4),
            (4, 1, 32, 1, 4),
            (16, 1, 16, 1, 4),
            (32, 1, 8, 1, 4),
            (32, 1, 4, 1, 4),
        ]
        found += [(64, 1, 4, 1, 4), (1, 1, 128, 1, 4), (4, 1, 128, 1, 4), (2, 1, 64, 1, 2)]
        if not loops.grid:
            found = [(1, 1, 1024, 1, 4, 1, 256), (1, 1, 1024, 1, 4), (1, 1, 512, 1, 4, 1, 1024)]
    elif merges:
        found = [(32, 1, 1, 1, 1), (128, 1, 1, 1, 4), (1, 1, 1, 1, 1)]
    elif dense and loops.grid:
        found = [(8, 1, 1, 128, 4), (4, 1, 1, 256, 4), (16, 1, 1, 64, 4)]
    elif dense:
        found = [(1, 1, 1, 1024, 4, 1, 256), (1, 1, 1, 1024, 4), (1, 1, 1, 512, 4, 1, 1024)]
    else:
        found = [(1024, 1, 1, 1, 4), (256, 1, 1, 1, 2)]
    return list(dict.fromkeys(LoopSchedule(*numbers) for numbers in found))
