"""The ``2:4`` layout: a weight N x K with two values in each group of four along k, as fragment units.

Units lie [batch][row tile][k unit], contiguous, in one array ``packed`` of 32-bit words. K is padded to 64 and N to
16; one packing serves every number of tokens and every schedule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from sparsecc.backends.triton.packing import fragments
from sparsecc.backends.triton.packing.arrays import (
    BITS,
    Array,
    Arrays,
    WrongDtype,
    arrays_of,
)
from sparsecc.backends.triton.packing.groups import (
    choose,
    coordinates_of,
    elements,
    nibbles_of,
    pairs,
    spread,
    words,
)
from sparsecc.backends.triton.packing.packed import PackedOperand
from sparsecc.diagnostics import FormatError, OperandError
from sparsecc.formats import LevelArrays
from sparsecc.formats.names import nm
from sparsecc.storage.pack import with_widths
from sparsecc.storage.tensor import SparseTensor

LAYOUT = "2:4"
DTYPES = ("f16", "bf16", "i8")
SHOWN = 4
"""How many places an error names."""


class NotTwoOfFour(FormatError):
    text = "{bad} of {groups} groups of four along k hold more than two nonzeros; first: {places}"
    help_text = "prune the weight to 2:4, or choose the format 2:4+CSR, which keeps the overflow"


class WrongShape(OperandError):
    text = "the {layout} layout wants a weight of N rows by K columns{more}, not shape {shape}"
    help_text = "pad or reshape the weight"


@dataclass(frozen=True, eq=False)
class TwoOfFour:
    """Canonical 2:4 as plain arrays, NumPy's or torch's: values and coordinates below 4, both [..., N, K/2]."""

    values: Array
    coordinates: Array


def matrix_shape(shape: tuple[int, ...], layout: str) -> tuple[int, int, int]:
    """Batch, rows and columns of a weight that has whole groups of four."""
    if len(shape) < 2:
        raise WrongShape(layout=layout, shape=shape, more="")
    if shape[-1] % 4:
        raise WrongShape(layout=layout, shape=shape, more=", K a multiple of 4")
    return prod(shape[:-2]), shape[-2], shape[-1]


def known_dtype(xp: Arrays, array: Array, known: tuple[str, ...], layout: str) -> str:
    dtype = xp.dtype(array)
    if dtype not in known:
        raise WrongDtype(layout=layout, known=", ".join(known), dtype=dtype)
    return dtype


def blocks(xp: Arrays, rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows, whole tiles each, that are worked on at a time."""
    step = max(1, xp.chunk // max(1, columns * fragments.ROWS)) * fragments.ROWS
    for start in range(0, rows, step):
        yield start, min(rows, start + step)


def two_of_four_format(tensor: SparseTensor) -> bool:
    return tensor.rank >= 2 and tensor.format.with_widths(0, 0) == nm(2, 4, tensor.rank)


def parts_of(tensor: SparseTensor) -> TwoOfFour:
    """The arrays of a canonical 2:4 tensor, by rows."""
    coordinates = tensor.levels[-1].coordinates
    assert coordinates is not None
    shape = (*tensor.shape[:-1], -(-tensor.shape[-1] // 4) * 2)
    return TwoOfFour(tensor.values.reshape(shape), coordinates.reshape(shape))


def pack_2_4(weight: Any) -> PackedOperand:
    """The ``2:4`` layout of a weight [..., N, K], where its arrays are.

    ``weight`` is a dense NumPy array or torch tensor (f16, bf16 or i8) that is 2:4 along k, a SparseTensor (2:4, or
    any other format that fits), or :class:`TwoOfFour`. Raises NotTwoOfFour with the count and the places of groups
    with more than two nonzeros: no value is left out. A group with fewer gets two distinct indices and zeros."""
    if isinstance(weight, SparseTensor):
        whole = two_of_four_format(weight)
        matrix_shape(weight.shape, LAYOUT)
        weight = parts_of(weight) if whole else weight.to_numpy()
    if isinstance(weight, TwoOfFour):
        return _pack(weight.values, weight.coordinates)
    return _pack(weight, None)


def _pack(values: Array, coordinates: Array | None) -> PackedOperand:
    xp = arrays_of(values)
    dtype = known_dtype(xp, values, DTYPES, LAYOUT)
    shape = tuple(int(n) for n in values.shape)
    if coordinates is not None:
        if tuple(coordinates.shape) != shape:
            raise WrongShape(
                layout="canonical 2:4",
                shape=tuple(coordinates.shape),
                more=f"/2 as the values, {shape}",
            )
        shape = (*shape[:-1], shape[-1] * 2)
    batch, rows, columns = matrix_shape(shape, LAYOUT)
    unit = fragments.Unit(BITS[dtype])
    tiles, across = -(-rows // fragments.ROWS), -(-columns // fragments.COLUMNS)
    packed = xp.zeros((batch, tiles, across, unit.words), 32)
    bits = xp.bits(values).reshape(batch, rows, values.shape[-1])
    marks = None if coordinates is None else coordinates.reshape(bits.shape)
    overfull = Overfull(shape)
    for b in range(batch):
        for start, stop in blocks(xp, rows, columns):
            piece = xp.contiguous(bits[b, start:stop])
            if marks is None:
                word = words(xp, piece)
                nibble = choose(xp, word, unit.bits)
                overfull.look(xp, nibble, b, start)
                nibble = nibble & 15
                pair = pairs(xp, word, nibble, unit.bits)
            else:
                nibble = nibbles_of(xp, marks[b, start:stop])
                pair = xp.view(piece, 2 * unit.bits)
            tile = start // fragments.ROWS
            made = fragments.units(xp, unit, pair, nibble, columns)
            packed[b, tile : tile + made.shape[0]] = made
    overfull.refuse()
    return PackedOperand(LAYOUT, shape, dtype, {"packed": packed.reshape(-1)})


class Overfull:
    """Collects the groups that hold too many values, to be refused together."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.bad = 0
        self.places: list[str] = []

    def look(self, xp: Arrays, nibble: Array, batch: int, row: int) -> None:
        bad = nibble >= 16
        count = int(bad.sum())
        if not count:
            return
        self.bad += count
        for at in xp.nonzero(bad.reshape(-1))[: SHOWN - len(self.places)].tolist():
            r, group = divmod(at, nibble.shape[1])
            where = f"matrix {batch} " if len(self.shape) > 2 else ""
            self.places.append(f"{where}row {row + r} columns {4 * group}-{4 * group + 3}")

    def refuse(self) -> None:
        if self.bad:
            groups = prod(self.shape) // 4
            raise NotTwoOfFour(bad=self.bad, groups=groups, places="; ".join(self.places))


def unpack_2_4(operand: PackedOperand) -> Array:
    """The dense weight, bit for bit: the inverse of ``pack_2_4`` for dense operands."""
    operand.expect(LAYOUT)
    *lead, rows, columns = operand.shape
    bits = BITS[operand.dtype]
    xp = arrays_of(operand.arrays["packed"])
    out = xp.zeros((prod(lead), rows, columns), bits)
    for b, start, stop, pair, nibble in _unpacked(xp, operand):
        out[b, start:stop] = elements(xp, spread(xp, pair, nibble, bits), bits)
    return xp.values(out.reshape(operand.shape), operand.dtype)


def unpack_2_4_parts(operand: PackedOperand) -> TwoOfFour:
    """Canonical values and coordinates (8 bits), where the packed arrays are."""
    operand.expect(LAYOUT)
    *lead, rows, columns = operand.shape
    bits = BITS[operand.dtype]
    xp = arrays_of(operand.arrays["packed"])
    shape = (prod(lead), rows, columns // 2)
    values, coordinates = xp.zeros(shape, bits), xp.zeros(shape, 8)
    for b, start, stop, pair, nibble in _unpacked(xp, operand):
        values[b, start:stop] = xp.view(xp.cast(pair, 2 * bits), bits)
        coordinates[b, start:stop] = coordinates_of(xp, nibble)
    final = (*lead, *shape[1:])
    return TwoOfFour(xp.values(values.reshape(final), operand.dtype), coordinates.reshape(final))


def unpack_2_4_tensor(operand: PackedOperand) -> SparseTensor:
    """The canonical 2:4 SparseTensor: the inverse of ``pack_2_4`` for those."""
    return canonical_tensor(unpack_2_4_parts(operand.to("host")), operand.shape)


def canonical_tensor(parts: TwoOfFour, shape: tuple[int, ...]) -> SparseTensor:
    """A 2:4 SparseTensor of its arrays by rows."""
    fmt = nm(2, 4, len(shape))
    stored = LevelArrays(None, parts.coordinates.reshape(-1).astype(np.int64))
    levels = with_widths(fmt, [*[LevelArrays()] * len(shape), stored])
    return SparseTensor(shape, fmt, levels, parts.values.reshape(-1))


def _unpacked(xp: Arrays, operand: PackedOperand) -> Iterator[tuple[int, int, int, Array, Array]]:
    """Batch, range of rows, pairs and nibbles of the weight, without padding."""
    batch, rows, columns = matrix_shape(operand.shape, LAYOUT)
    unit = fragments.Unit(BITS[operand.dtype])
    tiles, across = -(-rows // fragments.ROWS), -(-columns // fragments.COLUMNS)
    packed = operand.arrays["packed"].reshape(batch, tiles, across, unit.words)
    for b in range(batch):
        for start, stop in blocks(xp, rows, columns):
            tile = start // fragments.ROWS
            piece = packed[b, tile : tile + -(-(stop - start) // fragments.ROWS)]
            pair, nibble = fragments.pairs_and_nibbles(xp, unit, piece)
            yield b, start, stop, *(x[: stop - start, : columns // 4] for x in (pair, nibble))
