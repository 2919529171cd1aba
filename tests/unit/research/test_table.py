"""Tables are written and read back the same; what is wrong with one is said with its line."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from sparsecc.diagnostics import FileError
from sparsecc.research import table as tables
from sparsecc.research.recorded import NoModel
from sparsecc.research.records import NoParquet
from sparsecc.research.table import (
    NotRecorded,
    RecordedFailure,
    Table,
    Time,
    UnknownProblem,
    UnknownTable,
    read_table,
    write_table,
)
from sparsecc.selection.candidate import Candidate
from tests.unit.research.tiny import BSR, CSR, DENSE, SCIPY, tiny, without

FIRST = "SpMV/f32/iid/40x30/density=0.5"


def test_round_trip(tmp_path: Path) -> None:
    written = tiny()
    scheduled = Candidate.of(
        {"A": "BSR(4,4)", "B": "(i, j) -> (i : dense, j : compressed)"}, "generated", "cublas",
        schedules={"main": "tile 16, 32; warps=4"},
    )  # fmt: skip
    odd = Time(scheduled, 1 / 3, failure="", runs=1)
    written = replace(written, times={**written.times, FIRST: (*written.times[FIRST], odd)})
    paths = write_table(written, tmp_path)
    assert [p.name for p in paths] == ["tiny.meta.json", "tiny.problems.jsonl", "tiny.times.csv"]
    for name in (tmp_path / "tiny", paths[0], paths[2]):
        assert read_table(str(name)) == written


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    if find_spec("pyarrow") is None:
        with pytest.raises(NoParquet, match="pyarrow is not installed"):
            tables.export(tiny(), path)
        return
    tables.export(tiny(), path)
    assert read_table(str(path)) == tiny()
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(FileError, match="not a Parquet file"):
        read_table(str(path))


def test_export_as_csv(tmp_path: Path) -> None:
    tables.export(tiny(), tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0].split(",") == list(tables.COLUMNS)
    assert len(lines) == 33


def test_looking_up() -> None:
    table = tiny()
    assert table.target == "cpu"
    assert table.seconds(FIRST, CSR) == 2e-5
    assert [t.candidate for t in table.runs(FIRST)] == [DENSE, CSR, BSR]
    with pytest.raises(RecordedFailure, match="there is no SciPy"):
        table.seconds(FIRST, SCIPY)
    with pytest.raises(NotRecorded, match="A=ELL by generated"):
        table.seconds(FIRST, Candidate.of({"A": "ELL"}))
    with pytest.raises(UnknownProblem, match="no problem 'SpMV'"):
        table.runs("SpMV")


def test_problems() -> None:
    table = tiny()
    problem = table.problem(FIRST, calls=10)
    assert problem.candidates == (BSR, CSR, DENSE)
    assert problem.refusals == ()
    assert problem.measure is not None and problem.measure(DENSE) == 1e-5
    assert problem.libraries == {"blas"}
    known = problem.tensors["A"].statistics
    assert known is not None and known.nnz == table.problems[FIRST].make().nnz
    with pytest.raises(NoModel):
        problem.predict(CSR)
    with pytest.raises(NotRecorded):
        without(table, CSR).problem(FIRST).measure(CSR)  # type: ignore[misc]


def test_parts() -> None:
    part = tiny().only([FIRST])
    assert list(part.problems) == list(part.times) == [FIRST]


@pytest.fixture
def stem(tmp_path: Path) -> Path:
    write_table(tiny(), tmp_path)
    return tmp_path / "tiny"


def broken(stem: Path, ending: str, old: str, new: str) -> str:
    path = stem.with_name(stem.name + ending)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(FileError) as caught:
        read_table(str(stem))
    return str(caught.value)


@pytest.mark.parametrize(
    ("ending", "old", "new", "problem"),
    [
        (".times.csv", "2e-05", "two", "times.csv:2: error: could not convert"),
        (".times.csv", "2e-05", "-2e-05", "times.csv:2: error: seconds is -2e-05"),
        (".times.csv", "2e-05", "nan", "times.csv:2: error: seconds is nan"),
        (".times.csv", "2e-05", "0", "more than 0 seconds"),
        (".times.csv", "2e-05", "", "either seconds or a failure"),
        (".times.csv", "1.9e-05,", "1,", "low = 1.0 is over high"),
        (".times.csv", "A=CSR", "ACSR", "'ACSR' are not like"),
        (".times.csv", ",generated,", ",,", "has no engine"),
        (".times.csv", "A=dense,blas", "A=CSR,generated", "is there twice"),
        (".times.csv", "40x30", "40x31", "is not among the problems"),
        (".times.csv", ",1,\n", ",yes,\n", "checked is 0 or 1"),
        (".times.csv", ",1,\n", ",1,,\n", "14 cells, and the head line has 13"),
        (".times.csv", "conversion", "convert", "there are no columns conversion"),
        (".problems.jsonl", "{", "", "problems.jsonl:1: error:"),
        (
            ".problems.jsonl",
            '"sizes"',
            '"size"',
            "problems.jsonl:1: error: not a problem: KeyError",
        ),
        (".problems.jsonl", '"format": null', '"format": "CSR"', "not a problem"),
        (".problems.jsonl", "A[i,j] * x[j]", "A[i,j] + x[j]", "not the sum of one product"),
        (".meta.json", '"target"', '"targets"', "not an object with a 'target'"),
    ],
)
def test_broken_files(stem: Path, ending: str, old: str, new: str, problem: str) -> None:
    assert problem in broken(stem, ending, old, new)


def test_all_errors_are_told(stem: Path) -> None:
    path = stem.with_name("tiny.times.csv")
    path.write_text(path.read_text().replace("A=CSR", "ACSR"))
    assert "found 16 errors" in broken(stem, ".meta.json", '"machine"', '"the machine"')


def test_bytes_that_are_no_text(stem: Path) -> None:
    for ending in (".times.csv", ".problems.jsonl", ".meta.json"):
        path = stem.with_name(stem.name + ending)
        whole = path.read_bytes()
        path.write_bytes(b"\xff" + whole)
        with pytest.raises(FileError, match="is not UTF-8"):
            read_table(str(stem))
        path.write_bytes(whole)


def test_unknown_tables(tmp_path: Path) -> None:
    with pytest.raises(UnknownTable, match="there is no table 'nothing'"):
        read_table("nothing")


def test_shipped_tables_are_valid() -> None:
    for name in tables.names():
        table = read_table(name)
        assert table.problems
        assert all(table.runs(id) for id in table.problems)
        assert json.dumps(dict(table.meta))
        assert isinstance(table, Table)
