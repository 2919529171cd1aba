"""Formats are chosen for expressions of every kind: each legal plan has a price, and what is chosen computes."""

from __future__ import annotations

import re
import warnings
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sparsecc as sc
from sparsecc import api
from sparsecc.frontends.index_notation import parse
from sparsecc.runtime.compiled_kernel import OperandConverted
from tests.oracle.corpus import ROWS
from tests.oracle.evaluator import Operand, evaluate
from tests.sweep import accesses

EXTENTS = {"b": 2, "i": 6, "j": 6, "k": 6, "l": 5, "m": 4, "n": 4, "r": 4}
PRODUCTS = (
    "s = v[i] * x[i]",
    "s = a * b",
    "y[i] = A[i,j]",
    "y[j] = A[i,j] * x[i]",
    "y[i] = A[i,j] * x[j] * z[j]",
    "s = x[i] * A[i,j] * z[j]",
    "s = A[i,j] * B[j,i]",
    "y[i] = T[i,j,k] * B[j,k]",
    "C[i,k] = T[i,j,k] * u[j]",
    "C[i,j] = T[i,j,k] * v[k]",
    "D[i,j,l] = T[i,j,k] * A[l,k]",
    "C[b,i,k] = A[b,i,j] * B[j,k]",
    "C[b,i,k] = A[b,i,j] * B[b,j,k]",
    "C[j,k] = A[i,j] * B[i,k]",
    "C[k,i] = B[j,k] * A[i,j]",
    "C[i,k] = A[i,j] * A[k,j]",
    "C[i,j,k] = A[i,j] * B[j,k]",
    "C[i,j,k,l] = A[i,j] * B[k,l]",
    "D[i,r] = A[i,j] * U[j,r] * x[j]",
    "Y[m,n] = X[m,k] * W[n,k]",
    "C[i,l] = A[i,j] * B[j,k] * E[k,l]",
    "C[i,k] = A[i,j] * B[j,k] + D[i,k]",
    "y[i] = A[i,i] * x[i]",
)
CHAINS = (
    "C[i,k] = A[i,j] * B[j,k]; y[i] = C[i,k] * x[k]",
    "C[i,j] = A[i,j] + B[i,j]; y[i] = C[i,j] * x[j]",
    "C[i,j] = A[i,j] * B[i,j]; y[i] = C[i,j] * x[j]",
    "C[i,j] = 2 * A[i,j]; Z[i,r] = C[i,j] * X[j,r]",
    "C[i,k] = A[i,j] * A[j,k]; D[i,r] = C[i,k] * X[k,r]",
    "C[i,j] = A[i,j] + B[i,j]; y[i] = C[i,j] * x[j]; w[j] = A[i,j] * y[i]",
    "C[i,j] = A[i,j] * B[i,j]; D[i,k] = C[i,j] * B[j,k]; y[i] = D[i,k] * x[k]",
    "y[i] = A[i,j] * x[j]; w[j] = A[i,j] * y[i]",
)
TEXTS = tuple(dict.fromkeys((*PRODUCTS, *CHAINS, *(row.text for row in ROWS))))
STRATEGIES = ("roofline", "tree", "bytes", "fixed", "always-dense")
LIBRARIES = {
    "cpu": frozenset({"blas", "scipy"}),
    "sm_90": frozenset({"cublas", "cusparse", "cusparselt"}),
}
Array = npt.NDArray[Any]


def operands_of(text: str, density: float = 0.3, turned: bool = False) -> dict[str, Array]:
    """Values of each operand, sparse ones if they have two dimensions; in column-major order if ``turned``."""
    rng = np.random.default_rng(len(text))
    found: dict[str, Array] = {}
    made = {statement.target.name for statement in parse(text).statements}
    for name, indices in accesses(text).items():
        if name in made:
            continue
        shape = tuple(EXTENTS.get(re.sub(r"\W.*", "", i), 6) for i in indices)
        values = rng.integers(1, 5, shape).astype(np.float64)
        if len(shape) > 1:
            values *= rng.random(shape) < density
        found[name] = np.asfortranarray(values) if turned and shape else values
    return found


def computed(text: str, given: dict[str, Any], strategy: str, is_open: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OperandConverted)
        found = sc.compile(text, **given, formats=is_open, strategy=strategy)(**given)
    return found.to_numpy() if hasattr(found, "to_numpy") else found


def expected(text: str, values: dict[str, Array]) -> Array:
    known: dict[str, Operand] = {
        n: (a, (a != 0) if a.ndim > 1 else None) for n, a in values.items()
    }
    return evaluate(text, known)[0]


def is_refused(text: str) -> bool:
    """Whether the compiler takes an expression at all, whatever is chosen."""
    given = {n: sc.asarray(a).to("COO") if a.ndim == 2 else a for n, a in operands_of(text).items()}
    try:
        api.evaluate(text, operands=given)
    except sc.SparseccError:
        return True
    return False


def test_few_are_refused() -> None:
    assert len(TEXTS) > 60
    refused = [text for text in TEXTS if is_refused(text)]
    assert len(refused) < len(TEXTS) / 10 and not set(refused) & {*PRODUCTS, *CHAINS}, refused


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("text", TEXTS)
def test_every_plan_has_a_price(text: str, target: str) -> None:
    values = operands_of(text)
    given = {n: sc.asarray(a) if a.ndim > 1 else a for n, a in values.items()}
    if is_refused(text):
        pytest.skip("the compiler takes none of its plans")
    for strategy in STRATEGIES:
        for opened in ("*", {n: "*" for n, a in list(values.items())[:1] if a.ndim > 1}):
            found = api.decide(
                text,
                operands=given,
                formats=opened,
                strategy=strategy,
                target=target,
                libraries=LIBRARIES[target],
            )
            assert found is not None
            for plan in found.problem.candidates:
                seconds = found.problem.predict(plan).seconds
                assert seconds is not None and isfinite(seconds) and seconds > 0, (text, plan)
            for plan in found.ranked:
                assert plan.seconds is None or (isfinite(plan.seconds) and plan.seconds > 0)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_what_is_chosen_computes(text: str, turned: bool) -> None:
    if is_refused(text):
        pytest.skip("the compiler takes none of its plans")
    values = operands_of(text, turned=turned)
    wanted = expected(text, values)
    first = next((n for n, a in values.items() if a.ndim > 1), None)
    # With one sparse operand the others are arrays, in their order; else all are sparse.
    alone = {n: sc.asarray(a) if n == first else a for n, a in values.items()}
    every = {n: sc.asarray(a) if a.ndim > 1 else a for n, a in values.items()}
    for strategy in STRATEGIES:
        for given in (alone, every):
            np.testing.assert_allclose(computed(text, given, strategy, "*"), wanted)


@pytest.mark.parametrize("text", CHAINS)
@pytest.mark.parametrize("strategy", ["autotune", "oracle"])
def test_chains_are_measured(text: str, strategy: str) -> None:
    values = operands_of(text)
    given = {n: sc.asarray(a) if a.ndim > 1 else a for n, a in values.items()}
    small = {n: "*" for n in list(given)[:1]}
    found = computed(text, given, strategy, small)
    np.testing.assert_allclose(found, expected(text, values))
