"""A measured table as it grows: problems and times are appended as they are found, so a run that ends early has what
it measured, and a later one goes on from there.

``NAME.meta.json``, ``NAME.problems.jsonl`` and ``NAME.times.csv``. A problem is written after all of its times: those
of a problem that was cut short are dropped when the recording goes on."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from math import floor
from pathlib import Path
from typing import Any

from sparsecc.research.corpus import CorpusProblem
from sparsecc.research.records import csv_text
from sparsecc.research.table import COLUMNS, ENDINGS, Time
from sparsecc.selection.candidate import Candidate

WORDS = 200
"""Characters of a failure that are kept."""


def failed(candidate: Candidate, error: BaseException | str) -> Time:
    """A plan that could not run."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    line = " ".join(text.split())
    return Time(candidate, None, failure=line[:WORDS] or "no message")


def spread(samples: Sequence[float]) -> tuple[float, float, float]:
    """The median of samples, and where a tenth and nine tenths of them lie."""
    ordered = sorted(samples)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        low = floor(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    return at(0.5), at(0.1), at(0.9)


class Recording:
    """The three files of a table that is being measured. ``resume``: go on with what is there."""

    def __init__(self, prefix: Path, *, resume: bool = False) -> None:
        prefix.parent.mkdir(parents=True, exist_ok=True)
        self.meta, self.problems, self.times = (
            prefix.with_name(prefix.name + ending) for ending in ENDINGS
        )
        self.done: set[str] = set()
        """Names of the problems that are in it."""
        rows: list[dict[str, str]] = []
        lines: list[str] = []
        if resume:
            for line in self._lines():
                name = str(json.loads(line)["id"])
                self.done.add(name)
                lines.append(line)
            rows = [row for row in self._rows() if row["problem"] in self.done]
        self.problems.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        self.times.write_text(csv_text(COLUMNS, rows), encoding="utf-8")

    def _lines(self) -> list[str]:
        """The lines of whole problems; the last one may have been cut short."""
        if not self.problems.exists():
            return []
        text = self.problems.read_text(encoding="utf-8")
        return [line for line in text.rpartition("\n")[0].split("\n") if line]

    def _rows(self) -> list[dict[str, str]]:
        if not self.times.exists():
            return []
        with self.times.open(encoding="utf-8", newline="") as file:
            return [dict(row) for row in csv.DictReader(file)]

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Write what machine this is of, with which versions. Of a recording that goes on the first facts stay; under
        ``continued`` stands what is of another date or commit then."""
        known: dict[str, Any] = dict(facts)
        if self.done and self.meta.exists():
            known = json.loads(self.meta.read_text(encoding="utf-8"))
            other = {key: facts.get(key) for key in ("commit", "date")}
            earlier: list[Any] = known.get("continued", [])
            if other not in [{key: known.get(key) for key in other}, *earlier]:
                known["continued"] = [*earlier, other]
        self.meta.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")

    def add(self, problem: CorpusProblem, times: Iterable[Time]) -> None:
        """Append a problem and what was measured of its plans."""
        text = csv_text(COLUMNS, [time.row(problem.id) for time in times])
        with self.times.open("a", encoding="utf-8") as file:
            file.write(text.partition("\n")[2])
        with self.problems.open("a", encoding="utf-8") as file:
            file.write(json.dumps(problem.to_json()) + "\n")
        self.done.add(problem.id)
