"""The layers and products for torch, on the CPU: values, derivatives, compilation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from sparsecc.integrations import ops  # noqa: E402
from sparsecc.integrations.torch import SparseMatrix, sddmm, spmm  # noqa: E402
from tests.unit.integrations.layers_for_tests import (  # noqa: E402
    FORMATS,
    dense_weight,
    layer_of,
    tokens,
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shape", [(12,), (5, 12), (2, 3, 12), (0, 12)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_forward(format: str, shape: tuple[int, ...], bias: bool) -> None:
    linear, layer = layer_of(format, bias=bias)
    x = tokens(*shape)
    y = layer(x)
    assert y.shape == linear(x).shape
    torch.testing.assert_close(y, linear(x))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_types(format: str, dtype: Any) -> None:
    linear, layer = layer_of(format, dtype)
    x, y = (tokens(5, 12, dtype=dtype).requires_grad_() for _ in range(2))
    found, expected = layer(x), linear(y)
    assert found.dtype == dtype
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5}[dtype]
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    found.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize("format", FORMATS)
def test_only_nonzeros_are_stored(format: str) -> None:
    weight = dense_weight(format)
    matrix = SparseMatrix.from_torch(weight, format)
    assert torch.equal(matrix.to_dense(), weight)
    stored = {"CSR": 96, "2:4+CSR": 96, "2:4": 48, "BSR(4,2)": 80}
    assert matrix.values.numel() == (
        int((weight != 0).sum()) if "CSR" in format else stored[format]
    )


@pytest.mark.parametrize("format", FORMATS)
def test_derivatives(format: str) -> None:
    _, layer = layer_of(format)

    def run(x: Any, values: Any, bias: Any) -> Any:
        return torch.func.functional_call(layer, {"values": values, "bias": bias}, (x,))

    inputs = (tokens(3, 12).requires_grad_(), layer.values, layer.bias)
    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


@pytest.mark.parametrize("format", FORMATS)
def test_gradients_are_those_of_the_dense_layer(format: str) -> None:
    linear, layer = layer_of(format, torch.float32, activation="relu")
    x, y = (tokens(6, 12, dtype=torch.float32).requires_grad_() for _ in range(2))
    torch.relu(linear(x)).square().sum().backward()
    layer(y).square().sum().backward()
    torch.testing.assert_close(y.grad, x.grad)
    torch.testing.assert_close(layer.bias.grad, linear.bias.grad)
    at_entries = SparseMatrix(layer.values.grad, layer.arrays, format, (8, 12)).to_dense()
    stored = SparseMatrix(torch.ones_like(layer.values), layer.arrays, format, (8, 12)).to_dense()
    torch.testing.assert_close(at_entries, linear.weight.grad * stored)


@pytest.mark.parametrize("format", FORMATS)
def test_a_step_is_seen(format: str) -> None:
    _, layer = layer_of(format)
    x = tokens(4, 12)
    for _ in range(3):
        layer.values.grad = torch.ones_like(layer.values)
        torch.optim.SGD([layer.values], lr=0.1).step()
        torch.testing.assert_close(layer(x), x @ layer.weight.to_dense().t() + layer.bias)


@pytest.mark.parametrize("format", FORMATS)
def test_compiled_whole(format: str) -> None:
    linear, layer = layer_of(format, torch.float32, activation="gelu")
    model = torch.nn.Sequential(layer, torch.nn.Linear(8, 2))
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    x = tokens(5, 12, dtype=torch.float32)
    torch.testing.assert_close(compiled(x), model[1](torch.nn.functional.gelu(linear(x))))
    compiled(x).sum().backward()
    found = layer.values.grad.clone()
    layer.values.grad = None
    model(x).sum().backward()
    torch.testing.assert_close(found, layer.values.grad)
    torch._dynamo.reset()


@pytest.mark.parametrize("format", FORMATS)
def test_operators_keep_torchs_rules(format: str) -> None:
    weight = SparseMatrix.from_torch(dense_weight(format), format)
    x, g = tokens(3, 12).requires_grad_(), tokens(3, 8).requires_grad_()
    weight.values.requires_grad_()
    torch.library.opcheck(ops.spmm, (x, None, *weight.arguments("linear")))
    torch.library.opcheck(ops.spmm_transposed, (g, *weight.arguments("linear")))
    torch.library.opcheck(ops.sampled, (g, x, *weight.arguments("linear")))


# -- matrices ------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_spmm_and_sddmm(format: str) -> None:
    weight = dense_weight(format)
    A = SparseMatrix.from_torch(weight, format)
    X, U, V = tokens(12, 5), tokens(8, 3), tokens(12, 3)
    torch.testing.assert_close(spmm(A, X), weight @ X)
    torch.testing.assert_close(spmm(A, X[:, 0]), weight @ X[:, 0])
    torch.testing.assert_close(spmm(A, X.t().contiguous().t()), weight @ X)
    found = sddmm(A, U, V)
    assert (found.format, found.shape) == (format, (8, 12))
    torch.testing.assert_close(found.to_dense(), weight * (U @ V.t()))

    def both(values: Any, U: Any, V: Any, X: Any) -> Any:
        return spmm(sddmm(A.with_values(values), U, V), X)

    inputs = [t.clone().requires_grad_() for t in (A.values, U, V, X)]
    assert torch.autograd.gradcheck(both, inputs)


def test_matrices_of_any_torch_layout() -> None:
    weight = dense_weight("CSR")
    for given in (weight, weight.to_sparse_csr(), weight.to_sparse_coo(), weight.to_sparse_csc()):
        for format in ("CSR", "2:4+CSR", "BSR(2,2)"):
            assert torch.equal(SparseMatrix.from_torch(given, format).to_dense(), weight)
    assert torch.equal(SparseMatrix.from_torch(weight.to_sparse_bsr((4, 4))).to_dense(), weight)


def test_empty_matrix() -> None:
    A = SparseMatrix.from_torch(torch.zeros(4, 6))
    assert torch.equal(spmm(A, tokens(6, 2, dtype=torch.float32)), torch.zeros(4, 2))


def test_the_example_of_the_documents() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "gpu.md"
    text = page.read_text(encoding="utf-8").split("## In PyTorch")[1]
    code = text.split("```python\n")[1].split("```")[0]
    linear, x = torch.nn.Linear(6, 6), torch.randn(6, 6)
    adjacency = (torch.rand(6, 6) < 0.5).float()
    names: dict[str, Any] = {
        "linear": linear, "x": x, "adjacency": adjacency, "q": torch.randn(6, 3), "k": torch.randn(6, 3),
    }  # fmt: skip
    exec(compile(code, str(page), "exec"), names)
    torch.testing.assert_close(names["y"], linear(x))
    weights = torch.sigmoid(names["q"] @ names["k"].t()) * adjacency
    torch.testing.assert_close(names["h"], weights @ x)
