"""Products with matrices of sparse rows: kernels in the interpreter against NumPy in f64, and their machine code."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import sparsecc as sc
from sparsecc import driver
from sparsecc.backends.triton.load import compile_source, sass
from sparsecc.pipeline import run_passes
from sparsecc.runtime.tile_kernel import TileKernel
from tests.rows import (
    KINDS,
    PASSES,
    PATTERNS,
    SDDMM,
    SPMM,
    SPMV,
    check,
    compiled,
    matched,
    matrix,
    random,
    source,
    specs,
    wide,
)  # fmt: skip
from tests.tiles import tile_sources

torch: Any = import_module("torch")  # its types are incomplete
Golden = Callable[[Path, str], None]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("pattern", ["uniform", "hub"])
def test_matrices_of_every_type(pattern: str, dtype: str) -> None:
    a = matrix(pattern, dtype)
    x = random(np.random.default_rng(1), (a.shape[1], 16), dtype)
    operands = {"A": sc.asarray(a).to("CSR"), "X": x}
    check(compiled(SPMM, operands).call(operands), wide(a) @ wide(x), dtype)


@pytest.mark.parametrize("columns", [1, 7, 48, 65])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_matrices_of_every_pattern(pattern: str, columns: int) -> None:
    a = matrix(pattern, "f32")
    x = random(np.random.default_rng(1), (a.shape[1], columns), "f32")
    operands = {"A": sc.asarray(a).to("CSR"), "X": x}
    check(compiled(SPMM, operands).call(operands), wide(a) @ wide(x), "f32")


@pytest.mark.parametrize("skewed", [True, False])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i32"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_vectors(pattern: str, dtype: str, skewed: bool) -> None:
    a = matrix(pattern, dtype)
    x = random(np.random.default_rng(1), (a.shape[1],), dtype)
    operands = {"A": sc.asarray(a).to("CSR"), "x": x}
    kernel = compiled(SPMV, operands)
    assert kernel.remake is not None
    family = "row_bins" if skewed else "row_groups"
    made = kernel.remake(skewed=skewed, length=4)
    assert isinstance(made, TileKernel) and family in made.plan.tiles[0].schedule
    kernel.fitting = lambda tensors, out=None, made=made: made
    check(kernel.call(operands), wide(a) @ wide(x), dtype)


@pytest.mark.parametrize("skewed", [True, False])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i32"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_products_at_entries(pattern: str, dtype: str, skewed: bool) -> None:
    a, rng = matrix(pattern, dtype), np.random.default_rng(1)
    u, v = (random(rng, (n, 37), dtype) for n in a.shape)
    operands = {"A": sc.asarray(a).to("CSR"), "U": u, "V": v}
    kernel = compiled(SDDMM, operands, "CSR")
    assert kernel.remake is not None
    family = "sampled_entries" if skewed else "sampled_rows"
    made = kernel.remake(skewed=skewed, length=64)
    assert isinstance(made, TileKernel) and family in made.plan.tiles[0].schedule
    kernel.fitting = lambda tensors, out=None, made=made: made
    found: Any = kernel.call(operands)
    stored: Any = operands["A"]
    assert np.array_equal(found.levels[1].positions, stored.levels[1].positions)
    check(found.to_numpy(), wide(a) * (wide(u) @ wide(v).T), dtype)


def test_the_order_in_which_parts_arrive_does_not_matter() -> None:
    a = matrix("hub", "f32")
    x = random(np.random.default_rng(1), (a.shape[1], 16), "f32")
    v = random(np.random.default_rng(1), (a.shape[1],), "f32")
    for text, operands, table, slots in (
        (SPMM, {"X": x}, "segments", "slot_count"),
        (SPMV, {"x": v}, "long_segments", "long_slot_count"),
    ):
        kernel = compiled(text, {"A": sc.asarray(a).to("CSR"), **operands})
        packed = kernel.pack(A=sc.asarray(a).to("CSR"))
        assert packed.facts[slots] >= 2
        turned = replace(packed, arrays={**packed.arrays, table: packed.arrays[table][::-1].copy()})
        first, second = (kernel.call({"A": p, **operands}) for p in (packed, turned))
        assert first.tobytes() == second.tobytes()
        check(first, wide(a) @ wide(next(iter(operands.values()))), "f32")


@pytest.mark.parametrize(
    ("text", "format", "expected"),
    [
        ("C[i,j] = A[k,i] * X[k,j]", "CSC", "a.T @ x"),
        ("C[i,j] = 2 * A[i,k] * X[k,j] + b[i]", "CSR", "2 * a @ x + b[:, None]"),
        ("C[i,j] = Y[i,j] - A[i,k] * X[k,j]", "CSR", "y - a @ x"),
    ],
)
def test_what_goes_into_the_kernel(text: str, format: str, expected: str) -> None:
    a, rng = matrix("hub", "f32"), np.random.default_rng(1)
    a = np.ascontiguousarray(a.T) if format == "CSC" else a
    rows, inner = a.shape[::-1] if format == "CSC" else a.shape
    x, y, b = (random(rng, s, "f32") for s in ((inner, 16), (rows, 16), (rows,)))
    known = {"A": sc.asarray(a).to(format), "X": x, "Y": y, "b": b}
    operands = {name: value for name, value in known.items() if re.search(rf"\b{name}\[", text)}
    found = compiled(text, operands).call(operands)
    values = {"a": wide(a), "x": wide(x), "y": wide(y), "b": wide(b)}
    check(found, eval(expected, values), "f32")


@pytest.mark.parametrize(
    ("text", "formats"),
    [
        ("C[i,j] = X[i,k] * A[j,k]", {"A": "CSR"}),  # X lies the other way round
        ("C[i,j] = A[i,k] * X[j,k]", {"A": "CSR"}),
        ("C[i,j] = A[i,k] * X[k,j]", {"A": "DCSR"}),
        ("C[i,j] = A[i,k] * X[k,j]", {"A": "CSR", "X": "CSR"}),
        ("y[j] = A[i,j] * x[i]", {"A": "CSR"}),
    ],
)
def test_all_else_takes_the_general_path(text: str, formats: dict[str, str]) -> None:
    given = tuple(
        (name, replace(spec, format=formats.get(name, "dense")))
        for name, spec in specs(text, "f32", 32)
    )
    module = driver.front(driver.Request("expression", text, given, "dense"))
    run_passes(module, PASSES, verify=True)
    assert not tile_sources(module)
    assert "linalg.generic" in str(module)


@pytest.mark.parametrize("width", [torch.int32, torch.int64])
def test_tensors_of_torch_are_taken_as_they_are(width: Any) -> None:
    dense = torch.from_numpy(matrix("hub", "f32"))
    csr = dense.to_sparse_csr()
    a = torch.sparse_csr_tensor(
        csr.crow_indices().to(width), csr.col_indices().to(width), csr.values(), size=csr.shape
    )
    x = torch.rand(dense.shape[1], 16)
    kernel = compiled(SPMM, {"A": a, "X": x})
    assert torch.allclose(kernel(A=a, X=x), dense @ x, atol=1e-4)
    assert kernel.notes == [
        "operand A: its rows are shared out by CSR-segments, tables of its positions"
    ]
    assert torch.allclose(kernel(A=kernel.pack(A=a), X=x), dense @ x, atol=1e-4)
    other = torch.int64 if width == torch.int32 else torch.int32
    wrong = torch.sparse_csr_tensor(
        csr.crow_indices().to(other), csr.col_indices().to(other), csr.values(), size=csr.shape
    )
    for operand in (wrong, kernel.pack(A=wrong)):
        with pytest.raises(sc.SparseccError, match="positions of operand 'A' are"):
            kernel(A=operand, X=x)


def test_code_fits_what_it_meets() -> None:
    """Wide loads where the columns of X are a multiple of 16 and begin at one; other columns, other code."""
    a = torch.from_numpy(matrix("uniform", "f32")).to_sparse_csr()
    kernel = compiled(SPMM, {"A": a, "X": torch.rand(34, 16)})
    memory = torch.rand(34 * 16 + 1)
    made: list[tuple[bool, int]] = []
    for x in (
        torch.rand(34, 16), torch.rand(34, 17), memory[1:].reshape(34, 16), torch.rand(34, 64), torch.rand(34, 32),
    ):  # fmt: skip
        assert torch.allclose(kernel(A=a, X=x), a.to_dense() @ x, atol=1e-4)
        *_, last = kernel.variants.values()
        made.append((bool(last.plan.tiles[0].source.aligned), len(kernel.variants)))
    assert made == [(True, 1), (False, 2), (False, 3), (True, 4), (True, 5)]
    assert torch.allclose(
        kernel(A=a, X=torch.ones(34, 16)), a.to_dense() @ torch.ones(34, 16), atol=1e-4
    )
    assert len(kernel.variants) == 5


# -- text and machine code -----------------------------------------------------------------------


GOLDEN = Path(__file__).parent.parent / "backends" / "triton" / "golden"


@pytest.mark.parametrize(("name", "text"), [("spmm", SPMM), ("spmv", SPMV), ("sddmm", SDDMM)])
def test_text(golden: Golden, name: str, text: str) -> None:
    golden(GOLDEN / f"rows_{name}.py.txt", source(text, tokens="64", even="true").text)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_rows_of_x_are_read_16_bytes_at_a_time(dtype: str, target: str) -> None:
    made = source(SPMM, dtype, target=target, tokens="64", even="true")
    code = compile_source(made, target)
    assert code.threads == 32 and code.spills == 0
    assert code.registers <= (72 if target == "sm_80" else 64)  # 32 programs of a warp fit
    assert sass(code.cubin).count("LDG.E.128") >= 8


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("skewed", ["true", "false"])
@pytest.mark.parametrize(("text", "width"), [(SPMV, 32), (SPMV, 64), (SDDMM, 64)])
def test_compiles(text: str, width: int, skewed: str, target: str) -> None:
    made = source(
        text, "f32", width, target=target, skewed=skewed, length="32", tokens="256", even="true"
    )
    code = compile_source(made, target)
    assert code.spills == 0
    if text == SDDMM:
        assert "LDG.E.128" in sass(code.cubin)


@pytest.mark.parametrize("text", [SPMM, SPMV, SDDMM])
def test_every_schedule_can_be_asked_for(text: str) -> None:
    def space(options: dict[str, str]) -> list[Any]:
        (kernel,) = [
            f for f in matched(text, "f32", 32, **options).body.block.ops
            if isinstance(f, FuncOp) and "tile.kernel" in f.attributes
        ]  # fmt: skip
        found: Any = kernel.attributes["tile.space"]
        assert kernel.attributes["tile.schedule"] == found.data[0]
        return list(found.data)

    members = space({})
    assert 12 >= len(members) == len(set(members)) >= 8
    for number, member in enumerate(members):
        first, *rest = space({"member": str(number)})
        assert first == member and {first, *rest} == set(members)
        assert space({"schedule": str(member)})[0] == member
