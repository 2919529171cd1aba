"""Schedules of dot kernels, the one to expect most of first.

Family ``block_rows``: a program has one row of blocks; ``tokens`` columns of X; ``join``: blocks that one dot takes
side by side along k; ``warps``; ``stages``: steps of the loop whose loads are on their way. Family ``groups``:
``rows`` of the weight and ``tokens`` a program, ``groups`` of four columns a step. Family ``bitmap``: ``rows`` and
``tokens`` a program, which takes a tile of 64 columns a step.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparsecc.dialects.tile import ScheduleAttr
from sparsecc.passes.tiling.dot_weights import BlockWeight
from sparsecc.passes.tiling.problem import power_above
from sparsecc.targets import Target, TargetAbility

LEAST_TOKENS = 16
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "i8": 1}
DEPTH = 64
"""Columns that a dot of few tokens should take at once."""
DEFAULT_TOKENS = 64
STAGES = 5
REGISTERS = 104
"""Elements of a dot's tiles that a thread can hold: with more, ptxas begins to spill."""
TALL = 64
"""Rows of a block from which the matrix unit of four warps is used where there is one."""
SHARED = 160 * 1024
"""Bytes of shared memory that the stages of a program may take on every target."""


def block_schedules(
    weight: BlockWeight, dtype: str, tokens: int | None, target: Target, even: bool
) -> list[ScheduleAttr]:
    """Of a weight in rows of blocks. Where rows of X are not ``even`` each of its elements needs an address: then
    schedules that registers have no room for come last."""
    in_place = target.can(TargetAbility.WGMMA)
    configs = sorted(
        dict.fromkeys(_block_configs(weight, tokens or DEFAULT_TOKENS)),
        key=lambda config: not even and _held(weight, *config, in_place) > REGISTERS,
    )
    found: list[ScheduleAttr] = []
    for wide, join, warps in configs:
        height, depth = _tile(weight, join)
        each = depth * (wide + height) * BYTES[dtype]
        stages = max(1, min(STAGES, SHARED // each))
        numbers = {"tokens": wide, "join": join, "warps": warps, "stages": stages}
        found.append(ScheduleAttr.of("block_rows", numbers))
    return found


def _tile(weight: BlockWeight, join: int) -> tuple[int, int]:
    """Rows and columns of the weight's side of a dot."""
    return max(16, power_above(weight.height)), max(32, power_above(weight.width) * join)


def _held(weight: BlockWeight, wide: int, join: int, warps: int, in_place: bool) -> int:
    """Elements that a thread holds, about: of the sum, of X (their addresses), and of W. Where blocks are tall ptxas
    takes W from shared memory piece by piece, and ``in_place`` the dot reads it there."""
    height, depth = _tile(weight, join)
    share = 1.0 if height < TALL else 0.0 if in_place else 0.5
    return int(height * wide + depth * wide + share * height * depth) // (32 * warps)


def _block_configs(weight: BlockWeight, tokens: int) -> Iterator[tuple[int, int, int]]:
    """Tokens, joined blocks, warps: with few tokens several blocks make a dot deep enough, with many one does."""
    width = power_above(weight.width)
    few = min(max(LEAST_TOKENS, power_above(tokens)), 64)
    first = min(2 * DEPTH, max(DEPTH, 4 * width))
    joins = list(dict.fromkeys(max(1, j // width) for j in (first, DEPTH, 2 * DEPTH, 1)))
    joins = [j for j in joins if j * width <= 2 * DEPTH or j == 1]
    warps = 4 if weight.height >= TALL else 2 if weight.height >= 32 else 1
    deep = [(few, j, w) for w in (warps, 2 * warps) for j in joins if j > 1]
    deep += [(few, 1, w) for w in (warps, 2 * warps)]
    wide = 8 if weight.height >= TALL else 2
    many = [
        (256, 1, wide),
        *([(256, 1, 8)] if weight.height >= 32 else []),
        (128, 1, 4 if weight.height >= TALL else 2),
        (128, 1, 4),
        (128, 1, 8),
        (256, 1, 4),
        (256, 1, 2),
        (128, 1, 2),
        (64, 1, 4),
    ]
    if tokens <= 64:
        yield from deep
        yield from ((few, j, 4) for j in joins)
        yield (few, 1, 1)
    else:
        yield from many if tokens > 128 else (config for config in many if config[0] <= 128)
        yield from deep


def group_schedules(tokens: int | None) -> list[ScheduleAttr]:
    """Of a 2:4 weight whose groups are spread in registers: its four dots have a sum each in Blackwell's tensor memory,
    512 columns, so a program has at most 64 tokens."""
    wide = min(max(LEAST_TOKENS, power_above(tokens or DEFAULT_TOKENS)), 64)
    found = [
        (128, wide, 16, 8, 2),
        (64, wide, 16, 4, 2),
        (64, wide, 16, 4, 3),
        (128, wide, 32, 8, 2),
    ]
    names = ("rows", "tokens", "groups", "warps", "stages")
    return [ScheduleAttr.of("groups", dict(zip(names, numbers, strict=True))) for numbers in found]


def bitmap_schedules(tokens: int | None) -> list[ScheduleAttr]:
    """Of a weight of bits and packed values. Decompression costs the same for any number of tokens, so programs have
    many of them if there are."""
    wide = min(max(LEAST_TOKENS, power_above(tokens or DEFAULT_TOKENS)), 128)
    found = [
        (64, wide, 4, 3),
        (128, wide, 8, 3),
        (64, wide, 4, 2),
        (64, wide, 8, 2),
        (32, wide, 4, 3),
    ]
    names = ("rows", "tokens", "warps", "stages")
    return [ScheduleAttr.of("bitmap", dict(zip(names, numbers, strict=True))) for numbers in found]
