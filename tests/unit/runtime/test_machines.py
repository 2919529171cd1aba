"""GPUs that are absent, old, full or broken, and the interpreter in the place of one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.diagnostics import SparseccError
from sparsecc.runtime.machines import interpreter
from tests.unit.backends.triton.kernels import SPMV
from tests.unit.runtime.gpu_doubles import (
    ROWS,
    Library,
    Machine,
    X,
    csr,
    kernel_of,
    spmv_plan,
    torch,
)

# -- without a GPU -------------------------------------------------------------------------------


def test_without_a_gpu_it_compiles_and_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsecc.backends.triton.cuda._NAMES", ())
    kernel = kernel_of(spmv_plan(SPMV), None)
    assert kernel.resources["spmv"]["threads"] == 32
    with pytest.raises(SparseccError, match="there is no GPU here.*\n.*interpret=True"):
        kernel(A=csr(torch.int32), x=torch.from_numpy(X))
    with pytest.raises(SparseccError, match="there is no GPU here"):
        sc.compile("y[i] = x[i]", x=X, target="gpu")


def test_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kernel_of(spmv_plan(SPMV), None).with_options(interpret=True)
    assert kernel.machine() is interpreter()
    y = kernel(A=sc.asarray(ROWS).to("CSR@i32/i32"), x=X)
    assert type(y) is np.ndarray and np.array_equal(y, ROWS @ X)
    y = kernel(A=csr(torch.int32), x=torch.from_numpy(X))
    assert isinstance(y, torch.Tensor) and np.array_equal(y.numpy(), ROWS @ X)
    assert not kernel.notes  # nothing was copied
    monkeypatch.setenv("SPARSECC_INTERPRET", "1")
    assert kernel_of(spmv_plan(SPMV), None).interpret


def test_options_of_gpus_are_refused_on_the_cpu() -> None:
    with pytest.raises(SparseccError, match="for GPU targets"):
        sc.compile("y[i] = x[i]", x=X, interpret=True)


# -- devices -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("library", "text"),
    [
        (Library(capability=(8, 0)), "code for sm_90 does not run on a GPU of the tests.*older"),
        (Library(capability=(10, 0)), "code for sm_90 does not run on a GPU of the tests"),
        (Library(shared=-1), "needs 0 bytes of shared memory, the GPU gives a block -1"),
        (Library(fails={"cuModuleLoadData": 209}), "loading kernel spmv failed: CUDA_ERROR_209, what 209"),
        (Library(fails={"cuModuleLoadData": 2}), "not enough memory for loading kernel spmv"),
        (Library(fails={"cuLaunchKernel": 700}), "launching kernel spmv failed: CUDA_ERROR_700"),
    ],
)  # fmt: skip
def test_a_device_that_can_not(library: Library, text: str) -> None:
    with pytest.raises(SparseccError, match=f"(?s){text}"):
        kernel_of(spmv_plan(SPMV), Machine(library))(A=csr(torch.int32), x=torch.from_numpy(X))


def test_code_of_ampere_goes_to_a_newer_device_as_ptx() -> None:
    machine = Machine(Library())
    kernel = kernel_of(spmv_plan(SPMV), machine)
    kernel.request = replace(kernel.request, target="sm_80")
    y = kernel(A=csr(torch.int32), x=torch.from_numpy(X))
    assert np.array_equal(y.numpy(), ROWS @ X)
    (code,) = machine.library.loaded
    assert b".target sm_80" in code and code.endswith(b"\0")
    assert kernel.notes == ["code for sm_80: the driver translates its PTX for a GPU of the tests"]
