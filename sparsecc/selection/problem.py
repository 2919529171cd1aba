"""A problem: expressions, what is known of their tensors, the target, how often it will run.

A strategy gets one and ranks plans for it::

    class Fewest:
        name = "fewest-bytes"

        def rank(self, problem):
            return sorted((problem.predict(c) for c in problem.candidates), key=lambda r: r.terms["bytes"])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from sparsecc.selection.candidate import Candidate, Ranked, Refusal
from sparsecc.statistics import Statistics
from sparsecc.targets import Target


@dataclass(frozen=True)
class Access:
    """A tensor and its indices, as in ``A[i,k]``."""

    name: str
    indices: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}[{','.join(self.indices)}]"


@dataclass(frozen=True)
class Expression:
    """One statement of a program. ``product``: it is the sum of one product of its inputs and nothing else, so that a
    library may do it."""

    result: Access
    inputs: tuple[Access, ...]
    product: bool
    text: str
    """As a person reads it."""

    @property
    def indices(self) -> tuple[str, ...]:
        """All of them: those of the result, then those that are summed."""
        found = [*self.result.indices, *(i for a in self.inputs for i in a.indices)]
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Tensor:
    """A tensor of a problem. ``format``: what its type says; None: it is to be chosen. ``stored``: how the data that
    will be given is stored, from which a chosen format is converted; None: not known, or it is made here."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str
    format: str | None
    stored: str | None = None
    statistics: Statistics | None = None

    @property
    def open(self) -> bool:
        return self.format is None


class Space(Protocol):
    """The legal plans of a target, and what they cost: ``selection.spaces`` has one for each backend."""

    def candidates(self, problem: Problem) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...]]: ...

    def predict(self, problem: Problem, candidate: Candidate) -> Ranked: ...


@dataclass(frozen=True)
class Problem:
    """What is to be decided. ``calls``: over how many calls conversions of operands are spread; None: they are not
    counted (weights that are prepared ahead). ``libraries``: engines that are there."""

    expressions: tuple[Expression, ...]
    tensors: Mapping[str, Tensor]
    target: Target
    space: Space
    calls: float | None = None
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Extents of indices that no shape says: ``{"m": 16}``."""
    libraries: frozenset[str] = frozenset()
    measure: Callable[[Candidate], float] | None = None
    """Seconds of a call of a plan, where plans can be measured; raises SparseccError where one can't run."""
    inferred: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None
    """The formats of results by name that follow from formats of operands by name; None: results count as dense."""
    temporaries: tuple[str, ...] = ()
    """Results that are open and stay inside the program: a plan may name their formats."""
    module: Any = None
    """The IR that it was read from, where there is one."""

    @cached_property
    def _legal(self) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...]]:
        return self.space.candidates(self)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All legal plans."""
        return self._legal[0]

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """The plans that one might think of and that are not legal."""
        return self._legal[1]

    def formats_of(self, formats: Mapping[str, str]) -> Mapping[str, str]:
        """The formats that a plan names, and those of the results that follow from them."""
        return formats if self.inferred is None else {**self.inferred(formats), **formats}

    @cached_property
    def sparse_results(self) -> Mapping[str, str]:
        """The formats of results where every open operand is stored sparsely."""
        return {} if self.inferred is None else self.inferred({})

    def predict(self, candidate: Candidate) -> Ranked:
        """The time of a plan by the cost model, with its terms."""
        return self.space.predict(self, candidate)

    @cached_property
    def extents(self) -> Mapping[str, int | None]:
        """The extent of each index: of a shape, or of ``sizes``; None where nothing says it."""
        found: dict[str, int | None] = {}
        for expression in self.expressions:
            for access in (*expression.inputs, expression.result):
                for index, extent in zip(
                    access.indices, self.tensors[access.name].shape, strict=True
                ):
                    if found.get(index) is None:
                        found[index] = extent if extent is not None else self.sizes.get(index)
        return found


@runtime_checkable
class Strategy(Protocol):
    """What ranks plans. A class of any package, made without arguments, named by an entry point of the group
    ``sparsecc.strategies``."""

    @property
    def name(self) -> str: ...

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        """Plans of the problem, best first; at least one. All of them are not needed."""
        ...
