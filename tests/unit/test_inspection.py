from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pytest

from sparsecc.inspection import MATRIX_FORMATS, Inspection, Matrix, inspect
from sparsecc.statistics import Statistics
from sparsecc.storage.ingest import asarray, from_coords


def of(rows: npt.ArrayLike, format: str = "CSR") -> Inspection:
    return inspect(asarray(np.array(rows)).to(format))


def matrix_of(rows: npt.ArrayLike) -> Matrix:
    matrix = of(rows).matrix
    assert matrix is not None
    return matrix


def random_matrix(rows: int, columns: int, density: float) -> npt.NDArray[np.float64]:
    rng = np.random.default_rng(7)
    return np.where(rng.random((rows, columns)) < density, rng.random((rows, columns)) + 1, 0)


def test_facts_of_a_small_matrix() -> None:
    found = of([[1.0, 0, 0, 2], [0, 0, 0, 0], [3, 4, 5, 0]])
    assert (found.shape, found.dtype, found.format) == ((3, 4), "float64", "CSR")
    assert (found.stored, found.nonzeros, found.density) == (5, 5, 5 / 12)
    matrix = found.matrix
    assert matrix is not None
    assert matrix.rows_of == {"0": 1, "1": 0, "2-3": 2}
    assert (matrix.smallest_row, matrix.mean_row, matrix.largest_row) == (0, 5 / 3, 3)
    assert (matrix.below, matrix.above, matrix.diagonals) == (2, 3, 4)


def test_stored_zeros_are_counted_apart() -> None:
    rows, columns = np.array([0, 1]), np.array([0, 1])
    found = inspect(from_coords((rows, columns), np.array([0.0, 2.0]), (2, 2)))
    assert (found.stored, found.nonzeros) == (2, 1)
    assert "2, 1 of them 0" in found.text()


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([[1, 2], [2, 3]], "symmetric"),
        ([[0, 2], [-2, 0]], "skew-symmetric"),
        ([[1, 2j], [-2j, 1]], "hermitian"),
        ([[1, 2], [3, 4]], "in pattern only"),
        ([[1, 2], [0, 4]], "none"),
        ([[1, 2, 0], [2, 4, 0]], "none (not square)"),
        ([[0, 0], [0, 0]], "symmetric"),
    ],
)
def test_symmetry(rows: npt.ArrayLike, kind: str) -> None:
    assert matrix_of(rows).symmetry == kind


def test_block_fill_against_counting() -> None:
    dense = random_matrix(13, 11, 0.2)
    for blocks in matrix_of(dense).blocks:
        size = blocks.size
        tiles = [
            dense[i : i + size, j : j + size]
            for i in range(0, 13, size)
            for j in range(0, 11, size)
        ]
        touched = [tile for tile in tiles if tile.any()]
        assert blocks.count == len(touched)
        assert blocks.fill == np.count_nonzero(dense) / (len(touched) * size * size)


def test_group_fit_against_counting() -> None:
    dense = random_matrix(13, 11, 0.6)
    for group in matrix_of(dense).groups:
        counts = [
            np.count_nonzero(dense[i, j : j + group.m])
            for i in range(13)
            for j in range(0, 11, group.m)
        ]
        assert round(group.fitting * len(counts)) == sum(c <= group.n for c in counts)


def test_bytes_are_those_of_the_converted_tensor() -> None:
    tensor = asarray(random_matrix(12, 20, 0.1))
    sizes = inspect(tensor).bytes_in
    assert set(sizes) == set(MATRIX_FORMATS)
    for name, size in sizes.items():
        if size is not None:
            assert size == tensor.to(name).nbytes, name
    assert of(random_matrix(12, 20, 0.9)).bytes_in["2:4"] is None


def test_bytes_of_higher_ranks() -> None:
    rng = np.random.default_rng(3)
    tensor = asarray(np.where(rng.random((4, 5, 6)) < 0.1, 1.5, 0))
    found = inspect(tensor)
    assert found.matrix is None
    assert {name: tensor.to(name).nbytes for name in ("dense", "COO", "CSF")} == found.bytes_in


def test_a_huge_shape_takes_no_memory() -> None:
    rows, columns = np.array([0, 1 << 40]), np.array([5, 1 << 41])
    found = inspect(from_coords((rows, columns), np.array([1.0, 2.0]), (1 << 42, 1 << 43)))
    assert found.bytes_in["dense"] == 8 << 85
    assert "CSR" not in found.bytes_in, "its positions alone would take terabytes"
    assert found.matrix is not None
    assert [b.count for b in found.matrix.blocks] == [2, 2, 2, 2]


def test_empty_shapes() -> None:
    for shape in ((0, 3), (3, 0), (0, 0)):
        found = of(np.zeros(shape))
        assert found.density == 0.0
        assert found.text()
        assert found.matrix is not None
        assert [b.fill for b in found.matrix.blocks] == [0.0] * 4


def test_scalar_and_vector() -> None:
    assert inspect(asarray(np.array(2.0))).bytes_in == {"dense": 8}
    assert inspect(asarray(np.array([0.0, 1.0]))).nonzeros == 1


def test_text_and_json() -> None:
    found = of(random_matrix(9, 9, 0.3))
    text = found.text()
    for word in ("9 x 9", "CSR", "density", "band", "symmetry", "2 x 2", "2:4", "bytes in"):
        assert word in text
    read = json.loads(json.dumps(found.to_json()))
    assert read["matrix"]["diagonals"] > 0
    assert Statistics.from_json(read["statistics"]) == found.statistics
