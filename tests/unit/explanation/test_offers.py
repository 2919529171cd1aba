"""What would pay is asked of the model on changed problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import sparsecc as sc
from sparsecc.explanation import changes
from sparsecc.explanation.offers import WORTH, Offer, offers
from sparsecc.explanation.prediction import predict
from sparsecc.explanation.report import explain
from sparsecc.explanation.sizes import best
from sparsecc.selection.decision import Decision
from sparsecc.statistics import Statistics
from tests.unit.explanation.decisions import grouped, linear, matrix, vector, weight


def offered(decision: Decision) -> dict[str, Offer]:
    return {offer.kind: offer for offer in explain(decision).offers}


def statistics_of(array: npt.NDArray[np.float64]) -> Statistics:
    return sc.asarray(array).statistics()


def close(found: Statistics, wanted: Statistics, off: float) -> None:
    """What models read is about the same."""
    assert found.shape == wanted.shape and found.nnz == pytest.approx(wanted.nnz, rel=off)
    for block in wanted.blocks:
        same = found.block(block.rows, block.columns)
        assert same is not None
        assert same.count == pytest.approx(block.count, rel=off), (block.rows, block.columns)
        assert same.fill == pytest.approx(block.fill, rel=off)
    for group in wanted.groups:
        same_group = found.group(group.n, group.m)
        assert same_group is not None
        assert same_group.fitting == pytest.approx(group.fitting, abs=off)
    for one, other in zip(found.slices, wanted.slices, strict=True):
        assert one.mean == pytest.approx(other.mean, rel=off)


RNG = np.random.default_rng(8)
HALF = np.where(RNG.random((512, 512)) < 0.5, RNG.random((512, 512)) + 1, 0)


def test_pruning_to_groups_of_four() -> None:
    groups = HALF.reshape(512, 128, 4)
    order = np.argsort(np.argsort(-groups, axis=2), axis=2)
    pruned = np.where(order < 2, groups, 0).reshape(512, 512)
    found = changes.in_groups(statistics_of(HALF))
    assert found.nnz == np.count_nonzero(pruned)
    close(found, statistics_of(pruned), 0.25)
    group = found.group(2, 4)
    assert group is not None and (group.fitting, group.overflow) == (1, 0)


def test_pruning_anywhere() -> None:
    thin = np.where(RNG.random(HALF.shape) < 0.4, HALF, 0)
    close(changes.thinned(statistics_of(HALF), 0.2), statistics_of(thin), 0.1)


def test_whole_blocks() -> None:
    kept = RNG.permutation(32 * 32) < 512
    blocks = np.kron(kept.reshape(32, 32), np.ones((16, 16))).astype(np.float64)
    found = changes.in_blocks(statistics_of(HALF), 16, 16, 512 * 256)
    wanted = statistics_of(blocks)
    assert found.nnz == wanted.nnz
    close(found, replace(wanted, groups=()), 0.15)


def test_padding_keeps_entries() -> None:
    known = statistics_of(HALF[:, :510])
    found = changes.padded(known, 4)
    wide = np.zeros((512, 512))
    wide[:, :510] = HALF[:, :510]
    assert (found.shape, found.nnz) == ((512, 512), known.nnz)
    assert found.slices[1].bins == statistics_of(wide).slices[1].bins


# -- offers --------------------------------------------------------------------------------------


def test_a_half_full_weight_is_offered_groups() -> None:
    decision = linear(weight(0.5))
    offer = offered(decision)["groups"]
    assert "2:4" in offer.change and dict(offer.candidate.formats) == {"W": "2:4"}
    assert offer.gain >= WORTH
    # A weight that is pruned so is predicted the same.
    real = linear(grouped())
    if "int8" not in offer.change:
        now = predict(real.problem, real.candidate).seconds
        assert offer.seconds == pytest.approx(now, rel=0.05)


def test_every_offer_is_faster_and_legal() -> None:
    for decision in (linear(), linear(grouped()), linear(weight(1.0)), vector(), vector(calls=3)):
        now = predict(decision.problem, decision.candidate)
        for offer in offers(decision.problem, now):
            assert offer.seconds < offer.before, offer


def test_narrower_types_are_offered() -> None:
    found = explain(linear(weight(0.5, 2048, "float64"))).offers
    assert "f16 operands" in [o.change for o in found if o.kind == "type"]


def test_groups_are_not_offered_to_what_has_them() -> None:
    assert all("re-pruned" not in o.change for o in explain(linear(grouped())).offers)


def test_libraries_that_are_not_here() -> None:
    problem = replace(linear(weight(1.0), m=512).problem, libraries=frozenset())
    now = predict(problem, best(problem).candidate)
    found = {o.change.split(" ")[0]: o for o in offers(problem, now)}
    assert found["cuBLAS"].candidate.engines == ("cublas",)


def test_calls_that_pay() -> None:
    found = vector(matrix(400, 600, 0.5), calls=1)
    offer = offered(found).get("calls")
    free = replace(found.problem, calls=None)
    if best(free).candidate == found.candidate:
        assert offer is None
    else:
        assert offer is not None
        more = replace(found.problem, calls=1e9)
        assert best(more).candidate == offer.candidate


def test_nothing_is_offered_twice() -> None:
    found = [o.change for o in explain(linear()).offers]
    assert len(found) == len(set(found))
