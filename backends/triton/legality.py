"""Refusals of the writers of fragment kernels: schedules that the hardware or the text can't have."""

from __future__ import annotations

from collections.abc import Mapping

from sparsecc.diagnostics import SparseccError

SHARED_BYTES = {"sm_80": 163 * 1024, "sm_90": 227 * 1024, "sm_100": 227 * 1024}
"""Shared memory that one block can have."""


class LegalityError(SparseccError):
    """A schedule that no kernel can have."""

    text = "the schedule of family '{family}' is illegal: {message}"


def need(schedule: Mapping[str, int], family: str, name: str, least: int = 1) -> int:
    """A parameter of a schedule, at least ``least``."""
    if name not in schedule:
        raise LegalityError(
            f"it has no parameter '{name}'", family=family, help=f"give {name}=…, {least} or more"
        )
    if schedule[name] < least:
        raise LegalityError(
            f"{name} is {schedule[name]}", family=family, help=f"give {name} {least} or more"
        )
    return schedule[name]


def power(schedule: Mapping[str, int], family: str, name: str, most: int) -> int:
    """A parameter that counts registers, lanes or warps of a layout: a power of two."""
    value = need(schedule, family, name)
    if value & (value - 1) or value > most:
        powers = ", ".join(str(1 << i) for i in range(most.bit_length()))
        raise LegalityError(f"{name} is {value}", family=family, help=f"{name} is one of {powers}")
    return value


def known(schedule: Mapping[str, int], family: str, names: tuple[str, ...]) -> None:
    """Nothing in a schedule is overlooked."""
    for name in schedule:
        if name not in names:
            raise LegalityError(
                f"it has no meaning for '{name}'",
                family=family,
                help=f"its parameters are {', '.join(names)}",
            )


def fits_shared(target: str, family: str, size: int, remedy: str) -> None:
    """The shared memory of a block exists."""
    most = SHARED_BYTES.get(target)
    if most is None:
        raise LegalityError(
            f"target {target} has no mma.sp kernels",
            family=family,
            help=f"compile for one of {', '.join(SHARED_BYTES)}",
        )
    if size > most:
        raise LegalityError(
            f"a block needs {size} bytes of shared memory, {target} has {most}",
            family=family,
            help=remedy,
        )
