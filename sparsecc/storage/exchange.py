"""To and from SciPy's sparse classes and torch's tensors; both libraries are optional and loaded
when asked."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

import numpy as np

from sparsecc.diagnostics import OperandError, UnsupportedError
from sparsecc.elements import NUMPY
from sparsecc.formats import Format, LevelArrays, known_name, parse_format
from sparsecc.formats.level import AnyInts
from sparsecc.formats.levels.compressed import Compressed
from sparsecc.formats.names import bsr, coo
from sparsecc.storage import limits
from sparsecc.storage.entries import (
    BadEntries,
    UnsupportedDtype,
    from_numpy,
    refuse_out_of_range,
    supported_values,
)
from sparsecc.storage.layout import AnyArray, is_nonzero
from sparsecc.storage.order import linear_key, sorted_order
from sparsecc.storage.pack import pack, pack_levels
from sparsecc.storage.plain import plain_indices, plain_levels
from sparsecc.storage.tensor import BadLevels, SparseTensor
from sparsecc.storage.torch_plain import refuse_unreadable, resolved
from sparsecc.storage.validate import DTYPES, cheap_problems

CSR = parse_format("CSR")
CSC = parse_format("CSC")
UNSORTED = Compressed(unique=False, ordered=False)


class NoCounterpart(UnsupportedError):
    text = "{library} has no sparse class for a tensor of rank {rank}"
    help_text = "use to_numpy() or to_coords()"


class NoSuchValues(UnsupportedError):
    text = "{library} has no sparse class with values of {dtype}"
    help_text = "convert the tensor to f32 first, or use to_numpy() or to_torch()"


class BatchedTorch(OperandError):
    text = "a torch tensor of layout {layout} with dense or batch dimensions is not supported"
    help_text = "call .to_dense() or reshape it to a plain sparse tensor first"


def from_scipy(matrix: Any) -> SparseTensor:
    """A tensor of any SciPy sparse matrix or array, sharing its arrays where they are canonical.

    Unsorted entries are sorted and repeated ones added, whatever the object's flags say. Raises
    OperandError for entries out of range and for unsupported dtypes."""
    supported_values(np.zeros(0, dtype=matrix.dtype), "operand")
    kind, shape = str(matrix.format), tuple(int(extent) for extent in matrix.shape)
    if len(shape) == 2 and kind in ("csr", "csc"):
        extents = shape if kind == "csr" else shape[::-1]
        fmt = CSR if kind == "csr" else CSC
        return from_compressed(matrix.indptr, matrix.indices, matrix.data, shape, fmt, extents)
    if len(shape) == 2 and kind == "bsr":
        if np.ndim(matrix.data) != 3 or 0 in matrix.data.shape[1:]:
            problems = f"its values have shape {np.shape(matrix.data)}, not one block a coordinate"
            raise BadLevels(format="BSR", shape=shape, problems=problems)
        rows, columns = matrix.data.shape[1:]
        extents = (shape[0] // rows, shape[1] // columns)
        return from_compressed(
            matrix.indptr, matrix.indices, matrix.data, shape, bsr(rows, columns), extents
        )
    matrix = matrix.tocoo()
    coords = matrix.coords if hasattr(matrix, "coords") else (matrix.row, matrix.col)
    return from_coordinates([np.asarray(c) for c in coords], supported_values(matrix.data), shape)


def from_coordinates(
    coords: list[AnyInts], values: AnyArray, shape: tuple[int, ...]
) -> SparseTensor:
    """A COO tensor that shares the arrays if they are sorted and without repetitions.

    Raises BadEntries for arrays of different lengths or not of integers, EntryOutOfRange."""
    rank = len(shape)
    if len(coords) != rank:
        raise BadEntries(
            problem=f"{len(coords)} coordinate arrays for {rank} dimensions", rank=rank
        )
    if values.ndim != 1 or any(c.shape != values.shape for c in coords):
        lengths = " and ".join("x".join(map(str, c.shape)) for c in coords)
        found = "x".join(map(str, values.shape))
        problem = (
            f"{found} values for coordinate arrays of {lengths}" if coords else f"{found} values"
        )
        raise BadEntries(problem=problem, rank=rank)
    for d, c in enumerate(coords):
        if c.dtype.kind not in "iu" and len(c):
            raise BadEntries(
                problem=f"those of dimension {d} are {c.dtype}, not integers", rank=rank
            )
    refuse_out_of_range(coords, shape)
    coords = [c for c in plain_indices(coords if len(values) else _none(coords)) if c is not None]
    order, first = sorted_order(coords, shape, len(values))
    fmt = coo(len(shape))
    if order is not None or first is not None or not coords:
        return pack(coords, values, shape, fmt)
    wide = coords[0].dtype == np.int64
    ends = np.array([0, len(values)], np.int64 if wide else limits.inferred_dtype(len(values)))
    levels = (LevelArrays(ends, coords[0]), *(LevelArrays(None, c) for c in coords[1:]))
    return SparseTensor(shape, fmt, levels, values)


def _none(coords: list[AnyInts]) -> list[AnyInts]:
    """No coordinates: of an index type, whatever theirs is."""
    return [c if c.dtype.kind in "iu" else np.zeros(0, dtype=np.int64) for c in coords]


def from_compressed(
    positions: Any,
    coordinates: Any,
    values: Any,
    shape: tuple[int, ...],
    fmt: Format,
    extents: tuple[int, ...],
) -> SparseTensor:
    """A CSR, CSC or BSR tensor of untrusted arrays; ``values`` has one item (or block) a
    coordinate."""
    positions, coordinates = np.asarray(positions), np.asarray(coordinates)
    values = supported_values(values)
    if coordinates.ndim == 1 and len(coordinates) != (len(values) if values.ndim else 1):
        problem = f"{len(values) if values.ndim else 1} values for {len(coordinates)} coordinates"
        raise BadLevels(format=known_name(fmt), shape=shape, problems=problem)
    if positions.ndim == coordinates.ndim == 1 and len(positions) and positions.dtype.kind in "iu":
        end = max(0, int(positions[-1]))  # SciPy allows spare room at the end
        coordinates, values = coordinates[:end], values[:end]
    block = values.shape[1:]
    stored = np.ascontiguousarray(values).reshape(-1)
    levels = (LevelArrays(), LevelArrays(positions, coordinates), *(LevelArrays() for _ in block))
    found = cheap_problems(shape, fmt, levels, stored)
    if not found:
        found, _ = UNSORTED.problems(levels[1], extents[0], extents[1])
    if found:
        raise BadLevels(format=known_name(fmt), shape=shape, problems="; ".join(found))
    levels = cast(tuple[LevelArrays, ...], plain_levels(levels))
    assert levels[1].positions is not None and levels[1].coordinates is not None
    positions, coordinates = levels[1].positions, levels[1].coordinates
    rows = np.repeat(np.arange(extents[0], dtype=np.int64), np.diff(positions))
    key = linear_key([rows, coordinates], extents, len(rows))
    assert key is not None, "a matrix of that many rows has positions in memory"
    if (key[1:] > key[:-1]).all():
        return SparseTensor(shape, fmt, levels, stored)
    if not block:
        return pack_levels([rows, coordinates], stored, shape, fmt)
    at, *inner = np.nonzero(is_nonzero(values))
    return pack_levels([rows[at], coordinates[at], *inner], values[at, *inner], shape, fmt)


def to_scipy(tensor: SparseTensor) -> Any:
    """A SciPy sparse array, see :meth:`SparseTensor.to_scipy`; raises NoCounterpart for scalars,
    and for ranks other than 2 where the installed SciPy has none; NoSuchValues for floats of 16
    bits."""
    from scipy import sparse

    library: Any = sparse
    if tensor.dtype.name in ("float16", "bfloat16"):
        raise NoSuchValues(library="SciPy", dtype=tensor.dtype)
    bare = tensor.format.with_widths(0, 0)
    if bare in (CSR, CSC):
        make = library.csr_array if bare == CSR else library.csc_array
        level = tensor.levels[1]
        return make(
            (tensor.values, _signed(level.coordinates), _signed(level.positions)),
            shape=tensor.shape,
            copy=False,
        )
    if tensor.rank == 2 and len(bare.exprs) == 4:
        rows, columns = bare.exprs[0].div, bare.exprs[1].div
        exact = tensor.shape[0] % rows == 0 and tensor.shape[1] % columns == 0
        if exact and bare == bsr(rows, columns) and all(tensor.shape):
            level = tensor.levels[1]
            blocks = tensor.values.reshape(-1, rows, columns)
            arrays = (blocks, _signed(level.coordinates), _signed(level.positions))
            return library.bsr_array(arrays, shape=tensor.shape, copy=False)
    if tensor.rank == 0:
        raise NoCounterpart(library="SciPy", rank=0)
    if bare in (coo(tensor.rank), coo(tensor.rank, soa=True)):
        coords = tuple(_signed(level.coordinates) for level in tensor.levels)
        values = tensor.values
    else:
        coords, values = tensor.to_coords()
        if max(tensor.shape) <= limits.INT32_MAX:
            coords = tuple(c.astype(np.int32) for c in coords)
    try:
        return library.coo_array((values, coords), shape=tensor.shape, copy=False)
    except (TypeError, ValueError):
        if tensor.rank == 2:
            raise
        raise NoCounterpart(library="SciPy", rank=tensor.rank) from None


def _signed(array: AnyInts | None) -> AnyInts:
    """Indices as SciPy takes them: int32 or int64."""
    assert array is not None
    return array if array.dtype.name in ("int32", "int64") else array.astype(np.int64)


def from_torch(tensor: Any) -> SparseTensor:
    """A tensor of a torch tensor (strided, sparse COO, CSR, CSC or BSR), on the host, sharing
    memory where it is canonical. Raises BatchedTorch for hybrid and batched ones, UnsupportedDtype
    (e.g. for float8_e5m2), NotPlain (meta, quantized, nested …). Lazily negated or conjugated elements are copied."""
    refuse_unreadable(tensor)
    tensor = tensor.detach()
    layout = str(tensor.layout).removeprefix("torch.")
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise UnsupportedDtype(dtype=dtype, instead="float32", known=", ".join(DTYPES))
    shape = tuple(int(extent) for extent in tensor.shape)
    if layout == "strided":
        return from_numpy(_host(tensor))
    if layout == "sparse_coo":
        tensor = tensor.coalesce()
        values = _host(tensor.values())
        if values.ndim != 1:
            raise BatchedTorch(layout=layout)
        return from_coordinates(list(_host(tensor.indices())), values, shape)
    if layout in ("sparse_csr", "sparse_csc", "sparse_bsr") and len(shape) == 2:
        by_rows = layout != "sparse_csc"
        positions = _host(tensor.crow_indices() if by_rows else tensor.ccol_indices())
        coordinates = _host(tensor.col_indices() if by_rows else tensor.row_indices())
        values = _host(tensor.values())
        fmt, extents = (CSR, shape) if by_rows else (CSC, shape[::-1])
        if layout == "sparse_bsr":
            rows, columns = values.shape[1:3]
            fmt, extents = bsr(rows, columns), (shape[0] // rows, shape[1] // columns)
        if values.ndim == (3 if layout == "sparse_bsr" else 1):
            return from_compressed(positions, coordinates, values, shape, fmt, extents)
    raise BatchedTorch(layout=layout)


def _host(tensor: Any) -> AnyArray:
    tensor = resolved(tensor).cpu()
    if str(tensor.dtype) == "torch.bfloat16":  # which NumPy does not know
        torch: Any = import_module("torch")
        return np.asarray(tensor.view(torch.int16).numpy()).view(NUMPY["bf16"])
    return np.asarray(tensor.numpy())


def _shared(torch: Any, values: AnyArray) -> Any:
    """A torch tensor that shares an array's memory."""
    if values.dtype.name == "bfloat16":
        return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)


def to_torch(tensor: SparseTensor) -> Any:
    """A torch tensor, see :meth:`SparseTensor.to_torch`; shares memory for dense and CSR."""
    torch: Any = import_module("torch")
    if tensor.format.is_dense:
        return _shared(torch, tensor.to_numpy())
    bare = tensor.format.with_widths(0, 0)
    shape = tuple(tensor.shape)
    if bare == CSR:
        level = tensor.levels[1]
        positions, coordinates = (
            torch.from_numpy(_signed(array)) for array in (level.positions, level.coordinates)
        )
        values = _shared(torch, tensor.values)
        return torch.sparse_csr_tensor(positions, coordinates, values, size=shape)
    coords, values = tensor.to_coords()
    stacked = np.stack(coords) if coords else np.zeros((0, len(values)), dtype=np.int64)
    made = torch.sparse_coo_tensor(torch.from_numpy(stacked), _shared(torch, values), size=shape)
    return made.coalesce()
