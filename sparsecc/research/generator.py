"""Patterns from plain specs: ``{"family": "iid", "rows": 512, "columns": 512, "density": 0.1, "seed": 0}``.

A spec is data that a table keeps beside its times, and that makes the same pattern again anywhere. Families that are
masks (from a density of 10 % on, and all structured ones) are drawn in bands by several threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from json import dumps
from typing import Any, cast

from sparsecc.diagnostics import SparseccError, UsageError, did_you_mean
from sparsecc.research.families import graphs, matrices, tensors, weights
from sparsecc.research.pattern import Pattern
from sparsecc.storage.tensor import SparseTensor

Spec = Mapping[str, Any]


class BadSpec(UsageError):
    """A spec that means no pattern."""

    text = "{problem} in the pattern {spec}"
    help_text = "family {family!r} has the parameters {parameters}"


class UnknownFamily(UsageError):
    text = "there is no family {family!r} of patterns"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a family: a whole number or a real one within bounds, or several of them."""

    kind: type[int] | type[float]
    least: float
    most: float
    default: Any = None
    """None: it must be given."""
    count: tuple[int, int] | None = None
    """How many numbers, at least and at most; None: a single one."""

    def problem(self, value: object) -> str:
        """What is wrong with a value; empty if nothing is."""
        if self.count is None:
            return self._wrong(value)
        if not isinstance(value, Sequence) or isinstance(value, str):
            return f"is not a list: {value!r}"
        items = cast("Sequence[object]", value)
        if not self.count[0] <= len(items) <= self.count[1]:
            return f"has {len(items)} numbers"
        return next((found for found in map(self._wrong, items) if found), "")

    def _wrong(self, value: object) -> str:
        kinds = (int,) if self.kind is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return f"is no {'whole number' if self.kind is int else 'number'}: {value!r}"
        if not self.least <= value <= self.most:
            return f"is {value}, outside [{self.least:g}, {self.most:g}]"
        return ""


@dataclass(frozen=True)
class Family:
    """A function of this package, and the parameters that specs give it."""

    make: Callable[..., Pattern]
    parameters: Mapping[str, Parameter]


EXTENT = Parameter(int, 1, 2**31 - 1)
COUNT = Parameter(int, 0, 2**31 - 1)
SHARE = Parameter(float, 0, 1)
WHOLE = Parameter(float, 0, 1, 1.0)
SEED = Parameter(int, 0, 2**63 - 1, 0)
SHAPE = Parameter(int, 1, 2**31 - 1, count=(3, 8))
SIZES = {"rows": EXTENT, "columns": EXTENT}
RANDOM = {**SIZES, "density": SHARE}
OUTLIERS = Parameter(float, 0, 1, 0.01)
EXPONENT = Parameter(float, 0, 8, 1.0)

FAMILIES: dict[str, Family] = {
    "iid": Family(matrices.iid, {**RANDOM, "seed": SEED}),
    "row-budget": Family(matrices.row_budget, {**SIZES, "count": COUNT, "seed": SEED}),
    "n:m": Family(matrices.n_of_m, {
        **SIZES, "n": Parameter(int, 1, 64), "m": Parameter(int, 1, 64), "seed": SEED}),
    "v:n:m": Family(matrices.v_n_m, {
        **SIZES, "v": Parameter(int, 1, 1024), "n": Parameter(int, 1, 4), "m": Parameter(int, 4, 64),
        "seed": SEED}),
    "block": Family(matrices.block, {
        **RANDOM, "block": Parameter(int, 1, 1024, count=(2, 2)), "fill": WHOLE, "seed": SEED}),
    "banded": Family(matrices.banded, {
        **SIZES, "below": COUNT, "above": COUNT, "fill": WHOLE, "seed": SEED}),
    "stencil": Family(matrices.stencil, {
        "grid": Parameter(int, 1, 2**31 - 1, count=(2, 3)), "points": Parameter(int, 5, 27)}),
    "rmat": Family(graphs.rmat, {
        **RANDOM, "quadrants": Parameter(float, 0, 1, [0.57, 0.19, 0.19, 0.05], count=(4, 4)),
        "seed": SEED}),
    "preferential": Family(graphs.preferential, {
        "rows": EXTENT, "edges": Parameter(int, 1, 2**20), "seed": SEED}),
    "zipf-rows": Family(graphs.zipf_rows, {**RANDOM, "exponent": EXPONENT, "seed": SEED}),
    "magnitude": Family(weights.magnitude, {**RANDOM, "outliers": OUTLIERS, "seed": SEED}),
    "wanda": Family(weights.wanda, {
        **RANDOM, "outliers": OUTLIERS, "rank": Parameter(int, 1, 4096, 32), "seed": SEED}),
    "tensor-iid": Family(tensors.tensor_iid, {"shape": SHAPE, "entries": COUNT, "seed": SEED}),
    "tensor-clustered": Family(tensors.tensor_clustered, {
        "shape": SHAPE, "entries": COUNT, "clusters": Parameter(int, 1, 2**20),
        "spread": Parameter(float, 0, 1e6), "seed": SEED}),
    "tensor-power-law": Family(tensors.tensor_power_law, {
        "shape": SHAPE, "entries": COUNT, "exponent": EXPONENT, "seed": SEED}),
}  # fmt: skip
"""The families by name, with the parameters of their specs."""


def checked(spec: Spec) -> dict[str, Any]:
    """The spec with its defaults filled in. Raises UnknownFamily, BadSpec."""
    family = spec.get("family")
    if not isinstance(family, str) or family not in FAMILIES:
        raise UnknownFamily(family=family, help=did_you_mean(str(family), list(FAMILIES)))
    parameters = FAMILIES[family].parameters

    def bad(problem: str) -> BadSpec:
        shown = ", ".join(
            name if p.default is None else f"{name} (default {p.default})"
            for name, p in parameters.items()
        )
        return BadSpec(problem=problem, spec=dict(spec), family=family, parameters=shown)

    found: dict[str, Any] = {"family": family}
    for name in spec:
        if name != "family" and name not in parameters:
            raise bad(f"there is no parameter {name!r}")
    for name, parameter in parameters.items():
        value = spec.get(name, parameter.default)
        if value is None:
            raise bad(f"{name} is missing")
        problem = parameter.problem(value)
        if problem:
            raise bad(f"{name} {problem}")
        found[name] = list(value) if parameter.count else value
    return found


def pattern(spec: Spec) -> Pattern:
    """The pattern of a spec. Raises UnknownFamily, BadSpec, and what the family raises (UsageError, LimitError)."""
    full = checked(spec)
    family = FAMILIES[full.pop("family")]
    return family.make(**full)


def tensor(spec: Spec, dtype: str = "f64", format: str = "") -> SparseTensor:
    """A tensor of the spec's pattern, with values drawn by its seed: a matrix in CSR, one of another rank in COO,
    unless a format is named. Raises what ``pattern`` raises, and FormatError."""
    full = checked(spec)
    return pattern(full).tensor(dtype, format, int(full.get("seed", 0)))


def name_of(spec: Spec) -> str:
    """A short name that equal specs share, on any machine: family, and eight digits of all parameters."""
    full = checked(spec)
    return f"{full['family']}-{digest(full)[:8]}"


def digest(data: object) -> str:
    """A stable hash of plain data."""
    return sha256(dumps(data, sort_keys=True).encode()).hexdigest()


__all__ = [
    "FAMILIES",
    "BadSpec",
    "SparseccError",
    "UnknownFamily",
    "checked",
    "digest",
    "name_of",
    "pattern",
    "tensor",
]
