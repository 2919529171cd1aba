"""What the strategies that ship rank first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparsecc.diagnostics import UnsupportedError
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.problem import Problem, Strategy
from sparsecc.selection.registry import strategy
from sparsecc.selection.strategies import STRATEGIES
from sparsecc.selection.strategies.measured import Autotune, NoneRan, NothingToMeasure, Oracle
from sparsecc.selection.strategies.plain import AlwaysDense, Bytes, Fixed, NoSuchPlan
from sparsecc.selection.strategies.predicted import Roofline, cautious
from tests.unit.selection.problems import (
    CPU_ENGINES,
    GPU_ENGINES,
    LINEAR,
    MTTKRP,
    SPMM,
    SPMV,
    iid,
    problem,
)


def best(made: Strategy, p: Problem) -> Candidate:
    return made.rank(p)[0].candidate


def spmm(density: float, columns: int, **more: object) -> Problem:
    known = {"A": iid(4096, 4096, density=density, dtype="f32")}
    return problem(
        SPMM, dtype="f32", statistics=known, sizes={"k": columns}, libraries=CPU_ENGINES,
        **more,  # pyright: ignore[reportArgumentType]
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_ranks(name: str) -> None:
    made = strategy(name)
    assert isinstance(made, Strategy) and made.name == name
    p = spmm(0.1, 32, measure=a_second)
    ranked = made.rank(p)
    assert ranked and {r.candidate for r in ranked} <= set(p.candidates)
    assert len({r.candidate for r in ranked}) == len(ranked)


def test_fixed_takes_the_defaults() -> None:
    assert best(Fixed(), spmm(0.5, 128)) == Candidate.of({"A": "CSR"})
    tensor = problem(MTTKRP, statistics={"A": iid(20, 30, 40, density=0.1)}, sizes={"r": 8})
    assert best(Fixed(), tensor) == Candidate.of({"A": "CSF"})


def test_always_dense_takes_a_library_and_refuses_what_is_too_large() -> None:
    assert best(AlwaysDense(), spmm(0.001, 8)) == Candidate.of({"A": "dense"}, "blas")
    alone = problem(SPMM, statistics={"A": iid(64, 64, density=0.1)}, sizes={"k": 8})
    assert best(AlwaysDense(), alone) == Candidate.of({"A": "dense"})
    huge = problem(SPMV, statistics={"A": iid(50_000, 50_000, density=1e-5)})
    with pytest.raises(NoSuchPlan, match="max_dense_bytes"):
        AlwaysDense().rank(huge)


def test_bytes_takes_the_smallest() -> None:
    assert best(Bytes(), spmm(0.01, 8)).format_of("A") in ("CSR", "CSC", "DCSR")
    assert best(Bytes(), spmm(0.9, 8)).format_of("A") == "dense"
    sizes = [r.note for r in Bytes().rank(spmm(0.1, 8))]
    assert len(set(sizes)) > 3


def test_roofline_stays_dense_where_that_is_faster_and_only_there() -> None:
    assert best(Roofline(), spmm(0.5, 128)) == Candidate.of({"A": "dense"}, "blas")
    assert best(Roofline(), spmm(0.01, 128)).format_of("A") != "dense"
    assert best(Roofline(), spmm(0.01, 1)).format_of("A") != "dense"
    ranked = Roofline().rank(spmm(0.1, 32))
    assert list(ranked) == sorted(ranked, key=cautious)
    assert all(cautious(r) > (r.seconds or 0.0) for r in ranked)


def a_second(plan: Candidate) -> float:
    return 1.0 if plan.formats else 2.0


def linear(tokens: int, shape: tuple[int, int], density: float, **more: bool) -> Problem:
    known = {"A": iid(*shape, density=density, dtype="f16", **more)}
    return problem(
        LINEAR, target="sm_90", dtype="f16", statistics=known, sizes={"m": tokens},
        libraries=GPU_ENGINES,
    )  # fmt: skip


def test_roofline_on_a_gpu() -> None:
    # As measured: 2:4 weights and halves win with few tokens, dense ones with many where nothing is structured.
    pruned = linear(8, (14336, 4096), 0.5, fits_2_4=True)
    assert best(Roofline(), pruned) == Candidate.of({"A": "2:4"})
    assert best(Roofline(), linear(8, (14336, 4096), 0.5)) == Candidate.of({"A": "2:4+CSR"})
    assert best(Roofline(), linear(512, (4096, 4096), 0.5)) == Candidate.of(
        {"A": "dense"}, "cublas"
    )


def test_conversions_that_do_not_pay_keep_what_is_stored() -> None:
    once = spmm(0.02, 32, stored="CSR", calls=1)
    assert best(Roofline(), once) == Candidate.of({"A": "CSR"})
    dense_once = spmm(0.4, 128, stored="CSR", calls=1)
    often = spmm(0.4, 128, stored="CSR", calls=1000)
    costs = [Roofline().rank(p)[0].terms["conversion"] for p in (dense_once, often)]
    assert costs[1] < 0.01 * (Roofline().rank(often)[0].seconds or 0.0)


def measuring(times: dict[str, float]) -> Callable[[Candidate], float]:
    def measure(plan: Candidate) -> float:
        name = plan.format_of("A")
        if name not in times:
            raise UnsupportedError("it does not run here")
        return times[name]

    return measure


def test_measured_strategies() -> None:
    p = spmm(0.1, 32, measure=measuring({"COO": 2.0, "dense": 1.0}))
    assert [r.candidate.format_of("A") for r in Oracle().rank(p)] == [
        "dense",
        "dense",
        "COO",
        "COO",
    ]
    assert Oracle().rank(p)[0].terms["measured"] == 1.0
    first = [r.candidate for r in Roofline().rank(p)[:3]]

    def against(plan: Candidate) -> float:
        return 3.0 - first.index(plan)

    slow = spmm(0.1, 32, measure=against)
    ranked = Autotune(best=3).rank(slow)
    assert [r.candidate for r in ranked[:3]] == first[::-1]
    assert len(ranked) == len(slow.candidates)
    with pytest.raises(NoneRan, match="does not run here"):
        Oracle().rank(spmm(0.1, 32, measure=measuring({})))
    with pytest.raises(NothingToMeasure):
        Oracle().rank(spmm(0.1, 32))


def test_a_tensor_of_two_expressions_is_chosen_once_for_both() -> None:
    known = {"A": iid(2000, 2000, density=0.01)}
    texts = ("B[i,k] = A[i,j] * X[j,k]", "D[j,k] = A[i,j] * X[i,k]")
    p = problem(*texts, statistics=known, sizes={"k": 32}, libraries=CPU_ENGINES)
    ranked = Roofline().rank(p)
    chosen = ranked[0].candidate
    assert len(chosen.engines) == 2 and [name for name, _ in chosen.formats] == ["A"]
    alone = [problem(text, statistics=known, sizes={"k": 32}) for text in texts]
    for r in ranked:
        parts = [
            q.predict(Candidate.of(dict(r.candidate.formats), engine)).seconds or 0.0
            for q, engine in zip(alone, r.candidate.engines, strict=True)
        ]
        assert r.seconds == pytest.approx(sum(parts))


def test_two_sparse_operands_go_along_their_rows() -> None:
    known = {"A": iid(2000, 2000, density=0.01), "B": iid(2000, 2000, density=0.01)}
    for text in ("C[i,k] = A[i,j] * B[j,k]", "C[i,j] = A[i,j] + B[i,j]"):
        p = problem(text, statistics=known, formats={"C": "CSR"}, libraries=CPU_ENGINES)
        assert best(Roofline(), p) == Candidate.of({"A": "CSR", "B": "CSR"}), text
