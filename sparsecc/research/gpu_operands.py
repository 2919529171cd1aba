"""A problem on a GPU: the weight on the device and what it is converted to, what plans give, and the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from sparsecc.backends.triton.packing.packed import PackedOperand
from sparsecc.bench.timing import Call, copies
from sparsecc.bench.weights import torch_dtype, torch_module
from sparsecc.diagnostics import UnsupportedError
from sparsecc.selection.problem import Expression

Tensor = Any

DENSE = "dense"
PIECE = 1 << 20
"""Entries whose products the reference makes at a time."""
COMPUTED = 512
"""Products with more columns are bound by computing: their weights need not be cold."""


class NotMeasured(UnsupportedError):
    text = "{engine} does not compute {expression} with {name} in {format}"
    help_text = "give the product in an order that the library takes"


@dataclass(frozen=True)
class Product:
    """A problem as it is run on a device: a product of a matrix whose format is chosen, the weight, and of dense
    operands. ``sizes``: of all indices; ``out``: the format of the result."""

    expression: Expression
    weight: str
    sizes: Mapping[str, int]
    dtype: str
    device: str
    target: str
    out: str = DENSE
    interpret: bool = False
    """Whether kernels run in Triton's interpreter."""

    @property
    def dense(self) -> tuple[str, ...]:
        """The names of the dense operands."""
        return tuple(a.name for a in self.expression.inputs if a.name != self.weight)

    def indices(self, name: str) -> tuple[str, ...]:
        every = (*self.expression.inputs, self.expression.result)
        return next(a.indices for a in every if a.name == name)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.sizes[i] for i in self.indices(name))

    @property
    def result(self) -> str:
        return self.expression.result.name

    @property
    def sampled(self) -> bool:
        """Whether the result has the weight's places."""
        return self.expression.result.indices == self.indices(self.weight)

    @property
    def summed(self) -> str:
        """The index that is summed."""
        kept = self.expression.result.indices
        return next(i for i in self.expression.indices if i not in kept)

    @property
    def width(self) -> int:
        """Columns of the dense operand, 1 for a vector; of a sampled product the terms of its sums."""
        if self.sampled:
            return self.sizes[self.summed]
        kept = [i for i in self.indices(self.dense[0]) if i != self.summed]
        return self.sizes[kept[0]] if kept else 1

    @property
    def turned(self) -> bool:
        """Whether the result has the weight's rows as its columns, as that of a linear layer."""
        return self.expression.result.indices[0] not in self.indices(self.weight)


@dataclass
class Weight:
    """A weight on a device and what it was converted to: for each, once, with the seconds that it took.

    ``stored``: how it is given, ``dense`` or ``CSR``."""

    dense: Tensor
    dtype: str
    stored: str = DENSE
    kept: dict[object, tuple[Any, float]] = field(default_factory=dict[object, tuple[Any, float]])

    def keep(self, key: object, make: Callable[[], Any]) -> tuple[Any, float]:
        """What was made of the dense tensor, with the seconds from the stored one."""
        if key not in self.kept:
            before = self.spread
            self.kept[key] = self._timed(make)
            self.kept[key] = self.kept[key][0], before + self.kept[key][1]
        return self.kept[key]

    def _timed(self, make: Callable[[], Any]) -> tuple[Any, float]:
        self.synchronize()
        start = perf_counter()
        made = make()
        self.synchronize()
        return made, perf_counter() - start

    @property
    def spread(self) -> float:
        """Seconds of making the dense tensor of the stored one."""
        if self.stored == DENSE:
            return 0.0
        if DENSE not in self.kept:
            rows = self.csr()
            self.kept["CSR"] = rows, 0.0
            _, seconds = self._timed(lambda: scattered(rows))
            self.kept[DENSE] = self.dense, seconds
        return self.kept[DENSE][1]

    def synchronize(self) -> None:
        if self.dense.is_cuda:
            torch_module().cuda.synchronize()

    def rows(self) -> tuple[Tensor, float]:
        """torch's CSR tensor, with 32-bit indices, and the seconds from the stored one."""
        if self.stored == "CSR":
            _ = self.spread
        return self.keep("CSR", self.csr)

    def csr(self) -> Tensor:
        made = self.dense.to_sparse_csr()
        return torch_module().sparse_csr_tensor(
            made.crow_indices().int(), made.col_indices().int(), made.values(), size=made.shape
        )

    def csc(self) -> Tensor:
        made = self.dense.to_sparse_csc()
        return torch_module().sparse_csc_tensor(
            made.ccol_indices().int(), made.row_indices().int(), made.values(), size=made.shape
        )

    def bsr(self, rows: int, columns: int) -> Any:
        """torch's BSR tensor, with 32-bit indices; where blocks reach beyond the edge, which torch does not take, its
        arrays as a packed operand."""
        torch, shape = torch_module(), tuple(int(n) for n in self.dense.shape)
        down, right = -shape[0] % rows, -shape[1] % columns
        whole = self.dense
        if down or right:
            whole = torch.nn.functional.pad(whole, (0, right, 0, down))
        made = whole.to_sparse_bsr((rows, columns))
        positions, places = made.crow_indices().int(), made.col_indices().int()
        if not (down or right):
            return torch.sparse_bsr_tensor(positions, places, made.values(), size=shape)
        values = made.values().contiguous()
        arrays = {"positions1": positions, "coordinates1": places, "values": values}
        return PackedOperand(f"BSR({rows},{columns})", shape, self.dtype, arrays)


def entries_of(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The row and the column of each entry of a CSR tensor."""
    torch = torch_module()
    counts = rows.crow_indices().diff().long()
    places = torch.arange(len(counts), device=rows.device)
    return torch.repeat_interleave(places, counts), rows.col_indices().long()


def scattered(rows: Tensor) -> Tensor:
    """A CSR tensor as a dense one."""
    made = torch_module().zeros(*rows.shape, dtype=rows.dtype, device=rows.device)
    made[entries_of(rows)] = rows.values()
    return made


Inputs = Mapping[str, Tensor]
"""The dense operands by name."""


@dataclass
class Ready:
    """A plan that can be timed. ``calls`` take turns, each on a copy of the weight; ``result`` makes of what a call
    gives what the reference is like; ``out`` is written by calls that take one. Bytes are the weight's."""

    calls: Sequence[Call]
    result: Callable[[Any], Tensor]
    out: Tensor | None
    nbytes: int
    conversion: float
    compile: float


def refused(product: Product, engine: str, fmt: str) -> NotMeasured:
    text, name = product.expression.text, product.weight
    return NotMeasured(engine=engine, expression=text, name=name, format=fmt)


def columns_first(product: Product, inputs: Inputs, engine: str, fmt: str) -> Tensor:
    """The dense operand with the summed index first. Raises NotMeasured for what is no product of two tensors."""
    if product.sampled:
        raise refused(product, engine, fmt)
    x = inputs[product.dense[0]]
    return x if product.indices(product.dense[0])[0] == product.summed else x.t()


def summed_last(product: Product, weight: Tensor) -> Tensor:
    """A dense weight with the summed index last."""
    return weight if product.indices(product.weight)[1] == product.summed else weight.t()


def rotation(product: Product, size: int) -> int:
    """How many copies of a weight of so many bytes take turns."""
    return copies(size) if product.width <= COMPUTED else 1


def nbytes(*tensors: Tensor) -> int:
    return sum(int(t.numel() * t.element_size()) for t in tensors)


def poisoned(product: Product) -> Tensor:
    """Room for the result, of NaN."""
    return torch_module().full(
        product.shape(product.result), float("nan"), device=product.device,
        dtype=torch_dtype(product.dtype),
    )  # fmt: skip


def reference(product: Product, weight: Weight, inputs: Inputs) -> Tensor:
    """The result in wider arithmetic, by torch's dense product; of a sampled product its values, row by row."""
    torch = torch_module()
    wide = torch.float32 if weight.dense.element_size() == 2 else torch.float64
    if product.sampled:
        return _sampled(product, weight, inputs, wide)
    rows = summed_last(product, weight.dense).to(wide)
    right = columns_first(product, inputs, "torch", DENSE).to(wide)
    return right.t() @ rows.t() if product.turned else rows @ right


def _sampled(product: Product, weight: Weight, inputs: Inputs, wide: Any) -> Tensor:
    torch = torch_module()
    csr, _ = weight.rows()
    at = dict(zip(product.indices(product.weight), entries_of(csr), strict=True))
    parts: list[Tensor] = []
    for first in range(0, len(csr.values()), PIECE):
        piece = slice(first, first + PIECE)
        terms: Any = 1.0
        for name in product.dense:
            kept, _ = indices = product.indices(name)
            tensor = inputs[name].to(wide)
            if kept == product.summed:
                tensor, kept = tensor.t(), indices[1]
            terms = terms * tensor[at[kept][piece]]
        parts.append(terms.sum(-1) * csr.values()[piece].to(wide))
    return torch.cat(parts)
