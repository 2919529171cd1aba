"""Schedules of the family ``warpgroup``: ``wgmma.sp``, with X in swizzled shared memory and W in registers.

* ``warpgroups``: groups of four warps, each of which makes ``row_tiles`` tiles of 64 rows by ``tokens`` tokens
* ``specialised``: 1, each warpgroup goes at its own pace and a further warp copies; 0, all go in step
* ``row_tiles``, ``tokens``: the tile of a warpgroup
* ``steps``: matrix instructions along k in a chunk of X (each 32 columns of 16 bits)
* ``stages``: chunks of X in shared memory
* ``split``: programs that share k; the last to arrive sums what they leave
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
    processors,
    shared_bytes,
)
from sparsecc.targets import Target, TargetAbility

FAMILY = "warpgroup"
Config = tuple[int, int, int, int, int, int, int]
"""warpgroups, specialised, row_tiles, tokens, steps, stages, group."""
NAMES = ("warpgroups", "specialised", "row_tiles", "tokens", "steps", "stages", "group")

WIDE: tuple[Config, ...] = (
    # Many tokens, best first as measured on 132 multiprocessors: X is read once for 256 tokens of 64 rows.
    (2, 1, 1, 256, 4, 3, 4),
    (2, 1, 1, 256, 4, 3, 8),
    (2, 1, 1, 256, 4, 3, 16),
    (2, 1, 1, 128, 4, 4, 8),
    (2, 1, 2, 128, 4, 5, 8),
    (2, 1, 2, 128, 4, 5, 16),
    (2, 1, 2, 128, 4, 4, 16),
    (3, 1, 1, 128, 4, 5, 8),
)
FEW: dict[int, dict[tuple[int, int], tuple[tuple[Config, int], ...]]] = {
    # tokens: {(rows, reduction): the fastest on 132 multiprocessors, with the parts of k}
    64: {
        (14336, 4096): (((2, 1, 1, 64, 4, 4, 8), 1), ((1, 0, 1, 64, 4, 3, 8), 2), ((2, 1, 2, 64, 4, 4, 8), 2)),
        (28672, 8192): (((2, 1, 2, 64, 4, 4, 8), 1), ((2, 1, 2, 64, 4, 6, 8), 1), ((2, 0, 1, 64, 4, 4, 8), 1)),
        (8192, 8192): (((2, 0, 1, 64, 4, 3, 8), 4), ((1, 0, 1, 64, 4, 3, 8), 4), ((2, 1, 2, 64, 4, 4, 8), 4)),
        (4096, 14336): (((2, 1, 1, 64, 4, 4, 8), 4), ((2, 1, 1, 64, 4, 6, 8), 4), ((1, 1, 2, 64, 4, 4, 8), 4)),
        (4096, 4096): (((2, 1, 1, 64, 4, 3, 8), 4), ((2, 1, 1, 64, 4, 4, 8), 4), ((1, 0, 1, 64, 4, 4, 8), 4)),
    },
    128: {
        (14336, 4096): (((2, 1, 1, 128, 4, 4, 8), 1), ((1, 1, 2, 128, 4, 4, 8), 1), ((2, 1, 1, 128, 4, 6, 8), 1)),
        (28672, 8192): (((2, 1, 2, 128, 4, 4, 8), 1), ((2, 1, 1, 128, 4, 6, 8), 1), ((2, 1, 1, 128, 4, 4, 8), 1)),
        (8192, 8192): (((2, 1, 1, 128, 4, 4, 8), 2), ((1, 1, 2, 128, 4, 4, 8), 2), ((2, 1, 1, 128, 4, 6, 8), 2)),
        (4096, 14336): (((2, 1, 1, 128, 4, 4, 8), 4), ((1, 1, 2, 128, 4, 4, 8), 4), ((2, 1, 1, 128, 4, 6, 8), 4)),
        (4096, 4096): (((3, 1, 1, 64, 4, 3, 8), 3), ((2, 1, 1, 128, 4, 3, 8), 4), ((1, 1, 1, 128, 4, 4, 8), 2)),
    },
}  # fmt: skip
WIDE_REASON = "many tokens, so multiplying is the work: tiles of four warps, fed by bulk copies"
FEW_REASON = "a tile holds all tokens: four warps share X, and programs may share k"
OWNER_REGISTERS = {1: 255, 2: 240, 3: 160}
"""Registers of a thread that a specialised warpgroup can have beside the others."""


def warpgroup_schedules(target: Target, problem: Problem) -> list[Schedule]:
    """The members that are legal, the one to expect most of first; none where the target lacks the instruction."""
    shapes = target.matrix_shapes(problem.dtype, sparse=True)
    able = target.can(TargetAbility.WGMMA_SPARSE) and any(
        s.instruction == "wgmma.sp" for s in shapes
    )
    if not able or problem.residual or not problem.aligned or problem.m <= 32:
        return []
    if problem.dtype == "i8" and problem.x_order == "kt":
        return []
    found: list[Schedule] = []
    for config, split, reason in _configs(target, problem):
        parameters = dict(zip(NAMES, config, strict=True)) | {"split": split}
        schedule = Schedule(FAMILY, parameters, reason)
        if legal(target, problem, schedule) and config[3] in {s.n for s in shapes if s.m == 64}:
            found.append(schedule)
    return distinct(found)


def _configs(target: Target, problem: Problem) -> Iterator[tuple[Config, int, str]]:
    if problem.m > 128:
        # Tiles of 256 tokens read X least; where they are too few for the processors, twice as many of 128 do better.
        for config in sorted(WIDE, key=lambda config: _idle(target, problem, config)):
            yield config, _parts(target, problem, config)[0], WIDE_REASON
        return
    table = FEW[bucket(problem.m, FEW)]
    shape = nearest(problem, target, table)
    alike = (problem.rows, problem.reduction) == shape
    for config, split in table[shape]:
        yield config, split if alike else _parts(target, problem, config)[0], FEW_REASON
    for configs in table.values():
        for config, _ in configs:
            for split in _parts(target, problem, config):
                yield config, split, FEW_REASON


def _idle(target: Target, problem: Problem, config: Config) -> bool:
    """Whether a tile leaves more than a quarter of the processors without one."""
    warpgroups, _, row_tiles, tokens, *_ = config
    if problem.rows is None:
        return False
    blocks = ceil(problem.rows / (64 * row_tiles * warpgroups)) * ceil(problem.m / tokens)
    return blocks < 0.75 * processors(target)


def _parts(target: Target, problem: Problem, config: Config) -> tuple[int, ...]:
    """Programs along k: as many as fill the processors, then half and twice as many."""
    warpgroups, _, row_tiles, tokens, steps, stages, _ = config
    chunks = problem.chunks(steps)
    if problem.rows is None or chunks is None:
        return (1,)
    blocks = ceil(problem.rows / (64 * row_tiles * warpgroups)) * ceil(problem.m / tokens)
    longest = max(1, min(8, chunks // stages))
    best = fill(blocks, target, longest)
    return (best, *(p for p in (best * 2, best // 2) if 1 <= p <= longest))


def legal(target: Target, problem: Problem, schedule: Schedule) -> bool:
    """Whether a kernel can have these numbers: registers and shared memory."""
    p = schedule.parameters
    product = p["steps"] * p["row_tiles"]
    # Sums of a thread, and the values of two chunks; what is left over must hold addresses.
    registers = p["row_tiles"] * p["tokens"] // 2 + 8 * product
    most = OWNER_REGISTERS[p["warpgroups"]] if p["specialised"] else 255
    stages = p["stages"] * p["steps"] * 64 * p["tokens"]
    owners = p["warpgroups"] if p["specialised"] else 1
    warps = 4 if p["specialised"] else 4 * p["warpgroups"]
    result = owners * 64 * 16 * warps * 4
    # Before the copying warp gives its registers away, all have as many, and an instruction's sums lie within.
    start = 65536 // (128 * (p["warpgroups"] + 1)) if p["specialised"] else 255
    fits = product <= 8 and registers <= most - 8 and p["tokens"] // 2 + 31 <= start
    fits = fits and p["stages"] >= 2
    return fits and stages + result + 1024 <= shared_bytes(target)
