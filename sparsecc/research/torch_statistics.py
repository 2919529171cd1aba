"""Statistics of a dense torch tensor, counted where it is: the numbers of ``SparseTensor.statistics()``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from sparsecc.statistics import BlockFill, GroupFit, Lengths, Statistics
from sparsecc.storage.tile_bits import GROUPS, WIDTHS

Tensor = Any

BLOCKS = tuple((rows, columns) for rows, widths in WIDTHS.items() for columns in widths)
PIECE = 1 << 26
"""Cells whose coordinates are listed at a time."""


def statistics_of(
    dense: Tensor,
    dtype: str,
    blocks: Sequence[tuple[int, int]] = BLOCKS,
    groups: Sequence[tuple[int, int]] = GROUPS,
) -> Statistics:
    """Exact statistics of a matrix that is a dense tensor, NaN and infinities counted as entries.

    ``dtype``: our name of its elements. What is counted stays on the tensor's device."""
    torch = import_module("torch")
    mask = dense != 0
    rows, columns = (int(n) for n in mask.shape)
    by_row, by_column = mask.sum(1), mask.sum(0)
    nnz = int(by_row.sum())
    slices = (_lengths(torch, by_row), _lengths(torch, by_column))
    below, above, diagonals, distance = _band(torch, mask, nnz)
    return Statistics(
        shape=(rows, columns), dtype=dtype, nnz=nnz, exact=True, slices=slices,
        prefixes=(slices[0].used, nnz),
        blocks=tuple(_block(torch, mask, r, c, nnz) for r, c in blocks),
        groups=tuple(_group(torch, mask, n, m) for n, m in groups),
        below=below, above=above, diagonals=diagonals, distance=distance,
        symmetry=_symmetry(torch, dense, mask),
    )  # fmt: skip


def _lengths(torch: Any, counts: Tensor) -> Lengths:
    extent = int(counts.shape[0])
    if not extent:
        return Lengths(0, 0, 0, 0.0, 0.0, ())
    wide = counts.double()
    largest = int(counts.max())
    # The number of binary digits says which bin a length is in.
    digits = torch.zeros_like(counts)
    for power in range(largest.bit_length()):
        digits += counts >= 1 << power
    bins = torch.bincount(digits, minlength=1).tolist()
    return Lengths(
        extent=extent, used=int((counts > 0).sum()), largest=largest, mean=float(wide.mean()),
        deviation=float(wide.std(correction=0)), bins=tuple(int(n) for n in bins),
        smallest=int(counts.min()),
    )  # fmt: skip


def _padded(torch: Any, mask: Tensor, rows: int, columns: int) -> Tensor:
    """The mask with so many rows and columns more that both are multiples."""
    down, right = -mask.shape[0] % rows, -mask.shape[1] % columns
    return torch.nn.functional.pad(mask, (0, right, 0, down)) if down or right else mask


def _block(torch: Any, mask: Tensor, rows: int, columns: int, nnz: int) -> BlockFill:
    whole = _padded(torch, mask, rows, columns)
    down, right = whole.shape[0] // rows, whole.shape[1] // columns
    # One axis at a time: a reduction over two that are not neighbours is slow.
    held = whole.view(down, rows, right * columns).any(1).view(down, right, columns).any(2)
    count = int(held.sum())
    return BlockFill(rows, columns, count, nnz / (count * rows * columns) if count else 0.0)


def _group(torch: Any, mask: Tensor, n: int, m: int) -> GroupFit:
    whole = _padded(torch, mask, 1, m)
    held = whole.view(whole.shape[0], -1, m).sum(2, dtype=torch.int32)
    count = held.numel()
    fitting = int((held <= n).sum()) / count if count else 1.0
    return GroupFit(n, m, fitting, int((held - n).clamp_(min=0).sum()))


def _pieces(mask: Tensor) -> Iterator[tuple[int, Tensor]]:
    step = max(1, PIECE // max(1, mask.shape[1]))
    for start in range(0, mask.shape[0], step):
        yield start, mask[start : start + step]


def _band(torch: Any, mask: Tensor, nnz: int) -> tuple[int, int, int, float]:
    """How far entries are below and above the diagonal, on how many diagonals, and how far they are on average."""
    rows, columns = mask.shape
    seen = torch.zeros(rows + columns, dtype=torch.bool, device=mask.device)
    total = 0
    for start, piece in _pieces(mask):
        row, column = piece.nonzero(as_tuple=True)
        offset = column - row - start
        total += int(offset.abs().sum())
        seen[offset + rows] = True
    places = (seen.nonzero().flatten() - rows).tolist()
    if not places:
        return 0, 0, 0, 0.0
    return max(0, -int(places[0])), max(0, int(places[-1])), len(places), total / nnz


def _symmetry(torch: Any, dense: Tensor, mask: Tensor) -> str:
    if mask.shape[0] != mask.shape[1] or not torch.equal(mask, mask.t()):
        return "none"
    if torch.equal(dense, dense.t()):
        return "symmetric"
    return "skew-symmetric" if torch.equal(dense, -dense.t()) else "pattern"
