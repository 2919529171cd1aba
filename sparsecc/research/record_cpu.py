"""Recording on a CPU: one thread, all plans of a problem in turns."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from sparsecc.research import record
from sparsecc.research.corpus import CorpusProblem
from sparsecc.research.cpu_plans import Plans
from sparsecc.research.measure_cpu import measured
from sparsecc.research.recording import Recording
from sparsecc.selection.spaces import space_of
from sparsecc.storage.tensor import SparseTensor
from sparsecc.targets import known_target


def record_cpu(
    groups: Sequence[Sequence[CorpusProblem]], output: Recording, options: Namespace
) -> record.Found:
    """Measure problems, those of one tensor after each other."""
    packages = ("numpy", "scipy", "llvmlite", "xdsl", "sparsecc")
    output.describe(record.facts(options, "cpu", packages) | {"threads": 1})
    space = space_of(known_target("cpu"))
    for group in groups:
        if record.enough(options):
            return
        stored = group[0].make()
        statistics = stored.statistics()
        converted: dict[tuple[str, str], tuple[SparseTensor, float]] = {}
        for problem in group:
            if record.enough(options):
                return
            known = problem.with_statistics(statistics)
            asked = known.problem(space, libraries=record.LIBRARIES["cpu"])
            operands = {known.sparse.name: stored, **known.inputs()}
            plans = Plans(asked, operands, converted)
            yield known, measured(plans, asked.candidates)
