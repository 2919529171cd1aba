"""Conversions: all pairs, with SciPy's compiled sorts and without, and the graph's paths."""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np
import pytest
from storage_samples import CUBE_FORMATS, MATRIX_FORMATS, sample

from sparsecc.diagnostics import FormatError, UsageError
from sparsecc.formats import parse_format
from sparsecc.storage import compiled, conversion_graph
from sparsecc.storage.convert import conversion_path, convert
from sparsecc.storage.ingest import asarray, from_coords
from sparsecc.storage.tensor import SparseTensor


def same_arrays(a: SparseTensor, b: SparseTensor) -> bool:
    """Whether two tensors store the same numbers."""
    pairs = zip(a.levels, b.levels, strict=True)
    numbers = all(
        role == other and np.array_equal(x, y)
        for left, right in pairs
        for (role, x), (other, y) in zip(left, right, strict=True)
    )
    return numbers and a.format == b.format and np.array_equal(a.values, b.values)


@pytest.mark.parametrize("use_scipy", [True, False])
@pytest.mark.parametrize("src", MATRIX_FORMATS)
def test_all_pairs_of_matrix_formats(
    src: str, use_scipy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "USE_SCIPY", use_scipy)
    for shape in ((0, 3), (1, 1), (5, 7), (6, 6)):
        dense = sample(shape)
        tensor = asarray(dense).to(src)
        for dst in MATRIX_FORMATS:
            result = tensor.to(dst).check()
            assert np.array_equal(result.to_numpy(), dense), (src, dst, shape)
            assert same_arrays(result, asarray(dense).to(dst)), (src, dst, shape)


@pytest.mark.parametrize("src", CUBE_FORMATS)
def test_all_pairs_of_cube_formats(src: str) -> None:
    dense = sample((3, 5, 4))
    for dst in CUBE_FORMATS:
        result = asarray(dense).to(parse_format(src, 3)).to(parse_format(dst, 3)).check()
        assert np.array_equal(result.to_numpy(), dense), (src, dst)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex64"])
def test_dtypes_survive_with_and_without_scipy(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = sample((5, 7), dtype)
    for use_scipy in (True, False):
        monkeypatch.setattr(compiled, "USE_SCIPY", use_scipy)
        for dst in ("CSC", "BSR(2,3)", "COO", "dense"):
            result = asarray(dense).to("CSR").to(dst)
            assert result.dtype == dense.dtype
            assert np.array_equal(result.to("CSR").to_numpy(), dense)


def test_explicit_zeros_survive_every_path_between_sparse_formats() -> None:
    keep = ("CSR", "CSC", "COO", "DCSR", "DCSC", "COO:1,0", "CSR@i8/i8")
    tensor = from_coords([[0, 1, 2], [1, 0, 2]], [0.0, 2.0, 0.0], (3, 4))
    for src in keep:
        for dst in keep:
            assert tensor.to(src).to(dst).nnz == 3, (src, dst)


def test_repeated_entries_of_nonunique_formats_are_added() -> None:
    fmt = parse_format("(i, j) -> (i : compressed(nonunique), j : singleton(nonunique))")
    made = asarray(np.eye(2)).to(fmt)
    levels = made.levels
    assert levels[0].coordinates is not None and levels[1].coordinates is not None
    levels[0].coordinates[:] = 0
    levels[1].coordinates[:] = 1
    twice = SparseTensor((2, 2), fmt, levels, np.array([2.0, 3.0])).check()
    wanted = np.array([[0, 5.0], [0, 0]])
    assert np.array_equal(twice.to_numpy(), wanted)
    for name in ("CSR", "COO", "BSR(2,2)", "dense", "ELL"):
        assert np.array_equal(twice.to(name).to_numpy(), wanted), name
    assert np.array_equal(twice.to_scipy().toarray(), wanted)


def test_nothing_happens_between_equal_formats() -> None:
    tensor = asarray(np.eye(3)).to("CSR")
    assert convert(tensor, "CSR") is tensor
    assert conversion_path("CSR", "CSR") == ()


@pytest.mark.parametrize(
    ("src", "dst", "names"),
    [
        ("CSR", "CSC", ["transpose"]),
        ("CSR", "COO", ["expand"]),
        ("COO", "CSC", ["contract", "transpose"]),
        ("CSC", "COO", ["transpose", "expand"]),
        ("BSR(2,2)", "CSC", ["split blocks", "transpose"]),
        ("COO", "BSR(2,2)", ["contract", "form blocks"]),
        ("CSR", "CSR@i64/i64", ["relabel"]),
        ("DCSR", "CSR", ["in order"]),
        ("ELL", "CSC", ["in order", "transpose"]),
        ("CSR", "dense", ["dense in order"]),
        ("dense", "BSR(4,4)", ["dense in blocks"]),
        ("CSF(2,0,1)", "CSF", ["through entries"]),
    ],
)
def test_paths(src: str, dst: str, names: list[str]) -> None:
    steps = conversion_path(src, dst)
    assert [step.edge.name for step in steps] == names
    assert steps[0].src == parse_format(src) and steps[-1].dst == parse_format(dst)
    assert all(step.edge.reason in str(step) and step.cost > 0 for step in steps)


def test_the_cheaper_path_depends_on_density() -> None:
    sparse = conversion_path("dense", "CSC", nnz=1000, cells=10**8)
    full = conversion_path("dense", "CSC", nnz=10**8, cells=10**8)
    assert [s.edge.name for s in sparse] == ["dense in order", "transpose"]
    assert sum(s.cost for s in full) > sum(s.cost for s in sparse)


def test_no_hub_loses_an_explicit_zero() -> None:
    assert not any(hub.padded or hub.is_dense for hub in conversion_graph.HUBS)


def test_scipy_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "scipy", hidden)
    compiled.installed.cache_clear()
    try:
        dense = sample((5, 7))
        for name in ("CSR", "CSC", "COO", "BSR(2,2)"):
            assert np.array_equal(asarray(dense).to(name).to("CSC").to("dense").to_numpy(), dense)
        assert compiled.scipy_sparse() is None
    finally:
        compiled.installed.cache_clear()


def test_what_is_no_format() -> None:
    wrong: Any = None
    tensor = asarray(np.eye(2))
    with pytest.raises(UsageError, match="of type NoneType"):
        tensor.to(wrong)
    with pytest.raises(UsageError, match="of type int"):
        asarray(np.eye(2), format=cast(Any, 5))


def test_padded_levels_stand_last_or_above_dense_ones() -> None:
    with pytest.raises(FormatError, match="a padded level must be the last"):
        parse_format("(i, j, k) -> (i : dense, j : padded, k : compressed)")
    dense = np.zeros((3, 4, 2))
    dense[0, 1], dense[2, 3], dense[2, 0] = 1, [2, 0], [0, 3]
    tensor = asarray(dense, "(i, j, k) -> (i : dense, j : padded, k : dense)").check()
    assert np.array_equal(tensor.to_numpy(), dense)
