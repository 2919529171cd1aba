"""Some slices of a dimension, drawn so that those stand for all: of large tensors, only these are looked at closely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparsecc.formats.level import AnyInts, Ints

Mask = npt.NDArray[np.bool_]

MOST_RUNS = 1 << 16
"""Runs of slices, of which some make the sample."""


@dataclass(frozen=True)
class Sample:
    """Runs of ``1 << shift`` neighbouring slices, taken whole. Runs of like numbers of entries make a class; of every
    class that has entries some are taken, evenly spread, so that a few heavy rows are neither missed nor scaled up."""

    shift: int
    classes: Ints
    """By run: the bit length of its number of entries."""
    chosen: Mask
    entries: Ints
    """By class."""

    @staticmethod
    def of(extent: int, used: Ints, counts: Ints, unit: int, part: float) -> Sample:
        """About that part of the slices, always the same ones, at least a run of each class. The slices with entries
        are ``used``, which have ``counts`` entries; runs are a multiple of ``unit`` (a power of two) slices."""
        shift = (unit - 1).bit_length()
        while (extent >> shift) > MOST_RUNS:
            shift += 1
        runs = -(-extent // (1 << shift))
        entries = np.bincount(used >> shift, weights=counts, minlength=runs)
        # frexp's exponent is the bit length of an integer below 2**53.
        classes = np.frexp(entries)[1].astype(np.int64)
        chosen = np.zeros(runs, np.bool_)
        for members in (np.flatnonzero(classes == c) for c in np.unique(classes) if c):
            chosen[members[evenly(len(members), part, seed=0)]] = True
        return Sample(
            shift, classes, chosen, np.bincount(classes, weights=entries).astype(np.int64)
        )

    def takes(self, coordinates: AnyInts) -> Mask:
        return self.chosen[coordinates >> self.shift]

    def has_some(self, first: int, end: int) -> bool:
        """Whether any of the slices ``[first, end)`` is taken."""
        return bool(self.chosen[first >> self.shift : ((end - 1) >> self.shift) + 1].any())

    def split(self, coordinates: AnyInts) -> Iterator[tuple[Ints, int]]:
        """The entries at coordinates that were taken, by class: which they are, and how many the class has in all."""
        classes = self.classes[coordinates >> self.shift]
        for number, entries in enumerate(self.entries.tolist()):
            if number and entries:
                yield np.flatnonzero(classes == number), entries


def evenly(count: int, part: float, seed: int) -> Ints:
    """About that part of ``range(count)``, at least one: it is cut into sections, of each one number is drawn."""
    wanted = min(count, max(1, round(count * part)))
    edges = np.linspace(0, count, wanted + 1).astype(np.int64)
    return np.random.default_rng(seed).integers(edges[:-1], edges[1:])


def windows(coordinates: AnyInts, extent: int, unit: int, part: float) -> Ints:
    """Which entries stand in some aligned windows of ``unit`` (a power of two) or more: about that part of them."""
    shift = (unit - 1).bit_length()
    while (extent >> shift) > MOST_RUNS:
        shift += 1
    chosen = np.zeros(-(-extent // (1 << shift)), np.bool_)
    chosen[coordinates >> shift] = True
    used = np.flatnonzero(chosen)
    chosen[:] = False
    chosen[used[evenly(len(used), part, seed=1)]] = True
    return np.flatnonzero(chosen[coordinates >> shift])
