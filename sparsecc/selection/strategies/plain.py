"""Strategies that predict no time: the baselines that others are compared with."""

from __future__ import annotations

from collections.abc import Sequence

from sparsecc.diagnostics import PassError
from sparsecc.selection.candidate import GENERATED, Candidate, Ranked
from sparsecc.selection.footprint import footprint
from sparsecc.selection.operations import operands_to_choose
from sparsecc.selection.problem import Problem


class NoSuchPlan(PassError):
    text = "the strategy {name} has no plan here: {reason}"
    help_text = "name another strategy: roofline"


def legal(problem: Problem, name: str) -> Sequence[Candidate]:
    """The legal plans, at least one. Raises NoSuchPlan."""
    found = problem.candidates
    if not found:
        reasons = "; ".join(f"{r.what}: {r.reason}" for r in problem.refusals)
        raise NoSuchPlan(name=name, reason=reasons or "no plan is legal")
    return found


class Fixed:
    """The formats that are there are kept; open operands get CSR, or are compressed in every level."""

    name = "fixed"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        ranks = {t.name: len(t.shape) for t in operands_to_choose(problem)}
        wanted = {name: "CSR" if rank == 2 else "CSF" for name, rank in ranks.items()}

        def distance(plan: Candidate) -> tuple[int, int]:
            others = sum(wanted.get(name) != fmt for name, fmt in plan.formats)
            return others, sum(engine != GENERATED for engine in plan.engines)

        found = sorted(legal(problem, self.name), key=distance)
        return [Ranked(plan, note="the default of an open operand") for plan in found[:1]]


class AlwaysDense:
    """Everything is dense, by a library where there is one."""

    name = "always-dense"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        """Raises NoSuchPlan where an operand is too large to be dense."""
        dense = [p for p in legal(problem, self.name) if all(f == "dense" for _, f in p.formats)]
        if not dense:
            reasons = [f"{r.what}: {r.reason}" for r in problem.refusals if "dense" in r.what]
            raise NoSuchPlan(name=self.name, reason="; ".join(reasons) or "no dense plan is legal")
        dense.sort(key=lambda plan: sum(engine == GENERATED for engine in plan.engines))
        return [Ranked(plan, note="dense whatever the entries are") for plan in dense[:1]]


class Bytes:
    """The operands that take least memory; of equal ones those that the model expects to be faster."""

    name = "bytes"

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        def size(plan: Candidate) -> float:
            total = 0.0
            for name, fmt in plan.formats:
                known = problem.tensors[name].statistics
                total += 0.0 if known is None else footprint(fmt, known).bytes
            return total

        found = [(size(plan), problem.predict(plan)) for plan in legal(problem, self.name)]
        found.sort(key=lambda pair: (pair[0], pair[1].seconds or 0.0, pair[1].candidate))
        return [
            Ranked(r.candidate, None, r.terms, f"its operands take {bytes_:.4g} bytes")
            for bytes_, r in found
        ]
