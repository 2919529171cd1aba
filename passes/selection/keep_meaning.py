"""Plans that would change what a program computes are none.

Where an operand has no entry a product is not computed; where it has an entry of 0 it is. Both give 0, as long as all
factors are finite: so any format will do. A program that divides makes infinities and NaN of finite numbers, and then
the two differ: its open operands stay what their data is, dense, or stored by entries and by these alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from sparsecc.formats import parse_format
from sparsecc.passes.sparsification.term import is_zero, strip_casts
from sparsecc.selection.candidate import Candidate, Ranked, Refusal
from sparsecc.selection.problem import Problem, Space, Tensor

FINITE = frozenset(
    "arith.mulf arith.muli arith.addf arith.addi arith.subf arith.subi arith.negf arith.andi arith.ori arith.xori "
    "arith.cmpf arith.cmpi arith.select arith.maximumf arith.minimumf arith.maxsi arith.minsi arith.maxui arith.minui "
    "arith.constant arith.extf arith.truncf arith.extsi arith.extui arith.trunci arith.sitofp arith.uitofp "
    "complex.mul complex.add complex.sub complex.neg complex.conj complex.create complex.constant complex.re "
    "complex.im math.absf math.absi math.sin math.cos math.tanh math.ceil math.floor math.trunc math.round "
    "math.roundeven builtin.unrealized_conversion_cast linalg.yield linalg.index arith.index_cast".split()
)
"""What makes finite numbers of finite numbers."""
DIVISIONS = frozenset(("arith.divf", "complex.div"))
ALL, ENTRIES, PADDED = "all", "entries", "entries and zeros"
"""What formats store. Of data that nothing is said of, entries: so it is by the rules of ``inferred``."""
REMEDY = "name the format of {name}: it is part of what the program says"


def unsafe_operation(generics: Sequence[linalg.GenericOp]) -> str:
    """The name of an operation that may make infinities or NaN of finite numbers; empty: there is none."""
    for generic in generics:
        for op in generic.body.walk():
            if op.name not in FINITE and not _by_constant(op):
                return op.name
    return ""


def _by_constant(op: Operation) -> bool:
    """Whether it divides by a constant other than 0."""
    if op.name not in DIVISIONS:
        return False
    divisor = strip_casts(op.operands[1])
    return isinstance(divisor.owner, arith.ConstantOp) and not is_zero(divisor)


@dataclass(frozen=True)
class SameMeaning:
    """A space without the plans that would change what a program computes, since it has an ``operation``."""

    space: Space
    operation: str

    def candidates(self, problem: Problem) -> tuple[tuple[Candidate, ...], tuple[Refusal, ...]]:
        plans, refusals = self.space.candidates(problem)
        kept: list[Candidate] = []
        refused: dict[tuple[str, str], Refusal] = {}
        for plan in plans:
            changed = [pair for pair in plan.formats if self.changes(problem, *pair)]
            for name, fmt in changed:
                reason = f"the program has {self.operation}, for which zeros that are stored are not those that are not"
                refused[name, fmt] = Refusal(f"{name}={fmt}", reason, REMEDY.format(name=name))
            if not changed:
                kept.append(plan)
        return tuple(kept), (*refusals, *refused.values())

    def changes(self, problem: Problem, name: str, fmt: str) -> bool:
        """Whether zeros of a tensor's data would begin or cease to be stored."""
        tensor = problem.tensors[name]
        given = tensor.stored if tensor.open else tensor.format
        if given is None:
            return _stores(fmt, tensor) != ENTRIES
        # Formats with padding, blocks for one, have their zeros for missing, and so does what is made of them.
        same = _stores(given, tensor) == _stores(fmt, tensor)
        return not same and (_stores(given, tensor), _stores(fmt, tensor)) != (PADDED, ENTRIES)

    def predict(self, problem: Problem, candidate: Candidate) -> Ranked:
        return self.space.predict(problem, candidate)


def _stores(spelling: str, tensor: Tensor) -> str:
    """Which elements a format stores."""
    fmt = parse_format(spelling, len(tensor.shape))
    if fmt.is_dense:
        return ALL
    return PADDED if fmt.padded else ENTRIES
