"""Weights that sparse matrix instructions take: which format is packed, and what its dimensions are."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from sparsecc.dialects.sparse_tensor.types import format_of
from sparsecc.formats import Format, SumFormat, parse_format
from sparsecc.formats.levels.structured import Structured

CSR = parse_format("CSR")
"""What holds the entries that a group of four has no room for."""


@dataclass(frozen=True)
class PackedWeight:
    """A tensor stored in groups of four along ``reduction``; the numbers are dimensions."""

    kind: str
    """``2:4``, or ``2:4+CSR`` with the overflow of full groups in a second part."""
    batch: int | None
    rows: int
    reduction: int


def packed_weight(type_: Attribute) -> PackedWeight | None:
    """How a tensor type reads as a weight of a sparse matrix instruction; None if it does not."""
    fmt = format_of(type_)
    if not isinstance(fmt, SumFormat):
        return None if fmt is None else _two_of_four(fmt, "2:4")
    first, *others = fmt.parts
    found = _two_of_four(first, "2:4+CSR")
    if found is None or [part.with_widths(0, 0) for part in others] != [CSR]:
        return None
    return found if (found.rows, found.reduction) == (0, 1) else None


def _two_of_four(fmt: Format, kind: str) -> PackedWeight | None:
    """A matrix (or a batch of them, outermost) whose levels are rows, groups of four, two of each."""
    if fmt.num_levels not in (3, 4):
        return None
    *lead, group, within = zip(fmt.exprs, fmt.levels, strict=True)
    if not isinstance(within[1], Structured):
        return None
    if (within[1].n, within[1].m) != (2, 4) or within[0].dim != group[0].dim:
        return None
    plain = all(e.div == 1 and e.mod == 0 and level.name == "dense" for e, level in lead)
    if not plain or group[1].name != "dense" or group[0].div != 4:
        return None
    *batch, rows = (e.dim for e, _ in lead)
    return PackedWeight(kind, batch[0] if batch else None, rows, group[0].dim)
