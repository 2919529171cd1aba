"""Weights that are multiplied as dense tiles: rows of dense blocks (BSR), groups of four (2:4), and bitmaps."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from sparsecc.dialects.sparse_tensor.types import format_of
from sparsecc.dialects.tile.weights import PackedWeight, packed_weight

BLOCKS = "blocks"
BITMAP = "bitmap"


@dataclass(frozen=True)
class BlockWeight:
    """A matrix in compressed rows of dense blocks, ``height`` along ``rows`` x ``width`` along ``reduction``."""

    rows: int
    reduction: int
    height: int
    width: int


def block_weight(type_: Attribute) -> BlockWeight | None:
    """How a tensor type reads as rows of blocks; None if it does not."""
    fmt = format_of(type_)
    if fmt is None or len(fmt.levels) != 4:
        return None
    outer, inner, down, across = fmt.exprs
    if [level.name for level in fmt.levels] != ["dense", "compressed", "dense", "dense"]:
        return None
    whole = outer.dim != inner.dim and (outer.mod, inner.mod, down.div, across.div) == (0, 0, 1, 1)
    if not whole or (down.dim, across.dim) != (outer.dim, inner.dim):
        return None
    if (down.mod, across.mod) != (outer.div, inner.div) or not down.mod or not across.mod:
        return None
    return BlockWeight(outer.dim, inner.dim, outer.div, inner.div)


def bitmap_weight(type_: Attribute) -> PackedWeight | None:
    """How a tensor type reads as rows of bits (or a batch of such matrices), as its packer takes it."""
    fmt = format_of(type_)
    if fmt is None or len(fmt.levels) not in (2, 3) or not fmt.is_permutation:
        return None
    if fmt.dim_order != tuple(range(fmt.rank)):
        return None
    if [level.name for level in fmt.levels][-2:] != ["dense", "bitmap"]:
        return None
    batched = len(fmt.levels) == 3
    if batched and fmt.levels[0].name != "dense":
        return None
    rank = len(fmt.levels)
    return PackedWeight(BITMAP, 0 if batched else None, rank - 2, rank - 1)


def dot_weight(type_: Attribute) -> PackedWeight | None:
    """A weight that a dot kernel can read."""
    blocks = block_weight(type_)
    if blocks is not None:
        return PackedWeight(BLOCKS, None, blocks.rows, blocks.reduction)
    if (bits := bitmap_weight(type_)) is not None:
        return bits
    packed = packed_weight(type_)
    return packed if packed is not None and packed.kind == "2:4" else None
