"""A linear layer whose weight is pruned to 2:4: two of each four values stay."""

from __future__ import annotations

import torch

from sparsecc.diagnostics import SparseccError
from sparsecc.integrations.torch import SparseLinear

IN, OUT, TOKENS = 512, 1024, 16


def prune(linear: torch.nn.Linear) -> None:
    """Zero the two smallest of each four weights."""
    with torch.no_grad():
        groups = linear.weight.view(OUT, IN // 4, 4)
        dropped = groups.abs().topk(2, dim=-1, largest=False).indices
        groups.scatter_(-1, dropped, 0.0)


def main() -> None:
    torch.default_generator.manual_seed(1)
    gpu = torch.cuda.is_available()
    device, dtype = ("cuda", torch.float16) if gpu else ("cpu", torch.float32)
    linear = torch.nn.Linear(IN, OUT, device=device, dtype=dtype)
    prune(linear)
    layer = SparseLinear.from_linear(linear, "2:4")
    x = torch.randn(TOKENS, IN, device=device, dtype=dtype)
    with torch.no_grad():
        y, expected = layer(x), linear(x)
    torch.testing.assert_close(y, expected, rtol=1e-2 if gpu else 1e-5, atol=2e-3 if gpu else 1e-5)
    where = torch.cuda.get_device_name() if gpu else "the CPU, there is no GPU"
    print(f"{layer}\non {where}: as the dense layer")
    try:
        SparseLinear.from_linear(torch.nn.Linear(IN, OUT), "2:4")
    except SparseccError as error:
        print(error)


if __name__ == "__main__":
    main()
