"""The layout ``cuSPARSELt``: a 2:4 weight as that library compresses it, or still dense on the host.

Compression is done on the GPU, so that a weight of the host is checked and kept as ``values`` until it is there.
"""

from __future__ import annotations

from typing import Any

from sparsecc.backends.triton.packing.arrays import Array, arrays_of
from sparsecc.backends.triton.packing.groups import choose, words
from sparsecc.backends.triton.packing.packed import PackedOperand
from sparsecc.backends.triton.packing.two_four import Overfull, WrongShape, blocks, known_dtype
from sparsecc.selection.engines import SPARSELT_MULTIPLE
from sparsecc.storage.tensor import SparseTensor

LAYOUT = "cuSPARSELt"
DTYPES = ("f16", "bf16")


def pack_cusparselt(weight: Any) -> PackedOperand:
    """A weight [N, K] that is 2:4 along k, for cuSPARSELt: a NumPy array, a torch tensor or a SparseTensor.

    Raises NotTwoOfFour with the count and the places of groups with more than two nonzeros, WrongShape where N or K
    are no multiples of 16."""
    if isinstance(weight, SparseTensor):
        weight = weight.to_numpy()
    xp = arrays_of(weight)
    dtype = known_dtype(xp, weight, DTYPES, LAYOUT)
    shape = tuple(int(n) for n in weight.shape)
    if len(shape) != 2 or any(n % SPARSELT_MULTIPLE for n in shape):
        more = f", both multiples of {SPARSELT_MULTIPLE}"
        raise WrongShape(layout=LAYOUT, shape=shape, more=more)
    rows, columns = shape
    bits, overfull = xp.bits(weight), Overfull(shape)
    for start, stop in blocks(xp, rows, columns):
        word = words(xp, xp.contiguous(bits[start:stop]))
        overfull.look(xp, choose(xp, word, 16), 0, start)
    overfull.refuse()
    whole = xp.contiguous(weight)
    if not xp.host and whole.is_cuda and all(shape):
        return PackedOperand(LAYOUT, shape, dtype, {"compressed": compressed(whole)})
    return PackedOperand(LAYOUT, shape, dtype, {"values": whole})


def compressed(weight: Array) -> Array:
    """A dense torch tensor that is 2:4, on the GPU, in the library's own order."""
    import torch

    library: Any = torch
    return library._cslt_compress(weight.detach() + 0)  # no -0.0, which might count as stored
