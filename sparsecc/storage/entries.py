"""From the objects of other libraries, and from lists of entries, to tensors: validated, zero-copy
where possible."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, Literal, cast

import numpy as np

from sparsecc.diagnostics import OperandError, UsageError
from sparsecc.formats import Format, LevelArrays, LevelExpr, dense_format, parse_format
from sparsecc.formats.level import AnyInts
from sparsecc.formats.levels.dense import Dense
from sparsecc.formats.spelling import RankOfFormat
from sparsecc.storage.layout import AnyArray
from sparsecc.storage.order import sorted_order
from sparsecc.storage.pack import pack
from sparsecc.storage.tensor import Check, SparseTensor
from sparsecc.storage.validate import DTYPES

MASKED: Any = np.ma.MaskedArray


class UnsupportedDtype(OperandError):
    text = "values of dtype {dtype} are not supported"
    help_text = "convert them first, e.g. with .astype('{instead}'); supported: {known}"


class EntryOutOfRange(OperandError, IndexError):
    text = "entry {entry} has coordinate {coordinate} in dimension {dim}, outside [0, {extent})"
    help_text = "coordinates count from 0; check the shape {shape}"


class RepeatedEntry(OperandError):
    text = "entry {entry} repeats the coordinates {coords} of an earlier one"
    help_text = "pass duplicates='sum' to add repeated entries"


class BadEntries(OperandError):
    text = "the coordinates of entries are malformed: {problem}"
    help_text = "pass one integer array for each of the {rank} dimensions, all as long as values"


class BadShape(OperandError):
    text = "{shape!r} is not a shape: {problem}"
    help_text = "pass a tuple of integers of at least 0, one a dimension"


class MaskedArray(OperandError):
    text = "{count} entries of a masked array have no value"
    help_text = "fill it with .filled(0), or keep the others with .compressed()"


class UnknownObject(OperandError):
    text = "can't make a tensor of {what}"
    help_text = "pass a NumPy array, a SciPy sparse matrix, a torch tensor, or use from_coords"


def supported_values(values: Any, place: str = "") -> AnyArray:
    """The values as an array of a supported dtype in this machine's byte order; raises
    UnsupportedDtype, and MaskedArray if any is masked."""
    array = unmasked(values)
    if array.dtype.name not in DTYPES:
        instead = "complex128" if array.dtype.kind == "c" else "float64"
        raise UnsupportedDtype(
            dtype=array.dtype, instead=instead, known=", ".join(DTYPES), place=place
        )
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def unmasked(values: Any) -> AnyArray:
    """An array, unless entries of it are masked: NumPy would give what is behind the mask."""
    if isinstance(values, MASKED):
        count = int(np.count_nonzero(np.ma.getmaskarray(values)))
        if count:
            raise MaskedArray(count=count)
    return np.asarray(values)


def checked_shape(shape: Sequence[Any]) -> tuple[int, ...]:
    """The shape as plain integers; raises BadShape."""
    extents: list[int] = []
    try:
        given: list[Any] = list(shape)
    except TypeError:
        raise BadShape(shape=shape, problem="it is not a sequence") from None
    for extent in given:
        try:
            number = None if isinstance(extent, bool | np.bool_) else index(extent)
        except TypeError:
            number = None
        if number is None:
            raise BadShape(shape=shape, problem=f"{extent!r} is not an integer")
        if not 0 <= number < 2**63:
            raise BadShape(shape=shape, problem=f"{extent} is outside [0, 2**63)")
        extents.append(number)
    return tuple(extents)


def resolved(fmt: str | Format, rank: int) -> Format:
    """A format by its spelling, for tensors of that rank; raises FormatError, and UsageError for
    what is neither text nor a format."""
    if isinstance(fmt, str):
        return parse_format(fmt, rank)
    if not isinstance(cast(Any, fmt), Format):
        raise UsageError(
            f"a format is text or a Format, not of type {type(fmt).__name__}",
            help="write its name, such as 'CSR'",
        )
    if fmt.rank != rank:
        raise RankOfFormat(spelling=str(fmt), found=fmt.rank, wanted=rank)
    return fmt


def from_coords(
    coords: Any,
    values: Any,
    shape: Sequence[int],
    format: str | Format = "COO",
    duplicates: Literal["sum", "error"] = "sum",
    check: Check = "full",
) -> SparseTensor:
    """A tensor of the entries ``coords[d][e], values[e]``, in any order.

    ``coords`` is an integer array of shape (rank, nnz) or one array a dimension; ``values`` has
    shape (nnz,) or is a scalar for all entries. Repeated entries are added (bool: or; integers wrap
    around in the values' dtype), or refused with ``duplicates="error"``. ``check="none"`` trusts
    that coordinates are in range. Raises EntryOutOfRange, RepeatedEntry, BadEntries, BadShape,
    UnsupportedDtype and FormatError."""
    extents = checked_shape(shape)
    if duplicates not in ("sum", "error"):
        raise OperandError(f"duplicates={duplicates!r} is neither 'sum' nor 'error'")
    fmt = resolved(format, len(extents))
    arrays = _coordinate_arrays(coords, len(extents))
    count = len(arrays[0]) if arrays else np.asarray(values).size
    stored = supported_values(values)
    if stored.ndim == 0 or (stored.shape == (1,) and count != 1 and arrays):
        stored = np.repeat(stored.reshape(1), count)
    if stored.shape != (count,):
        raise BadEntries(
            problem=f"values have shape {stored.shape}, not ({count},)", rank=len(extents)
        )
    if check != "none":
        refuse_out_of_range(arrays, extents)
    if duplicates == "error":
        refuse_repeated(arrays, extents, count)
    return pack([a.astype(np.int64, copy=False) for a in arrays], stored, extents, fmt)


def _coordinate_arrays(coords: Any, rank: int) -> list[AnyInts]:
    try:
        given = [unmasked(c) for c in coords]
    except (TypeError, ValueError) as error:
        raise BadEntries(problem=str(error), rank=rank) from None
    if len(given) != rank:
        raise BadEntries(problem=f"{len(given)} coordinate arrays for {rank} dimensions", rank=rank)
    arrays: list[AnyInts] = []
    for d, array in enumerate(given):
        if array.ndim != 1:
            raise BadEntries(problem=f"those of dimension {d} have shape {array.shape}", rank=rank)
        if array.dtype.kind not in "iu" and array.size:
            raise BadEntries(
                problem=f"those of dimension {d} are {array.dtype}, not integers", rank=rank
            )
        if len(array) != len(given[0]):
            problem = f"dimension {d} has {len(array)} coordinates, dimension 0 has {len(given[0])}"
            raise BadEntries(problem=problem, rank=rank)
        arrays.append(array if array.size else np.zeros(0, dtype=np.int64))
    return arrays


def refuse_out_of_range(coords: Sequence[AnyInts], shape: tuple[int, ...], place: str = "") -> None:
    """Raise EntryOutOfRange for the first entry outside the shape."""
    for d, (c, extent) in enumerate(zip(coords, shape, strict=True)):
        if len(c) and (int(c.min()) < 0 or int(c.max()) >= extent):
            entry = int(np.argmax((c < 0) | (c >= extent)))
            raise EntryOutOfRange(
                entry=entry,
                coordinate=int(c[entry]),
                dim=d,
                extent=extent,
                shape=shape,
                place=place,
            )


def refuse_repeated(coords: Sequence[AnyInts], shape: tuple[int, ...], count: int) -> None:
    """Raise RepeatedEntry if two entries have the same coordinates."""
    order, first = sorted_order(coords, shape, count)
    if first is None:
        return
    again = np.flatnonzero(~first) if order is None else order[~first]
    entry = int(again.min())
    raise RepeatedEntry(entry=entry, coords=tuple(int(c[entry]) for c in coords))


def from_numpy(obj: Any) -> SparseTensor:
    """A dense tensor that shares the array's memory if that is contiguous in some order of its
    dimensions."""
    try:
        array = supported_values(obj)
    except ValueError as error:
        raise UnknownObject(what=f"nested lists of uneven lengths ({error})") from None
    order = sorted(range(array.ndim), key=lambda d: (-abs(array.strides[d]), d))
    fmt = dense_format(array.ndim)
    if not array.flags.c_contiguous and array.transpose(order).flags.c_contiguous:
        fmt = Format(array.ndim, tuple(LevelExpr(d) for d in order), (Dense(),) * array.ndim)
        array = array.transpose(order)
    shape = cast(tuple[int, ...], np.shape(obj))
    return SparseTensor(shape, fmt, (LevelArrays(),) * array.ndim, array.reshape(-1))
