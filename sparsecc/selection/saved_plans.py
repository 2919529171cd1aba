"""Plans as JSON, to be saved and replayed: a candidate, and what else the kernel was made with.

Files are untrusted: what is no plan is an error that says where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any, cast

from sparsecc.diagnostics import FileError, UsageError
from sparsecc.selection.candidate import Candidate

MAX_BYTES = 1 << 20
SHOWN = 100
"""Characters of a program in a message."""
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


class OtherProgram(UsageError):
    text = "the plan is of the program {made!r}, not of {wanted!r}"
    help_text = (
        "take the plan of this program, or leave 'program' out of it: then it only has to fit"
    )


@dataclass(frozen=True)
class SavedPlan:
    """A candidate that names every operand; ``out``: the format of the result, where one was asked for."""

    candidate: Candidate
    out: str | None = None
    target: str | None = None
    program: str | None = None
    """The text that it was made for."""

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

    def for_program(self, text: str) -> SavedPlan:
        """Itself, if it was made for this text; spaces do not count. Raises OtherProgram."""
        if self.program is not None and self.program.split() != text.split():
            made, wanted = (
                shorten(part, SHOWN, placeholder=" ...") for part in (self.program, text)
            )
            raise OtherProgram(made=made, wanted=wanted)
        return self


def plan_of(given: object) -> SavedPlan:
    """The plan of a Candidate, a mapping, JSON text, or a file of it. Raises BadPlan, PlanUnreadable."""
    if isinstance(given, SavedPlan):
        return given
    if isinstance(given, Candidate):
        return SavedPlan(given)
    if isinstance(given, Mapping):
        return _checked(cast("Mapping[object, object]", given))
    if isinstance(given, str) and _is_json(given):
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


def _is_json(text: str) -> bool:
    """Whether a text is JSON, if perhaps not that of a plan, and no name of a file."""
    if text.lstrip().startswith(("{", "[")):
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return not Path(text).exists()


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Repeated(f"it says {twice!r} twice")
    return found


class Repeated(Exception):
    """A key that stands in an object twice."""


def _parsed(text: str, place: str) -> SavedPlan:
    try:
        data: object = json.loads(text, object_pairs_hook=_unique)
    except Repeated as error:
        raise BadPlan(problem=str(error), place=place) from None
    except (ValueError, RecursionError) as error:
        raise BadPlan(problem=f"no JSON: {error}", place=place) from None
    if not isinstance(data, dict):
        shown = shorten(text, SHOWN, placeholder=" ...")
        raise BadPlan(problem=f"its JSON, {shown}, is no object", place=place)
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
