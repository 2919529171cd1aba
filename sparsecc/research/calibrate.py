"""Measuring a machine: a small corpus is recorded in a process of its own, and a calibration is fitted to the times.

What cache levels and the memory give to a stream of reads is measured first, on a CPU by NumPy, and is what the fit
starts from; on a GPU the calibration that ships is. All problems are fitted, none is held out: the errors that are
written say how well the model describes this machine, not how well it predicts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time_ns

import numpy as np

from sparsecc.diagnostics import TargetError, UsageError
from sparsecc.research import fit
from sparsecc.research.table import Table, read_table
from sparsecc.selection.calibrations import Calibration, NotCalibrated, calibration_of
from sparsecc.targets import code_target

CORPORA = {"cpu": "calibration-cpu", "triton": "calibration-gpu"}
"""By backend."""
STREAMS = {"from_l2": 1 << 19, "from_l3": 1 << 22, "from_dram": 1 << 28}
"""Units, and bytes of an array that stays where they are read from."""
ROUNDS = 5
LEAST = 10_000_000
"""Nanoseconds of a sample."""


class NotMeasured(TargetError):
    text = "{target} could not be measured: {reason}"
    help_text = "run it on the machine that is to be calibrated, with nothing else running"


class TooShort(UsageError):
    text = "{seconds:g} seconds are too few to measure a machine; 20 at least"


def calibrate(target: str, seconds: float = 60.0) -> Calibration:
    """A calibration of the machine that is present. Raises NotMeasured, TooShort, UnknownTarget."""
    if not seconds >= 20:
        raise TooShort(seconds=seconds)
    known = code_target(target)
    start = starting_point(known.name)
    if known.backend == "cpu":
        start = with_streams(start, streams())
    table = recorded(known.name, known.backend, seconds)
    made = fit.fit(fitting_all(table), start, hold_out=False)
    date = datetime.now(UTC).date().isoformat()
    return replace(made, machine=fit.machine_of(table), date=date).rounded()


def starting_point(target: str) -> Calibration:
    """The calibration that ships; rates that nobody measured where none does."""
    try:
        return calibration_of(target)
    except NotCalibrated:
        return fit.prior(target)


def streams() -> dict[str, float]:
    """Seconds a byte of a stream of reads, by the level of the memory that it comes from."""
    found: dict[str, float] = {}
    for unit, size in STREAMS.items():
        x = np.ones(max(1, size // 8))
        x.dot(x)
        best = float("inf")
        for _ in range(ROUNDS):
            begin, count = thread_time_ns(), 0
            while not count or thread_time_ns() - begin < LEAST:
                x.dot(x)
                count += 1
            best = min(best, (thread_time_ns() - begin) / 1e9 / (count * x.nbytes))
        found[unit] = best
    return found


def with_streams(calibration: Calibration, rates: Mapping[str, float]) -> Calibration:
    """The same with other costs of streams in all families."""
    families = {
        family: {unit: rates.get(unit, cost) for unit, cost in units.items()}
        for family, units in calibration.families.items()
    }
    return replace(calibration, families=families)


def recorded(target: str, backend: str, seconds: float) -> Table:
    """The small corpus, measured in a process of its own. Raises NotMeasured."""
    with TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "sparsecc.research.record", "--corpus", CORPORA[backend],
            "--target", "cpu" if backend == "cpu" else "gpu", "--seconds", str(seconds),
            "-o", str(Path(folder) / "table"),
        ]  # fmt: skip
        done = subprocess.run(command, stdout=sys.stderr, env=dict(os.environ), check=False)
        if done.returncode:
            raise NotMeasured(target=target, reason="the run that measures has failed, see above")
        return checked(read_table(str(Path(folder) / "table")), target)


def checked(table: Table, target: str) -> Table:
    """A table that was measured on the machine of a target. Raises NotMeasured."""
    if table.target != target:
        raise NotMeasured(target=target, reason=f"the machine that is present is {table.target}")
    if not any(time.seconds for times in table.times.values() for time in times):
        raise NotMeasured(target=target, reason="no plan has run")
    # The corpus is that of one GPU; its problems were measured as those of the GPU that is here.
    problems = {id: replace(p, target=target) for id, p in table.problems.items()}
    return replace(table, problems=problems)


def fitting_all(table: Table) -> Table:
    """The table without problems that were not measured."""
    return table.only(
        id for id in table.problems if any(t.seconds for t in table.times.get(id, ()))
    )
