"""Which engines an expression of a plan can have: ``selection.engines`` is the judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sparsecc.selection import engines
from sparsecc.selection.candidate import GENERATED, Refusal
from sparsecc.selection.problem import Problem

Engines = Callable[[int, Mapping[str, str]], Sequence[str]]
"""The engines of the n-th expression for formats by tensor."""


def allowed(
    problem: Problem, choices: Mapping[str, Sequence[str]]
) -> tuple[Engines, list[Refusal]]:
    """The engines by expression and formats, and why those that would be of use are not there."""
    of_target = engines.of_target(problem.target)
    dtypes = {name: tensor.dtype for name, tensor in problem.tensors.items()}
    refusals: list[Refusal] = []

    def refusal(number: int, formats: Mapping[str, str | None], engine: str) -> str | None:
        spelled = {n: formats.get(n) or t.format or "dense" for n, t in problem.tensors.items()}
        return engines.refusal(
            problem.expressions[number], spelled, dtypes, engine, extents=problem.extents
        )

    for engine in of_target:
        if engine not in problem.libraries and _of_use(problem, choices, engine):
            known = engines.ENGINES[engine]
            refusals.append(
                Refusal(engine, f"{known.title} is not here", known.remedy or "install it")
            )
    there = [e for e in of_target if e in problem.libraries]
    found: dict[tuple[int, tuple[str | None, ...]], list[str]] = {}

    def of(number: int, formats: Mapping[str, str]) -> Sequence[str]:
        expression = problem.expressions[number]
        formats = problem.formats_of(formats)
        accesses = (*expression.inputs, expression.result)
        key = (number, tuple(formats.get(a.name) for a in accesses))
        if key not in found:
            found[key] = [
                GENERATED,
                *(e for e in there if refusal(number, formats, e) is None),
            ]
        return found[key]

    return of, refusals


def _of_use(problem: Problem, choices: Mapping[str, Sequence[str]], engine: str) -> bool:
    """Whether a library takes a format of some operand of a product."""
    takes = engines.ENGINES[engine].sparse or ("dense",)
    return any(e.product and len(e.inputs) == 2 for e in problem.expressions) and any(
        fmt.partition("(")[0] in takes for found in choices.values() for fmt in found
    )
