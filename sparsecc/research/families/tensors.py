"""Tensors of three and more dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecc.research.families.draw import Random, bernoulli_keys, distinct, stream
from sparsecc.research.families.graphs import by_weight, zipf_weights
from sparsecc.research.pattern import Ints, Pattern, cells

FIRST = 1 << 20
"""Streams from here on are not those of draws."""


def _keys(coordinates: Sequence[Ints], shape: Sequence[int]) -> Ints:
    """Row-major positions of the entries that are within the shape."""
    inside = np.ones(len(coordinates[0]), np.bool_)
    for c, extent in zip(coordinates, shape, strict=True):
        inside &= (c >= 0) & (c < extent)
    keys = coordinates[0][inside]
    for c, extent in zip(coordinates[1:], shape[1:], strict=True):
        keys = keys * extent + c[inside]
    return keys


def tensor_iid(shape: Sequence[int], entries: int, seed: int) -> Pattern:
    """Each cell is an entry with the same probability, ``entries`` are expected."""
    extents = tuple(shape)
    density = min(1.0, entries / max(1, cells(extents)))
    return Pattern(extents, keys=bernoulli_keys("tensor-iid", cells(extents), density, seed))


def tensor_clustered(
    shape: Sequence[int], entries: int, clusters: int, spread: float, seed: int
) -> Pattern:
    """Entries around random centres, at a normal distance of deviation ``spread`` in each dimension."""
    extents = tuple(shape)
    rng = stream("tensor-clustered", seed, FIRST)
    centres = [rng.integers(0, extent, clusters) for extent in extents]

    def draw(rng: Random, count: int) -> Ints:
        which = rng.integers(0, clusters, count)
        away = np.rint(rng.standard_normal((len(extents), count)) * spread).astype(np.int64)
        return _keys([c[which] + a for c, a in zip(centres, away, strict=True)], extents)

    keys = distinct("tensor-clustered", cells(extents), entries, seed, draw)
    return Pattern(extents, keys=keys)


def tensor_power_law(shape: Sequence[int], entries: int, exponent: float, seed: int) -> Pattern:
    """The first dimensions of a power law, the last uniform: few fibers hold most entries."""
    extents = tuple(shape)
    sums = [
        zipf_weights(extent, exponent, stream("tensor-power-law", seed, FIRST + d))
        for d, extent in enumerate(extents[:-1])
    ]

    def draw(rng: Random, count: int) -> Ints:
        first = [by_weight(s, rng, count) for s in sums]
        return _keys([*first, rng.integers(0, extents[-1], count)], extents)

    keys = distinct("tensor-power-law", cells(extents), entries, seed, draw)
    return Pattern(extents, keys=keys)
