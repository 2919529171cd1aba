"""Changing the format of a tensor."""

from __future__ import annotations

from sparsecc.formats import Format
from sparsecc.storage.entries import resolved
from sparsecc.storage.pack import pack, pack_dense, unpack
from sparsecc.storage.tensor import SparseTensor


def convert(
    tensor: SparseTensor, fmt: str | Format, max_dense_bytes: int | None = None
) -> SparseTensor:
    """The tensor in another format, itself if it is in that format already."""
    fmt = resolved(fmt, tensor.rank)
    if fmt == tensor.format:
        return tensor
    if tensor.format.is_dense:
        return pack_dense(tensor.to_numpy(), fmt, max_dense_bytes)
    if fmt.is_dense:
        return pack_dense(tensor.to_numpy(), fmt, max_dense_bytes)
    coords, values = unpack(tensor)
    return pack(coords, values, tensor.shape, fmt, max_dense_bytes=max_dense_bytes)
