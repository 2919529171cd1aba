"""A seeded generator of expressions in the supported language, with operands for them.

``generate(seed)`` gives a :class:`Case`; the same seed gives the same case. Formats are for the
caller to fill in (``replace(case, formats=…)``); ``make_operands`` then draws values and patterns.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sparsecc.frontends import dtypes
from tests.oracle.evaluator import Array, Mask, Operand

EXTENTS = (0, 1, 2, 3, 5, 7)
MAX_POINTS = 5000
DENSE = "dense"
PATTERNS = ("random", "random", "sparse", "empty rows", "full rows", "full", "empty", "diagonal")


@dataclass(frozen=True)
class Case:
    """An expression with operands to draw; ``formats`` names those that are chosen."""

    text: str
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    seed: int
    formats: Mapping[str, str] = field(default_factory=dict[str, str])


def generate(
    seed: int,
    element_types: Sequence[str] = ("f64",),
    *,
    division: bool = True,
    extents: Sequence[int] = EXTENTS,
) -> Case:
    """A case of operands of those element types; with bool among them there is no minus."""
    return _Generator(random.Random(seed), element_types, division, extents).case(seed)


def make_operands(case: Case) -> dict[str, Operand]:
    """Values and patterns of a case's operands; dense ones and scalars have no pattern."""
    rng = np.random.default_rng(case.seed)
    made: dict[str, Operand] = {}
    for name, shape in case.shapes.items():
        values = random_values(rng, shape, case.dtypes[name])
        if not shape or case.formats.get(name) == DENSE:
            made[name] = (values, None)
            continue
        stored = random_pattern(rng, shape)
        made[name] = (np.where(stored, values, values.dtype.type(0)), stored)
    return made


def random_values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Small whole numbers, so that sums are exact in any order; some are (explicit) zeros."""
    numpy_type = dtypes.NUMPY[dtype]
    if dtype == "bool":
        return rng.random(shape) < 0.7
    lo = 0 if dtypes.kind(dtype) == "u" else -4
    values: Array = rng.integers(lo, 5, shape)
    if dtypes.kind(dtype) == "c":
        values = values + 1j * rng.integers(-4, 5, shape)
    return np.asarray(values, numpy_type)


def random_pattern(rng: np.random.Generator, shape: tuple[int, ...]) -> Mask:
    """Where something is stored: one of several kinds, rows empty or full among them."""
    kind = PATTERNS[int(rng.integers(len(PATTERNS)))]
    stored = rng.random(shape) < (0.1 if kind == "sparse" else 0.4)
    match kind:
        case "full":
            stored[...] = True
        case "empty":
            stored[...] = False
        case "empty rows":
            stored[rng.random(shape[0]) < 0.5] = False
        case "full rows":
            stored[rng.random(shape[0]) < 0.5] = True
        case "diagonal":
            first = np.indices(shape)[0]
            stored = np.all(np.indices(shape) == first, axis=0)
        case _:
            pass
    return stored


class _Generator:
    """Draws indices and extents first, then tensors, then terms over them."""

    def __init__(
        self, rng: random.Random, types: Sequence[str], division: bool, extents: Sequence[int]
    ) -> None:
        self.rng = rng
        self.types = types
        self.division = division and "bool" not in types
        self.minus = "bool" not in types
        self.names = rng.sample("ijklm", rng.randint(1, 4))
        # Extent 0 is worth a test, but makes everything else trivial.
        weights = [1 if extent == 0 else 4 for extent in extents]
        while True:
            self.extents = dict(
                zip(self.names, rng.choices(extents, weights, k=len(self.names)), strict=True)
            )
            if np.prod(list(self.extents.values())) <= MAX_POINTS:
                break
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.dtypes: dict[str, str] = {}
        self.used: list[str] = []
        self.budget = rng.randint(1, 4)

    def case(self, seed: int) -> Case:
        text = self.terms()
        used = sorted(set(self.used))
        target = self.rng.sample(used, self.rng.randint(0, min(4, len(used))))
        left = f"out[{','.join(target)}]" if target else "out"
        return Case(f"{left} = {text}", self.shapes, self.dtypes, seed)

    def terms(self) -> str:
        text = self.term()
        if self.minus and self.rng.random() < 0.15:
            text = f"-{text}"
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            text += f" {self.sign()} {self.term()}"
        return text

    def term(self) -> str:
        text = self.factor()
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            op = "/" if self.division and self.rng.random() < 0.12 else "*"
            text += f" {op} {self.factor()}"
        return text

    def factor(self) -> str:
        draw = self.rng.random()
        if self.shapes and draw < 0.1:
            return self.constant()
        if draw < 0.22:
            return f"({self.access()} {self.sign()} {self.access()})"
        if draw < 0.27 and self.minus:
            return f"(-{self.access()})"
        return self.access()

    def sign(self) -> str:
        return self.rng.choice("+-") if self.minus else "+"

    def constant(self) -> str:
        if any(dtypes.is_inexact(t) for t in self.types) and self.rng.random() < 0.4:
            return self.rng.choice(("0.5", "2.5", "1e1"))
        return self.rng.choice(("2", "3", "1"))

    def access(self) -> str:
        """A new tensor, or one that is there already with other indices of the same extents."""
        if len(self.shapes) >= self.budget or (self.shapes and self.rng.random() < 0.15):
            name = self.rng.choice(list(self.shapes))
            indices = [self.index_of(extent) for extent in self.shapes[name]]
        else:
            name = "ABDE"[len(self.shapes)]
            rank = self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))
            if self.rng.random() < 0.15:  # repeated indices, as in A[i,i]
                indices = self.rng.choices(self.names, k=rank)
            else:
                indices = self.rng.sample(self.names, min(rank, len(self.names)))
            self.shapes[name] = tuple(self.extents[i] for i in indices)
            self.dtypes[name] = self.rng.choice(self.types)
        self.used += indices
        return f"{name}[{','.join(indices)}]" if indices else name

    def index_of(self, extent: int) -> str:
        return self.rng.choice([n for n in self.names if self.extents[n] == extent])
