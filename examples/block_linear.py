"""A network with a block-sparse layer, trained: only the blocks that are stored have gradients."""

from __future__ import annotations

import torch

from sparsecc.integrations.torch import SparseLinear

IN, OUT, BLOCK, TOKENS = 256, 512, 32, 64


def main() -> None:
    torch.default_generator.manual_seed(1)
    gpu = torch.cuda.is_available()
    device, dtype = ("cuda", torch.float16) if gpu else ("cpu", torch.float32)
    tolerance = 1e-2 if gpu else 1e-4
    dense = torch.nn.Linear(IN, OUT, device=device, dtype=dtype)
    kept = torch.rand(OUT // BLOCK, IN // BLOCK, device=device) < 0.25
    mask = kept.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
    with torch.no_grad():
        dense.weight.mul_(mask)
    layer = SparseLinear.from_linear(dense, f"BSR({BLOCK},{BLOCK})", activation="relu")

    x = torch.randn(TOKENS, IN, device=device, dtype=dtype)
    y, expected = layer(x), torch.relu(dense(x))
    torch.testing.assert_close(y, expected, rtol=tolerance, atol=tolerance)

    for result in (y, expected):
        torch.autograd.backward(result.square().sum() / TOKENS)
    assert layer.values.grad is not None and dense.weight.grad is not None
    blocks = dense.weight.grad.view(OUT // BLOCK, BLOCK, IN // BLOCK, BLOCK).transpose(1, 2)
    torch.testing.assert_close(layer.values.grad, blocks[kept], rtol=tolerance, atol=tolerance)

    where = torch.cuda.get_device_name() if gpu else "the CPU, there is no GPU"
    print(f"{layer}\n{int(kept.sum())} of {kept.numel()} blocks stored, on {where}")
    print("result and gradients as those of the dense layer")


if __name__ == "__main__":
    main()
