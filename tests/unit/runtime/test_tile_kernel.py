"""Kernels for GPUs, called: what goes in as it lies, what is refused, what comes out."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.diagnostics import SparseccError
from sparsecc.formats import parse_format
from sparsecc.kernel import Operand
from sparsecc.runtime.compiled_kernel import OperandConverted
from sparsecc.runtime.machines import RESERVE
from sparsecc.runtime.tile_kernel import bucket
from tests.unit.backends.triton.kernels import SPMV
from tests.unit.runtime.gpu_doubles import (
    ROWS,
    TOTAL,
    Machine,
    Remakes,
    X,
    csr,
    kernel_of,
    launch,
    program,
    spmv_plan,
    torch,
)


def test_torch_tensors_are_taken_as_they_lie(machine: Machine) -> None:
    kernel = kernel_of(spmv_plan(SPMV), machine)
    y = kernel(A=csr(torch.int32), x=torch.from_numpy(X))
    assert isinstance(y, torch.Tensor)
    assert np.array_equal(y.numpy(), ROWS @ X)
    assert not kernel.notes
    assert machine.library.launches == [("spmv", (1, 1, 1), 77)]  # on torch's current stream


def test_values_changed_in_place_are_seen(machine: Machine) -> None:
    kernel = kernel_of(spmv_plan(SPMV), machine)
    matrix, x = csr(torch.int32), torch.from_numpy(X)
    first = kernel(A=matrix, x=x)
    matrix.values().mul_(2)
    assert torch.equal(kernel(A=matrix, x=x), 2 * first)
    assert len(machine.library.symbols) == 1  # loaded once


def test_calls_that_are_known_look_at_nothing_but_addresses(machine: Machine) -> None:
    kernel = kernel_of(spmv_plan(SPMV), machine)
    matrix, x, out = csr(torch.int32), torch.from_numpy(X), torch.empty(3)
    for _ in range(2):  # the second call follows the recipe of the first
        assert np.array_equal(kernel(A=matrix, x=x.clone()).numpy(), ROWS @ X)
        assert kernel(A=matrix, x=x.clone(), out=out.fill_(7)) is out
        assert np.array_equal(out.numpy(), ROWS @ X)
    assert len(kernel.recipes.known) == 2
    doubled = csr(torch.int32)
    doubled.values().mul_(2)  # another matrix of the same shape
    assert np.array_equal(kernel(A=doubled, x=x).numpy(), 2 * (ROWS @ X))
    memory = torch.zeros(8)
    with pytest.raises(SparseccError, match="shares memory"):
        kernel(A=matrix, x=memory[:4], out=memory[3:6])
    with pytest.raises(SparseccError, match="and 5 in another"):
        kernel(A=matrix, x=torch.zeros(5))
    with pytest.raises(SparseccError, match="f64"):
        kernel(A=matrix, x=x.double())


def test_a_known_call_with_work_memory_and_strides(machine: Machine) -> None:
    kernel = Remakes(machine).kernel()
    w = torch.ones(3, 16)
    for k in range(3):
        x = torch.full((8, 20), float(k))[:, :16]
        assert torch.equal(kernel(X=x, W=w), torch.full((8, 3), 16.0 * k))
    assert len(kernel.recipes.known) == 1
    assert torch.equal(kernel(X=torch.ones(8, 16), W=w), torch.full((8, 3), 16.0))
    assert len(kernel.recipes.known) == 2


def test_what_is_kept_of_an_operand_goes_with_it(machine: Machine) -> None:
    kernel = kernel_of(spmv_plan(SPMV), machine)
    matrix = csr(torch.int32)
    kernel(A=matrix, x=torch.from_numpy(X))
    assert len(kernel.gpu_slots["A"].kept) == 1
    del matrix
    gc.collect()
    assert not kernel.gpu_slots["A"].kept


def test_numpy_and_sparse_tensors_come_back_as_the_cpu_gives_them(machine: Machine) -> None:
    kernel = kernel_of(spmv_plan(SPMV), machine)
    a = sc.asarray(ROWS).to("CSR@i32/i32")
    with pytest.warns(OperandConverted, match="operand A: copied to cpu"):
        y = kernel(A=a, x=X)
    assert type(y) is np.ndarray and np.array_equal(y, ROWS @ X)
    kept = kernel.gpu_slots["A"].kept
    (first,) = kept.values()
    kernel(A=a, x=X)
    assert list(kept.values()) == [first]  # not brought again
    assert kernel.notes == ["operand A: copied to cpu", "operand x: copied to cpu"]


def test_an_array_that_changes_between_calls_is_brought_each_time(machine: Machine) -> None:
    kernel = kernel_of(spmv_plan(SPMV), machine)
    a, x = sc.asarray(ROWS).to("CSR@i32/i32"), X.copy()
    with pytest.warns(OperandConverted):
        kernel(A=a, x=x)
    x *= 2
    assert np.array_equal(kernel(A=a, x=x), 2 * (ROWS @ X))


def test_another_format_of_the_host_is_converted_and_said(machine: Machine) -> None:
    kernel = kernel_of(spmv_plan(SPMV), machine)
    with pytest.warns(OperandConverted, match="COO converted to CSR"):
        y = kernel(A=sc.asarray(ROWS).to("COO"), x=torch.from_numpy(X))
    assert isinstance(y, torch.Tensor) and np.array_equal(y.numpy(), ROWS @ X)


def test_out_takes_the_result(machine: Machine) -> None:
    kernel = kernel_of(spmv_plan(SPMV), machine)
    out = torch.full((3,), float("nan"))
    assert kernel(A=csr(torch.int32), x=torch.from_numpy(X), out=out) is out
    assert np.array_equal(out.numpy(), ROWS @ X)


BAD_OUTPUTS: list[tuple[Callable[[], Any], str]] = [
    (lambda: torch.zeros(3, dtype=torch.float64), "no array of f32"),
    (lambda: torch.zeros(6)[::2], "not contiguous"),
    (lambda: torch.zeros(3, 1), "its shape is"),
    (lambda: torch.zeros(4), "its shape is"),
    (lambda: np.zeros(3, "f4"), "it is a ndarray.*pass a torch tensor on the GPU"),
]


@pytest.mark.parametrize(("make", "text"), BAD_OUTPUTS)
def test_memory_that_can_not_take_the_result(
    make: Callable[[], Any], text: str, machine: Machine
) -> None:
    kernel = kernel_of(spmv_plan(SPMV), machine)
    with pytest.raises(SparseccError, match=f"(?s){text}"):
        kernel(A=csr(torch.int32), x=torch.from_numpy(X), out=make())
    assert not machine.library.launches


def elsewhere() -> Any:
    """A tensor that is not on the machine."""
    tensor = torch.from_numpy(X)
    tensor.elsewhere = True
    return tensor


REFUSED: list[tuple[str, Callable[[], dict[str, Any]], str]] = [
    ("an operand of the CPU", lambda: {"x": elsewhere()}, "'x' is on cpu, the kernel runs on.*move it once: x.to"),
    ("a dtype", lambda: {"x": torch.zeros(4, dtype=torch.float64)}, "'x' is f64, the kernel was compiled for f32"),
    ("a rank", lambda: {"x": torch.zeros(4, 1)}, "2 dimensions, the kernel was compiled for 1"),
    ("an extent", lambda: {"x": torch.zeros(5)}, "index 'j' has 4 coordinates in one operand and 5"),
    ("gaps", lambda: {"x": torch.zeros(8)[::2]}, r"strides \(2,\), which the kernel can't follow.*contiguous\(\)"),
    ("a layout", lambda: {"A": torch.from_numpy(ROWS)}, r"layout strided, the kernel reads CSR.*to_sparse_csr\(\)"),
    ("another", lambda: {"A": csr().to_sparse_coo()}, r"layout torch.sparse_coo, the kernel reads CSR"),
    ("a width", lambda: {"A": csr(torch.int64)}, r"positions of operand 'A' are torch.int64.*torch.int32"),
    ("nothing", lambda: {"A": object()}, "is not a tensor|has no place on a GPU"),
    ("a name", lambda: {"B": 1}, "no operand 'B'"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "text"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_refused_with_the_remedy(
    make: Callable[[], dict[str, Any]], text: str, machine: Machine
) -> None:
    kernel = kernel_of(spmv_plan(SPMV), machine)
    with pytest.raises(SparseccError, match=f"(?s){text}"):
        kernel.call({"A": csr(torch.int32), "x": torch.from_numpy(X)} | make())
    assert not machine.library.launches


def test_arrays_of_other_libraries_are_seen_without_a_copy(machine: Machine) -> None:
    class Foreign:
        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor

        def __dlpack__(self, **options: Any) -> Any:
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.tensor.__dlpack_device__()

    x = torch.from_numpy(X)
    slot = kernel_of(spmv_plan(SPMV), machine).gpu_slots["x"]
    taken = slot.take(Foreign(x))
    assert not isinstance(taken, sc.SparseTensor) and taken.words["values"] == x.data_ptr()


def test_out_must_not_be_an_operand(machine: Machine) -> None:
    x = torch.zeros(8)
    with pytest.raises(SparseccError, match="shares memory with an operand"):
        kernel_of(spmv_plan(SPMV), machine)(A=csr(torch.int32), x=x[:4], out=x[3:6])
    kernel_of(spmv_plan(SPMV), machine)(A=csr(torch.int32), x=x[:4], out=x[4:7])


def test_an_operand_that_is_not_given(machine: Machine) -> None:
    with pytest.raises(SparseccError, match="operand 'x' is not given"):
        kernel_of(spmv_plan(SPMV), machine)(A=csr(torch.int32))


def test_a_misaligned_address_is_refused_before_the_launch(machine: Machine) -> None:
    plan = spmv_plan(replace(SPMV, aligned=("x",)))
    x = torch.zeros(9)[1:5]
    with pytest.raises(SparseccError, match=r"(?s)x \(in1.values\).*multiple of 16 bytes.*clone"):
        kernel_of(plan, machine)(A=csr(torch.int32), x=x)
    assert not machine.library.launches


def test_rows_may_lie_apart_where_the_kernel_reads_their_stride(machine: Machine) -> None:
    x = torch.arange(160, dtype=torch.float32).reshape(8, 20)[:, :16]
    w = torch.arange(48, dtype=torch.float32).reshape(3, 16)
    kernel = Remakes(machine).kernel()
    assert torch.allclose(kernel(X=x, W=w), x @ w.T)
    with pytest.raises(SparseccError, match=r"'W' has shape \(3, 16\) and strides \(20, 1\)"):
        kernel(X=x, W=torch.zeros(3, 20)[:, :16])
    with pytest.raises(SparseccError, match="can't follow"):
        kernel(X=torch.zeros(16, 8).T, W=w)


def test_work_memory_and_counters(machine: Machine) -> None:
    dense = str(parse_format("dense", 1))
    operands = (Operand("x", (None,), "f32", dense),)
    plan = program(TOTAL, operands, launch("total", 1, (("i", ((0, 0),)),), ()))
    kernel = kernel_of(plan, machine)
    x = torch.arange(100, dtype=torch.float32)
    for _ in range(3):  # each launch leaves the counters at zero
        assert float(kernel(x=x)) == 4950
    (launcher,) = kernel.program(kernel).steps
    (kept,) = launcher.counters.values()
    assert not kept.any()
    machine.captures = True
    kept.fill_(1)  # in a graph the counters are its own, zeroed before
    assert float(kernel(x=x)) == 4950
    first = machine.taken
    assert 0 < first <= RESERVE and float(kernel(x=x)) == 4950
    assert machine.taken == 2 * first and not machine.reserve[: 2 * first].any()
    machine.taken = RESERVE  # used up: the graph zeroes them
    assert float(kernel(x=x)) == 4950 and machine.taken == RESERVE
    machine.captures = False  # a kernel that is new, outside of graphs: there is a reserve again
    used = machine.reserve
    assert float(kernel_of(plan, machine)(x=x)) == 4950
    assert machine.taken == 0 and machine.reserve is not used
    assert [r is used for r in machine.reserves] == [True, False]


def test_an_empty_grid_is_not_launched(machine: Machine) -> None:
    empty = torch.sparse_csr_tensor(
        torch.zeros(1, dtype=torch.int32),
        torch.zeros(0, dtype=torch.int32),
        torch.zeros(0),
        size=(0, 4),
    )
    y = kernel_of(spmv_plan(SPMV), machine)(A=empty, x=torch.from_numpy(X))
    assert tuple(y.shape) == (0,) and not machine.library.launches


# -- contractions --------------------------------------------------------------------------------


def test_buckets() -> None:
    found = [bucket(n) for n in (1, 8, 9, 16, 17, 64, 65, 512, 513, 4096, 10**6)]
    assert found == [8, 8, 16, 16, 32, 64, 128, 512, 1024, 4096, 4096]


def test_a_contraction_is_compiled_for_what_it_meets(machine: Machine) -> None:
    remakes = Remakes(machine)
    kernel = remakes.kernel()
    w = torch.ones(3, 16)
    for tokens in (1, 5, 8, 9):
        x = torch.ones(tokens, 16)
        assert torch.equal(kernel(X=x, W=w), torch.full((tokens, 3), 16.0))
    kernel(X=torch.ones(4, 20), W=torch.ones(3, 20))
    kernel(X=torch.ones(4, 18), W=torch.ones(3, 18))  # rows of 72 bytes
    kernel(X=torch.ones(4, 16), W=torch.ones(32, 16))
    plain = {"rows": 3, "steps": None, "entries": None, "even": False, "folded": False}
    assert remakes.asked == [
        {"tokens": 8, "reduction": 16, "aligned": True, **plain},
        {"tokens": 16, "reduction": 16, "aligned": True, **plain},
        {"tokens": 8, "reduction": 20, "aligned": True, **plain},
        {"tokens": 8, "reduction": 18, "aligned": False, **plain},
        {"tokens": 8, "reduction": 16, "aligned": True, **plain, "rows": 32, "even": True},
    ]


def test_tokens_that_are_given_are_kept(machine: Machine) -> None:
    remakes = Remakes(machine)
    kernel = remakes.kernel(tokens=64)
    kernel(X=torch.ones(2, 16), W=torch.ones(3, 16))
    assert remakes.asked[0]["tokens"] == 64
