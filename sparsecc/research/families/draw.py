"""Drawing in parts: each part of a pattern has its own stream of random numbers, so parts are drawn side by side and
always come out the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import combinations
from math import comb
from zlib import crc32

import numpy as np

from sparsecc.diagnostics import LimitError, UsageError
from sparsecc.research.pattern import CHUNK, Ints, Mask

Random = np.random.Generator

MAX_MASK = 1 << 32
"""Cells of a mask, one byte each."""
MAX_ENTRIES = 1 << 29
TABLED = 1 << 16
ROUNDS = 60
THREADS = 16


class PatternTooLarge(LimitError):
    text = "a pattern of family {family!r} takes {found} {what}, and at most {limit} are made"
    help_text = "make it smaller or sparser"


class Saturated(UsageError):
    text = "family {family!r} gives {found} different entries of the {wanted} that were asked for"
    help_text = "ask for fewer entries, or for a larger tensor: its crowded part is full"


def stream(family: str, seed: int, *part: int) -> Random:
    """The random numbers of a part of a pattern."""
    return np.random.default_rng([seed, crc32(family.encode()), *part])


def refuse_large_mask(family: str, rows: int, columns: int) -> None:
    """Raise PatternTooLarge before memory is taken."""
    if rows * columns > MAX_MASK:
        raise PatternTooLarge(family=family, found=rows * columns, what="cells", limit=MAX_MASK)


def refuse_many(family: str, entries: float) -> None:
    """Raise PatternTooLarge before memory is taken."""
    if entries > MAX_ENTRIES:
        raise PatternTooLarge(family=family, found=int(entries), what="entries", limit=MAX_ENTRIES)


def by_bands(
    family: str,
    rows: int,
    columns: int,
    seed: int,
    fill: Callable[[Random, int, int], Mask],
    multiple: int = 1,
) -> Mask:
    """A mask drawn in bands of rows, several at once: ``fill(random, first row, rows)`` gives one.

    The rows of a band, but for the last, are a multiple of ``multiple``."""
    refuse_large_mask(family, rows, columns)
    found = np.empty((rows, columns), np.bool_)
    step = max(1, CHUNK // max(1, columns) // multiple) * multiple

    def draw(band: int) -> None:
        start = band * step
        count = min(step, rows - start)
        found[start : start + count] = fill(stream(family, seed, band), start, count)

    bands = range((rows + step - 1) // step)
    if len(bands) < 2:
        for band in bands:
            draw(band)
    else:  # NumPy lets go of the interpreter while it draws
        with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1, len(bands))) as pool:
            list(pool.map(draw, bands))
    return found


def bernoulli_keys(family: str, total: int, density: float, seed: int) -> Ints:
    """Increasing positions below ``total``, each there with probability ``density``: by the gaps between them."""
    refuse_many(family, total * density)
    if total == 0 or density == 0:
        return np.zeros(0, np.int64)
    if density == 1:
        return np.arange(total, dtype=np.int64)
    rng = stream(family, seed)
    parts: list[Ints] = []
    last, scale = -1, -1.0 / np.log1p(-density)
    while last < total:
        missing = (total - last) * density
        gaps = rng.standard_exponential(int(missing + 4 * missing**0.5) + 16)
        gaps *= scale  # the whole part of an exponential is geometric
        # Below 2**53 steps no sum of gaps is rounded.
        keys = np.minimum(gaps, 2.0**52).astype(np.int64)
        keys += 1
        np.cumsum(keys, out=keys)
        keys += last
        parts.append(keys)
        last = int(keys[-1])
    keys = np.concatenate(parts)
    return keys[: np.searchsorted(keys, total)]


def choose(rng: Random, count: int, n: int, m: int) -> Mask:
    """For each of ``count`` groups which ``n`` of ``m`` are chosen, shape (count, m)."""
    if comb(m, n) <= TABLED:
        table = _choices(n, m)
        return table[rng.integers(0, len(table), count, dtype=np.uint32)]
    keys = rng.random((count, m), dtype=np.float32)
    found = np.zeros((count, m), np.bool_)
    np.put_along_axis(found, np.argpartition(keys, n - 1, axis=1)[:, :n], True, axis=1)
    return found


@lru_cache(maxsize=64)
def _choices(n: int, m: int) -> Mask:
    """All ways to choose ``n`` of ``m``, in lexicographic order."""
    ways = list(combinations(range(m), n))
    found = np.zeros((len(ways), m), np.bool_)
    np.put_along_axis(found, np.array(ways, np.int64).reshape(len(ways), n), True, axis=1)
    return found


def distinct(
    family: str, total: int, wanted: int, seed: int, draw: Callable[[Random, int], Ints]
) -> Ints:
    """About ``wanted`` different positions below ``total``, increasing: ``draw(random, count)`` is asked until at most
    one in 200 is missing. Raises Saturated."""
    refuse_many(family, wanted)
    crowded = wanted * 256 > total and total <= MAX_MASK // 4
    taken = np.zeros(total if crowded else 0, np.bool_)
    keys = np.zeros(0, np.int64)
    have = 0
    for turn in range(ROUNDS):
        missing = wanted - have
        if missing <= wanted // 200:
            break
        count = max(1024, missing * 5 // 4)
        parts = range((count + CHUNK - 1) // CHUNK)

        def part(k: int, turn: int = turn, count: int = count) -> Ints:
            return draw(stream(family, seed, turn, k), min(CHUNK, count - k * CHUNK))

        with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1, len(parts))) as pool:
            drawn = list(pool.map(part, parts))
        if crowded:
            for new in drawn:
                taken[new] = True
            have = int(np.count_nonzero(taken))
        else:
            keys = np.unique(np.concatenate([keys, *drawn]))
            have = len(keys)
    else:
        raise Saturated(family=family, found=have, wanted=wanted)
    if crowded:
        keys = np.flatnonzero(taken)
    if have > wanted:
        surplus = stream(family, seed, ROUNDS).choice(have, have - wanted, replace=False)
        keys = np.delete(keys, surplus)
    return keys
