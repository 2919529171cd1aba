"""The bitmap level: its words, looking up, what hostile arrays say, kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsecc as sc
from sparsecc.diagnostics import FormatError, LimitError, OperandError
from sparsecc.formats import Ability, LevelArrays, known_name, parse_format
from sparsecc.formats.builder import LevelCode
from sparsecc.formats.levels import bitmap
from sparsecc.formats.levels.bitmap import Bitmap, TooManyWords
from tests.unit.storage_bits import same_bits

TILES = "(i, j) -> (i : dense, j floordiv 32 : dense, j mod 32 : bitmap)"


def matrix(shape: tuple[int, int] = (7, 70), density: float = 0.4) -> Any:
    rng = np.random.default_rng(shape)
    return np.where(rng.random(shape) < density, rng.standard_normal(shape), 0)


def test_words() -> None:
    """Bit c % 32 of word c // 32, and counts before each word."""
    dense = np.zeros((2, 40))
    dense[0, [0, 31, 33]], dense[1, 39] = (1, 2, 3), 4
    level = sc.asarray(dense).to("BITMAP").levels[1]
    assert level.coordinates is not None and level.positions is not None
    assert level.coordinates.dtype == np.int32
    assert level.coordinates.view(np.uint32).tolist() == [1 | 1 << 31, 2, 0, 1 << 7]
    assert level.positions.tolist() == [0, 2, 3, 3, 4]
    tiled = sc.asarray(dense).to(TILES).levels[2]
    assert tiled.coordinates is not None and np.array_equal(tiled.coordinates, level.coordinates)


def test_sizes() -> None:
    tensor = sc.asarray(matrix((64, 64))).to("BITMAP")
    assert tensor.nbytes == tensor.nnz * 8 + 128 * 4 + 129 * 4
    assert known_name(tensor.format) == "BITMAP" and tensor.format.levels[1].can(Ability.LOCATE)
    assert (
        known_name(parse_format("BITMAP(3)")) == "BITMAP(3)" and parse_format("BITMAP", 1).rank == 1
    )


@pytest.mark.parametrize(
    "fmt", ["BITMAP", TILES, "(i, j) -> (i : bitmap, j : bitmap)", "2:4+BITMAP"]
)
@pytest.mark.parametrize("other", ["dense", "CSR", "CSC", "COO", "BSR(2,3)"])
def test_round_trips(fmt: str, other: str, tmp_path: Path) -> None:
    array = matrix()
    array.view(np.uint64)[0, 0] = 0x7FF8000000001234  # a NaN with a payload
    tensor = sc.asarray(array).to(other).to(fmt).check()
    assert same_bits(tensor.to_numpy(), array) and tensor.nnz == np.count_nonzero(array)
    assert same_bits(tensor.to(other).check().to_numpy(), array)
    tensor.save(tmp_path / "a.npz")
    assert same_bits(sc.read(tmp_path / "a.npz").to(fmt).to_numpy(), array)


def test_stored_zeros_stay() -> None:
    found = sc.from_coords([[0, 0], [3, 40]], [0.0, 1.0], (1, 41), "BITMAP").to("CSR")
    assert found.nnz == 2


@pytest.mark.parametrize("repeat", [1, 3])
@pytest.mark.parametrize("few", [False, True])
def test_repeated_entries(repeat: int, few: bool) -> None:
    """Above other levels a coordinate comes once for each entry below; both ways of packing."""
    size = 5_000_000 if few else 100
    coordinates = np.repeat(np.array([2, 31, 32, 95]), repeat)
    packed = Bitmap().pack(np.zeros(4 * repeat, np.int64), coordinates, 1, size)
    assert (
        packed.positions.tolist() == np.repeat(np.arange(4), repeat).tolist() and packed.count == 4
    )
    unpacked = Bitmap().unpack(packed.arrays, 1, size)
    assert unpacked.coordinates.tolist() == [2, 31, 32, 95] and not unpacked.parents.any()
    assert Bitmap().problems(packed.arrays, 1, size) == ([], 4)


def test_too_large() -> None:
    with pytest.raises(TooManyWords, match="nearly all bits would be 0"):
        sc.from_coords([[0], [0]], [1.0], (1 << 20, 1 << 20), "BITMAP")


def test_narrow_words_are_refused() -> None:
    with pytest.raises(FormatError, match="words of 32 bits, not 16"):
        parse_format("BITMAP@i16/i32")
    with pytest.raises(FormatError, match="once, in order"):
        parse_format("(i) -> (i : bitmap(nonordered))")
    with pytest.raises(LimitError, match="8 bits"):
        sc.asarray(np.ones((3, 100))).to("BITMAP@i32/i8")


# -- hostile arrays ------------------------------------------------------------------------------


HOSTILE: dict[str, tuple[Callable[[Any], LevelArrays], str]] = {
    "few words": (
        lambda a: replace(a, coordinates=a.coordinates[:1]),
        "1 words for 1 parents of 2",
    ),
    "few positions": (lambda a: replace(a, positions=a.positions[:2]), "2 entries, not 3"),
    "wrong count": (lambda a: replace(a, positions=np.array([0, 1, 3])), "hold 1 at 1, but 2 bits"),
    "wrong total": (lambda a: replace(a, positions=np.array([0, 2, 9])), "hold 9 at 2, but 3 bits"),
    "negative": (lambda a: replace(a, positions=np.array([-1, 2, 3])), "hold -1 at 0"),
    "bit beyond": (lambda a: replace(a, coordinates=np.array([5, 1 << 9])), "beyond \\[0, 40\\)"),
    "wide word": (
        lambda a: replace(a, coordinates=np.array([5, 1 << 33])),
        "not a word of 32 bits",
    ),
    "floats": (lambda a: replace(a, coordinates=np.array([5.0, 1.0])), "integer"),
    "no words": (lambda a: LevelArrays(a.positions), "wants coordinates"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_arrays(case: str) -> None:
    dense = np.zeros((1, 40))
    dense[0, [0, 2, 32]] = 1
    tensor = sc.asarray(dense).to("BITMAP")
    change, message = HOSTILE[case]
    with pytest.raises(OperandError, match=message):
        replace(tensor, levels=(LevelArrays(), change(tensor.levels[1]))).check()


@pytest.mark.parametrize("words", [[5, 1 << 7], [-(1 << 31), 0], [1 << 31, 0], [0xFFFFFFFF, 0xFF]])
def test_words_of_either_sign(words: list[int]) -> None:
    """Unsigned words are read as well, in 64 bits."""
    dense = np.zeros(40)
    bits = [b for n, w in enumerate(words) for b in range(32 * n, 32 * n + 32) if w >> b % 32 & 1]
    dense[bits] = np.arange(1, len(bits) + 1)
    first = sum(b < 32 for b in bits)
    levels = (LevelArrays(np.array([0, first, len(bits)]), np.array(words)),)
    tensor = sc.SparseTensor((40,), parse_format("BITMAP", 1), levels, dense[bits]).check()
    assert (tensor.to_numpy() == dense).all()
    assert (tensor.to("SV").to_numpy() == dense).all()


def test_values_are_counted() -> None:
    tensor = sc.asarray(matrix()).to("BITMAP")
    with pytest.raises(OperandError, match="values for"):
        replace(tensor, values=tensor.values[:-1]).check()


# -- looking up ----------------------------------------------------------------------------------


class Integers:
    """A LoopBuilder that computes."""

    index = staticmethod(int)
    add, sub, mul = (staticmethod(f) for f in (int.__add__, int.__sub__, int.__mul__))
    div, mod = staticmethod(int.__floordiv__), staticmethod(int.__mod__)

    def load(self, array: Any, position: int) -> int:
        return int(array[position]) & 0xFFFFFFFF

    def bit(self, word: int, at: int) -> bool:
        return bool(word >> at & 1)

    def bits_below(self, word: int, at: int) -> int:
        return (word & ((1 << at) - 1)).bit_count()


@given(st.integers(1, 100), st.integers(1, 4), st.randoms(use_true_random=False))
def test_locate_by_counting(size: int, rows: int, random: Any) -> None:
    there = sorted(random.sample(range(size * rows), random.randint(0, size * rows)))
    parents, coordinates = np.divmod(np.array(there, np.int64), size)
    arrays = Bitmap().pack(parents, coordinates, rows, size).arrays
    b: Any = Integers()
    code = LevelCode(arrays.positions, arrays.coordinates, size)
    for at in range(size * rows):
        position, found = Bitmap().locate(b, code, at // size, at % size)
        assert found == (at in there)
        if found:
            assert position == there.index(at)
    lo, hi = Bitmap().bounds(b, code, rows - 1)
    assert hi - lo == sum(at // size == rows - 1 for at in there)


@pytest.mark.parametrize("width", ["", "@i64/i64", "@i32/i16"])
def test_diagonals_are_looked_up(width: str) -> None:
    array = matrix((70, 70))
    tensor = sc.asarray(array).to(f"BITMAP{width}")
    kernel = sc.compile("d[i] = A[i,i]", A=tensor)
    assert "converted" not in kernel.explain() and "__builtin_popcountll" in kernel.source
    assert (kernel(A=tensor) == np.diag(array)).all()
    assert sc.evaluate("s = A[i,i]", A=tensor) == pytest.approx(np.trace(array))
    sparse = sc.evaluate("d[i] = A[i,i]", A=tensor, out="SV")
    assert sparse.nnz == np.count_nonzero(np.diag(array))


def test_kernels_convert_and_say_so() -> None:
    array = matrix()
    for fmt in ("BITMAP", TILES):
        tensor = sc.asarray(array).to(fmt)
        kernel = sc.compile("y[i] = A[i,j] * x[j]", A=tensor, x=np.ones(70))
        assert "A converted to CSR: a bitmap level can be looked up, not walked" in kernel.explain()
        np.testing.assert_allclose(kernel(A=tensor, x=np.ones(70)), array.sum(1))
        found: Any = sc.evaluate("C[i,j] = 2 * A[i,j]", A=tensor)
        assert found.format == tensor.format and (found.to_numpy() == 2 * array).all()


def test_both_ways_of_packing_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    array = matrix((9, 300), 0.001)
    wide = np.zeros((9, 3_000_000))
    wide[:, :300] = array
    tensor = sc.asarray(sc.asarray(wide).to("COO")).to("BITMAP").check()
    assert (tensor.to("COO").to_coords()[0][1] == np.nonzero(array)[1]).all()
    monkeypatch.setattr(bitmap, "MAX_WORDS", 10)
    with pytest.raises(TooManyWords):
        sc.from_coords([[0], [0]], [1.0], (3, 4000), "BITMAP")
