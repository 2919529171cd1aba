"""A matrix as a small picture of where its entries are: an image of densities, as PNG in a data URI."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode

import numpy as np
import numpy.typing as npt

from sparsecc.storage.tensor import SparseTensor

SIDE = 128
"""Pixels of the longer side at most."""
COLOUR = (43, 108, 196)
"""Seen on a light and on a dark page; how full a pixel is makes it opaque."""
FAINTEST = 40
"""Opacity of a pixel with one entry, of 255."""

Counts = npt.NDArray[np.int64]


def spy(tensor: SparseTensor) -> str | None:
    """The picture of a matrix as a data URI; None of anything that is no matrix, or has no entries."""
    if len(tensor.shape) != 2 or not all(tensor.shape):
        return None
    found = counts(tensor)
    if not found.any():
        return None
    data = b64encode(png(opacity(found, tensor.shape))).decode("ascii")
    return f"data:image/png;base64,{data}"


def counts(tensor: SparseTensor) -> Counts:
    """Entries by pixel."""
    rows, columns = tensor.shape
    scale = max(1, -(-max(rows, columns) // SIDE))
    high, wide = -(-rows // scale), -(-columns // scale)
    if tensor.format.is_dense and tensor.format.is_row_major:
        array = tensor.values.reshape(tensor.shape)
        starts = np.arange(0, columns, scale)
        found = np.zeros((high, wide), dtype=np.int64)
        for line in range(high):
            panel = array[line * scale : (line + 1) * scale] != 0
            found[line] = np.add.reduceat(panel.sum(axis=0), starts)
        return found
    coordinates, values = tensor.to_coords()
    kept = np.asarray(values != 0)
    places = (coordinates[0][kept] // scale) * wide + coordinates[1][kept] // scale
    return np.bincount(places.astype(np.int64), minlength=high * wide).reshape(high, wide)


def opacity(found: Counts, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """How opaque each pixel is: by the share of its cells that are entries, the fullest one wholly."""
    high, wide = found.shape
    scale = max(-(-shape[0] // high), -(-shape[1] // wide))
    tall = np.array([min(scale, shape[0] - scale * line) for line in range(high)])
    broad = np.array([min(scale, shape[1] - scale * place) for place in range(wide)])
    full = found / np.outer(tall, broad)
    level = FAINTEST + (255 - FAINTEST) * np.sqrt(full / full.max())
    return np.where(found > 0, level, 0).astype(np.uint8)


def png(alpha: npt.NDArray[np.uint8]) -> bytes:
    """A picture of one colour with an opacity for each pixel."""
    high, wide = alpha.shape
    pixels = np.empty((high, wide, 4), dtype=np.uint8)
    pixels[:, :, :3] = COLOUR
    pixels[:, :, 3] = alpha
    lines = b"".join(b"\0" + pixels[line].tobytes() for line in range(high))
    header = struct.pack(">IIBBBBB", wide, high, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
