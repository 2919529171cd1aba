"""The ``2:4+CSR`` layout: any f16 or bf16 weight as a 2:4 part and a residual, one stream of chunks.

W = P + R: P has the two largest of each group of four along k, R what is left. A chunk is 16 rows x ``steps * 32``
columns, chunks lie [batch][row tile][chunk along k], contiguous, of variable length in vectors of 16 bytes:
``steps / 2`` fragment units of P, then R's entries (:mod:`.residual`). ``offsets`` holds the first vector of each
chunk, the end, and the end again for loads that run ahead. Fact ``entries``: the most entry vectors of a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sparsecc.backends.triton.packing import fragments, residual
from sparsecc.backends.triton.packing.arrays import Array, Arrays, arrays_of
from sparsecc.backends.triton.packing.groups import (
    complement,
    coordinates_of,
    elements,
    largest_two,
    nibbles_of,
    pairs,
    spread,
    words,
)
from sparsecc.backends.triton.packing.packed import PackedOperand
from sparsecc.backends.triton.packing.two_four import (
    TwoOfFour,
    WrongShape,
    blocks,
    canonical_tensor,
    known_dtype,
    matrix_shape,
    parts_of,
    two_of_four_format,
)
from sparsecc.diagnostics import LimitError, OperandError, UsageError
from sparsecc.formats import LevelArrays, known_name, parse_format, sum_format
from sparsecc.formats.names import nm
from sparsecc.storage import limits
from sparsecc.storage.pack import with_widths
from sparsecc.storage.sums import sum_tensor
from sparsecc.storage.tensor import SparseTensor

LAYOUT = "2:4+CSR"
DTYPES = ("f16", "bf16")
"""An entry has 16 bits for its value, and the sum of two 2:4 parts is not built for i8."""
SUM = sum_format([nm(2, 4), parse_format("CSR")])
STEPS = (4, 8)
PADDING = 64
"""Ends of the stream after the last offset."""
UNIT = fragments.Unit(16)
SIGN_OUT = 0x7FFF


class StreamTooLong(LimitError):
    text = "the {layout} stream of a weight of shape {shape} has over {limit} vectors of 16 bytes"
    help_text = "split the weight along its rows"


class WrongSteps(UsageError):
    text = "a chunk of the {layout} layout has {known} steps of 32 columns, not {steps}"


class BadResidual(OperandError):
    text = "the residual of a weight of shape {shape}: {problem}"
    help_text = "build it with from_coords, which sorts and combines, and convert it to CSR"


@dataclass(frozen=True, eq=False)
class Rows:
    """CSR as plain arrays, NumPy's or torch's: positions [N + 1], coordinates and values by row, ascending."""

    positions: Array
    coordinates: Array
    values: Array


@dataclass(frozen=True)
class Shape:
    """How a weight is cut into chunks."""

    batch: int
    rows: int
    columns: int
    steps: int

    @property
    def tiles(self) -> int:
        return -(-self.rows // fragments.ROWS)

    @property
    def chunks(self) -> int:
        """Chunks along k."""
        return -(-self.columns // (32 * self.steps))

    @property
    def padded(self) -> int:
        return self.chunks * 32 * self.steps

    @property
    def fixed(self) -> int:
        """Vectors of a chunk without entries."""
        return self.steps // 2 * UNIT.words // 4


def pack_sum_2_4(weight: Any, rest: Any = None, *, steps: int = 4) -> PackedOperand:
    """The ``2:4+CSR`` layout of a weight [..., N, K], where its arrays are.

    ``weight`` is a dense NumPy array or torch tensor (f16 or bf16), or a SparseTensor of any format, 2:4+CSR among
    them; or the 2:4 part, a SparseTensor or :class:`TwoOfFour`, with ``rest``, a CSR SparseTensor or :class:`Rows`.
    Dense weights keep the two largest magnitudes of each group in the 2:4 part (NaN above all, ties to the lower
    column). Parts are taken as they are if every entry of the rest stands where the 2:4 part has no slot; otherwise
    their sum (f32, rounded once where both hold a value) is split anew. Raises StreamTooLong past 2**31 vectors."""
    if steps not in STEPS:
        raise WrongSteps(layout=LAYOUT, known=" or ".join(map(str, STEPS)), steps=steps)
    if isinstance(weight, SparseTensor):
        if rest is None and is_sum(weight):
            weight, rest = weight.parts
        if rest is not None or two_of_four_format(weight):
            matrix_shape(weight.shape, LAYOUT)
            weight = parts_of(weight)
        else:
            weight = weight.to_numpy()
    if isinstance(weight, TwoOfFour):
        return _pack_parts(weight, rest, steps)
    xp = arrays_of(weight)
    dtype = known_dtype(xp, weight, DTYPES, LAYOUT)
    shape = tuple(int(n) for n in weight.shape)
    cut = Shape(*matrix_shape(shape, LAYOUT), steps)
    bits = xp.bits(weight).reshape(cut.batch, cut.rows, cut.columns)
    stream = Stream(xp, cut, shape)
    for b in range(cut.batch):
        for start, stop in blocks(xp, cut.rows, cut.columns):
            stream.split(xp.contiguous(bits[b, start:stop]), dtype)
    return stream.operand(dtype)


class Stream:
    """Chunks of one block of rows after the other."""

    def __init__(self, xp: Arrays, cut: Shape, shape: tuple[int, ...]) -> None:
        self.xp, self.cut, self.shape = xp, cut, shape
        self.pieces: list[Array] = []
        self.starts: list[Array] = []
        self.total = 0
        self.entries = 0

    def split(self, bits: Array, dtype: str) -> None:
        """Add rows of values [rows, K], split by magnitude."""
        xp = self.xp
        word = words(xp, bits)
        nibble = largest_two(xp, word, dtype)
        pair = pairs(xp, word, nibble, 16)
        left = elements(xp, word ^ spread(xp, pair, nibble, 16), 16).reshape(-1)
        at = xp.nonzero((left & SIGN_OUT) != 0)
        columns = max(1, self.cut.columns)
        self.add(pair, nibble, at // columns, at % columns, left[at])

    def add(self, pair: Array, nibble: Array, row: Array, column: Array, bits: Array) -> None:
        """Add rows of P (pairs and nibbles [rows, K/4]) with R's entries in them."""
        xp, cut = self.xp, self.cut
        units = fragments.units(xp, UNIT, pair, nibble, cut.padded)
        chunks = units.shape[0] * cut.chunks
        word = residual.entry_words(xp, row, column, bits, nibble, cut.steps)
        chunk = (row >> 4) * cut.chunks + column // (32 * cut.steps)
        word, chunk, place = residual.ordered(xp, word, chunk, chunks)
        vectors = residual.vectors(xp.bincount(chunk, chunks))
        ends = xp.cumsum(vectors + cut.fixed)
        starts = ends - vectors - cut.fixed
        size = int(ends[-1]) if chunks else 0
        if self.total + size > limits.INT32_MAX:
            raise StreamTooLong(layout=LAYOUT, shape=self.shape, limit=limits.INT32_MAX)
        out = xp.zeros((size, 4), 32)
        units = units.reshape(-1, 4)
        if chunks:
            out[(starts.reshape(-1, 1) + xp.arange(0, cut.fixed)).reshape(-1)] = units
            out.reshape(-1)[(starts[chunk] + cut.fixed) * 4 + place] = xp.cast(word, 32)
            self.entries = max(self.entries, int(vectors.max()))
        self.pieces.append(out.reshape(-1))
        self.starts.append(starts + self.total)
        self.total += size

    def operand(self, dtype: str) -> PackedOperand:
        xp = self.xp
        end = xp.cast(xp.zeros((1 + PADDING,), 64) + self.total, 32)
        arrays = {
            "packed": xp.concatenate(self.pieces) if self.pieces else xp.zeros((0,), 32),
            "offsets": xp.concatenate([*(xp.cast(s, 32) for s in self.starts), end]),
        }
        facts = {"steps": self.cut.steps, "entries": self.entries}
        return PackedOperand(LAYOUT, self.shape, dtype, arrays, facts)


def is_sum(tensor: SparseTensor) -> bool:
    """Whether a tensor's format is 2:4+CSR."""
    return tensor.format.with_widths(0, 0) == SUM


def _pack_parts(part: TwoOfFour, rest: Any, steps: int) -> PackedOperand:
    xp = arrays_of(part.values)
    dtype = known_dtype(xp, part.values, DTYPES, LAYOUT)
    shape = (*(int(n) for n in part.values.shape[:-1]), int(part.values.shape[-1]) * 2)
    cut = Shape(*matrix_shape(shape, LAYOUT), steps)
    flat = (cut.batch * cut.rows, cut.columns // 2)
    values, marks = xp.bits(part.values).reshape(flat), part.coordinates.reshape(flat)
    row, column, bits = _entries(xp, rest, shape, dtype)
    stream = Stream(xp, cut, shape)
    nibble = nibbles_of(xp, marks)
    apart = _apart(xp, nibble, row, column)
    for b in range(cut.batch):
        for start, stop in blocks(xp, cut.rows, cut.columns):
            first, last = b * cut.rows + start, b * cut.rows + stop
            pair, mark = xp.view(values[first:last], 32), nibble[first:last]
            bounds = xp.searchsorted(row, xp.arange(0, 2) * (last - first) + first)
            here = slice(int(bounds[0]), int(bounds[-1]))
            r, c, v = row[here] - first, column[here], bits[here]
            if apart:
                stream.add(pair, mark, r, c, v)
            else:
                dense = elements(xp, spread(xp, xp.cast(pair, 64), mark, 16), 16)
                stream.split(_summed(xp, dense, r, c, v, dtype), dtype)
    return stream.operand(dtype)


def _entries(
    xp: Arrays, rest: Any, shape: tuple[int, ...], dtype: str
) -> tuple[Array, Array, Array]:
    """Row, column and bits of the residual's entries, checked."""
    if rest is None:
        none = xp.zeros((0,), 64)
        return none, none, xp.zeros((0,), 16)
    if isinstance(rest, SparseTensor):
        if known_name(rest.format) != "CSR" or rest.shape != shape:
            name = known_name(rest.format)
            raise BadResidual(shape=shape, problem=f"it is {name} of shape {rest.shape}, not CSR")
        level = rest.levels[1]
        rest = Rows(level.positions, level.coordinates, rest.values)
    if len(shape) != 2:
        raise WrongShape(layout="parts of the 2:4+CSR", shape=shape, more=" without a batch")
    found = xp.dtype(rest.values)
    if found != dtype:
        raise BadResidual(shape=shape, problem=f"its values are {found}, the 2:4 part's {dtype}")
    positions, column = xp.cast(rest.positions, 64), xp.cast(rest.coordinates, 64)
    counts = positions[1:] - positions[:-1]
    stored = len(column)
    if (
        len(positions) != shape[0] + 1
        or bool((counts < 0).any())
        or (int(positions[0]), int(positions[-1])) != (0, stored)
        or len(rest.values) != stored
    ):
        raise BadResidual(shape=shape, problem="its positions, coordinates and values do not fit")
    row = xp.repeat(xp.arange(0, shape[0]), counts)
    if stored and (int(column.min()) < 0 or int(column.max()) >= shape[1]):
        raise BadResidual(shape=shape, problem="a coordinate is outside the weight")
    key = row * shape[1] + column
    if not bool((key[1:] > key[:-1]).all()):
        raise BadResidual(shape=shape, problem="coordinates of a row do not ascend")
    return row, column, xp.bits(rest.values)


def _apart(xp: Arrays, nibble: Array, row: Array, column: Array) -> bool:
    """Whether every entry stands where the 2:4 part has no slot."""
    left_out = xp.cast(complement(nibble[row, column >> 2]), 64)
    index = column & 3
    return bool(((index == (left_out & 3)) | (index == left_out >> 2)).all())


def _summed(xp: Arrays, dense: Array, row: Array, column: Array, bits: Array, dtype: str) -> Array:
    """Rows of values with entries added to them; where one of two is a zero, the other stays bit for bit."""
    old = dense[row, column]
    both = ((old & SIGN_OUT) != 0) & ((bits & SIGN_OUT) != 0)
    new = xp.contiguous(bits * ((bits & SIGN_OUT) != 0) + old * ((bits & SIGN_OUT) == 0))
    at = xp.nonzero(both)
    if len(at):
        new[at] = xp.sums(xp.contiguous(old[at]), xp.contiguous(bits[at]), dtype)
    dense[row, column] = new
    return dense


def unpack_sum_2_4(operand: PackedOperand) -> Array:
    """The dense weight, bit for bit: the inverse of ``pack_sum_2_4`` for dense operands."""
    xp, cut = _opened(operand)
    out = xp.zeros((cut.batch, cut.rows, cut.columns), 16)
    for b, start, stop, pair, nibble, row, column, bits in _unpacked(xp, operand, cut):
        dense = elements(xp, spread(xp, pair, nibble, 16), 16)
        dense[row, column] = bits
        out[b, start:stop] = dense
    return xp.values(out.reshape(operand.shape), operand.dtype)


def unpack_sum_2_4_parts(operand: PackedOperand) -> tuple[TwoOfFour, Rows]:
    """The two parts of a weight without a batch, with the coordinates and entries that were packed."""
    xp, cut = _opened(operand)
    if len(operand.shape) != 2:
        raise WrongShape(
            layout="parts of the 2:4+CSR", shape=operand.shape, more=" without a batch"
        )
    values = xp.zeros((cut.rows, cut.columns // 2), 16)
    marks = xp.zeros((cut.rows, cut.columns // 2), 8)
    keys, found = [xp.zeros((0,), 64)], [xp.zeros((0,), 64)]
    for _, start, stop, pair, nibble, row, column, bits in _unpacked(xp, operand, cut):
        values[start:stop] = xp.view(xp.cast(pair, 32), 16)
        marks[start:stop] = coordinates_of(xp, nibble)
        # Bits ride below the key, so that one sort brings entries and values into the order of CSR.
        key = xp.sort((row * cut.columns + column) << 16 | xp.cast(bits, 64) & 0xFFFF)
        keys.append((key >> 16) + start * cut.columns)
        found.append(key & 0xFFFF)
    key, bits = xp.concatenate(keys), xp.cast(xp.concatenate(found), 16)
    positions = xp.searchsorted(key, xp.arange(0, cut.rows + 1) * cut.columns)
    rest = Rows(positions, key % max(1, cut.columns), xp.values(bits, operand.dtype))
    return TwoOfFour(xp.values(values, operand.dtype), marks), rest


def unpack_sum_2_4_tensor(operand: PackedOperand) -> SparseTensor:
    """The tensor of format 2:4+CSR: the inverse of ``pack_sum_2_4`` for those."""
    part, rest = unpack_sum_2_4_parts(operand.to("host"))
    fmt = SUM.parts[1]
    levels = with_widths(fmt, [LevelArrays(), LevelArrays(rest.positions, rest.coordinates)])
    rows = SparseTensor(operand.shape, fmt, levels, rest.values)
    return sum_tensor([canonical_tensor(part, operand.shape), rows])


def _opened(operand: PackedOperand) -> tuple[Arrays, Shape]:
    operand.expect(LAYOUT)
    xp = arrays_of(operand.arrays["packed"])
    return xp, Shape(*matrix_shape(operand.shape, LAYOUT), operand.facts["steps"])


def _unpacked(
    xp: Arrays, operand: PackedOperand, cut: Shape
) -> Iterator[tuple[int, int, int, Array, Array, Array, Array, Array]]:
    """Batch, range of rows, pairs and nibbles of P, and row, column and bits of R's entries."""
    packed = operand.arrays["packed"].reshape(-1, 4)
    offsets = xp.cast(operand.arrays["offsets"], 64)
    for b in range(cut.batch):
        for start, stop in blocks(xp, cut.rows, cut.columns):
            tiles = -(-(stop - start) // fragments.ROWS)
            first = (b * cut.tiles + start // fragments.ROWS) * cut.chunks
            bounds = offsets[first : first + tiles * cut.chunks + 1]
            starts = bounds[:-1]
            at = (starts.reshape(-1, 1) + xp.arange(0, cut.fixed)).reshape(-1)
            units = packed[at].reshape(tiles, cut.chunks * cut.steps // 2, UNIT.words)
            pair, nibble = fragments.pairs_and_nibbles(xp, UNIT, units)
            counts = bounds[1:] - starts - cut.fixed
            chunk = xp.repeat(xp.arange(0, len(counts)), counts)
            inside = xp.arange(0, len(chunk)) - (xp.cumsum(counts) - counts)[chunk]
            word = xp.cast(packed[starts[chunk] + cut.fixed + inside].reshape(-1), 64)
            chunk = xp.repeat(chunk, xp.zeros((len(chunk),), 64) + 4)
            real = xp.nonzero(word >> 16)
            word, chunk = word[real], chunk[real]
            across = max(1, cut.chunks)
            row, column = residual.places(
                xp, word, chunk // across, chunk % across, nibble, cut.steps
            )
            inner = (slice(stop - start), slice(cut.columns // 4))
            yield b, start, stop, pair[inner], nibble[inner], row, column, xp.cast(word, 16)
