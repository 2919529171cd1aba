"""Small sets of problems that a machine is calibrated with: every kernel family, each cause of a cost at two sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sparsecc.research.corpus import CorpusProblem, Matrix, of_matrix


def _m(family: str, rows: int, columns: int, dtype: str = "f32", **rest: Any) -> Matrix:
    return Matrix({"family": family, "rows": rows, "columns": columns, "seed": 7, **rest}, dtype)


def _of_a_cpu() -> Iterator[CorpusProblem]:
    matrices = (
        _m("iid", 1024, 1024, density=0.3),
        _m("iid", 1024, 2048, "f64", density=0.05),
        _m("iid", 8192, 8192, density=0.002),
        _m("row-budget", 16384, 16384, "f64", count=4),
        _m("block", 1024, 1024, block=[4, 4], density=0.1),
        _m("rmat", 8192, 8192, density=0.001),
        _m("banded", 8192, 8192, "f64", below=8, above=8),
    )
    for matrix in matrices:
        yield of_matrix(matrix, "SpMV", None, "cpu")
        for columns in (1, 8, 48):
            yield of_matrix(matrix, "SpMM", columns, "cpu")
    yield of_matrix(matrices[0], "SpMM", 128, "cpu")
    for matrix in matrices[2:4]:
        yield of_matrix(matrix, "SDDMM", 32, "cpu")
    for shape, entries in (([200, 150, 100], 60000), ([2000, 100, 50], 40000)):
        spec = {"family": "tensor-iid", "shape": shape, "entries": entries, "seed": 7}
        yield of_matrix(Matrix(spec, "f32", "COO(3)"), "MTTKRP", 16, "cpu")


def of_a_cpu() -> tuple[CorpusProblem, ...]:
    """Of one core, about a minute with compiling."""
    return tuple(_of_a_cpu())


def _of_a_gpu(target: str) -> Iterator[CorpusProblem]:
    for rows, columns in ((4096, 4096), (12288, 4096)):
        weights = (
            _m("n:m", rows, columns, "f16", n=2, m=4),
            _m("iid", rows, columns, "f16", density=0.3),
            _m("block", rows, columns, "f16", block=[32, 32], density=0.2),
        )
        for weight in weights:
            for tokens in (1, 16, 64, 1024):
                yield of_matrix(weight, "linear", tokens, target)
    for matrix in (
        _m("iid", 16384, 16384, "f16", density=0.005),
        _m("rmat", 16384, 16384, density=0.002),
    ):
        yield of_matrix(matrix, "SpMV", None, target)
        for columns in (64, 256):
            yield of_matrix(matrix, "SpMM", columns, target)
        yield of_matrix(matrix, "SDDMM", 64, target)


def of_a_gpu(target: str = "sm_90") -> tuple[CorpusProblem, ...]:
    """Of a GPU; compiling is most of the time."""
    return tuple(_of_a_gpu(target))
