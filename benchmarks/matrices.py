"""Test matrices, made on the spot from a seed, or read from a folder of ``.mtx`` files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
# SciPy's own annotations are too wide for a strict type checker.
sp: Any = import_module("scipy.sparse")


def poisson(side: int) -> Any:
    """The 5-point Laplacian of a square grid: 5 entries a row, next to the diagonal."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(side, side))
    one = sp.eye_array(side)
    return _csr(sp.kron(line, one) + sp.kron(one, line))


def power_law(scale: int, edges: int, seed: int = 0) -> Any:
    """An R-MAT graph of ``2**scale`` vertices: few long rows, many short ones, no locality."""
    rng = np.random.default_rng(seed)
    rows = np.zeros(edges, np.int64)
    columns = np.zeros(edges, np.int64)
    for _ in range(scale):
        # The four quadrants with the probabilities of Graph500: 0.57, 0.19, 0.19, 0.05.
        draw = rng.random(edges)
        down = draw > 0.76
        right = (draw > 0.57) & ~((draw > 0.76) & (draw <= 0.95))
        rows = 2 * rows + down
        columns = 2 * columns + right
    n = 2**scale
    keys = np.unique(rows * n + columns)
    values = rng.random(len(keys)) + 0.5
    return _csr(sp.coo_array((values, (keys // n, keys % n)), shape=(n, n)))


def uniform(rows: int, columns: int, density: float, seed: int = 0) -> Any:
    """Entries anywhere, each cell as likely as any other."""
    rng = np.random.default_rng(seed)
    keys = np.unique(rng.integers(0, rows * columns, int(rows * columns * density)))
    values = rng.random(len(keys)) + 0.5
    return _csr(sp.coo_array((values, (keys // columns, keys % columns)), shape=(rows, columns)))


def pruned(size: int, kept: float, seed: int = 0) -> Any:
    """A square layer of normal weights (f32) of which the largest are kept."""
    weights = np.random.default_rng(seed).standard_normal((size, size), np.float32)
    threshold = np.quantile(np.abs(weights[: size // 8]), 1 - kept)
    return _csr(sp.csr_array(np.where(np.abs(weights) > threshold, weights, np.float32(0))))


def tensor3(extent: int, entries: int, seed: int = 0) -> tuple[Array, Array]:
    """Coordinates (sorted, unique; one row a dimension) and values of a tensor of rank 3."""
    rng = np.random.default_rng(seed)
    keys = np.unique(rng.integers(0, extent**3, entries))
    i, rest = np.divmod(keys, extent * extent)
    coordinates = np.stack([i, rest // extent, rest % extent])
    return coordinates, rng.random(len(keys)) + 0.5


def _csr(matrix: Any) -> Any:
    """CSR with sorted rows and 32-bit indices, as SciPy itself makes it."""
    found = sp.csr_array(matrix)
    found.sort_indices()
    found.indices = found.indices.astype(np.int32)
    found.indptr = found.indptr.astype(np.int32)
    return found


def standard(quick: bool) -> dict[str, Callable[[], Any]]:
    """The matrices of the SpMV and SpMM tables; an eighth of their size when it must be quick."""
    if quick:
        return {
            "Poisson 300x300": lambda: poisson(300),
            "R-MAT 16k": lambda: power_law(14, 140_000),
            "uniform 3k 1%": lambda: uniform(3000, 3000, 0.01),
            "pruned 90% 1024 f32": lambda: pruned(1024, 0.1),
        }
    return {
        "Poisson 1000x1000": lambda: poisson(1000),
        "R-MAT 131k": lambda: power_law(17, 1_150_000),
        "uniform 10k 1%": lambda: uniform(10_000, 10_000, 0.01),
        "pruned 90% 4096 f32": lambda: pruned(4096, 0.1),
    }


def products(quick: bool) -> dict[str, Callable[[], Any]]:
    """Matrices whose square is still small."""
    if quick:
        return {
            "Poisson 100x100": lambda: poisson(100),
            "R-MAT 4k": lambda: power_law(12, 30_000),
            "uniform 2k 0.5%": lambda: uniform(2000, 2000, 0.005),
        }
    return {
        "Poisson 500x500": lambda: poisson(500),
        "R-MAT 16k": lambda: power_law(14, 140_000),
        "uniform 10k 0.2%": lambda: uniform(10_000, 10_000, 0.002),
    }


def from_folder(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every ``.mtx`` (``.gz``) file of a folder, as real CSR."""
    for path in sorted([*folder.glob("*.mtx"), *folder.glob("*.mtx.gz")]):
        yield path.name.partition(".")[0], lambda path=path: _read(path)


def _read(path: Path) -> Any:
    matrix = _csr(import_module("scipy.io").mmread(path))
    return _csr(matrix.real.astype(np.float64))
