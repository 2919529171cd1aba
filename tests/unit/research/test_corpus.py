"""The built-in corpora hold what they promise, and problems are made as they say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.research import corpus, generator, report
from sparsecc.research.corpus import CorpusProblem, Matrix, of_matrix, problems
from sparsecc.research.operations import OPERATIONS, NotOneProduct, expression_of
from sparsecc.selection.problem import Access, Problem
from sparsecc.targets import known_target

CPU, GPU = problems("cpu"), problems("gpu")


@pytest.mark.parametrize("found", [CPU, GPU], ids=["cpu", "gpu"])
def test_names_are_unique_and_plain(found: tuple[CorpusProblem, ...]) -> None:
    ids = [p.id for p in found]
    assert len(set(ids)) == len(ids)
    assert not any(set(" ,;\"'") & set(id) for id in ids)


@pytest.mark.parametrize("found", [CPU, GPU], ids=["cpu", "gpu"])
def test_problems_survive_json(found: tuple[CorpusProblem, ...]) -> None:
    assert all(CorpusProblem.from_json(p.to_json()) == p for p in found)


def test_the_corpus_of_the_cpu() -> None:
    assert len(CPU) >= 300
    assert {p.family for p in CPU} == set(generator.FAMILIES)
    widths = Counter((p.operation, p.sizes.get("j", 0)) for p in CPU if p.operation == "SpMM")
    assert all(widths["SpMM", n] >= 40 for n in (1, 8, 32, 128))
    assert Counter(p.operation for p in CPU).keys() == {"SpMV", "SpMM", "SDDMM", "MTTKRP"}
    assert {p.sparse.dtype for p in CPU} == {"f32", "f64"}
    assert "SpMM-128/f32/iid/4096x4096/density=0.5" in {p.id for p in CPU}


def test_the_corpus_of_gpus() -> None:
    assert len(GPU) >= 150
    assert Counter(p.sparse.dtype for p in GPU)["f16"] > 0.8 * len(GPU)
    assert {p.sizes["m"] for p in GPU if p.operation == "linear"} == {
        1, 8, 16, 32, 64, 128, 512, 2048,
    }  # fmt: skip
    assert len(corpus.groups(GPU)) < len(GPU) / 3
    assert {p.target for p in GPU} == {"sm_90"}


def test_groups_follow_each_other() -> None:
    for found in (CPU, GPU):
        assert [p for group in corpus.groups(found) for p in group] == list(found)


@pytest.mark.parametrize("found", [CPU, GPU], ids=["cpu", "gpu"])
def test_the_split_is_of_matrices(found: tuple[CorpusProblem, ...]) -> None:
    sides: dict[str, set[bool]] = {}
    for p in found:
        sides.setdefault(generator.digest(dict(p.pattern)), set()).add(p.held_out)
    assert all(len(side) == 1 for side in sides.values())
    share = sum(p.held_out for p in found) / len(found)
    assert 0.25 < share < 0.4
    matrices = Counter((p.family, p.held_out) for group in corpus.groups(found) for p in group[:1])
    for family in {p.family for p in found}:
        if matrices[family, True] + matrices[family, False] > 1:
            assert matrices[family, True] and matrices[family, False], family


def test_a_matrix_of_both_corpora_is_on_one_side() -> None:
    one = Matrix({"family": "iid", "rows": 64, "columns": 64, "density": 0.5}, "f16", "dense")
    other = replace(one, dtype="f32", stored="CSR")
    a, b = of_matrix(one, "linear", 8, "sm_90"), of_matrix(other, "SpMV", None, "cpu")
    assert a.held_out == b.held_out
    assert a.matrix != b.matrix


def test_expressions() -> None:
    found = expression_of(OPERATIONS["linear"].text)
    assert found.result == Access("Y", ("m", "n"))
    assert found.inputs == (Access("X", ("m", "k")), Access("W", ("n", "k")))
    assert found.product
    for text in (
        "y[i] = A[i,j] + x[j]",
        "y[i] += A[i,j] * x[j]",
        "y[i] = 2 * A[i,i+1]",
        "t = A[i]; y = t",
    ):
        with pytest.raises(NotOneProduct):
            expression_of(text)


def small(operation: str, dtype: str = "f32") -> CorpusProblem:
    if operation == "MTTKRP":
        spec = {"family": "tensor-iid", "shape": [9, 8, 7], "entries": 60}
        return of_matrix(Matrix(spec, dtype, "COO(3)"), operation, 5, "cpu")
    spec = {"family": "iid", "rows": 12, "columns": 9, "density": 0.3}
    width = None if operation == "SpMV" else 5
    return of_matrix(Matrix(spec, dtype, "CSC"), operation, width, "cpu")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_problems_run_as_they_are_written(operation: str) -> None:
    problem = small(operation, "f64")
    made, inputs = problem.make(), problem.inputs()
    assert str(sc.asarray(made).format) == str(made.format)
    assert made.dtype == np.float64
    assert {n: x.shape for n, x in inputs.items()} == {
        t.name: t.shape for t in problem.dense_inputs
    }
    result = problem.result
    operands = {**inputs, problem.sparse.name: made}
    found = sc.evaluate(problem.expression, out=result.format, operands=operands)
    expression = expression_of(problem.expression)
    terms = ",".join("".join(a.indices) for a in expression.inputs)
    dense = {**inputs, problem.sparse.name: made.to_numpy()}
    expected = np.einsum(
        f"{terms}->{''.join(expression.result.indices)}",
        *(dense[a.name] for a in expression.inputs),
    )
    np.testing.assert_allclose(sc.asarray(found).to_numpy(), expected)
    assert result.shape == expected.shape


def test_inputs_are_always_the_same() -> None:
    problem = small("SpMM")
    assert np.array_equal(problem.inputs()["X"], problem.inputs()["X"])
    assert not np.array_equal(problem.inputs()["X"], problem.inputs(1)["X"])


class NoPlans:
    def candidates(self, problem: Problem) -> tuple[tuple[()], tuple[()]]:
        return (), ()

    def predict(self, problem: Problem, candidate: object) -> None:
        raise AssertionError


def test_problems_for_strategies() -> None:
    problem = small("SpMM")
    found = problem.problem(NoPlans(), calls=100, libraries=["blas"])  # type: ignore[arg-type]
    assert found.target == known_target("cpu")
    assert found.extents == {"i": 12, "k": 9, "j": 5}
    assert [t.name for t in found.tensors.values() if t.open] == ["A"]
    assert found.tensors["A"].stored == "CSC"
    assert (found.calls, found.libraries) == (100, frozenset({"blas"}))


def test_shapes_are_known_before_patterns_are_made() -> None:
    for found in (CPU, GPU):
        for group in corpus.groups(found):
            assert prod(group[0].sparse.shape) > 0  # type: ignore[arg-type]
    for spec in (
        {"family": "stencil", "grid": [3, 4], "points": 5},
        {"family": "preferential", "rows": 9, "edges": 2},
        {"family": "tensor-iid", "shape": [3, 4, 5], "entries": 9},
    ):
        assert Matrix(spec).shape == generator.pattern(spec).shape


def test_unknown_corpora() -> None:
    with pytest.raises(corpus.UnknownCorpus, match="no corpus 'cpus'"):
        problems("cpus")


def test_the_document_counts_them() -> None:
    text = (Path(__file__).parents[3] / "docs" / "research.md").read_text(encoding="utf-8")
    for name, what in (("cpu", "tensors"), ("gpu", "matrices")):
        found = corpus.problems(name)
        patterns = len({str(sorted(p.pattern.items())) for p in found})
        said = f"`{name}` has {len(found)} problems on {patterns} {what}"
        assert said in " ".join(text.split())
        *_, last = report.of_corpus(name, found).rows
        assert last[-2] == str(patterns)
