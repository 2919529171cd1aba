"""The problems of GPUs: linear layers of networks from one token to a prefill, and graphs.

A layer's weight meets four token counts, so that a weight is made once for several problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sparsecc.research.corpus import CorpusProblem, Matrix, of_matrix

TARGET = "sm_90"
SHAPES = {
    "4k": (4096, 4096), "up": (14336, 4096), "down": (4096, 14336), "8k": (8192, 8192), "70b": (28672, 8192),
    "qwen": (3584, 18944), "mini": (1536, 384),
}  # fmt: skip
DECODE, MIXED = (1, 8, 16, 32, 64, 128, 512, 2048), (1, 16, 64, 512)
OTHER = (8, 32, 128, 2048)
SIDE = 16384

Weight = tuple[Matrix, Sequence[int]]


def _w(shape: str, tokens: Sequence[int], family: str, **rest: Any) -> Weight:
    rows, columns = SHAPES[shape]
    spec = {"family": family, "rows": rows, "columns": columns, **rest}
    return Matrix(spec, "f16", "dense"), tokens


def _weights() -> Iterator[Weight]:
    for shape in ("4k", "up", "70b"):
        yield _w(shape, DECODE, "n:m", n=2, m=4)
    for shape, tokens in (("down", MIXED), ("8k", OTHER), ("qwen", MIXED), ("mini", OTHER)):
        yield _w(shape, tokens, "n:m", n=2, m=4)
    for shape, density, tokens in (
        ("4k", 0.5, DECODE), ("up", 0.5, MIXED), ("70b", 0.5, OTHER), ("mini", 0.5, MIXED),
        ("down", 0.4, MIXED), ("8k", 0.4, OTHER), ("up", 0.3, DECODE), ("qwen", 0.3, OTHER),
        ("8k", 0.2, MIXED), ("4k", 0.2, OTHER), ("up", 0.1, MIXED), ("4k", 0.1, OTHER),
        ("mini", 0.1, MIXED), ("8k", 0.05, OTHER), ("down", 0.05, MIXED),
    ):  # fmt: skip
        yield _w(shape, tokens, "iid", density=density)
    for shape, density, tokens in (
        ("4k", 0.5, MIXED), ("70b", 0.5, (8, 16)), ("up", 0.5, OTHER), ("8k", 0.3, MIXED),
        ("qwen", 0.3, OTHER),
    ):  # fmt: skip
        yield _w(shape, tokens, "magnitude", density=density)
    for shape, block, density, tokens in (
        ("4k", 16, 0.5, MIXED), ("up", 16, 0.25, OTHER), ("8k", 16, 0.1, MIXED), ("4k", 16, 0.05, OTHER),
        ("up", 32, 0.5, OTHER), ("4k", 32, 0.25, MIXED), ("down", 32, 0.1, OTHER), ("8k", 32, 0.05, MIXED),
        ("8k", 64, 0.5, MIXED), ("qwen", 64, 0.25, OTHER), ("4k", 64, 0.1, MIXED), ("up", 64, 0.05, OTHER),
    ):  # fmt: skip
        yield _w(shape, tokens, "block", block=[block, block], density=density)


def _g(family: str, dtype: str = "f16", rows: int = SIDE, **rest: Any) -> Matrix:
    return Matrix({"family": family, "rows": rows, "columns": rows, **rest}, dtype)


def _graphs() -> Iterator[tuple[Matrix, Sequence[int], Sequence[int]]]:
    """Matrices, the columns of SpMM and the ranks of SDDMM; all meet a vector too."""
    yield _g("iid", density=0.1), (64, 128, 512), ()
    yield _g("iid", density=0.05), (64, 256), ()
    yield _g("iid", density=0.01), (64, 128, 512), (64, 256)
    yield _g("iid", density=0.001), (64, 256), (64, 256)
    yield _g("iid", "f32", density=0.01), (64, 128, 512), (64,)
    yield _g("iid", "f32", 4096, density=0.05), (64, 256), ()
    yield _g("rmat", density=0.05), (64, 512), ()
    yield _g("rmat", density=0.01), (64, 128, 512), (64, 256)
    yield _g("rmat", density=0.001), (64, 256), (64, 256)
    yield _g("rmat", "f32", density=0.002), (64, 128, 512), (256,)
    yield _g("rmat", "f32", 4096, density=0.01), (64, 256), ()
    yield _g("banded", below=80, above=80), (64, 512), (64,)
    yield _g("banded", below=8, above=8), (128,), ()
    yield _g("banded", "f32", below=40, above=0, fill=0.5), (64, 256), ()
    yield Matrix({"family": "stencil", "grid": [128, 128], "points": 5}, "f32"), (64, 256), ()
    yield Matrix({"family": "stencil", "grid": [25, 25, 25], "points": 27}, "f16"), (64, 256), (64,)
    yield Matrix({"family": "preferential", "rows": SIDE, "edges": 32}, "f16"), (64, 256), ()
    yield _g("block", block=[32, 32], density=0.05), (64, 256, 512), ()
    yield _g("block", block=[16, 16], density=0.1), (64, 128, 512), ()


def problems() -> tuple[CorpusProblem, ...]:
    """All of them; those of one matrix follow each other."""
    found: list[CorpusProblem] = []
    for matrix, tokens in _weights():
        found += [of_matrix(matrix, "linear", count, TARGET) for count in tokens]
    for matrix, columns, ranks in _graphs():
        found.append(of_matrix(matrix, "SpMV", None, TARGET))
        found += [of_matrix(matrix, "SpMM", width, TARGET) for width in columns]
        found += [of_matrix(matrix, "SDDMM", rank, TARGET) for rank in ranks]
    return tuple(found)
