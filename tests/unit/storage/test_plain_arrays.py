"""Every array of a tensor is what kernels read: one width a role, native, contiguous, aligned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sparsecc.diagnostics import OperandError
from sparsecc.formats import LevelArrays, parse_format
from sparsecc.storage.ingest import asarray
from sparsecc.storage.limits import WidthOverflow
from sparsecc.storage.plain import NotIndices
from sparsecc.storage.tensor import SparseTensor

library: Any = sp
DCSR = parse_format("DCSR")
DENSE = np.array([[0.0, 2, 0], [0, 0, 0], [4, 0, 5]])


def dcsr(*arrays: Any, values: Any = None, widths: tuple[int, int] = (0, 0)) -> SparseTensor:
    outer, inner = LevelArrays(*arrays[:2]), LevelArrays(*arrays[2:])
    stored = np.array([2.0, 4, 5]) if values is None else values
    return SparseTensor((3, 3), DCSR.with_widths(*widths), (outer, inner), stored)


def parts(*dtypes: str) -> list[Any]:
    lists = [0, 2], [0, 2], [0, 1, 3], [1, 0, 2]
    return [np.array(numbers, dtype=d) for numbers, d in zip(lists, dtypes, strict=True)]


@pytest.mark.parametrize(("dtypes", "positions", "coordinates"), [
    (("int32", "int64", "int32", "int64"), "int32", "int64"),
    (("int32", "int32", "int64", "int64"), "int64", "int64"),
    ((">i4", ">i8", ">i4", "int32"), "int32", "int64"),
    (("uint8", "uint16", "uint8", "uint16"), "uint8", "uint16"),
    (("uint8", "uint16", "uint16", "uint8"), "int32", "int32"),
    (("int8", "int16", "int8", "int16"), "int32", "int32"),
    (("uint64", "uint32", "uint64", "uint32"), "int64", "int64"),
])  # fmt: skip
def test_widths_of_a_role_agree(dtypes: Any, positions: str, coordinates: str) -> None:
    tensor = dcsr(*parts(*dtypes)).check()
    for level in tensor.levels:
        assert level.positions is not None and level.coordinates is not None
        assert level.positions.dtype == positions and level.positions.dtype.isnative
        assert level.coordinates.dtype == coordinates and level.coordinates.dtype.isnative
    assert np.array_equal(tensor.to_numpy(), DENSE)


def test_arrays_that_fit_are_shared() -> None:
    arrays = parts("int32", "int32", "int32", "int32")
    tensor = dcsr(*arrays)
    assert tensor.levels[0].positions is arrays[0] and tensor.levels[1].coordinates is arrays[3]


def test_strided_and_unaligned_arrays_are_copied() -> None:
    arrays = parts("int64", "int64", "int64", "int64")
    raw = np.zeros(8 * 3 + 1, dtype=np.uint8)
    unaligned = raw[1:].view(np.float64)
    unaligned[:] = [2, 4, 5]
    arrays[3] = np.repeat(arrays[3], 2)[::2]
    tensor = dcsr(*arrays, values=unaligned).check()
    assert tensor.values.flags.aligned
    assert np.array_equal(tensor.to_numpy(), DENSE)
    assert all(array.flags.c_contiguous for level in tensor.levels for _, array in level)
    swapped = dcsr(*arrays, values=np.array([2, 4, 5], dtype=">f8")).check()
    assert swapped.dtype == np.float64 and swapped.dtype.isnative
    assert np.array_equal(swapped.to_numpy(), DENSE)


def test_widths_of_the_format_hold() -> None:
    tensor = dcsr(*parts("int32", "int64", "int32", "int64"), widths=(16, 8))
    assert {str(a.dtype) for level in tensor.levels for _, a in level} == {"uint16", "uint8"}
    arrays = parts("int32", "int64", "int32", "int64")
    arrays[3][2] = 300
    with pytest.raises(WidthOverflow, match="hold 300"):
        dcsr(*arrays, widths=(16, 8))


def test_what_is_no_index_is_refused() -> None:
    with pytest.raises(NotIndices, match="coordinates of a tensor .* float64"):
        dcsr(*parts("int32", "int32", "int32", "float64"))
    arrays = parts("uint64", "uint64", "uint64", "uint64")
    arrays[3][2] = 2**63 + 1
    with pytest.raises(OperandError, match="outside"):
        dcsr(*arrays).check()


INDEX_DTYPES = ("int8", "uint8", "int16", "uint32", "uint64", ">i4", ">i8", ">u2", "int64")


@pytest.mark.parametrize("first", INDEX_DTYPES)
@pytest.mark.parametrize("second", INDEX_DTYPES)
def test_scipy_index_arrays_of_any_integers(first: str, second: str) -> None:
    coo = library.coo_array(DENSE)
    coo.coords = (coo.coords[0].astype(first), coo.coords[1].astype(second))
    csr, bsr = library.csr_array(DENSE), library.bsr_array(np.kron(DENSE, np.ones((2, 2))))
    for matrix in (csr, bsr):
        matrix.indptr, matrix.indices = matrix.indptr.astype(first), matrix.indices.astype(second)
    assert np.array_equal(asarray(coo).check().to_numpy(), DENSE)
    assert np.array_equal(asarray(csr).check().to_numpy(), DENSE)
    assert np.array_equal(asarray(bsr).check().to_numpy(), np.kron(DENSE, np.ones((2, 2))))
    for fmt in ("CSR", "CSC", "DCSR", "COO"):
        assert np.array_equal(asarray(coo, fmt).check().to_numpy(), DENSE)


def test_many_entries_with_narrow_coordinates() -> None:
    dense = np.arange(1.0, 401).reshape(20, 20)
    coo = library.coo_array(dense)
    coo.coords = tuple(c.astype(np.uint8) for c in coo.coords)
    assert np.array_equal(asarray(coo).check().to_numpy(), dense)


def test_scipy_arrays_that_do_not_fit_together() -> None:
    def broken(kind: str, **changes: Any) -> Any:
        matrix = getattr(library, f"{kind}_array")(DENSE)
        for name, value in changes.items():
            setattr(matrix, name, value)
        return matrix

    rows, columns = (c.copy() for c in library.coo_array(DENSE).coords)
    two, four = np.ones(2), np.ones(4)
    for matrix, message in (
        (broken("coo", data=two), "2 values for coordinate arrays of 3 and 3"),
        (broken("coo", data=four), "4 values for coordinate arrays of 3 and 3"),
        (broken("coo", coords=(rows[:2], columns)), "3 values for coordinate arrays of 2 and 3"),
        (broken("coo", coords=(rows.astype(float), columns)), "are float64, not integers"),
        (broken("csr", data=two), "2 values for 3 coordinates"),
        (broken("csc", data=four), "4 values for 3 coordinates"),
        (broken("csr", indices=columns.astype(float)), "integer dtype"),
        (broken("csr", indptr=np.zeros(4)), "integer dtype"),
        (broken("bsr", data=two), "values have shape"),
    ):
        with pytest.raises(OperandError, match=message):
            asarray(matrix)
