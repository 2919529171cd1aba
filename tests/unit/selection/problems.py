"""Problems to choose for, made of texts and patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc.selection.problem import Access, Expression, Problem, Tensor
from sparsecc.selection.spaces import space_of
from sparsecc.statistics import BlockFill, GroupFit, Lengths, Statistics
from sparsecc.targets import known_target

Array = npt.NDArray[Any]
CPU_ENGINES = frozenset({"blas", "scipy"})
GPU_ENGINES = frozenset({"cublas", "cusparselt", "cusparse"})
_ACCESS = re.compile(r"(\w+)\[([\w,]*)\]")

SPMV = "y[i] = A[i,j] * x[j]"
SPMM = "C[i,k] = A[i,j] * X[j,k]"
LINEAR = "Y[m,n] = X[m,k] * A[n,k]"
SDDMM = "C[i,j] = A[i,j] * U[i,k] * V[j,k]"
MTTKRP = "M[i,r] = A[i,j,k] * B[j,r] * C[k,r]"


def expression(text: str) -> Expression:
    """The expression of a text; a product if it has no sum."""
    result, *inputs = [Access(n, tuple(i.split(","))) for n, i in _ACCESS.findall(text)]
    return Expression(result, tuple(inputs), "+" not in text, text)


def problem(
    *texts: str,
    target: str = "cpu",
    dtype: str = "f64",
    statistics: Mapping[str, Statistics | None],
    formats: Mapping[str, str] | None = None,
    libraries: frozenset[str] = frozenset(),
    calls: float | None = None,
    stored: str | None = None,
    measure: Any = None,
    sizes: Mapping[str, int] | None = None,
) -> Problem:
    """A problem whose tensors with statistics are open; ``formats`` of others, dense if not named."""
    expressions = tuple(map(expression, texts))
    sizes = sizes or {}
    extents = dict(sizes)
    for e in expressions:
        for access in e.inputs:
            known = statistics.get(access.name)
            if known is not None:
                extents.update(zip(access.indices, known.shape, strict=True))
    tensors: dict[str, Tensor] = {}
    for e in expressions:
        for access in (*e.inputs, e.result):
            name = access.name
            fmt = None if name in statistics else (formats or {}).get(name, "dense")
            shape = tuple(extents.get(i) for i in access.indices)
            known = statistics.get(name)
            tensors[name] = Tensor(
                name, shape, dtype, fmt, stored if name in statistics else None, known
            )
    found = known_target(target)
    return Problem(
        expressions, tensors, found, space_of(found), calls, sizes, libraries, measure
    )  # fmt: skip


def statistics_of(dense: Array, dtype: str = "f64") -> Statistics:
    """Statistics of a dense array, counted slowly."""
    full = dense != 0
    nnz = int(full.sum())
    slices: list[Lengths] = []
    for dim in range(full.ndim):
        counts = full.sum(axis=tuple(d for d in range(full.ndim) if d != dim))
        bins = np.bincount([int(c).bit_length() for c in counts])
        slices.append(
            Lengths(
                full.shape[dim],
                int((counts > 0).sum()),
                int(counts.max()),
                float(counts.mean()),
                float(counts.std()),
                tuple(map(int, bins)),
            )  # fmt: skip
        )
    prefixes = tuple(
        int(full.any(axis=tuple(range(k + 1, full.ndim))).sum()) for k in range(full.ndim)
    )
    if full.ndim != 2:
        return Statistics(full.shape, dtype, nnz, True, tuple(slices), prefixes)
    rows, columns = np.nonzero(full)
    below = int(max((rows - columns).max(initial=0), 0))
    above = int(max((columns - rows).max(initial=0), 0))
    shapes = ((2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (64, 64), (4, 1), (1, 8), (1, 16))
    return Statistics(
        full.shape, dtype, nnz, True, tuple(slices), prefixes,
        blocks=tuple(_fill(full, *shape) for shape in shapes), groups=(_fit(full, 2, 4),),
        below=below, above=above, diagonals=len(np.unique(rows - columns)), symmetry="none",
    )  # fmt: skip


def _fill(full: Array, rows: int, columns: int) -> BlockFill:
    padded = np.pad(full, ((0, -full.shape[0] % rows), (0, -full.shape[1] % columns)))
    tiles = padded.reshape(padded.shape[0] // rows, rows, padded.shape[1] // columns, columns)
    count = int(tiles.any(axis=(1, 3)).sum())
    return BlockFill(rows, columns, count, full.sum() / max(count * rows * columns, 1))


def _fit(full: Array, n: int, m: int) -> GroupFit:
    padded = np.pad(full, ((0, 0), (0, -full.shape[1] % m)))
    counts = padded.reshape(full.shape[0], -1, m).sum(axis=2)
    return GroupFit(n, m, float((counts <= n).mean()), int(np.maximum(counts - n, 0).sum()))


def iid(
    *shape: int, density: float, dtype: str = "f64", fits_2_4: bool = False, largest: int = 0,
    blocks: float = 0.0,
) -> Statistics:  # fmt: skip
    """Statistics of entries anywhere, without the entries, of large shapes; or in that part of all blocks of 64."""
    nnz = round(prod(shape) * density)
    slices: list[Lengths] = []
    for extent in shape:
        mean = nnz / extent
        size = largest or int(mean + 4 * mean**0.5)
        bins = [0] * (max(int(mean), 1).bit_length() + 1)
        bins[-1] = extent
        slices.append(Lengths(extent, extent, size, mean, mean**0.5, tuple(bins)))
    prefixes = tuple(min(prod(shape[: k + 1]), nnz) for k in range(len(shape)))
    groups: tuple[GroupFit, ...] = ()
    if len(shape) == 2:
        d = density
        beyond = prod(shape) / 4 * (4 * d**3 * (1 - d) + 2 * d**4)
        fit = GroupFit(2, 4, 1.0, 0) if fits_2_4 else GroupFit(2, 4, 0.7, round(beyond))
        groups = (fit,)
    fills = tuple(
        BlockFill(b, b, count := round(prod(shape) / b**2 * blocks), nnz / (count * b**2))
        for b in (16, 32, 64)
        if blocks
    )
    return Statistics(shape, dtype, nnz, True, tuple(slices), prefixes, blocks=fills, groups=groups)
