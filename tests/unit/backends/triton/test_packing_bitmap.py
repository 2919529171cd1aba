"""Bitmap tiles read back element by element, and arrays that kernels take as they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecc import asarray, from_coords
from sparsecc.backends.triton.operands import (
    PackedOperand,
    pack_bitmap,
    pack_stored,
    unpack_bitmap,
)
from sparsecc.backends.triton.packing.arrays import NumpyArrays, WrongDtype
from sparsecc.backends.triton.packing.bitmap import TooManyValues, WrongBlock
from sparsecc.backends.triton.packing.stored import HasParts, IndexTooWide
from sparsecc.backends.triton.packing.two_four import WrongShape
from sparsecc.storage import limits
from tests.unit.backends.triton.packing_samples import bits, random, same_bits

DTYPES: dict[str, Any] = {"f16": "f2", "bf16": "bfloat16", "f32": "f4", "i8": "i1"}


def decompressed(packed: PackedOperand) -> Any:
    """The weight as a kernel finds it: one element at a time, by the formula of the layout."""
    height, width = packed.facts["block_rows"], packed.facts["block_columns"]
    *lead, rows, columns = packed.shape
    down, across = -(-rows // height), -(-columns // width)
    shape = (int(np.prod(lead)), down, across, height, width // 32)
    words = packed.arrays["words"].reshape(shape).view(np.uint32)
    starts = packed.arrays["starts"].reshape(shape)
    offsets, values = packed.arrays["offsets"], packed.arrays["values"]
    assert not (offsets * values.itemsize % 16).any() and offsets[-1] == len(values)
    out = np.zeros((shape[0], rows, columns), dtype=values.dtype)
    for b in range(shape[0]):
        for n in range(rows):
            for k in range(columns):
                at = (b, n // height, k // width, n % height, k % width // 32)
                word, tile = int(words[at]), (b * down + n // height) * across + k // width
                if word >> k % 32 & 1:
                    before = (word & ((1 << k % 32) - 1)).bit_count()
                    out[b, n, k] = values[offsets[tile] + int(starts[at]) + before]
    return out.reshape(packed.shape)


@st.composite
def weights(draw: st.DrawFn) -> Any:
    dtype = np.dtype(draw(st.sampled_from(sorted(DTYPES.values()))))
    shape = draw(st.sampled_from([(1, 1), (5, 33), (16, 32), (20, 70), (2, 7, 40)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    raw = rng.integers(0, 256, size=(*shape, dtype.itemsize), dtype=np.uint8)
    raw = raw.view(f"u{dtype.itemsize}").reshape(shape).copy()
    raw[rng.random(shape) < draw(st.sampled_from([0.0, 0.5, 1.0]))] = 0
    if dtype.name != "int8":
        raw[raw == 1 << (8 * dtype.itemsize - 1)] = 0  # -0.0 is not stored
    return raw.view(dtype)


@given(weights(), st.sampled_from([(8, 32), (3, 64), (16, 96)]))
@settings(deadline=None, max_examples=40)
def test_every_element_is_where_the_layout_says(w: Any, block: tuple[int, int]) -> None:
    packed = pack_bitmap(w, block=block)
    assert same_bits(decompressed(packed), w)
    assert same_bits(unpack_bitmap(packed), w)


def test_tiles_are_dense_ranges() -> None:
    w = np.ones((128, 128), np.float16)
    packed = pack_bitmap(w)
    assert packed.facts == {"block_rows": 64, "block_columns": 64, "entries": 4096}
    assert packed.arrays["offsets"].tolist() == [0, 4096, 8192, 12288, 16384]
    assert packed.nbytes == 2 * w.size + w.size // 8 + w.size // 16 + 20
    full = pack_bitmap(np.ones((128, 256), np.int8), block=(128, 256))
    assert full.arrays["starts"].max() == 32768 - 32


def test_zeros_with_a_sign_are_zeros_but_entries_are_kept() -> None:
    w = np.array([[-0.0, 1.0, 0.0]], np.float32)
    assert bits(unpack_bitmap(pack_bitmap(w))).tolist() == bits(np.abs(w)).tolist()
    stored = from_coords(([0, 0], [0, 2]), np.array([-0.0, 3], np.float32), (1, 3), format="CSR")
    packed = pack_bitmap(stored)
    assert packed.facts["entries"] == 2
    assert bits(unpack_bitmap(packed)).tolist() == [[0x80000000, 0, 0x40400000]]


def test_work_in_pieces_and_tensors_of_torch_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = pytest.importorskip("torch")
    w = random(np.random.default_rng(0), (2, 70, 100), "f16")
    w[np.random.default_rng(1).random(w.shape) < 0.6] = 0
    whole = pack_bitmap(w, block=(16, 32))
    there = pack_bitmap(torch.from_numpy(w), block=(16, 32))
    assert torch.equal(unpack_bitmap(there), torch.from_numpy(w))
    moved = whole.to("cpu")
    assert moved.device == "cpu" and moved.arrays["values"].dtype == torch.float16
    monkeypatch.setattr(NumpyArrays, "chunk", 1)
    pieces = pack_bitmap(w, block=(16, 32))
    assert pieces.facts == whole.facts == there.facts
    for role, array in whole.arrays.items():
        assert np.array_equal(pieces.arrays[role], array)
        assert np.array_equal(there.arrays[role].numpy(), array)
        assert same_bits(moved.to("host").arrays[role], array)
    assert same_bits(unpack_bitmap(whole), w)


def test_moving_keeps_bf16() -> None:
    pytest.importorskip("torch")
    w = random(np.random.default_rng(2), (9, 40), "bf16")
    packed = pack_bitmap(w)
    assert same_bits(unpack_bitmap(packed.to("cpu").to("host")), w)
    assert packed.to("host") is packed


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    w = np.ones((64, 64), np.float16)
    for block in ((0, 32), (16, 48), (16, 0), (256, 256)):
        with pytest.raises(WrongBlock, match=f"{block[0]} x {block[1]}"):
            pack_bitmap(w, block=block)
    with pytest.raises(WrongShape, match=r"\(64,\)"):
        pack_bitmap(w[0])
    with pytest.raises(WrongDtype, match="not f64"):
        pack_bitmap(w.astype(np.float64))
    monkeypatch.setattr(limits, "INT32_MAX", 4095)
    with pytest.raises(TooManyValues, match="over 4095 values"):
        pack_bitmap(w)


def test_empty_weights() -> None:
    for shape in ((0, 8), (8, 0), (0, 4, 4)):
        w = np.zeros(shape, np.float16)
        assert same_bits(unpack_bitmap(pack_bitmap(w)), w)


def test_blocks_and_rows_are_taken_as_they_are_stored() -> None:
    w = np.kron(np.array([[1, 0], [0, 1], [1, 1]]), np.arange(1, 13).reshape(3, 4)).astype("f4")
    for name, roles in (
        ("CSR", {"values", "positions1", "coordinates1"}),
        ("COO", {"values", "positions0", "coordinates0", "coordinates1"}),
        ("BSR(3,4)", {"values", "positions1", "coordinates1"}),
        ("dense", {"values"}),
    ):
        tensor = asarray(w).to(name)
        packed = pack_stored(tensor)
        assert packed.layout == name and packed.dtype == "f32" and set(packed.arrays) == roles
        assert packed.arrays["values"] is tensor.values
        if name == "BSR(3,4)":
            assert packed.arrays["positions1"] is tensor.levels[1].positions
            assert packed.arrays["coordinates1"].tolist() == [0, 1, 0, 1]
            assert (packed.arrays["values"].reshape(4, 3, 4) == w[:3, :4]).all()


def test_indices_have_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = asarray(np.eye(5, 9)).to("(d0, d1) -> (d0 : dense, d1 : compressed)@i64/i64")
    packed = pack_stored(tensor)
    assert {str(a.dtype) for r, a in packed.arrays.items() if r != "values"} == {"int32"}
    assert packed.arrays["coordinates1"].tolist() == [0, 1, 2, 3, 4]
    monkeypatch.setattr(limits, "INT32_MAX", 3)
    with pytest.raises(IndexTooWide, match="positions of level 1 hold 5"):
        pack_stored(tensor)


def test_sums_are_packed_as_bitmaps_but_have_no_arrays_of_their_own() -> None:
    w = random(np.random.default_rng(3), (9, 40), "f16")
    tensor = asarray(w).to("2:4+CSR")
    assert same_bits(unpack_bitmap(pack_bitmap(tensor)), w)
    with pytest.raises(HasParts, match=r"2:4\+CSR"):
        pack_stored(tensor)
