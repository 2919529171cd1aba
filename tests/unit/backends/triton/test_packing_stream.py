"""The 2:4+CSR stream: multiplied as a kernel does, by a model of the instructions, and taken apart again."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecc import asarray, from_coords
from sparsecc.backends.triton.operands import (
    PackedOperand,
    Rows,
    TwoOfFour,
    pack_2_4,
    pack_sum_2_4,
    unpack_2_4_parts,
    unpack_sum_2_4,
    unpack_sum_2_4_parts,
    unpack_sum_2_4_tensor,
)
from sparsecc.backends.triton.packing.arrays import NumpyArrays, WrongDtype
from sparsecc.backends.triton.packing.stream import BadResidual, StreamTooLong, WrongSteps
from sparsecc.backends.triton.packing.two_four import WrongShape
from sparsecc.storage import limits
from tests.unit.backends.triton import instructions as model
from tests.unit.backends.triton.packing_samples import (
    bits,
    padded,
    random,
    same_bits,
    two_of_four,
    unit_registers,
)

FLOATS = ("f16", "bf16")


def unstructured(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, density: float = 0.5
) -> Any:
    w = random(rng, shape, dtype)
    w[rng.random(shape) >= density] = 0
    return w


def chunks_of(packed: PackedOperand) -> list[npt.NDArray[np.uint32]]:
    """The words of each chunk."""
    words, offsets = model.lanes_of(packed.arrays["packed"]), packed.arrays["offsets"]
    assert (offsets[-64:] == len(words) // 4).all()
    chunks = [words[4 * a : 4 * b] for a, b in zip(offsets[:-65], offsets[1:-64], strict=True)]
    fixed = packed.facts["steps"] * 36
    assert max((len(c) // 4 - fixed for c in chunks), default=0) == packed.facts["entries"]
    return chunks


def scattered(entries: npt.NDArray[np.uint32], steps: int) -> model.Registers:
    """The residual's fragment tile, as the kernel fills it in shared memory: [steps, 32, 4]."""
    shared = np.zeros(512 + steps * 512, dtype=np.uint8)
    for entry in entries.tolist():
        offset = entry >> 16
        assert offset == 0 or not shared[offset : offset + 2].any()
        shared[offset : offset + 2] = (entry & 255, entry >> 8 & 255)
    return shared[512:].view(np.uint32).reshape(steps, 32, 4)


def complement_of(metadata: model.Registers) -> model.Registers:
    """The kernel's five instructions: the two columns that the metadata leaves out."""
    m = metadata.astype(np.uint32)
    unlike = ((m >> np.uint32(1)) ^ (m >> np.uint32(3))) & np.uint32(0x11111111)
    return m ^ (np.uint32(0xAAAAAAAA) - np.uint32(5) * unlike)


def test_the_complement_is_the_other_two() -> None:
    for first in range(4):
        for second in range(first + 1, 4):
            others = sorted({0, 1, 2, 3} - {first, second})
            nibble = first | second << 2
            found = complement_of(np.array([nibble * 0x11111111], np.uint32))[0]
            assert int(found) == (others[0] | others[1] << 2) * 0x11111111


def product(packed: PackedOperand, x: Any) -> npt.NDArray[np.float64]:
    """``x @ w.T``: two mma.sp a step, P with its metadata and R with the complement."""
    rows, columns = packed.shape
    steps, dtype = packed.facts["steps"], packed.dtype
    across = -(-columns // (32 * steps))
    tokens = -(-x.shape[0] // 8) * 8
    x = padded(x, tokens, across * 32 * steps)
    out = np.zeros((-(-rows // 16) * 16, tokens))
    for number, chunk in enumerate(chunks_of(packed)):
        tile, at = divmod(number, across)
        units = chunk[: steps * 144].reshape(steps // 2, 288)
        values, metadata = unit_registers(units, dtype)
        rest = scattered(chunk[steps * 144 :], steps)
        for step in range(steps):
            a, m, selector = values[step // 2, step % 2], metadata[step // 2], step % 2
            k = (at * steps + step) * 32
            for token in range(0, tokens, 8):
                b = model.b_registers(x[token : token + 8, k : k + 32].T, dtype)
                d = model.mma_sp_m16n8k32(a, b, m, selector, dtype)
                d += model.mma_sp_m16n8k32(rest[step], b, complement_of(m), selector, dtype)
                out[16 * tile : 16 * tile + 16, token : token + 8] += model.rows_of(d)
    return out.T


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("steps", [4, 8])
@pytest.mark.parametrize("shape", [(16, 128), (1, 4), (17, 68), (35, 300), (32, 512)])
def test_instructions_on_chunks_multiply(shape: tuple[int, int], steps: int, dtype: str) -> None:
    rng = np.random.default_rng(sum(shape))
    w, x = unstructured(rng, shape, dtype), random(rng, (9, shape[1]), dtype)
    got = product(pack_sum_2_4(w, steps=steps), x)
    want = x.astype(np.float64) @ w.astype(np.float64).T
    np.testing.assert_allclose(got[:9, : shape[0]], want, rtol=1e-12, atol=1e-8)
    assert not got[:, shape[0] :].any()


@st.composite
def weights(draw: st.DrawFn) -> Any:
    """Any bits at all; zeros are positive, since the sign of a zero without a slot is not kept."""
    dtype = draw(st.sampled_from([np.dtype(np.float16), np.dtype("bfloat16")]))
    shape = draw(st.integers(1, 40)), 4 * draw(st.integers(1, 80))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    raw = rng.integers(0, 2**16, size=shape, dtype=np.uint16)
    raw[rng.random(shape) < draw(st.sampled_from([0.0, 0.3, 0.8]))] = 0
    raw[rng.random(shape) < 0.1] = draw(st.integers(0, 2**16 - 1))
    raw[raw == 0x8000] = 0
    return raw.view(dtype)


@given(weights(), st.sampled_from([4, 8]))
@settings(deadline=None)
def test_round_trip_bit_for_bit(w: Any, steps: int) -> None:
    packed = pack_sum_2_4(w, steps=steps)
    assert same_bits(unpack_sum_2_4(packed), w)
    part, rest = unpack_sum_2_4_parts(packed)
    assert np.count_nonzero(bits(part.values)) + len(rest.values) == np.count_nonzero(bits(w))
    again = pack_sum_2_4(part, rest, steps=steps)
    assert again.facts == packed.facts
    for role, array in packed.arrays.items():
        assert np.array_equal(again.arrays[role], array)


def largest_first(group: list[float]) -> set[int]:
    """The columns of the two largest magnitudes: NaN above all, ties to the lower column."""
    size = [float("inf") if v != v else abs(v) for v in group]
    nan = [v != v for v in group]
    return set(sorted(range(4), key=lambda k: (not nan[k], -size[k], k))[:2])


def test_the_two_largest_are_in_the_first_part() -> None:
    nan, inf = float("nan"), float("inf")
    groups = [
        [1, 2, 3, 4], [-4, 3, -2, 1], [1, 1, 1, 1], [-1, 1, -1, 1], [nan, 1, inf, nan], [inf, -inf, nan, 2],
        [6e-8, 0, 1.2e-7, 1.8e-7], [0, 0, 0, 5], [2, 2, 3, 2], [65504, -65504, 1, inf],
        [nan, nan, nan, 1],
    ]  # fmt: skip
    w = np.array(groups, np.float16).reshape(1, -1)
    w.view(np.uint16)[0, -4] = 0x7C01  # NaNs are alike whatever their payload
    part, rest = unpack_sum_2_4_parts(pack_sum_2_4(w))
    for number, group in enumerate(w.reshape(-1, 4).tolist()):
        want = largest_first(group)
        assert set(part.coordinates[0, 2 * number : 2 * number + 2].tolist()) == want
        stored = [int(c) % 4 for c in rest.coordinates if int(c) // 4 == number]
        assert stored == [k for k in range(4) if k not in want and group[k] != 0]


def test_zeros_with_a_sign_take_spare_slots() -> None:
    w = np.array([[1, 0, 0, -0.0, 1, -0.0, 2, 3]], np.float16)
    want = w.copy()
    want[0, 5] = 0  # no slot is left: a zero as any other
    packed = pack_sum_2_4(w)
    assert same_bits(unpack_sum_2_4(packed), want)
    assert packed.facts["entries"] == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_without_overflow_the_units_are_those_of_2_4(dtype: str) -> None:
    w = two_of_four(np.random.default_rng(0), 32, 256, dtype)
    w[0, 0] = w.dtype.type(-0.0) if w[0, 0] == 0 else w[0, 0]
    packed = pack_sum_2_4(w)
    assert packed.facts == {"steps": 4, "entries": 0}
    assert np.array_equal(packed.arrays["packed"], pack_2_4(w).arrays["packed"])


def test_stores_of_a_warp_rarely_meet_in_a_bank() -> None:
    w = unstructured(np.random.default_rng(1), (64, 1024), "f16")
    wavefronts: list[int] = []
    for chunk in chunks_of(pack_sum_2_4(w)):
        entries = chunk[4 * 144 :].reshape(-1, 4)
        for start in range(0, len(entries), 32):  # one vector a lane
            for j in range(4):  # one store of the warp
                offset = entries[start : start + 32, j] >> np.uint32(16)
                words = np.unique(offset[offset > 0] >> np.uint32(2))
                if len(words):
                    wavefronts.append(int(np.bincount(words % 32).max()))
    assert np.mean(wavefronts) < 2


def test_work_in_pieces_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    w = unstructured(np.random.default_rng(2), (70, 260), "bf16")
    whole = pack_sum_2_4(w)
    part, rest = unpack_sum_2_4_parts(whole)
    monkeypatch.setattr(NumpyArrays, "chunk", 16 * 260)
    for pieces in (pack_sum_2_4(w), pack_sum_2_4(part, rest)):
        for role, array in whole.arrays.items():
            assert np.array_equal(pieces.arrays[role], array)
    assert same_bits(unpack_sum_2_4(whole), w)


@pytest.mark.parametrize("dtype", FLOATS)
def test_torch_tensors_pack_to_the_same_bits(dtype: str) -> None:
    torch: Any = pytest.importorskip("torch")
    kind = {"f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    w = unstructured(np.random.default_rng(3), (2, 37, 300), dtype)
    there = torch.from_numpy(w.view(np.int16)).view(kind)
    packed, host = pack_sum_2_4(there, steps=8), pack_sum_2_4(w, steps=8)
    assert packed.facts == host.facts
    for role, array in host.arrays.items():
        assert np.array_equal(packed.arrays[role].numpy(), array)
    assert torch.equal(unpack_sum_2_4(packed).view(torch.int16), there.view(torch.int16))
    part, rest = unpack_sum_2_4_parts(pack_sum_2_4(there[0]))
    again = pack_sum_2_4(part, rest)
    assert np.array_equal(again.arrays["packed"].numpy(), pack_sum_2_4(w[0]).arrays["packed"])


def test_batches_follow_each_other() -> None:
    w = unstructured(np.random.default_rng(4), (3, 18, 132), "f16")
    packed = pack_sum_2_4(w)
    singles = [pack_sum_2_4(m) for m in w]
    joined = np.concatenate([s.arrays["packed"] for s in singles])
    assert np.array_equal(packed.arrays["packed"], joined)
    assert packed.facts["entries"] == max(s.facts["entries"] for s in singles)
    assert same_bits(unpack_sum_2_4(packed), w)


def test_parts_keep_what_they_store() -> None:
    values = np.array([[-0.0, 1.0, 0.0, 0.0]], np.float16)
    part = TwoOfFour(values, np.array([[0, 2, 1, 3]], np.uint8))
    rest = Rows(np.array([0, 3]), np.array([1, 3, 4]), np.array([-0.0, 2.0, 0.0], np.float16))
    got, left = unpack_sum_2_4_parts(pack_sum_2_4(part, rest))
    assert same_bits(got.values, values) and got.coordinates.tolist() == [[0, 2, 1, 3]]
    assert left.positions.tolist() == [0, 3] and left.coordinates.tolist() == [1, 3, 4]
    assert same_bits(left.values, rest.values)


def test_parts_that_meet_are_split_anew() -> None:
    rng = np.random.default_rng(5)
    w = two_of_four(rng, 19, 132, "f16")
    more = unstructured(rng, (19, 132), "f16", density=0.3)
    row, column = np.nonzero(more)
    counts = np.bincount(row, minlength=19)
    rest = Rows(np.concatenate([[0], np.cumsum(counts)]), column, more[row, column])
    total = (w.astype(np.float32) + more.astype(np.float32)).astype(np.float16)
    first = pack_sum_2_4(TwoOfFour(*_parts(w)), rest)
    want = pack_sum_2_4(total + np.float16(0))
    assert np.array_equal(first.arrays["packed"], want.arrays["packed"])
    # A value in an empty slot of the first part moves there as it is: a NaN keeps its payload.
    empty = np.zeros((1, 4), np.float16)
    payload = np.array([0x7E57], np.uint16).view(np.float16)
    moved = pack_sum_2_4(TwoOfFour(*_parts(empty)), Rows(np.array([0, 1]), np.array([1]), payload))
    assert bits(unpack_sum_2_4(moved)).tolist() == [[0, 0x7E57, 0, 0]]
    assert moved.facts["entries"] == 0
    # So does a value that meets a stored zero.
    signalling = np.array([[0x7C01, 0]], np.uint16).view(np.float16)
    zero = Rows(np.array([0, 1]), np.array([0]), np.zeros(1, np.float16))
    met = pack_sum_2_4(TwoOfFour(signalling, np.array([[0, 1]], np.uint8)), zero)
    assert bits(unpack_sum_2_4(met)).tolist() == [[0x7C01, 0, 0, 0]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_tensors_of_the_library(dtype: str) -> None:
    w = unstructured(np.random.default_rng(6), (18, 68), dtype)
    packed, stored = pack_sum_2_4(w), asarray(w).to("2:4+CSR")
    part, rest = stored.parts
    for other in (
        pack_sum_2_4(stored),
        pack_sum_2_4(part, rest),
        pack_sum_2_4(asarray(w).to("COO")),
    ):
        assert other.facts == packed.facts
        for role, array in packed.arrays.items():
            assert np.array_equal(other.arrays[role], array)
    back = unpack_sum_2_4_tensor(packed).check()
    assert back.format == stored.format
    for mine, theirs in zip(back.parts, stored.parts, strict=True):
        assert same_bits(mine.values, theirs.values)
        for one, other in zip(mine.levels, theirs.levels, strict=True):
            pairs = zip(dict(one).items(), dict(other).items(), strict=True)
            assert all(a[0] == b[0] and np.array_equal(a[1], b[1]) for a, b in pairs)


def test_a_part_alone_is_a_weight_too() -> None:
    w = two_of_four(np.random.default_rng(7), 6, 20, "f16")
    packed = pack_sum_2_4(asarray(w).to("2:4"))
    assert np.array_equal(packed.arrays["packed"], pack_sum_2_4(w).arrays["packed"])


def _parts(w: Any) -> tuple[Any, Any]:
    parts = unpack_2_4_parts(pack_2_4(w))
    return parts.values, parts.coordinates


def test_wrong_operands_are_refused() -> None:
    with pytest.raises(WrongDtype, match=r"2:4\+CSR layout holds f16, bf16, not i8"):
        pack_sum_2_4(np.zeros((4, 4), np.int8))
    with pytest.raises(WrongSteps, match="4 or 8 steps of 32 columns, not 2"):
        pack_sum_2_4(np.zeros((4, 4), np.float16), steps=2)
    with pytest.raises(WrongShape, match="K a multiple of 4"):
        pack_sum_2_4(np.zeros((4, 6), np.float16))
    part = TwoOfFour(*_parts(np.zeros((2, 8), np.float16)))
    one = np.ones(1, np.float16)
    for positions, coordinates, values, problem in (
        ([0, 1], [0], one, "do not fit"),
        ([0, 2, 1], [0], one, "do not fit"),
        ([0, 1, 1], [8], one, "outside"),
        ([0, 1, 1], [-1], one, "outside"),
        ([0, 2, 2], [3, 2], np.ones(2, np.float16), "do not ascend"),
        ([0, 2, 2], [3, 3], np.ones(2, np.float16), "do not ascend"),
        ([0, 1, 1], [0], np.ones(1, np.float32), "values are f32, the 2:4 part's f16"),
    ):
        with pytest.raises(BadResidual, match=problem):
            pack_sum_2_4(part, Rows(np.array(positions), np.array(coordinates), values))
    with pytest.raises(BadResidual, match="it is CSC"):
        pack_sum_2_4(part, asarray(np.eye(2, 8)).to("CSC"))
    three = from_coords(([0], [0]), np.ones(1), (3, 8), format="CSR")
    with pytest.raises(BadResidual, match=r"CSR of shape \(3, 8\)"):
        pack_sum_2_4(part, three)


def test_a_stream_beyond_the_offsets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    w = np.ones((64, 256), np.float16)
    needed = len(pack_sum_2_4(w).arrays["packed"]) // 4
    monkeypatch.setattr(limits, "INT32_MAX", needed)
    pack_sum_2_4(w)
    monkeypatch.setattr(limits, "INT32_MAX", needed - 1)
    with pytest.raises(StreamTooLong, match=rf"\(64, 256\) has over {needed - 1} vectors"):
        pack_sum_2_4(w)


def test_empty_weights() -> None:
    for shape in ((0, 8), (8, 0), (0, 16, 64)):
        w = np.zeros(shape, np.float16)
        packed = pack_sum_2_4(w)
        assert packed.facts["entries"] == 0 and same_bits(unpack_sum_2_4(packed), w)
        assert not packed.arrays["offsets"].any() and len(packed.arrays["packed"]) == 0
