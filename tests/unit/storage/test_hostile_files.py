"""Files that are wrong: one FileError that names the place, never a crash, a hang or a wrong
tensor."""

from __future__ import annotations

import gzip
import io
import struct
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from storage_samples import sample

from sparsecc.diagnostics import FileError, SparseccError, UsageError
from sparsecc.storage.files import errors, read, write
from sparsecc.storage.ingest import asarray

library: Any = sp
HEAD = "%%MatrixMarket matrix coordinate real general\n"
INTEGERS = "%%MatrixMarket matrix coordinate integer general\n"
UNSIGNED = "%%MatrixMarket matrix coordinate unsigned-integer general\n"
SKEW = "%%MatrixMarket matrix coordinate {} skew-symmetric\n"
ARRAY = "%%MatrixMarket matrix array real general\n"
SYMMETRIC = "%%MatrixMarket matrix coordinate real {}\n"
HERMITIAN = "%%MatrixMarket matrix {} complex hermitian\n"

MTX: dict[str, tuple[str, int | None, str]] = {
    # what is wrong: (text, line, part of the message)
    "empty": ("", None, "empty"),
    "no banner": ("1 1 1\n", 1, "the header says"),
    "banner of NaN": ("%%MatrixMarket nan nan nan nan\n", 1, "the header says 'nan'"),
    "misspelt": ("%%MatrixMarket matrix coordinat real general\n", 1, "did you mean 'coordinate'"),
    "short banner": ("%%MatrixMarket matrix coordinate real\n1 1 0\n", 1, "4 words, not 5"),
    "no size": (HEAD + "% only a comment\n", 2, "no size line"),
    "garbled size": (HEAD + "2 x 3\n", 2, "not a size line"),
    "two sizes": (HEAD + "2 2\n", 2, "not a size line"),
    "NaN size": (HEAD + "nan nan nan\n", 2, "not a size line"),
    "negative size": (HEAD + "-2 2 0\n", 2, "-2 is outside"),
    "giant size": (HEAD + "99999999999999999999 2 0\n", 2, "outside"),
    "index 0": (HEAD + "2 2 2\n1 1 1\n0 1 1\n", 4, "index 0 of dimension 0"),
    "index beyond": (HEAD + "2 2 1\n% c\n1 3 1\n", 4, "index 3 of dimension 1"),
    "index negative": (HEAD + "2 2 1\n-1 1 1\n", 3, "index -1"),
    "index overflow": (HEAD + "2 2 1\n99999999999999999999 1 1\n", 3, "does not fit 64 bits"),
    "index fraction": (HEAD + "2 2 1\n1.5 1 1\n", 3, "'1.5' is not an integer index"),
    "too few": (HEAD + "2 2 3\n1 1 1\n2 2 2\n", 4, "3 entries are declared, but 2"),
    "none": (HEAD + "2 2 3\n", 2, "3 entries are declared, but 0"),
    "too many": (HEAD + "2 2 1\n1 1 1\n\n2 2 2\n", 5, "first too many"),
    "no value": (HEAD + "2 2 2\n1 1 1\n1 2\n", 4, "2 numbers, not 3"),
    "extra value": (HEAD + "2 2 1\n1 1 1 1\n", 3, "4 numbers, not 3"),
    "split line": (HEAD + "2 2 1\n1 1\n1\n", 3, "2 numbers, not 3"),
    "not a number": (HEAD + "2 2 2\n1 1 1\n1 2 abc\n", 4, "'abc' is not a number"),
    "underscore": (HEAD + "2 2 1\n1 1 1_0\n", 3, "'1_0' is not a number"),
    "two points": (HEAD + "2 2 2\n1 1 1.5.5\n2 2 x\n", 3, "'1.5.5' is not a number"),
    "hexadecimal": (HEAD + "2 2 1\n1 1 0x10\n", 3, "not a number"),
    "comment behind": (HEAD + "2 2 1\n1 1 1 % c\n", 3, "5 numbers"),
    "nul": (HEAD + "2 2 1\n1 1 \x00\n", 3, "2 numbers, not 3"),
    "integer fraction": (INTEGERS + "2 2 1\n1 1 1.5\n", 3, "'1.5' is not an integer"),
    "overflow": (INTEGERS + "2 2 1\n1 1 9223372036854775808\n", 3, "unsigned-integer"),
    "negative unsigned": (
        UNSIGNED + "2 2 1\n1 1 -1\n", 3, "'-1' is not"),
    "unsigned overflow": (
        UNSIGNED + "2 2 1\n1 1 18446744073709551616\n",
        3, "does not fit"),
    "complex half": (HEAD.replace("real", "complex") + "2 2 1\n1 1 1\n", 3, "not 4"),
    "not square": (SYMMETRIC.format("symmetric") + "2 3 0\n", 2, "2 rows and 3 columns"),
    "above": (SYMMETRIC.format("symmetric") + "2 2 1\n1 2 1\n", 3, "(1, 2) of a symmetric"),
    "on the diagonal": (SKEW.format("real") + "2 2 1\n1 1 1\n", 3, "(1, 1) of a skew"),
    "complex diagonal": (HERMITIAN.format("coordinate") + "2 2 2\n2 1 0 1\n2 2 1 3\n", 4, "(1+3j)"),
    "array of complex diagonal": (HERMITIAN.format("array") + "2 2\n1 0\n2 3\n4 5\n", 5, "(4+5j)"),
    "real hermitian": (SYMMETRIC.format("hermitian") + "2 2 0\n", 1, "hermitian matrix is complex"),
    "skew pattern": (SKEW.format("pattern") + "1 1 0\n", 1, "pattern"),
    "least negated": (
        SKEW.format("integer") + "2 2 1\n2 1 -9223372036854775808\n",
        3, "no negative"),
    "giant count": (HEAD + "2 2 999999999999999999\n1 1 1\n", 3, "999999999999999999 entries"),
    "giant array": (ARRAY + "4000000000 2000000000\n1\n", 3, "8000000000000000000 entries"),
    "array short": (ARRAY + "2 2\n1\n2\n3\n", 5, "4 entries are declared, but 3"),
    "array of pairs": (ARRAY + "2 2\n1 2\n3 4\n", 3, "2 numbers, not 1"),
    "array pattern": ("%%MatrixMarket matrix array pattern general\n1 1\n", 1, "can't be pattern"),
}  # fmt: skip

TNS: dict[str, tuple[str, int | None, str]] = {
    "empty": ("# nothing\n", None, "shape="),
    "index 0": ("1 1 1 2\n0 1 1 3\n", 2, "index 0 of dimension 0"),
    "negative": ("# c\n1 -1 2\n", 2, "index -1 of dimension 1"),
    "no value": ("1 1 1 2.0\n1 1 1\n", 2, "3 numbers, not 4"),
    "text": ("1 1 2\n1 x 2\n", 2, "'x' is not an integer index"),
    "bad value": ("1 1 2\n1 1 y\n", 2, "'y' is not a number"),
    "overflow": ("1 99999999999999999999 2\n", 1, "does not fit"),
    "alone": ("7\n", 1, "entries of 0 indices"),
    "beyond the header": ("2 1\n2 2\n1 3 1\n", 3, "index 3 of dimension 1"),
    "too few": ("2 2\n2 2\n1 1 1\n", 3, "2 entries are declared, but 1"),
    "too many": ("2 1\n2 2\n1 1 1\n2 2 2\n", 4, "first too many"),
    "giant extent": ("2 1\n99999999999999999999 2\n1 1 1\n", 2, "outside [0, 2**63)"),
    "second header": ("3 1\n4 5 6\n1 1 1\n", 3, "3 numbers, not 4"),
}


@pytest.mark.parametrize("case", MTX)
def test_mtx(case: str, tmp_path: Path) -> None:
    text, line, message = MTX[case]
    assert_refused(tmp_path / "a.mtx", text.encode(), line, message)
    assert_refused(tmp_path / "a.mtx.gz", gzip.compress(text.encode()), line, message)


@pytest.mark.parametrize("case", TNS)
def test_tns(case: str, tmp_path: Path) -> None:
    text, line, message = TNS[case]
    assert_refused(tmp_path / "a.tns", text.encode(), line, message)


def assert_refused(path: Path, content: bytes, line: int | None, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        read(path)
    assert message in str(caught.value)
    assert caught.value.place == (str(path) if line is None else f"{path}:{line}")
    assert caught.value.help


def test_what_is_no_path_or_key(tmp_path: Path) -> None:
    wrong: Any = 5
    for attempt in (lambda: read(wrong), lambda: write(asarray(1.0), wrong)):
        with pytest.raises(UsageError, match="a path is text or .* of type int"):
            attempt()
    with pytest.raises(UsageError, match="name of an array, not 5"):
        read(tmp_path / "a.npz", key=wrong)
    for attempt in (lambda: read("a\0.npy"), lambda: write(asarray(1.0), "a\0.npy")):
        with pytest.raises(FileError, match="null"):
            attempt()


def test_tns_of_another_shape(tmp_path: Path) -> None:
    (tmp_path / "a.tns").write_text("1 1 2\n")
    with pytest.raises(FileError, match="2 indices"):
        read(tmp_path / "a.tns", shape=(4, 5, 6))


def test_memory_follows_the_content_and_not_what_is_declared(tmp_path: Path) -> None:
    (tmp_path / "a.mtx").write_text(HEAD + "4000000000 4000000000 1\n1 1 1\n")
    (tmp_path / "a.tns").write_text("2 1\n4000000000 4000000000\n1 1 1\n")
    tracemalloc.start()
    try:
        for name in ("a.mtx", "a.tns"):
            assert read(tmp_path / name).shape == (4_000_000_000, 4_000_000_000)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    with pytest.raises(SparseccError, match="max_dense_bytes"):
        read(tmp_path / "a.mtx", format="CSR")


def test_truncated_gzip(tmp_path: Path) -> None:
    content = gzip.compress((HEAD + "2 2 1\n1 1 1\n").encode())
    for end in (3, 12, len(content) - 3):
        assert_refused(tmp_path / "a.mtx.gz", content[:end], None, "damaged")


# -- archives --------------------------------------------------------------------------------------


def csr_parts(**changes: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "format": b"csr",
        "shape": np.array([2, 3]),
        "indptr": np.array([0, 1, 2]),
        "indices": np.array([0, 2]),
        "data": np.array([1.0, 2.0]),
    }
    return {k: v for k, v in (parts | changes).items() if v is not None}


NPZ: dict[str, tuple[dict[str, Any], str]] = {
    "column beyond": (csr_parts(indices=np.array([0, 3])), "coordinate 3 at entry 1"),
    "column negative": (csr_parts(indices=np.array([-1, 2])), "coordinate -1 at entry 0"),
    "positions descend": (csr_parts(indptr=np.array([0, 3, 2])), "never descend"),
    "positions short": (csr_parts(indptr=np.array([0, 2])), "2 entries, not 3"),
    "positions beyond": (csr_parts(indptr=np.array([0, 1, 5])), "positions end at 5"),
    "positions wrap": (csr_parts(indptr=np.array([0, 2**63 - 1, -2])), "never descend"),
    "positions float": (csr_parts(indptr=np.array([0.0, 1, 2])), "not integers"),
    "values short": (csr_parts(data=np.array([1.0])), "1 values for 2"),
    "values of two axes": (csr_parts(data=np.ones((2, 2))), "shape (2, 2) in csr"),
    "values of two bytes": (csr_parts(data=np.ones(2, "S2")), "|S2"),
    "shape of three": (csr_parts(shape=np.array([2, 3, 4])), "not the shape of a matrix"),
    "shape negative": (csr_parts(shape=np.array([-2, 3])), "outside"),
    "shape float": (csr_parts(shape=np.array([2.0, 3.0])), "not an integer"),
    "no positions": (csr_parts(indptr=None), "no array 'indptr'"),
    "unknown layout": (csr_parts(format=b"csx"), "'csx' is no layout"),
    "layout of numbers": (csr_parts(format=np.arange(3)), "'' is no layout"),
    "coo lengths": (
        csr_parts(format=b"coo", row=np.array([0]), col=np.array([0, 1])), "coordinate arrays"),
    "coo beyond": (csr_parts(format=b"coo", row=np.array([0, 9]), col=np.array([0, 1])), "entry 1"),
    "bsr blocks": (csr_parts(format=b"bsr", data=np.ones((2, 2, 2))), "don't tile"),
    "bsr empty blocks": (csr_parts(format=b"bsr", data=np.ones((2, 0, 2))), "don't tile"),
    "dia offsets": (
        csr_parts(format=b"dia", offsets=np.array([0]), data=np.ones((2, 3))), "offsets"),
    "two arrays": ({"a": np.eye(2), "b": np.eye(2)}, "key=; the file holds: a, b"),
    "objects": ({"a": np.array([{}, []], dtype=object)}, "Python objects"),
    "structs": ({"a": np.zeros(2, dtype=[("x", "f8")])}, "not supported"),
}  # fmt: skip


@pytest.mark.parametrize("case", NPZ)
def test_npz(case: str, tmp_path: Path) -> None:
    parts, message = NPZ[case]
    saved = io.BytesIO()
    np.savez(saved, **parts)
    (tmp_path / "a.npz").write_bytes(saved.getvalue())
    with pytest.raises(FileError) as caught:
        read(tmp_path / "a.npz")
    assert message in str(caught.value) and caught.value.place == str(tmp_path / "a.npz")


def test_npz_unknown_key_and_truncation(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, weight=np.eye(30))
    with pytest.raises(FileError, match="did you mean 'weight'"):
        read(path, key="wieght")
    content = path.read_bytes()
    for end in (0, 10, 500, len(content) - 10):
        path.write_bytes(content[:end])
        with pytest.raises(FileError) as caught:
            read(path)
        assert caught.value.place == str(path)


def npy(shape: str, descr: str = "'<f8'", body: bytes = b"\0" * 16) -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged"),
        (b"\x93NUMPY\x09\x00aa", "damaged"),
        (npy("(3,)"), "needs 24 bytes, 16 are there"),
        (npy("(1,)"), "needs 8 bytes, 16 are there"),
        (npy("(999999999999999, 999999999999)"), "bytes, 16 are there"),
        (npy("(-2, -1)"), "are there"),
        (npy("(2,)", "'|O'"), "Python objects"),
        (npy("(0, 10**23)".replace("10**23", str(10**23)), body=b""), "not the shape"),
        (npy(f"(0, {2**62}, 9)", body=b""), "shape (0, "),
        (npy(f"({2**62}, 0)", body=b""), "shape ("),
        (npy("(True,)", body=b"\0" * 8), "not the shape"),
        (npy(f"({'1, ' * 70})", body=b"\0" * 8), "not the shape"),
        (npy("(1,)", "('<f8', (2,))"), "its items are arrays"),
        (npy("(2,)", "'<U2'"), "not supported"),
        (npy("(2,)", "'<U0'", b""), "no size"),
        (npy("'x'"), "damaged"),
        (npy("(" * 500 + ")" * 500), "damaged"),
        (npy("(2,)")[:20], "damaged"),
    ],
)
def test_npy(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(FileError) as caught:
        read(tmp_path / "a.npy")
    assert message in str(caught.value) and caught.value.place == str(tmp_path / "a.npy")


def test_an_archive_that_lies_about_its_size_is_refused_unread(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy("(2,)"))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    at = content.index(b"PK\x01\x02") + 24  # the size in the central directory
    content[at : at + 4] = struct.pack("<I", 2**32 - 2)
    (tmp_path / "a.npz").write_bytes(bytes(content))
    with pytest.raises(FileError, match="can't unfold to the 4294967294 declared"):
        read(tmp_path / "a.npz")


def test_an_archive_with_two_arrays_of_a_name(tmp_path: Path) -> None:
    for second in ("a", "a.npy"):
        with (
            warnings.catch_warnings(action="ignore"),
            zipfile.ZipFile(tmp_path / "a.npz", "w") as archive,
        ):
            archive.writestr("a.npy", npy("(2,)"))
            archive.writestr(second, npy("(2,)"))
        with pytest.raises(FileError, match="'a': it is there twice"):
            read(tmp_path / "a.npz")


def test_gzip_without_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "MAX_UNFOLDED", 1 << 20)
    text = HEAD + "2 2 1\n1 1 1\n"
    (tmp_path / "a.mtx.gz").write_bytes(gzip.compress((text + " " * 900_000).encode()))
    assert read(tmp_path / "a.mtx.gz").nnz == 1
    (tmp_path / "a.mtx.gz").write_bytes(gzip.compress((text + " " * (64 << 20)).encode()))
    with pytest.raises(FileError, match="unfold to more than") as caught:
        read(tmp_path / "a.mtx.gz")
    assert caught.value.place == str(tmp_path / "a.mtx.gz")


# -- mutations -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".mtx", ".tns", ".npz", ".npy", ".mtx.gz"])
def test_mutated_files_read_or_are_refused(suffix: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    path = tmp_path / f"a{suffix}"
    seeds: list[bytes] = []
    for name in ("CSR", "dense", "COO") if suffix in (".mtx", ".npz") else ("COO",):
        write(asarray(sample((4, 5))).to(name), path)
        seeds.append(path.read_bytes())
    if suffix == ".npz":
        for kind in ("dia", "bsr"):
            library.save_npz(path, library.coo_array(sample((4, 6))).asformat(kind))
            seeds.append(path.read_bytes())
    spice = (b"0", b"-1", b"9" * 20, b" ", b"\n", b"%", b"nan", b"\0", b"\xff", b"1e9", b"#")
    refused = 0
    for _ in range(400):
        content = bytearray(seeds[rng.integers(len(seeds))])
        for _ in range(int(rng.integers(1, 4))):
            if not content:
                break
            at = int(rng.integers(len(content)))
            match int(rng.integers(4)):
                case 0:
                    content[at] = int(rng.integers(256))
                case 1:
                    content[at:at] = spice[rng.integers(len(spice))]
                case 2:
                    del content[at : at + int(rng.integers(1, 9))]
                case _:
                    content = content[: at + 1]
        path.write_bytes(bytes(content))
        try:
            read(path).check("full")
        except SparseccError as error:
            refused += 1
            assert str(path) in str(error), content
    assert refused > 10
