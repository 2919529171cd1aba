"""Kernels of plain text: compiled without a GPU, apart from this process, and run in the interpreter."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsecc.backends.triton import compile_process
from sparsecc.backends.triton.compile_process import (
    CompiledOrError,
    CompileFailed,
    CompilerDied,
    CompilerProcess,
    compile_many,
)
from sparsecc.backends.triton.compile_text import (
    TensorMapMissing,
    TensorMemoryFull,
    parameter_sizes,
)
from sparsecc.backends.triton.interpret import BadArgument, InterpreterFailed, NotInterpreted
from sparsecc.backends.triton.load import (
    NoGpuTarget,
    compile_source,
    interpret,
    missing_instructions,
    sass,
)
from sparsecc.diagnostics import InternalError
from sparsecc.kernel import Compiled, TensorMap, TileSource
from tests.unit.backends.triton.kernels import COPY, SPMV

GPUS = ("sm_80", "sm_90", "sm_100")


@pytest.mark.parametrize("target", GPUS)
def test_machine_code_for_every_target_without_a_gpu(target: str) -> None:
    found = compile_source(SPMV, target)
    assert (found.target, found.symbol, found.threads) == (target, "spmv", 32)
    assert f".target {target}" in found.ptx
    assert found.cubin.startswith(b"\x7fELF")
    assert 8 <= found.registers < 128 and found.spills == 0
    # The arguments, then the two scratch pointers that the compiler adds.
    assert found.parameters == (8, 8, 8, 8, 8, 4, 8, 8)
    assert "LDG" in sass(found.cubin)


def test_a_promised_instruction_is_looked_for() -> None:
    found = compile_source(replace(SPMV, instructions=("LDG", "HMMA.SP")), "sm_80")
    assert missing_instructions(found) == ["HMMA.SP"]


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_tensor_maps_are_described(target: str) -> None:
    found = compile_source(COPY, target)
    assert found.tensor_maps == (TensorMap((64, 64), 2, 6, 3),)
    # The map itself, its extents and strides, then the other arguments.
    assert found.parameters == (128, 4, 4, 8, 8, 8, 4, 8, 8)


def test_an_abort_of_the_compiler_is_an_error_with_its_last_words() -> None:
    with pytest.raises(
        CompilerDied, match=r"copy for sm_80 \(SIGABRT, after .* s\).*Cannot select"
    ):
        compile_source(COPY, "sm_80")
    assert compile_source(SPMV, "sm_80").registers  # by a new process


def test_a_fault_of_the_text_is_an_error_with_the_compilers_words() -> None:
    bad = replace(SPMV, text=SPMV.text.replace("hi - lo", "hi - nothing"))
    with pytest.raises(CompileFailed, match="(?s)spmv does not compile for sm_90.*nothing"):
        compile_source(bad, "sm_90")


FIRST = """import triton
import triton.language as tl


@triton.jit
def first(x, y):
    at = tl.arange(0, 16)
    tl.store(y + at[:, None] * 16 + at[None, :], x.load([0, 0]))


def grid():
    return (1, 1, 1)
"""


def test_errors_of_ours_come_back_as_what_they_are() -> None:
    with pytest.raises(InternalError, match="its arguments are pos, crd"):
        compile_source(replace(SPMV, arguments=SPMV.arguments[:-1]), "sm_90")
    map_on_old = TileSource(
        "first",
        FIRST,
        False,
        (("x", "tensordesc<fp32[16, 16]>"), ("y", "*fp32")),
        ("in0.values", "out.values"),
        (),
        1,
    )
    with pytest.raises(TensorMapMissing, match="sm_80 has no bulk copies"):
        compile_source(map_on_old, "sm_80")


SUMS = """import triton
import triton.language as tl


@triton.jit
def sums(a, y, count):
    i = tl.arange(0, 128)[:, None]
    j = tl.arange(0, 256)[None, :]
    k = tl.arange(0, 64)
    c0 = tl.zeros([128, 256], tl.float32)
    c1 = tl.zeros([128, 256], tl.float32)
    c2 = tl.zeros([128, 256], tl.float32)
    for step in range(0, count):
        b = tl.load(a + (step * 64 + k[:, None]) * 256 + j)
        c0 = tl.dot(tl.load(a + step + i * 64 + k[None, :]), b, c0)
        c1 = tl.dot(tl.load(a + 8192 + step + i * 64 + k[None, :]), b, c1)
        c2 = tl.dot(tl.load(a + 16384 + step + i * 64 + k[None, :]), b, c2)
    tl.store(y + i * 256 + j, c0 + c1 * c2)


def grid(count):
    return (1,)
"""


def test_more_tensor_memory_than_there_is_is_refused() -> None:
    """Three sums of 256 columns each."""
    source = TileSource(
        "sums", SUMS, False, (("a", "*fp16"), ("y", "*fp32"), ("count", "i32")),
        ("in0.values", "out.values", "in0.dim0"), ("a", "y"), 8,
    )  # fmt: skip
    (found,) = compile_many([source], "sm_100")
    assert isinstance(found, TensorMemoryFull)
    assert "needs 768 columns of tensor memory, and sm_100 has 512" in str(found)
    assert "fewer tokens" in found.help
    with pytest.raises(TensorMemoryFull):
        compile_source(source, "sm_100")
    two = source.text.replace("c0 + c1 * c2", "c0 + c1").replace("        c2 =", "        # c2 =")
    assert "trap" not in compile_source(replace(source, text=two), "sm_100").ptx


def test_a_target_that_is_no_gpu_is_refused() -> None:
    with pytest.raises(NoGpuTarget, match="'cpu' is no GPU"):
        compile_source(SPMV, "cpu")


def test_a_process_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_process, "LONGEST", 1.0)
    slow = replace(SPMV, text="import time\ntime.sleep(60)\n" + SPMV.text)
    process = CompilerProcess()
    with pytest.raises(CompilerDied, match="still being compiled for sm_90 after 1 s"):
        process.compile(slow, "sm_90")


def test_a_process_that_is_killed_is_started_once_more(tmp_path: Path) -> None:
    """The text kills its process: the first time only, or always."""
    mark = tmp_path / "tried"
    kill = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    once = (
        f"import os\nif not os.path.exists({str(mark)!r}):\n    open({str(mark)!r}, 'w').close()\n"
    )
    once += "    os.kill(os.getpid(), 9)\n"
    assert CompilerProcess().compile(replace(SPMV, text=once + SPMV.text), "sm_90").registers
    assert mark.exists()
    with pytest.raises(
        CompilerDied, match=r"(?s)\(SIGKILL, after \d+\.\d s\).*out of memory"
    ) as found:
        CompilerProcess().compile(replace(SPMV, text=kill + SPMV.text), "sm_90")
    assert "after 300" not in str(found.value)


def test_many_at_once_each_with_its_own_error() -> None:
    bad = replace(SPMV, text=SPMV.text.replace("hi - lo", "hi - nothing"))
    heard: list[int] = []

    def hear(number: int, _found: CompiledOrError) -> None:
        heard.append(number)

    found = compile_many([SPMV, bad, COPY], "sm_90", workers=2, done=hear)
    assert [type(one) for one in found] == [Compiled, CompileFailed, Compiled]
    assert sorted(heard) == [0, 1, 2]


def test_compiling_leaves_this_process_without_triton() -> None:
    code = """
import sys
from sparsecc.backends.triton.load import compile_source
from tests.unit.backends.triton.kernels import SPMV
assert compile_source(SPMV, "sm_90").registers
print([m for m in ("triton", "torch", "llvmlite", "xdsl") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_sizes_of_parameters() -> None:
    ptx = (
        ".visible .entry k(\n\t.param .u64 .ptr .global .align 1 k_param_0,\n"
        "\t.param .align 64 .b8 k_param_1[128],\n\t.param .f32 k_param_2\n)\n.reqntid 32"
    )
    assert parameter_sizes(ptx, "k") == (8, 128, 4)
    with pytest.raises(InternalError, match="no entry other"):
        parameter_sizes(ptx, "other")


def spmv_arguments(rows: int, columns: int) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(rows)
    dense = np.where(rng.random((rows, columns)) < 0.3, rng.random((rows, columns)), 0).astype("f4")
    x = rng.random(columns).astype("f4")
    arguments = {
        "pos": np.concatenate([[0], np.cumsum((dense != 0).sum(1))]).astype("i4"),
        "crd": np.nonzero(dense)[1].astype("i4"),
        "val": dense[dense != 0],
        "x": x,
        "y": np.full(rows, np.nan, "f4"),
        "rows": rows,
    }
    return arguments, dense.astype("f8") @ x


@pytest.mark.parametrize("shape", [(1, 1), (13, 17), (64, 3)])
def test_interpreted_on_numpy_arrays(shape: tuple[int, int]) -> None:
    arguments, wanted = spmv_arguments(*shape)
    interpret(SPMV, arguments)
    assert np.allclose(arguments["y"], wanted, rtol=1e-6)


def test_interpreted_on_torch_tensors_and_compiled_again_after_it() -> None:
    torch: Any = pytest.importorskip("torch")
    arguments, wanted = spmv_arguments(13, 17)
    given = {k: torch.from_numpy(v) if k != "rows" else v for k, v in arguments.items()}
    interpret(SPMV, given)
    assert np.allclose(given["y"].numpy(), wanted, rtol=1e-6)
    # In this process: the interpreter has put back what it replaced.
    assert compile_source(SPMV, "sm_90", apart=False).registers
    arguments["y"][:] = np.nan
    interpret(SPMV, arguments)
    assert np.allclose(arguments["y"], wanted, rtol=1e-6)


def test_a_number_has_the_type_that_it_is_declared_with() -> None:
    text = """import triton
import triton.language as tl


@triton.jit
def square(n, y):
    tl.store(y, n * n)


def grid(n):
    return (1, 1, 1)
"""
    y = np.zeros(1, "i8")
    wide = replace(
        SPMV,
        entry="square",
        text=text,
        arguments=(("n", "i64"), ("y", "*i64")),
        roles=("in0.dim0", "out.values"),
        aligned=(),
    )
    interpret(wide, {"n": 2**20, "y": y})
    assert y[0] == 2**40


def test_what_the_interpreter_refuses() -> None:
    with pytest.raises(NotInterpreted, match="places values in registers"):
        interpret(COPY, {})
    arguments, _ = spmv_arguments(4, 4)
    with pytest.raises(BadArgument, match="argument rows of kernel spmv is str, not i32"):
        interpret(SPMV, arguments | {"rows": "four"})
    with pytest.raises(BadArgument, match=r"argument y of kernel spmv is not given, not \*fp32"):
        interpret(SPMV, {k: v for k, v in arguments.items() if k != "y"})
    with pytest.raises(BadArgument, match="not contiguous"):
        interpret(SPMV, arguments | {"x": np.zeros(8, "f4")[::2]})
    bad = replace(SPMV, text=SPMV.text.replace("hi - lo", "hi - nothing"))
    with pytest.raises(InterpreterFailed, match="nothing"):
        interpret(bad, arguments)
