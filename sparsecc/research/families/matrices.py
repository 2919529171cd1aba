"""Matrices of no meaning but their shape: random, structured, blocked, banded, stencils."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from sparsecc.diagnostics import UsageError
from sparsecc.research.families.draw import (
    Random,
    bernoulli_keys,
    by_bands,
    choose,
    refuse_large_mask,
    refuse_many,
    stream,
)
from sparsecc.research.pattern import Ints, Mask, Pattern

MASKED = 0.1
"""From this density on a pattern is a mask."""


class BadStencil(UsageError):
    text = "there is no stencil of {points} points on a grid of {rank} dimensions"
    help_text = "5 and 9 points on two dimensions, 7 and 27 on three"


class BadChoice(UsageError):
    text = "{n} of {m} can't be chosen"
    help_text = "n is at most m"


def iid(rows: int, columns: int, density: float, seed: int) -> Pattern:
    """Each cell is an entry with the same probability."""
    if density < MASKED:
        return Pattern((rows, columns), keys=bernoulli_keys("iid", rows * columns, density, seed))

    def fill(rng: Random, _first: int, count: int) -> Mask:
        return rng.random((count, columns), dtype=np.float32) < np.float32(density)

    return Pattern((rows, columns), by_bands("iid", rows, columns, seed, fill))


def row_budget(rows: int, columns: int, count: int, seed: int) -> Pattern:
    """Each row has the same number of entries, anywhere in it."""
    if count > columns:
        raise BadChoice(n=count, m=columns)
    if count * 16 > columns:

        def fill(rng: Random, _first: int, band: int) -> Mask:
            return choose(rng, band, count, columns) if count else np.zeros((band, columns), bool)

        return Pattern((rows, columns), by_bands("row-budget", rows, columns, seed, fill))
    refuse_many("row-budget", rows * count)
    rng = stream("row-budget", seed)
    found = np.sort(rng.integers(0, max(columns, 1), (rows, count)), axis=1)
    # An entry that repeats another is drawn again: what is left is uniform.
    again = np.flatnonzero((found[:, 1:] == found[:, :-1]).any(axis=1))
    while len(again):
        part = found[again]
        repeated = np.zeros(part.shape, np.bool_)
        repeated[:, 1:] = part[:, 1:] == part[:, :-1]
        part[repeated] = rng.integers(0, columns, int(repeated.sum()))
        part.sort(axis=1)
        found[again] = part
        again = again[(part[:, 1:] == part[:, :-1]).any(axis=1)]
    keys = found + np.arange(rows, dtype=np.int64)[:, None] * columns
    return Pattern((rows, columns), keys=keys.reshape(-1))


def n_of_m(rows: int, columns: int, n: int, m: int, seed: int) -> Pattern:
    """``n`` entries in each ``m`` neighbours of a row; a last group that is cut keeps what is within."""
    if n > m:
        raise BadChoice(n=n, m=m)
    groups = -(-columns // m)

    def fill(rng: Random, _first: int, count: int) -> Mask:
        return choose(rng, count * groups, n, m).reshape(count, groups * m)[:, :columns]

    return Pattern((rows, columns), by_bands("n:m", rows, columns, seed, fill))


def v_n_m(rows: int, columns: int, v: int, n: int, m: int, seed: int) -> Pattern:
    """Of each ``v`` rows x ``m`` columns four columns are kept, and ``n`` of these four in each row."""
    if n > 4 or m < 4:
        raise BadChoice(n=n, m=4) if n > 4 else BadChoice(n=4, m=m)
    groups = -(-columns // m)

    def fill(rng: Random, _first: int, count: int) -> Mask:
        blocks = -(-count // v)
        kept = choose(rng, blocks * groups, 4, m)
        columns_of = np.nonzero(kept)[1].reshape(blocks, 1, groups, 4)
        rows_of = choose(rng, blocks * v * groups, n, 4).reshape(blocks, v, groups, 4)
        found = np.zeros((blocks, v, groups, m), np.bool_)
        np.put_along_axis(found, np.broadcast_to(columns_of, rows_of.shape), rows_of, axis=3)
        return found.reshape(blocks * v, groups * m)[:count, :columns]

    return Pattern((rows, columns), by_bands("v:n:m", rows, columns, seed, fill, v))


def block(
    rows: int, columns: int, block: Sequence[int], density: float, fill: float, seed: int
) -> Pattern:
    """Blocks on a grid are there with probability ``density``, cells of them with probability ``fill``."""
    height, width = block
    refuse_large_mask("block", rows, columns)
    grid = (-(-rows // height), -(-columns // width))
    there = stream("block", seed).random(grid, dtype=np.float32) < np.float32(density)
    mask = np.repeat(np.repeat(there, width, axis=1)[:, :columns], height, axis=0)[:rows]
    if fill < 1:

        def cells(rng: Random, _first: int, count: int) -> Mask:
            return rng.random((count, columns), dtype=np.float32) < np.float32(fill)

        mask &= by_bands("block", rows, columns, seed, cells)
    return Pattern((rows, columns), mask)


def banded(rows: int, columns: int, below: int, above: int, fill: float, seed: int) -> Pattern:
    """Cells at most ``below`` under and ``above`` over the diagonal are entries with probability ``fill``."""
    width = below + above + 1
    refuse_many("banded", rows * width)
    column = np.arange(rows, dtype=np.int64)[:, None] + np.arange(-below, above + 1)
    there = (column >= 0) & (column < columns)
    if fill < 1:
        there &= stream("banded", seed).random(there.shape, dtype=np.float32) < np.float32(fill)
    column += np.arange(rows, dtype=np.int64)[:, None] * columns
    return Pattern((rows, columns), keys=column[there])


def stencil(grid: Sequence[int], points: int) -> Pattern:
    """The matrix of a stencil on a grid of two dimensions (5, 9 points) or three (7, 27), points beyond the edge left
    out."""
    rank = len(grid)
    if points == 2 * rank + 1:
        offsets = [o for o in product((-1, 0, 1), repeat=rank) if sum(map(abs, o)) <= 1]
    elif points == 3**rank:
        offsets = list(product((-1, 0, 1), repeat=rank))
    else:
        raise BadStencil(points=points, rank=rank)
    total = int(np.prod(grid, dtype=np.int64))
    refuse_many("stencil", total * points)
    axes = np.indices(tuple(grid), dtype=np.int64).reshape(rank, -1)
    columns: list[Ints] = []
    within: list[Mask] = []
    strides = [int(np.prod(grid[d + 1 :], dtype=np.int64)) for d in range(rank)]
    for offset in offsets:  # in the order of the columns
        inside = np.ones(total, np.bool_)
        for d, step in enumerate(offset):
            moved = axes[d] + step
            inside &= (moved >= 0) & (moved < grid[d])
        columns.append(
            np.arange(total) + sum(s * step for s, step in zip(strides, offset, strict=True))
        )
        within.append(inside)
    keys = np.stack(columns, axis=1) + np.arange(total, dtype=np.int64)[:, None] * total
    return Pattern((total, total), keys=keys[np.stack(within, axis=1)])
