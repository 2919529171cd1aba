"""Statistics against counting with NumPy, for every format, shape and element type."""

from __future__ import annotations

import json
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from storage_samples import (
    ALL_DTYPES,
    CUBE_FORMATS,
    CUBE_SHAPES,
    MATRIX_FORMATS,
    MATRIX_SHAPES,
    QUAD_FORMATS,
    sample,
    tiles,
    two_of_four,
)

from sparsecc.formats import parse_format
from sparsecc.statistics import BlockFill, GroupFit, Lengths, Statistics
from sparsecc.storage import compiled, nonzeros, statistics, tile_bits
from sparsecc.storage.ingest import asarray, from_coords
from sparsecc.storage.nonzeros import nonzeros as portions_of
from sparsecc.storage.tensor import SparseTensor

Array = npt.NDArray[Any]
BLOCKS = ((1, 8), (1, 16), (2, 2), (4, 1), (4, 4), (8, 8), (16, 16), (32, 32), (64, 64))
PRIME_SHAPES = ((127, 131), (65, 3), (3, 257), (1, 67), (128, 64), (1000, 2))


# -- counting it another way -----------------------------------------------------------------------


def counted_lengths(there: Array, dim: int) -> Lengths:
    counts = np.count_nonzero(there, axis=tuple(d for d in range(there.ndim) if d != dim))
    extent = there.shape[dim]
    widths = [int(count).bit_length() for count in counts]
    return Lengths(
        extent=extent,
        used=sum(count > 0 for count in counts),
        largest=max(counts, default=0),
        mean=pytest.approx(np.mean(counts) if extent else 0.0),  # type: ignore[arg-type]
        deviation=pytest.approx(np.std(counts) if extent else 0.0),  # type: ignore[arg-type]
        bins=tuple(widths.count(width) for width in range(max(widths, default=-1) + 1)),
        smallest=min(counts, default=0),
    )


def counted_prefixes(there: Array) -> tuple[int, ...]:
    rank = there.ndim
    return tuple(
        int(np.count_nonzero(there.any(axis=tuple(range(k, rank))))) for k in range(1, rank + 1)
    )


def counted_symmetry(dense: Array) -> str:
    there, mirrored = dense != 0, dense.T
    if dense.shape[0] != dense.shape[1] or (there != there.T).any():
        return "none"
    if (dense == mirrored).all():
        return "symmetric"
    if dense.dtype.kind == "c" and (dense == np.conj(mirrored)).all():
        return "hermitian"
    if dense.dtype.kind != "u" and dense.dtype != np.bool_ and (dense == -mirrored).all():
        return "skew-symmetric"
    return "pattern"


def check(found: Statistics, dense: Array) -> None:
    """The statistics of a matrix are those that its array has."""
    there = dense != 0
    rows, columns = np.nonzero(there)
    nnz, offsets = len(rows), columns - rows
    assert (found.shape, found.nnz, found.exact) == (dense.shape, nnz, True)
    assert found.density == (nnz / dense.size if dense.size else 0)
    assert counted_lengths(there, 0) == found.slices[0]
    assert counted_lengths(there, 1) == found.slices[1]
    assert found.prefixes == (len(set(rows)), nnz)
    assert found.below == max([0, *-offsets])
    assert found.above == max([0, *offsets])
    assert found.diagonals == len(set(offsets))
    assert found.distance == pytest.approx(np.abs(offsets).mean() if nnz else 0)
    for block in found.blocks:
        count = int(np.count_nonzero(tiles(there, block.rows, block.columns)))
        fill = nnz / (count * block.rows * block.columns) if count else 0.0
        assert block == BlockFill(block.rows, block.columns, count, fill)
    for group in found.groups:
        per = tiles(there, 1, group.m)
        fitting = 1 - np.count_nonzero(per > group.n) / per.size if per.size else 1.0
        over = int(np.maximum(per - group.n, 0).sum())
        assert group == GroupFit(group.n, group.m, pytest.approx(fitting), over)  # type: ignore[arg-type]
    assert {(b.rows, b.columns) for b in found.blocks} >= set(BLOCKS)
    assert [(g.n, g.m) for g in found.groups] == [(2, 4), (1, 4), (4, 8)]


# -- matrices ----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", MATRIX_FORMATS)
def test_matrices_of_every_format(format: str) -> None:
    narrow = "i8" in format  # too narrow for the larger ones
    for shape in MATRIX_SHAPES if narrow else (*MATRIX_SHAPES, *PRIME_SHAPES):
        dense = sample(shape)
        found = asarray(dense).to(format).statistics()
        check(found, dense)
        assert found.dtype == "f64"
        assert found.symmetry == counted_symmetry(dense)


@pytest.mark.parametrize("density", [0.0, 0.01, 0.1, 0.5, 0.95, 1.0])
def test_densities(density: float) -> None:
    for shape in ((130, 300), (300, 130), (129, 1031)):
        dense = sample(shape, density=density)
        for format in ("dense", "CSR", "CSC", "BSR(4,4)", "2:4+CSR", "2:4+2:4"):
            check(asarray(dense).to(format).statistics(), dense)


@pytest.mark.parametrize("format", ["2:4", "2:4+CSR", "2:4+BSR(4,4)", "1:4+2:4+COO"])
def test_groups_of_four(format: str) -> None:
    dense = two_of_four((37, 44))
    found = asarray(dense).to(format).statistics()
    check(found, dense)
    group = found.group(2, 4)
    assert group is not None and (group.fitting, group.overflow) == (1.0, 0)


def test_the_overflow_is_the_residual_of_2_4_and_csr() -> None:
    tensor = asarray(sample((64, 96), density=0.6))
    group = tensor.statistics().group(2, 4)
    assert group is not None
    assert group.overflow == tensor.to("2:4+CSR").parts[1].nnz > 0


def test_sorted_entries_and_arrays_of_bits_count_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MASK_CELLS", 0)
    for shape in ((127, 131), (65, 3), (3, 257), (1, 67), (128, 64), (5, 0)):
        for density in (0.01, 0.3, 1.0):
            dense = sample(shape, density=density)
            check(asarray(dense).to("CSR").statistics(), dense)


def test_bits_are_counted_without_numpy_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_bits, "_COUNT", None)
    dense = sample((127, 131))
    check(asarray(dense).statistics(), dense)


@pytest.mark.parametrize("format", [*MATRIX_FORMATS, "2:4+CSR", "BSR(4,4)+CSR", "BSR(4,4)+COO"])
def test_portions(format: str) -> None:
    for shape in ((7, 11), (20, 30), (1, 7), (0, 5)):
        dense = sample(shape)
        tensor = asarray(dense).to(format)
        for size in (1, 3, 17, 10**6):
            cells = [cell for c in portions_of(tensor, size) for cell in zip(*c, strict=True)]
            assert len(cells) == len(set(cells)), "each entry once"
            assert set(cells) == set(zip(*np.nonzero(dense), strict=True))
    uncut = ("(i : bitmap", "(j : bitmap", "floordiv 2 : bitmap", "loose_compressed", "+COO")
    count = sum(1 for _ in portions_of(asarray(sample((20, 30))).to(format), 3))
    assert (count == 1) == any(level in format for level in uncut)


@pytest.mark.parametrize("dtype", [*ALL_DTYPES, "float16", "bfloat16"])
def test_element_types(dtype: str) -> None:
    dense = sample((21, 34), dtype)
    dense[3, :] = -0.0 if np.dtype(dense.dtype).kind in "fcV" else 0
    for format in ("dense", "CSR", "CSC", "COO", "BSR(2,2)", "ELL", "BITMAP"):
        found = asarray(dense).to(format).statistics()
        check(found, dense)
        assert found == asarray(dense).statistics()


def test_stored_zeros_are_not_entries() -> None:
    dense = sample((23, 19))
    coords = np.nonzero(np.ones_like(dense))
    tensor = from_coords(coords, dense.reshape(-1), dense.shape)
    for format in ("CSR", "CSC", "COO", "DCSR", "CSF"):
        stored = tensor.to(format)
        assert stored.nnz == dense.size
        check(stored.statistics(), dense)
    assert asarray(np.eye(3) - np.eye(3)).to("CSR").statistics().symmetry == "symmetric"


def test_entries_that_are_stored_twice_are_one() -> None:
    """And none, if they add up to 0."""
    rows, columns = np.array([0, 1, 1, 2, 2]), np.array([1, 0, 0, 2, 2])
    fmt = parse_format("(i, j) -> (i : compressed(nonunique), j : singleton(nonunique))", 2)
    tensor = from_coords((rows, columns), np.ones(5), (3, 3)).to("COO")
    levels = tuple(
        type(arrays)(p, c)
        for arrays, p, c in zip(
            tensor.levels, (np.array([0, 5]), None), (rows, columns), strict=True
        )
    )
    twice = SparseTensor((3, 3), fmt, levels, np.array([1.0, 2, 3, 1, -1]))
    check(twice.statistics(), np.array([[0.0, 1, 0], [5, 0, 0], [0, 0, 0]]))


def test_a_sum_that_stores_an_entry_in_several_parts() -> None:
    dense = two_of_four((12, 16))
    tensor = asarray(dense).to("2:4+CSR")
    again = asarray(dense).to("2:4+CSR").parts[0].to("CSR")
    more = type(tensor)(tensor.shape, tensor.format, (), tensor.values, (tensor.parts[0], again))
    check(more.statistics(), 2 * dense)
    less = type(tensor)(
        tensor.shape, tensor.format, (), tensor.values,
        (tensor.parts[0], SparseTensor(again.shape, again.format, again.levels, -again.values)),
    )  # fmt: skip
    assert less.statistics().nnz == 0


SYMMETRIC: dict[str, npt.ArrayLike] = {
    "symmetric": [[1, 2, 0], [2, 0, 3], [0, 3, 4]],
    "skew-symmetric": [[0, 2, 0], [-2, 0, 3], [0, -3, 0]],
    "hermitian": [[1, 2j, 0], [-2j, 0, 3], [0, 3, 4]],
    "pattern": [[1, 2, 0], [5, 0, 3], [0, 4, 4]],
    # as many entries in rows and columns, and in diagonals and their mirror images
    "none": [[0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0]],
}


@pytest.mark.parametrize("kind", SYMMETRIC)
@pytest.mark.parametrize("format", ["dense", "CSR", "CSC", "COO", "BSR(2,2)", "2:4+CSR"])
def test_symmetry(kind: str, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = np.array(SYMMETRIC[kind])
    tensor = asarray(dense).to(format)
    assert tensor.statistics().symmetry == kind == counted_symmetry(dense)
    monkeypatch.setattr(compiled, "USE_SCIPY", False)
    assert tensor.statistics().symmetry == kind


def test_symmetry_of_large_arrays() -> None:
    """Tiles at the edge, and a single entry that differs."""
    dense = sample((300, 300))
    dense += dense.T
    dense[299, 1] = dense[1, 299] = 7
    for format in ("dense", "CSR"):
        assert asarray(dense).to(format).statistics().symmetry == "symmetric"
    dense[299, 1] = 8
    for format in ("dense", "CSR"):
        assert asarray(dense).to(format).statistics().symmetry == "pattern"


def test_huge_shapes_take_no_memory() -> None:
    rows, columns = np.array([0, 5, 1 << 40, (1 << 40) + 1]), np.array([5, 0, 1 << 41, 1 << 41])
    for extent in (1 << 42, 1 << 50):
        found = from_coords((rows, columns), np.ones(4), (extent, extent)).statistics()
        assert (found.nnz, found.prefixes, found.diagonals) == (4, (4, 4), 4)
        assert (found.below, found.above) == (5, 1 << 40)
        assert found.slices[1].bins == (extent - 3, 2, 1)
        counts = [found.block(*shape) for shape in ((1, 8), (2, 2), (8, 8), (64, 64))]
        assert [b.count for b in counts if b] == [4, 3, 2, 2]


# -- other ranks -------------------------------------------------------------------------------


@pytest.mark.parametrize("format", CUBE_FORMATS)
def test_cubes(format: str) -> None:
    for shape in (*CUBE_SHAPES, (13, 7, 11)):
        dense = sample(shape)
        found = asarray(dense).to(format).statistics()
        there = dense != 0
        assert (found.shape, found.nnz, found.exact) == (shape, np.count_nonzero(there), True)
        assert [counted_lengths(there, d) for d in range(3)] == list(found.slices)
        assert found.prefixes == counted_prefixes(there)
        assert found.pairs == tuple(np.count_nonzero(there.any(axis=d)) for d in (2, 1, 0))
        for order in ((0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 2, 1), (2, 0, 1), (1, 2, 0)):
            assert found.level_entries(order) == counted_prefixes(there.transpose(order))


@pytest.mark.parametrize("format", QUAD_FORMATS)
def test_four_dimensions(format: str) -> None:
    dense = sample((3, 4, 2, 5))
    found = asarray(dense).to(format).statistics()
    assert found.prefixes == found.level_entries((0, 1, 2, 3)) == counted_prefixes(dense != 0)
    assert found.level_entries((1, 0, 2, 3)) is None
    assert (found.pairs, found.blocks) == ((), ())


def test_matrices_in_either_order_of_levels() -> None:
    dense = sample((31, 17), density=0.05)
    found = asarray(dense).statistics()
    assert found.level_entries((1, 0)) == counted_prefixes(dense.T != 0)


def test_scalars_and_vectors() -> None:
    assert asarray(np.array(2.0)).statistics().nnz == 1
    assert asarray(np.array(0.0)).statistics().prefixes == ()
    found = asarray(np.array([0.0, 3, 0, 1])).to("SV").statistics()
    assert (found.nnz, found.prefixes, found.slices[0].bins) == (2, (2,), (2, 2))


# -- as a value --------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (5,), (30, 40), (0, 3), (4, 5, 6), (2, 3, 4, 5)])
def test_json_and_hash(shape: tuple[int, ...]) -> None:
    found = asarray(np.asarray(sample(shape))).statistics()
    text = json.dumps(found.to_json())
    assert Statistics.from_json(json.loads(text)) == found
    assert hash(found) == hash(Statistics.from_json(json.loads(text)))
    assert len(text) < 4096
    assert prod(found.shape) == prod(shape)


def test_nothing_is_kept_between_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many portions count as one does."""
    dense = sample((200, 130), density=0.2)
    whole = {f: asarray(dense).to(f).statistics() for f in ("CSR", "CSC", "COO", "2:4+CSR", "ELL")}
    original = nonzeros.nonzeros

    def small(tensor: SparseTensor, **options: Any) -> Any:
        return original(tensor, 50, **options)

    monkeypatch.setattr(statistics, "nonzeros", small)
    for format, found in whole.items():
        assert asarray(dense).to(format).statistics() == found
