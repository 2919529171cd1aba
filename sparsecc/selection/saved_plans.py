"""Plans as JSON, to be saved and replayed: a candidate, and what else the kernel was made with.

Files are untrusted: what is no plan is an error that says where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sparsecc.diagnostics import FileError, UsageError
from sparsecc.selection.candidate import Candidate

MAX_BYTES = 1 << 20
KEYS = ("formats", "engines", "schedules", "out", "target", "program")


class BadPlan(UsageError):
    text = "this is no plan: {problem}"
    help_text = (
        'a plan is a Candidate, or JSON as kernel.plan_json() gives it: {{"formats": {{"A": "CSR"}}, "engines": '
        '["generated"]}}'
    )


class PlanUnreadable(FileError):
    text = "{problem}"


class OtherTarget(UsageError):
    text = "the plan is of target {made}, not of {wanted}"
    help_text = "compile for target {made}, or choose a plan for {wanted}"


@dataclass(frozen=True)
class SavedPlan:
    """A candidate that names every operand; ``out``: the format of the result, where one was asked for."""

    candidate: Candidate
    out: str | None = None
    target: str | None = None
    program: str | None = None
    """For readers."""

    def text(self) -> str:
        """As JSON."""
        said = {"out": self.out, "target": self.target, "program": self.program}
        data = self.candidate.to_json() | {k: v for k, v in said.items() if v is not None}
        return json.dumps(data, indent=1)

    def for_target(self, target: str) -> SavedPlan:
        """Itself. Raises OtherTarget."""
        if self.target not in (None, target):
            raise OtherTarget(made=self.target, wanted=target)
        return self


def plan_of(given: object) -> SavedPlan:
    """The plan of a Candidate, a mapping, JSON text, or a file of it. Raises BadPlan, PlanUnreadable."""
    if isinstance(given, SavedPlan):
        return given
    if isinstance(given, Candidate):
        return SavedPlan(given)
    if isinstance(given, Mapping):
        return _checked(cast("Mapping[object, object]", given))
    if isinstance(given, str) and given.lstrip().startswith("{"):
        return _parsed(given, "")
    if isinstance(given, str | Path):
        return _parsed(_read(Path(given)), str(given))
    raise BadPlan(problem=f"it is {type(given).__name__}")


def _read(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise PlanUnreadable(problem=f"a plan of over {MAX_BYTES >> 20} MiB", place=str(path))
        return data.decode("utf-8")
    except (OSError, ValueError) as error:  # not there, or no UTF-8, or no name of a file
        problem = (getattr(error, "strerror", None) or str(error)).lower()
        raise PlanUnreadable(problem=problem, place=str(path)) from None


def _parsed(text: str, place: str) -> SavedPlan:
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadPlan(problem=f"no JSON: {error}", place=place) from None
    if not isinstance(data, dict):
        raise BadPlan(problem="its JSON is no object", place=place)
    return _checked(cast("dict[object, object]", data), place)


def _checked(data: Mapping[object, object], place: str = "") -> SavedPlan:
    def wrong(problem: str) -> BadPlan:
        return BadPlan(problem=problem, place=place)

    for key in data:
        if key not in KEYS:
            raise wrong(f"it has no entry {key!r}; it has {', '.join(KEYS)}")
    if "formats" not in data:
        raise wrong("it has to have the entry 'formats'")
    for key in ("formats", "schedules"):
        if not _is_texts(data.get(key, {})):
            raise wrong(f"its {key} are {data[key]!r}, no names with texts")
    engines = data.get("engines", ["generated"])
    if not isinstance(engines, list | tuple) or not all(
        isinstance(e, str) for e in cast("list[object]", engines)
    ):
        raise wrong(f"its engines are {engines!r}, no list of names")
    for key in ("out", "target", "program"):
        if not isinstance(data.get(key), str | None):
            raise wrong(f"its {key} is {data[key]!r}, no text")
    known = cast("dict[str, Any]", data)
    candidate = Candidate.of(
        known["formats"], *cast("list[str]", engines), schedules=known.get("schedules", {})
    )
    return SavedPlan(candidate, known.get("out"), known.get("target"), known.get("program"))


def _is_texts(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    pairs = cast("Mapping[object, object]", value).items()
    return all(isinstance(part, str) for pair in pairs for part in pair)
