"""What a compilation is asked for, as plain data: the key of every cache."""

from __future__ import annotations

from dataclasses import dataclass

from sparsecc.statistics import Statistics


@dataclass(frozen=True)
class OperandSpec:
    """What a program is compiled for: extents (None: any), element type, format (None: to be chosen)."""

    shape: tuple[int | None, ...]
    dtype: str
    format: str | None


@dataclass(frozen=True)
class Request:
    """All that a compilation depends on.

    ``out_dtype``: what operands are converted to before they are multiplied. ``kind``: ``expression``, ``einsum`` or
    ``mlir``. What follows ``name`` is for GPUs: how large a contraction is where types don't say it (``tokens``: at
    most so many; None: open), whether its dense operand is ``aligned`` to 16 bytes and contiguous extents are ``even``,
    multiples of 16; whether more programs than an axis of a grid has room for make it ``folded`` into the first axis;
    what is known of a packed weight (``steps`` and ``entries`` of its chunks) or of a matrix of sparse
    rows (their mean ``length``, and whether some are much longer: ``skewed``); and ``schedules`` of kernels by name,
    where the first is not the one.

    Of a plan: ``chosen``, formats of tensors by name that neither ``operands`` nor ``out`` say, and ``engines``, who
    computes each ``linalg`` operation of the program in order: libraries by name, or ``generated`` (none: all are).

    The rest is for choosing a plan and no longer there once it is chosen: ``statistics`` and ``stored`` (formats of the
    data) of open operands by name, ``shapes`` of the operands that are there, extents of indices that nothing else
    says (``sizes``), the ``strategy``, and over how many ``calls`` conversions are spread (None: not counted)."""

    kind: str
    text: str
    operands: tuple[tuple[str, OperandSpec], ...] = ()
    out: str | None = None
    out_dtype: str | None = None
    target: str = "cpu"
    entry: str = "main"
    name: str = "<expression>"
    tokens: int | None = None
    rows: int | None = None
    reduction: int | None = None
    aligned: bool = True
    even: bool = False
    folded: bool = False
    steps: int | None = None
    entries: int | None = None
    length: int | None = None
    skewed: bool | None = None
    schedules: tuple[tuple[str, str], ...] = ()
    chosen: tuple[tuple[str, str], ...] = ()
    engines: tuple[str, ...] = ()
    statistics: tuple[tuple[str, Statistics], ...] = ()
    stored: tuple[tuple[str, str], ...] = ()
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    strategy: str | None = None
    calls: float | None = None
