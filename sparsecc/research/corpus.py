"""Problems to measure and to choose formats for: built in by name, each with the spec of its sparse tensor.

A problem's split is that of its matrix, so no matrix is both in the part that fits a strategy and in the part that
judges it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, cast
from zlib import crc32

import numpy as np

from sparsecc.diagnostics import UsageError, did_you_mean
from sparsecc.elements import NUMPY
from sparsecc.research import generator
from sparsecc.research.operations import OPERATIONS, Operation, expression_of, extents
from sparsecc.research.pattern import Array, Pattern
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.problem import Problem, Space, Tensor
from sparsecc.statistics import Statistics
from sparsecc.storage.tensor import SparseTensor
from sparsecc.targets import known_target

CORPORA = {
    "cpu": "sparsecc.research.corpora.cpu:problems",
    "gpu": "sparsecc.research.corpora.gpu:problems",
    "calibration-cpu": "sparsecc.research.corpora.calibration:of_a_cpu",
    "calibration-gpu": "sparsecc.research.corpora.calibration:of_a_gpu",
}
HELD_OUT = 30
"""Per cent of the matrices that judge and do not fit."""
SALT = 36205
"""Chosen, before anything was measured, so that families of two and more matrices are on both sides."""


class UnknownCorpus(UsageError):
    text = "there is no corpus {name!r}"


class NoFile(UsageError):
    text = "the matrix of {id} is in the file {file}, which a table does not hold"
    help_text = "load the folder again: sparsecc research run --corpus FOLDER --measure"


@dataclass(frozen=True)
class CorpusProblem:
    """One expression over one sparse tensor (the open one) and dense ones; all extents are known.

    ``pattern`` is the spec of the open tensor, or ``{"file": path}``; ``load`` reads it where it is a file."""

    id: str
    operation: str
    family: str
    expression: str
    target: str
    sizes: Mapping[str, int]
    tensors: Mapping[str, Tensor]
    pattern: Mapping[str, Any]
    load: Callable[[], SparseTensor] | None = field(default=None, compare=False, repr=False)

    @property
    def sparse(self) -> Tensor:
        """The tensor whose format is to be chosen."""
        return next(t for t in self.tensors.values() if t.open)

    @property
    def result(self) -> Tensor:
        return self.tensors[expression_of(self.expression).result.name]

    @property
    def dense_inputs(self) -> tuple[Tensor, ...]:
        """The other operands, in the order of the expression."""
        names = dict.fromkeys(a.name for a in expression_of(self.expression).inputs)
        return tuple(self.tensors[name] for name in names if name != self.sparse.name)

    @property
    def matrix(self) -> str:
        """A name that problems of one matrix and one type share: a recorder makes it once."""
        return generator.digest([dict(self.pattern), self.sparse.dtype, self.sparse.stored])[:16]

    @property
    def held_out(self) -> bool:
        """Whether it judges strategies: by the pattern alone, so types and operations don't matter."""
        return int(generator.digest([SALT, dict(self.pattern)])[:8], 16) % 100 < HELD_OUT

    def make(self) -> SparseTensor:
        """The open tensor as it is stored. Raises what ``generator.tensor`` or the file's reader raises."""
        stored = self.sparse.stored or ""
        if self.load is not None:
            return self.load().astype(NUMPY[self.sparse.dtype]).to(stored)
        if "file" in self.pattern:
            raise NoFile(id=self.id, file=self.pattern["file"])
        return generator.tensor(self.pattern, self.sparse.dtype, stored)

    def entries(self) -> Pattern:
        """Where the entries of the open tensor stand. Raises what ``make`` raises."""
        if self.load is None and "file" not in self.pattern:
            return generator.pattern(self.pattern)
        coords, _ = self.make().to_coords()
        shape = cast("tuple[int, ...]", self.sparse.shape)
        keys = coords[0]
        for extent, coord in zip(shape[1:], coords[1:], strict=True):
            keys = keys * extent + coord
        return Pattern(shape, keys=keys.astype(np.int64, copy=False))

    def inputs(self, seed: int = 0) -> dict[str, Array]:
        """The dense operands, drawn uniformly from [-1, 1)."""
        found: dict[str, Array] = {}
        for tensor in self.dense_inputs:
            rng = np.random.default_rng([seed, crc32(f"{self.id}/{tensor.name}".encode())])
            drawn = rng.random(cast("tuple[int, ...]", tensor.shape), dtype=np.float32) * 2 - 1
            found[tensor.name] = drawn.astype(NUMPY[tensor.dtype])
        return found

    def with_statistics(self, statistics: Statistics) -> CorpusProblem:
        """The same, with what is known of the open tensor."""
        known = replace(self.sparse, statistics=statistics)
        return replace(self, tensors={**self.tensors, known.name: known})

    def problem(
        self,
        space: Space,
        *,
        measure: Callable[[Candidate], float] | None = None,
        calls: float | None = None,
        libraries: Iterable[str] = (),
    ) -> Problem:
        """The problem that strategies get. Its open tensor has statistics if it was given them."""
        return Problem(
            (expression_of(self.expression),), self.tensors, known_target(self.target), space, calls,
            self.sizes, frozenset(libraries), measure,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Plain data, a line of a table's problems."""
        return {
            "id": self.id,
            "operation": self.operation,
            "family": self.family,
            "expression": self.expression,
            "target": self.target,
            "sizes": dict(self.sizes),
            "tensors": {name: _tensor_json(t) for name, t in self.tensors.items()},
            "pattern": dict(self.pattern),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> CorpusProblem:
        """The inverse. Raises KeyError, TypeError, ValueError for what is none."""
        tensors = {name: _tensor(name, t) for name, t in data["tensors"].items()}
        text = {
            key: str(data[key]) for key in ("id", "operation", "family", "expression", "target")
        }
        sizes = {str(index): int(n) for index, n in data["sizes"].items()}
        pattern: dict[str, Any] = dict(data["pattern"])
        return CorpusProblem(**text, sizes=sizes, tensors=tensors, pattern=pattern, load=None)


def _tensor_json(tensor: Tensor) -> dict[str, Any]:
    found: dict[str, Any] = {
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "format": tensor.format,
        "stored": tensor.stored,
    }
    if tensor.statistics is not None:
        found["statistics"] = tensor.statistics.to_json()
    return found


def _tensor(name: str, data: Mapping[str, Any]) -> Tensor:
    known = data.get("statistics")
    return Tensor(
        name, tuple(data["shape"]), data["dtype"], data["format"], data["stored"],
        None if known is None else Statistics.from_json(known),
    )  # fmt: skip


@dataclass(frozen=True)
class Matrix:
    """A pattern of a corpus: its spec, the type of its values, and how it is stored."""

    spec: Mapping[str, Any]
    dtype: str = "f32"
    stored: str = "CSR"

    @property
    def family(self) -> str:
        return str(self.spec["family"])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that the spec says, without making the pattern."""
        full = generator.checked(self.spec)
        if "shape" in full:
            return tuple(full["shape"])
        if "grid" in full:
            total = int(np.prod(full["grid"], dtype=np.int64))
            return (total, total)
        return (full["rows"], full.get("columns", full["rows"]))

    @property
    def title(self) -> str:
        """``iid/512x512/density=0.1``."""
        rest = [
            f"{key}={'x'.join(map(str, cast('Sequence[Any]', value))) if isinstance(value, list) else value}"
            for key, value in self.spec.items()
            if key not in ("family", "rows", "columns", "shape")
        ]
        return "/".join([self.family, "x".join(map(str, self.shape)), "+".join(rest)])


def problem_of(
    operation: Operation,
    shape: tuple[int, ...],
    width: int | None,
    *,
    title: str,
    target: str,
    dtype: str,
    stored: str,
    family: str,
    pattern: Mapping[str, Any],
    load: Callable[[], SparseTensor] | None = None,
) -> CorpusProblem:
    """The problem of an operation on a sparse tensor of a shape."""
    sizes = extents(operation, shape, width)
    expression = expression_of(operation.text)
    tensors: dict[str, Tensor] = {}
    for access in (*expression.inputs, expression.result):
        extent = tuple(sizes[index] for index in access.indices)
        if access.name == operation.sparse:
            tensors[access.name] = Tensor(access.name, extent, dtype, None, stored)
        else:
            fmt = operation.out if access is expression.result else "dense"
            tensors[access.name] = Tensor(access.name, extent, dtype, fmt)
    count = "" if width is None else f"-{width}"
    return CorpusProblem(
        f"{operation.name}{count}/{dtype}/{title}", operation.name, family, operation.text, target, sizes, tensors,
        pattern, load,
    )  # fmt: skip


def of_matrix(matrix: Matrix, operation: str, width: int | None, target: str) -> CorpusProblem:
    """The problem of an operation on a matrix of a corpus."""
    return problem_of(
        OPERATIONS[operation], matrix.shape, width, title=matrix.title, target=target, dtype=matrix.dtype,
        stored=matrix.stored, family=matrix.family, pattern=generator.checked(matrix.spec),
    )  # fmt: skip


def problems(name: str) -> tuple[CorpusProblem, ...]:
    """The problems of a built-in corpus, those of one matrix after each other. Raises UnknownCorpus."""
    if name not in CORPORA:
        raise UnknownCorpus(name=name, help=did_you_mean(name, list(CORPORA)))
    module, _, function = CORPORA[name].partition(":")
    return getattr(import_module(module), function)()


def groups(found: Iterable[CorpusProblem]) -> list[tuple[CorpusProblem, ...]]:
    """Problems by matrix, so that each is made once."""
    by: dict[str, list[CorpusProblem]] = {}
    for problem in found:
        by.setdefault(problem.matrix, []).append(problem)
    return [tuple(group) for group in by.values()]
