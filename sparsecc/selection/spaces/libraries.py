"""Which engines an expression of a plan can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sparsecc.selection.candidate import GENERATED, Refusal
from sparsecc.selection.operations import SPMM, SPMV, operation_of
from sparsecc.selection.problem import Problem

Engines = Callable[[int, Mapping[str, str]], Sequence[str]]
"""The engines of the n-th expression for formats by tensor."""

ENGINES = {"cpu": ("blas", "scipy"), "triton": ("cublas", "cusparselt", "cusparse")}
"""By backend, of all that there might be."""
TAKES = {
    "blas": ("dense",),
    "scipy": ("CSR", "CSC", "BSR"),
    "cublas": ("dense",),
    "cusparselt": ("2:4",),
    "cusparse": ("CSR",),
}


def allowed(
    problem: Problem, choices: Mapping[str, Sequence[str]]
) -> tuple[Engines, list[Refusal]]:
    """The engines by expression and formats, and why those that are not there are not."""
    refusals: list[Refusal] = []
    for engine in ENGINES.get(problem.target.backend, ()):
        takes = [f for found in choices.values() for f in found if f.split("(")[0] in TAKES[engine]]
        if takes and engine not in problem.libraries:
            refusals.append(Refusal(engine, f"{engine} is not there", "install it"))
    there = [e for e in ENGINES.get(problem.target.backend, ()) if e in problem.libraries]
    known: dict[tuple[int, tuple[str | None, ...]], list[str]] = {}

    def engines(number: int, formats: Mapping[str, str]) -> Sequence[str]:
        expression = problem.expressions[number]
        key = (number, tuple(formats.get(a.name) for a in expression.inputs))
        if key not in known:
            known[key] = [
                GENERATED,
                *(e for e in there if refusal(problem, number, formats, e) is None),
            ]
        return known[key]

    return engines, refusals


def refusal(
    problem: Problem, number: int, formats: Mapping[str, str], engine: str
) -> Refusal | None:
    """Why a library can't do an expression; None if it can."""
    expression = problem.expressions[number]
    what = f"{expression.text} by {engine}"
    if not expression.product or len(expression.inputs) != 2:
        return Refusal(what, "it is not one product of two tensors", "")
    spelled = [
        formats.get(a.name, problem.tensors[a.name].format) or "dense" for a in expression.inputs
    ]
    stored = [s for s in spelled if s != "dense"]
    family = stored[0].split("(")[0] if stored else "dense"
    if len(stored) > 1 or family not in TAKES[engine]:
        return Refusal(what, f"it does not take {' and '.join(stored) or 'dense'}", "")
    operation = operation_of(problem, expression, formats=formats)
    if operation.kind not in (SPMV, SPMM):
        return Refusal(what, "it is no product with a matrix", "")
    return None
