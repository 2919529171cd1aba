"""Results on a pattern, conversions, plans on disk, and what a kernel says of itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.diagnostics import SparseccError
from sparsecc.formats import parse_format
from sparsecc.kernel import Convert, Operand, Plan
from sparsecc.runtime.compiled_kernel import OperandConverted
from sparsecc.runtime.tile_kernel import TileKernel
from tests.unit.backends.triton.kernels import SPMV
from tests.unit.runtime.gpu_doubles import (
    ROWS,
    Machine,
    X,
    csr,
    kernel_of,
    launch,
    matmul_plan,
    program,
    spmv_plan,
    torch,
)

SCALE = """import triton
import triton.language as tl


@triton.jit
def scale(val, out, pos, rows):
    end = tl.load(pos + rows)
    for start in range(0, end, 4):
        at = start + tl.arange(0, 4)
        tl.store(out + at, 2 * tl.load(val + at, mask=at < end, other=0.0), mask=at < end)


def grid(rows):
    return (1,)
"""


def scaled() -> Plan:
    """``B[i,j] = 2 * A[i,j]`` on the pattern of A."""
    fmt = str(parse_format("CSR", 2).with_widths(32, 32))
    source = replace(
        SPMV,
        entry="scale",
        text=SCALE,
        arguments=(("val", "*fp32"), ("out", "*fp32"), ("pos", "*i32"), ("rows", "i32")),
        roles=("in0.values", "out.values", "in0.positions1", "in0.dim0"),
        aligned=(),
    )
    extents = (("i", ((0, 0),)), ("j", ((0, 1),)))
    made = launch(
        "scale", 1, extents, (0, 1), assembly="pattern", pattern=0, format=fmt, covers=False
    )
    return program(source, (Operand("A", (None, None), "f32", fmt),), made)


def test_a_result_on_a_pattern_shares_it(machine: Machine) -> None:
    matrix = csr(torch.int32)
    found = kernel_of(scaled(), machine)(A=matrix)
    assert found.layout == torch.sparse_csr
    assert torch.equal(found.to_dense(), 2 * torch.from_numpy(ROWS))
    assert found.col_indices().data_ptr() == matrix.col_indices().data_ptr()
    with pytest.warns(OperandConverted):
        host = kernel_of(scaled(), machine)(A=sc.asarray(ROWS).to("CSR@i32/i32"))
    assert isinstance(host, sc.SparseTensor) and np.array_equal(host.to_numpy(), 2 * ROWS)
    with pytest.raises(SparseccError, match="not dense.*\n.*leave out= away"):
        kernel_of(scaled(), machine)(A=matrix, out=torch.zeros(3, 4))


def test_a_conversion_of_the_plan_is_done_on_the_host_or_refused(machine: Machine) -> None:
    plan = spmv_plan(SPMV)
    (step,) = plan.tiles
    csc, rows = parse_format("CSC", 2).with_widths(32, 32), plan.operands[0].format
    moved = replace(
        step,
        launch=replace(
            step.launch, inputs=(2, 1), dest=3, extents=(("i", ((2, 0),)), ("j", ((2, 1), (1, 0))))
        ),
    )
    operands = (replace(plan.operands[0], format=str(csc)), plan.operands[1])
    plan = Plan(operands, (Convert(0, 2, rows, "rows are wanted"), moved), (3,), ("y",))
    kernel = kernel_of(plan, machine)
    a = sc.asarray(ROWS).to(csc)
    assert np.array_equal(kernel(A=a, x=torch.from_numpy(X)).numpy(), ROWS @ X)
    columns = torch.from_numpy(ROWS).to_sparse_csc()
    matrix = torch.sparse_csc_tensor(
        columns.ccol_indices().int(), columns.row_indices().int(), columns.values(), size=(3, 4)
    )
    with pytest.raises(SparseccError, match="not done on a GPU.*\n.*under two names"):
        kernel(A=matrix, x=torch.from_numpy(X))


def test_a_plan_goes_to_the_disk_and_back() -> None:
    import json

    for plan in (spmv_plan(SPMV), matmul_plan(), scaled()):
        assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_explain_says_what_runs() -> None:
    text = kernel_of(matmul_plan(), None).explain()
    assert "Y = a program of the tests" in text.replace("y =", "Y =")
    assert 'code: blocks for sm_90, #tile.schedule<"hand", {number = 0}>' in text
    assert "3 are legal; kernel.autotune() measures them" in text


def test_a_kernel_that_packs_nothing() -> None:
    kernel = kernel_of(spmv_plan(SPMV), None)
    with pytest.raises(SparseccError, match="does not read operand 'A' packed"):
        kernel.pack(A=ROWS)
    with pytest.raises(SparseccError, match="no operand 'B'"):
        kernel.pack(B=ROWS)
    with pytest.raises(SparseccError, match="no 'elf'"):
        kernel.asm("elf")
    assert isinstance(kernel, TileKernel)
