"""What plans cost: ``time = max(bytes, MACs, issue) + launch + conversions / calls``.

The first four are those of each expression, added up over a program. :mod:`work` says how amounts become time (the
corners of the maximum are rounded), :mod:`cpu` and :mod:`gpu` which amounts each kernel family has, :mod:`facts` where
their numbers come from, :mod:`conversions` what it costs to convert an operand, :mod:`families` which units there are,
and ``selection.calibrations`` what a unit costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparsecc.selection.calibrations import Calibration, calibration_of
from sparsecc.selection.candidate import TERMS, Candidate, Ranked
from sparsecc.selection.costs import cpu, gpu
from sparsecc.selection.costs.conversions import conversion_seconds
from sparsecc.selection.costs.facts import Facts
from sparsecc.selection.costs.work import Work, total
from sparsecc.selection.operations import (
    Operation,
    is_plain,
    operands_to_choose,
    operation_of,
)
from sparsecc.selection.problem import Expression, Problem, Tensor

DOUBT = "doubt"
"""A term that is not part of the time: the seconds by which a prediction may be off."""

WORK: dict[str, Callable[[Facts, str, Mapping[str, float]], Work]] = {
    "cpu": cpu.work,
    "triton": gpu.work,
}
"""By backend: the work of an expression by an engine on a machine with caches of some sizes."""


def work_of(
    problem: Problem, candidate: Candidate, calibration: Calibration
) -> list[tuple[Work, Facts]]:
    """The work of each expression of a plan."""
    formats = problem.formats_of(dict(candidate.formats))
    make = WORK[problem.target.backend]
    found: list[tuple[Work, Facts]] = []
    for expression, engine in zip(problem.expressions, candidate.engines, strict=True):
        facts = Facts(problem, seen_from(problem, expression, formats), formats)
        found.append((make(facts, engine, calibration.sizes), facts))
    return found


def seen_from(problem: Problem, expression: Expression, formats: Mapping[str, str]) -> Operation:
    """The expression from the side of the operand that the plan stores sparsely; of the first open one if none."""
    inputs = [a.name for a in expression.inputs]
    stored = [n for n in inputs if _is_sparse(problem.tensors[n], formats)]
    open_ones = [n for n in inputs if n in formats]
    name = (stored or open_ones or [None])[0]
    return operation_of(problem, expression, name, formats)


def _is_sparse(tensor: Tensor, formats: Mapping[str, str]) -> bool:
    spelled = formats.get(tensor.name) or tensor.format or "dense"
    return not is_plain(spelled, len(tensor.shape))


def predict(
    problem: Problem, candidate: Candidate, calibration: Calibration | None = None
) -> Ranked:
    """The predicted time of a call of a plan, with its terms. Raises NotCalibrated."""
    rates = calibration or calibration_of(problem.target.name)
    terms: dict[str, float] = dict.fromkeys(TERMS, 0.0)
    seconds = doubt = 0.0
    notes: list[str] = []
    for work, facts in work_of(problem, candidate, rates):
        found = work.seconds(rates)
        took = total(found)
        seconds += took
        doubt += took * rates.doubt(work.family)
        for term, value in found.items():
            terms[term] += value
        notes += facts.notes
    terms["conversion"] = conversions(problem, candidate, rates)
    terms[DOUBT] = doubt
    return Ranked(candidate, seconds + terms["conversion"], terms, "; ".join(dict.fromkeys(notes)))


def conversions(problem: Problem, candidate: Candidate, rates: Calibration) -> float:
    """The share of a call in the conversions of operands from what they are stored in."""
    if not problem.calls:
        return 0.0
    formats = dict(candidate.formats)
    once = sum(
        conversion_seconds(t.stored, formats[t.name], t.statistics, rates)
        for t in operands_to_choose(problem)
        if t.stored is not None and t.statistics is not None and t.name in formats
    )
    return once / problem.calls
