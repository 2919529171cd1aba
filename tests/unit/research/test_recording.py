"""A table that grows, is cut short, and goes on."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from sparsecc.research import corpus, record
from sparsecc.research.corpus import CorpusProblem, Matrix, of_matrix
from sparsecc.research.recording import WORDS, Recording, failed, spread
from sparsecc.research.table import Time, read_table
from sparsecc.selection.candidate import Candidate

CSR, DENSE = Candidate.of({"A": "CSR"}, "scipy"), Candidate.of({"A": "dense"}, "blas")
MATRIX = Matrix({"family": "iid", "rows": 8, "columns": 8, "density": 0.5})
FACTS = {"target": "cpu", "commit": "a", "date": "2026-01-01"}


def problem(width: int) -> CorpusProblem:
    return of_matrix(MATRIX, "SpMM", width, "cpu")


def times(seconds: float) -> list[Time]:
    return [
        Time(CSR, seconds, seconds, seconds, 9, 0.5, 0.1, 64, checked=True),
        failed(DENSE, "no"),
    ]


def test_what_is_recorded_reads_back(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "new" / "x")
    recording.describe(FACTS)
    recording.add(problem(2), times(1e-3))
    table = read_table(str(tmp_path / "new" / "x"))
    assert table.times[problem(2).id] == tuple(times(1e-3))
    assert table.problems[problem(2).id] == problem(2)
    assert table.target == "cpu"


def test_a_recording_goes_on_without_what_was_cut_short(tmp_path: Path) -> None:
    first = Recording(tmp_path / "x")
    first.describe(FACTS)
    first.add(problem(2), times(1e-3))
    # A run that ended between the times and the problem, and in the midst of its line.
    with first.times.open("a") as file:
        file.write(first.times.read_text().splitlines()[1].replace("SpMM-2", "SpMM-4") + "\n")
    with first.problems.open("a") as file:
        file.write('{"id": "SpMM-4')
    again = Recording(tmp_path / "x", resume=True)
    assert again.done == {problem(2).id}
    again.add(problem(4), times(2e-3))
    table = read_table(str(tmp_path / "x"))
    assert list(table.problems) == [problem(2).id, problem(4).id]
    assert [t.seconds for t in table.times[problem(4).id]] == [2e-3, None]


def test_without_resume_it_begins_anew(tmp_path: Path) -> None:
    Recording(tmp_path / "x").add(problem(2), times(1.0))
    assert Recording(tmp_path / "x").done == set()
    assert (tmp_path / "x.problems.jsonl").read_text() == ""


def test_the_facts_of_a_later_run_stand_beside_the_first_ones(tmp_path: Path) -> None:
    first = Recording(tmp_path / "x")
    first.describe(FACTS)
    first.add(problem(2), times(1.0))
    for _ in range(2):
        Recording(tmp_path / "x", resume=True).describe(FACTS | {"commit": "b"})
    Recording(tmp_path / "x", resume=True).describe(FACTS)
    found = json.loads((tmp_path / "x.meta.json").read_text())
    assert found == FACTS | {"continued": [{"commit": "b", "date": "2026-01-01"}]}


def test_where_samples_lie() -> None:
    assert spread([3.0, 1.0, 2.0]) == (2.0, 1.2, 2.8)
    assert spread([5.0]) == (5.0, 5.0, 5.0)
    assert spread([float(n) for n in range(11)]) == (5.0, 1.0, 9.0)


def test_a_failure_is_one_short_line() -> None:
    found = failed(CSR, RuntimeError("it\nfailed " + "x" * 500))
    assert found.failure.startswith("RuntimeError: it failed xxx")
    assert len(found.failure) == WORDS
    assert failed(CSR, "").failure  # a plan has either seconds or a failure


@pytest.mark.parametrize("name", list(corpus.CORPORA))
def test_any_beginning_of_a_recording_has_all_families(name: str) -> None:
    groups = record.ordered(corpus.problems(name))
    assert sorted(p.id for g in groups for p in g) == sorted(p.id for p in corpus.problems(name))
    families = {(g[0].family, g[0].operation) for g in groups}
    frequent = {f for f in families if sum((g[0].family, g[0].operation) == f for g in groups) >= 4}
    third = groups[: len(groups) // 3]
    assert frequent <= {(g[0].family, g[0].operation) for g in third}


def test_problems_are_chosen_by_their_names() -> None:
    groups = record.ordered(corpus.problems("cpu"), ["MTTKRP-8/f32"])
    assert groups and all("MTTKRP-8/f32" in p.id for g in groups for p in g)


def test_a_process_that_goes_on_has_the_same_options(tmp_path: Path) -> None:
    options = record.defaults(
        target="gpu", output=str(tmp_path / "x"), only=["a"], seconds=5.0, until=7.0, workers=3
    )
    parser = argparse.ArgumentParser()
    record.add_arguments(parser)
    found = parser.parse_args(list(record.again(options, ["p | d"])))
    assert vars(found) == vars(options) | {"resume": True, "skip": ["p | d"]}
