"""What a launch hands to the driver: words where the machine code looks for them, tensor maps, grids."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import pytest

from sparsecc.backends.triton import cuda as cuda_module
from sparsecc.backends.triton.cuda import Cuda, GpuAbsent, cuda
from sparsecc.backends.triton.launch import Grids, Launcher, NoTensorMap, TooLargeArgument
from sparsecc.backends.triton.load import compile_source
from sparsecc.backends.triton.text_module import launch_functions
from sparsecc.diagnostics import InternalError
from tests.unit.backends.triton.kernels import COPY, SPMV


class Recorder:
    """A driver that only remembers."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.bytes: list[list[bytes]] = []
        self.sizes: tuple[int, ...] = ()

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> int:
            self.calls.append((name, args))
            if name == "cuDeviceGetAttribute":
                args[0]._obj.value = 227 * 1024
            if name == "cuTensorMapEncodeTiled":
                ctypes.memmove(args[0].value, b"\x01a map" * 21, 126)
            if name == "cuLaunchKernel":
                places = args[-2]
                found = [ctypes.string_at(places[n], size) for n, size in enumerate(self.sizes)]
                self.bytes.append(found)
            return 0

        return call

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [args for called, args in self.calls if called == name]


def launcher(
    source: Any = SPMV, target: str = "sm_90", **changes: Any
) -> tuple[Launcher, Recorder]:
    recorder = Recorder()
    compiled = replace(compile_source(source, target), **changes)
    recorder.sizes = compiled.parameters
    return Launcher(compiled, Cuda(recorder), 0), recorder


def test_words_are_where_the_machine_code_looks_for_them() -> None:
    launch, recorder = launcher()
    launch([16, 32, 48, 64, 80, 9], stream=5)
    numbers = [int.from_bytes(word, "little") for word in recorder.bytes[0]]
    assert numbers == [16, 32, 48, 64, 80, 9, 0, 0]  # the last two are the compiler's
    (arguments,) = recorder.of("cuLaunchKernel")
    assert arguments[1:8] == (3, 1, 1, 32, 1, 1, 0)
    assert arguments[8].value == 5


def test_code_is_loaded_once_and_shared_memory_asked_for() -> None:
    launch, recorder = launcher(shared=100_000)
    for _ in range(3):
        launch([16, 32, 48, 64, 80, 9], stream=0)
    assert len(recorder.of("cuModuleLoadData")) == 1
    assert [args[1:] for args in recorder.of("cuFuncSetAttribute")] == [(8, 100_000)]
    assert len(recorder.of("cuLaunchKernel")) == 3


def test_tensor_maps() -> None:
    launch, recorder = launcher(COPY)
    word = (4096, (100, 64), (72, 1))
    for _ in range(2):
        launch([word, 16, 100], stream=0)
    (arguments,) = recorder.of("cuTensorMapEncodeTiled")  # kept for the second launch
    place, kind, rank, address, extents, steps, box, ones, *rest = arguments
    assert place.value % 128 == 0 and address.value == 4096
    assert (kind, rank, list(extents), list(steps), list(box), list(ones), rest) == (
        6, 2, [64, 100], [144, 0], [64, 64], [1, 1], [0, 3, 2, 0],
    )  # fmt: skip
    words = recorder.bytes[0]
    assert words[0].startswith(b"\x01a map")
    assert [int.from_bytes(word, "little") for word in words[1:]] == [100, 64, 72, 1, 16, 100, 0, 0]
    launch([(8192, (100, 64), (72, 1)), 16, 100], stream=0)
    assert len(recorder.of("cuTensorMapEncodeTiled")) == 2


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ((4104, (100, 64), (72, 1)), "begins at 0x1008"),
        ((4096, (100, 64), (70, 1)), "elements apart"),
        ((4096, (100, 64), (64, 2)), "last stride is 2"),
        ((4096, (100, 0), (64, 1)), "its shape is"),
    ],
)
def test_tensors_that_bulk_copies_can_not_read(word: Any, text: str) -> None:
    launch, recorder = launcher(COPY)
    with pytest.raises(NoTensorMap, match=f"in0.values of kernel copy.*{text}"):
        launch([word, 16, 100], stream=0)
    assert not recorder.of("cuLaunchKernel")


def test_a_number_that_does_not_fit() -> None:
    launch, _ = launcher()
    with pytest.raises(TooLargeArgument, match="kernel spmv does not fit"):
        launch([16, 32, 48, 64, 80, 2**31], stream=0)


def test_code_that_the_runtime_can_not_launch() -> None:
    with pytest.raises(InternalError, match="scratch memory"):
        launcher(scratch=128)
    with pytest.raises(InternalError, match="parameter 5 of kernel spmv has 8 bytes"):
        launcher(parameters=(8, 8, 8, 8, 8, 8, 8, 8))


def test_the_grid_is_read_without_triton() -> None:
    text = """import numpy as np
import triton
from triton.experimental.gluon import language as gl

LAYOUT = gl.BlockedLayout([1], [32], [4], [0])
DERIVED = (LAYOUT, 1)
ROWS = 16


def up(n):
    return -(-n // ROWS)


@triton.jit
def k(x, n):
    pass


def grid(n):
    return (up(n), triton.cdiv(n, 32), triton.next_power_of_2(n))


def work(n):
    return {"partial": int(np.prod(grid(n))) * 4}
"""
    source = replace(SPMV, text=text, arguments=(("x", "*fp32"), ("n", "i32")))
    grid, work = launch_functions(source)
    assert grid(n=17) == (2, 1, 32) and work is not None
    assert Grids(source).of((33,)) == ((3, 2, 64), {"partial": 3 * 2 * 64 * 4})
    with pytest.raises(InternalError, match="does not define 'grid'"):
        launch_functions(replace(source, text=text.replace("def grid", "def other")))


def test_no_driver_and_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda.cache_clear()
    monkeypatch.setattr(cuda_module, "_NAMES", ("libnothing.so",))
    with pytest.raises(GpuAbsent, match="libcuda is not installed.*\n.*interpret=True"):
        cuda()

    class Empty(Recorder):
        def cuInit(self, _flags: int) -> int:
            return 100

    with pytest.raises(GpuAbsent, match="error 100"):
        Cuda(Empty())
