"""A tensor in a sum format: parts of one shape and type, whose sum it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecc.diagnostics import InternalError
from sparsecc.formats import SumFormat, known_name, sum_format
from sparsecc.formats.level import AnyInts
from sparsecc.storage import limits
from sparsecc.storage.layout import AnyArray, dim_coordinates, is_nonzero
from sparsecc.storage.order import linear_key, sort_and_combine
from sparsecc.storage.tensor import BadLevels, Check, DenseTooLarge, SparseTensor


@dataclass(frozen=True, eq=False, repr=False)
class SumTensor(SparseTensor):
    """``parts`` hold everything: ``levels`` are none, and ``values`` an empty array of the element type."""

    def __post_init__(self) -> None:
        assert isinstance(self.format, SumFormat)
        pairs = zip(self.parts, self.format.parts, strict=True)
        parts = tuple(p if p.format == f else replace(p, format=f) for p, f in pairs)
        object.__setattr__(self, "parts", parts)

    @property
    def nnz(self) -> int:
        """The stored entries of all parts."""
        return sum(part.nnz for part in self.parts)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        counts = " + ".join(str(len(part.values)) for part in self.parts)
        return f"<SparseTensor {shape} {self.dtype} {known_name(self.format)}, {counts} values>"

    def astype(self, dtype: np.dtype[Any]) -> SparseTensor:
        return sum_tensor([part.astype(dtype) for part in self.parts])

    def walk(self, depth: int) -> tuple[list[AnyInts], npt.NDArray[np.bool_] | None]:
        raise InternalError("a sum has no levels to walk")

    def entries(self) -> tuple[list[AnyInts], AnyArray]:
        raise InternalError("a sum has no levels with entries")

    def check(self, how: Check = "full", place: str = "") -> SparseTensor:
        """The tensor itself, if its parts are of one shape and type and each is what its format says."""
        if how == "none":
            return self
        for number, part in enumerate(self.parts):
            if part.shape != self.shape or part.dtype != self.dtype:
                problem = (
                    f"part {number} has shape {part.shape} and dtype {part.dtype}, not {self.dtype}"
                )
                raise BadLevels(
                    format=known_name(self.format),
                    shape=self.shape,
                    problems=problem,
                    place=place,
                )
            part.check(how, place or f"part {number}")
        return self

    def to_coords(self) -> tuple[tuple[AnyInts, ...], AnyArray]:
        """The entries of all parts, sorted; those of several parts are added."""
        found = [part.to_coords() for part in self.parts]
        coords = [np.concatenate(columns) for columns in zip(*(c for c, _ in found), strict=True)]
        values = np.concatenate([v for _, v in found])
        coords, values = sort_and_combine(coords, values, self.shape)
        return tuple(c.astype(np.int64, copy=False) for c in coords), values

    def to_numpy(self, max_dense_bytes: int = limits.MAX_DENSE_BYTES) -> AnyArray:
        total = limits.volume(self.shape) * self.dtype.itemsize
        if total > max_dense_bytes:
            raise DenseTooLarge(
                dtype=self.dtype, shape=self.shape, bytes=total, limit=max_dense_bytes
            )
        dense = np.array(self.parts[0].to_numpy(max_dense_bytes), order="C")
        for part in self.parts[1:]:
            coords, values = part.entries()
            coords = dim_coordinates(part.format, coords)
            key = linear_key(coords, self.shape, len(values))
            assert key is not None, "a dense array of that many elements was just made"
            if is_nonzero(dense.reshape(-1)[key]).any() or not part.format.levels[-1].unique:
                return self._added_up()
            dense.reshape(-1)[key] = values
        return dense

    def _added_up(self) -> AnyArray:
        """The dense array where entries stand in several parts."""
        coords, values = self.to_coords()
        dense = np.zeros(self.shape, self.dtype)
        dense[coords] = values
        return dense


def sum_tensor(parts: Sequence[SparseTensor]) -> SumTensor:
    """The sum of parts of one shape and type, in a format of its own each."""
    first = parts[0]
    fmt = sum_format([part.format for part in parts])
    return SumTensor(first.shape, fmt, (), np.zeros(0, first.dtype), tuple(parts))
