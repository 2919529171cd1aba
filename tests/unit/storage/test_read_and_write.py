"""Files read and written: every field and symmetry, round trips that lose nothing, real
matrices."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from storage_samples import ALL_DTYPES, CUBE_FORMATS, MATRIX_FORMATS, sample

from sparsecc.diagnostics import FileError
from sparsecc.formats import known_name, parse_format
from sparsecc.storage.files import read, write
from sparsecc.storage.files.mtx import BANNER
from sparsecc.storage.ingest import asarray, from_coords
from sparsecc.storage.tensor import SparseTensor

library: Any = sp
files: Any = scipy.io
MATRICES = Path(__file__).resolve().parents[4] / "shared" / "data" / "matrices"
HEAD = "%%MatrixMarket matrix coordinate real general\n"


def mtx(folder: Path, text: str | bytes) -> SparseTensor:
    path = folder / "a.mtx"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path).check()


# -- .mtx ------------------------------------------------------------------------------------------


def test_layout_of_lines_is_free(tmp_path: Path) -> None:
    text = (
        "%%MatrixMarket  MATRIX Coordinate Real General\r\n% a comment\r\n\r\n 2\t3 4 \r\n\r\n"
        "  % another\r\n1 1 1.5D+00\r\n\r\n 2  3\t-inf\r\n2 1 nan\r\n% last\r\n1 1 +.5e0"
    )
    dense = mtx(tmp_path, text).to_numpy()
    assert np.array_equal(dense, [[2.0, 0, 0], [np.nan, 0, -np.inf]], equal_nan=True)


@pytest.mark.parametrize(
    ("field", "symmetry", "lines", "wanted"),
    [
        ("double", "general", "1 2 0.5", [[0, 0.5], [0, 0]]),
        ("pattern", "symmetric", "2 1", [[0, 1.0], [1.0, 0]]),
        ("integer", "skew-symmetric", "2 1 3", [[0, -3], [3, 0]]),
        ("complex", "hermitian", "1 1 1 0\n2 1 0 1", [[1, -1j], [1j, 0]]),
        ("complex", "symmetric", "2 1 0 1", [[0, 1j], [1j, 0]]),
        ("real", "symmetric", "1 1 4\n2 1 5", [[4.0, 5.0], [5.0, 0]]),
    ],
)
def test_fields_and_symmetries(
    field: str, symmetry: str, lines: str, wanted: Any, tmp_path: Path
) -> None:
    count = lines.count("\n") + 1
    head = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n2 2 {count}\n"
    tensor = mtx(tmp_path, head + lines + "\n")
    assert tensor.dtype == np.array(wanted).dtype
    assert np.array_equal(tensor.to_numpy(), wanted)
    alone = read(tmp_path / "a.mtx", mirror=False)
    assert alone.nnz == count


@pytest.mark.parametrize(
    ("head", "values", "wanted"),
    [
        ("real general\n2 3", "1 2 3 4 5 6", [[1.0, 3, 5], [2, 4, 6]]),
        ("integer symmetric\n2 2", "1 2 3", [[1, 2], [2, 3]]),
        ("real skew-symmetric\n2 2", "7", [[0, -7.0], [7, 0]]),
        ("real general\n0 3", "", np.zeros((0, 3))),
    ],
)
def test_array_files_go_column_by_column(
    head: str, values: str, wanted: Any, tmp_path: Path
) -> None:
    text = f"%%MatrixMarket matrix array {head}\n" + values.replace(" ", "\n") + "\n"
    tensor = mtx(tmp_path, text)
    assert tensor.format.is_dense and np.array_equal(tensor.to_numpy(), wanted)
    assert np.array_equal(mtx(tmp_path, text).to("CSC").to_numpy(), wanted)


def test_complex_array(tmp_path: Path) -> None:
    text = "%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 3\n4 0\n"
    assert mtx(tmp_path, text).to_numpy().tolist() == [[1, 2 - 3j], [2 + 3j, 4]]


def test_integers_are_exact(tmp_path: Path) -> None:
    head = "%%MatrixMarket matrix coordinate {} general\n2 2 2\n"
    tensor = mtx(
        tmp_path, head.format("integer") + "1 1 9223372036854775807\n2 2 9123456789012345\n"
    )
    assert tensor.values.tolist() == [2**63 - 1, 9123456789012345]
    least = mtx(tmp_path, head.format("integer") + "1 1 -9223372036854775808\n2 2 0\n")
    assert least.values.tolist() == [-(2**63), 0] and least.nnz == 2
    big = mtx(tmp_path, head.format("unsigned-integer") + "1 1 18446744073709551615\n2 2 1\n")
    assert big.dtype == np.uint64 and big.values.tolist() == [2**64 - 1, 1]


def test_repeated_entries_are_added_and_rows_may_be_none(tmp_path: Path) -> None:
    assert mtx(tmp_path, HEAD + "2 2 2\n1 1 1\n1 1 2\n").values.tolist() == [3]
    assert mtx(tmp_path, HEAD + "0 5 0\n").shape == (0, 5)
    huge = mtx(tmp_path, HEAD + "3000000000 3000000000 1\n3000000000 1 2\n")
    assert huge.to_coords()[0][0].tolist() == [2999999999]


def test_format_is_honoured(tmp_path: Path) -> None:
    mtx(tmp_path, HEAD + "2 2 1\n1 2 5\n")
    for name in ("CSR", "CSC", "BSR(2,2)", "dense"):
        assert known_name(read(tmp_path / "a.mtx", format=name).format) == name


@pytest.mark.parametrize("name", sorted(p.name for p in MATRICES.glob("*.mtx")) or ["none"])
def test_real_matrices_equal_scipys(name: str) -> None:
    if name == "none":
        pytest.skip(f"the folder of real matrices is absent: {MATRICES}")
    ours = read(MATRICES / name).check()
    try:
        theirs = files.mmread(MATRICES / name).toarray()
    except ValueError:
        # SciPy refuses comments between entries; the same matrix in order is there too.
        theirs = files.mmread(MATRICES / name.replace("_jumbled", "")).toarray()
    assert np.array_equal(ours.to_numpy(), theirs, equal_nan=True)


# -- .tns ------------------------------------------------------------------------------------------


def tns(folder: Path, text: str, **options: Any) -> SparseTensor:
    path = folder / "a.tns"
    path.write_text(text)
    return read(path, **options).check()


def test_tns_lines(tmp_path: Path) -> None:
    tensor = tns(tmp_path, "# c\n\n1 1 1 2.0\n3\t2  4 -1e3\n# d\n1 1 1 0.5\n")
    assert tensor.shape == (3, 2, 4) and tensor.values.tolist() == [2.5, -1000]
    assert tns(tmp_path, "1 1 1\n", shape=(4, 5)).shape == (4, 5)
    assert tns(tmp_path, "", shape=(4, 5)).nnz == 0
    assert tns(tmp_path, "3000000000 1 2\n").shape == (3_000_000_000, 1)
    assert tns(tmp_path, "1 1 2\n", format="CSR").format == parse_format("CSR")


def test_tns_extended_header_is_told_from_entries(tmp_path: Path) -> None:
    assert tns(tmp_path, "3 1\n4 5 6\n1 2 3 7\n").shape == (4, 5, 6)
    assert tns(tmp_path, "2 1\n4 5\n1 2 7\n").shape == (4, 5)
    assert tns(tmp_path, "3 0\n4 5 6\n").nnz == 0
    assert tns(tmp_path, "1 2\n9\n1 7\n3 8\n").shape == (9,)
    vector = tns(tmp_path, "2 1\n4 5\n")
    assert vector.to_numpy().tolist() == [0, 1, 0, 5]
    assert tns(tmp_path, "2 1\n4 5\n6 7\n").nnz == 3


# -- .npz and .npy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_scipys_npz_both_ways(kind: str, tmp_path: Path) -> None:
    matrix = getattr(library, f"{kind}_array")(sample((6, 9)))
    library.save_npz(tmp_path / "a.npz", matrix)
    tensor = read(tmp_path / "a.npz").check()
    assert np.array_equal(tensor.to_numpy(), matrix.toarray())
    write(tensor, tmp_path / "b.npz")
    assert np.array_equal(library.load_npz(tmp_path / "b.npz").toarray(), matrix.toarray())


def test_plain_arrays_of_npz_and_npy(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", w=np.eye(3), b=np.asfortranarray(sample((4, 5))))
    assert np.array_equal(read(tmp_path / "a.npz", key="b").to_numpy(), sample((4, 5)))
    np.savez(tmp_path / "one.npz", np.eye(2))
    assert read(tmp_path / "one.npz", format="CSR").nnz == 2
    np.save(tmp_path / "a.npy", sample((4, 5)))
    assert np.array_equal(read(tmp_path / "a.npy").to_numpy(), sample((4, 5)))


# -- writing ---------------------------------------------------------------------------------------

AWKWARD = np.array([[0.1, -1 / 3, 0], [1e-310, 5e300, np.pi], [np.inf, 0, np.nextafter(1, 2)]])


def assert_same(tensor: SparseTensor, other: SparseTensor) -> None:
    """Equal shapes and entries, to the last bit of their values."""
    assert tensor.shape == other.shape
    (left, a), (right, b) = tensor.to_coords(), other.to_coords()
    assert all(np.array_equal(x, y) for x, y in zip(left, right, strict=True))
    assert np.array_equal(a, b.astype(a.dtype)) and np.array_equal(a.astype(b.dtype), b)


@pytest.mark.parametrize("name", MATRIX_FORMATS)
@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz", ".tns", ".npz", ".npy"])
def test_what_is_written_reads_back(name: str, suffix: str, tmp_path: Path) -> None:
    for dense in (AWKWARD, sample((5, 7), "int64"), np.zeros((3, 0)), np.zeros((2, 2))):
        tensor = asarray(dense).to(name)
        tensor.save(tmp_path / f"a{suffix}")
        assert_same(tensor, read(tmp_path / f"a{suffix}").check())
    assert os.listdir(tmp_path) == [f"a{suffix}"]  # nothing temporary is left


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("suffix", [".mtx", ".npz", ".npy"])
def test_dtypes_written(dtype: str, suffix: str, tmp_path: Path) -> None:
    for name in ("CSR", "dense"):
        tensor = asarray(sample((4, 5), dtype) / np.array(3).astype(dtype)) if dtype in (
            "float32", "complex64") else asarray(sample((4, 5), dtype))  # fmt: skip
        write(tensor.to(name), tmp_path / f"a{suffix}")
        assert_same(tensor, read(tmp_path / f"a{suffix}"))


@pytest.mark.parametrize("name", CUBE_FORMATS)
@pytest.mark.parametrize("suffix", [".tns", ".npz", ".npy"])
def test_cubes_written(name: str, suffix: str, tmp_path: Path) -> None:
    tensor = asarray(sample((3, 4, 5), density=0.1)).to(parse_format(name, 3))
    write(tensor, tmp_path / f"a{suffix}")
    assert_same(tensor, read(tmp_path / f"a{suffix}").check())


def test_vectors_written(tmp_path: Path) -> None:
    tensor = asarray(np.array([0, 2.0, 1.0, 0])).to("SV")
    for suffix in (".tns", ".npz", ".npy"):
        write(tensor, tmp_path / f"v{suffix}")
        assert_same(tensor, read(tmp_path / f"v{suffix}"))


def test_fields_written(tmp_path: Path) -> None:
    fields = {
        "bool": "pattern",
        "uint64": "unsigned-integer",
        "int8": "integer",
        "complex64": "complex",
    }
    for dtype, field in fields.items():
        write(asarray(np.eye(2, dtype=dtype)).to("CSR"), tmp_path / "a.mtx")
        assert (
            (tmp_path / "a.mtx")
            .read_text()
            .startswith(f"%%MatrixMarket matrix coordinate {field} ")
        )
    write(asarray(np.eye(2)), tmp_path / "a.mtx")
    assert files.mmread(tmp_path / "a.mtx").tolist() == [[1, 0], [0, 1]]
    write(asarray(np.eye(2)).to("CSR"), tmp_path / "b.mtx.gz")
    assert gzip.decompress((tmp_path / "b.mtx.gz").read_bytes()).endswith(b"2 2 1.0\n")
    assert BANNER.split()[0] in (tmp_path / "a.mtx").read_text()


@pytest.mark.parametrize(
    ("tensor", "suffix", "problem"),
    [
        (asarray(np.ones((2, 2, 2))), ".mtx", "rank 3"),
        (asarray(1.0), ".tns", "scalar"),
        (asarray(np.ones(2, dtype="complex64")), ".tns", "complex"),
        (asarray(np.array([2**60])), ".tns", "beyond"),
        (from_coords([[5], [5]], 1.0, (10**9, 10**9)), ".npy", "takes"),
    ],
)
def test_what_a_file_can_not_hold(
    tensor: SparseTensor, suffix: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / f"a{suffix}").write_text("old")
    with pytest.raises(FileError, match=problem) as caught:
        write(tensor, tmp_path / f"a{suffix}")
    assert caught.value.help
    assert (tmp_path / f"a{suffix}").read_text() == "old"


def test_paths(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="did you mean '.mtx'"):
        read(tmp_path / "a.mxt")
    with pytest.raises(FileError, match="No such file"):
        read(tmp_path / "a.mtx")
    with pytest.raises(FileError, match="Is a directory"):
        (tmp_path / "d.mtx").mkdir()
        read(tmp_path / "d.mtx")
    with pytest.raises(FileError, match="No such file"):
        write(asarray(np.eye(2)), tmp_path / "absent" / "a.mtx")
