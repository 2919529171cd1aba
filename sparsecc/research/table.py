"""Recorded times: problems, the plans that were measured for each, and the machine.

A table ``NAME`` is three files: ``NAME.meta.json`` (machine, versions, date), ``NAME.problems.jsonl`` (a problem a
line, with statistics of its open tensor) and ``NAME.times.csv`` (a plan a line). Those that ship are in ``data``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

from sparsecc.diagnostics import ErrorCollector, SparseccError, UsageError, did_you_mean
from sparsecc.research.corpus import CorpusProblem
from sparsecc.research.recorded import RecordedSpace
from sparsecc.research.records import BadRecords, csv_rows, csv_text, read_rows, write_rows
from sparsecc.selection.candidate import GENERATED, Candidate
from sparsecc.selection.problem import Problem, Space
from sparsecc.storage.files.whole import write_whole

DATA = Path(__file__).parent / "data"
COLUMNS = tuple(
    "problem formats engines schedule seconds low high runs conversion compile bytes checked failure".split()
)
PARQUET = ".parquet"
ENDINGS = (".meta.json", ".problems.jsonl", ".times.csv")


class UnknownTable(UsageError):
    text = "there is no table {name!r}"


class UnknownProblem(UsageError):
    text = "table {table!r} has no problem {id!r}"


class NotRecorded(SparseccError):
    """A plan that nobody has measured: its time is not known, which is not 0."""

    text = "{candidate} of {id} is not in the table {table!r}"
    help_text = "measure it: sparsecc research run --measure"


class RecordedFailure(SparseccError):
    """A plan that could not run where the table was recorded."""

    text = "{candidate} of {id} failed when {table!r} was recorded: {failure}"


@dataclass(frozen=True)
class Time:
    """A plan as it was measured; times in seconds. A plan that could not run has ``failure`` and no ``seconds``."""

    candidate: Candidate
    seconds: float | None
    """The median of one call."""
    low: float | None = None
    """The tenth and the ninetieth per cent."""
    high: float | None = None
    runs: int = 0
    conversion: float | None = None
    """From the stored tensor to the plan's formats; None: not measured."""
    compile: float | None = None
    bytes: int | None = None
    """Of the open tensors in the plan's formats."""
    checked: bool = False
    """Whether the result was compared with a reference."""
    failure: str = ""

    def row(self, problem: str) -> dict[str, Any]:
        """The line of a CSV file."""
        c = self.candidate
        return {
            "problem": problem,
            "formats": ";".join(f"{name}={fmt}" for name, fmt in c.formats),
            "engines": ";".join(c.engines),
            "schedule": json.dumps(dict(c.schedules)) if c.schedules else None,
            **{name: getattr(self, name) for name in COLUMNS[4:11]},
            "checked": int(self.checked),
            "failure": self.failure or None,
        }

    @staticmethod
    def of_row(row: Mapping[str, Any]) -> Time:
        """The inverse. Raises ValueError with what is wrong."""
        pairs = [part.partition("=") for part in (row["formats"] or "").split(";") if part]
        if not all(name and fmt for name, _, fmt in pairs):
            raise ValueError(f"formats {row['formats']!r} are not like 'A=CSR;B=dense'")
        engines = (row["engines"] or "").split(";")
        if not all(engines):
            raise ValueError("an expression has no engine")
        schedules: dict[str, str] = json.loads(row["schedule"] or "{}")
        candidate = Candidate.of({n: f for n, _, f in pairs}, *engines, schedules=schedules)
        times = {
            name: _number(row, name) for name in ("seconds", "low", "high", "conversion", "compile")
        }
        failure = row["failure"] or ""
        if (times["seconds"] is None) != bool(failure):
            raise ValueError("a plan has either seconds or a failure")
        if times["seconds"] == 0:
            raise ValueError("a call takes more than 0 seconds")
        low, high = times["low"], times["high"]
        if low is not None and high is not None and low > high:
            raise ValueError(f"low = {low} is over high = {high}")
        size, checked = row["bytes"], str(row["checked"] or 0)
        if checked not in ("0", "1"):
            raise ValueError(f"checked is 0 or 1, not {checked!r}")
        return Time(
            candidate, **times, runs=int(row["runs"] or 0), bytes=None if size is None else int(size),
            checked=checked == "1", failure=failure,
        )  # fmt: skip


def _number(row: Mapping[str, Any], name: str) -> float | None:
    if row[name] is None:
        return None
    found = float(row[name])
    if not isfinite(found) or found < 0:
        raise ValueError(f"{name} is {found}")
    return found


@dataclass(frozen=True)
class Table:
    """Problems with their measured plans; both by the problem's id."""

    name: str
    meta: Mapping[str, Any]
    problems: Mapping[str, CorpusProblem]
    times: Mapping[str, tuple[Time, ...]]

    @property
    def target(self) -> str:
        return str(self.meta.get("target", ""))

    def time(self, id: str, candidate: Candidate) -> Time:
        """What was measured of a plan. Raises UnknownProblem, NotRecorded."""
        for time in self._times(id):
            if time.candidate == candidate:
                return time
        raise NotRecorded(candidate=candidate, id=id, table=self.name)

    def _times(self, id: str) -> tuple[Time, ...]:
        if id not in self.problems:
            help = did_you_mean(id, list(self.problems)) if self.problems else ""
            raise UnknownProblem(table=self.name, id=id, help=help)
        return self.times.get(id, ())

    def seconds(self, id: str, candidate: Candidate) -> float:
        """Seconds of a call. Raises UnknownProblem, NotRecorded, RecordedFailure."""
        found = self.time(id, candidate)
        if found.seconds is None:
            raise RecordedFailure(
                candidate=candidate, id=id, table=self.name, failure=found.failure
            )
        return found.seconds

    def runs(self, id: str) -> tuple[Time, ...]:
        """The plans of a problem that ran, fastest first. Raises UnknownProblem."""
        ran = [time for time in self._times(id) if time.seconds is not None]
        return tuple(sorted(ran, key=lambda time: (time.seconds, time.candidate)))

    @property
    def libraries(self) -> frozenset[str]:
        """The engines that somebody else wrote, of all plans that ran."""
        ran = (time for times in self.times.values() for time in times if time.seconds is not None)
        return frozenset(e for time in ran for e in time.candidate.engines) - {GENERATED}

    def problem(
        self, id: str, *, space: Space | None = None, calls: float | None = None
    ) -> Problem:
        """The problem that a strategy gets: its plans are the measured ones that ``space`` calls legal (all that ran,
        where there is no space), and measuring one looks its time up. Raises UnknownProblem."""
        # By name: their order must not tell which one was fast.
        ran = tuple(sorted(time.candidate for time in self.runs(id)))
        return self.problems[id].problem(
            RecordedSpace(ran, space), measure=partial(self.seconds, id), calls=calls,
            libraries=self.libraries,
        )  # fmt: skip

    def only(self, ids: Iterable[str]) -> Table:
        """The part of the table with these problems, in its own order."""
        wanted = set(ids)
        kept = {id: p for id, p in self.problems.items() if id in wanted}
        return Table(self.name, self.meta, kept, {id: self.times.get(id, ()) for id in kept})

    def rows(self) -> Iterator[dict[str, Any]]:
        """A line a plan, problems in order."""
        for id in self.problems:
            for time in self.times.get(id, ()):
                yield time.row(id)


def names() -> list[str]:
    """The tables that ship."""
    return sorted(path.name.removesuffix(ENDINGS[0]) for path in DATA.glob(f"*{ENDINGS[0]}"))


def _stem(name: str) -> Path:
    """Where a table is: a name of those that ship, or a path without the endings, or with one of them."""
    if name in names():
        return DATA / name
    for ending in ENDINGS:
        name = name.removesuffix(ending)
    stem = Path(name)
    if not stem.with_name(stem.name + ENDINGS[0]).is_file():
        known = did_you_mean(name, names()) if names() else "no table ships with this version"
        raise UnknownTable(name=name, help=f"{known}; or give the path of NAME{ENDINGS[0]}")
    return stem


def read_table(name: str) -> Table:
    """A table that ships, one by its path (``folder/NAME``), or a Parquet file that ``export`` wrote.

    Raises UnknownTable, NoParquet, and BadRecords with all that is wrong: each error names the file and line."""
    if name.endswith(PARQUET):
        return _imported(Path(name))
    stem = _stem(name)
    meta, problems, times = (stem.with_name(stem.name + ending) for ending in ENDINGS)
    errors = ErrorCollector()
    facts = _meta(meta, errors)
    lines = enumerate(_text(problems).splitlines(), 1)
    known = _problems(((f"{problems}:{n}", line) for n, line in lines), errors)
    rows = ((f"{times}:{n}", row) for n, row in csv_rows(times, COLUMNS))
    found = _times(rows, known, errors)
    errors.raise_if_any()
    return Table(stem.name, facts, known, found)


def export(table: Table, path: Path) -> None:
    """Write a line a plan, as CSV or Parquet by the suffix; a Parquet file holds the problems too, and is a table that
    ``read_table`` reads. Raises UnknownRecords, NoParquet, FileError."""
    problems = [json.dumps(p.to_json()) for p in table.problems.values()]
    notes = {"name": table.name, "meta": dict(table.meta), "problems": problems}
    write_rows(path, COLUMNS, list(table.rows()), notes)


def _imported(path: Path) -> Table:
    if not path.is_file():
        raise UnknownTable(name=str(path), help="there is no such file")
    rows, notes = read_rows(path, COLUMNS)
    errors = ErrorCollector()
    try:
        name, meta, lines = str(notes["name"]), dict(notes["meta"]), list(notes["problems"])
    except (TypeError, KeyError, ValueError):
        raise BadRecords(problem="it holds no problems beside the times", place=str(path)) from None
    known = _problems(((f"{path}: problem {n}", str(x)) for n, x in enumerate(lines, 1)), errors)
    found = _times(((f"{path}: row {n}", row) for n, row in enumerate(rows, 1)), known, errors)
    errors.raise_if_any()
    return Table(name, meta, known, found)


def _problems(lines: Iterable[tuple[str, str]], errors: ErrorCollector) -> dict[str, CorpusProblem]:
    """The problems of lines with their places."""
    known: dict[str, CorpusProblem] = {}
    for place, line in lines:
        try:
            problem = CorpusProblem.from_json(json.loads(line))
            _ = (problem.sparse, problem.result)
            if problem.id in known:
                raise ValueError(f"problem {problem.id!r} is there twice")
            known[problem.id] = problem
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration, SparseccError) as e:
            text = f"not a problem: {e!r}" if not isinstance(e, ValueError) else str(e)
            errors.add(BadRecords(problem=text, place=place))
    return known


def _times(
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    known: Mapping[str, CorpusProblem],
    errors: ErrorCollector,
) -> dict[str, tuple[Time, ...]]:
    """The times of lines with their places, by problem."""
    found: dict[str, list[Time]] = {id: [] for id in known}
    seen: set[tuple[str, Candidate]] = set()
    for place, row in rows:
        try:
            id, time = str(row["problem"]), Time.of_row(row)
            if id not in known:
                raise ValueError(f"problem {id!r} is not among the problems")
            if (id, time.candidate) in seen:
                raise ValueError(f"{time.candidate} of {id} is there twice")
            seen.add((id, time.candidate))
            found[id].append(time)
        except (ValueError, TypeError, AttributeError) as e:
            errors.add(BadRecords(problem=str(e), place=place))
    return {id: tuple(times) for id, times in found.items()}


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRecords(problem=f"byte {error.start} is not UTF-8 text", place=str(path)) from None


def _meta(path: Path, errors: ErrorCollector) -> dict[str, Any]:
    try:
        found = json.loads(_text(path))
        if not isinstance(found, dict) or "target" not in found:
            raise ValueError("not an object with a 'target'")
        return dict(found)  # pyright: ignore[reportUnknownArgumentType]  # JSON holds anything
    except ValueError as error:
        errors.add(BadRecords(problem=str(error), place=str(path)))
        return {}


def write_table(table: Table, folder: Path) -> list[Path]:
    """Write the three files into a folder, each whole or not at all; their paths. Raises FileError."""
    texts = (
        json.dumps(dict(table.meta), indent=1) + "\n",
        "".join(json.dumps(p.to_json()) + "\n" for p in table.problems.values()),
        csv_text(COLUMNS, list(table.rows())),
    )
    paths = [folder / f"{table.name}{ending}" for ending in ENDINGS]
    for path, text in zip(paths, texts, strict=True):
        write_whole(path, text.encode())
    return paths
