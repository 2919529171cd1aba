"""Weights, layers and tokens for the tests of the torch layers."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from sparsecc.integrations.torch import SparseLinear  # noqa: E402

FORMATS = ("CSR", "BSR(4,2)", "2:4", "2:4+CSR")


def dense_weight(format: str, dtype: Any = None, rows: int = 8, columns: int = 12) -> Any:
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    if format == "2:4":
        groups = weight.view(rows, -1, 4)
        kept = groups.abs().topk(2, dim=-1).indices
        weight = (groups * torch.zeros_like(groups).scatter_(-1, kept, 1.0)).view(rows, columns)
        weight[0, 3:] = 0  # groups of less than two
    elif format.startswith("BSR"):
        weight[:4, 2:6] = 0
    else:
        weight *= torch.rand(weight.shape, generator=generator) < 0.5
    return weight.to(dtype or torch.float64)


def layer_of(format: str, dtype: Any = None, bias: bool = True, **more: Any) -> tuple[Any, Any]:
    linear = torch.nn.Linear(12, 8, bias=bias, dtype=dtype or torch.float64)
    with torch.no_grad():
        linear.weight.copy_(dense_weight(format, dtype))
    return linear, SparseLinear.from_linear(linear, format, **more)


def tokens(*shape: int, dtype: Any = None) -> Any:
    generator = torch.Generator().manual_seed(2)
    return torch.randn(*shape, generator=generator, dtype=dtype or torch.float64)
