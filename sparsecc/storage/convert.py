"""Changing the format of a tensor, on the cheapest path."""

from __future__ import annotations

import numpy as np

from sparsecc.formats import Format
from sparsecc.storage import limits
from sparsecc.storage.conversion_graph import conversion_path
from sparsecc.storage.entries import resolved
from sparsecc.storage.layout import is_nonzero
from sparsecc.storage.tensor import SparseTensor

__all__ = ["conversion_path", "convert"]


def convert(
    tensor: SparseTensor, fmt: str | Format, max_dense_bytes: int | None = None
) -> SparseTensor:
    """The tensor in another format, itself if it is in that format already.

    Explicit zeros stay from sparse to sparse and are dropped from or to formats that store zeros of
    their own accord (dense, blocks, n:m, ELL). Raises FormatError where the format can't hold the
    entries (an over-full n:m group; no value is ever dropped), LimitError beyond
    ``max_dense_bytes`` (1 GiB by default) and where an index does not fit the format's widths."""
    fmt = resolved(fmt, tensor.rank)
    if fmt == tensor.format:
        return tensor
    cells = limits.volume(tensor.shape)
    for step in conversion_path(tensor.format, fmt, _estimated_nnz(tensor), cells):
        tensor = step.edge.run(tensor, step.dst, max_dense_bytes)
    return tensor


def _estimated_nnz(tensor: SparseTensor) -> int:
    """The entries, of a sample where all cells are stored: only the choice of a path depends on
    it."""
    if tensor.parts:
        return sum(len(part.values) for part in tensor.parts)
    if not tensor.format.is_dense:
        return len(tensor.values)
    stride = 1 + len(tensor.values) // 100_000
    return int(np.count_nonzero(is_nonzero(tensor.values[::stride]))) * stride
