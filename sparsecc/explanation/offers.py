"""What would pay: the same model is asked about changed problems, and what comes out faster is offered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sparsecc.explanation import changes
from sparsecc.explanation.prediction import Prediction, of_ranked
from sparsecc.explanation.reasons import calls_to_pay_back
from sparsecc.explanation.sizes import SizeRow, best
from sparsecc.explanation.units import count, share
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.engines import ENGINES
from sparsecc.selection.operations import SPMM, SPMV, operands_to_choose, operation_of
from sparsecc.selection.problem import Problem
from sparsecc.statistics import Statistics
from sparsecc.targets import TargetAbility

WORTH = 1.05
"""What is offered is at least so many times as fast."""
DENSITIES = (0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
MOSTLY_FULL = 0.75
"""From this density on blocks have to be pruned before they can help."""
BLOCKS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "cpu": ((4, 1), (4, 4), (8, 8)),
    "triton": ((16, 16), (32, 32), (64, 64)),
}
"""By backend: shapes whose plans there are."""


@dataclass(frozen=True)
class Offer:
    """A change, and what the model then predicts for the best plan. ``before``: seconds now."""

    change: str
    kind: str
    """``groups``, ``density``, ``blocks``, ``type``, ``padding``, ``library``, ``calls``, ``size``."""
    candidate: Candidate
    seconds: float
    before: float

    @property
    def gain(self) -> float:
        """How many times as fast."""
        return self.before / self.seconds if self.seconds else 1.0

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "change": self.change, "plan": str(self.candidate),
            "seconds": self.seconds, "before": self.before, "gain": self.gain,
        }  # fmt: skip


def offers(problem: Problem, now: Prediction) -> list[Offer]:
    """What is worth while, the fastest first; of one kind the best."""
    found: dict[tuple[str, str], Offer] = {}
    for kind, change, changed in _changes(problem):
        if not changed.candidates:
            continue
        ranked = best(changed)
        offer = Offer(change, kind, ranked.candidate, ranked.seconds or 0.0, now.seconds)
        if offer.gain < WORTH:
            continue
        if kind == "density" and not is_sparse(ranked.candidate):
            continue
        # The mildest pruning that pays, of everything else the most gain.
        key = (kind, change.split(" ", 1)[0])
        known = found.get(key)
        if known is None or (kind != "density" and offer.seconds < known.seconds):
            found[key] = offer
    made = [*found.values(), *_by_calls(problem, now)]
    return sorted(made, key=lambda offer: offer.seconds)


def by_size(index: str, rows: Sequence[SizeRow]) -> list[Offer]:
    """The size at which a sparse plan gains most over dense, if one does; ``before`` is then dense at that size."""
    found = [row for row in rows if row.dense is not None and is_sparse(row.best.candidate)]
    row = max(found, key=lambda row: row.gain or 1.0, default=None)
    if row is None or row.dense is None or (row.gain or 1.0) < WORTH:
        return []
    return [
        Offer(
            f"{index} = {row.extent}",
            "size",
            row.best.candidate,
            row.best.seconds,
            row.dense.seconds,
        )
    ]


def is_sparse(candidate: Candidate) -> bool:
    return any(fmt != "dense" for _, fmt in candidate.formats)


def _changes(problem: Problem) -> Iterator[tuple[str, str, Problem]]:
    """Kind, words, and the changed problem."""
    for tensor in operands_to_choose(problem):
        s = tensor.statistics
        if s is None or len(s.shape) != 2 or not s.nnz:
            continue
        readers = [e for e in problem.expressions if tensor.name in {a.name for a in e.inputs}]
        operations = [operation_of(problem, e, tensor.name) for e in readers]
        if not all(o.kind in (SPMV, SPMM) for o in operations):
            continue
        by_rows = all(o.by_rows for o in operations)
        yield from _pruned(problem, tensor.name, s, by_rows)
        yield from _typed(problem, tensor.name, s, by_rows)
    yield from _more_libraries(problem)


def _pruned(
    problem: Problem, name: str, s: Statistics, by_rows: bool
) -> Iterator[tuple[str, str, Problem]]:
    sparse_cores = problem.target.can(TargetAbility.SPARSE_MMA_2_4)
    four = s.group(2, 4)
    if sparse_cores and by_rows and s.shape[1] % 4:
        wide = changes.padded(s, 4)
        change = f"{name} padded with zeros to {wide.shape[1]} columns"
        yield "padding", change, changes.with_statistics(problem, name, wide)
    elif sparse_cores and by_rows and (four is None or four.overflow):
        pruned = changes.in_groups(s)
        lost = share((s.nnz - pruned.nnz) / s.nnz)
        change = f"{name} re-pruned to 2:4 ({lost} of its entries go)"
        yield "groups", change, changes.with_statistics(problem, name, pruned)
    for density in DENSITIES:
        if density < 0.95 * s.density:
            change = f"{name} pruned to {share(1 - density)} zeros, anywhere"
            yield "density", change, changes.with_statistics(problem, name, changes.thinned(s, density))  # fmt: skip
    for rows, columns in BLOCKS.get(problem.target.backend, ()):
        entries, what = s.nnz, f"{name} with as many entries in whole blocks of {rows}x{columns}"
        if s.density > MOSTLY_FULL:
            entries = s.shape[0] * s.shape[1] // 2
            what = f"{name} with half of its blocks of {rows}x{columns} pruned"
        changed = changes.in_blocks(s, rows, columns, entries)
        yield "blocks", what, changes.with_statistics(problem, name, changed)


def _typed(
    problem: Problem, name: str, s: Statistics, by_rows: bool
) -> Iterator[tuple[str, str, Problem]]:
    dtype = problem.tensors[name].dtype
    types = {t.name: t.dtype for t in problem.tensors.values()}
    made = {e.result.name for e in problem.expressions}
    if set(types.values()) != {dtype}:
        return
    gpu = problem.target.backend == "triton"
    narrower = {"f64": ["f32"], "f32": []} if not gpu else {"f64": ["f32", "f16"], "f32": ["f16"]}
    for wanted in narrower.get(dtype, []):
        changed = changes.with_types(problem, dict.fromkeys(types, wanted))
        yield "type", f"{wanted} operands", changed
    if not gpu or dtype not in ("f16", "bf16", "f32") or len(problem.expressions) != 1:
        return
    eight = changes.with_types(problem, {n: "i32" if n in made else "i8" for n in types})
    yield "type", "int8 operands, summed in i32", eight
    group = s.group(2, 4)
    if by_rows and s.shape[1] % 4 == 0 and (group is None or group.overflow):
        narrow = eight.tensors[name].statistics
        assert narrow is not None
        pruned = changes.with_statistics(eight, name, changes.in_groups(narrow))
        yield "groups", f"int8 operands, and {name} re-pruned to 2:4", pruned


def _more_libraries(problem: Problem) -> Iterator[tuple[str, str, Problem]]:
    for refusal in problem.refusals:
        engine = ENGINES.get(refusal.what)
        if engine is not None and engine.name not in problem.libraries:
            changed = replace(problem, libraries=problem.libraries | {engine.name})
            yield "library", f"{engine.title} installed ({refusal.remedy})", changed


def _by_calls(problem: Problem, now: Prediction) -> list[Offer]:
    """More calls, over which a conversion is spread."""
    if not problem.calls:
        return []
    free = best(replace(problem, calls=None))
    ranked = of_ranked(problem, problem.predict(free.candidate))
    needed = calls_to_pay_back(now, ranked, problem.calls)
    if needed is None or needed <= problem.calls or ranked.candidate == now.candidate:
        return []
    more = replace(problem, calls=float(2 * needed))
    then, same = more.predict(ranked.candidate).seconds or 0.0, more.predict(now.candidate).seconds
    if not same or not then or same / then < 1:
        return []
    change = f"{count(needed)} calls pay its conversion back; with {count(2 * needed)} calls"
    return [Offer(change, "calls", ranked.candidate, then, same)]
