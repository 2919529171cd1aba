"""The sweep with formats that are chosen: every operand is open, and any legal plan gives the oracle's values."""

from __future__ import annotations

import random
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, cast

import numpy as np
import pytest

from sparsecc import api
from sparsecc.frontends.index_notation import parse
from sparsecc.runtime.compiled_kernel import OperandConverted
from sparsecc.selection import engines
from sparsecc.selection.candidate import Ranked
from sparsecc.selection.problem import Problem
from sparsecc.selection.spaces import space_of
from sparsecc.selection.strategies.features import features
from sparsecc.storage.tensor import SparseTensor
from sparsecc.targets import known_target
from tests.oracle.corpus import ROWS
from tests.sweep import FORMATS, Report, Trial, accesses, random_trial, row_trials, run

SHARDS = 4


class Anything:
    """A legal plan by chance."""

    name = "anything"

    def __init__(self, seed: int, used: Counter[str]) -> None:
        self.seed, self.used = seed, used

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        check_prices(problem, self.seed)
        chosen = random.Random(self.seed).choice(problem.candidates)
        self.used.update(fmt for _, fmt in chosen.formats)
        self.used.update(chosen.engines)
        return [Ranked(chosen)]


def check_prices(problem: Problem, seed: int) -> None:
    """Any legal plan has a price, for both kinds of targets, by the costs and for the tree."""
    gpu = known_target("sm_90")
    elsewhere = replace(
        problem, target=gpu, space=space_of(gpu), libraries=frozenset(engines.of_target(gpu))
    )
    for one in (problem, elsewhere):
        plans = one.candidates
        for plan in random.Random(seed).sample(plans, min(len(plans), 8)):
            seconds = one.predict(plan).seconds
            assert seconds is not None and isfinite(seconds) and seconds > 0, plan
            for expression, engine in zip(one.expressions, plan.engines, strict=True):
                assert all(map(isfinite, features(one, expression, plan, engine))), plan


def in_some_order(operands: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The operands, arrays of some of them in column-major order."""
    return {
        name: np.asfortranarray(cast("Any", t))
        if isinstance(t, np.ndarray) and t.ndim > 1 and rng.random() < 0.5
        else t
        for name, t in operands.items()
    }


def by_any_plan(used: Counter[str]) -> Callable[..., Any]:
    """Computes a trial by a plan that its text and its operands draw."""

    def compute(text: str, *, out: str | None, operands: dict[str, Any]) -> Any:
        shapes = [t.shape for t in operands.values()]
        seed = zlib.crc32(f"{text} {out} {shapes}".encode())
        rng = random.Random(seed)
        operands = in_some_order(operands, rng)
        # All that can be open, or some; the others stay as they are.
        share = rng.choice((1.0, 1.0, 0.5))
        is_open = {
            name: "*" for name, t in operands.items() if len(t.shape) > 1 and rng.random() < share
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OperandConverted)
            found = api.evaluate(
                text, out=out, operands=operands, formats=is_open, strategy=Anything(seed, used)
            )
        # What a result stores follows from the formats that were chosen; its values do not.
        return found.to_numpy() if isinstance(found, SparseTensor) else found

    return compute


def check(report: Report) -> None:
    assert not report.wrong, f"{len(report.wrong)} wrong, first:\n" + "\n\n".join(report.wrong[:5])


@pytest.mark.parametrize("shard", range(SHARDS))
def test_rows_of_the_corpus(shard: int) -> None:
    used: Counter[str] = Counter()
    trials: list[Trial] = []
    for row in ROWS[shard::SHARDS]:
        pool = list(row_trials(row))
        trials += pool[:: max(1, len(pool) // 12)]
    report = run(trials, by_any_plan(used))
    check(report)
    assert report.refusals.total() < report.cases / 4, report
    assert {"dense", "CSR", "generated"} <= used.keys(), used


@pytest.mark.parametrize("shard", range(SHARDS))
def test_generated_expressions(shard: int) -> None:
    used: Counter[str] = Counter()
    report = run(map(random_trial, range(50_000 + shard, 50_240, SHARDS)), by_any_plan(used))
    check(report)
    assert report.refusals.total() < report.cases / 4, report


CHAINS = (
    "C[i,k] = A[i,j] * B[j,k]; y[i] = C[i,k] * x[k]",
    "C[i,j] = A[i,j] + B[i,j]; y[i] = C[i,j] * x[j]",
    "C[i,j] = A[i,j] * B[i,j]; Z[i,k] = C[i,j] * X[j,k]",
    "C[i,j] = 2 * A[i,j]; y[j] = C[i,j] * x[i]",
    "C[i,k] = A[i,j] * B[j,k]; D[i,l] = C[i,k] * X[k,l]",
    "C[i,j] = A[i,j] + B[i,j]; D[i,k] = C[i,j] * A[j,k]; y[i] = D[i,k] * x[k]",
    "C[i,j] = T[i,j,k] * u[k]; y[i] = C[i,j] * x[j]",
    "w[i] = A[i,j] * x[j]; y[k] = B[i,k] * w[i]",
)
BATCHES = (
    "s = v[i] * x[i]",
    "C[i,k] = T[i,j,k] * u[j]",
    "D[i,j,l] = T[i,j,k] * A[l,k]",
    "C[b,i,k] = A[b,i,j] * B[j,k]",
    "C[b,i,k] = A[b,i,j] * B[b,j,k]",
    "C[i,j,l] = A[j,k] * T[i,k,l]",
)


def drawn(texts: Sequence[str], count: int) -> list[Trial]:
    """Trials of texts, in formats, types and extents by chance."""
    found: list[Trial] = []
    for text in texts:
        made = {s.target.name for s in parse(text).statements}
        used = {name: indices for name, indices in accesses(text).items() if name not in made}
        for number in range(count):
            seed = zlib.crc32(f"{text} {number}".encode())
            rng = random.Random(seed)
            size = rng.choice(
                (3, 5, 7)
            )  # one for all: matrices of chains are square where they meet
            shapes = {name: (size,) * len(indices) for name, indices in used.items()}
            kind = rng.choice(("f64", "f32", "i32"))
            formats = {n: rng.choice(FORMATS[len(shape)]) for n, shape in shapes.items()}
            found.append(Trial(text, shapes, dict.fromkeys(used, kind), formats, None, seed))
    return found


@pytest.mark.parametrize("texts", [CHAINS, BATCHES], ids=["chains", "batches"])
def test_chains_and_batches(texts: Sequence[str]) -> None:
    used: Counter[str] = Counter()
    report = run(drawn(texts, 24), by_any_plan(used))
    check(report)
    assert report.refusals.total() < report.cases / 4, report
    assert {"dense", "generated", "blas"} <= used.keys(), used


@pytest.mark.full
@pytest.mark.parametrize("shard", range(20))
def test_many_generated_expressions(shard: int) -> None:
    check(run(map(random_trial, range(200_000 + shard, 206_000, 20)), by_any_plan(Counter())))
