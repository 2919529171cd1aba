"""Folders of files become problems; files that are no matrices are named, all at once."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.diagnostics import FileError
from sparsecc.research import generator, loaders
from sparsecc.research.corpus import CorpusProblem, NoFile
from sparsecc.research.smtx import read_smtx

SMTX = "3, 4, 5\n0 2 2 5\n1 3 3 0 2 \n"
DENSE = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 1, 1]], bool)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    within = tmp_path / "graphs"
    within.mkdir()
    matrix = generator.tensor({"family": "iid", "rows": 9, "columns": 7, "density": 0.3})
    matrix.save(within / "a.mtx")
    (within / "b.mtx.gz").write_bytes(gzip.compress((within / "a.mtx").read_bytes()))
    (tmp_path / "c.smtx").write_text(SMTX)
    tensor = {"family": "tensor-iid", "shape": [4, 5, 6], "entries": 20}
    generator.tensor(tensor).save(tmp_path / "d.tns")
    (tmp_path / "notes.txt").write_text("not a matrix")
    return tmp_path


def test_folders(folder: Path) -> None:
    found = loaders.problems(folder, "cpu", columns=(8,), factors=(4,))
    assert [p.id for p in found] == [
        "SpMV/f32/c.smtx", "SpMM-8/f32/c.smtx", "MTTKRP-4/f32/d.tns", "SpMV/f32/graphs/a.mtx",
        "SpMM-8/f32/graphs/a.mtx", "SpMV/f32/graphs/b.mtx.gz", "SpMM-8/f32/graphs/b.mtx.gz",
    ]  # fmt: skip
    assert {p.family for p in found} == {"files", "graphs"}
    assert found[2].sizes == {"i": 4, "r": 4, "j": 5, "k": 6}
    matrix = found[3].make()
    assert matrix.dtype == np.float32
    assert np.array_equal(
        matrix.to_numpy(), sc.read(folder / "graphs/a.mtx").astype(np.dtype("f4")).to_numpy()
    )
    assert len({p.matrix for p in found}) == 4
    again = CorpusProblem.from_json(found[3].to_json())
    assert again == found[3]
    assert again.held_out == found[3].held_out
    with pytest.raises(NoFile, match=r"graphs/a.mtx, which a table does not hold"):
        again.make()


def test_patterns_of_the_collection(tmp_path: Path) -> None:
    path = tmp_path / "a.smtx"
    for text in (
        SMTX,
        SMTX.replace(", ", " "),
        SMTX.replace("\n", " \r\n"),
        SMTX.strip(),
        SMTX + "\n\n",
    ):
        path.write_text(text)
        made = read_smtx(path).tensor("f32")
        assert np.array_equal(made.to_numpy() != 0, DENSE), text
    path.write_text("3, 4, 5\n0 2 2 5\n1 3 3 0 2".replace("3 0 2", "2 3 0"))  # not in order
    assert np.array_equal(read_smtx(path).dense("f32") != 0, DENSE)
    path.write_text("2, 3, 0\n0 0 0\n")
    assert read_smtx(path).nnz == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ":1: error: '' is not a size line"),
        ("3, 4\n", ":1: error: '3, 4' is not a size line"),
        ("3, x, 5\n", ":1: error: '3, x, 5' is not a size line"),
        ("-3, 4, 5\n", "is not a size line"),
        ("99999999999999999999, 4, 5\n", "is not a size line"),
        ("9999999999, 4, 5\n", ":1: error: 5 entries of a 9999999999 x 4 matrix"),
        ("3, 4, 13\n", ":1: error: 13 entries of a 3 x 4 matrix"),
        ("2000000000, 2000000000, 5\n0 5\n1 2 3 4 5", ":2: error: 2000000001 entries are declared"),
        ("3, 4, 5\n0 2 5\n1 3 0 2 3", ":2: error: 4 entries are declared, but 3 row positions"),
        ("3, 4, 5\n0 2 2 5\n1 3 0 2", ":3: error: 5 entries are declared, but 4 columns"),
        ("3, 4, 5\n0 2 2 5", ":3: error: 5 entries are declared, but 0 columns"),
        ("3, 4, 5\n0 3 2 5\n1 3 0 2 3", ":2: error: row positions do not rise"),
        ("3, 4, 5\n1 2 2 5\n1 3 0 2 3", ":2: error: row positions do not rise"),
        ("3, 4, 5\n0 2 2 6\n1 3 0 2 3", ":2: error: row positions do not rise"),
        ("3, 4, 5\n0 2 2 5\n1 4 0 2 3", ":3: error: column 4 of entry 1 is outside [0, 4)"),
        ("3, 4, 5\n0 2 2 5\n1 -3 0 2 3", ":3: error: '-3' is not a whole number"),
        ("3, 4, 5\n0 2 2 5\n1 1_0 0 2 3", ":3: error: '1_0' is not a whole number"),
        ("3, 4, 5\n0 2 2 5\n1 18446744073709551617 0 2 3", "is not a whole number of at most ten"),
        ("3, 4, 5\n0 2 2 5\n1 1 0 2 3", ":3: error: entry (0, 1) is there twice"),
        ("3, 4, 5\n0 2 2 5\n1 3 0 2 z", ":3: error:"),
        ("3, 4, 5\n0 2 2 5\n1 3 0 2 1e30", ":3: error:"),
        ("3, 4, 5\n0 2 2 5\n1 3 0 2 3\n4", ":4: error: there is a fourth line"),
    ],
)
def test_hostile_patterns(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "a.smtx"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        read_smtx(path)
    assert f"a.smtx{problem}" in str(caught.value) or problem in str(caught.value)
    path.write_bytes(b"\xff\x00" + text.encode())
    with pytest.raises(FileError):
        read_smtx(path)


def test_all_bad_files_are_named(folder: Path) -> None:
    (folder / "e.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n")
    (folder / "f.smtx").write_text("1, 1, 1\n")
    (folder / "g.tns").write_text("1 1 1 1 2.5\n")
    (folder / "h.mtx").write_text(
        "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 2\n"
    )
    (folder / "i.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 0\n")
    (folder / "j.mtx.gz").write_bytes(b"\x1f\x8bnot gzip")
    with pytest.raises(FileError) as caught:
        loaders.problems(folder, "cpu")
    told = str(caught.value)
    for text in (
        "e.mtx:3: error: index 3", "f.smtx:2: error:", "g.tns: error: no operation takes a tensor of 4",
        "h.mtx: error: its entries are complex", "i.mtx: error: it has no entries", "j.mtx.gz: error:",
        "found 6 errors",
    ):  # fmt: skip
        assert text in told


def test_what_is_no_file_is_named_too(folder: Path) -> None:
    (folder / "gone.mtx").symlink_to(folder / "nowhere.mtx")
    (folder / "dir.mtx").mkdir()
    with pytest.raises(FileError) as caught:
        loaders.load(folder)
    text = str(caught.value)
    assert "gone.mtx" in text and "it is a link to nothing" in text
    assert "dir.mtx" in text and "it is a folder" in text


def test_folders_without_files(tmp_path: Path) -> None:
    with pytest.raises(loaders.NoFiles):
        loaders.problems(tmp_path, "cpu")
