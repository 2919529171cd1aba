"""One attention layer of a graph network: scores on the edges, softmax over each node's edges, a weighted sum.

The scores are a dense product sampled at the edges (SDDMM), the sum is a sparse product (SpMM), and so are the
softmax's denominators: nothing of the size nodes x nodes is made."""

from __future__ import annotations

import torch

from sparsecc.integrations.torch import SparseMatrix, sddmm, spmm

NODES, EDGES, WIDTH = 400, 3000, 32


def attention(
    graph: SparseMatrix, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    """Each node's mean of its neighbours' values, weighted by the softmax of its scores."""
    scores = sddmm(graph, q, k).values * WIDTH**-0.5
    # One shift for all rows leaves the softmax as it is.
    weights = graph.with_values(torch.exp(scores - scores.max().detach()))
    ones = torch.ones(graph.shape[1], 1, device=v.device, dtype=v.dtype)
    return spmm(weights, v) / spmm(weights, ones)


def dense_attention(
    mask: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    """The same with every pair of nodes."""
    scores = (q @ k.t() * WIDTH**-0.5).masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=1) @ v


def main() -> None:
    torch.default_generator.manual_seed(1)
    gpu = torch.cuda.is_available()
    device = "cuda" if gpu else "cpu"
    ends = torch.randint(NODES, (2, EDGES), device=device)
    mask = torch.eye(NODES, dtype=torch.bool, device=device)  # each node sees itself
    mask[ends[0], ends[1]] = True
    graph = SparseMatrix.from_torch(mask.float())

    q, k, v = (torch.randn(NODES, WIDTH, device=device, requires_grad=True) for _ in range(3))
    found, expected = attention(graph, q, k, v), dense_attention(mask, q, k, v)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    target = torch.randn_like(found)
    ours = torch.autograd.grad((found * target).sum(), (q, k, v))
    dense = torch.autograd.grad((expected * target).sum(), (q, k, v))
    torch.testing.assert_close(ours, dense, rtol=1e-3, atol=1e-4)

    where = torch.cuda.get_device_name() if gpu else "the CPU, there is no GPU"
    print(f"{graph}\non {where}: results and gradients as with all {NODES * NODES} pairs")


if __name__ == "__main__":
    main()
