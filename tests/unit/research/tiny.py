"""A table of eight small problems with made-up times, for tests of all that reads tables."""

from __future__ import annotations

from dataclasses import replace

from sparsecc.research.corpus import CorpusProblem, Matrix, of_matrix
from sparsecc.research.table import Table, Time
from sparsecc.selection.candidate import Candidate

META = {
    "target": "cpu",
    "machine": "a machine of the tests",
    "versions": {"sparsecc": "0", "numpy": "0"},
    "commit": "0000000",
    "date": "2026-01-01",
    "command": "none",
}
MATRICES = (
    Matrix({"family": "iid", "rows": 40, "columns": 30, "density": 0.5}),
    Matrix({"family": "iid", "rows": 40, "columns": 30, "density": 0.05}),
    Matrix(
        {"family": "block", "rows": 40, "columns": 40, "block": [4, 4], "density": 0.2, "seed": 1}
    ),
    Matrix({"family": "stencil", "grid": [6, 6], "points": 5}),
)

CSR = Candidate.of({"A": "CSR"})
DENSE = Candidate.of({"A": "dense"}, "blas")
BSR = Candidate.of({"A": "BSR(4,4)"})
SCIPY = Candidate.of({"A": "CSR"}, "scipy")


def times(dense: float, csr: float, bsr: float) -> tuple[Time, ...]:
    """Microseconds of three plans, each within a tenth; converting to dense takes as long as ten calls of it."""

    def time(candidate: Candidate, micro: float, conversion: float) -> Time:
        seconds, low, high = (micro * share / 1e6 for share in (1, 0.95, 1.05))
        return Time(candidate, seconds, low, high, 9, conversion / 1e6, 0.01, 1000, True)

    return (
        time(CSR, csr, 0),
        time(DENSE, dense, 10 * dense),
        time(BSR, bsr, 5 * bsr),
        Time(SCIPY, None, failure="there is no SciPy"),
    )


def tiny() -> Table:
    """SpMV and SpMM with 8 columns on four matrices: dense is best on the first, CSR on the second and the fourth,
    blocks on the third."""
    found: dict[str, CorpusProblem] = {}
    made: dict[str, tuple[Time, ...]] = {}
    for matrix, micro in zip(
        MATRICES, ((10, 20, 30), (100, 10, 40), (80, 20, 10), (300, 30, 31)), strict=True
    ):
        for scale, operation, width in ((1, "SpMV", None), (4, "SpMM", 8)):
            problem = of_matrix(matrix, operation, width, "cpu")
            problem = problem.with_statistics(problem.make().statistics())
            found[problem.id] = problem
            made[problem.id] = times(*(scale * m for m in micro))
    return Table("tiny", META, found, made)


def without(table: Table, candidate: Candidate) -> Table:
    """The table with a plan that nobody measured."""
    left = {
        id: tuple(t for t in times if t.candidate != candidate) for id, times in table.times.items()
    }
    return replace(table, times=left)
