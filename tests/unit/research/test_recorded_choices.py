"""The default strategy held against the recorded tables: what it loses on problems that were not fitted, and answers
that are known. These are numbers of data that ships, no times of the machine that runs the tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from statistics import fmean

import numpy as np
import pytest

from sparsecc.research import fit as fitting
from sparsecc.research import harness, metrics, train_tree
from sparsecc.research.outcomes import label
from sparsecc.research.table import Table, Time, read_table
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.problem import Problem
from sparsecc.selection.registry import DEFAULT, strategy
from sparsecc.selection.spaces import space_of
from sparsecc.selection.strategies.tree import Tree
from sparsecc.targets import known_target

TABLES = ("cpu", "h200")
MEAN = 0.05
WORST = 0.3
"""Regret on the held-out problems, on every target."""
CLEAR = 1.1
"""The faster side of dense and sparse is clear where the other one takes more than ten per cent longer."""
WRONG = {
    "linear-16/f16/iid/4096x14336/density=0.05": 0.10,
    "linear-16/f16/iid/4096x14336/density=0.4": 0.17,
    "linear-16/f16/magnitude/28672x8192/density=0.5": 0.24,
}
"""Fitted decode problems where the default is on the wrong side of dense, and what that loses."""


@cache
def table(name: str) -> Table:
    return read_table(name)


def asked(recorded: Table, id: str) -> Problem:
    return recorded.problem(id, space=space_of(known_target(recorded.target)))


@cache
def answered(name: str, id: str) -> Candidate:
    return strategy(DEFAULT).rank(asked(table(name), id))[0].candidate


def answer(recorded: Table, id: str) -> Candidate:
    """What the default strategy ranks first."""
    return answered(recorded.name, id)


@cache
def chosen(name: str) -> Mapping[str, Candidate]:
    """By held-out problem, the plan that is ranked first."""
    recorded = table(name)
    held_out = [id for id, p in recorded.problems.items() if p.held_out and recorded.runs(id)]
    return {id: answer(recorded, id) for id in held_out}


def regret(recorded: Table, id: str, plan: Candidate) -> float:
    return recorded.seconds(id, plan) / (recorded.runs(id)[0].seconds or 1.0) - 1


@pytest.mark.parametrize("name", TABLES)
def test_regret_on_what_was_not_fitted(name: str) -> None:
    found = [regret(table(name), id, plan) for id, plan in chosen(name).items()]
    assert len(found) > 40
    assert fmean(found) <= MEAN
    assert max(found) < WORST


@pytest.mark.parametrize("name", TABLES)
def test_no_static_choice_is_as_good(name: str) -> None:
    """Always the same plan, each on the problems where it ran: the geometric mean of its times is longer. So it is of
    the best such plan of each operation."""
    recorded = table(name)
    space = space_of(known_target(recorded.target))
    made = harness.run(strategy(DEFAULT), recorded, space, calls=())
    assert {o.problem for o in made.outcomes} == set(chosen(name))
    found = metrics.summary(made, recorded)
    ran = {label(t.candidate) for id in chosen(name) for t in recorded.runs(id)}
    assert {static.what for static in found.statics} == ran and len(ran) > 10
    for static in (*found.statics, found.best_static):
        assert static.problems and (static.speedup or 0.0) > 1, static
    assert found.best_static.problems == len(chosen(name))


@pytest.mark.parametrize("name", TABLES)
def test_the_tree_is_no_worse_than_the_bar(name: str) -> None:
    recorded = table(name)
    found = [
        regret(recorded, id, Tree().rank(asked(recorded, id))[0].candidate) for id in chosen(name)
    ]
    assert fmean(found) <= MEAN


def weights(columns: str, density: str) -> str:
    """The problem of an unstructured 4096 x 4096 f32 matrix."""
    return f"{columns}/f32/iid/4096x4096/density={density}"


def test_half_full_weights_stay_dense_on_a_cpu() -> None:
    recorded, id = table("cpu"), weights("SpMM-128", "0.5")
    assert recorded.runs(id)[0].candidate == Candidate.of({"A": "dense"}, "blas")
    assert answer(recorded, id) == recorded.runs(id)[0].candidate


@pytest.mark.parametrize("density", ["0.1", "0.05", "0.01"])
@pytest.mark.parametrize("columns", ["SpMV", "SpMM-1", "SpMM-8", "SpMM-32", "SpMM-128"])
def test_sparse_weights_are_stored_sparsely_on_a_cpu(columns: str, density: str) -> None:
    recorded, id = table("cpu"), weights(columns, density)
    assert faster(recorded, id) == "sparse"
    assert side(answer(recorded, id)) == "sparse"


def faster(recorded: Table, id: str) -> str | None:
    """What was measured to be clearly faster; None where neither was."""
    seconds = {
        kind: min(t.seconds or 0.0 for t in recorded.runs(id) if side(t.candidate) == kind)
        for kind in ("dense", "sparse")
    }
    dense, sparse = seconds["dense"], seconds["sparse"]
    return "dense" if sparse > CLEAR * dense else "sparse" if dense > CLEAR * sparse else None


def side(plan: Candidate) -> str:
    return "dense" if all(fmt == "dense" for _, fmt in plan.formats) else "sparse"


def test_decode_shapes_on_an_h200_are_dense_where_that_was_faster_and_sparse_where_that_was() -> (
    None
):
    """Linear layers of up to 64 tokens, problem by problem."""
    recorded = table("h200")
    decode = {
        id: p.held_out
        for id, p in recorded.problems.items()
        if p.operation == "linear" and p.sizes["m"] <= 64 and recorded.runs(id)
    }
    clear = {id: found for id in decode if (found := faster(recorded, id))}
    for kind, least in (("dense", 5), ("sparse", 10)):
        assert sum(found == kind and decode[id] for id, found in clear.items()) >= least
    wrong = {id for id, found in clear.items() if side(answer(recorded, id)) != found}
    assert not [id for id in wrong if decode[id]]
    assert wrong <= set(WRONG)
    for id in wrong:
        assert regret(recorded, id, answer(recorded, id)) < WRONG[id] + 0.005


# -- what is held out is held out ------------------------------------------------------------------


def scrambled(recorded: Table) -> Table:
    """The table with all times of its held-out problems made up."""
    rng = np.random.default_rng(5)

    def made_up(time: Time) -> Time:
        if time.seconds is None:
            return time
        seconds, conversion = 10 ** rng.uniform(-6, 0, 2)
        moved = None if time.conversion is None else float(conversion)
        return replace(
            time, seconds=float(seconds), low=float(seconds), high=float(seconds), conversion=moved
        )

    times = {
        id: tuple(map(made_up, all)) if recorded.problems[id].held_out else all
        for id, all in recorded.times.items()
    }
    return replace(recorded, times=times)


@cache
def some(name: str) -> Table:
    """A part of a table, which is fitted sooner."""
    ids = list(table(name).problems)
    return table(name).only(ids[:: 4 if name == "cpu" else 1])


@pytest.mark.parametrize("name", TABLES)
def test_calibrations_are_not_fitted_to_what_is_held_out(name: str) -> None:
    recorded = some(name)
    start = fitting.prior(recorded.target)
    made, other = (fitting.fit(t, start) for t in (recorded, scrambled(recorded)))
    # Its errors are those on the held-out problems, which only judge.
    assert made.errors != other.errors
    assert replace(made, errors={}) == replace(other, errors={})
    assert made.families != start.families


@pytest.mark.parametrize("name", TABLES)
def test_trees_are_not_trained_on_what_is_held_out(name: str) -> None:
    recorded = some(name)
    one, other = (train_tree.samples(t) for t in (recorded, scrambled(recorded)))
    assert len(one[0]) > 100
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    if find_spec("sklearn") is not None:
        made, again = (train_tree.train(t) for t in (recorded, scrambled(recorded)))
        assert made == again
