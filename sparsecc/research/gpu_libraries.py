"""Plans that are a library's: torch's dense products, its CSR tensors, and cuSPARSELt."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from sparsecc.bench.weights import torch_module
from sparsecc.research.gpu_operands import (
    Inputs,
    Product,
    Ready,
    Weight,
    columns_first,
    nbytes,
    poisoned,
    refused,
    rotation,
    summed_last,
)

Tensor = Any


def _cublas(product: Product, weight: Weight, inputs: Inputs, fmt: str) -> Ready:
    """``torch.matmul`` into an array that is there."""
    right = columns_first(product, inputs, "cublas", fmt)
    torch, out = torch_module(), poisoned(product)
    turns = [weight.dense]
    turns += [weight.dense.clone() for _ in range(rotation(product, nbytes(weight.dense)) - 1)]
    rows = [summed_last(product, w) for w in turns]
    if product.turned:
        calls = tuple(partial(torch.matmul, right.t(), w.t(), out=out) for w in rows)
    else:
        calls = tuple(partial(torch.matmul, w, right, out=out) for w in rows)
    return Ready(calls, torch.as_tensor, out, nbytes(weight.dense), weight.spread, 0.0)


def _cusparse(product: Product, weight: Weight, inputs: Inputs, fmt: str) -> Ready:
    """torch's CSR tensors."""
    torch, right = torch_module(), columns_first(product, inputs, "cusparse", fmt)
    if fmt != "CSR" or product.indices(product.weight)[1] != product.summed:
        raise refused(product, "cusparse", fmt)
    first, conversion = weight.rows()
    size = nbytes(first.values(), first.col_indices(), first.crow_indices())
    turns = [first, *(first.clone() for _ in range(rotation(product, size) - 1))]
    calls = tuple(partial(torch.matmul, w, right) for w in turns)
    return Ready(calls, _turn if product.turned else torch.as_tensor, None, size, conversion, 0.0)


def _cusparselt(product: Product, weight: Weight, inputs: Inputs, fmt: str) -> Ready:
    """cuSPARSELt by the algorithm that its own search finds, through torch's public functions."""
    torch, right = torch_module(), columns_first(product, inputs, "cusparselt", fmt)
    if fmt != "2:4" or product.indices(product.weight)[1] != product.summed:
        raise refused(product, "cusparselt", fmt)
    first, conversion = weight.keep("cusparselt", lambda: torch._cslt_compress(weight.dense))
    turns = [first, *(first.clone() for _ in range(rotation(product, nbytes(first)) - 1))]
    width = product.width
    if width % 8:  # it takes multiples of 8 only
        shape = (-(-width // 8) * 8, right.shape[0])
        wide = torch.zeros(*shape, device=right.device, dtype=right.dtype)
        wide[:width] = right.t().reshape(width, -1)
        right = wide.t()
    start = perf_counter()
    found = int(torch._cslt_sparse_mm_search(first, right))
    searched = perf_counter() - start
    calls = tuple(partial(torch._cslt_sparse_mm, w, right, alg_id=found) for w in turns)
    shape = product.shape(product.result)

    def result(y: Tensor) -> Tensor:
        kept = y[:, :width]
        return (kept.t() if product.turned else kept).reshape(shape)

    return Ready(calls, result, None, nbytes(first), conversion, searched)


def _turn(result: Tensor) -> Tensor:
    return result.t()


LIBRARIES: dict[str, Callable[[Product, Weight, Inputs, str], Ready]] = {
    "cublas": _cublas,
    "cusparse": _cusparse,
    "cusparselt": _cusparselt,
}
"""Engines that are libraries, by the names that plans use."""
