"""Extents of a launch: those that operands share must agree before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sparsecc.diagnostics import OperandError
from sparsecc.kernel import Launch


class ExtentsDiffer(OperandError):
    text = "index {index!r} has {first} coordinates in one operand and {second} in another"
    help_text = "operands that share an index have the same extent in that dimension"


class Shaped(Protocol):
    """A tensor, as far as extents go."""

    @property
    def shape(self) -> tuple[int, ...]: ...


def extents_of(launch: Launch, tensors: Sequence[Shaped]) -> list[int]:
    """The extent of each group of dimensions. Raises ExtentsDiffer: a kernel must never run then."""
    found: list[int] = []
    for name, dims in launch.extents:
        number, dim = dims[0]
        first = tensors[number].shape[dim]
        for number, dim in dims[1:]:
            if (second := tensors[number].shape[dim]) != first:
                raise ExtentsDiffer(index=name, first=first, second=second, place=launch.source)
        found.append(first)
    return found


def result_shape(launch: Launch, tensors: Sequence[Shaped]) -> tuple[int, ...]:
    """The shape of a launch's result. Raises ExtentsDiffer."""
    extents = extents_of(launch, tensors)
    shape = tuple([extents[group] for group in launch.shape])
    for found, fixed, group in zip(shape, launch.static, launch.shape, strict=True):
        if fixed is not None and fixed != found:
            name = launch.extents[group][0]
            raise ExtentsDiffer(index=name, first=found, second=fixed, place=launch.source)
    return shape
