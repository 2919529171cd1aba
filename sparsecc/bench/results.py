"""Measured cells as data: what a run writes, what the reports read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparsecc.bench import bars
from sparsecc.bench.cells import Cell, all_cells
from sparsecc.diagnostics import FileError

OURS = "sparsecc"
FIRST = "sparsecc, default"
"""Our first choice, without tuning; ``OURS`` is the fastest of the schedules."""


@dataclass(frozen=True)
class Time:
    """The fastest candidate of a family: microseconds (median, least and most of the rounds)."""

    candidate: str
    us: float
    least: float
    most: float
    how: str
    nbytes: int
    error: float
    loose: bool = False
    """Whether its error is more than ours may be."""

    @property
    def gigabytes(self) -> float:
        """GB/s of what has to be read and written."""
        return self.nbytes / self.us / 1e3


@dataclass(frozen=True)
class Result:
    """A cell that ran: a time for each family that has a right result, and what went wrong in the others."""

    cell: Cell
    nnz: int
    times: Mapping[str, Time]
    failures: Mapping[str, str] = field(default_factory=dict[str, str])
    """By ``family: candidate``: the message, or the error that was not accepted."""
    copied: float | None = None
    """Bytes a second that the device copied beside the cell's times: the slowest moment."""

    @property
    def ours(self) -> float | None:
        return self.times[OURS].us if OURS in self.times else None

    @property
    def rivals(self) -> dict[str, float]:
        return {
            family: time.us for family, time in self.times.items() if family not in (OURS, FIRST)
        }

    def ratio(self, family: str) -> float | None:
        """The family's time divided by ours."""
        ours = self.ours
        return self.times[family].us / ours if ours and family in self.times else None

    def verdicts(self) -> list[dict[str, Any]]:
        """The bars of this cell; ``passed`` is None where a rival has no time."""
        found: list[dict[str, Any]] = []
        for bar in bars.of_cell(self.cell):
            value = bars.ratio(bar, self.ours, self.rivals)
            passed = None if value is None else value >= bar.least
            if self.ours is None:
                passed = False
            found.append(
                {"against": list(bar.against), "bar": bar.least, "ratio": value, "passed": passed}
            )
        return found

    def to_json(self) -> dict[str, Any]:
        cell = self.cell
        return {
            "cell": cell.name, "group": cell.group, "operation": cell.operation.name,
            "rows": cell.rows, "columns": cell.columns, "width": cell.width, "dtype": cell.dtype,
            "format": cell.format, "pattern": cell.pattern, "sparsity": cell.sparsity, "nnz": self.nnz,
            "times": {
                family: {
                    "candidate": t.candidate, "us": round(t.us, 3), "least": round(t.least, 3),
                    "most": round(t.most, 3), "how": t.how, "bytes": t.nbytes, "error": t.error,
                    "GB/s": round(t.gigabytes, 1), "loose": t.loose,
                }
                for family, t in self.times.items()
            },
            "bars": self.verdicts(),
            "failures": dict(self.failures), "copied": self.copied,
        }  # fmt: skip

    @staticmethod
    def from_json(data: Mapping[str, Any], cells: Mapping[str, Cell]) -> Result:
        times = {
            family: Time(
                t["candidate"],
                t["us"],
                t["least"],
                t["most"],
                t["how"],
                t["bytes"],
                t["error"],
                t["loose"],
            )  # fmt: skip
            for family, t in data["times"].items()
        }
        return Result(cells[data["cell"]], data["nnz"], times, data["failures"], data["copied"])


@dataclass(frozen=True)
class Latency:
    """A time that is not a kernel's: ``value`` in ``unit``, to be at most ``bar``."""

    name: str
    value: float
    unit: str
    bar: float | None
    note: str = ""

    @property
    def passed(self) -> bool | None:
        return None if self.bar is None else self.value <= self.bar


@dataclass(frozen=True)
class Run:
    """What one call of ``sparsecc bench gpu`` found, or several on one machine put together."""

    machine: Mapping[str, Any]
    results: tuple[Result, ...]
    latencies: tuple[Latency, ...] = ()

    def means(self) -> list[bars.Mean]:
        times = {r.cell: (r.ours, r.rivals) for r in self.results}
        return bars.means([r.cell for r in self.results], times)

    def to_json(self) -> dict[str, Any]:
        return {
            "machine": dict(self.machine),
            "cells": [result.to_json() for result in self.results],
            "means": [
                {
                    "bar": m.bar.title, "against": list(m.bar.against), "least": m.bar.least,
                    "geomean": m.value, "cells": m.cells, "of": m.of,
                    "passed": None if m.value is None else m.value >= m.bar.least,
                }
                for m in self.means() if m.of
            ],
            "latencies": [
                {"name": x.name, "value": x.value, "unit": x.unit, "bar": x.bar, "note": x.note,
                 "passed": x.passed}
                for x in self.latencies
            ],
        }  # fmt: skip


def read_runs(paths: Sequence[Path]) -> Run:
    """Runs that ``--json`` has written, put together; of a cell that is in several, the last counts.

    Raises FileError."""
    cells = {cell.name: cell for cell in all_cells()}
    machine: dict[str, Any] = {}
    results: dict[Cell, Result] = {}
    latencies: dict[str, Latency] = {}
    for path in paths:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            machine = _together(machine, data["machine"])
            for entry in data["cells"]:
                found = Result.from_json(entry, cells)
                results[found.cell] = found
            for entry in data["latencies"]:
                known = {k: entry[k] for k in ("name", "value", "unit", "bar", "note")}
                latencies[entry["name"]] = Latency(**known)
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(
                f"not a result of 'sparsecc bench gpu': {error!r}", place=str(path)
            ) from None
    ordered = [results[cell] for cell in in_order(results, cells.values())]
    return Run(machine, tuple(ordered), tuple(latencies.values()))


def _together(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of two runs: other commits are all named, of two copy bandwidths the higher one counts."""
    found = dict(one) | dict(other)
    commits = [str(m["commit"]) for m in (one, other) if m.get("commit")]
    if commits:
        found["commit"] = ", ".join(dict.fromkeys(", ".join(commits).split(", ")))
    rates = [m["copy_bandwidth"] for m in (one, other) if m.get("copy_bandwidth")]
    if rates:
        found["copy_bandwidth"] = max(rates)
    return found


def in_order(found: Iterable[Cell], known: Iterable[Cell]) -> list[Cell]:
    """Cells in the order of the set."""
    have = set(found)
    return [cell for cell in known if cell in have]
