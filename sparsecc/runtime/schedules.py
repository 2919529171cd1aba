"""Schedules of GPU kernels as their attributes print."""

from __future__ import annotations

import re

from sparsecc.diagnostics import UsageError


class BadSchedule(UsageError):
    text = "{schedule!r} is no schedule"
    help_text = 'write it as it is printed: #tile.schedule<"family", {{name = number}}>'


MOST = 120
"""Characters of a schedule's name that a message shows."""


def clipped(text: str) -> str:
    """A name that may be anything, for a message."""
    return text if len(text) <= MOST else f"{text[: MOST - 1]}…"


def read_schedule(text: str) -> tuple[str, dict[str, str]]:
    """The family and the numbers of a schedule as its attribute prints. Raises BadSchedule."""
    match = re.fullmatch(r'#tile\.schedule<"(\w+)", \{(.*)\}>', text)
    if match is None:
        raise BadSchedule(schedule=clipped(text))
    return match[1], dict(re.findall(r"(\w+) = (-?\d+)", match[2]))
