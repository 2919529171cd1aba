"""The runtime on a real GPU: launches, tensor maps, graphs, streams, tuning, and what a call costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import pytest

from sparsecc.diagnostics import SparseccError
from sparsecc.kernel import Operand
from sparsecc.runtime.machines import current_gpu, gpu, present_target
from sparsecc.runtime.tile_kernel import TileKernel
from sparsecc.targets import TargetAbility, known_target
from tests.unit.backends.triton.kernels import COPY, SPMV
from tests.unit.runtime.gpu_doubles import (
    SCHEDULES,
    TOTAL,
    Remakes,
    kernel_of,
    launch,
    matmul_plan,
    program,
    spmv_plan,
    torch,
)

pytestmark = pytest.mark.gpu


def on_gpu(kernel: TileKernel, target: str | None = None) -> TileKernel:
    kernel.request = replace(kernel.request, target=target or present_target())
    return kernel


def matrix(rows: int, columns: int) -> Any:
    torch.manual_seed(rows)
    dense = torch.rand(rows, columns, device="cuda")
    dense = torch.where(torch.rand_like(dense) < 0.2, dense, 0)
    found = dense.to_sparse_csr()
    return torch.sparse_csr_tensor(
        found.crow_indices().int(), found.col_indices().int(), found.values(), size=(rows, columns)
    )


@pytest.mark.parametrize("shape", [(1, 1), (13, 17), (1000, 333)])
def test_a_kernel_runs(shape: tuple[int, int]) -> None:
    a, x = matrix(*shape), torch.rand(shape[1], device="cuda")
    kernel = on_gpu(kernel_of(spmv_plan(SPMV), None))
    out = torch.full((shape[0],), float("nan"), device="cuda")
    for given in (None, out, None, out):
        y = kernel.call({"A": a, "x": x}, given)
        assert torch.allclose(y, a.to_dense() @ x, rtol=1e-4, atol=1e-5)


def test_tensor_maps() -> None:
    if not known_target(present_target()).can(TargetAbility.BULK_COPY):
        pytest.skip("this GPU has no bulk copies")
    dense = "(d0, d1) -> (d0 : dense, d1 : dense)"
    made = launch("copy", 1, (("i", ((0, 0),)), ("j", ((0, 1),))), (0, 1), dtype="f16")
    kernel = on_gpu(kernel_of(program(COPY, (Operand("X", (None, 64), "f16", dense),), made), None))
    wide = torch.rand(100, 72, device="cuda").half()
    for x in (wide[:, :64], wide[:, 8:], torch.rand(7, 64, device="cuda").half()):
        assert torch.equal(kernel(X=x), x)


def test_work_memory_on_two_streams() -> None:
    dense = "(d0) -> (d0 : dense)"
    plan = program(
        TOTAL, (Operand("x", (None,), "f32", dense),), launch("total", 1, (("i", ((0, 0),)),), ())
    )
    kernel = on_gpu(kernel_of(plan, None))
    x = torch.arange(1000, dtype=torch.float32, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    found: list[Any] = []
    for _ in range(50):
        for stream in streams:
            with torch.cuda.stream(stream):
                found.append(kernel(x=x))
    torch.cuda.synchronize()
    assert {float(y) for y in found} == {499500.0}


def test_captured_in_a_graph() -> None:
    kernel = on_gpu(Remakes(None).kernel())
    x, w = torch.rand(8, 64, device="cuda"), torch.rand(32, 64, device="cuda")
    kernel.request = replace(kernel.request, tokens=8)
    kernel.sized = None
    kernel(X=x, W=w)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = kernel(X=x, W=w)
    x.copy_(torch.rand_like(x))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.allclose(y, x @ w.T, rtol=1e-2)


def test_indices_are_checked_on_the_device() -> None:
    a, x = matrix(20, 30), torch.rand(30, device="cuda")
    kernel = on_gpu(kernel_of(spmv_plan(SPMV), None))
    wanted = kernel(A=a, x=x)
    torch.cuda.set_sync_debug_mode("error")
    try:
        assert kernel(A=a, x=x).shape == wanted.shape  # seen before: no synchronisation
    finally:
        torch.cuda.set_sync_debug_mode("default")
    a.col_indices()[-1] = 99
    with pytest.raises(SparseccError, match="is 99, outside of 0 to 29"):
        kernel(A=a, x=x)


def test_code_of_ampere_through_ptx() -> None:
    a, x = matrix(20, 30), torch.rand(30, device="cuda")
    kernel = on_gpu(kernel_of(spmv_plan(SPMV), None), "sm_80")
    assert torch.allclose(kernel(A=a, x=x), a.to_dense() @ x, rtol=1e-4)


def test_tuning_measures() -> None:
    kernel = on_gpu(kernel_of(matmul_plan(), None))
    kernel.sized = None

    def remake(**options: Any) -> TileKernel:
        schedules: Sequence[tuple[str, str]] = options["schedules"]
        number = SCHEDULES.index(dict(schedules)["matmul"])
        return on_gpu(kernel_of(matmul_plan(number), None, remake))

    kernel.remake = remake
    x, w = torch.rand(64, 512, device="cuda"), torch.rand(256, 512, device="cuda")
    found = kernel.autotune(X=x, W=w, again=True)
    assert set(found.times["matmul"]) == set(SCHEDULES)
    assert all(1 < time < 1e5 for time in found.times["matmul"].values())
    assert torch.allclose(kernel(X=x, W=w), x @ w.T, rtol=1e-2)


def test_tensors_of_the_cpu_are_refused() -> None:
    kernel = on_gpu(kernel_of(spmv_plan(SPMV), None))
    with pytest.raises(SparseccError, match="'x' is on cpu, the kernel runs on cuda:0"):
        kernel(A=matrix(3, 4), x=torch.rand(4))


def test_a_call_costs_less_than_20_us() -> None:
    a, x = matrix(64, 64), torch.rand(64, device="cuda")
    kernel = on_gpu(kernel_of(spmv_plan(SPMV), None))
    out = torch.empty(64, device="cuda")
    for given in (None, out):
        times: list[float] = []
        for _ in range(30):
            torch.cuda.synchronize()
            start = perf_counter()
            for _ in range(100):
                kernel.call({"A": a, "x": x}, given)
            times.append((perf_counter() - start) * 1e4)
        assert sorted(times)[5] < 20, times
    assert gpu(current_gpu()).device.processors > 0
