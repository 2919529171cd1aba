"""The layers and products for torch on a GPU: ``pytest -m gpu``."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from sparsecc.integrations.torch import (  # noqa: E402
    SparseLinear,
    SparseMatrix,
    densified,
    sddmm,
    spmm,
)

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:Sparse")]

FORMATS = ("CSR", "BSR(16,16)", "2:4", "2:4+CSR")
TOLERANCE = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float32: 1e-4}


def layers(format: str, dtype: Any, rows: int = 96, columns: int = 160) -> tuple[Any, Any]:
    """A dense layer whose weight fits the format, and the sparse one."""
    torch.manual_seed(1)
    linear = torch.nn.Linear(columns, rows, device="cuda", dtype=dtype)
    with torch.no_grad():
        if format == "2:4":
            groups = linear.weight.view(rows, -1, 4)
            groups.scatter_(-1, groups.abs().topk(2, dim=-1, largest=False).indices, 0.0)
        elif format.startswith("BSR"):
            blocks = torch.rand(rows // 16, 1, columns // 16, 1, device="cuda") < 0.4
            linear.weight.view(rows // 16, 16, columns // 16, 16).mul_(blocks)
        else:
            linear.weight.mul_(torch.rand_like(linear.weight) < 0.4)
    return linear, SparseLinear.from_linear(linear, format)


def close(found: Any, expected: Any, dtype: Any) -> None:
    scale = float(expected.abs().max())
    tolerance = TOLERANCE[dtype]
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance * max(scale, 1e-6))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("tokens", [1, 7, 16, 33, 130])
def test_forward(format: str, dtype: Any, tokens: int) -> None:
    linear, layer = layers(format, dtype)
    x = torch.randn(tokens, 160, device="cuda", dtype=dtype)
    with torch.no_grad():
        close(layer(x), linear(x), dtype)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_gradients(format: str, dtype: Any) -> None:
    linear, layer = layers(format, dtype)
    x, y = (torch.randn(24, 160, device="cuda", dtype=dtype) for _ in range(2))
    y.copy_(x)
    before = densified()
    for module, tokens in ((linear, x), (layer, y)):
        tokens.requires_grad_()
        module(tokens).square().sum().backward()
    close(y.grad, x.grad, dtype)
    close(layer.bias.grad, linear.bias.grad, dtype)
    where = SparseMatrix(torch.ones_like(layer.values), layer.arrays, format, (96, 160)).to_dense()
    found = SparseMatrix(layer.values.grad, layer.arrays, format, (96, 160)).to_dense()
    close(found, linear.weight.grad * where, dtype)
    grown = sum(densified().values()) - sum(before.values())
    # Wider values run as CSR: only packed weights are made dense.
    assert grown == (2 if format.startswith("2:4") and dtype == torch.float16 else 0)


@pytest.mark.parametrize("format", FORMATS)
def test_compiled_and_captured(format: str) -> None:
    linear, layer = layers(format, torch.float16)
    x = torch.randn(16, 160, device="cuda", dtype=torch.float16)
    with torch.no_grad():
        expected = linear(x)
        close(torch.compile(layer, fullgraph=True)(x), expected, torch.float16)
        layer(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = layer(x)
        x.copy_(torch.randn_like(x))
        y.fill_(float("nan"))
        graph.replay()
        close(y, linear(x), torch.float16)
    torch._dynamo.reset()


def test_moved_layers() -> None:
    linear, layer = layers("CSR", torch.float32)
    x = torch.randn(5, 160, device="cuda")
    for device in ("cuda", "cpu", "cuda"):
        moved, tokens = layer.to(device), x.to(device)
        close(moved(tokens).to("cuda"), linear(x), torch.float32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_products(dtype: Any) -> None:
    weight = torch.randn(70, 90, device="cuda", dtype=dtype)
    weight *= torch.rand_like(weight) < 0.1
    A = SparseMatrix.from_torch(weight)
    X, U, V = (torch.randn(n, 40, device="cuda", dtype=dtype) for n in (90, 70, 90))
    close(spmm(A, X), weight @ X, dtype)
    close(sddmm(A, U, V).to_dense(), weight * (U @ V.t()), dtype)
