"""Predicted times: their units, how they grow, and what they are made of."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from sparsecc.selection.calibrations import Calibration
from sparsecc.selection.candidate import TERMS, Candidate
from sparsecc.selection.costs import conversions, families, predict, work_of
from sparsecc.selection.costs.facts import levels, popular
from sparsecc.selection.costs.work import total
from sparsecc.statistics import Lengths
from tests.unit.selection.problems import (
    CPU_ENGINES,
    GPU_ENGINES,
    LINEAR,
    MTTKRP,
    SDDMM,
    SPMM,
    SPMV,
    iid,
    problem,
)

RATES = {
    "cpu": Calibration("cpu", "", "", families.SIZES["cpu"], families.CPU),
    "sm_90": Calibration("sm_90", "", "", families.SIZES["triton"], families.GPU),
}
CASES: list[tuple[str, str, str, tuple[int, ...], dict[str, int]]] = [
    ("cpu", SPMV, "f64", (512, 512), {}),
    ("cpu", SPMM, "f32", (512, 512), {"k": 32}),
    ("cpu", LINEAR, "f32", (512, 512), {"m": 32}),
    ("cpu", SDDMM, "f64", (512, 512), {"k": 32}),
    ("cpu", MTTKRP, "f64", (64, 64, 64), {"r": 32}),
    ("cpu", "B[i,j] = A[i,j] + A[i,j]", "f64", (512, 512), {}),
    ("sm_90", SPMV, "f16", (512, 512), {}),
    ("sm_90", SPMM, "f16", (512, 512), {"k": 32}),
    ("sm_90", LINEAR, "f16", (512, 512), {"m": 32}),
    ("sm_90", SDDMM, "f16", (512, 512), {"k": 32}),
    ("sm_90", MTTKRP, "f32", (64, 64, 64), {"r": 32}),
]


@pytest.mark.parametrize(("target", "text", "dtype", "shape", "sizes"), CASES)
def test_every_plan_has_a_time_of_its_terms(
    target: str, text: str, dtype: str, shape: tuple[int, ...], sizes: dict[str, int]
) -> None:
    p = problem(
        text, target=target, dtype=dtype, statistics={"A": iid(*shape, density=0.1, dtype=dtype)},
        libraries=CPU_ENGINES | GPU_ENGINES, sizes=sizes,
    )  # fmt: skip
    assert p.candidates
    for plan in p.candidates:
        ranked = predict(p, plan, RATES[target])
        assert set(TERMS) <= set(ranked.terms)
        assert ranked.seconds == pytest.approx(total(ranked.terms) + ranked.terms["conversion"])
        assert ranked.seconds and 1e-7 < ranked.seconds < 10, plan
        ((work, _),) = work_of(p, plan, RATES[target])
        kinds = families.FAMILIES[p.target.backend][work.family]
        for amounts in (work.bytes, work.macs, work.issue, work.launch):
            assert set(amounts) <= set(kinds), work.family
            assert all(amount >= 0 for amount in amounts.values()), (plan, work)


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("text", [SPMM, LINEAR])
def test_more_columns_take_longer(target: str, text: str) -> None:
    dtype = "f32" if target == "cpu" else "f16"
    index = "k" if text == SPMM else "m"
    for plan in (Candidate.of({"A": "CSR"}), Candidate.of({"A": "dense"})):
        times: list[float] = []
        for columns in (1, 8, 64, 512, 4096):
            p = problem(
                text, target=target, dtype=dtype, sizes={index: columns},
                statistics={"A": iid(2048, 2048, density=0.1, dtype=dtype)},
            )  # fmt: skip
            times.append(predict(p, plan, RATES[target]).seconds or 0.0)
        assert all(a <= b for a, b in pairwise(times))
        assert times[-1] > 8 * times[0]


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_more_entries_take_longer_unless_they_are_dense(target: str) -> None:
    dtype = "f32" if target == "cpu" else "f16"

    def seconds(fmt: str, density: float) -> float:
        p = problem(
            SPMM, target=target, dtype=dtype, sizes={"k": 32},
            statistics={"A": iid(2048, 2048, density=density, dtype=dtype)},
        )  # fmt: skip
        return predict(p, Candidate.of({"A": fmt}), RATES[target]).seconds or 0.0

    sparse = [seconds("CSR", d) for d in (0.001, 0.01, 0.1, 0.5)]
    assert all(a < b for a, b in pairwise(sparse))
    assert seconds("dense", 0.001) == seconds("dense", 0.5)


def test_conversions_are_spread_over_calls() -> None:
    known = {"A": iid(2048, 2048, density=0.05)}
    plan = Candidate.of({"A": "CSC"})
    shares = [
        conversions(problem(SPMV, statistics=known, stored="CSR", calls=calls), plan, RATES["cpu"])
        for calls in (None, 1, 10, 1000)
    ]
    assert shares[0] == 0
    assert shares[1] == pytest.approx(10 * shares[2]) and shares[2] == pytest.approx(
        100 * shares[3]
    )
    kept = problem(SPMV, statistics=known, stored="CSC", calls=1)
    assert conversions(kept, plan, RATES["cpu"]) == 0
    # Sorting costs more than counting, and dense arrays cost by their cells.
    once = problem(SPMV, statistics=known, stored="CSR", calls=1)
    costs = [
        conversions(once, Candidate.of({"A": f}), RATES["cpu"]) for f in ("COO", "CSC", "DCSC")
    ]
    assert costs == sorted(costs)


def test_where_reads_are_served() -> None:
    sizes = families.SIZES["cpu"]
    small, large = iid(1000, 1000, density=0.01), iid(1000, 10_000_000, density=1e-5)
    assert levels(small, 1, 8, sizes)["l1"] == 1
    assert levels(large, 1, 8, sizes)["dram"] > 0.7
    band = replace(large, below=10, above=10, diagonals=21)
    assert levels(band, 1, 8, sizes)["l1"] == 1
    assert sum(levels(large, 1, 8, sizes).values()) == pytest.approx(1)


def test_popular_columns_stay_in_the_cache() -> None:
    even = Lengths(1024, 1024, 8, 8.0, 0.0, (0, 0, 0, 0, 1024))
    skewed = Lengths(1024, 1024, 1000, 9.0, 60.0, (0, 1016, 0, 0, 0, 0, 0, 0, 0, 0, 8))
    base = iid(1024, 1024, density=0.008)
    few = popular(replace(base, slices=(even, even)), 1, 8)
    many = popular(replace(base, slices=(even, skewed)), 1, 8)
    assert few == pytest.approx(8 / 1024) and many > 0.8


def test_what_is_assumed_is_noted() -> None:
    p = problem(SPMM, statistics={"A": iid(512, 512, density=0.1)})
    note = predict(p, Candidate.of({"A": "CSR"}), RATES["cpu"]).note
    assert note == "k is not known: 16 is assumed"
