"""The 2:4 layout: multiplied by a model of the instructions, taken apart bit for bit, refused where it must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sparsecc import SparseTensor, asarray
from sparsecc.backends.triton.operands import (
    NotTwoOfFour,
    TwoOfFour,
    WrongLayout,
    pack_2_4,
    unpack_2_4,
    unpack_2_4_parts,
    unpack_2_4_tensor,
)
from sparsecc.backends.triton.packing.arrays import NumpyArrays, WrongArray, WrongDtype
from sparsecc.backends.triton.packing.groups import BadCoordinates
from sparsecc.backends.triton.packing.two_four import WrongShape
from sparsecc.runtime.packs import pack
from tests.unit.backends.triton import instructions as model
from tests.unit.backends.triton.packing_samples import (
    KINDS,
    SHAPES,
    WORDS,
    product,
    random,
    same_bits,
    two_of_four,
    unit_registers,
)


def units_of(packed: Any, rows: int, columns: int, dtype: str) -> Any:
    return packed.arrays["packed"].reshape(-(-rows // 16), -(-columns // 64), WORDS[dtype])


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_instructions_on_units_multiply(shape: tuple[int, int], dtype: str) -> None:
    rng = np.random.default_rng(sum(shape))
    w, x = two_of_four(rng, *shape, dtype), random(rng, (11, shape[1]), dtype)
    packed = pack_2_4(w)
    assert packed.nbytes == -(-shape[0] // 16) * -(-shape[1] // 64) * WORDS[dtype] * 4
    got = product(units_of(packed, *shape, dtype), x, dtype)
    want = x.astype(np.float64) @ w.astype(np.float64).T
    np.testing.assert_allclose(got[:11, : shape[0]], want, rtol=1e-12, atol=1e-9)
    assert not got[:, shape[0] :].any() and not got[11:].any()


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_warpgroups_on_the_same_units_multiply(dtype: str) -> None:
    rng = np.random.default_rng(3)
    rows, columns, tokens = 120, 192, 24
    w, x = two_of_four(rng, rows, columns, dtype), random(rng, (tokens, columns), dtype)
    values, metadata = unit_registers(units_of(pack_2_4(w), rows, columns, dtype), dtype)
    assert values.shape[0] == 8
    groups = values.reshape(2, 4, 3, 2, 32, 4)  # warpgroup, warp, k unit, step
    marks = metadata.reshape(2, 4, 3, 32)
    out = np.zeros((2, 128, tokens // 2))
    for unit in range(3):
        for step in range(2):
            at = 64 * unit + 32 * step
            b = x[:, at : at + 32].T.astype(np.float64)
            a, m = groups[:, :, unit, step].reshape(2, 128, 4), marks[:, :, unit].reshape(2, 128)
            out += model.wgmma_sp_m64nk32(a, m, step, b, dtype)
    got = np.zeros((128, tokens))
    for group in range(2):
        for thread in range(128):
            for i in range(tokens // 2):
                row = 64 * group + 16 * (thread // 32) + thread % 32 // 4 + 8 * (i // 2 % 2)
                got[row, 8 * (i // 4) + thread % 4 * 2 + i % 2] = out[group, thread, i]
    want = w.astype(np.float64) @ x.astype(np.float64).T
    np.testing.assert_allclose(got[:rows], want, rtol=1e-12, atol=1e-9)


@st.composite
def weights(draw: st.DrawFn) -> Any:
    """Any bits at all, in at most two places of each group of four."""
    dtype = draw(st.sampled_from(sorted(KINDS)))
    rows, groups = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    width = np.dtype(KINDS[dtype]).itemsize
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, size=(rows, groups, 4 * width), dtype=np.uint8)
    raw = raw.view(f"u{width}").copy()
    special = draw(arrays.arrays(np.dtype(f"u{width}"), 8))
    raw[rng.random(raw.shape) < 0.3] = rng.choice(special)
    order = np.argsort(rng.random(raw.shape), axis=-1)
    raw[order >= 2] = 0
    return raw.reshape(rows, groups * 4).view(KINDS[dtype])


@given(weights())
def test_round_trip_bit_for_bit(w: Any) -> None:
    packed = pack_2_4(w)
    assert same_bits(unpack_2_4(packed), w)
    parts = unpack_2_4_parts(packed)
    pair = parts.coordinates.reshape(-1, 2)
    assert (pair[:, 0] < pair[:, 1]).all() and pair.max() <= 3
    again = pack_2_4(parts)
    assert again.shape == packed.shape
    assert np.array_equal(again.arrays["packed"], packed.arrays["packed"])


@pytest.mark.parametrize("dtype", KINDS)
def test_work_in_pieces_is_the_same(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    w = two_of_four(np.random.default_rng(0), 70, 132, dtype)
    whole = pack_2_4(w)
    monkeypatch.setattr(NumpyArrays, "chunk", 16 * 132)
    pieces = pack_2_4(w)
    assert np.array_equal(whole.arrays["packed"], pieces.arrays["packed"])
    assert same_bits(unpack_2_4(whole), w)


@pytest.mark.parametrize("dtype", KINDS)
def test_torch_tensors_pack_to_the_same_bits(dtype: str) -> None:
    torch: Any = pytest.importorskip("torch")
    kinds = {"f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8}
    w = two_of_four(np.random.default_rng(1), 37, 76, dtype)
    there = torch.from_numpy(w.view(f"i{w.dtype.itemsize}").copy()).view(kinds[dtype])
    packed, host = pack_2_4(there), pack_2_4(w)
    assert (packed.device, host.device) == ("cpu", "host")
    assert np.array_equal(packed.arrays["packed"].numpy(), host.arrays["packed"])
    assert np.array_equal(packed.to("host").arrays["packed"], host.arrays["packed"])
    assert torch.equal(host.to("cpu").arrays["packed"], packed.arrays["packed"])
    back = unpack_2_4(packed)
    assert back.dtype == there.dtype and torch.equal(back.view(torch.int8), there.view(torch.int8))
    odd = torch.zeros(37 * 76 + 1, dtype=kinds[dtype])[1:].reshape(37, 76)  # not aligned to a group
    odd.copy_(there)
    assert torch.equal(pack_2_4(odd).arrays["packed"], packed.arrays["packed"])
    assert torch.equal(pack_2_4(there.T.contiguous().T).arrays["packed"], packed.arrays["packed"])


def test_parameters_pack_and_sparse_tensors_of_torch_do_not() -> None:
    torch: Any = pytest.importorskip("torch")
    w = two_of_four(np.random.default_rng(2), 16, 64, "f16")
    packed = pack_2_4(torch.nn.Parameter(torch.from_numpy(w)))
    assert not packed.arrays["packed"].requires_grad
    assert np.array_equal(packed.arrays["packed"].numpy(), pack_2_4(w).arrays["packed"])
    with pytest.raises(WrongArray, match=r"a tensor of layout torch\.sparse_coo, is not"):
        pack_2_4(torch.from_numpy(w).to_sparse())


def test_batches_are_packed_one_after_another() -> None:
    rng = np.random.default_rng(5)
    w = np.stack([two_of_four(rng, 18, 68, "f16") for _ in range(6)]).reshape(2, 3, 18, 68)
    packed = pack_2_4(w)
    single = [pack_2_4(w[i, j]).arrays["packed"] for i in range(2) for j in range(3)]
    assert np.array_equal(packed.arrays["packed"], np.concatenate(single))
    assert same_bits(unpack_2_4(packed), w)


def test_zeros_with_a_sign_take_spare_slots() -> None:
    w = np.array([[0, -0.0, 0, 0, 1, -0.0, 2, 0, -0.0, -0.0, -0.0, -3, 0, 0, 0, 4]], np.float16)
    want = w.copy()
    want[0, 5] = 0  # no slot is left: a zero as any other
    want[0, 9:11] = 0  # one slot is left: the first gets it
    assert same_bits(unpack_2_4(pack_2_4(w)), want)


def test_stored_zeros_keep_their_places_and_signs() -> None:
    values = np.array([[-0.0, 0.0, 1.0, -0.0]], np.float16)
    coordinates = np.array([[1, 3, 0, 3]], np.int32)
    parts = unpack_2_4_parts(pack_2_4(TwoOfFour(values, coordinates)))
    assert same_bits(parts.values, values)
    assert parts.coordinates.tolist() == coordinates.tolist()


def canonical(w: Any) -> SparseTensor:
    """A 2:4 tensor of the library, for dtypes that it stores."""
    return asarray(w).to("2:4")


@pytest.mark.parametrize("dtype", KINDS)
def test_canonical_tensors(dtype: str) -> None:
    w = two_of_four(np.random.default_rng(7), 19, 44, dtype)
    tensor = canonical(w)
    packed = pack_2_4(tensor)
    assert np.array_equal(packed.arrays["packed"], pack_2_4(w).arrays["packed"])
    back = unpack_2_4_tensor(packed).check()
    assert back.format == tensor.format and same_bits(back.values, tensor.values)
    stored, expected = back.levels[-1].coordinates, tensor.levels[-1].coordinates
    assert stored is not None and expected is not None and np.array_equal(stored, expected)
    rows = pack_2_4(asarray(w).to("CSR"))
    assert np.array_equal(rows.arrays["packed"], packed.arrays["packed"])


def test_full_groups_are_refused_with_their_places() -> None:
    w = np.zeros((40, 64), np.float16)
    w[2, 4:7] = 1
    w[30, 60:64] = np.nan
    with pytest.raises(NotTwoOfFour) as refused:
        pack_2_4(w)
    assert refused.value.facts["bad"] == 2 and refused.value.facts["groups"] == 640
    assert "row 2 columns 4-7; row 30 columns 60-63" in str(refused.value)
    assert "2:4+CSR" in refused.value.help
    with pytest.raises(NotTwoOfFour, match="64 of 64 .*row 0 columns 12-15;? *\n"):
        pack_2_4(np.ones((16, 16), np.int8))
    with pytest.raises(NotTwoOfFour, match="matrix 1 row 3 columns 0-3"):
        pack_2_4(np.stack([np.zeros((4, 4)), np.diag([0, 0, 0, 1]) @ np.ones((4, 4))]).astype("i1"))


def test_a_refusal_names_a_few_places_and_counts_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumpyArrays, "chunk", 1)  # a row tile at a time
    w = np.zeros((48, 8), np.int8)
    w[[0, 5, 16, 20, 40], 4:] = 1
    with pytest.raises(NotTwoOfFour) as refused:
        pack_2_4(w)
    assert refused.value.facts["bad"] == 5
    places = "; ".join(f"row {row} columns 4-7" for row in (0, 5, 16, 20))
    assert refused.value.facts["places"] == places


@pytest.mark.parametrize("pair", [(1, 1), (2, 1), (3, 4), (-1, 2)])
def test_metadata_that_the_hardware_does_not_define_is_refused(pair: tuple[int, int]) -> None:
    coordinates = np.array([[0, 1, 0, 1], [0, 3, *pair]], np.int32)
    with pytest.raises(BadCoordinates, match="1 of 4 groups .* group 1 of row 1"):
        pack_2_4(TwoOfFour(np.zeros((2, 4), np.float16), coordinates))


def test_wrong_operands_are_refused() -> None:
    with pytest.raises(WrongDtype, match="f16, bf16, i8, not f32"):
        pack_2_4(np.zeros((4, 4), np.float32))
    with pytest.raises(WrongShape, match="K a multiple of 4"):
        pack_2_4(np.zeros((4, 6), np.float16))
    with pytest.raises(WrongShape, match="multiple of 4"):
        pack_2_4(canonical(np.zeros((4, 6), np.int8)))
    with pytest.raises(WrongShape, match=r"not shape \(4,\)"):
        pack_2_4(np.zeros(4, np.float16))
    with pytest.raises(WrongArray, match="a list"):
        pack_2_4([[1, 2, 3, 4]])
    with pytest.raises(WrongLayout, match="packed as 2:4 is not bitmap"):
        pack_2_4(np.zeros((4, 4), np.float16)).expect("bitmap")


def test_empty_weights() -> None:
    for shape in ((0, 8), (8, 0), (0, 16, 64)):
        w = np.zeros(shape, np.float16)
        packed = pack_2_4(w)
        assert packed.nbytes == 0 and same_bits(unpack_2_4(packed), w)


@pytest.mark.parametrize("layout", ["2:4", "2:4+CSR", "bitmap"])
@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (17, 0), (2, 0, 4)])
def test_weights_without_rows_or_columns_in_every_form(layout: str, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    wanted = pack(layout, np.zeros(shape, np.float16))
    forms = [torch.zeros(shape).half(), asarray(np.zeros(shape, np.float16))]
    formats = {"2:4": "2:4", "2:4+CSR": "2:4+CSR", "bitmap": "BITMAP"}
    if len(shape) == 2:
        forms.append(forms[1].to(formats[layout]))
    for form in forms:
        found = pack(layout, form)
        assert found.shape == shape and found.dtype == "f16"
        assert {k: len(a) for k, a in found.arrays.items()} == {
            k: len(a) for k, a in wanted.arrays.items()
        }


def test_an_empty_tensor_of_bytes_in_2_4() -> None:
    assert pack("2:4", asarray(np.zeros((0, 4), np.int8)).to("2:4")).nbytes == 0


def test_padding_is_zeros_with_legal_metadata() -> None:
    packed = pack_2_4(np.array([[1, 0, 0, 1]], np.int8))
    values, metadata = unit_registers(packed.arrays["packed"].reshape(1, 1, 160), "i8")
    assert np.count_nonzero(values) == 1
    assert sorted(metadata.reshape(-1).tolist()) == [0x44444444] * 31 + [0x4444444C]
