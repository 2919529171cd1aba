"""Sparse weights as torch tensors: values that can be trained, and index arrays that say where they are.

| format | values | arrays |
|---|---|---|
| ``CSR`` | one an entry | positions, coordinates |
| ``BSR(r,c)`` | ``[blocks, r, c]`` | positions, coordinates (of blocks) |
| ``2:4`` | ``[rows, columns / 2]`` | the place of each in its group of four, one byte |
| ``2:4+CSR`` | one an entry, as in CSR | positions, coordinates of all entries |

Everything here is vectorised torch code that runs where the tensors are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import torch

from sparsecc.diagnostics import FormatError, LimitError, OperandError
from sparsecc.formats import LevelArrays, parse_format
from sparsecc.integrations.arrays import numpy_of
from sparsecc.runtime.torch_indices import trust
from sparsecc.storage.tensor import SparseTensor

Tensor = torch.Tensor
Arrays = Sequence[Tensor]


class NoTorchFormat(FormatError):
    text = "the format {format!r} has no torch layer"
    help_text = "known: CSR, BSR(r,c), 2:4, 2:4+CSR"


class NotTwoOfFour(OperandError):
    text = "{count} of {total} groups of four hold more than two values; the first is row {row}, columns {columns}"
    help_text = (
        "prune the weight to 2:4 first, or use the format '2:4+CSR', which keeps every value"
    )


class NotDivisible(OperandError):
    text = "a weight of {rows} x {columns} can't be stored as {format}: {problem}"
    help_text = "pad the weight, or use CSR"


class BadArrays(OperandError):
    text = "the arrays of a {format} weight of {rows} x {columns} are not valid: {problem}"
    help_text = (
        "they come with a state dict or from the caller; make the weight anew from a dense one"
    )


class TooManyEntries(LimitError):
    text = "a weight with {count} entries needs more than 32-bit positions"


_BLOCKS = re.compile(r"BSR\((\d+),(\d+)\)")


@dataclass(frozen=True)
class Layout:
    """Where a weight's values are: its format and shape. The arrays go beside it."""

    format: str
    rows: int
    columns: int

    def __post_init__(self) -> None:
        block = self.block
        if block is None and self.format not in ("CSR", "2:4", "2:4+CSR"):
            raise NoTorchFormat(format=self.format)
        problem = ""
        if block and (self.rows % block[0] or self.columns % block[1]):
            problem = "its extents are not multiples of the block's"
        elif self.format.startswith("2:4") and self.columns % 4:
            problem = "its columns are not a multiple of 4"
        if problem:
            raise NotDivisible(
                rows=self.rows, columns=self.columns, format=self.format, problem=problem
            )

    @cached_property
    def block(self) -> tuple[int, int] | None:
        """The shape of a block, of block formats."""
        match = _BLOCKS.fullmatch(self.format)
        return (int(match[1]), int(match[2])) if match else None

    @property
    def shape(self) -> tuple[int, int]:
        return (self.rows, self.columns)

    def values_shape(self, arrays: Arrays) -> tuple[int, ...]:
        """The shape of the values that belong to the arrays."""
        if self.format == "2:4":
            return (self.rows, self.columns // 2)
        return (arrays[1].shape[0], *(self.block or ()))

    # -- from and to dense -----------------------------------------------------------------------

    def of_dense(self, dense: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Values and arrays of a dense weight. No value is dropped: raises NotTwoOfFour."""
        dense = dense.detach().contiguous()
        if self.format == "2:4":
            return self._pairs(dense)
        high, wide = self.block or (1, 1)
        blocks = dense.view(self.rows // high, high, self.columns // wide, wide).transpose(1, 2)
        filled = (blocks != 0).flatten(2).any(-1)
        row, column = filled.nonzero(as_tuple=True)
        positions = torch.zeros(len(filled) + 1, dtype=torch.int64, device=dense.device)
        positions[1:] = filled.sum(1).cumsum(0)
        values = blocks[row, column]
        values = values if self.block else values.reshape(-1)
        return values, narrow(positions, column)

    def _pairs(self, dense: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        groups = dense.reshape(self.rows, self.columns // 4, 4)
        filled = groups != 0
        over = filled.sum(-1) > 2
        if bool(over.any()):
            row, group = (int(i) for i in over.nonzero()[0])
            raise NotTwoOfFour(
                count=int(over.sum()), total=over.numel(), row=row, columns=f"{4 * group} to {4 * group + 3}"
            )  # fmt: skip
        # The filled places first, then free ones, of each the lower ones first.
        places = torch.arange(4, device=dense.device)
        order = (places + 4 * (~filled).long()).argsort(-1)[..., :2].sort(-1).values
        values = groups.gather(-1, order).reshape(self.rows, self.columns // 2)
        return values.contiguous(), (order.reshape(self.rows, self.columns // 2).to(torch.uint8),)

    def columns_of_pairs(self, places: Tensor) -> Tensor:
        """The column of each value of a 2:4 weight."""
        groups = torch.arange(self.columns // 4, device=places.device).repeat_interleave(2)
        return places.long() + 4 * groups

    def pairs_as_csr(self, arrays: Arrays) -> tuple[Tensor, Tensor]:
        """The positions and coordinates of a 2:4 weight's values as those of a CSR weight."""
        half = self.columns // 2
        positions = torch.arange(self.rows + 1, device=arrays[0].device) * half
        return narrow(positions, self.columns_of_pairs(arrays[0]).reshape(-1))

    def to_dense(self, values: Tensor, arrays: Arrays) -> Tensor:
        """The dense weight."""
        dense = values.new_zeros(self.shape)
        if self.format == "2:4":
            return dense.scatter_(1, self.columns_of_pairs(arrays[0]), values)
        rows, columns = entry_rows(arrays[0]), arrays[1].long()
        if self.block is None:
            return dense.index_put_((rows, columns), values)
        high, wide = self.block
        blocks = dense.view(self.rows // high, high, self.columns // wide, wide)
        blocks.transpose(1, 2).index_put_((rows, columns), values)
        return dense

    def at_entries(self, dense: Tensor, arrays: Arrays) -> Tensor:
        """The values of a dense matrix at the places of the weight's."""
        if self.format == "2:4":
            return dense.gather(1, self.columns_of_pairs(arrays[0]))
        assert self.block is None
        return dense[entry_rows(arrays[0]), arrays[1].long()]

    # -- transposed ------------------------------------------------------------------------------

    def transposed(self, arrays: Arrays) -> tuple[Layout, tuple[Tensor, ...], Tensor]:
        """The layout and arrays of the transpose of a CSR or BSR weight, and which of the values (blocks) is which."""
        rows, columns = entry_rows(arrays[0]), arrays[1]
        order = columns.argsort(stable=True)
        high, wide = self.block or (1, 1)
        counts = torch.bincount(columns, minlength=self.columns // wide)
        positions = torch.zeros(len(counts) + 1, dtype=torch.int32, device=columns.device)
        positions[1:] = counts.cumsum(0)
        fmt = self.format if self.block is None else f"BSR({wide},{high})"
        turned = Layout(fmt, self.columns, self.rows)
        return turned, (positions, rows[order].to(torch.int32)), order

    def transposed_values(self, values: Tensor, order: Tensor) -> Tensor:
        moved = values[order]
        return moved if self.block is None else moved.transpose(1, 2).contiguous()

    # -- checking, and as ours --------------------------------------------------------------------

    def check(self, arrays: Arrays) -> None:
        """Raise BadArrays for arrays that would make a kernel read outside of them."""
        problem = self._problem(arrays)
        if problem:
            raise BadArrays(
                format=self.format, rows=self.rows, columns=self.columns, problem=problem
            )

    def _problem(self, arrays: Arrays) -> str:
        if self.format == "2:4":
            (places,) = arrays
            if places.dtype != torch.uint8 or places.shape != (self.rows, self.columns // 2):
                return f"places of {places.dtype}, {tuple(places.shape)}"
            pairs = places.view(self.rows, -1, 2).long()
            if bool((pairs[..., 0] >= pairs[..., 1]).any() or (pairs > 3).any()):
                return "the two places of a group do not rise, or go beyond 3"
            return ""
        positions, coordinates = arrays
        high, wide = self.block or (1, 1)
        if positions.dtype != torch.int32 or coordinates.dtype != torch.int32:
            return f"indices of {positions.dtype} and {coordinates.dtype}, not int32"
        if positions.shape != (self.rows // high + 1,) or coordinates.dim() != 1:
            return f"positions of shape {tuple(positions.shape)}"
        steps = positions.diff()
        if (
            int(positions[0]) != 0
            or bool((steps < 0).any())
            or int(positions[-1]) != len(coordinates)
        ):
            return "positions do not rise from 0 to the number of coordinates"
        if len(coordinates):
            if int(coordinates.min()) < 0 or int(coordinates.max()) >= self.columns // wide:
                return "a coordinate is outside of its dimension"
            key = entry_rows(positions) * (self.columns // wide) + coordinates
            if bool((key.diff() <= 0).any()):
                return "coordinates of a row do not rise"
        return ""

    def as_tensor(self, values: Tensor, arrays: Arrays) -> SparseTensor:
        """A CSR or BSR weight on the host as a tensor of ours, sharing memory."""
        fmt = parse_format("CSR" if self.block is None else self.format, 2)
        stored = LevelArrays(numpy_of(arrays[0]), numpy_of(arrays[1]))
        rest = tuple(LevelArrays() for _ in fmt.levels[2:])
        flat = numpy_of(values.detach().contiguous().reshape(-1))
        return SparseTensor(self.shape, fmt, (LevelArrays(), stored, *rest), flat)

    def as_sparse(self, values: Tensor, arrays: Arrays) -> Tensor:
        """A CSR or BSR weight as torch's own sparse tensor, sharing memory; its arrays have been checked."""
        library: Any = torch  # lists of anything, say its types
        make = library.sparse_csr_tensor if self.block is None else library.sparse_bsr_tensor
        return trust(make(arrays[0], arrays[1], values, size=self.shape))


@lru_cache(maxsize=4096)
def known_layout(format: str, rows: int, columns: int) -> Layout:
    """A layout, checked once."""
    return Layout(format, rows, columns)


def entry_rows(positions: Tensor) -> Tensor:
    """The row of each entry."""
    rows = torch.arange(len(positions) - 1, device=positions.device)
    return rows.repeat_interleave(positions.diff().long())


def entries_of_blocks(matrix: Any) -> Tensor:
    """The nonzeros of torch's BSR tensor as its COO tensor (which it can't do itself)."""
    block, row, column = matrix.values().nonzero(as_tuple=True)
    high, wide = matrix.values().shape[1:]
    rows = entry_rows(matrix.crow_indices())[block] * high + row
    columns = matrix.col_indices()[block].long() * wide + column
    found = matrix.values()[block, row, column]
    library: Any = torch
    return library.sparse_coo_tensor(torch.stack((rows, columns)), found, size=matrix.shape)


def narrow(positions: Tensor, coordinates: Tensor) -> tuple[Tensor, Tensor]:
    """32-bit indices. Raises TooManyEntries."""
    if len(coordinates) >= 2**31:
        raise TooManyEntries(count=len(coordinates))
    return positions.to(torch.int32), coordinates.to(torch.int32)
