"""The layers on the GPU path without a GPU: their kernels run in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from sparsecc.integrations import ops, products  # noqa: E402
from sparsecc.integrations.torch import SparseMatrix, densified  # noqa: E402
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
def test_sampled_products(format: str) -> None:
    weight = dense_weight(format, torch.float32)
    A = SparseMatrix.from_torch(weight, format, "sm_90")
    U, V = (tokens(n, 8, dtype=torch.float32) for n in (8, 12))
    found = A.with_values(ops.sampled(U, V, *A.arguments("matrix"))).to_dense()
    stored = A.with_values(torch.ones_like(A.values)).to_dense()
    torch.testing.assert_close(found, (U @ V.t()) * stored)
