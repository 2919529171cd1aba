"""What spaces share: plans are the product of the formats of open tensors and of the engines of each expression.

Where there are more than LARGEST of them, several tensors are open: then plans come from coordinate descent. It starts
from each tensor's first format, goes through the tensors in turn, and gives each the format with which the predicted
time of the whole program is least, until a round changes nothing. All plans that were looked at on the way are listed,
and so are the ones in which every tensor has the same format. The best plan may then be missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import prod
from typing import Protocol

from sparsecc.selection import costs
from sparsecc.selection.candidate import GENERATED, Candidate, Ranked, Refusal
from sparsecc.selection.footprint import ITEMSIZES, block_of, blocks_of, footprint, largest
from sparsecc.selection.operations import operands_to_choose
from sparsecc.selection.problem import Expression, Problem, Tensor
from sparsecc.selection.spaces import libraries
from sparsecc.statistics import Statistics

LARGEST = 512
"""Plans that are listed one by one."""
ROUNDS = 8
MAX_DENSE_BYTES = 1 << 30
"""Larger dense arrays are not made without being asked for; the same as storage's limit."""
TINY = 1 << 20
"""Bytes below which waste is nobody's concern."""
WASTE = 4.0
"""So many times the bytes of CSR is too much."""
AS_INFERRED = ""
"""Of a temporary: the plan does not name its format."""
FULL = 0.95
"""The part of the cells from which blocks store what dense does."""

Found = tuple[list[str], list[Refusal]]
"""What is legal, and what is not."""


class Rules(Protocol):
    """What a backend says of formats: of an operand of an expression, and of a generated kernel for a plan."""

    def formats(self, problem: Problem, expression: Expression, tensor: Tensor) -> Found:
        """Formats that generated kernels or libraries can take the operand in."""
        ...


@dataclass(frozen=True)
class PlanSpace:
    """The legal plans of a target, and what they cost."""

    rules: Rules

    def candidates(self, problem: Problem) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...]]:
        """All legal plans, and why others are not legal."""
        refusals: list[Refusal] = []
        choices: dict[str, list[str]] = {}
        for tensor in operands_to_choose(problem):
            legal, refused = self._formats(problem, tensor)
            choices[tensor.name] = legal
            refusals += refused
        engines, refused = libraries.allowed(problem, choices)
        refusals += refused
        choices |= {name: [AS_INFERRED, "dense"] for name in _temporaries(problem)}
        count = prod(map(len, choices.values()))
        expressions = range(len(problem.expressions))
        if count * prod(len(engines(k, {})) for k in expressions) <= LARGEST:
            plans = _all(problem, choices, engines)
        else:
            plans = self._descent(problem, choices, engines)
        unique = tuple(islice(dict.fromkeys(plans), LARGEST))
        return unique, tuple(dict.fromkeys(refusals))

    def predict(self, problem: Problem, candidate: Candidate) -> Ranked:
        """The predicted time of a call of a plan."""
        return costs.predict(problem, candidate)

    def _formats(self, problem: Problem, tensor: Tensor) -> Found:
        """Formats that every expression which reads a tensor can take it in."""
        readers = [e for e in problem.expressions if tensor.name in {a.name for a in e.inputs}]
        refusals: list[Refusal] = []
        legal: list[str] | None = None
        for expression in readers:
            found, refused = self.rules.formats(problem, expression, tensor)
            refusals += refused
            legal = found if legal is None else [f for f in legal if f in found]
        kept: list[str] = []
        for fmt in legal or ["dense"]:
            refused_too = too_large(tensor, fmt)
            if refused_too is None:
                kept.append(fmt)
            else:
                refusals.append(refused_too)
        return kept, refusals

    def _descent(
        self,
        problem: Problem,
        choices: Mapping[str, list[str]],
        engines: libraries.Engines,
    ) -> Iterator[Candidate]:
        formats = {name: found[0] for name, found in choices.items()}
        operands = {name: found for name, found in choices.items() if AS_INFERRED not in found}
        first = next(iter(operands.values()), list[str]())
        for fmt in (f for f in first if all(f in c for c in operands.values())):
            yield self._with_engines(problem, dict.fromkeys(operands, fmt), engines)
        seen: dict[tuple[tuple[str, str], ...], Candidate] = {}
        for _ in range(ROUNDS):
            before = dict(formats)
            for name, found in choices.items():
                best, least = formats[name], float("inf")
                for fmt in found:
                    trial = _named({**formats, name: fmt})
                    if _is_idle(problem, trial):
                        continue
                    key = tuple(sorted(trial.items()))
                    if key not in seen:
                        seen[key] = self._with_engines(problem, trial, engines)
                        yield seen[key]
                    seconds = self.predict(problem, seen[key]).seconds or 0.0
                    if seconds < least:
                        best, least = fmt, seconds
                formats[name] = best
            if formats == before:
                return

    def _with_engines(
        self, problem: Problem, formats: Mapping[str, str], engines: libraries.Engines
    ) -> Candidate:
        """The plan of formats with the cheapest engine of each expression: they do not depend on one another."""
        chosen = [GENERATED] * len(problem.expressions)
        for k in range(len(chosen)):
            options = engines(k, formats)
            if len(options) > 1:
                times: list[tuple[float, int]] = []
                for n, engine in enumerate(options):
                    trial = Candidate.of(formats, *chosen[:k], engine, *chosen[k + 1 :])
                    times.append((self.predict(problem, trial).seconds or 0.0, n))
                chosen[k] = options[min(times)[1]]
        return Candidate.of(formats, *chosen)


def _all(
    problem: Problem, choices: Mapping[str, Sequence[str]], engines: libraries.Engines
) -> Iterator[Candidate]:
    for formats in product(*choices.values()):
        named = _named(dict(zip(choices, formats, strict=True)))
        if _is_idle(problem, named):
            continue
        options = [engines(k, named) for k in range(len(problem.expressions))]
        for chosen in product(*options):
            yield Candidate.of(named, *chosen)


def _temporaries(problem: Problem) -> Iterator[str]:
    """Results inside the program that might be sparse, and that may be dense."""
    for name in problem.temporaries:
        tensor = problem.tensors[name]
        if len(tensor.shape) < 2 or problem.sparse_results.get(name, "dense") == "dense":
            continue
        access = next(e.result for e in problem.expressions if e.result.name == name)
        extents = [problem.extents.get(index) for index in access.indices]
        known = [extent for extent in extents if extent is not None]
        if len(known) == len(extents) and prod(known) * ITEMSIZES[tensor.dtype] <= MAX_DENSE_BYTES:
            yield name


def _named(formats: Mapping[str, str]) -> dict[str, str]:
    """What a plan says: nothing of what is as it is inferred."""
    return {name: fmt for name, fmt in formats.items() if fmt != AS_INFERRED}


def _is_idle(problem: Problem, formats: Mapping[str, str]) -> bool:
    """Whether a plan names the format of a temporary that it would have anyway: another plan says the same."""
    named = [name for name in problem.temporaries if name in formats]
    if not named or problem.inferred is None:
        return False
    given = {name: fmt for name, fmt in formats.items() if name not in named}
    for name in named:
        others = {**given, **{n: formats[n] for n in named if n != name}}
        if problem.formats_of(others).get(name, "dense") == formats[name]:
            return True
    return False


def too_large(tensor: Tensor, fmt: str) -> Refusal | None:
    """Why a format would take too much memory for a tensor; None if it would not, or if nobody knows."""
    s = tensor.statistics
    if s is None:
        return None
    what = f"{tensor.name}={fmt}"
    size = footprint(fmt, s).bytes
    if fmt == "dense" and size > MAX_DENSE_BYTES:
        return Refusal(
            what,
            f"dense {tensor.name} takes {in_units(size)}, more than max_dense_bytes={MAX_DENSE_BYTES}",
            "keep it sparse",
        )
    least = footprint("CSR" if len(s.shape) == 2 else f"COO({len(s.shape)})", s).bytes
    if fmt in ("dense", "BITMAP", "2:4", "2:4+CSR"):
        return None
    entries = footprint(fmt, s).entries
    full = _full_blocks(fmt, s)
    if full >= FULL:
        return Refusal(
            what,
            f"{full:.0%} of its blocks hold an entry: it stores what dense does",
            "prune whole blocks, or take dense",
        )
    if size <= max(WASTE * least, TINY):
        return None
    if fmt == "ELL":
        mean = s.nnz / max(s.shape[0], 1)
        return Refusal(
            what,
            f"the longest row has {largest(s, 0)} entries, the mean row {mean:.3g}: padding to it takes "
            f"{in_units(size)}, CSR {in_units(least)}",
            "reorder or split long rows, or take CSR",
        )
    filled = s.nnz / max(entries, 1)
    return Refusal(
        what,
        f"only {100 * filled:.2g} % of the cells of its blocks hold an entry: {in_units(size)}, CSR {in_units(least)}",
        "reorder rows and columns so that entries share blocks, or prune whole blocks",
    )


def _full_blocks(fmt: str, s: Statistics) -> float:
    """The part of all blocks that hold an entry, those at the edges too; 0 of other formats."""
    block = block_of(fmt)
    if block is None:
        return 0.0
    grid = prod(-(-extent // size) for extent, size in zip(s.shape, block, strict=True))
    return min(1.0, blocks_of(s, *block) / grid) if grid else 0.0


def in_units(size: float) -> str:
    """Bytes for a reader."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"
