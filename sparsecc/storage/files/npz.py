"""``.npz`` archives: SciPy's layout of sparse matrices, and plain arrays by key."""

from __future__ import annotations

import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from sparsecc.diagnostics import FormatError, OperandError, did_you_mean
from sparsecc.formats import Format
from sparsecc.formats.level import AnyInts
from sparsecc.formats.names import bsr
from sparsecc.storage.edges import is_bsr, is_rows
from sparsecc.storage.entries import checked_shape, from_numpy
from sparsecc.storage.exchange import CSC, CSR, from_compressed, from_coordinates
from sparsecc.storage.files.errors import BadArray, DamagedFile, UnknownKey, read_bytes
from sparsecc.storage.files.npy import numeric, parse_npy
from sparsecc.storage.files.npz_sum import read_sum, sum_arrays
from sparsecc.storage.layout import AnyArray, is_nonzero
from sparsecc.storage.tensor import SparseTensor

LAYOUTS: dict[str, tuple[str, ...]] = {
    # SciPy's name of a format: the arrays it needs besides data
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": (),
    "dia": ("offsets",),
    "sum": (),  # ours: parts in formats of their own
}
INFLATION = 1100
"""No DEFLATE stream grows by more than about 1032; an archive that claims more lies."""


def read_npz(
    path: Path, format: str | Format | None = None, key: str | None = None
) -> SparseTensor:
    """The sparse matrix of an archive in SciPy's layout, or the array ``key``, or the only array.

    Arrays are validated in full. Raises FileError naming the file and the array."""
    arrays = _Arrays(path)
    if key is not None:
        tensor = from_numpy(numeric(arrays[key], arrays.place, key))
    elif "format" in arrays.names and "shape" in arrays.names:
        try:
            tensor = _sparse(arrays)
        except (OperandError, FormatError) as error:
            raise BadArray(key="data", problem=error.message, place=arrays.place) from None
    elif len(arrays.names) == 1:
        tensor = from_numpy(numeric(arrays[arrays.names[0]], arrays.place, arrays.names[0]))
    else:
        problem = f"the archive holds {len(arrays.names)} arrays and no SciPy matrix"
        raise UnknownKey(problem=problem, keys=", ".join(arrays.names), place=arrays.place)
    return tensor if format is None else tensor.to(format)


class _Arrays:
    """The arrays of an archive by name, each read when asked."""

    def __init__(self, path: Path) -> None:
        self.place = str(path)
        try:
            self.archive = zipfile.ZipFile(BytesIO(read_bytes(path)))
        except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError) as error:
            raise DamagedFile(reason=str(error), place=self.place) from None
        self.members: dict[str, zipfile.ZipInfo] = {}
        for info in self.archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name in self.members:
                raise BadArray(key=name, problem="it is there twice", place=self.place)
            self.members[name] = info
        self.names = list(self.members)

    def __getitem__(self, key: str) -> AnyArray:
        if key not in self.members:
            problem = f"there is no array {key!r}; {did_you_mean(key, self.names)}"
            raise UnknownKey(problem=problem, keys=", ".join(self.names), place=self.place)
        info = self.members[key]
        if info.file_size > INFLATION * info.compress_size + 1024:
            problem = f"{info.compress_size} bytes can't unfold to the {info.file_size} declared"
            raise BadArray(key=key, problem=problem, place=self.place)
        try:
            content = self.archive.read(info)
        except (
            zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError,
            NotImplementedError, OverflowError,
        ) as error:  # fmt: skip
            raise DamagedFile(reason=f"array {key!r}: {error}", place=self.place) from None
        return parse_npy(content, self.place, key)


def _sparse(arrays: _Arrays) -> SparseTensor:
    raw = arrays["format"]
    kind = raw.item() if raw.ndim == 0 and raw.dtype.kind in "SU" else ""
    kind = kind.decode("latin-1") if isinstance(kind, bytes) else kind
    if kind not in LAYOUTS:
        help = did_you_mean(kind, list(LAYOUTS))
        raise BadArray(
            key="format", problem=f"{kind!r} is no layout", place=arrays.place, help=help
        )
    shape = checked_shape(np.atleast_1d(arrays["shape"]).reshape(-1).tolist())
    if kind == "sum":
        return read_sum(arrays, shape)
    values = numeric(arrays["data"], arrays.place, "data")
    if kind == "coo":
        return _coordinates(arrays, values, shape)
    if len(shape) != 2:
        problem = f"{shape} is not the shape of a matrix"
        raise BadArray(key="shape", problem=problem, place=arrays.place)
    index = {role: _integers(arrays, role) for role in LAYOUTS[kind]}
    if values.ndim != {"bsr": 3, "dia": 2}.get(kind, 1):
        raise BadArray(key="data", problem=f"shape {values.shape} in {kind}", place=arrays.place)
    if kind == "dia":
        return _diagonals(index["offsets"], values, shape, arrays.place)
    fmt, extents = (CSR, shape) if kind == "csr" else (CSC, shape[::-1])
    if kind == "bsr":
        rows, columns = values.shape[1:]
        if not rows or not columns or shape[0] % rows or shape[1] % columns:
            problem = f"blocks of {rows}x{columns} don't tile {shape}"
            raise BadArray(key="data", problem=problem, place=arrays.place)
        fmt, extents = bsr(rows, columns), (shape[0] // rows, shape[1] // columns)
    return from_compressed(index["indptr"], index["indices"], values, shape, fmt, extents)


def _integers(arrays: _Arrays, key: str) -> AnyInts:
    array = arrays[key]
    if array.dtype.kind not in "iu" or array.ndim < 1:
        raise BadArray(key=key, problem=f"dtype {array.dtype}, not integers", place=arrays.place)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _coordinates(arrays: _Arrays, values: AnyArray, shape: tuple[int, ...]) -> SparseTensor:
    if "coords" in arrays.names:
        coords = list(np.atleast_2d(_integers(arrays, "coords")))
    else:
        coords = [_integers(arrays, role) for role in ("row", "col")]
    lengths = {c.shape for c in coords}
    if len(coords) != len(shape) or values.ndim != 1 or lengths - {values.shape}:
        problem = f"{len(coords)} coordinate arrays of shapes {sorted(lengths)} for shape {shape}"
        raise BadArray(
            key="data", problem=f"{problem} and {values.shape} values", place=arrays.place
        )
    return from_coordinates(coords, values, shape)


def _diagonals(
    offsets: AnyInts, values: AnyArray, shape: tuple[int, ...], place: str
) -> SparseTensor:
    """Column j of diagonal k holds element (j - offsets[k], j); zeros are dropped, as SciPy
    does."""
    if offsets.shape != values.shape[:1] or len(np.unique(offsets)) != len(offsets):
        problem = f"{len(offsets)} offsets, to be distinct, for {len(values)} diagonals"
        raise BadArray(key="offsets", problem=problem, place=place)
    which, columns = np.nonzero(is_nonzero(values))
    # Offsets beyond the shape name no element; bounded first, their difference can't wrap around.
    bounded = np.clip(offsets, -(2**62), 2**62).astype(np.int64)
    rows = columns - bounded[which]
    keep = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    found = values[which[keep], columns[keep]]
    return from_coordinates([rows[keep], columns[keep]], found, shape)


def write_npz(tensor: SparseTensor, out: BytesIO) -> None:
    """SciPy's layout: csr, csc, bsr, or coo for all other sparse formats (``coords`` beyond
    matrices); a dense tensor is the array ``arr_0``, a sum of formats is in a layout of ours."""
    save: Any = np.savez_compressed
    fmt = tensor.format
    if fmt.is_dense:
        save(out, tensor.to_numpy())
        return
    if tensor.parts:
        save(out, shape=np.array(tensor.shape, dtype=np.int64), **sum_arrays(tensor))
        return
    if is_rows(fmt) or (is_bsr(fmt) and _tiles(tensor)):
        kind = "bsr" if is_bsr(fmt) else ("csr" if fmt.dim_order == (0, 1) else "csc")
        level = tensor.levels[1]
        block = tensor.level_sizes[2:]
        values = tensor.values.reshape(-1, *block)
        parts = {"indices": level.coordinates, "indptr": level.positions, "data": values}
    else:
        kind = "coo"
        coords, values = tensor.to_coords()
        parts: dict[str, Any] = {"data": values}
        parts |= (
            {"row": coords[0], "col": coords[1]}
            if tensor.rank == 2
            else {"coords": np.stack(coords)}
        )
    save(
        out,
        format=kind.encode(),
        shape=np.array(tensor.shape, dtype=np.int64),
        _is_array=True,
        **parts,
    )


def _tiles(tensor: SparseTensor) -> bool:
    _, _, high, wide = tensor.level_sizes
    return tensor.shape[0] % high == 0 and tensor.shape[1] % wide == 0
