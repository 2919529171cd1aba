"""How often each coordinate occurs: portions are added, then asked for the coordinates that occur."""

from __future__ import annotations

import numpy as np

from sparsecc.formats.level import AnyInts, Ints
from sparsecc.statistics import Lengths


class Tally:
    """Of coordinates in ``[0, extent)``, of which about ``expected`` will be added.

    A counter for each coordinate where these take no more memory than the entries, else sorted lists."""

    def __init__(self, extent: int, expected: int) -> None:
        self.extent = extent
        small = extent <= 8 * expected + 1024
        self._counts: Ints | None = np.zeros(extent, np.int64) if small else None
        self._waiting: list[AnyInts] = []
        self._lists: list[tuple[AnyInts, Ints]] = []

    def add(self, coordinates: AnyInts) -> None:
        if not len(coordinates):
            return
        if self._counts is None:
            self._lists.append(np.unique(coordinates, return_counts=True))
            return
        low = int(coordinates.min())
        if int(coordinates.max()) - low < 2 * len(coordinates):
            # Rows of a portion are neighbours: only their counters are touched.
            self.add_counts(np.bincount(coordinates - low if low else coordinates), low)
            return
        self._waiting.append(coordinates)
        if sum(map(len, self._waiting)) >= self.extent // 2:
            self._count()

    def _count(self) -> None:
        """Count those that were put off until they are about as many as the counters."""
        if self._waiting and self._counts is not None:
            waiting = np.concatenate(self._waiting)
            self._counts += np.bincount(waiting, minlength=self.extent)
            self._waiting.clear()

    def add_counts(self, counts: AnyInts, first: int = 0) -> None:
        """Counts of neighbouring coordinates."""
        if self._counts is None:
            used = np.flatnonzero(counts)
            self._lists.append((used + first, counts[used].astype(np.int64)))
        else:
            self._counts[first : first + len(counts)] += counts

    def used(self) -> tuple[Ints, Ints]:
        """The coordinates that occur, ascending, and how often each does."""
        self._count()
        if self._counts is not None:
            at = np.flatnonzero(self._counts)
            return at, self._counts[at]
        if not self._lists:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        coordinates = np.concatenate([c for c, _ in self._lists])
        counts = np.concatenate([n for _, n in self._lists])
        distinct, which = np.unique(coordinates, return_inverse=True)
        total = np.bincount(which.reshape(-1), weights=counts, minlength=len(distinct))
        return distinct.astype(np.int64), total.astype(np.int64)


def lengths(extent: int, counts: Ints) -> Lengths:
    """The lengths of all slices of a dimension, from those of the slices that have entries."""
    empty = extent - len(counts)
    total = int(counts.sum())
    mean = total / extent if extent else 0.0
    spread = float(((counts - mean) ** 2).sum()) + empty * mean**2
    # frexp's exponent is the bit length of an integer below 2**53.
    bits = np.bincount(np.frexp(counts.astype(np.float64))[1])
    bins = (empty, *bits[1:].tolist()) if extent else ()
    return Lengths(
        extent=extent,
        used=len(counts),
        largest=int(counts.max()) if len(counts) else 0,
        mean=mean,
        deviation=float(np.sqrt(spread / extent)) if extent else 0.0,
        bins=bins,
        smallest=int(counts.min()) if len(counts) and not empty else 0,
    )
