"""A cell with its operands: what candidates compute, and what their results are checked against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sparsecc.bench.cells import Cell
from sparsecc.bench.timing import Call, copies
from sparsecc.bench.weights import Matrix

Tensor = Any

NORM = {"f16": 1e-3, "bf16": 8e-3, "f32": 1e-5, "f64": 1e-13}
"""The accepted error by type: norm of the difference over norm of the reference. Rounding the result once
gives 2.1e-4 for f16 and 1.7e-3 for bf16."""
WORST = {"f16": 2e-2, "bf16": 1.6e-1, "f32": 1e-3, "f64": 1e-11}
"""The same for the worst element, over the root mean square of the reference: one wrong element shows."""


RIVALS = 10.0
"""So many times our error is accepted of a rival; the tables say so where it is more than ours may be."""


@dataclass(frozen=True)
class Candidate:
    """Something that computes a cell's result: ``calls`` take turns, each on a copy of the sparse matrix."""

    name: str
    calls: tuple[Call, ...]
    result: Callable[[Any], Tensor]
    """From what a call gives to what the reference is like."""
    nbytes: int
    """Bytes that a call has to read and write."""
    out: Tensor | None = None
    """Where calls write, if the candidate has such an argument: NaN before it is checked."""


@dataclass(frozen=True)
class Errors:
    """How far a result is from the reference."""

    norm: float
    worst: float

    def accepted(self, dtype: str, slack: float = 1.0) -> bool:
        # NaN is not less than anything.
        return self.norm < slack * NORM[dtype] and self.worst < slack * WORST[dtype]


class Problem:
    """The operands of a cell and its reference result (fp32, for f32 cells fp64)."""

    def __init__(self, cell: Cell, matrix: Matrix) -> None:
        self.cell, self.matrix = cell, matrix
        self.torch, self.device = matrix.torch, matrix.device
        self.inputs: dict[str, Tensor] = {
            name: matrix.random(*shape)
            for name, shape in zip(cell.operation.inputs, self._shapes(), strict=True)
        }

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        cell = self.cell
        return {
            "linear": ((cell.width, cell.columns),),
            "SpMM": ((cell.columns, cell.width),),
            "SpMV": ((cell.columns,),),
            "SDDMM": ((cell.rows, cell.width), (cell.columns, cell.width)),
        }[cell.operation.name]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a dense result."""
        cell = self.cell
        return {
            "linear": (cell.width, cell.rows),
            "SpMM": (cell.rows, cell.width),
            "SpMV": (cell.rows,),
            "SDDMM": (self.matrix.nnz,),
        }[cell.operation.name]

    @property
    def x(self) -> Tensor:
        """The first dense operand."""
        return self.inputs[self.cell.operation.inputs[0]]

    @property
    def turns(self) -> int:
        """How many copies of the matrix take turns at most: products that computing bounds need no cold one."""
        return 1 if self.cell.width > 512 else 256

    def rotation(self, size: int) -> int:
        return min(self.turns, copies(size))

    def dense_bytes(self) -> int:
        """Bytes of the dense operands and the result."""
        elements = sum(x.numel() for x in self.inputs.values())
        for extent in (result := self.shape):
            assert extent >= 0, result
        total = 1
        for extent in result:
            total *= extent
        return (elements + total) * self.x.element_size()

    def poisoned(self, *shape: int) -> Tensor:
        """Room for a result, of NaN."""
        return self.torch.full(
            shape or self.shape, float("nan"), device=self.device, dtype=self.x.dtype
        )

    @cached_property
    def reference(self) -> Tensor:
        """The result in wider arithmetic, by torch's dense product."""
        torch = self.torch
        wide = torch.float32 if self.x.element_size() == 2 else torch.float64
        matrix = self.matrix.dense
        if self.cell.operation.name == "SDDMM":
            return self._sampled(wide)
        if self.cell.operation.name == "linear":
            return self.x.to(wide) @ matrix.to(wide).t()
        return matrix.to(wide) @ self.x.to(wide)

    def _sampled(self, wide: Any) -> Tensor:
        first, second = (tensor.to(wide) for tensor in self.inputs.values())
        rows, columns = self.matrix.rows_of_entries, self.matrix.csr.col_indices().long()
        parts = [
            (first[r] * second[c]).sum(-1)
            for r, c in zip(rows.split(1 << 20), columns.split(1 << 20), strict=True)
        ]
        return self.torch.cat(parts) * self.matrix.csr.values().to(wide)

    def errors(self, candidate: Candidate) -> Errors:
        """Run a candidate once, on poisoned memory where it writes into ours, and compare."""
        if candidate.out is not None:
            candidate.out.fill_(float("nan"))
        found = candidate.result(candidate.calls[0]())
        reference = self.reference
        if tuple(found.shape) != tuple(reference.shape):
            return Errors(float("nan"), float("nan"))
        difference = found.to(reference.dtype) - reference
        norm = self.torch.linalg.vector_norm
        scale = max(float(norm(reference)), 1e-30)
        root_mean_square = scale / max(reference.numel(), 1) ** 0.5
        return Errors(
            float(norm(difference)) / scale, float(difference.abs().max()) / root_mean_square
        )
