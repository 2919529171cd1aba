"""What is checked of a call and of options before anything else: arrays for results, counts, schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sparsecc.diagnostics import UsageError


class BadOption(UsageError):
    text = "{name}= is {found!r}"
    help_text = "it is {wanted}"


def unwritable(array: npt.NDArray[Any]) -> str:
    """Why a NumPy array can't take a result, whatever its type and shape are; empty: it can."""
    if isinstance(array, np.ma.MaskedArray):
        return "it is a masked array"
    if not array.dtype.isnative:
        return f"its bytes are in another order ({array.dtype.str})"
    if not array.flags.writeable:
        return "it is read-only"
    return "" if array.flags.aligned else "its elements are not aligned"


def checked_operands(operands: object, named: bool = False) -> None:
    """Raise BadOption for what is no mapping of operands (``named``: by names, which calls look up anyway)."""
    found = cast("Mapping[object, object]", operands)
    known = isinstance(operands, Mapping)
    if not known or (named and not all(isinstance(n, str) for n in found)):
        wanted = "a mapping from names to operands, as in {'A': A}"
        raise BadOption(name="operands", found=type(found).__name__, wanted=wanted)


def checked_text(text: object) -> None:
    """Raise BadOption for a program that is no text."""
    if not isinstance(text, str):
        raise BadOption(name="expr", found=text, wanted="a text, as in 'y[i] = A[i,j] * x[j]'")


def checked_tokens(tokens: object) -> int | None:
    """A number of tokens, or None. Raises BadOption."""
    if tokens is None:
        return None
    if not is_whole(tokens) or (number := int(cast(int, tokens))) < 1:
        raise BadOption(name="tokens", found=tokens, wanted="a number of tokens, at least 1")
    return number


def is_whole(number: object) -> bool:
    """Whether it is an integer, of Python or NumPy, and not a truth value."""
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def checked_tuning(seconds: object, workers: object) -> None:
    """Raise BadOption for what is no time or no number of processes."""
    if not (isinstance(seconds, float) or is_whole(seconds)) or not cast(float, seconds) >= 0:
        raise BadOption(name="seconds", found=seconds, wanted="a time in seconds, 0 or more")
    if workers is not None and (not is_whole(workers) or cast(int, workers) < 1):
        raise BadOption(name="workers", found=workers, wanted="a number of processes, at least 1")


def checked_schedule(schedule: object) -> str | Mapping[str, str] | None:
    """A schedule, or schedules by kernel. Raises BadOption."""
    if schedule is None or isinstance(schedule, str):
        return schedule
    found = cast("Mapping[object, object]", schedule)
    if isinstance(schedule, Mapping):
        if all(isinstance(part, str) for pair in found.items() for part in pair):
            return cast("Mapping[str, str]", found)
    wanted = "a schedule as explain() prints it, or a mapping from names of kernels to schedules"
    raise BadOption(name="schedule", found=found, wanted=wanted)


def missing_help(name: str, known: str) -> str:
    """What to do about an operand that is not given: ``out`` can't be given by its name."""
    if name == "out":
        return "out= is memory for the result; operands of that name go in a mapping: kernel.call({'out': ...})"
    return f"the kernel takes {known}"
