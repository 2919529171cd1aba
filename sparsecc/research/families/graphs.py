"""Matrices whose rows differ: graphs of a power law, and rows of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecc.diagnostics import UsageError
from sparsecc.research.families.draw import Random, distinct, refuse_many, stream
from sparsecc.research.pattern import Ints, Pattern


class BadQuadrants(UsageError):
    text = "quadrants {quadrants} are not four shares that add up to 1"
    help_text = "those of the Graph 500 benchmark are 0.57, 0.19, 0.19, 0.05"


def rmat(rows: int, columns: int, density: float, quadrants: Sequence[float], seed: int) -> Pattern:
    """Entries by recursive quadrants (R-MAT): few rows and columns hold most of them.

    Extents that are no powers of two: what falls outside is drawn again."""
    if len(quadrants) != 4 or min(quadrants) < 0 or abs(sum(quadrants) - 1) > 1e-9:
        raise BadQuadrants(quadrants=list(quadrants))
    a, b, c = (round(65536 * share) for share in np.cumsum(quadrants)[:3])
    bits = max(1, (rows - 1).bit_length()), max(1, (columns - 1).bit_length())

    def draw(rng: Random, count: int) -> Ints:
        row, column = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
        for level in range(max(bits)):
            number = rng.integers(0, 65536, count, dtype=np.uint16)
            low = number >= b
            right = (number >= a) & (~low | (number >= c))
            if level < bits[0]:
                row <<= 1
                row |= low
            if level < bits[1]:
                column <<= 1
                column |= right
        inside = (row < rows) & (column < columns)
        return row[inside].astype(np.int64) * columns + column[inside]

    wanted = round(rows * columns * density)
    return Pattern((rows, columns), keys=distinct("rmat", rows * columns, wanted, seed, draw))


def preferential(rows: int, edges: int, seed: int) -> Pattern:
    """An undirected graph (Barabasi and Albert): each vertex links to ``edges`` earlier ends of links, so that those
    that have many get more. Symmetric, without loops."""
    refuse_many("preferential", 2 * rows * edges)
    count = rows * edges
    # Batagelj and Brandes: the ends of links in a row; an odd place repeats an earlier place.
    source = np.arange(count, dtype=np.int64) // max(edges, 1)
    pointer = (stream("preferential", seed).random(count) * (2 * np.arange(count) + 1)).astype(
        np.int64
    )
    while True:
        odd = np.flatnonzero(pointer & 1)
        if not len(odd):
            break
        pointer[odd] = pointer[pointer[odd] >> 1]
    target = source[pointer >> 1]
    links = source != target
    one, other = source[links], target[links]
    keys = np.unique(np.concatenate([one * rows + other, other * rows + one]))
    return Pattern((rows, rows), keys=keys)


def zipf_weights(extent: int, exponent: float, rng: Random) -> Ints:
    """Sums of shares that fall off with the power of the rank, in a random order, scaled to 2**53."""
    shares = np.arange(1, extent + 1, dtype=np.float64) ** -exponent
    rng.shuffle(shares)
    sums = np.cumsum(shares)
    return (sums * (2.0**53 / sums[-1])).astype(np.int64)


def by_weight(sums: Ints, rng: Random, count: int) -> Ints:
    """Positions drawn by shares."""
    found = np.searchsorted(sums, rng.integers(0, 1 << 53, count), side="right")
    return np.minimum(found, len(sums) - 1)


def zipf_rows(rows: int, columns: int, density: float, exponent: float, seed: int) -> Pattern:
    """Rows of a power law, columns uniform within them; a row holds each column once."""
    sums = zipf_weights(rows, exponent, stream("zipf-rows", seed, 1 << 20))

    def draw(rng: Random, count: int) -> Ints:
        return by_weight(sums, rng, count) * columns + rng.integers(0, columns, count)

    wanted = round(rows * columns * density)
    return Pattern((rows, columns), keys=distinct("zipf-rows", rows * columns, wanted, seed, draw))
