"""Which plans are legal, and what is said of the others."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pytest

from sparsecc.selection.candidate import Candidate
from sparsecc.selection.problem import Problem
from sparsecc.selection.strategies.plain import Bytes
from sparsecc.statistics import Statistics
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
    statistics_of,
)


def formats(p: Problem, name: str = "A") -> set[str]:
    return {plan.format_of(name) for plan in p.candidates}


def refused(p: Problem, what: str) -> str:
    (found,) = [r for r in p.refusals if r.what == what]
    return f"{found.reason}; {found.remedy}"


def test_plans_of_a_product_on_a_cpu() -> None:
    p = problem(
        SPMM, statistics={"A": iid(64, 64, density=0.1)}, sizes={"k": 8}, libraries=CPU_ENGINES
    )
    assert formats(p) >= {"dense", "CSR", "COO", "DCSR", "BSR(2,2)", "BSR(4,4)", "BSR(4,1)", "ELL"}
    assert "at each call" in refused(p, "A=CSC")
    assert "at each call" in refused(p, "A=2:4")
    assert Candidate.of({"A": "dense"}, "blas") in p.candidates
    assert Candidate.of({"A": "CSR"}, "scipy") in p.candidates
    assert Candidate.of({"A": "CSR"}, "blas") not in p.candidates
    assert len(set(p.candidates)) == len(p.candidates)


def test_the_result_by_columns_or_the_matrix_by_columns_wants_other_formats() -> None:
    known = {"A": iid(64, 64, density=0.1)}
    transposed = problem("C[j,k] = A[i,j] * X[i,k]", statistics=known, sizes={"k": 8})
    assert {"CSC", "DCSC"} <= formats(transposed) and not formats(transposed) & {"CSR", "BSR(4,4)"}
    linear = problem(LINEAR, statistics=known, sizes={"m": 8})
    assert {"CSR", "CSC"} <= formats(linear) and "BSR(4,4)" not in formats(linear)


def test_without_libraries_generated_kernels_stand_alone() -> None:
    p = problem(SPMV, statistics={"A": iid(64, 64, density=0.1)})
    assert {plan.engines for plan in p.candidates} == {("generated",)}
    assert "SciPy is not here; pip install scipy" == refused(p, "scipy")


def test_dense_is_refused_beyond_the_limit_of_memory() -> None:
    p = problem(SPMV, statistics={"A": iid(60_000, 60_000, density=1e-5)}, libraries=CPU_ENGINES)
    assert "dense" not in formats(p)
    assert "max_dense_bytes" in refused(p, "A=dense")


def test_blocks_that_would_be_empty_are_refused_unless_tiny() -> None:
    large = problem(SPMV, statistics={"A": iid(4096, 4096, density=0.01)})
    assert "BSR(8,8)" not in formats(large)
    assert "of the cells of its blocks" in refused(large, "A=BSR(8,8)")
    tiny = problem(SPMV, statistics={"A": iid(64, 64, density=0.01)})
    assert "BSR(8,8)" in formats(tiny)


def test_blocks_of_a_full_matrix_are_dense() -> None:
    p = problem(SPMV, statistics={"A": iid(2048, 2048, density=0.5)})
    assert "what dense does" in refused(p, "A=BSR(8,8)")


def test_a_long_row_makes_padding_too_large() -> None:
    even = problem(SPMV, statistics={"A": iid(4096, 4096, density=0.01)})
    assert "ELL" in formats(even)
    hub = problem(SPMV, statistics={"A": iid(4096, 4096, density=0.01, largest=4000)})
    assert "longest row has 4000 entries" in refused(hub, "A=ELL")


def test_mttkrp_has_all_orders() -> None:
    p = problem(MTTKRP, statistics={"A": iid(30, 40, 50, density=0.01)}, sizes={"r": 8})
    assert len([f for f in formats(p) if f.startswith("CSF")]) == 6
    assert {"COO(3)", "dense"} <= formats(p)


def test_several_sparse_operands_are_chosen_together() -> None:
    known = {"A": iid(64, 64, density=0.1), "B": iid(64, 64, density=0.1)}
    p = problem("C[i,k] = A[i,j] * B[j,k]", statistics=known, formats={"C": "CSR"})
    assert formats(p, "A") == formats(p, "B") == {"dense", "CSR", "CSC", "DCSR"}
    assert len(p.candidates) == 16


def test_a_tensor_of_two_expressions_has_a_format_that_both_take() -> None:
    known = {"A": iid(64, 64, density=0.1)}
    both = problem(
        "B[i,k] = A[i,j] * X[j,k]", "D[j,k] = A[i,j] * X[i,k]", statistics=known, sizes={"k": 8}
    )
    assert not formats(both) & {"CSR", "CSC", "BSR(2,2)"}
    assert {"dense", "COO"} <= formats(both)


def test_many_open_tensors_are_searched_one_after_the_other() -> None:
    names = "ABDE"
    texts = [f"y{n}[i,k] = {n}[i,j] * X[j,k]" for n in names]
    known = {
        n: iid(256, 256, density=d) for n, d in zip(names, (0.01, 0.05, 0.5, 1.0), strict=True)
    }
    p = problem(*texts, statistics=known, sizes={"k": 8}, libraries=CPU_ENGINES)
    assert 1 < len(p.candidates) <= 512
    best = min(p.candidates, key=lambda plan: p.predict(plan).seconds or 0.0)
    alone = [
        problem(text, statistics={n: known[n]}, sizes={"k": 8}, libraries=CPU_ENGINES)
        for n, text in zip(names, texts, strict=True)
    ]
    single = [min(q.candidates, key=lambda c, q=q: q.predict(c).seconds or 0.0) for q in alone]
    assert dict(best.formats) == {n: c.format_of(n) for n, c in zip(names, single, strict=True)}
    assert best.engines == tuple(c.engines[0] for c in single)


def gpu(
    text: str, known: Statistics, dtype: str = "f16", target: str = "sm_90", **sizes: int
) -> Problem:
    return problem(
        text,
        target=target,
        dtype=dtype,
        statistics={"A": known},
        libraries=GPU_ENGINES,
        sizes=sizes,
    )


def test_plans_of_a_linear_layer_on_a_gpu() -> None:
    p = gpu(LINEAR, iid(4096, 4096, density=0.5, dtype="f16", fits_2_4=True), m=16)
    assert formats(p) >= {"dense", "2:4", "2:4+CSR", "BITMAP", "CSR"}
    assert Candidate.of({"A": "2:4"}, "cusparselt") in p.candidates
    assert Candidate.of({"A": "dense"}, "cublas") in p.candidates


def test_what_does_not_fit_groups_of_four_says_what_would() -> None:
    p = gpu(LINEAR, iid(4096, 4096, density=0.5, dtype="f16"), m=16)
    assert "2:4" not in formats(p) and "2:4+CSR" in formats(p)
    assert "re-prune it to 2:4" in refused(p, "A=2:4")
    odd = gpu(LINEAR, iid(64, 4098, density=0.5, dtype="f16"), m=16)
    assert refused(odd, "A=2:4+CSR") == "k = 4098 is not a multiple of 4; pad it to 4100"


@pytest.mark.parametrize(
    ("dtype", "target", "has", "lacks"),
    [
        ("f32", "sm_90", {"BSR(32,32)", "BITMAP", "CSR"}, {"2:4", "2:4+CSR"}),
        ("f64", "sm_90", {"CSR", "dense"}, {"BSR(32,32)", "BITMAP", "2:4"}),
        ("i8", "sm_90", {"2:4", "BITMAP"}, {"2:4+CSR"}),
    ],
)
def test_types_and_targets(dtype: str, target: str, has: set[str], lacks: set[str]) -> None:
    known = iid(512, 512, density=0.4, dtype=dtype, fits_2_4=True, blocks=0.5)
    p = gpu(LINEAR, known, dtype, target, m=16)
    assert has <= formats(p) and not lacks & formats(p)
    assert all(any(r.what == f"A={fmt}" for r in p.refusals) for fmt in lacks)


def test_vectors_and_sampled_products_of_a_gpu_want_sparse_rows() -> None:
    known = iid(512, 512, density=0.1, dtype="f16")
    assert formats(gpu(SPMV, known)) == {"dense", "CSR"}
    assert "wants a matrix" in refused(gpu(SPMV, known), "A=BITMAP")
    sampled = problem(
        SDDMM, target="sm_90", dtype="f16", statistics={"A": known, "C": None}, sizes={"k": 64}
    )
    assert formats(sampled) == {"dense", "CSR"}


def test_statistics_that_are_not_there_leave_what_needs_none() -> None:
    p = problem(SPMM, statistics={"A": None}, sizes={"i": 64, "j": 64, "k": 8})
    assert {"dense", "CSR", "COO"} <= formats(p)
    assert "is assumed" in p.predict(Candidate.of({"A": "CSR"})).note


def test_of_counted_entries() -> None:
    rng = np.random.default_rng(0)
    dense = np.kron(rng.random((16, 16)) < 0.2, np.ones((4, 4)))
    p = problem(SPMM, statistics={"A": statistics_of(dense)}, sizes={"k": 8})
    smallest = Bytes().rank(p)[0].candidate
    assert smallest.format_of("A") == "BSR(4,4)"


def test_choosing_is_quick() -> None:
    # The budget is 10 ms; a loaded machine is given ten times that.
    known = iid(4096, 4096, density=0.1)
    times: list[float] = []
    for _ in range(5):
        p = problem(SPMM, statistics={"A": known}, sizes={"k": 32}, libraries=CPU_ENGINES, calls=10)
        start = perf_counter()
        assert [p.predict(plan) for plan in p.candidates]
        times.append(perf_counter() - start)
    assert min(times) < 0.1


def test_a_sampled_product_into_a_given_format() -> None:
    known = {"A": iid(64, 64, density=0.1)}
    free = problem(SDDMM, statistics={**known, "C": None}, sizes={"k": 8})
    assert {"dense", "CSC", "BSR(4,4)"} <= formats(free)
    rows = problem(SDDMM, statistics=known, formats={"C": "CSR"}, sizes={"k": 8})
    assert formats(rows) == {"CSR", "COO", "DCSR", "ELL"}
    assert "each cell would be an entry" in refused(rows, "A=dense")
