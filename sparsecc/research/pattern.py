"""Where the entries of a tensor stand, without values: a mask, or sorted positions in row-major order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from sparsecc.elements import NUMPY
from sparsecc.formats import LevelArrays, parse_format
from sparsecc.storage.entries import from_coords
from sparsecc.storage.limits import volume
from sparsecc.storage.tensor import SparseTensor

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

CHUNK = 1 << 22
"""Cells that are drawn from one stream of random numbers: with another value, all patterns are others."""
NARROW = 1 << 31


@dataclass(frozen=True, eq=False)
class Pattern:
    """The pattern of a tensor; one of ``mask`` (of a matrix that is not very sparse) and ``keys`` is there."""

    shape: tuple[int, ...]
    mask: Mask | None = None
    """Shape ``shape``; True where an entry is."""
    keys: Ints | None = None
    """Row-major positions of the entries, increasing."""

    @property
    def nnz(self) -> int:
        if self.mask is not None:
            return int(np.count_nonzero(self.mask))
        assert self.keys is not None
        return len(self.keys)

    def coordinates(self) -> tuple[Ints, ...]:
        """The coordinates of the entries, one int64 array a dimension, in row-major order."""
        keys = self.keys if self.keys is not None else np.flatnonzero(self._mask)
        found: list[Ints] = []
        for extent in reversed(self.shape[1:]):
            keys, inner = np.divmod(keys, extent)
            found.append(inner)
        return (keys, *reversed(found))

    @property
    def _mask(self) -> Mask:
        assert self.mask is not None
        return self.mask

    def values(self, dtype: str, seed: int = 0) -> Array:
        """A value for each entry in row-major order: uniform in [0.5, 1.5) with either sign, never zero."""
        found = np.empty(self.nnz, NUMPY[dtype])
        rng = np.random.default_rng([seed, crc32(b"values")])
        for start in range(0, len(found), CHUNK):
            part = rng.random(min(CHUNK, len(found) - start), dtype=np.float32)
            part -= np.float32(0.5)
            part += np.copysign(np.float32(0.5), part)
            found[start : start + len(part)] = part * 1.0 if dtype == "f64" else part
        return found

    def dense(self, dtype: str, seed: int = 0) -> Array:
        """A dense array of ``shape`` with the values; memory: its own and that of the values."""
        values = self.values(dtype, seed)
        found = np.zeros(self.shape, NUMPY[dtype])
        if self.mask is None:
            assert self.keys is not None
            found.reshape(-1)[self.keys] = values
            return found
        done = 0
        for start, part in self._bands():
            count = int(np.count_nonzero(part))
            found[start : start + len(part)][part] = values[done : done + count]
            done += count
        return found

    def _bands(self) -> Iterator[tuple[int, Mask]]:
        """The mask in parts of some rows, each with its first row."""
        step = max(1, CHUNK // max(1, self.shape[1]))
        for start in range(0, self.shape[0], step):
            yield start, self._mask[start : start + step]

    def tensor(self, dtype: str, format: str = "", seed: int = 0) -> SparseTensor:
        """The tensor: a matrix in CSR, one of another rank in COO, unless a format is named."""
        wanted = format or ("CSR" if len(self.shape) == 2 else f"COO({len(self.shape)})")
        if len(self.shape) != 2:
            return from_coords(
                self.coordinates(), self.values(dtype, seed), self.shape, wanted, check="none"
            )
        positions, columns = self._csr()
        levels = (LevelArrays(), LevelArrays(positions, columns))
        made = SparseTensor(self.shape, parse_format("CSR"), levels, self.values(dtype, seed))
        return made if wanted == "CSR" else made.to(wanted)

    def _csr(self) -> tuple[Array, Array]:
        """Positions and columns of CSR: int32 where they fit."""
        rows, columns = self.shape
        width = np.int32 if max(self.nnz, rows, columns) < NARROW else np.int64
        if self.keys is not None:
            row, column = np.divmod(self.keys, max(columns, 1))
            positions = np.searchsorted(row, np.arange(rows + 1))
            return positions.astype(width), column.astype(width)
        counts = np.count_nonzero(self._mask, axis=1)
        positions = np.zeros(rows + 1, width)
        np.cumsum(counts, out=positions[1:])
        found = np.empty(int(positions[-1]), width)
        for start, part in self._bands():
            lo, hi = positions[start], positions[start + len(part)]
            found[lo:hi] = np.flatnonzero(part) % columns
        return positions, found

    def fingerprint(self) -> str:
        """A name of the pattern that another generator would not give: of its shape and all positions."""
        keys = self.keys if self.keys is not None else np.flatnonzero(self._mask)
        crc = crc32(repr(self.shape).encode())
        return f"{crc32(np.ascontiguousarray(keys, '<i8').tobytes(), crc):08x}"


def cells(shape: tuple[int, ...]) -> int:
    """How many cells a tensor has."""
    return volume(shape)
