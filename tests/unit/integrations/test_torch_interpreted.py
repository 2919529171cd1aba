"""The layers on the GPU path without a GPU: their kernels run in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from sparsecc.integrations import products  # noqa: E402
from sparsecc.integrations.torch import SparseMatrix, densified, sddmm, spmm  # noqa: E402
from tests.unit.integrations.layers_for_tests import dense_weight, layer_of, tokens  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Kernels for sm_90, run in the interpreter; gives the texts that were compiled."""
    seen: list[str] = []
    compiled = products.compiled

    def interpret(text: str, *rest: Any) -> Any:
        kernel = compiled(text, *rest)
        assert "@triton.jit" in kernel.source
        seen.append(text)
        return kernel.with_options(interpret=True)

    monkeypatch.setattr(products, "compiled", interpret)
    return seen


# 2:4 kernels place values in registers themselves, which no interpreter follows; wider values run as CSR.
@pytest.mark.parametrize("format", ["CSR", "2:4", "2:4+CSR"])
@pytest.mark.parametrize("bias", [True, False])
def test_layers(format: str, bias: bool, interpreted: list[str]) -> None:
    linear, layer = layer_of(format, torch.float32, bias=bias, target="sm_90")
    x, y = (tokens(5, 12, dtype=torch.float32).requires_grad_() for _ in range(2))
    before = densified()
    found, expected = layer(x), linear(y)
    torch.testing.assert_close(found, expected)
    found.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    stored = SparseMatrix(torch.ones_like(layer.values), layer.arrays, format, (8, 12)).to_dense()
    at_entries = SparseMatrix(layer.values.grad, layer.arrays, format, (8, 12)).to_dense()
    torch.testing.assert_close(at_entries, linear.weight.grad * stored)
    product, sampled = products.PRODUCT["linear"], products.SAMPLED["linear"]
    assert sorted(interpreted) == sorted([product, product, sampled])
    assert densified() == before


@pytest.mark.parametrize("format", ["CSR", "BSR(4,2)"])
def test_products(format: str) -> None:
    weight = dense_weight(format, torch.float32)
    A = SparseMatrix.from_torch(weight, format, "sm_90")
    X, U, V = (tokens(n, 8, dtype=torch.float32).requires_grad_() for n in (12, 8, 12))
    values = A.values.clone().requires_grad_()
    weights = A.with_values(values)
    torch.testing.assert_close(spmm(weights, X), weight @ X)
    scores = sddmm(weights, U, V)
    torch.testing.assert_close(scores.to_dense(), weight * (U @ V.t()))
    found = torch.autograd.grad(spmm(scores, X).square().sum(), (values, U, V, X))
    dense = weight.clone().requires_grad_()
    whole = ((dense * (U @ V.t())) @ X).square().sum()
    expected = torch.autograd.grad(whole, (dense, U, V, X))
    stored = A.with_values(torch.ones_like(values)).to_dense()
    at_entries = A.with_values(found[0]).to_dense()
    close = {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(at_entries, expected[0] * stored, **close)
    torch.testing.assert_close(found[1:], expected[1:], **close)
