"""Plans on a GPU as calls that can be timed: a generated kernel with the weight as it reads it, or a library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any

from sparsecc import api
from sparsecc.bench.weights import torch_module
from sparsecc.kernel import TileSource
from sparsecc.research.gpu_libraries import LIBRARIES
from sparsecc.research.gpu_operands import (
    DENSE,
    Inputs,
    Product,
    Ready,
    Weight,
    poisoned,
    refused,
    rotation,
)
from sparsecc.runtime import tile_cache
from sparsecc.runtime.schedules import read_schedule
from sparsecc.runtime.tile_kernel import bucket
from sparsecc.selection.candidate import GENERATED, Candidate

Tensor = Any
Kernel = Any
"""A kernel for a GPU: what the CPU's lacks (pack, prepared) is in no common type."""

SUM = "2:4+CSR"


@dataclass
class Staged:
    """A plan whose operands are there and whose kernels are known; ``finish`` needs their machine code."""

    candidate: Candidate
    sources: tuple[TileSource, ...]
    finish: Callable[[], Ready]


def stage(product: Product, weight: Weight, inputs: Inputs, candidate: Candidate) -> Staged:
    """Get a plan as far as it comes without a compiled kernel. Raises SparseccError and torch's errors."""
    (engine,) = candidate.engines
    fmt = dict(candidate.formats).get(product.weight, DENSE)
    if engine == GENERATED:
        return _generated(product, weight, inputs, candidate, fmt)
    library = LIBRARIES[engine]
    return Staged(candidate, (), lambda: library(product, weight, inputs, fmt))


# -- generated kernels ---------------------------------------------------------------------------


def _generated(
    product: Product, weight: Weight, inputs: Inputs, candidate: Candidate, fmt: str
) -> Staged:
    start = perf_counter()
    name = product.weight
    operands = {n: api.Spec(product.shape(n), product.dtype) for n in product.dense}
    stored_as = None if fmt == DENSE else fmt
    operands[name] = api.Spec(product.shape(name), product.dtype, stored_as)
    kernel: Kernel = api.compile(
        product.expression.text, out=product.out, target=product.target, operands=operands
    )
    kernel = kernel.with_options(interpret=product.interpret)  # its own: kernels are shared
    front = perf_counter() - start
    stored, conversion = _stored(product, weight, kernel, fmt)
    out = poisoned(product) if product.out == DENSE else None
    start = perf_counter()
    tensors, variant = kernel.prepared({**inputs, name: stored}, out)
    if candidate.schedules:
        variant = variant.scheduled(dict(candidate.schedules))
    front += perf_counter() - start
    sources = tuple(dict.fromkeys(step.source for step in variant.plan.tiles))

    def finish() -> Ready:
        made = (
            () if product.interpret else [tile_cache.compiled(s, product.target) for s in sources]
        )
        program = kernel.program(variant)
        place = [o.name for o in variant.plan.operands].index(name)
        size = sum(int(a.numel() * a.element_size()) for a in _arrays(tensors[place]))
        turns = [tensors]
        for _ in range(rotation(product, size) - 1):
            turns.append([_clone(t) if n == place else t for n, t in enumerate(tensors)])
        calls = tuple(partial(_run, program, some, out) for some in turns)
        seconds = front + sum(one.milliseconds for one in made) / 1e3
        return Ready(calls, _same, out, size, conversion, seconds)

    return Staged(candidate, sources, finish)


def _run(program: Any, tensors: Sequence[Any], out: Tensor | None) -> Tensor:
    results = program(tensors, out)
    return results[-1].arrays["values"] if out is None else out


def _same(result: Tensor) -> Tensor:
    return torch_module().as_tensor(result)


def _arrays(tensor: Any) -> list[Tensor]:
    torch = torch_module()
    return [torch.as_tensor(array) for array in tensor.arrays.values()]


def _clone(tensor: Any) -> Any:
    """A bound tensor with the same values elsewhere."""
    arrays = {role: array.clone() for role, array in tensor.arrays.items()}
    words = {**tensor.words, **{role: array.data_ptr() for role, array in arrays.items()}}
    return replace(tensor, words=words, arrays=arrays)


def _stored(product: Product, weight: Weight, kernel: Kernel, fmt: str) -> tuple[Any, float]:
    """The weight as a kernel takes it, and the seconds that making it took."""
    slot = kernel.gpu_slots[product.weight]
    if slot.packing is not None:
        steps = _steps(product, kernel) if slot.packing == SUM else None
        # By what is packed: one packing serves all numbers of tokens that choose alike.
        return weight.keep((slot.packing, steps), lambda: _packed(kernel, product, weight, steps))
    if fmt == DENSE:
        return weight.dense, weight.spread
    if fmt in ("CSR", "CSC"):
        rows, seconds = weight.rows() if fmt == "CSR" else weight.keep(fmt, weight.csc)
        layout = next(iter(slot.tables), "")
        if not layout:
            return rows, seconds
        packed, whole = weight.keep((fmt, layout), lambda: kernel.pack({product.weight: rows}))
        return packed, seconds + whole - weight.spread
    if fmt.startswith("BSR("):
        height, width = (int(n) for n in fmt[4:-1].split(","))
        return weight.keep(fmt, lambda: weight.bsr(height, width))
    raise refused(product, GENERATED, fmt)


def _packed(kernel: Kernel, product: Product, weight: Weight, steps: int | None) -> Any:
    if steps is None:
        return kernel.pack({product.weight: weight.dense})
    operands: Any = import_module("sparsecc.backends.triton.operands")
    return operands.pack_sum_2_4(weight.dense, steps=steps)


def _steps(product: Product, kernel: Kernel) -> int:
    """How deep the chunks of a 2:4+CSR weight are in the first schedule for so many tokens."""
    rows, reduction = product.shape(product.weight)
    wanted = kernel.remake(tokens=bucket(product.width), rows=rows, reduction=reduction)
    return int(read_schedule(wanted.sized.schedule)[1]["steps"])
