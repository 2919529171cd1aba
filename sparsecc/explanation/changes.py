"""Problems that are changed a little: pruned otherwise, of another type, padded, with a library more.

The statistics of what is not there are estimated from those that are, entries that are taken away being any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, comb

from sparsecc.selection.problem import Problem, Tensor
from sparsecc.statistics import BlockFill, GroupFit, Lengths, Statistics


def with_statistics(problem: Problem, name: str, s: Statistics) -> Problem:
    """The problem with another pattern (and shape) of a tensor."""
    tensor = replace(problem.tensors[name], statistics=s, shape=s.shape)
    return replace(problem, tensors={**problem.tensors, name: tensor})


def with_types(problem: Problem, types: Mapping[str, str]) -> Problem:
    """The problem with other element types, by tensor."""
    tensors: dict[str, Tensor] = {}
    for name, tensor in problem.tensors.items():
        dtype = types.get(name, tensor.dtype)
        s = None if tensor.statistics is None else replace(tensor.statistics, dtype=dtype)
        tensors[name] = replace(tensor, dtype=dtype, statistics=s)
    return replace(problem, tensors=tensors)


def in_groups(s: Statistics) -> Statistics:
    """Pruned to 2:4: of each four the two largest stay."""
    group = s.group(2, 4)
    lost = group.overflow if group is not None else _overflow(s.density, 2, 4) * _groups(s, 4)
    left = max(0, round(s.nnz - lost))
    most = ceil(s.shape[1] / 4) * 2
    rows = replace(
        _scaled(s.slices[0], left / max(s.nnz, 1)), largest=min(s.slices[0].largest, most)
    )
    columns = _scaled(s.slices[1], left / max(s.nnz, 1))
    blocks = tuple(replace(b, fill=left / max(b.count * b.rows * b.columns, 1)) for b in s.blocks)
    whole = {(2, 4), (4, 8)}  # two of each four are four of each eight
    fits = tuple(GroupFit(g.n, g.m, 1.0, 0) if (g.n, g.m) in whole else g for g in s.groups)
    if group is None:
        fits = (*fits, GroupFit(2, 4, 1.0, 0))
    return replace(
        s, nnz=left, exact=False, slices=(rows, columns), prefixes=(s.prefixes[0], left), blocks=blocks, groups=fits
    )  # fmt: skip


def thinned(s: Statistics, density: float) -> Statistics:
    """Pruned to a density: any entries go."""
    part = min(1.0, density / s.density) if s.density else 1.0
    left = round(s.nnz * part)
    blocks: list[BlockFill] = []
    for b in s.blocks:
        cells = b.rows * b.columns
        count = round(b.count * (1 - (1 - part) ** (b.fill * cells)))
        blocks.append(replace(b, count=count, fill=left / max(count * cells, 1)))
    groups: list[GroupFit] = []
    for g in s.groups:
        over = _overflow(density, g.n, g.m) * _groups(s, g.m)
        fitting = max(g.fitting, _fitting(density, g.n, g.m))
        groups.append(GroupFit(g.n, g.m, fitting, round(min(g.overflow, over))))
    return replace(
        s, nnz=left, exact=False, slices=tuple(_scaled(lengths, part) for lengths in s.slices),
        prefixes=(min(s.prefixes[0], left), left), blocks=tuple(blocks), groups=tuple(groups),
    )  # fmt: skip


def in_blocks(s: Statistics, rows: int, columns: int, entries: int) -> Statistics:
    """So many entries in whole blocks on a grid, which stand anywhere."""
    size = rows * columns
    grid = ceil(s.shape[0] / rows) * ceil(s.shape[1] / columns)
    count = min(grid, ceil(entries / size))
    nnz = min(count * size, s.shape[0] * s.shape[1])
    part = nnz / max(s.nnz, 1)
    blocks = [_of_blocks(s.shape, b.rows, b.columns, rows, columns, count, nnz) for b in s.blocks]
    if all((b.rows, b.columns) != (rows, columns) for b in blocks):
        blocks.append(_of_blocks(s.shape, rows, columns, rows, columns, count, nnz))
    filled = count / max(grid, 1)
    groups = tuple(GroupFit(g.n, g.m, 1 - filled, round(nnz * (g.m - g.n) / g.m)) for g in s.groups)
    return replace(
        s, nnz=nnz, exact=False, slices=tuple(_scaled(lengths, part) for lengths in s.slices),
        prefixes=(min(s.shape[0], nnz), nnz), blocks=tuple(blocks), groups=groups,
    )  # fmt: skip


def padded(s: Statistics, multiple: int) -> Statistics:
    """Zeros behind each row, up to a multiple of columns."""
    rows, columns = s.shape
    wide = ceil(columns / multiple) * multiple
    extent = replace(
        s.slices[1], extent=wide, mean=s.nnz / wide, bins=_more_empty(s.slices[1], wide)
    )
    return replace(s, shape=(rows, wide), slices=(s.slices[0], extent))


def _of_blocks(
    shape: tuple[int, ...], rows: int, columns: int, r: int, c: int, count: int, nnz: int
) -> BlockFill:
    """Blocks of a shape where there are ``count`` whole ones of ``r x c``."""
    grid = ceil(shape[0] / rows) * ceil(shape[1] / columns)
    inside = max(1.0, r / rows) * max(1.0, c / columns)  # of a whole block
    around = max(1.0, rows / r) * max(1.0, columns / c)  # whole blocks that one of these may hold
    filled = min(1.0, count / max(ceil(shape[0] / r) * ceil(shape[1] / c), 1))
    found = count * inside if around == 1 else grid * (1 - (1 - filled) ** around)
    there = max(1, min(grid, round(found)))
    return BlockFill(rows, columns, there, min(1.0, nnz / (there * rows * columns)))


def _groups(s: Statistics, m: int) -> int:
    return s.shape[0] * ceil(s.shape[1] / m)


def _overflow(density: float, n: int, m: int) -> float:
    """Entries of a group of ``m`` beyond ``n``, on average, where entries stand anywhere."""
    return sum((k - n) * _chance(density, k, m) for k in range(n + 1, m + 1))


def _fitting(density: float, n: int, m: int) -> float:
    return sum(_chance(density, k, m) for k in range(n + 1))


def _chance(density: float, k: int, m: int) -> float:
    return comb(m, k) * density**k * (1 - density) ** (m - k)


def _scaled(lengths: Lengths, part: float) -> Lengths:
    """Slices with a part of their entries."""
    bins = [0] * len(lengths.bins)
    for k, number in enumerate(lengths.bins):
        if number:
            middle = 0 if k == 0 else round(1.5 * 2 ** (k - 1) * part)
            bins[min(middle.bit_length(), len(bins) - 1)] += number
    return replace(
        lengths,
        used=lengths.extent - bins[0] if bins else lengths.used,
        largest=ceil(lengths.largest * part),
        mean=lengths.mean * part,
        deviation=lengths.deviation * part,
        bins=tuple(bins),
        smallest=int(lengths.smallest * part),
    )


def _more_empty(lengths: Lengths, extent: int) -> tuple[int, ...]:
    bins = lengths.bins or (0,)
    return (bins[0] + extent - lengths.extent, *bins[1:])
