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
Config = tuple[int, int, int, int, int, int]
"""tiles, warps, split, steps, ahead, splitk."""
Shape = tuple[int, int]
Measured = dict[int, dict[Shape, tuple[Config, ...]]]
"""tokens: {(rows, reduction): the fastest on 132 multiprocessors, best first}."""

MEASURED: Measured = {
    8: {
        (14336, 4096): ((8, 8, 1, 8, 2, 1), (4, 4, 1, 8, 2, 1), (2, 2, 1, 4, 4, 1)),
        (28672, 8192): ((7, 8, 1, 8, 1, 1), (7, 8, 1, 4, 2, 1), (8, 8, 1, 4, 2, 1)),
        (8192, 8192): ((4, 4, 2, 4, 4, 1), (4, 4, 2, 8, 2, 1), (2, 2, 2, 8, 2, 1)),
        (4096, 14336): ((4, 4, 1, 4, 4, 4), (2, 2, 4, 8, 1, 1), (1, 1, 4, 8, 1, 1)),
        (4096, 4096): ((1, 1, 2, 8, 2, 1), (1, 1, 4, 8, 1, 1), (2, 2, 4, 8, 1, 1)),
    },
    16: {
        (14336, 4096): ((7, 8, 1, 4, 4, 1), (4, 4, 1, 4, 4, 1), (2, 2, 1, 8, 1, 1)),
        (28672, 8192): ((7, 8, 1, 8, 1, 1), (7, 8, 1, 4, 2, 1), (4, 4, 1, 4, 2, 1)),
        (8192, 8192): ((4, 4, 1, 4, 4, 1), (4, 4, 1, 4, 2, 4), (4, 4, 1, 8, 1, 4)),
        (4096, 14336): ((4, 4, 1, 4, 4, 4), (2, 2, 1, 4, 2, 4), (2, 2, 1, 8, 1, 4)),
        (4096, 4096): ((2, 2, 2, 4, 4, 1), (2, 2, 1, 8, 1, 4), (2, 2, 1, 4, 2, 4)),
    },
    32: {
        (14336, 4096): ((7, 8, 1, 8, 1, 1), (7, 8, 1, 4, 2, 1), (4, 4, 1, 8, 1, 1)),
        (28672, 8192): ((7, 8, 1, 8, 1, 1), (7, 8, 1, 4, 2, 1), (4, 4, 1, 4, 2, 1)),
        (8192, 8192): ((4, 4, 1, 4, 2, 4), (4, 4, 1, 8, 1, 4), (4, 4, 1, 4, 4, 1)),
        (4096, 14336): ((4, 4, 1, 4, 4, 4), (4, 4, 1, 4, 2, 4), (4, 4, 1, 8, 1, 4)),
        (4096, 4096): ((4, 4, 1, 4, 4, 4), (4, 4, 1, 4, 2, 4), (4, 4, 1, 8, 1, 4)),
    },
}
RESIDUAL: Measured = {
    # The same with the overflow of half-empty weights behind each chunk; (4096, 4096), and 32 tokens, are guesses
    # after their neighbours.
    8: {
        (14336, 4096): (
            (4, 4, 1, 4, 4, 1),
            (2, 2, 2, 4, 2, 1),
            (7, 8, 1, 4, 2, 1),
            (4, 4, 1, 8, 2, 1),
        ),
        (28672, 8192): ((7, 8, 1, 4, 2, 1), (7, 8, 1, 8, 1, 1), (4, 4, 1, 8, 1, 1)),
        (8192, 8192): ((2, 2, 2, 4, 2, 1), (2, 2, 2, 8, 1, 1), (2, 2, 2, 4, 4, 1)),
        (4096, 14336): (
            (1, 1, 4, 8, 1, 1),
            (2, 2, 4, 4, 2, 1),
            (2, 2, 2, 4, 4, 1),
            (1, 1, 4, 4, 2, 1),
        ),
        (4096, 4096): ((1, 1, 4, 8, 1, 1), (2, 2, 4, 4, 2, 1), (2, 2, 2, 8, 1, 1)),
    },
    16: {
        (14336, 4096): ((2, 2, 1, 8, 2, 1), (4, 4, 1, 4, 2, 1), (2, 2, 2, 4, 1, 1)),
        (28672, 8192): ((4, 4, 1, 4, 2, 1), (7, 8, 1, 4, 2, 1), (4, 4, 1, 4, 2, 4)),
        (8192, 8192): ((4, 4, 1, 4, 2, 4), (8, 8, 1, 4, 2, 4), (2, 2, 2, 8, 1, 1)),
        (4096, 14336): (
            (4, 4, 2, 8, 2, 2),
            (2, 2, 4, 8, 1, 1),
            (4, 4, 2, 4, 2, 2),
            (2, 2, 4, 4, 2, 1),
        ),
        (4096, 4096): ((2, 2, 4, 4, 2, 1), (2, 2, 2, 8, 1, 1), (1, 1, 8, 4, 1, 1)),
    },
    32: {
        (14336, 4096): ((7, 8, 1, 4, 2, 1), (4, 4, 1, 4, 2, 1)),
        (28672, 8192): ((7, 8, 1, 4, 2, 1), (4, 4, 1, 4, 2, 1)),
        (8192, 8192): ((4, 4, 1, 4, 2, 4), (2, 2, 2, 4, 2, 1)),
        (4096, 14336): ((4, 4, 1, 4, 2, 4), (2, 2, 2, 4, 2, 1)),
        (4096, 4096): ((4, 4, 1, 4, 2, 4), (2, 2, 2, 4, 2, 1)),
    },
}
DEPTHS = ((8, 2), (4, 4), (4, 2), (8, 1))
"""(steps, ahead) that are worth a try."""
TILES = (1, 2, 4, 7, 8)
REASON = "few tokens, so reading W is the work: it streams through registers"


def ring_schedules(target: Target, problem: Problem) -> list[Schedule]:
    """The members that are legal, the one to expect most of first."""
    tokens = bucket(problem.m, MEASURED)
    found: list[Schedule] = []
    for tiles, warps, split, steps, ahead, splitk in _configs(target, problem, tokens):
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
    """The fastest of the most similar shape, then with other depths and other tiles, then those of other shapes."""
    table = (RESIDUAL if problem.residual else MEASURED)[tokens]
    shape = nearest(problem, target, table)
    known = table[shape]
    alike = (problem.rows, problem.reduction) == shape and problem.m <= tokens
    for config in known:
        yield config if alike else _refilled(target, problem, config)
    tiles, warps, split, steps, ahead, _ = known[0]
    for depth in DEPTHS:
        yield _refilled(target, problem, (tiles, warps, split, *depth, 1))
    others = [t for t in TILES if t != tiles]
    if problem.rows is not None:
        rows = problem.rows
        others.sort(key=lambda t: -balance(ceil(rows / (16 * t)), target))
    for t in others:
        yield _refilled(target, problem, (t, power_above(t), split, steps, ahead, 1))
    for configs in table.values():
        for config in configs:
            yield _refilled(target, problem, config)


def _refilled(target: Target, problem: Problem, config: Config) -> Config:
    """A config with as many parts of k as keep all processors busy; 1 where extents are not known."""
    tiles, _, split, steps, *_ = config
    chunks = problem.chunks(steps)
    if problem.rows is None or chunks is None:
        return (*config[:5], 1)
    blocks = ceil(problem.rows / (16 * tiles)) * ceil(problem.m / bucket(problem.m, MEASURED))
    return (*config[:5], fill(blocks, target, max(1, min(8, chunks // (2 * split)))))


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
