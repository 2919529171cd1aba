"""Decisions for tests of explanations: of weights and matrices that are made here, with nothing compiled."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import sparsecc as sc
from sparsecc import api
from sparsecc.selection.decision import Decision
from sparsecc.selection.engines import of_target
from sparsecc.storage.tensor import SparseTensor

LINEAR = "Y[m,n] = X[m,k] * W[n,k]"
SPMV = "y[i] = A[i,j] * x[j]"
SPMM = "C[i,k] = A[i,j] * B[j,k]"
ROWS, COLUMNS = 4096, 2048


@cache
def weight(density: float = 0.5, columns: int = COLUMNS, dtype: str = "float16") -> SparseTensor:
    """A dense weight with entries anywhere."""
    rng = np.random.default_rng(3)
    mask = rng.random((ROWS, columns)) < density
    return sc.asarray(np.where(mask, rng.random((ROWS, columns)) + 1, 0).astype(dtype))


@cache
def grouped() -> SparseTensor:
    """A dense weight with two entries in each four."""
    rng = np.random.default_rng(4)
    places = np.argsort(rng.random((ROWS, COLUMNS // 4, 4)), axis=2).reshape(ROWS, COLUMNS)
    return sc.asarray(np.where(places < 2, 1.5, 0).astype(np.float16))


@cache
def matrix(rows: int = 400, columns: int = 600, density: float = 0.02) -> SparseTensor:
    """A sparse matrix in COO."""
    rng = np.random.default_rng(5)
    dense = np.where(rng.random((rows, columns)) < density, 1.0, 0)
    return sc.asarray(dense).to("COO")


def linear(w: SparseTensor | None = None, m: int | None = 16, **options: Any) -> Decision:
    """The choice for a linear layer on sm_90, all of its libraries counted on."""
    given = weight() if w is None else w
    dtype = {"float16": "f16", "float32": "f32", "float64": "f64"}[str(given.dtype)]
    found = api.decide(
        LINEAR, W=given, X=sc.Spec((None, None), dtype), formats={"W": "*"}, target="sm_90",
        sizes=None if m is None else {"m": m}, libraries=frozenset(of_target("sm_90")), **options,
    )  # fmt: skip
    assert found is not None
    return found


def vector(a: SparseTensor | None = None, **options: Any) -> Decision:
    """The choice for a matrix times a vector on the CPU."""
    given = matrix() if a is None else a
    found = api.decide(
        SPMV, A=given, x=sc.Spec((None,)), formats={"A": "*"}, libraries=frozenset({"blas", "scipy"}), **options
    )  # fmt: skip
    assert found is not None
    return found


def renamed(decision: Decision, name: str, text: str) -> Decision:
    """The same decision where an operand and an expression are called something else."""
    problem = decision.problem
    (old,) = (t.name for t in problem.tensors.values() if t.statistics is not None)
    tensors = {
        (name if n == old else n): replace(t, name=name if n == old else n)
        for n, t in problem.tensors.items()
    }
    (e,) = problem.expressions
    inputs = tuple(replace(a, name=name) if a.name == old else a for a in e.inputs)
    expression = replace(e, inputs=inputs, text=text)
    plain = replace(problem, tensors=tensors, expressions=(expression,))
    ranked = tuple(
        replace(r, candidate=replace(r.candidate, formats=tuple((name, f) for _, f in r.candidate.formats)))
        for r in decision.ranked
    )  # fmt: skip
    return replace(decision, problem=plain, ranked=ranked)
