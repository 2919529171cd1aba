"""Every plan of the CPU's space compiles and computes what NumPy does; every plan of a GPU's becomes a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from tests.unit.selection.problems import (
    LINEAR,
    MTTKRP,
    SDDMM,
    SPMM,
    SPMV,
    Array,
    expression,
    iid,
    problem,
    statistics_of,
)

TRANSPOSED = "C[j,k] = A[i,j] * X[i,k]"
PRODUCTS = (SPMV, SPMM, LINEAR, TRANSPOSED, "C[k,i] = A[i,j] * X[j,k]", "y[j] = A[i,j] * x[i]")
SIZES = {"k": 13, "m": 13, "r": 13}


def operands(text: str, matrix: Array) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    e = expression(text)
    extents = dict(SIZES)
    for access in e.inputs:
        if access.name == "A":
            extents.update(zip(access.indices, matrix.shape, strict=True))
    return {
        a.name: rng.standard_normal([extents[i] for i in a.indices])
        for a in e.inputs
        if a.name != "A"
    }


def open_result(text: str) -> dict[str, None]:
    """The result of a product at the entries of a matrix is stored as the matrix is."""
    return {"C": None} if text == SDDMM else {}


def expected(text: str, given: dict[str, Array]) -> Array:
    e = expression(text)
    subscripts = ",".join("".join(a.indices) for a in e.inputs)
    return np.einsum(
        f"{subscripts}->{''.join(e.result.indices)}", *[given[a.name] for a in e.inputs]
    )


@pytest.mark.parametrize("text", [*PRODUCTS, SDDMM, MTTKRP, "B[i,j] = A[i,j]", "y[i] = A[i,j]"])
def test_plans_of_a_cpu(text: str) -> None:
    rng = np.random.default_rng(0)
    shape = (9, 12, 7) if text == MTTKRP else (18, 24)
    matrix = rng.standard_normal(shape) * (rng.random(shape) < 0.2)
    dense = operands(text, matrix)
    sizes = {k: n for k, n in SIZES.items() if k in expression(text).indices}
    p = problem(text, statistics={"A": statistics_of(matrix), **open_result(text)}, sizes=sizes)
    assert len(p.candidates) > 3
    stored = sc.asarray(matrix)
    for plan in p.candidates:
        fmt = plan.format_of("A")
        found: Any = sc.evaluate(text, operands={"A": stored.to(fmt), **dense})
        assert np.allclose(sc.asarray(found).to_numpy(), expected(text, {"A": matrix, **dense})), (
            fmt
        )
        kernel = sc.compile(text, operands={"A": stored.to(fmt), **dense})
        assert "A converted" not in kernel.explain(), fmt


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "i8"])
@pytest.mark.parametrize("text", [SPMV, SPMM, LINEAR, SDDMM])
def test_plans_of_a_gpu(text: str, dtype: str) -> None:
    known = iid(256, 256, density=0.3, dtype=dtype, fits_2_4=True, blocks=0.5)
    sizes = {k: 32 for k in SIZES if k in expression(text).indices and text != SPMV}
    p = problem(
        text, target="sm_90", dtype=dtype, statistics={"A": known, **open_result(text)}, sizes=sizes
    )
    assert p.candidates
    general = {"dense"} | ({"CSR"} if text == LINEAR else set[str]())
    for plan in p.candidates:
        fmt = plan.format_of("A")
        specs = {
            a.name: sc.Spec(p.tensors[a.name].shape, dtype, fmt if a.name == "A" else None)
            for a in p.expressions[0].inputs
        }
        kernel = sc.compile(text, target="sm_90", operands=specs)
        tiles = kernel.ir("tiles")
        assert "tile.kernel" in tiles, fmt
        assert ("loops" in tiles.partition("tile.schedule<")[2][:9]) == (fmt in general), fmt
