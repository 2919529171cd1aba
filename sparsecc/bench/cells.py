"""What is measured: one line a cell. A cell is a sparse matrix, an operation on it, and the rivals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from sparsecc.diagnostics import UsageError

WIDTHS = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
"""Bytes of an element."""

DENSE = ("F.linear", "matmul", "padded to 16")


@dataclass(frozen=True)
class Operation:
    """An operation of the set: what we compile, and which families of rivals can do the same.

    ``weight`` and ``inputs`` are names in ``text``; the first input is the dense operand that is multiplied."""

    name: str
    text: str
    weight: str
    inputs: tuple[str, ...]
    rivals: tuple[str, ...]
    out: str | None = None


LINEAR = Operation("linear", "Y[m,n] = X[m,k] * W[n,k]", "W", ("X",), ("dense", "cuSPARSELt"))
UNSTRUCTURED = Operation("linear", LINEAR.text, "W", ("X",), ("dense",))
BLOCKS = Operation("SpMM", "C[i,j] = A[i,k] * X[k,j]", "A", ("X",), ("dense", "torch BSR"))
SPMM = Operation("SpMM", BLOCKS.text, "A", ("X",), ("dense", "cuSPARSE"))
SPMV = Operation("SpMV", "y[i] = A[i,j] * x[j]", "A", ("x",), ("dense", "cuSPARSE"))
SDDMM = Operation(
    "SDDMM", "C[i,j] = A[i,j] * U[i,k] * V[j,k]", "A", ("U", "V"), ("cuSPARSE", "torch"), out="CSR"
)


@dataclass(frozen=True)
class Cell:
    """One measurement. The sparse matrix is ``rows`` x ``columns``; ``width`` is the other extent of the dense
    operand: tokens of a linear layer, columns of SpMM, the summed extent of SDDMM, 1 for SpMV."""

    group: str
    operation: Operation = field(repr=False)
    rows: int
    columns: int
    width: int
    dtype: str
    format: str
    pattern: str
    """How its values are placed: ``2:4``, ``iid``, ``magnitude``, ``blocks``, ``uniform``, ``rmat``."""
    sparsity: float

    @property
    def name(self) -> str:
        """What ``--only`` is matched with."""
        return (
            f"{self.group}/{self.dtype}/{self.format}/{self.pattern}/{self.sparsity * 100:g}%/"
            f"{self.rows}x{self.columns}/{self.width}"
        )

    @property
    def matrix(self) -> tuple[object, ...]:
        """Cells of one key share their sparse matrix."""
        return (
            self.group,
            self.rows,
            self.columns,
            self.dtype,
            self.format,
            self.pattern,
            self.sparsity,
        )

    @property
    def large(self) -> bool:
        """Whether it is one of the four large shapes of linear layers."""
        return self.rows * self.columns > 4096 * 4096

    @property
    def dense_bytes(self) -> int:
        return self.rows * self.columns * WIDTHS[self.dtype]


LARGE = ((14336, 4096), (4096, 14336), (28672, 8192), (8192, 8192))
SHAPES = ((4096, 4096), *LARGE)
TOKENS = (1, 8, 16, 32, 64, 128, 512, 4096)
SIDE = 16384
COLUMNS = (64, 128, 256, 512)


def _structured() -> Iterator[Cell]:
    for dtype, (rows, columns), tokens in product(("f16", "bf16"), SHAPES, TOKENS):
        yield Cell("2:4", LINEAR, rows, columns, tokens, dtype, "2:4", "2:4", 0.5)


def _unstructured() -> Iterator[Cell]:
    for pattern, sparsity, (rows, columns), tokens in product(
        ("iid", "magnitude"), (0.5, 0.6, 0.7, 0.8), LARGE, (8, 16)
    ):
        yield Cell(
            "unstructured", UNSTRUCTURED, rows, columns, tokens, "f16", "2:4+CSR", pattern, sparsity
        )


def _blocks() -> Iterator[Cell]:
    for block, sparsity, width in product((16, 32, 64), (0.9, 0.95, 0.99), COLUMNS):
        fmt = f"BSR({block},{block})"
        yield Cell("BSR", BLOCKS, SIDE, SIDE, width, "f16", fmt, "blocks", sparsity)


def _spmm() -> Iterator[Cell]:
    for dtype, pattern, sparsity, width in product(
        ("f16", "f32"), ("uniform", "rmat"), (0.9, 0.95, 0.99, 0.999), COLUMNS
    ):
        yield Cell("CSR", SPMM, SIDE, SIDE, width, dtype, "CSR", pattern, sparsity)


def _vectors() -> Iterator[Cell]:
    for dtype, pattern, sparsity in product(
        ("f16", "f32"), ("uniform", "rmat"), (0.9, 0.99, 0.999)
    ):
        yield Cell("SpMV", SPMV, SIDE, SIDE, 1, dtype, "CSR", pattern, sparsity)


def _sampled() -> Iterator[Cell]:
    for dtype, pattern, sparsity, width in product(
        ("f16", "f32"), ("uniform", "rmat"), (0.99, 0.999), (64, 256)
    ):
        yield Cell("SDDMM", SDDMM, SIDE, SIDE, width, dtype, "CSR", pattern, sparsity)


GROUPS = {
    "2:4": "2:4 weights of linear layers",
    "unstructured": "unstructured weights as 2:4 + residual",
    "BSR": "block-sparse matrix times dense",
    "CSR": "CSR matrix times dense",
    "SpMV": "CSR matrix times vector",
    "SDDMM": "sampled dense-dense product",
}
"""The groups of cells in their order, with their titles."""


def all_cells() -> tuple[Cell, ...]:
    """The whole set; cells that share a sparse matrix follow each other."""
    return (
        *_structured(), *_unstructured(), *_blocks(), *_spmm(), *_vectors(), *_sampled(),
    )  # fmt: skip


def quick(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """A tenth of the set: the first and the last width of each group's first and last matrices."""
    kept: list[Cell] = []
    for group in GROUPS:
        own = [cell for cell in cells if cell.group == group]
        matrices = list(dict.fromkeys(cell.matrix for cell in own))
        for matrix in dict.fromkeys((*matrices[:1], *matrices[-1:])):
            shared = [cell for cell in own if cell.matrix == matrix]
            kept += dict.fromkeys((shared[min(1, len(shared) - 1)], shared[-1]))
    return tuple(kept)


class NoSuchCells(UsageError):
    text = "no cell's name has {only!r} in it"
    help_text = "names look like {example}; the groups are {groups}"


def select(cells: Sequence[Cell], only: Sequence[str]) -> tuple[Cell, ...]:
    """The cells that ``--only`` asks for: a text is words that all are parts of the cell's name (a word with a slash:
    somewhere in the name); a group's name means the group. Raises NoSuchCells for a text that fits none."""
    if not only:
        return tuple(cells)
    wanted: set[Cell] = set()
    for text in only:
        found = [cell for cell in cells if _fits(cell, text)]
        if not found:
            raise NoSuchCells(only=text, example=cells[0].name, groups=", ".join(GROUPS))
        wanted.update(found)
    return tuple(cell for cell in cells if cell in wanted)


def _fits(cell: Cell, text: str) -> bool:
    parts = cell.name.split("/")

    def fits(word: str) -> bool:
        if word in GROUPS:
            return word == cell.group
        return word in cell.name if "/" in word else word in parts

    return all(map(fits, text.split()))
