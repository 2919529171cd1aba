"""Schedules of the family ``staged``: W and X come by asynchronous copies into stages of shared memory.

* ``tiles``, ``tokens``: row tiles of 16 rows, and tokens, of a program
* ``warps``, ``token_warps``: warps along the rows and the tokens, among which they are divided
* ``steps``: matrix instructions along k in a stage (each 32 columns of 16 bits, 64 of 8)
* ``stages``: stages of shared memory, one of which is worked on
* ``splitk``: programs that share k; the last to arrive sums what they leave
* ``group``: blocks of tokens that run side by side, so that they share rows of W in the cache
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from sparsecc.passes.tiling.problem import (
    Problem,
    Schedule,
    bucket,
    distinct,
    fill,
    nearest,
    shared_bytes,
)
from sparsecc.targets import Target

FAMILY = "staged"
Config = tuple[int, int, int, int, int, int, int]
"""tiles, tokens, warps, token_warps, steps, stages, splitk."""
NAMES = ("tiles", "tokens", "warps", "token_warps", "steps", "stages", "splitk")
GROUP = 8

MEASURED: dict[int, dict[tuple[int, int], Config]] = {
    # tokens: {(rows, reduction): the fastest on 132 multiprocessors}
    8: {
        (14336, 4096): (4, 8, 2, 1, 4, 5, 1),
        (28672, 8192): (8, 8, 4, 1, 4, 4, 1),
        (8192, 8192): (4, 8, 4, 1, 4, 6, 1),
        (4096, 14336): (4, 8, 2, 1, 4, 5, 4),
        (4096, 4096): (4, 8, 4, 1, 4, 6, 2),
    },
    16: {
        (14336, 4096): (4, 16, 2, 1, 4, 4, 1),
        (28672, 8192): (8, 16, 4, 1, 4, 6, 1),
        (8192, 8192): (4, 16, 2, 1, 4, 6, 1),
        (4096, 14336): (4, 16, 2, 1, 4, 4, 4),
        (4096, 4096): (4, 16, 2, 1, 4, 6, 2),
    },
    32: {
        (14336, 4096): (4, 32, 2, 2, 4, 4, 1),
        (28672, 8192): (8, 32, 4, 1, 4, 6, 1),
        (8192, 8192): (4, 32, 2, 2, 4, 6, 1),
        (4096, 14336): (4, 32, 2, 2, 4, 4, 4),
        (4096, 4096): (4, 32, 2, 2, 4, 4, 2),
    },
    64: {
        (14336, 4096): (4, 64, 2, 2, 4, 4, 1),
        (28672, 8192): (4, 64, 2, 2, 4, 4, 1),
        (8192, 8192): (8, 64, 2, 2, 4, 4, 2),
        (4096, 14336): (4, 64, 2, 2, 4, 4, 4),
        (4096, 4096): (4, 32, 2, 2, 4, 3, 2),
    },
    128: {
        # Smaller tiles than 128 tokens: sums of a larger one leave too few warps.
        (14336, 4096): (8, 64, 4, 2, 4, 4, 1),
        (28672, 8192): (8, 64, 4, 2, 4, 4, 1),
        (8192, 8192): (8, 64, 4, 2, 4, 4, 1),
        (4096, 14336): (8, 64, 4, 2, 4, 4, 2),
        (4096, 4096): (8, 32, 2, 2, 4, 3, 1),
    },
}
MORE: dict[int, tuple[Config, ...]] = {
    # others that came close
    8: ((4, 8, 4, 1, 4, 4, 1), (4, 8, 4, 1, 8, 3, 1), (8, 8, 4, 1, 4, 4, 1)),
    16: ((4, 16, 4, 1, 4, 4, 1), (8, 16, 4, 1, 4, 4, 1)),
    32: ((4, 32, 4, 1, 4, 4, 1),),
    64: ((8, 64, 4, 2, 4, 4, 1), (8, 64, 2, 2, 4, 4, 1), (4, 32, 2, 1, 4, 3, 1)),
    128: ((8, 128, 4, 2, 2, 4, 1), (8, 128, 2, 2, 2, 3, 1), (8, 128, 2, 4, 2, 4, 1)),
}
REASON = "X is read by several warps: W and X wait in stages of shared memory"


def staged_schedules(target: Target, problem: Problem) -> list[Schedule]:
    """The members that are legal, the one to expect most of first."""
    if problem.residual:
        return []
    found: list[Schedule] = []
    for config in _configs(target, problem):
        parameters = dict(zip(NAMES, config, strict=True)) | {"group": GROUP}
        schedule = Schedule(FAMILY, parameters, REASON)
        if legal(target, problem, schedule):
            found.append(schedule)
    return distinct(found)


def _configs(target: Target, problem: Problem) -> Iterator[Config]:
    tokens = bucket(problem.m, MEASURED)
    table = MEASURED[tokens]
    shape = nearest(problem, target, table)
    best = table[shape]
    if (problem.rows, problem.reduction) == shape and problem.m <= tokens:
        yield best
    for config in (best, *table.values(), *MORE[tokens]):
        yield (*config[:6], _parts(target, problem, config))
    if problem.rows is not None and problem.reduction is not None:
        yield from ((*best[:6], parts) for parts in (1, 2, 4) if parts <= _longest(problem, best))


def _longest(problem: Problem, config: Config) -> int:
    """Parts of k that still fill the stages."""
    chunks = problem.chunks(config[4])
    return 1 if chunks is None else max(1, min(8, chunks // config[5]))


def _parts(target: Target, problem: Problem, config: Config) -> int:
    """Programs along k, so that most processors have one; 1 where extents are not known."""
    if problem.rows is None:
        return 1
    blocks = ceil(problem.rows / (16 * config[0])) * ceil(problem.m / config[1])
    return fill(blocks, target, _longest(problem, config))


def legal(target: Target, problem: Problem, schedule: Schedule) -> bool:
    """Whether a kernel can have these numbers: registers and shared memory."""
    p = schedule.parameters
    warps = p["warps"] * p["token_warps"]
    tiles, eights = p["tiles"] // p["warps"], p["tokens"] // (8 * p["token_warps"])
    # Sums; then a step's values and metadata, and its tokens; 48 for the rest.
    sums = 4 * tiles * eights
    registers = sums + 5 * tiles + 4 * eights + 48
    fits = tiles >= 1 and eights >= 1 and warps <= 32 and 32 * warps >= p["tiles"]
    fits = fits and sums <= 128 and registers <= min(255, 65536 // (32 * warps))
    units = p["steps"] if problem.dtype == "i8" else p["steps"] // 2
    stage = p["tiles"] * (512 * p["steps"] + 128 * units) + p["tokens"] * p["steps"] * 64
    return fits and p["stages"] >= 2 and p["stages"] * stage <= shared_bytes(target)
