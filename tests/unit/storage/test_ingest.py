"""Other libraries' objects: shared where they are canonical, mended or refused where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from storage_samples import MATRIX_FORMATS, sample

from sparsecc.diagnostics import FormatError, OperandError, UnsupportedError
from sparsecc.storage.ingest import asarray, from_coords

library: Any = sp
KINDS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", ["array", "matrix"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex128"])
def test_scipy_classes(kind: str, suffix: str, dtype: str) -> None:
    dense = sample((6, 9), dtype)
    matrix = getattr(library, f"{kind}_{suffix}")(dense)
    tensor = asarray(matrix).check()
    assert np.array_equal(tensor.to_numpy(), dense) and tensor.dtype == dense.dtype
    assert np.array_equal(tensor.to_scipy().toarray(), dense)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
def test_canonical_scipy_arrays_are_shared_both_ways(kind: str) -> None:
    matrix = getattr(library, f"{kind}_array")(sample((6, 8)))
    tensor = asarray(matrix)
    assert np.shares_memory(tensor.values, matrix.data)
    back = tensor.to_scipy()
    assert back.format == kind and np.shares_memory(back.data, matrix.data)
    names = ("row", "col") if kind == "coo" else ("indices", "indptr")
    for name in names:
        assert np.shares_memory(getattr(back, name), getattr(matrix, name))


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0)])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok"])
def test_empty_scipy(kind: str, shape: tuple[int, int]) -> None:
    tensor = asarray(getattr(library, f"{kind}_array")(np.zeros(shape))).check()
    assert tensor.shape == shape and tensor.nnz == 0
    assert tensor.to_scipy().shape == shape


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_unsorted_and_repeated_entries_whatever_the_flag_says(kind: str) -> None:
    arrays = (np.array([1.0, 2, 3, 4]), np.array([2, 0, 2, 1]), np.array([0, 3, 4]))
    make = getattr(library, f"{kind}_array")
    matrix = make(arrays, shape=(2, 3) if kind == "csr" else (3, 2))
    matrix.has_canonical_format = True
    matrix.has_sorted_indices = True
    tensor = asarray(matrix).check()
    wanted = np.array([[2.0, 0, 4], [0, 4, 0]])
    assert np.array_equal(tensor.to_numpy(), wanted if kind == "csr" else wanted.T)
    assert tensor.nnz == 3


def test_unsorted_blocks_and_coordinates() -> None:
    data = np.arange(1.0, 9).reshape(2, 2, 2)
    blocks = library.bsr_array((data, np.array([1, 0]), np.array([0, 2])), shape=(2, 4))
    assert np.array_equal(asarray(blocks).check().to_numpy(), [[5, 6, 1, 2], [7, 8, 3, 4]])
    entries = library.coo_array((np.array([1, 2, 4]), ([1, 0, 1], [0, 1, 0])), shape=(2, 2))
    assert np.array_equal(asarray(entries).check().to_numpy(), [[0, 2], [5, 0]])
    arrays = (np.array([True, True, True, False, True]), [1, 0, 0, 1, 1], [0, 2, 5])
    assert asarray(library.csr_array(arrays, shape=(2, 2))).to_numpy().tolist() == [[1, 1], [1, 1]]


def test_scipy_out_of_range_is_refused_with_the_entry() -> None:
    matrix = library.csr_array(np.eye(3))
    matrix.indices[1] = 7
    with pytest.raises(OperandError, match="coordinate 7 at entry 1"):
        asarray(matrix)
    matrix.indices[1] = -1
    with pytest.raises(OperandError, match="coordinate -1 at entry 1"):
        asarray(matrix)
    entries = library.coo_array(np.eye(3))
    entries.coords[1][2] = 9
    with pytest.raises(OperandError, match=r"entry 2 has coordinate 9 in dimension 1"):
        asarray(entries)


def test_spare_room_of_scipy_is_no_entry() -> None:
    matrix = library.csr_array(np.eye(2))
    matrix.indices, matrix.data = np.append(matrix.indices, 1), np.append(matrix.data, 5.0)
    assert np.array_equal(asarray(matrix).check().to_numpy(), np.eye(2))


@pytest.mark.parametrize("name", MATRIX_FORMATS)
def test_every_format_to_scipy(name: str) -> None:
    for shape in ((6, 6), (5, 7), (0, 3)):
        dense = sample(shape)
        assert np.array_equal(asarray(dense).to(name).to_scipy().toarray(), dense)


def test_other_ranks_to_scipy() -> None:
    cube = sample((2, 3, 4))
    assert np.array_equal(asarray(cube).to("CSF").to_scipy().toarray(), cube)
    with pytest.raises(UnsupportedError, match="rank 0"):
        asarray(1.0).to_scipy()


def test_numpy_is_shared_in_any_order_of_dimensions() -> None:
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        array = np.ascontiguousarray(sample((2, 3, 4)).transpose(order)).transpose(
            np.argsort(order)
        )
        tensor = asarray(array)
        assert np.shares_memory(tensor.values, array)
        assert tensor.format.is_dense and tensor.format.dim_order == order
        assert np.array_equal(tensor.to_numpy(), array)
    c_order = asarray(sample((3, 4)))
    assert np.shares_memory(c_order.to_numpy(), c_order.values)
    strided = sample((6, 8))[::2, ::-1]
    assert np.array_equal(asarray(strided).to_numpy(), strided)


def test_lists_scalars_and_byte_order() -> None:
    assert asarray([[1, 2], [3, 4]]).dtype == np.int64
    assert asarray(True).dtype == np.bool_ and asarray(1j).dtype == np.complex128
    swapped = np.array([1.5, 2.5], dtype=">f8")
    assert asarray(swapped).dtype == np.dtype("float64")
    assert asarray(swapped).to_numpy().tolist() == [1.5, 2.5]


@pytest.mark.parametrize("dtype", ["V3", "U3", "M8[s]", "O", "longdouble"])
def test_other_dtypes_are_named(dtype: str) -> None:
    array = np.zeros(3, dtype=dtype)
    with pytest.raises(OperandError, match="astype") as caught:
        asarray(array)
    assert str(array.dtype) in caught.value.message


def test_what_is_no_array() -> None:
    with pytest.raises(OperandError, match="object of type dict"):
        asarray({"a": 1})
    with pytest.raises(OperandError, match="uneven"):
        asarray([[1, 2], [3]])


@pytest.mark.parametrize(
    ("coords", "values", "shape", "problem"),
    [
        ([[0, 2], [0, 0]], [1, 2], (2, 2), "entry 1 has coordinate 2 in dimension 0, outside"),
        ([[0, 0], [0, -1]], [1, 2], (2, 2), "entry 1 has coordinate -1 in dimension 1"),
        ([[0, 1]], [1, 2], (2, 2), "1 coordinate arrays for 2 dimensions"),
        ([[0, 1], [0]], [1, 2], (2, 2), "dimension 1 has 1 coordinates, dimension 0 has 2"),
        ([[0, 1], [0, 1]], [1, 2, 3], (2, 2), r"values have shape \(3,\)"),
        ([[0.0, 1.0], [0, 1]], [1, 2], (2, 2), "float64, not integers"),
        ([[[0]], [[1]]], [1], (2, 2), r"shape \(1, 1\)"),
        ([[0], [0]], ["x"], (2, 2), "dtype <U1"),
        ([[0], [0]], [1], (2, -2), "-2 is outside"),
        ([[0], [0]], [1], (2, 2.5), "2.5 is not an integer"),
        ([[0], [0]], [1], 7, "not a sequence"),
        (5, [1], (2, 2), "malformed"),
    ],
)
def test_bad_entries(coords: Any, values: Any, shape: Any, problem: str) -> None:
    with pytest.raises(OperandError, match=problem):
        from_coords(coords, values, shape)


def test_out_of_range_is_an_index_error_and_scalars_spread() -> None:
    with pytest.raises(IndexError):
        from_coords([[5]], [1.0], (3,))
    assert from_coords([[0, 2]], 2.5, (3,)).to_numpy().tolist() == [2.5, 0, 2.5]
    assert from_coords(np.zeros((2, 0), int), [], (3, 3)).nnz == 0
    assert from_coords(np.array([[1], [2]], dtype=np.uint8), [1], (3, 3)).nnz == 1
    with pytest.raises(FormatError):
        from_coords([[0]], [1], (3,), "CSR")


def test_int64_indices_of_scipy_are_kept() -> None:
    matrix = library.coo_array((np.ones(2), (np.array([0, 2]), np.array([1, 3_000_000_000]))))
    tensor = asarray(matrix).check()
    assert tensor.shape == (3, 3_000_000_001)
    assert np.shares_memory(tensor.levels[1].coordinates, matrix.coords[1])


def test_masked_arrays_are_refused_if_anything_is_masked() -> None:
    masked: Any = np.ma.masked_array(np.ones((2, 2)), mask=[[True, False], [False, True]])
    with pytest.raises(OperandError, match="2 entries of a masked array") as caught:
        asarray(masked)
    assert "filled(0)" in caught.value.help
    with pytest.raises(OperandError, match="masked"):
        from_coords([[0, 1]], masked[0], (2,))
    with pytest.raises(OperandError, match="masked"):
        from_coords([np.ma.masked_array([0, 1], mask=[False, True])], 1.0, (2,))
    whole: Any = np.ma.masked_array(np.eye(2))
    assert np.array_equal(asarray(whole).to_numpy(), np.eye(2))
