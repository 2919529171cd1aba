"""Products by cuBLAS, cuSPARSE and cuSPARSELt on a GPU, against float64; in graphs and on streams."""

from __future__ import annotations

from typing import Any

import pytest

import sparsecc as sc
from sparsecc.runtime.machines import present_target
from sparsecc.runtime.tile_kernel import TileKernel
from tests.unit.runtime.gpu_doubles import torch
from tests.unit.runtime.library_calls import compiled

pytestmark = pytest.mark.gpu

LINEAR = "Y[m,n] = X[m,k] * W[n,k]"
SPMM = "C[i,k] = A[i,j] * B[j,k]"
FLOATS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
ROUNDING = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-4, "f64": 1e-10}


def on_gpu(text: str, given: Any, engine: str, **options: Any) -> TileKernel:
    kernel = compiled(text, given, engine, target=present_target(), **options)
    assert isinstance(kernel, TileKernel)
    return kernel


def random(*shape: int, dtype: str = "f32") -> Any:
    torch.manual_seed(sum(shape))
    return torch.rand(*shape, device="cuda").to(getattr(torch, FLOATS[dtype])) - 0.5


def check(kernel: TileKernel, given: dict[str, Any], wanted: Any, dtype: str) -> None:
    scale = float(wanted.abs().max()) or 1.0
    found = kernel.call(given)
    assert found.is_cuda and found.shape == wanted.shape
    error = float((found.double() - wanted).abs().max())
    assert error <= 2 * ROUNDING[dtype] * scale, error
    out = torch.full(wanted.shape, float("nan"), dtype=found.dtype, device="cuda")
    assert kernel.call(given, out) is out
    assert float((out.double() - wanted).abs().max()) <= 2 * ROUNDING[dtype] * scale


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1, 64, 64), (13, 96, 160), (256, 512, 128), (3, 7, 5)])
def test_cublas(dtype: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    given = {"X": random(m, k, dtype=dtype), "W": random(n, k, dtype=dtype)}
    wanted = given["X"].double() @ given["W"].double().t()
    check(on_gpu(LINEAR, given, "cublas"), given, wanted, dtype)


def test_cublas_batches_and_vectors() -> None:
    x, w = random(4, 13, 32), random(24, 32)
    given = {"X": x, "W": w}
    wanted = x.double() @ w.double().t()
    check(on_gpu("Y[b,m,n] = X[b,m,k] * W[n,k]", given, "cublas"), given, wanted, "f32")
    vector = {"A": w, "x": random(32)}
    check(
        on_gpu("y[i] = A[i,j] * x[j]", vector, "cublas"),
        vector,
        w.double() @ vector["x"].double(),
        "f32",
    )


def csr(rows: int, columns: int, dtype: str, wide: bool) -> Any:
    dense = random(rows, columns, dtype=dtype)
    dense = torch.where(torch.rand(rows, columns, device="cuda") < 0.1, dense, 0)
    made = dense.to_sparse_csr()
    if wide:
        return made
    parts = made.crow_indices().int(), made.col_indices().int(), made.values()
    return torch.sparse_csr_tensor(*parts, size=(rows, columns))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_cusparse(dtype: str, wide: bool) -> None:
    a = csr(300, 200, dtype, wide)
    dense = a.to_dense().double()
    for text, shape, turned in (
        (SPMM, (200, 24), False),
        ("C[k,i] = B[k,j] * A[i,j]", (24, 200), True),
    ):
        given = {"A": a, "B": random(*shape, dtype=dtype)}
        wide_b = given["B"].double()
        wanted = wide_b @ dense.t() if turned else dense @ wide_b
        check(on_gpu(text, given, "cusparse", out="dense"), given, wanted, dtype)
    given = {"A": a, "x": random(200, dtype=dtype)}
    wanted = dense @ given["x"].double()
    check(on_gpu("y[i] = A[i,j] * x[j]", given, "cusparse"), given, wanted, dtype)


def two_of_four(rows: int, columns: int, dtype: str) -> Any:
    weight = random(rows, columns, dtype=dtype)
    places = torch.rand(rows, columns // 4, 4, device="cuda").argsort(-1)
    return weight * (places < 2).reshape(rows, columns)


@pytest.fixture
def cusparselt() -> None:
    if not torch.backends.cusparselt.is_available():
        pytest.skip("this torch has no cuSPARSELt")


@pytest.mark.usefixtures("cusparselt")
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("tokens", [1, 13, 128])
@pytest.mark.parametrize("columns_first", [False, True])
def test_cusparselt(dtype: str, tokens: int, columns_first: bool) -> None:
    text = "Y[n,m] = W[n,k] * X[k,m]" if columns_first else LINEAR
    spec = {"W": sc.Spec((None, None), dtype, "2:4"), "X": sc.Spec((None, None), dtype)}
    kernel = on_gpu(text, spec, "cusparselt")
    w = two_of_four(192, 256, dtype)
    x = random(*((256, tokens) if columns_first else (tokens, 256)), dtype=dtype)
    wanted = w.double() @ x.double() if columns_first else x.double() @ w.double().t()
    given = {"X": x, "W": kernel.pack(W=w)}
    check(kernel, given, wanted, dtype)
    host = {"X": x, "W": kernel.pack(W=sc.asarray(w).to("2:4"))}
    check(kernel, host, wanted, dtype)


@pytest.mark.parametrize("engine", ["cublas", "cusparse", "cusparselt"])
def test_captured_in_a_graph(engine: str) -> None:
    if engine == "cusparselt" and not torch.backends.cusparselt.is_available():
        pytest.skip("this torch has no cuSPARSELt")
    x = random(16, 256, dtype="f16")
    w = two_of_four(192, 256, "f16")
    dense = w
    if engine == "cusparse":
        w = w.to_sparse_csr()
    format = {"cublas": None, "cusparse": "CSR@i64/i64", "cusparselt": "2:4"}[engine]
    spec = {"W": sc.Spec((None, None), "f16", format), "X": sc.Spec((None, None), "f16")}
    kernel = on_gpu(LINEAR, spec, engine, out="dense")
    given = {"X": x, "W": kernel.pack(W=w) if engine == "cusparselt" else w}
    out = torch.empty(16, 192, dtype=torch.float16, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        kernel.call(given, out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel.call(given, out)
    x.copy_(random(16, 256, dtype="f16") * 2)
    graph.replay()
    torch.cuda.synchronize()
    wanted = x.double() @ dense.double().t()
    assert torch.allclose(out.double(), wanted, rtol=1e-2, atol=1e-2)
