"""Masks of pruned networks: weights with the scales of their rows and columns, pruned by magnitude or by the
activations that they meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc.research.families.draw import Random, by_bands, stream
from sparsecc.research.pattern import Mask, Pattern

Floats = npt.NDArray[np.floating[Any]]

SPREAD = 0.3
"""The deviation of the logarithm of a row's or a column's scale."""
OUTLIER = 8.0
SAMPLE = 1 << 21
TOKENS = 256
FIRST = 1 << 20
"""Streams from here on are not those of bands."""


def _settled(scales: Floats) -> Floats:
    """Scales to twelve binary places: the last digits of exponentials and products are not the same on all machines,
    and a mask has to be."""
    return (np.rint(scales * 4096) / 4096).astype(np.float32)


def _scales(rng: Random, count: int) -> Floats:
    return _settled(np.exp(SPREAD * rng.standard_normal(count)))


def _column_scales(family: str, columns: int, outliers: float, seed: int) -> Floats:
    rng = stream(family, seed, FIRST)
    scales = _scales(rng, columns)
    scales[rng.random(columns) < outliers] *= OUTLIER
    return scales


def magnitude(rows: int, columns: int, density: float, outliers: float, seed: int) -> Pattern:
    """Normal weights with scales of rows and of columns, some columns (a share ``outliers``) eight times as large; one
    threshold for all, taken from a sample of two million weights."""
    wide = _column_scales("magnitude", columns, outliers, seed)
    rng = stream("magnitude", seed, FIRST + 1)
    tall = _scales(rng, rows)
    sample = np.abs(rng.standard_normal(SAMPLE, dtype=np.float32))
    sample *= tall[rng.integers(0, rows, SAMPLE)]
    sample *= wide[rng.integers(0, columns, SAMPLE)]
    threshold = np.quantile(sample, 1 - density).astype(np.float32)
    if density in (0, 1):  # a sample's largest and smallest are not those of all
        threshold = np.float32(np.inf if density == 0 else 0)

    def fill(rng: Random, first: int, count: int) -> Mask:
        weights = rng.standard_normal((count, columns), dtype=np.float32)
        np.abs(weights, out=weights)
        weights *= wide
        return weights >= (threshold / tall[first : first + count])[:, None]

    return Pattern((rows, columns), by_bands("magnitude", rows, columns, seed, fill))


def wanda(
    rows: int, columns: int, density: float, outliers: float, rank: int, seed: int
) -> Pattern:
    """Normal weights times the norms of the activations of their columns, the largest of each row kept.

    Activations are correlated (``rank`` shared factors and noise of their own), and some channels (a share
    ``outliers``) eight times as large."""
    rng = stream("wanda", seed, FIRST + 1)
    factors = rng.standard_normal((TOKENS, rank))
    loads = rng.standard_normal((rank, columns)) / rank**0.5
    seen = factors @ loads + rng.standard_normal((TOKENS, columns)) / 2
    norms = _settled(np.sqrt((seen * seen).mean(axis=0)))
    norms *= _column_scales("wanda", columns, outliers, seed)
    kept = round(columns * density)

    def fill(rng: Random, _first: int, count: int) -> Mask:
        if kept == 0:
            return np.zeros((count, columns), np.bool_)
        scores = rng.standard_normal((count, columns), dtype=np.float32)
        np.abs(scores, out=scores)
        scores *= norms
        least = np.partition(scores, columns - kept, axis=1)[:, columns - kept]
        return scores >= least[:, None]

    return Pattern((rows, columns), by_bands("wanda", rows, columns, seed, fill))
