"""Interleaved CPU times of candidates, and tables of their ratios."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

Candidate = Callable[[], object]


def thread_ms(run: Candidate, repeats: int = 1) -> float:
    """Milliseconds of this thread's CPU time for one of ``repeats`` runs in a row."""
    start = time.thread_time_ns()
    for _ in range(repeats):
        run()
    return (time.thread_time_ns() - start) / 1e6 / repeats


def interleaved(
    candidates: Mapping[str, Candidate], rounds: int, least_ms: float = 3.0
) -> dict[str, float]:
    """The median of each candidate's CPU time in ms.

    A round runs all of them once, so that a busy moment of the machine hits all alike; a short one
    is run several times in a row, until a sample lasts ``least_ms``."""
    repeats: dict[str, int] = {}
    for name, run in candidates.items():
        run()
        repeats[name] = max(1, int(least_ms / max(thread_ms(run), 1e-3)))
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    names = list(candidates)
    for turn in range(rounds):
        # Each starts a round in turn: who runs after whom matters to the caches.
        for k in range(len(names)):
            name = names[(k + turn) % len(names)]
            samples[name].append(thread_ms(candidates[name], repeats[name]))
    return {name: median(values) for name, values in samples.items()}


@dataclass
class Row:
    """A measured case: milliseconds by candidate, and what is held against the bar."""

    case: str
    times: dict[str, float]
    ratio: float | None = None
    """Our time divided by the peer's, or the measured value itself where there is no peer."""
    bar: float | None = None
    unit: str = "ms"
    note: str = ""

    @property
    def verdict(self) -> str:
        """``ok`` or ``MISSED``; empty without a bar."""
        if self.bar is None or self.ratio is None:
            return ""
        return "ok" if self.ratio <= self.bar else "MISSED"


@dataclass
class Table:
    """Rows that share their columns."""

    name: str
    title: str
    ratio: str = "ratio"
    rows: list[Row] = field(default_factory=list[Row])

    def add(self, row: Row) -> None:
        self.rows.append(row)

    def text(self) -> str:
        """The table in Markdown."""
        columns = list(dict.fromkeys(name for row in self.rows for name in row.times))
        head = ["case", *columns, self.ratio, "bar", "", "note"]
        lines = [[r.case, *(_number(r.times.get(c)) for c in columns), _number(r.ratio),
                  _number(r.bar), r.verdict, r.note] for r in self.rows]  # fmt: skip
        keep = [n for n in range(len(head)) if n == 0 or any(line[n] for line in lines)]
        return f"{self.title}\n\n" + markdown([[line[n] for n in keep] for line in [head, *lines]])

    def data(self) -> dict[str, Any]:
        """The table as plain data."""
        rows = [{**asdict(row), "verdict": row.verdict} for row in self.rows]
        return {"name": self.name, "title": self.title, "ratio": self.ratio, "rows": rows}


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up; the first line is its head."""
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]

    def show(line: Sequence[str]) -> str:
        cells = [text.ljust(w) if n == 0 else text.rjust(w) for n, (text, w) in
                 enumerate(zip(line, widths, strict=True))]  # fmt: skip
        return f"| {' | '.join(cells)} |"

    rule = "|".join("-" * (w + 1) + ("-" if n == 0 else ":") for n, w in enumerate(widths))
    return "\n".join([show(lines[0]), f"|{rule}|", *(show(line) for line in lines[1:])])
