"""The problems of the CPU: every family, from half full to one entry in two thousand, small to middle sizes.

Most plans of most problems take between 20 microseconds and 30 milliseconds of one core; those of the 4096x4096
weights with 128 columns take longer, and are there because such weights are what people ask about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sparsecc.research.corpus import CorpusProblem, Matrix, of_matrix

COLUMNS = (1, 8, 32, 128)
RANKS = (16, 64)
FACTORS = (8, 32)


def _m(
    family: str, rows: int, columns: int, dtype: str = "f32", stored: str = "CSR", **rest: Any
) -> Matrix:
    return Matrix({"family": family, "rows": rows, "columns": columns, **rest}, dtype, stored)


def _weights() -> Iterator[Matrix]:
    """Of networks: they come as dense arrays."""
    for density in (0.5, 0.3, 0.1, 0.05):
        yield _m("iid", 4096, 4096, "f32", "dense", density=density)
    for density in (0.5, 0.2, 0.05):
        yield _m("magnitude", 1536, 384, "f32", "dense", density=density)
    yield _m("magnitude", 1024, 1024, "f32", "dense", density=0.1, seed=1)
    yield _m("magnitude", 768, 3072, "f32", "dense", density=0.02)
    for density in (0.5, 0.3):
        yield _m("wanda", 1024, 1024, "f32", "dense", density=density)
    yield _m("wanda", 384, 1536, "f32", "dense", density=0.1)
    yield _m("n:m", 1024, 1024, "f32", "dense", n=2, m=4)
    yield _m("n:m", 2048, 1024, "f32", "dense", n=1, m=4)
    yield _m("n:m", 768, 768, "f64", "dense", n=4, m=8)
    yield _m("v:n:m", 1024, 1024, "f32", "dense", v=64, n=2, m=8)
    yield _m("v:n:m", 1024, 2048, "f32", "dense", v=32, n=2, m=16)


def _random() -> Iterator[Matrix]:
    yield _m("iid", 1024, 1024, "f64", density=0.5)
    yield _m("iid", 1000, 3000, "f32", density=0.3)
    yield _m("iid", 2048, 512, "f64", density=0.2)
    yield _m("iid", 512, 2048, "f32", density=0.1)
    yield _m("iid", 1500, 1500, "f64", density=0.03)
    yield _m("iid", 4096, 4096, "f32", density=0.01)
    yield _m("iid", 3000, 3000, "f64", density=0.003)
    yield _m("iid", 8192, 8192, "f32", density=0.001)
    yield _m("iid", 20000, 10000, "f64", density=0.0005)
    yield _m("row-budget", 2048, 2048, "f32", count=256)
    yield _m("row-budget", 2048, 2048, "f64", count=64)
    yield _m("row-budget", 4096, 2048, "f32", count=16)
    yield _m("row-budget", 16384, 8192, "f64", count=4)


def _blocks() -> Iterator[Matrix]:
    yield _m("block", 1024, 1024, "f32", block=[4, 4], density=0.3)
    yield _m("block", 2048, 2048, "f32", block=[4, 4], density=0.1)
    yield _m("block", 4096, 4096, "f64", block=[4, 4], density=0.01)
    yield _m("block", 1024, 1024, "f32", block=[16, 16], density=0.3)
    yield _m("block", 2048, 2048, "f32", block=[16, 16], density=0.1)
    yield _m("block", 4096, 4096, "f64", block=[16, 16], density=0.02)
    yield _m("block", 2048, 1024, "f32", block=[8, 8], density=0.1)
    yield _m("block", 1024, 2048, "f64", block=[8, 8], density=0.2, fill=0.6)
    yield _m("block", 1024, 1024, "f32", block=[4, 1], density=0.2)
    yield _m("block", 2048, 2048, "f32", block=[32, 32], density=0.15)


def _grids() -> Iterator[Matrix]:
    yield _m("banded", 4096, 4096, "f32", below=4, above=4)
    yield _m("banded", 2048, 2048, "f64", below=64, above=64, fill=0.5)
    yield _m("banded", 16384, 16384, "f64", below=2, above=2)
    yield _m("banded", 1024, 1024, "f32", below=200, above=100)
    yield _m("banded", 8192, 8192, "f32", below=16, above=0, fill=0.7)
    yield Matrix({"family": "stencil", "grid": [128, 128], "points": 5}, "f64")
    yield Matrix({"family": "stencil", "grid": [64, 96], "points": 9}, "f32")
    yield Matrix({"family": "stencil", "grid": [24, 24, 24], "points": 7}, "f32")
    yield Matrix({"family": "stencil", "grid": [16, 16, 20], "points": 27}, "f64")


def _graphs() -> Iterator[Matrix]:
    yield _m("rmat", 1024, 1024, "f32", density=0.05)
    yield _m("rmat", 4096, 4096, "f64", density=0.01)
    yield _m("rmat", 4096, 4096, "f32", density=0.002)
    yield _m("rmat", 8192, 4096, "f32", density=0.005)
    yield _m("rmat", 16384, 16384, "f64", density=0.0005)
    yield Matrix({"family": "preferential", "rows": 5000, "edges": 8}, "f32")
    yield Matrix({"family": "preferential", "rows": 12000, "edges": 4}, "f64")
    yield Matrix({"family": "preferential", "rows": 2000, "edges": 32}, "f32")
    yield _m("zipf-rows", 2048, 2048, "f32", density=0.02)
    yield _m("zipf-rows", 6000, 3000, "f64", density=0.004)
    yield _m("zipf-rows", 1024, 1024, "f32", density=0.1, exponent=0.6)


def _t(kind: str, shape: list[int], entries: int, dtype: str, **rest: Any) -> Matrix:
    spec = {"family": f"tensor-{kind}", "shape": shape, "entries": entries, **rest}
    return Matrix(spec, dtype, "COO(3)")


def _tensors() -> Iterator[Matrix]:
    yield _t("iid", [64, 64, 64], 60000, "f32")
    yield _t("iid", [256, 128, 96], 150000, "f64")
    yield _t("iid", [1000, 800, 600], 100000, "f32")
    yield _t("clustered", [128, 128, 128], 80000, "f64", clusters=40, spread=6.0)
    yield _t("clustered", [500, 400, 300], 200000, "f32", clusters=100, spread=8.0)
    yield _t("clustered", [64, 96, 48], 40000, "f32", clusters=10, spread=8.0)
    yield _t("power-law", [300, 300, 300], 100000, "f32")
    yield _t("power-law", [2000, 500, 100], 150000, "f64")
    yield _t("power-law", [100, 100, 400], 60000, "f32", exponent=0.7)
    yield _t("power-law", [5000, 300, 50], 60000, "f64", exponent=1.2)


def problems() -> tuple[CorpusProblem, ...]:
    """All of them; those of one matrix follow each other."""
    found: list[CorpusProblem] = []
    sampled = 0
    for kind in (_weights, _random, _blocks, _grids, _graphs):
        for matrix in kind():
            found.append(of_matrix(matrix, "SpMV", None, "cpu"))
            found += [of_matrix(matrix, "SpMM", width, "cpu") for width in COLUMNS]
            # SDDMM is of masks of graphs, bands and blocks: every third matrix that is not a weight.
            sampled += kind is not _weights
            if kind is not _weights and sampled % 3 == 0:
                found += [of_matrix(matrix, "SDDMM", rank, "cpu") for rank in RANKS]
    for matrix in _tensors():
        found += [of_matrix(matrix, "MTTKRP", rank, "cpu") for rank in FACTORS]
    return tuple(found)
