"""Schedules of the family ``ring``: packed weights stream from memory into registers, a ring of chunks ahead of use.

* ``tiles``: row tiles of 16 rows that a program makes, one a warp; 7 of 8 warps fill the waves of some shapes better
* ``warps``: warps along the rows, a power of two of at least ``tiles``
* ``split``: warps that share k inside a program
* ``steps``: matrix instructions along k in a chunk (each 32 columns of 16 bits, 64 of 8)
* ``ahead``: chunks that are under way in a warp's registers
* ``tokens``: tokens of a program, a power of two from 8
* ``splitk``: programs that share k; the last to arrive sums what they leave
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from sparsecc.passes.tiling.problem import (
    Problem,
    Schedule,
    balance,
    bucket,
    distinct,
    fill,
    nearest,
    power_above,
    shared_bytes,
)
from sparsecc.targets import Target

FAMILY = "ring"
Config = tuple[int, int, int, int, int]
"""tiles, warps, split, steps, ahead."""

MEASURED: dict[int, dict[tuple[int, int], Config]] = {
    # tokens: {(rows, reduction): the fastest on 132 multiprocessors}; those of (4096, 4096), and for 32 tokens those
    # below 14336 rows, are guesses after their neighbours.
    8: {
        (14336, 4096): (2, 2, 1, 8, 2),
        (28672, 8192): (7, 8, 1, 8, 1),
        (8192, 8192): (2, 2, 2, 8, 1),
        (4096, 14336): (2, 2, 4, 4, 2),
        (4096, 4096): (2, 2, 4, 4, 2),
    },
    16: {
        (14336, 4096): (4, 4, 1, 8, 2),
        (28672, 8192): (7, 8, 1, 4, 2),
        (8192, 8192): (2, 2, 2, 4, 2),
        (4096, 14336): (2, 2, 4, 4, 2),
        (4096, 4096): (1, 1, 4, 4, 2),
    },
    32: {
        (14336, 4096): (7, 8, 1, 4, 4),
        (28672, 8192): (7, 8, 1, 4, 2),
        (8192, 8192): (2, 2, 2, 4, 2),
        (4096, 14336): (1, 1, 4, 4, 2),
        (4096, 4096): (1, 1, 4, 4, 2),
    },
}
PLAIN: dict[tuple[int, int], Config] = {
    # The same for 8 tokens and a weight without a residual.
    (14336, 4096): (4, 4, 1, 8, 2),
    (28672, 8192): (7, 8, 1, 8, 1),
    (8192, 8192): (4, 4, 2, 4, 4),
    (4096, 14336): (2, 2, 4, 8, 1),
    (4096, 4096): (1, 1, 2, 8, 2),
}
DEPTHS = ((8, 2), (4, 4), (4, 2), (8, 1))
"""(steps, ahead) that are worth a try."""
TILES = (1, 2, 4, 7, 8)
REASON = "few tokens, so reading W is the work: it streams through registers"


def ring_schedules(target: Target, problem: Problem) -> list[Schedule]:
    """The members that are legal, the one to expect most of first."""
    tokens = bucket(problem.m, MEASURED)
    found: list[Schedule] = []
    for config in _configs(target, problem, tokens):
        for splitk in _parts(target, problem, config):
            tiles, warps, split, steps, ahead = config
            parameters = {
                "tiles": tiles,
                "warps": warps,
                "split": split,
                "steps": steps,
                "ahead": ahead,
                "tokens": tokens,
                "splitk": splitk,
            }
            schedule = Schedule(FAMILY, parameters, REASON)
            if legal(target, problem, schedule):
                found.append(schedule)
    return distinct(found)


def _configs(target: Target, problem: Problem, tokens: int) -> Iterator[Config]:
    """The fastest of the most similar shape, with other depths, with other tiles, then those of other shapes."""
    table = PLAIN if tokens == 8 and not problem.residual else MEASURED[tokens]
    best = table[nearest(problem, target, table)]
    if problem.steps is not None:
        best = (*best[:3], problem.steps, best[4])
    yield best
    tiles, warps, split, steps, ahead = best
    for depth in DEPTHS:
        yield tiles, warps, split, *depth
    others = [t for t in TILES if t != tiles]
    if problem.rows is not None:
        rows = problem.rows
        others.sort(key=lambda t: -balance(ceil(rows / (16 * t)), target))
    for t in others:
        yield t, power_above(t), split, steps, ahead
    yield from table.values()


def _parts(target: Target, problem: Problem, config: Config) -> tuple[int, ...]:
    """Programs along k: 1 where rows alone keep all processors busy or nothing is known of them."""
    tiles, _, split, steps, _ = config
    chunks = problem.chunks(steps)
    if problem.rows is None or chunks is None:
        return (1,)
    blocks = ceil(problem.rows / (16 * tiles)) * ceil(problem.m / bucket(problem.m, MEASURED))
    return (fill(blocks, target, max(1, min(8, chunks // (2 * split)))),)


def legal(target: Target, problem: Problem, schedule: Schedule) -> bool:
    """Whether a kernel can have these numbers: warps, registers, shared memory, and the packing's chunks."""
    p = schedule.parameters
    if problem.steps is not None and p["steps"] != problem.steps:
        return False
    if problem.residual and (problem.dtype == "i8" or p["steps"] not in (4, 8)):
        return False
    threads = 32 * p["warps"] * p["split"]
    fits = p["tiles"] <= p["warps"] <= 16 and p["split"] <= 16 and threads <= 1024
    # A step's values are 4 registers a lane; entries of a residual about 2 more. X, the sums, and 48 for the rest.
    eights = p["tokens"] // 8
    each = 4.5 + (2 if problem.residual else 0)
    registers = p["steps"] * p["ahead"] * each + eights * 4 * (2 if problem.residual else 1)
    fits = fits and registers + eights * 2 + 48 <= min(255, 65536 // threads)
    x = 2 * p["tokens"] * p["ahead"] * p["split"] * p["steps"] * 64
    scattered = p["warps"] * p["split"] * (512 + 512 * p["steps"]) if problem.residual else 0
    return fits and x + scattered <= shared_bytes(target)
