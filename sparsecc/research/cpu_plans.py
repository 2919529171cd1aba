"""Plans on a CPU as calls that can be timed: operands in the plan's formats, a generated kernel or a library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from math import prod
from time import thread_time_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc import driver
from sparsecc.diagnostics import SparseccError
from sparsecc.elements import NUMPY, name_of
from sparsecc.runtime.compiled_kernel import Kernel, actual_format
from sparsecc.selection.candidate import GENERATED, Candidate
from sparsecc.selection.problem import Expression, Problem
from sparsecc.storage.ingest import asarray
from sparsecc.storage.tensor import SparseTensor

Array = npt.NDArray[Any]
Call = Callable[[], Any]

PIECE = 1 << 22
"""Products of the reference that are made at a time."""
MOVED = 1 << 25
"""Bytes of open tensors that are copied to other addresses; of larger ones all addresses are alike."""
QUICK = 0.05
"""A conversion that takes fewer seconds is done again: the first one loads what it needs."""


class WrongResult(SparseccError):
    text = "wrong: error {norm:.1e} (norm), {worst:.1e} (worst)"


NORM = {4: 1e-5, 8: 1e-13}
"""The accepted error by bytes of an element: norm of the difference over norm of the reference."""
WORST = {4: 1e-3, 8: 1e-11}
"""The same for the worst element, over the root mean square of the reference."""


@dataclass
class Ready:
    """A plan that can be timed: ``call`` gives a dense array, or a SparseTensor; ``elsewhere`` the same call with its
    result and its open tensors at other addresses. Bytes are those of the open tensors in the plan's formats; seconds
    are of conversion and of compilation."""

    call: Call
    elsewhere: Callable[[], Call]
    nbytes: int
    conversion: float
    compile: float


@dataclass
class Plans:
    """The plans of a problem on the operands of a call. ``operands``: a SparseTensor as it is stored for each tensor
    that is open, dense arrays for the others."""

    problem: Problem
    operands: Mapping[str, Any]
    converted: dict[tuple[str, str], tuple[SparseTensor, float]] = field(
        default_factory=dict[tuple[str, str], tuple[SparseTensor, float]]
    )
    """By name and format, with the seconds that it took."""

    @property
    def expression(self) -> Expression:
        (found,) = self.problem.expressions
        return found

    def ready(self, candidate: Candidate) -> Ready:
        """A plan with its operands converted and its kernel compiled. Raises SparseccError."""
        formats = dict(candidate.formats)
        given: dict[str, Any] = {}
        conversion = 0.0
        for name, operand in self.operands.items():
            if name not in formats:
                given[name] = operand
                continue
            given[name], seconds = self.convert(name, formats[name])
            conversion += seconds
        kernel, seconds = self._compiled(given, candidate)
        size = sum(int(given[name].nbytes) for name in formats)

        def elsewhere() -> Call:
            moved = {name: deepcopy(given[name]) for name in formats if size <= MOVED}
            return partial(kernel.call, {**given, **moved}, self.room())

        call = partial(kernel.call, given, self.room())
        return Ready(call, elsewhere, size, conversion, seconds)

    def convert(self, name: str, fmt: str) -> tuple[SparseTensor, float]:
        """An operand in a format, and the seconds of this thread that making it takes."""
        if (name, fmt) not in self.converted:
            stored: SparseTensor = self.operands[name]
            if actual_format(stored).with_widths(0, 0) == stored.to(fmt).format.with_widths(0, 0):
                self.converted[name, fmt] = stored, 0.0
            else:
                seconds = 0.0
                for _ in range(3):
                    start = thread_time_ns()
                    made = stored.to(fmt)
                    seconds = (thread_time_ns() - start) / 1e9
                    self.converted[name, fmt] = made, seconds
                    if seconds > QUICK:
                        break
        return self.converted[name, fmt]

    def room(self) -> Array | None:
        """Memory for a dense result, of NaN; None: the result is sparse, or what it is stored as is inferred."""
        result = self.problem.tensors[self.expression.result.name]
        if result.format not in ("dense", None) or self._follows():
            return None
        extents = self.problem.extents
        shape = [extents[index] for index in self.expression.result.indices]
        return np.full(tuple(n for n in shape if n is not None), np.nan, NUMPY[result.dtype])

    def _follows(self) -> bool:
        """Whether the result has the indices of an open operand, so that it is stored as that is."""
        indices = self.expression.result.indices
        return any(a.indices == indices and a.name in self._open for a in self.expression.inputs)

    @property
    def _open(self) -> set[str]:
        return {name for name, tensor in self.problem.tensors.items() if tensor.open}

    def _compiled(self, given: Mapping[str, Any], candidate: Candidate) -> tuple[Kernel, float]:
        """The kernel of a plan, with the seconds that compiling it took."""
        specs: list[tuple[str, driver.OperandSpec]] = []
        for name, operand in given.items():
            tensor = asarray(operand)
            dtype = name_of(tensor.dtype) or str(tensor.dtype)
            fmt = str(actual_format(tensor))
            specs.append((name, driver.OperandSpec((None,) * tensor.rank, dtype, fmt)))
        result = self.problem.tensors[self.expression.result.name]
        engines = candidate.engines if set(candidate.engines) != {GENERATED} else ()
        request = driver.Request(
            "expression", self.expression.text, tuple(specs), result.format, target="cpu",
            engines=engines,
        )  # fmt: skip
        kernel = driver.compile_request(request)
        # A kernel that problems share says how long it took when it was made.
        return kernel, sum(kernel.times.values()) / 1e3

    # -- the reference -------------------------------------------------------------------------

    def reference(self) -> tuple[tuple[Array, ...], Array]:
        """The result of a product by NumPy and SciPy: coordinates (of a result that is stored as an operand; else
        empty) and values, in f64."""
        sparse = self._sparse_operand()
        tensor: SparseTensor = self.operands[sparse]
        if tensor.rank == 2 and len(self.operands) == 2:
            return (), self._product(sparse, tensor)
        coordinates, values = tensor.to_coords()
        at = dict(zip(self._indices(sparse), coordinates, strict=True))
        result = self.expression.result.indices
        inner = [i for a in self.expression.inputs for i in a.indices if i not in at]
        width = [i for i in dict.fromkeys(inner)]
        extents = {i: int(n) for i, n in self.problem.extents.items() if n is not None}
        terms = prod(extents[i] for i in width)
        pieces: list[Array] = []
        kept = [i for i in result if i in at]
        step = max(1, PIECE // max(1, terms))
        sums = _Sums(self, kept, [i for i in width if i in result], extents, at)
        for first in range(0, len(values), step):
            part = slice(first, first + step)
            product = self._terms(sparse, at, values, part, width)
            if self._follows():
                pieces.append(product.reshape(len(product), -1).sum(axis=1))
            else:
                sums.add(part, product)
        if self._follows():
            found = np.concatenate(pieces) if pieces else np.zeros(0)
            return coordinates, found
        return (), sums.ordered(result)

    def _product(self, name: str, tensor: SparseTensor) -> Array:
        """A product of a matrix and a dense operand."""
        (other,) = (a for a in self.expression.inputs if a.name != name)
        result, rows = self.expression.result.indices, self._indices(name)
        (summed,) = (i for i in rows if i not in result)
        matrix: Any = tensor.to("CSR").to_scipy().astype(np.float64)
        array = np.asarray(self.operands[other.name]).astype(np.float64)
        left = matrix if rows[1] == summed else matrix.T
        found = np.asarray(left @ (array if other.indices[0] == summed else array.T))
        return found if result[0] in rows else found.T

    def _sparse_operand(self) -> str:
        inputs = [a.name for a in self.expression.inputs]
        return next(n for n in inputs if isinstance(self.operands[n], SparseTensor))

    def _indices(self, name: str) -> tuple[str, ...]:
        return next(a.indices for a in self.expression.inputs if a.name == name)

    def _terms(
        self, sparse: str, at: Mapping[str, Array], values: Array, part: slice, width: list[str]
    ) -> Array:
        """For some entries: the products of each with the dense operands, an axis for each index of ``width``."""
        shape = (-1, *(1 for _ in width))
        found = values[part].astype(np.float64).reshape(shape)
        for access in self.expression.inputs:
            if access.name == sparse:
                continue
            # The indices of entries first, then those that dense operands have alone, in their order.
            order = sorted(
                access.indices, key=lambda i: (i not in at, width.index(i) if i in width else 0)
            )
            array = np.asarray(self.operands[access.name]).astype(np.float64, copy=False)
            array = array.transpose([access.indices.index(i) for i in order])
            gathered = array[tuple(at[i][part] for i in order if i in at)]
            own = [i for i in order if i not in at]
            axes = [array.shape[order.index(i)] if i in own else 1 for i in width]
            found = found * gathered.reshape((-1 if len(own) < len(order) else 1, *axes))
        return found


class _Sums:
    """Sums of terms over entries: rows for the indices of entries that are kept, columns for the others."""

    def __init__(
        self, plans: Plans, kept: list[str], columns: list[str], extents: Mapping[str, int],
        at: Mapping[str, Array],
    ) -> None:  # fmt: skip
        self.kept, self.columns = kept, columns
        self.shape = [extents[i] for i in kept], [extents[i] for i in columns]
        key: Any = 0
        for index in kept:
            key = key * extents[index] + at[index]
        self.keys: Array = np.asarray(key)
        self.found = np.zeros((prod(self.shape[0]), prod(self.shape[1])))
        self.sparse: Any = import_module("scipy.sparse")

    def add(self, part: slice, terms: Array) -> None:
        keys, count = self.keys[part], len(terms)
        rows, places = np.unique(keys, return_inverse=True)
        pick = self.sparse.csr_array(
            (np.ones(count), (places, np.arange(count))), shape=(len(rows), count)
        )
        self.found[rows] += pick @ terms.reshape(count, -1)

    def ordered(self, result: tuple[str, ...]) -> Array:
        names = [*self.kept, *self.columns]
        whole = self.found.reshape([*self.shape[0], *self.shape[1]])
        return whole.transpose([names.index(i) for i in result])


def check(ready: Ready, wanted: tuple[tuple[Array, ...], Array]) -> float:
    """Run a plan once and compare; the seconds of that call. Raises WrongResult."""
    coordinates, reference = wanted
    start = thread_time_ns()
    found: Any = ready.call()
    seconds = (thread_time_ns() - start) / 1e9
    if coordinates:
        values = _at(found, coordinates)
    else:
        values = np.asarray(found.to_numpy() if isinstance(found, SparseTensor) else found)
    if values.shape != reference.shape:
        raise WrongResult(norm=float("nan"), worst=float("nan"))
    difference = values.astype(np.float64) - reference
    scale = max(float(np.linalg.norm(reference)), 1e-300)
    norm = float(np.linalg.norm(difference)) / scale
    worst = float(np.max(np.abs(difference), initial=0.0)) * max(reference.size, 1) ** 0.5 / scale
    size = values.dtype.itemsize
    if not (norm < NORM[size] and worst < WORST[size]):  # NaN is not less than anything
        raise WrongResult(norm=norm, worst=worst)
    return seconds


def _at(found: Any, coordinates: tuple[Array, ...]) -> Array:
    """The values at places in row-major order; NaN for all where there are entries that are not zero elsewhere, or
    where one is missing."""
    if not isinstance(found, SparseTensor):
        return np.asarray(found)[coordinates]
    places, values = found.to_coords()
    keys, wanted = (np.ravel_multi_index(each, found.shape) for each in (places, coordinates))
    at = np.searchsorted(keys, wanted)
    there = len(keys) >= len(wanted) and np.array_equal(keys[np.minimum(at, len(keys) - 1)], wanted)
    if not there or np.count_nonzero(values) > np.count_nonzero(values[at]):
        return np.full(len(wanted), np.nan, values.dtype)
    return values[at]
