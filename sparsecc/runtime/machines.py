"""Where GPU kernels run: a GPU through torch's memory and streams, or Triton's interpreter on this processor."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from sparsecc.diagnostics import OperandError, TargetError
from sparsecc.elements import NUMPY
from sparsecc.kernel import TileSource
from sparsecc.runtime import tile_cache
from sparsecc.targets import device_target, runs_as

TORCH = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "c128": "complex128", "c64": "complex64",
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64",
}  # fmt: skip
"""torch's names of element types."""
OURS = {f"torch.{theirs}": ours for ours, theirs in TORCH.items()}


class TorchMissing(TargetError):
    text = "running on a GPU takes torch, which is not installed"
    help_text = "pip install torch, or run with interpret=True"


class TorchWithoutCuda(TargetError):
    text = "this torch ({version}) was built without CUDA"
    help_text = "install a build of torch for CUDA"


class WrongDevice(OperandError):
    text = "operand {name!r} is on {found}, the kernel runs on {wanted}"
    help_text = "move it once: {name}.to({wanted!r})"


def torch_module() -> Any:
    """torch, which has no complete types. Raises TorchMissing."""
    try:
        return import_module("torch")
    except ImportError:
        raise TorchMissing() from None


def is_torch(value: object) -> bool:
    """Whether it is a torch tensor; torch is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's element type of ours."""
    return NUMPY[name]


RESERVE = 1 << 24
"""Bytes of zeros that are kept for counters of launches in graphs; one launch takes a kilobyte or so."""


class GpuMachine:
    """A GPU; memory and the current stream are torch's."""

    interprets = False
    reserve: Any = None
    taken = 0
    """Bytes of the reserve that graphs have."""
    reserves: tuple[Any, ...] = ()
    """All of them: graphs keep no reference to what they write to."""

    def __init__(self, number: int) -> None:
        from sparsecc.backends.triton.cuda import cuda

        self.driver = cuda()
        self.torch = torch_module()
        if not hasattr(self.torch._C, "_cuda_getCurrentRawStream"):
            raise TorchWithoutCuda(version=self.torch.__version__)
        self.torch.cuda.init()
        self.raw_stream: Any = self.torch._C._cuda_getCurrentRawStream
        self.current: Any = self.torch.cuda.current_device
        self.device = self.driver.device(number)
        self.number = number
        self.place = f"cuda:{number}"

    def check(self, name: str, tensor: Any) -> None:
        """Raise WrongDevice for a tensor that is elsewhere."""
        if not tensor.is_cuda or tensor.get_device() != self.number:
            raise WrongDevice(name=name, found=str(tensor.device), wanted=self.place)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        return self.torch.empty(shape, dtype=getattr(self.torch, TORCH[dtype]), device=self.place)

    def full(self, shape: tuple[int, ...], dtype: str, value: Any) -> Any:
        kind = getattr(self.torch, TORCH[dtype])
        return self.torch.full(shape, value, dtype=kind, device=self.place)

    def copied(self, array: Any) -> Any:
        return array.clone()

    def upload(self, array: Any) -> Any:
        """A NumPy array on the device; it waits for the copy."""
        dtype = next((n for n in TORCH if numpy_dtype(n) == array.dtype), None)
        plain = np.require(array, requirements=["C", "W"])
        if dtype == "bf16":
            host = self.torch.from_numpy(plain.view(np.int16)).view(self.torch.bfloat16)
        else:
            host = self.torch.from_numpy(plain)
        return host.to(self.place)

    def download(self, array: Any) -> Any:
        """An array of the device as NumPy's."""
        if str(array.dtype) == "torch.bfloat16":
            return array.view(self.torch.int16).cpu().numpy().view(numpy_dtype("bf16"))
        return array.cpu().numpy()

    def launcher(self, source: TileSource, target: str) -> Any:
        """What launches a kernel here: called with its argument words."""
        from sparsecc.backends.triton.launch import Launcher

        code = tile_cache.compiled(source, target)
        how = runs_as(target, self.device.name, self.device.capability)
        text = code.ptx.encode() + b"\0" if how == "ptx" else None
        made = _OnStream(Launcher(code, self.driver, self.number, text), self)
        if how == "ptx":
            made.note = f"code for {target}: the driver translates its PTX for {self.device.name}"
        return made

    def capturing(self) -> bool:
        """Whether the current stream is being captured into a graph."""
        return bool(self.torch.cuda.is_current_stream_capturing())

    def zeros(self, size: int) -> Any:
        """Bytes that are zero. Within a capture they come from a reserve that was zeroed before, never to be given out
        again, so that the graph need not zero them. Calls outside of captures see to it that half a reserve is left;
        when it is used up, or there was no call before the capture, the zeroing is part of the graph."""
        if not self.capturing():
            if self.reserve is None or 2 * self.taken > RESERVE:
                self.reserve, self.taken = self.full((RESERVE,), "u8", 0), 0
                self.reserves = (*self.reserves, self.reserve)
            return self.full((size,), "u8", 0)
        start, end = self.taken, self.taken + -(-size // 16) * 16
        if self.reserve is None or end > RESERVE:
            return self.full((size,), "u8", 0)
        self.taken = end
        return self.reserve[start : start + size]

    def stream(self) -> int:
        return self.raw_stream(self.number)

    def synchronize(self) -> None:
        self.torch.cuda.synchronize(self.number)


class _OnStream:
    """A launcher on the current stream of its device."""

    def __init__(self, launcher: Any, machine: GpuMachine) -> None:
        self.launcher, self.machine = launcher, machine
        self.work = launcher.work
        self.note = ""

    def __call__(self, words: list[Any]) -> None:
        machine = self.machine
        if machine.current() == machine.number:
            self.launcher(words, machine.raw_stream(machine.number))
        else:
            with machine.torch.cuda.device(machine.number):
                self.launcher(words, machine.raw_stream(machine.number))


class InterpreterMachine:
    """Triton's interpreter, on NumPy arrays and torch tensors of this processor."""

    interprets = True
    place = "cpu"
    number = -1

    def check(self, name: str, tensor: Any) -> None:
        if tensor.device.type != "cpu":
            raise WrongDevice(name=name, found=str(tensor.device), wanted="cpu")

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        return np.empty(shape, numpy_dtype(dtype))

    def full(self, shape: tuple[int, ...], dtype: str, value: Any) -> Any:
        return np.full(shape, value, numpy_dtype(dtype))

    def zeros(self, size: int) -> Any:
        """Bytes that are zero."""
        return self.full((size,), "u8", 0)

    def copied(self, array: Any) -> Any:
        return array.clone() if is_torch(array) else array.copy()

    def upload(self, array: Any) -> Any:
        return np.require(array, requirements=["C", "W"])

    def download(self, array: Any) -> Any:
        return array.numpy() if is_torch(array) else array

    def launcher(self, source: TileSource, target: str) -> Any:
        return _Interpreted(source)

    def capturing(self) -> bool:
        return False

    def stream(self) -> int:
        return 0

    def synchronize(self) -> None:
        pass


class _Interpreted:
    """A kernel in the interpreter."""

    note = ""

    def __init__(self, source: TileSource) -> None:
        from sparsecc.backends.triton.interpret import NotInterpreted
        from sparsecc.backends.triton.launch import Grids

        if source.gluon:
            raise NotInterpreted(kernel=source.entry)
        self.source, self.grids = source, Grids(source)

    def work(self, words: list[Any]) -> dict[str, int]:
        return self.grids.of(tuple(words[n] for n in self.grids.places))[1]

    def __call__(self, words: list[Any]) -> None:
        from sparsecc.backends.triton.load import interpret

        self.grids.of(tuple(words[n] for n in self.grids.places))  # refuses what a GPU would
        names = [name for name, _ in self.source.arguments]
        interpret(self.source, dict(zip(names, words, strict=True)))


Machine = GpuMachine | InterpreterMachine


@cache
def gpu(number: int) -> GpuMachine:
    """A GPU of this machine. Raises GpuAbsent, TorchMissing, TorchWithoutCuda."""
    return GpuMachine(number)


@cache
def interpreter() -> InterpreterMachine:
    return InterpreterMachine()


def current_gpu() -> int:
    """The number of torch's current GPU, or of the first. Raises GpuAbsent."""
    from sparsecc.backends.triton.cuda import cuda

    cuda()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return int(torch.cuda.current_device())
    return 0


def interpreting() -> bool:
    """Whether the environment asks for the interpreter."""
    return os.environ.get("SPARSECC_INTERPRET", "") not in ("", "0")


def present_target() -> str:
    """The target of the GPU that is here; the oldest where kernels are interpreted. Raises GpuAbsent, TargetRefused."""
    if interpreting():
        return "sm_80"
    from sparsecc.backends.triton.cuda import cuda

    return device_target(cuda().device(current_gpu()).capability)
