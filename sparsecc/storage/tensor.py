"""A sparse tensor in memory: per level positions and coordinates, then values.

A tensor is a total function: what is not stored is ``fill_value`` (0). ``values[p]`` belongs to
position ``p`` of the innermost level. Tensors are immutable by convention: operations give new
ones, sharing arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from sparsecc.diagnostics import LimitError, OperandError
from sparsecc.formats import Ability, Format, LevelArrays, known_name
from sparsecc.formats.level import AnyInts
from sparsecc.statistics import Statistics
from sparsecc.storage import compiled, limits
from sparsecc.storage.layout import block_depth, dim_coordinates, from_level_array, is_nonzero
from sparsecc.storage.order import combine, linear_key, sort_and_combine, sorted_order, split_key
from sparsecc.storage.plain import CONTIGUOUS_AND_ALIGNED, plain, plain_levels
from sparsecc.storage.validate import cheap_problems, level_problems

AnyArray = npt.NDArray[Any]
Check = Literal["full", "cheap", "none"]

LATE: dict[str, str] = {
    # what the upper floor of storage does for a tensor, loaded when asked
    "to": "sparsecc.storage.convert:convert",
    "to_scipy": "sparsecc.storage.exchange:to_scipy",
    "to_torch": "sparsecc.storage.exchange:to_torch",
    "save": "sparsecc.storage.files:write",
    "statistics": "sparsecc.storage.statistics:statistics",
}


class BadLevels(OperandError):
    text = "the {format} arrays of a tensor of shape {shape} are not valid: {problems}"
    help_text = "build it from its entries with from_coords, which sorts and checks"


class DenseTooLarge(LimitError):
    text = (
        "a dense {dtype} array of shape {shape} takes {bytes} bytes, over max_dense_bytes={limit}"
    )
    help_text = "keep it sparse, or raise max_dense_bytes"


def _late(name: str) -> Callable[..., Any]:
    module, _, attribute = LATE[name].partition(":")
    return cast(Callable[..., Any], getattr(import_module(module), attribute))


@dataclass(frozen=True, eq=False, repr=False)
class SparseTensor:
    """``levels[l]`` holds the arrays that the format's level ``l`` names; shapes are of dimensions.

    The constructor trusts its arguments; call :meth:`check` on arrays that come from outside."""

    shape: tuple[int, ...]
    format: Format
    levels: tuple[LevelArrays, ...]
    values: AnyArray
    parts: tuple[SparseTensor, ...] = ()
    """Of a tensor in a sum format: one tensor each. None otherwise."""

    def __post_init__(self) -> None:
        # Kernels read arrays as plain memory, of one width for each role.
        values = self.values
        both = CONTIGUOUS_AND_ALIGNED
        if values.flags.num & both != both or not values.dtype.isnative:
            native = values.dtype.newbyteorder("=")
            object.__setattr__(self, "values", plain(values, native))
        fmt = self.format
        levels = plain_levels(self.levels, fmt.pos_width, fmt.crd_width)
        if levels is not self.levels:
            object.__setattr__(self, "levels", levels)

    # -- facts ---------------------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def fill_value(self) -> Any:
        """What is not stored: 0 as a NumPy scalar of the dtype."""
        return self.dtype.type(0)

    @property
    def nnz(self) -> int:
        """Stored entries, explicit zeros included. Formats that store zeros of their own accord
        (dense, blocks, n:m, ELL) can't tell those apart: there it is the number of nonzero
        values."""
        if self.format.padded or self.format.is_dense:
            return int(np.count_nonzero(is_nonzero(self.values)))
        _, valid = self.walk(self.format.num_levels)
        return self.values.shape[0] if valid is None else int(np.count_nonzero(valid))

    @property
    def nbytes(self) -> int:
        """Bytes of values, positions and coordinates."""
        return self.values.nbytes + sum(a.nbytes for level in self.levels for _, a in level)

    @property
    def level_sizes(self) -> tuple[int, ...]:
        return self.format.level_sizes(self.shape)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        name, count = known_name(self.format), self.values.shape[0]
        return f"<SparseTensor {shape} {self.dtype} {name}, {count} values>"

    def astype(self, dtype: np.dtype[Any]) -> SparseTensor:
        """The tensor with values of another type."""
        return replace(self, values=self.values.astype(dtype))

    # -- walking -------------------------------------------------------------------------------

    def walk(self, depth: int) -> tuple[list[AnyInts], npt.NDArray[np.bool_] | None]:
        """The coordinates of every position of level ``depth - 1`` in each level down to it, and
        which positions are real (None: all)."""
        coords: list[AnyInts] = []
        valid: npt.NDArray[np.bool_] | None = None
        count = 1
        for k in range(depth):
            level = self.format.levels[k]
            step = level.unpack(self.levels[k], count, self.level_sizes[k])
            if level.name != "singleton":  # a singleton has its parents' positions
                coords = [c[step.parents] for c in coords]
                valid = None if valid is None else valid[step.parents]
            if step.valid is not None:
                valid = step.valid if valid is None else valid & step.valid
            coords.append(step.coordinates)
            count = len(step.coordinates)
        return coords, valid

    def entries(self) -> tuple[list[AnyInts], AnyArray]:
        """The stored entries in storage order: the coordinate in each *level*, and values.

        Padding is dropped: slots without a coordinate, and zeros of padded and of dense formats."""
        fmt, sizes = self.format, self.level_sizes
        depth = block_depth(self.format)
        coords, valid = self.walk(depth)
        if depth == fmt.num_levels:
            values = self.values
            if fmt.padded or fmt.is_dense:
                keep = is_nonzero(values)
                valid = keep if valid is None else valid & keep
            if valid is not None and not valid.all():
                coords, values = [c[valid] for c in coords], values[valid]
            return coords, values
        # The trailing dense levels are one block below each position: only nonzeros become entries.
        flat = np.flatnonzero(is_nonzero(self.values))
        if depth == 0:
            return split_key(flat, sizes), self.values[flat]
        tail = limits.volume(sizes[depth:])
        block = flat // tail if tail else flat
        if valid is not None and not valid.all():
            keep = valid[block]
            flat, block = flat[keep], block[keep]
        inner = split_key(flat - block * tail, sizes[depth:])
        return [c[block] for c in coords] + inner, self.values[flat]

    def statistics(self) -> Statistics:
        """The pattern in numbers; of more than two million entries partly estimated (``exact`` says so)."""
        return cast(Statistics, _late("statistics")(self))

    # -- checking ------------------------------------------------------------------------------

    def check(self, how: Check = "full", place: str = "") -> SparseTensor:
        """The tensor itself, if its arrays are what the format says.

        ``cheap`` looks at lengths and dtypes only, ``none`` at nothing. Raises BadLevels with all
        problems of the first bad level; ``place`` names the tensor in the message."""
        if how == "none":
            return self
        found = cheap_problems(self.shape, self.format, self.levels, self.values)
        if not found and how == "full":
            found = level_problems(self.shape, self.format, self.levels, self.values)
            found = found or self._entry_problems()
        if found:
            raise BadLevels(
                format=known_name(self.format),
                shape=self.shape,
                problems="; ".join(found),
                place=place,
            )
        return self

    def _entry_problems(self) -> list[str]:
        """What levels can't see alone: repeated entries, entries beyond the shape, values in
        padding."""
        fmt = self.format
        coords, valid = self.walk(fmt.num_levels) if not fmt.is_dense else ([], None)
        if valid is not None and np.any(is_nonzero(self.values[~valid])) and fmt.padded:
            return [
                f"padding at position {int(np.argmax(~valid & is_nonzero(self.values)))} is not zero"
            ]
        if not fmt.is_permutation:
            level_coords, _ = self.entries()
            for d, (c, extent) in enumerate(
                zip(dim_coordinates(fmt, level_coords), self.shape, strict=True)
            ):
                if len(c) and int(c.max()) >= extent:
                    return [
                        f"a value stands at {int(c.max())} in dimension {d}, outside [0, {extent})"
                    ]
        if (
            fmt.ordered
            and fmt.levels
            and fmt.levels[-1].name == "singleton"
            and fmt.levels[-1].unique
        ):
            order, first = sorted_order(coords, self.level_sizes, len(self.values))
            if order is not None:
                return ["entries are not sorted by their coordinates"]
            if first is not None:
                return [
                    f"entry {int(np.argmin(first))} repeats the coordinates of the one before it"
                ]
        return []

    def to_coords(self) -> tuple[tuple[AnyInts, ...], AnyArray]:
        """The stored entries, sorted lexicographically by dimension: int64 arrays, one a dimension,
        and values.

        Explicit zeros of formats without padding are kept; formats that store zeros of their own
        accord (dense, blocks, n:m, ELL) give their nonzeros."""
        level_coords, values = self.entries()
        coords = dim_coordinates(self.format, level_coords)
        coords, values = sort_and_combine(coords, values, self.shape)
        return tuple(c.astype(np.int64, copy=False) for c in coords), values

    # -- to other worlds -----------------------------------------------------------------------

    def to_numpy(self, max_dense_bytes: int = limits.MAX_DENSE_BYTES) -> AnyArray:
        """A dense array; a view of ``values`` for dense formats without blocks.

        Raises LimitError if it would take more than ``max_dense_bytes``."""
        sizes = self.level_sizes
        if self.format.is_dense:
            return from_level_array(self.values.reshape(sizes), self.format, self.shape)
        total = limits.volume(sizes)
        needed = max(total, limits.volume(self.shape)) * self.dtype.itemsize
        if needed > max_dense_bytes:
            raise DenseTooLarge(
                shape=self.shape, dtype=self.dtype, bytes=needed, limit=max_dense_bytes
            )
        depth = block_depth(self.format)
        if self.rank == 2 and depth == 2 and self.format.is_permutation and self._distinct:
            made = self._compiled_dense()
            if made is not None:
                return made
        coords, valid = self.walk(depth)
        tail = limits.volume(sizes[depth:])
        dense = np.zeros((limits.volume(sizes[:depth]), tail), dtype=self.dtype)
        blocks = self.values.reshape(len(coords[-1]), tail)
        if valid is not None and not valid.all():
            coords, blocks = [c[valid] for c in coords], blocks[valid]
        if total:
            self._scatter(dense, coords, blocks, sizes[:depth])
        return np.ascontiguousarray(from_level_array(dense.reshape(sizes), self.format, self.shape))

    @property
    def _distinct(self) -> bool:
        """Whether the format promises that no entry is repeated."""
        return self.format.ordered and self.format.levels[-1].unique

    def _compiled_dense(self) -> AnyArray | None:
        rows, columns = self.shape
        _, inner = self.levels
        if self.format.levels[0].can(Ability.FULL) and self.format.levels[1].name == "compressed":
            assert inner.positions is not None and inner.coordinates is not None
            arrays = inner.positions, inner.coordinates, self.values
            if self.format.dim_order == (0, 1):
                return compiled.rows_to_dense(arrays, (rows, columns))
            turned = compiled.transposed(arrays, (columns, rows))
            return None if turned is None else compiled.rows_to_dense(turned, (rows, columns))
        coords, values = self.entries()
        if not self.format.padded and self.format.levels[1].name == "singleton":
            # As they are stored: narrower than the int64 of a walk.
            stored = (level.coordinates for level in self.levels)
            coords = [compiled.signed(c) for c in stored if c is not None]
        row, column = dim_coordinates(self.format, coords)
        return compiled.entries_to_dense(row, column, values, (rows, columns))

    def _scatter(
        self, dense: AnyArray, coords: list[AnyInts], blocks: AnyArray, sizes: Sequence[int]
    ) -> None:
        key = linear_key(coords, sizes, len(blocks))
        assert key is not None, "a dense array of that many elements was just made"
        if not self._distinct and not (key[1:] > key[:-1]).all():
            order, first = sorted_order([key], [len(dense)], len(key))
            order = np.arange(len(key)) if order is None else order
            key, blocks = key[order], blocks[order]
            if first is not None:
                key, blocks = key[first], combine(blocks, first)
        if blocks.shape[1] == 1:
            dense.reshape(-1)[key] = blocks.reshape(-1)
        else:
            dense[key] = blocks

    def to_scipy(self) -> Any:
        """A SciPy sparse array: CSR, CSC, COO and BSR keep their arrays, other formats become
        COO."""
        return _late("to_scipy")(self)

    def to_torch(self) -> Any:
        """A torch tensor: CSR and dense as they are, other formats as coalesced COO."""
        return _late("to_torch")(self)

    def to(self, format: str | Format) -> SparseTensor:
        """The tensor in another format; itself if it is in that format already."""
        return cast(SparseTensor, _late("to")(self, format))

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file by its suffix: ``.mtx .mtx.gz .tns .npz .npy``."""
        _late("save")(self, path)
