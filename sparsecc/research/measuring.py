"""Measuring on the spot: a problem whose plans can be measured here, and a table of problems that none records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from sparsecc.research import record
from sparsecc.research.corpus import CorpusProblem
from sparsecc.research.cpu_plans import Plans
from sparsecc.research.measure_cpu import CpuMeasure, Settings
from sparsecc.research.table import Table, read_table
from sparsecc.selection.problem import Problem
from sparsecc.selection.spaces import space_of
from sparsecc.targets import known_target


def measurable(
    problem: CorpusProblem, calls: float | None = None, settings: Settings | None = None
) -> Problem:
    """What strategies get of a problem of the CPU, with the statistics of its tensor and a way to measure plans:
    ``autotune`` and ``oracle`` want one. Times are those of this thread; raises what making the tensor raises."""
    stored = problem.make()
    known = problem.with_statistics(stored.statistics())
    space = space_of(known_target("cpu"))
    asked = known.problem(space, calls=calls, libraries=record.LIBRARIES["cpu"])
    plans = Plans(asked, {known.sparse.name: stored, **known.inputs()})
    return replace(asked, measure=CpuMeasure(plans, settings or Settings()))


def measured_table(
    problems: Sequence[CorpusProblem],
    target: str,
    name: str = "measured",
    tell: Callable[[int, int, str], None] | None = None,
    **options: object,
) -> Table:
    """A table of problems, measured here and now. ``options``: those of a recording (``seconds``, ``workers``);
    ``tell`` hears of the progress as in ``record_problems``.

    Raises NoGpu where the target is one and none is here."""
    with TemporaryDirectory() as folder:
        chosen = record.defaults(target=target, output=str(Path(folder) / name), **options)
        record.record_problems(problems, chosen, tell)
        return read_table(chosen.output)
