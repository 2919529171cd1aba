"""Sparse matrices for the cells, made on the device from a seed, and the forms that rivals want of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any
from zlib import crc32

from sparsecc.bench.cells import Cell
from sparsecc.bench.timing import copies

Tensor = Any

TORCH_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}

QUADRANTS = (0.57, 0.19, 0.19, 0.05)
"""R-MAT's shares, those of the Graph 500 benchmark."""


def torch_module() -> Any:
    """torch, loaded when asked."""
    return import_module("torch")


def torch_dtype(name: str) -> Any:
    return getattr(torch_module(), TORCH_NAMES[name])


class Matrix:
    """A cell's sparse matrix as a dense tensor, and what has been made of it; cells share it."""

    def __init__(self, cell: Cell, device: str) -> None:
        self.cell, self.device = cell, device
        self.torch = torch_module()
        self.generator = self.torch.Generator(device=device)
        self.generator.manual_seed(crc32(repr(cell.matrix).encode()))
        self.dense: Tensor = PATTERNS[cell.pattern](self)
        self.kept: dict[object, Any] = {}

    def keep(self, key: object, make: Callable[[], Any]) -> Any:
        """Something made of the matrix: once."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def random(self, *shape: int, dtype: str | None = None) -> Tensor:
        """Normally distributed numbers of the cell's type."""
        return self.torch.randn(
            *shape, generator=self.generator, device=self.device,
            dtype=torch_dtype(dtype or self.cell.dtype),
        )  # fmt: skip

    def uniform(self, *shape: int) -> Tensor:
        return self.torch.rand(*shape, generator=self.generator, device=self.device)

    def dense_copies(self, most: int) -> list[Tensor]:
        """As many dense copies as keep each cold, at most ``most``."""
        count = min(most, copies(self.cell.dense_bytes))
        made: list[Tensor] = self.keep("dense", lambda: [self.dense])
        made += [self.dense.clone() for _ in range(count - len(made))]
        return made[:count]

    @property
    def csr(self) -> Tensor:
        """torch's CSR tensor, with 32-bit indices."""
        return self.keep("csr", lambda: _narrow(self.dense.to_sparse_csr()))

    @property
    def rows_of_entries(self) -> Tensor:
        """The row of each entry of the CSR tensor."""

        def make() -> Tensor:
            counts = self.csr.crow_indices().diff().long()
            return self.torch.repeat_interleave(
                self.torch.arange(self.cell.rows, device=self.device), counts
            )

        return self.keep("rows", make)

    @property
    def bsr(self) -> Tensor:
        """torch's BSR tensor, with 32-bit indices."""
        block = block_of(self.cell)

        def make() -> Tensor:
            made = self.dense.to_sparse_bsr((block, block))
            return self.torch.sparse_bsr_tensor(
                made.crow_indices().int(), made.col_indices().int(), made.values(),
                size=made.shape,
            )  # fmt: skip

        return self.keep("bsr", make)

    @property
    def nnz(self) -> int:
        return self.keep("nnz", lambda: int(self.torch.count_nonzero(self.dense)))


def block_of(cell: Cell) -> int:
    """The side of the blocks of ``BSR(16,16)``."""
    return int(cell.format.partition("(")[2].partition(",")[0])


def _narrow(made: Tensor) -> Tensor:
    torch = torch_module()
    return torch.sparse_csr_tensor(
        made.crow_indices().int(), made.col_indices().int(), made.values(), size=made.shape
    )


def _structured(matrix: Matrix) -> Tensor:
    """The two largest of each four."""
    cell = matrix.cell
    groups = matrix.random(cell.rows, cell.columns // 4, 4)
    kept = groups.abs().topk(2, dim=-1).indices
    mask = matrix.torch.zeros_like(groups, dtype=matrix.torch.bool).scatter_(-1, kept, True)
    return groups.masked_fill_(~mask, 0).view(cell.rows, cell.columns)


def _iid(matrix: Matrix) -> Tensor:
    """Each value stays with the same probability."""
    cell = matrix.cell
    dense = matrix.random(cell.rows, cell.columns)
    for part in dense.split(2048):
        part.masked_fill_(matrix.uniform(*part.shape) < cell.sparsity, 0)
    return dense


def _magnitude(matrix: Matrix) -> Tensor:
    """Rows and columns of different scales, pruned by one threshold for all."""
    cell = matrix.cell
    scales = (matrix.random(cell.rows, 1, dtype="f32") * 0.3).exp()
    scales = scales * (matrix.random(1, cell.columns, dtype="f32") * 0.3).exp()
    dense = matrix.random(cell.rows, cell.columns, dtype="f32") * scales
    sample = dense.flatten()[:: max(1, dense.numel() // 2_000_000)].abs().sort().values
    threshold = sample[int(len(sample) * cell.sparsity)]
    return dense.masked_fill_(dense.abs() < threshold, 0).to(torch_dtype(cell.dtype))


def _blocks(matrix: Matrix) -> Tensor:
    """Whole blocks stay with the same probability."""
    cell, block = matrix.cell, block_of(matrix.cell)
    rows, columns = cell.rows // block, cell.columns // block
    dense = matrix.random(rows, block, columns, block)
    empty = matrix.uniform(rows, 1, columns, 1) < cell.sparsity
    return dense.masked_fill_(empty, 0).view(cell.rows, cell.columns)


def _rmat(matrix: Matrix) -> Tensor:
    """Entries by recursive quadrants: a few rows and columns hold most of them.

    Repeated entries are dropped and drawn anew, eight times at most: dense corners fill up."""
    torch, cell = matrix.torch, matrix.cell
    bits = cell.rows.bit_length() - 1
    wanted = round(cell.rows * cell.columns * (1 - cell.sparsity))
    limits = torch.tensor(QUADRANTS, device=matrix.device).cumsum(0)[:3]
    mask = torch.zeros(cell.rows * cell.columns, dtype=torch.bool, device=matrix.device)
    for _ in range(8):
        missing = wanted - int(mask.sum())
        if missing <= wanted // 100:
            break
        draws = max(1024, missing * 5 // 4)
        row = torch.zeros(draws, dtype=torch.int64, device=matrix.device)
        column = torch.zeros_like(row)
        for _ in range(bits):
            quadrant = torch.bucketize(matrix.uniform(draws), limits)
            row = row * 2 + (quadrant >> 1)
            column = column * 2 + (quadrant & 1)
        mask[row * cell.columns + column] = True
    dense = matrix.random(cell.rows, cell.columns)
    return dense.masked_fill_(~mask.view(cell.rows, cell.columns), 0)


PATTERNS: dict[str, Callable[[Matrix], Tensor]] = {
    "2:4": _structured,
    "iid": _iid,
    "uniform": _iid,
    "magnitude": _magnitude,
    "blocks": _blocks,
    "rmat": _rmat,
}
