"""Zeros that a tensor stores are stored by what it is converted to: plans count them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparsecc as sc
from sparsecc import api
from sparsecc.formats import parse_format
from sparsecc.selection.footprint import footprint
from sparsecc.statistics import Statistics
from sparsecc.storage.entries import from_coords


def with_zeros(size: int, every: int, dtype: str = "f8") -> sc.SparseTensor:
    """A matrix that stores all of its cells, of which one in ``every`` is not 0."""
    values = np.zeros(size * size, dtype)
    values[::every] = 1
    columns, ends = np.tile(np.arange(size), size), np.arange(0, size * size + 1, size)
    return sc.asarray(sp.csr_matrix((values, columns, ends), shape=(size, size)))


def stored(tensor: sc.SparseTensor) -> int:
    return sum(len(part.values) for part in tensor.parts or (tensor,))


def test_they_are_counted_beside_the_entries() -> None:
    known = with_zeros(8, 4).statistics()
    assert (known.nnz, known.zeros, known.stored) == (16, 48, 64)
    assert Statistics.from_json(known.to_json()) == known
    cube = sc.asarray(np.ones((2, 3, 4))).to("COO(3)").statistics()
    assert (cube.nnz, cube.zeros) == (24, 0)


@pytest.mark.parametrize("fmt", ["dense", "BSR(2,2)", "ELL", "BITMAP"])
def test_padding_is_no_entry(fmt: str) -> None:
    values = np.diag(np.arange(9.0))
    values[1] = 1
    assert sc.asarray(values).to(fmt).statistics().zeros == 0


@pytest.mark.parametrize("every", [1, 3, 4, 100])
@pytest.mark.parametrize(
    "fmt",
    ["CSR", "CSC", "COO", "DCSR", "DCSC", "ELL", "BSR(2,2)", "dense", "BITMAP"],
)
def test_a_footprint_is_what_a_conversion_stores(fmt: str, every: int) -> None:
    given = with_zeros(8, every)
    assert footprint(fmt, given.statistics()).entries == stored(given.to(fmt))


@pytest.mark.parametrize("every", [1, 3, 4, 100])
def test_a_rest_is_no_smaller_than_what_is_stored(every: int) -> None:
    given = with_zeros(8, every)
    assert footprint("2:4+CSR", given.statistics()).entries >= stored(given.to("2:4+CSR"))


def decided(weight: sc.SparseTensor) -> Any:
    return api.decide(
        "Y[m,n] = X[m,k] * W[n,k]",
        X=sc.Spec((16, weight.shape[1]), "f16"),
        W=weight,
        formats={"W": "*"},
        target="sm_90",
    )


def test_groups_of_four_are_offered_where_conversion_takes_them() -> None:
    full = with_zeros(64, 4).to_numpy().astype(np.float16)
    without, zeros = sc.asarray(full).to("CSR"), from_entries(full)
    with pytest.raises(sc.SparseccError):
        zeros.to("2:4")
    offered = {fmt for plan in decided(zeros).problem.candidates for _, fmt in plan.formats}
    assert "2:4" not in offered and "2:4+CSR" in offered
    refused = next(r for r in decided(zeros).refusals if r.what == "W=2:4")
    assert "3072 zeros" in refused.reason
    without.to("2:4")
    offered = {fmt for plan in decided(without).problem.candidates for _, fmt in plan.formats}
    assert "2:4" in offered


def from_entries(full: Any) -> sc.SparseTensor:
    """A matrix in CSR that stores every cell."""
    coords: Any = np.unravel_index(np.arange(int(full.size)), tuple(full.shape))
    return from_coords(coords, full.ravel(), full.shape, parse_format("CSR", 2))


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("size", [64, 200, 1000])
def test_full_blocks_are_no_plan_of_any_type(size: int, dtype: str) -> None:
    full = np.random.default_rng(0).random((size, size)) < 0.4
    weight = sc.asarray(full.astype({"f16": np.float16, "f32": np.float32}[dtype])).to("CSR")
    found = api.decide(
        "Y[m,n] = X[m,k] * W[n,k]",
        X=sc.Spec((16, size), dtype), W=weight, formats={"W": "*"}, target="sm_90",
    )  # fmt: skip
    assert found is not None
    offered = {fmt for plan in found.problem.candidates for _, fmt in plan.formats}
    assert not any(fmt.startswith("BSR") for fmt in offered)
    reasons = [r.reason for r in found.refusals if r.what == "W=BSR(64,64)"]
    assert reasons == ["100% of its blocks hold an entry: it stores what dense does"]
