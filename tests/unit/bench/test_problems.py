"""Operands, rivals and their check, on the CPU: small cells, torch's own CPU kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sparsecc.bench import peers
from sparsecc.bench.cells import Cell, all_cells
from sparsecc.bench.problem import Candidate, Problem
from sparsecc.bench.weights import Matrix

torch: Any = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


def small(group: str, **changes: Any) -> Cell:
    found = next(c for c in all_cells() if c.group == group)
    sizes: dict[str, Any] = {"rows": 128, "columns": 128, "width": 8, "dtype": "f32"}
    return replace(found, **(sizes | changes))


def problem(cell: Cell) -> Problem:
    return Problem(cell, Matrix(cell, "cpu"))


def test_two_of_four() -> None:
    matrix = Matrix(small("2:4"), "cpu")
    assert (matrix.dense.view(-1, 4) != 0).sum(-1).eq(2).all()


@pytest.mark.parametrize("pattern", ["iid", "magnitude", "rmat", "uniform"])
def test_sparsity(pattern: str) -> None:
    cell = small("unstructured", pattern=pattern, sparsity=0.8, rows=512, columns=512)
    matrix = Matrix(cell, "cpu")
    assert matrix.nnz / (512 * 512) == pytest.approx(0.2, abs=0.03)  # R-MAT repeats itself
    assert matrix.dense.shape == (512, 512)


def test_a_matrix_is_the_same_every_time() -> None:
    cell = small("CSR")
    assert torch.equal(Matrix(cell, "cpu").dense, Matrix(cell, "cpu").dense)
    other = replace(cell, sparsity=0.95)
    assert not torch.equal(Matrix(cell, "cpu").dense, Matrix(other, "cpu").dense)


def test_rmat_is_skewed() -> None:
    cell = small("CSR", rows=1024, columns=1024, sparsity=0.99)
    longest = {}
    for pattern in ("rmat", "uniform"):
        counts = (Matrix(replace(cell, pattern=pattern), "cpu").dense != 0).sum(1)
        longest[pattern] = int(counts.max()) / float(counts.float().mean())
    assert longest["rmat"] > 3 * longest["uniform"]


def test_blocks_are_whole() -> None:
    cell = small("BSR", format="BSR(16,16)", sparsity=0.5)
    matrix = Matrix(cell, "cpu")
    counts = (matrix.dense.view(8, 16, 8, 16) != 0).sum((1, 3))
    assert set(counts.flatten().tolist()) == {0, 256}
    assert torch.equal(matrix.bsr.to_dense(), matrix.dense)


@pytest.mark.parametrize(("cell", "family", "names"), [
    (small("2:4"), "dense", ["F.linear", "matmul", "padded to 16"]),
    (small("2:4", width=32), "dense", ["F.linear", "matmul"]),
    (small("2:4", dtype="bf16", width=1), "dense", ["F.linear", "matmul", "padded to 16"]),
    (small("CSR"), "dense", ["matmul"]),
    (small("CSR"), "cuSPARSE", ["csr @ x", "csr @ x, column-major"]),
    (small("BSR", format="BSR(16,16)"), "torch BSR", ["bsr @ x"]),
    (small("SpMV", width=1), "dense", ["matmul"]),
    (small("SpMV", width=1), "cuSPARSE", ["csr @ x"]),
    (small("SDDMM"), "cuSPARSE", ["sampled_addmm"]),
    (small("SDDMM"), "torch", ["dense product at the entries", "gathered rows"]),
], ids=str)  # fmt: skip
def test_rivals_are_right(cell: Cell, family: str, names: list[str]) -> None:
    of_cell = problem(cell)
    found: list[Candidate] = []
    for peer in peers.PEERS[family]:
        for candidate in peer(of_cell):
            if candidate.name == "F.linear(x, bsr)":
                continue  # on a GPU only
            found.append(candidate)
            assert of_cell.errors(candidate).accepted(cell.dtype), candidate.name
    assert [c.name for c in found] == names


def test_each_call_has_its_own_copy() -> None:
    of_cell = problem(small("CSR"))
    (candidate, _) = peers.cusparse(of_cell)
    calls: list[Any] = list(candidate.calls)
    weights = {call.args[0].values().data_ptr() for call in calls}
    assert len(candidate.calls) == len(weights) == 256


class FakeSparseLt:
    """torch with the functions of cuSPARSELt: the compressed weight is the weight."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def _cslt_compress(self, weight: Any) -> Any:
        return weight.clone()

    def _cslt_sparse_mm_search(self, weight: Any, x: Any, transpose_result: bool = False) -> int:
        return 7 if transpose_result else 3

    def _cslt_sparse_mm(self, w: Any, x: Any, alg_id: int, transpose_result: bool = False) -> Any:
        assert x.shape[1] % 8 == 0
        self.asked.append((alg_id, x.shape[1]))
        return (w @ x).t() if transpose_result else w @ x

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def test_cusparselt_is_searched_and_padded() -> None:
    of_cell = problem(small("2:4", width=1))
    fake = FakeSparseLt()
    of_cell.torch = fake
    found = list(peers.cusparselt(of_cell))
    assert [c.name for c in found] == [
        "default, column-major", "algorithm 3, column-major", "default, row-major",
        "algorithm 7, row-major",
    ]  # fmt: skip
    of_cell.torch = torch
    for candidate in found:
        assert of_cell.errors(candidate).accepted("f32"), candidate.name
    assert fake.asked == [(0, 8), (3, 8), (0, 8), (7, 8)]


def candidate(result: Any, out: Any = None) -> Candidate:
    return Candidate("one", (lambda: result,), lambda y: y, 0, out)


def test_what_is_not_written_is_found() -> None:
    of_cell = problem(small("2:4"))
    right = of_cell.reference.float()
    assert of_cell.errors(candidate(right)).accepted("f32")
    room = right.clone()
    # It leaves the room as it was, which was right: the poison shows it.
    assert not of_cell.errors(candidate(room, room)).accepted("f32")


def test_one_wrong_element_is_found() -> None:
    of_cell = problem(small("2:4", rows=512, columns=512, width=512, dtype="f16"))
    wrong = of_cell.reference.half()
    assert of_cell.errors(candidate(wrong)).accepted("f16")
    wrong[3, 5] += 1
    errors = of_cell.errors(candidate(wrong))
    assert errors.norm < 1e-3  # the norm alone would let it pass
    assert not errors.accepted("f16")
    assert errors.accepted("f16", 100.0)
    assert not of_cell.errors(candidate(wrong[:5])).accepted("f16")
