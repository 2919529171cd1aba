"""Every format holds what it was given: shapes with 0, 1 and primes, every dtype, narrow and wide
indices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_samples import (
    ALL_DTYPES,
    CUBE_FORMATS,
    CUBE_SHAPES,
    MATRIX_FORMATS,
    MATRIX_SHAPES,
    QUAD_FORMATS,
    sample,
    two_of_four,
)

from sparsecc.diagnostics import FormatError, LimitError, OperandError
from sparsecc.formats import LevelArrays, parse_format
from sparsecc.formats.levels.structured import OverfullGroup
from sparsecc.storage import limits
from sparsecc.storage.ingest import asarray, from_coords
from sparsecc.storage.pack import pack, unpack
from sparsecc.storage.tensor import SparseTensor


def assert_holds(tensor: SparseTensor, dense: np.ndarray) -> None:
    """The tensor is valid, equals the array, and lists exactly its nonzeros in order."""
    tensor.check("full")
    result = tensor.to_numpy()
    assert result.dtype == dense.dtype and result.shape == dense.shape
    assert np.array_equal(result, dense)
    coords, values = tensor.to_coords()
    assert tensor.nnz == len(values) == np.count_nonzero(dense)
    assert all(np.array_equal(a, b) for a, b in zip(coords, np.nonzero(dense), strict=True))
    assert np.array_equal(values, dense[np.nonzero(dense)])


CASES = (
    *((f, s) for f in MATRIX_FORMATS for s in MATRIX_SHAPES),
    *((f, s) for f in CUBE_FORMATS for s in CUBE_SHAPES),
    *((f, (2, 3, 1, 5)) for f in QUAD_FORMATS),
    *((f, (n,)) for f in ("dense", "SV", "COO", "s") for n in (0, 1, 7)),
)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_from_dense_and_from_entries(name: str, shape: tuple[int, ...]) -> None:
    dense = sample(shape)
    fmt = parse_format(name, len(shape))
    assert_holds(asarray(dense).to(fmt), dense)
    coords = np.array(np.nonzero(dense))
    order = np.random.default_rng(1).permutation(coords.shape[1])
    shuffled = from_coords(coords[:, order], dense[np.nonzero(dense)][order], shape, fmt)
    assert_holds(shuffled, dense)
    again = pack(*unpack(shuffled), shape, fmt)
    for level, other in zip(again.levels, shuffled.levels, strict=True):
        for (_, a), (_, b) in zip(level, other, strict=True):
            assert a.dtype == b.dtype and np.array_equal(a, b)


@pytest.mark.parametrize("name", MATRIX_FORMATS)
@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_dtypes(name: str, dtype: str) -> None:
    dense = sample((5, 7), dtype)
    assert_holds(asarray(dense).to(name), dense)


@pytest.mark.parametrize("shape", [(8,), (5,), (3, 8), (3, 7), (0, 4), (2, 3, 9), (2, 0)])
def test_two_of_four(shape: tuple[int, ...]) -> None:
    dense = two_of_four(shape)
    fmt = parse_format("2:4", len(shape))
    tensor = asarray(dense).to(fmt)
    assert_holds(tensor, dense)
    assert len(tensor.values) == 2 * int(np.prod(shape[:-1])) * -(-shape[-1] // 4)
    assert_holds(
        from_coords(np.array(np.nonzero(dense)), dense[np.nonzero(dense)], shape, fmt), dense
    )


def test_structured_of_wide_groups_fills_the_lowest_unused() -> None:
    dense = np.zeros((1, 16))
    dense[0, [3, 9]] = 5, 6
    tensor = asarray(dense).to("NM(4,16)")
    assert tensor.levels[-1].coordinates is not None
    assert tensor.levels[-1].coordinates.tolist() == [0, 1, 3, 9]
    assert tensor.values.tolist() == [0, 0, 5, 6]
    narrow = asarray(dense[:, :4]).to("2:4")
    assert narrow.levels[-1].coordinates is not None
    assert narrow.levels[-1].coordinates.tolist() == [0, 3]


def test_overfull_groups_are_refused_and_nothing_is_dropped() -> None:
    with pytest.raises(OverfullGroup, match="1 of 2 groups hold more than 2"):
        asarray(np.array([[1.0, 2, 3, 0, 1, 0, 0, 0]])).to("2:4")
    with pytest.raises(OverfullGroup):
        asarray(np.ones((1, 16))).to("NM(4,16)")


def test_scalar() -> None:
    assert asarray(3.5).to_numpy() == 3.5
    assert asarray(np.int8(0)).nnz == 0
    assert from_coords([], [2], (), "dense").to_numpy() == 2
    assert from_coords([], [2, 3], (), "dense").to_numpy() == 5


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_entries_equal_numpy(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank)))
    known = {1: ("SV",), 2: MATRIX_FORMATS, 3: CUBE_FORMATS, 4: QUAD_FORMATS}
    fmt = parse_format(data.draw(st.sampled_from(known[rank])), rank)
    entry = st.tuples(*(st.integers(0, n - 1) for n in shape), st.integers(-5, 5))
    entries = data.draw(st.lists(entry, max_size=30))
    table = np.array(entries, dtype=np.int64).reshape(len(entries), rank + 1)
    dense = np.zeros(shape, dtype=np.int64)
    np.add.at(dense, tuple(table[:, :rank].T), table[:, rank])
    tensor = from_coords(table[:, :rank].T, table[:, rank], shape, fmt).check()
    assert np.array_equal(tensor.to_numpy(), dense)
    if not fmt.padded and not fmt.is_dense:
        assert tensor.nnz == len({tuple(row[:rank]) for row in entries})


# -- duplicates and explicit zeros -----------------------------------------------------------------


def test_duplicates_are_added_in_the_dtype() -> None:
    coords = [[0, 0, 1], [1, 1, 0]]
    tensor = from_coords(coords, np.array([200, 100, 7], dtype=np.uint8), (2, 2), "CSR")
    assert tensor.to_numpy().tolist() == [[0, 44], [7, 0]]  # 300 wraps around as NumPy's uint8 does
    either = from_coords(coords, np.array([True, True, False]), (2, 2))
    assert either.to_numpy().tolist() == [[False, True], [False, False]]
    with pytest.raises(OperandError, match=r"entry 1 repeats the coordinates \(0, 1\)"):
        from_coords(coords, 1.0, (2, 2), duplicates="error")


def test_explicit_zeros_stay_in_sparse_formats_and_go_in_padded_ones() -> None:
    tensor = from_coords([[0, 1], [1, 0]], [0.0, 2.0], (2, 2), "CSR")
    for name in ("CSC", "COO", "DCSR", "CSR@i8/i8"):
        assert tensor.to(name).nnz == 2
    for name in ("BSR(2,2)", "ELL", "dense", "2:4"):
        assert tensor.to(name).nnz == 1
        assert tensor.to(name).to("COO").nnz == 1


# -- widths ----------------------------------------------------------------------------------------


def test_inferred_width_is_64_bits_beyond_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INT32_MAX", 3)
    dense = sample((7, 11))
    for name in ("CSR", "CSC", "COO", "DCSR", "BSR(2,2)", "ELL"):
        tensor = asarray(dense).to(name)
        assert {a.dtype for level in tensor.levels for _, a in level} == {np.dtype(np.int64)}
        assert_holds(tensor, dense)
        for other in ("CSR", "CSC", "COO"):
            assert_holds(tensor.to(other), dense)


def test_fixed_widths_are_kept_and_overflow_is_refused() -> None:
    tensor = asarray(sample((5, 200))).to("CSR@i8/i16")
    assert tensor.levels[1].coordinates is not None and tensor.levels[1].positions is not None
    assert tensor.levels[1].coordinates.dtype == np.uint8
    assert tensor.levels[1].positions.dtype == np.uint16
    with pytest.raises(LimitError, match="coordinates of level 1 hold 299"):
        asarray(np.ones((1, 300))).to("CSR@i8/i16")
    with pytest.raises(LimitError, match="positions of level 1 hold 300"):
        asarray(np.ones((1, 300))).to("CSR@i16/i8")


def test_shapes_beyond_64_bits_are_never_linearised() -> None:
    big = 2**40
    coords = [[big - 1, 0, 5], [3, big - 1, 3], [7, 7, 7]]
    tensor = from_coords(coords, [1.0, 2.0, 3.0], (big, big, big), "COO")
    found, values = tensor.to_coords()
    assert found[0].tolist() == [0, 5, big - 1] and values.tolist() == [2, 3, 1]
    assert tensor.to("CSF").to("COO").to_coords()[0][1].tolist() == [big - 1, 3, 3]
    again = from_coords([[9, 9], [1, 1], [2, 2]], [1.0, 5.0], (big, big, big), "CSF(2,0,1)")
    assert again.values.tolist() == [6.0]


def test_arrays_that_follow_from_the_shape_are_limited() -> None:
    tensor = from_coords([[3], [4]], 1.0, (10**12, 10**12))
    for name in ("dense", "CSR", "BSR(4,4)", "ELL"):
        with pytest.raises(LimitError, match="max_dense_bytes"):
            tensor.to(name)
    with pytest.raises(LimitError, match="8000000000000000000000000 bytes"):
        tensor.to_numpy()
    with pytest.raises(LimitError):
        asarray(np.ones((4, 4))).to("CSR").to_numpy(max_dense_bytes=100)


def test_rows_that_would_be_padding_only_are_refused() -> None:
    columns = np.arange(20_000)
    one_full_row = from_coords([np.zeros_like(columns), columns], 1.0, (20_000, 20_000))
    with pytest.raises(LimitError, match="20000 rows of 20000 slots each for 20000 entries"):
        one_full_row.to("ELL")


# -- checks ----------------------------------------------------------------------------------------


def csr(positions: object, coordinates: object, count: int) -> SparseTensor:
    level = LevelArrays(np.array(positions), np.array(coordinates))
    return SparseTensor((2, 3), parse_format("CSR"), (LevelArrays(), level), np.ones(count))


@pytest.mark.parametrize(
    ("positions", "coordinates", "count", "problem"),
    [
        ([0, 1], [0], 1, "positions has 2 entries, not 3"),
        ([1, 1, 1], [0], 1, "start at 0"),
        ([0, 2, 1], [0], 1, "never descend"),
        ([0, 2**63 - 1, -2], [0], 1, "never descend"),
        ([0, 1, 3], [0, 1], 2, "positions end at 3"),
        ([0, 1, 2], [0, 3], 2, "coordinate 3 at entry 1 is outside"),
        ([0, 1, 2], [-1, 0], 2, "coordinate -1 at entry 0"),
        ([0, 2, 2], [1, 0], 2, "descend at entry 1"),
        ([0, 2, 2], [1, 1], 2, "repeat at entry 1"),
        ([0, 1, 2], [0, 1], 3, "3 values for 2 positions"),
        ([[0, 1, 2]], [0, 1], 2, "one-dimensional"),
    ],
)
def test_check_names_the_problem(
    positions: object, coordinates: object, count: int, problem: str
) -> None:
    bad = csr(positions, coordinates, count)
    with pytest.raises(OperandError, match=problem) as caught:
        bad.check("full", place="operand A")
    assert caught.value.place == "operand A"
    assert bad.check("none") is bad


def test_check_sees_what_levels_can_not() -> None:
    twice = LevelArrays(np.array([0, 2]), np.array([1, 1])), LevelArrays(None, np.array([2, 2]))
    with pytest.raises(OperandError, match="entry 1 repeats"):
        SparseTensor((2, 3), parse_format("COO"), twice, np.ones(2)).check()
    blocks = asarray(np.ones((3, 3))).to("BSR(2,2)")
    blocks.values[:] = 1
    with pytest.raises(OperandError, match="3 in dimension 0"):
        blocks.check()
    padded = asarray(np.array([[1.0, 1], [0, 1]])).to("ELL")
    padded.values[:] = 1
    with pytest.raises(OperandError, match="padding at position 3"):
        padded.check()


def test_a_singleton_holds_one_coordinate() -> None:
    assert_holds(asarray(np.eye(3)).to("sq"), np.eye(3))
    with pytest.raises(FormatError, match="parent 0 has 2"):
        asarray(np.ones((1, 2))).to("sq")
