"""Sums of formats: what each part takes, exact round trips, files, kernels, mistakes."""

from __future__ import annotations

import io
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.diagnostics import FileError, FormatError, LimitError, OperandError
from sparsecc.elements import NUMPY
from sparsecc.formats import SumFormat, known_name, parse_format, sum_format
from sparsecc.storage.conversion_graph import conversion_path
from sparsecc.storage.leaders import largest, magnitudes
from sparsecc.storage.sums import SumTensor, sum_tensor
from tests.unit.storage_bits import same_bits

SPELLINGS = ("2:4+CSR", "2:4+2:4", "1:2+COO", "BSR(2,2)+CSR", "2:4+1:4+CSC", "COO+2:4", "9:16+ELL")
OTHERS = ("dense", "CSR", "CSC", "COO", "BSR(2,3)", "ELL", "2:4+DCSR")


def weights(dtype: str = "f32", shape: tuple[int, ...] = (13, 22), density: float = 0.6) -> Any:
    rng = np.random.default_rng([*shape, int(density * 100)])
    values: Any = rng.integers(-120, 120, shape) if dtype[0] in "iu" else rng.standard_normal(shape)
    values = np.abs(values) if dtype[0] == "u" else values
    values = values * (1 + 2j) if dtype[0] == "c" else values
    return np.where(rng.random(shape) < density, values, 0).astype(NUMPY[dtype])


# -- the format ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [*SPELLINGS, "2:4 + CSR@i32/i16", "NM(2,4)+(i, j) -> (i : dense, j : compressed)"]
)
def test_spelling(text: str) -> None:
    fmt = parse_format(text)
    assert isinstance(fmt, SumFormat) and parse_format(str(fmt)) == fmt
    assert parse_format(known_name(fmt)) == fmt.with_widths(0, 0)
    assert not fmt.is_dense and not fmt.is_row_major and not fmt.is_permutation
    assert hash(fmt) == hash(parse_format(text))


def test_facts() -> None:
    fmt = parse_format("2:4+CSR@i8/i16")
    assert isinstance(fmt, SumFormat)
    assert (fmt.rank, fmt.padded, fmt.pos_width, fmt.crd_width) == (2, True, 16, 8)
    assert not parse_format("CSR+COO").padded
    wide = fmt.with_default_widths(32)
    assert isinstance(wide, SumFormat)
    assert [(p.pos_width, p.crd_width) for p in wide.parts] == [(0, 32), (16, 8)]
    assert known_name(fmt) == "2:4+CSR"
    assert [p.rank for p in getattr(parse_format("2:4+CSF(2,0,1)"), "parts", ())] == [3, 3]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2:4+", "missing beside its '\\+'"), ("+CSR", "missing"), ("2:4++CSR", "missing"),
        ("2:4+dense", "a dense part"), ("dense+CSR", "a dense part"), ("CSR+SV", "one rank"),
        ("2:4+CSX", "no format 'CSX'"), ("2:4+CSR@i7/i32", "7 bits"), ("4:2+CSR", "0 < n <= m"),
    ],
)  # fmt: skip
def test_mistakes_in_spellings(text: str, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        parse_format(text)


def test_sums_of_sums() -> None:
    inner = parse_format("2:4+CSR")
    with pytest.raises(FormatError, match="is no sum"):
        sum_format([inner, inner])
    with pytest.raises(FormatError, match="at least two"):
        sum_format([])
    with pytest.raises(FormatError, match="for tensors of rank 2, not 3"):
        parse_format("CSC+CSR", 3)


# -- what the parts take -------------------------------------------------------------------------


def by_definition(array: Any, n: int, m: int) -> Any:
    """Which elements an n:m part takes, one group after the other."""
    kept = np.zeros(array.shape, bool)
    for row in range(array.shape[0]):
        for start in range(0, array.shape[1], m):
            group = [(c, array[row, c]) for c in range(start, min(start + m, array.shape[1]))]
            group = [(c, np.inf if v != v else abs(v), v != v) for c, v in group if v != 0]
            for c, _, _ in sorted(group, key=lambda e: (not e[2], -e[1], e[0]))[:n]:
                kept[row, c] = True
    return kept


@pytest.mark.parametrize("source", ["dense", "CSR", "COO"])
@pytest.mark.parametrize(("n", "m"), [(2, 4), (1, 2), (3, 8), (5, 16)])
def test_the_largest_are_taken(n: int, m: int, source: str) -> None:
    array = weights()
    array[0, :8] = [np.nan, np.inf, 3, np.nan, -2, 2, -2, 2]
    array[1, :4] = [0, -1, 1, -1]
    kept = by_definition(array, n, m)
    first, rest = sc.asarray(array).to(source).to(f"{n}:{m}+CSR").check().parts
    assert same_bits(first.to_numpy(), np.where(kept, array, np.float32(0)))
    assert same_bits(rest.to_numpy(), np.where(kept, np.float32(0), array))


def test_few_entries_of_a_large_shape() -> None:
    """Groups are sorted, not laid out."""
    rows, columns = np.array([5, 5, 5, 9]), np.array([400_000, 400_001, 400_003, 7])
    tensor = sc.from_coords([rows, columns], np.array([1.0, -3, 2, 4]), (10, 400_004))
    first, rest = tensor.to("2:4+CSR").parts
    assert rest.nnz == 1 and rest.to_coords()[1].tolist() == [1.0] and first.nnz == 3


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i8", "u8", "i64", "bool", "c64"])
def test_magnitudes(dtype: str) -> None:
    array: Any = np.array([0, 1, 2, 3, 100]).astype(NUMPY[dtype])
    keys = magnitudes(array)
    assert keys[0] == 0 and (np.diff(keys.astype(float)) >= 0).all()
    if dtype == "i8":
        extreme = magnitudes(np.array([-128, 127, -127], np.int8))
        assert extreme.tolist() == [128, 127, 127]
    if dtype[0] in "fbc" and dtype != "bool":
        odd = np.array([np.inf, -np.inf, np.nan, -np.nan, -0.0]).astype(array.dtype)
        keys = magnitudes(odd)
        assert keys[0] == keys[1] < keys[2] == keys[3] and keys[4] == 0


@pytest.mark.parametrize("m", [4, 9])
def test_every_pattern_of_ties(m: int) -> None:
    for group in itertools.islice(itertools.product(range(3), repeat=m), 0, 3**m, 1 + 3 ** (m - 4)):
        keys = np.array([group], np.uint8)
        order = sorted((c for c in range(m) if group[c]), key=lambda c: (-group[c], c))[:2]
        assert np.flatnonzero(largest(keys, 2)[0]).tolist() == sorted(order)


# -- round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("other", OTHERS)
def test_conversions_are_exact(spelling: str, other: str) -> None:
    for shape in ((13, 22), (1, 1), (0, 5), (5, 0), (4, 8)):
        array = weights("f32", shape, 0.3 if spelling.endswith("+2:4") else 0.7)
        if array.size > 8:
            array.view(np.uint32).reshape(-1)[3] = 0x7FC12345  # a NaN with a payload
        tensor = sc.asarray(array).to(other).to(spelling).check()
        assert isinstance(tensor, SumTensor) and known_name(tensor.format) == spelling
        assert same_bits(tensor.to_numpy(), array)
        assert same_bits(tensor.to(other).check().to_numpy(), array)
        assert tensor.nnz == np.count_nonzero(array) and tensor.shape == shape
        assert tensor.nbytes == sum(part.nbytes for part in tensor.parts)
        coords, values = tensor.to_coords()
        assert same_bits(values, array[coords]) and len(values) == tensor.nnz


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64", "i8", "i32", "u16", "bool", "c64", "c128"])
def test_element_types(dtype: str, tmp_path: Path) -> None:
    array = weights(dtype)
    tensor = sc.asarray(array).to("2:4+CSR").check()
    assert tensor.dtype == array.dtype and same_bits(tensor.to_numpy(), array)
    tensor.save(tmp_path / "a.npz")
    again = sc.read(tmp_path / "a.npz")
    assert again.format == tensor.format and same_bits(again.to_numpy(), array)
    assert [p.nnz for p in again.parts] == [p.nnz for p in tensor.parts]


def test_more_dimensions() -> None:
    array = weights("f32", (3, 4, 9))
    tensor = sc.asarray(array).to("2:4+CSF")
    assert same_bits(tensor.to_numpy(), array) and same_bits(tensor.to("COO(3)").to_numpy(), array)


def test_zeros() -> None:
    """Stored zeros stay where nothing is padded, and are no entries of n:m; -0.0 comes back as 0."""
    zeros = sc.from_coords([[0, 0, 1], [0, 1, 2]], [0.0, 2.0, -0.0], (2, 4), "CSR")
    assert zeros.to("CSC+COO").nnz == 3 and zeros.to("CSC+COO").to("CSR").nnz == 3
    found = zeros.to("2:4+CSR")
    assert found.nnz == 1 and not np.signbit(found.to_numpy()).any()


def test_overlapping_parts_are_added() -> None:
    a, b = np.eye(4, dtype=np.float16), 2 * np.eye(4, dtype=np.float16)
    tensor = sum_tensor([sc.asarray(a).to("2:4"), sc.asarray(b).to("CSR")]).check()
    assert (tensor.to_numpy() == 3 * np.eye(4)).all() and tensor.nnz == 8
    assert (tensor.to("CSR").to_numpy() == 3 * np.eye(4)).all() and tensor.to("CSR").nnz == 4
    assert (sc.evaluate("y[i] = A[i,j]", A=tensor) == 3).all()


def test_what_no_part_can_hold() -> None:
    with pytest.raises(FormatError, match="over-full|more than 1 entries of 4"):
        sc.asarray(np.ones((2, 4))).to("2:4+1:4")
    assert sc.asarray(np.ones((2, 4))).to("2:4+2:4").nnz == 8


def test_widths() -> None:
    tensor = sc.asarray(weights()).to("2:4+CSR@i8/i16")
    level = tensor.parts[1].levels[1]
    assert level.positions is not None and level.positions.dtype == np.uint16
    wide = tensor.to("2:4+CSR@i64/i64")
    level = wide.parts[1].levels[1]
    assert level.positions is not None and level.positions.dtype == np.int64
    assert conversion_path(tensor.format, wide.format)[0].edge.name == "relabel parts"
    with pytest.raises(LimitError, match="8 bits"):
        sc.asarray(np.ones((3, 300))).to("2:4+CSR@i8/i8")


def test_paths() -> None:
    (step,) = conversion_path("CSR", "2:4+CSR")
    assert "each part takes what it can hold" in str(step)
    (step,) = conversion_path("2:4+CSR", "CSC")
    assert "entries of all parts" in str(step)


def test_limits() -> None:
    empty = sc.from_coords([[0], [0]], [1.0], (1, 1 << 20), "2:4+COO")
    with pytest.raises(LimitError):
        empty.to_numpy(max_dense_bytes=1 << 20)


def test_check_finds_bad_parts() -> None:
    tensor = sc.asarray(weights()).to("2:4+CSR")
    first, rest = tensor.parts
    with pytest.raises(OperandError, match="part 1 has shape"):
        SumTensor(
            tensor.shape,
            tensor.format,
            (),
            tensor.values,
            (first, sc.asarray(np.eye(3, dtype="f4")).to("CSR")),
        ).check()
    with pytest.raises(OperandError, match="dtype float64"):
        SumTensor(
            tensor.shape, tensor.format, (), tensor.values, (first, rest.astype(np.dtype("f8")))
        ).check()
    assert rest.levels[1].coordinates is not None
    rest.levels[1].coordinates[0] = 99
    with pytest.raises(OperandError, match="coordinate 99"):
        tensor.check()
    tensor.check("none")


# -- files ---------------------------------------------------------------------------------------


def archive(**changes: Any) -> bytes:
    out = io.BytesIO()
    tensor = sc.asarray(weights("f32", (4, 8))).to("2:4+CSR")
    first, rest = tensor.parts
    inner = rest.levels[1]
    parts: dict[str, Any] = {
        "format": b"sum", "shape": np.array([4, 8]), "spelling": str(tensor.format).encode(),
        "part0.values": first.values, "part0.coordinates2": first.levels[2].coordinates,
        "part1.values": rest.values, "part1.positions1": inner.positions,
        "part1.coordinates1": inner.coordinates,
    }  # fmt: skip
    changed = parts | {k.replace("_", ".", 1): v for k, v in changes.items()}
    np.savez(out, **{k: v for k, v in changed.items() if v is not None})
    return out.getvalue()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"spelling": b"CSR"}, "no sum of formats"),
        ({"spelling": b"2:4+CSX"}, "no format 'CSX'"),
        ({"spelling": b"2:4+" * 2000 + b"CSR"}, "8003 characters"),
        ({"spelling": b"2:4+CSR@i7/i7"}, "7 bits"),
        ({"spelling": np.arange(3)}, "0 characters"),
        ({"spelling": None}, "no array 'spelling'"),
        ({"shape": np.array([4, 8, 2])}, "for tensors of rank"),
        ({"shape": np.array([2**40, 8])}, "coordinates for"),
        ({"shape": np.array([2**62, 2**62])}, "coordinates for"),
        ({"part0_coordinates2": np.zeros(3, np.int32)}, "3 coordinates for 8 groups"),
        ({"part0_coordinates2": np.full(16, 4)}, "coordinate 4"),
        ({"part0_coordinates2": np.full(16, -1)}, "it holds -1"),
        ({"part0_coordinates2": np.full(16, 2**63, np.uint64)}, "part0"),
        ({"part0_coordinates2": np.zeros(16)}, "not a list of integers"),
        ({"part0_coordinates2": np.zeros(16, np.int32)}, "part0"),
        ({"part0_values": np.zeros(15, np.float32)}, "15 values for 16"),
        ({"part0_values": np.zeros(16)}, "not one"),
        ({"part1_positions1": np.array([0, 9, 2, 3, 4])}, "never descend"),
        ({"part1_positions1": None}, "no array 'part1.positions1'"),
        ({"part1_values": np.zeros((2, 2), np.float32)}, "one-dimensional"),
        ({"part1_values": np.zeros(2, "U1")}, "not supported"),
        ({"part1_values": np.zeros(1000, np.float32)}, "1000 values"),
    ],
)  # fmt: skip
def test_hostile_archives(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(archive(**changes))
    with pytest.raises(FileError, match=message):
        sc.read(path)


def test_archives_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(archive())
    assert same_bits(sc.read(path).to_numpy(), weights("f32", (4, 8)))
    nan = weights("f32", (4, 8))
    nan[0, 0] = np.nan
    sc.asarray(nan).to("2:4+CSR").save(path)
    assert same_bits(sc.read(path, format="CSC").to_numpy(), nan)
    for suffix in (".mtx", ".tns", ".npy"):
        sc.asarray(weights("f64", (4, 8))).to("2:4+CSR").save(tmp_path / f"b{suffix}")
        assert (sc.read(tmp_path / f"b{suffix}").to_numpy() == weights("f64", (4, 8))).all()


def test_scipy_and_torch() -> None:
    tensor = sc.asarray(weights("f64")).to("2:4+CSR")
    assert (tensor.to_scipy().toarray() == weights("f64")).all()
    pytest.importorskip("torch")
    assert (tensor.to_torch().to_dense().numpy() == weights("f64")).all()


# -- kernels -------------------------------------------------------------------------------------


def test_kernels_convert_and_say_so() -> None:
    array = weights("f64")
    tensor, x = sc.asarray(array).to("2:4+CSR"), np.arange(22.0)
    kernel = sc.compile("y[i] = A[i,j] * x[j]", A=tensor, x=x)
    assert "A converted to CSR: loops walk one tensor, not a sum of parts" in kernel.explain()
    assert kernel.formats["A"] == "2:4+CSR" and kernel.notes == []
    np.testing.assert_allclose(kernel(A=tensor, x=x), array @ x)
    np.testing.assert_allclose(kernel(A=replace(tensor), x=x), array @ x)
    assert kernel.notes == []
    assert "sum = [#sparse_tensor.encoding<" in kernel.ir("tensor")


def test_results_are_packed() -> None:
    array = weights("f64")
    tensor = sc.asarray(array).to("2:4+CSR")
    for out in (None, "2:4+CSR", "2:4+CSR@i64/i64", "COO+ELL"):
        found: Any = sc.evaluate("C[i,j] = 2 * A[i,j]", A=tensor, out=out)
        wanted = "COO+ELL" if out == "COO+ELL" else "2:4+CSR"
        assert known_name(found.check().format) == wanted
        assert (found.to_numpy() == 2 * array).all()
    spec = sc.compile("C[i,j] = A[i,j]", A=sc.Spec((None, None), "f64", "2:4+CSR"), out="2:4+CSR")
    assert (spec(A=tensor).to_numpy() == array).all()


def test_out_is_compared_with_the_parts() -> None:
    tensor = sc.asarray(weights("f64")).to("2:4+CSR")
    with pytest.raises(sc.SparseccError, match="shares memory"):
        values = tensor.parts[0].values[:13]
        sc.evaluate("y[i] = A[i,j]", A=tensor, out=values)
