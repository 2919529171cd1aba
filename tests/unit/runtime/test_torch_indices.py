"""Index arrays of sparse torch tensors: wrong ones never reach a kernel, right ones are looked at once."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import sparsecc as sc
from sparsecc.runtime import torch_indices
from sparsecc.runtime.tile_operands import NotCoalesced
from sparsecc.runtime.torch_formats import HybridTorch, WrongTorchLayout
from sparsecc.runtime.torch_indices import BadIndices, NotSeenBefore
from tests.unit.backends.triton.kernels import SPMV
from tests.unit.runtime.gpu_doubles import Library, Machine, kernel_of, spmv_plan, torch

X = torch.arange(1, 4.0)
VALUES = [1.0, 2.0, 3.0]


def compressed(
    positions: list[int], coordinates: list[int], layout: str = "csr", dtype: Any = torch.int64
) -> Any:
    make = getattr(torch, f"sparse_{layout}_tensor")
    arrays = torch.tensor(positions, dtype=dtype), torch.tensor(coordinates, dtype=dtype)
    return make(*arrays, torch.tensor(VALUES), (2, 3), check_invariants=False)


def product(matrix: Any, x: Any = X, text: str = "y[i] = A[i,j] * x[j]") -> Any:
    program = sc.compile(text, A=matrix, x=x, target="sm_90", interpret=True)
    return program(A=matrix, x=x)


def test_right_ones_are_read() -> None:
    assert product(compressed([0, 2, 3], [0, 2, 1])).tolist() == [7, 6]


BAD: dict[str, tuple[list[int], list[int], str]] = {
    "out of range": ([0, 2, 3], [0, 7, 1], r"coordinates\[1\] is 7, outside of 0 to 2"),
    "negative": ([0, 2, 3], [-1, 2, 1], r"coordinates\[0\] is -1"),
    "beyond the end": ([0, 2, 30], [0, 2, 1], "end with 30, there are 3"),
    "before the end": ([0, 2, 2], [0, 2, 1], "end with 2, there are 3"),
    "not increasing": ([0, 3, 2], [0, 1, 2], r"positions\[2\] is 2, less"),
    "negative position": ([0, -2, 3], [0, 1, 2], r"positions\[1\] is -2, less"),
    "begin": ([1, 2, 3], [0, 2, 1], "begin with 1"),
    "out of order": ([0, 2, 3], [2, 0, 1], r"coordinates\[1\] is 0, after 2 in the same row"),
    "twice": ([0, 2, 3], [0, 0, 1], r"coordinates\[1\] is 0, after 0"),
    "too many rows": ([0, 1, 2, 3], [0, 2, 1], "4 positions, 3 are wanted"),
    "too few coordinates": ([0, 1, 2], [0, 2], "2 coordinates for 3 values"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows(name: str) -> None:
    positions, coordinates, problem = BAD[name]
    with pytest.raises(BadIndices, match=problem):
        product(compressed(positions, coordinates))


def test_bad_columns() -> None:
    turned, x = "y[j] = A[i,j] * x[i]", torch.tensor([1.0, 10.0])
    right = compressed([0, 1, 2, 3], [0, 1, 1], "csc")
    assert product(right, x, turned).tolist() == [1, 20, 30]
    with pytest.raises(BadIndices, match=r"coordinates\[2\] is 2, outside of 0 to 1"):
        product(compressed([0, 1, 2, 3], [0, 1, 2], "csc"), x, turned)


def test_bad_blocks() -> None:
    def blocks(coordinates: list[int]) -> Any:
        arrays = torch.tensor([0, 1, 2]), torch.tensor(coordinates), torch.ones(2, 2, 2)
        return torch.sparse_bsr_tensor(*arrays, (4, 4), check_invariants=False)

    assert product(blocks([0, 1]), torch.ones(4)).tolist() == [2, 2, 2, 2]
    with pytest.raises(BadIndices, match="outside of 0 to 1"):
        product(blocks([0, 2]), torch.ones(4))


def coordinates(rows: list[int], columns: list[int], coalesced: bool = True) -> Any:
    values = torch.tensor(VALUES[: len(rows)])
    indices = torch.tensor([rows, columns])
    return torch.sparse_coo_tensor(
        indices, values, (2, 3), is_coalesced=coalesced, check_invariants=False
    )


def test_coordinates() -> None:
    assert product(coordinates([0, 0, 1], [0, 2, 1])).tolist() == [7, 6]
    assert product(coordinates([], [])).tolist() == [0, 0]
    with pytest.raises(NotCoalesced):
        product(coordinates([0, 0], [1, 1], coalesced=False))


@pytest.mark.parametrize(
    ("rows", "columns", "problem"),
    [
        ([1, 0], [1, 1], "entry 1 does not come after entry 0"),
        ([0, 0], [1, 1], "entry 1 does not come after entry 0"),
        ([0, 1], [1, 3], r"dimension 1\[1\] is 3"),
        ([0, -1], [1, 1], r"dimension 0\[1\] is -1"),
    ],
)
def test_falsely_coalesced(rows: list[int], columns: list[int], problem: str) -> None:
    with pytest.raises(BadIndices, match=problem):
        product(coordinates(rows, columns))


def test_the_remedy_works() -> None:
    twice = compressed([0, 2, 3], [2, 2, 1])
    assert product(sc.asarray(twice)).tolist() == [9, 6]


def test_tensors_of_no_format() -> None:
    batched = torch.stack([torch.eye(3)] * 2).to_sparse_csr()
    with pytest.raises(HybridTorch, match="'A'.*batch"):
        sc.compile("y[i] = A[i,j,k]", A=batched, target="sm_90")
    hybrid = torch.ones(2, 3, 2).to_sparse(2)
    with pytest.raises(HybridTorch, match="'A'.*dense dimensions"):
        sc.compile("y[i] = A[i,j,k]", A=hybrid, target="sm_90")
    for odd in (torch.eye(4).to_sparse_bsc((2, 2)), torch.eye(4).to_mkldnn()):
        with pytest.raises(WrongTorchLayout, match=r"'A'.*\n.*to_dense"):
            sc.compile("y[i] = A[i,j]", A=odd, target="sm_90")


# -- how often -------------------------------------------------------------------------------------


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What has been looked at."""
    found: list[str] = []
    inner: Any = torch_indices._of_compressed  # pyright: ignore[reportPrivateUsage]

    def counted(tensor: Any, layout: str) -> str:
        found.append(layout)
        return inner(tensor, layout)

    monkeypatch.setattr(torch_indices, "_of_compressed", counted)
    return found


def test_once_for_a_tensor_and_a_version(looks: list[str]) -> None:
    kernels = [kernel_of(spmv_plan(SPMV), Machine(Library())) for _ in range(2)]
    matrix = compressed([0, 2, 3], [0, 2, 1], dtype=torch.int32)
    for kernel in (*kernels, *kernels):
        kernel(A=matrix, x=X)
    assert len(looks) == 1
    matrix.col_indices()[1] = 7
    for kernel in kernels:
        with pytest.raises(BadIndices):
            kernel(A=matrix, x=X)
    matrix.col_indices()[1] = 2
    assert kernels[0](A=matrix, x=X).tolist() == [7, 6]


def test_a_tensor_that_is_gone_is_forgotten() -> None:
    matrix = compressed([0, 2, 3], [0, 2, 1])
    torch_indices.check("A", matrix, lambda: False)
    assert torch_indices.trusted(matrix)
    key = id(matrix)
    del matrix
    gc.collect()
    assert key not in torch_indices._SEEN  # pyright: ignore[reportPrivateUsage]


def test_tensors_without_versions_are_looked_at_again(looks: list[str]) -> None:
    kernel = kernel_of(spmv_plan(SPMV), Machine(Library()))
    with torch.inference_mode():
        matrix = compressed([0, 2, 3], [0, 2, 1], dtype=torch.int32)
        for _ in range(3):
            assert kernel(A=matrix, x=X).tolist() == [7, 6]
    assert len(looks) == 3


def test_never_within_a_capture(looks: list[str]) -> None:
    machine = Machine(Library())
    kernel = kernel_of(spmv_plan(SPMV), machine)
    matrix = compressed([0, 2, 3], [0, 2, 1], dtype=torch.int32)
    machine.captures = True
    with pytest.raises(NotSeenBefore, match="before the capture"):
        kernel(A=matrix, x=X)
    assert not looks
    machine.captures = False
    kernel(A=matrix, x=X)
    machine.captures = True
    assert kernel(A=matrix, x=X).tolist() == [7, 6]
    other = kernel_of(spmv_plan(SPMV), machine)
    assert other(A=matrix, x=X).tolist() == [7, 6]  # seen by another kernel


def test_results_of_kernels_need_no_look(looks: list[str]) -> None:
    matrix = compressed([0, 2, 3], [0, 2, 1])
    text = "C[i,j] = 2 * A[i,j]"
    kernel = sc.compile(text, A=matrix, out="CSR", target="sm_90", interpret=True)
    again = kernel(A=kernel(A=matrix))
    assert again.values().tolist() == [4, 8, 12]
    assert len(looks) == 1
