"""NVIDIA's driver through ctypes: loading machine code, launching it, and nothing that needs a C compiler or Triton.

Contexts are the devices' primary ones, those of torch and of the CUDA runtime.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sparsecc.diagnostics import LimitError, TargetError

_NAMES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")
_MAX_SHARED, _COMPUTE_MAJOR, _COMPUTE_MINOR, _PROCESSORS, _L2_BYTES = 97, 75, 76, 16, 38
_DYNAMIC_SHARED, _PREFER_SHARED = 8, 1
_OUT_OF_MEMORY, _NO_BINARY, _NO_DEVICE = 2, 209, 100


class GpuAbsent(TargetError):
    text = "there is no GPU here: {problem}"
    help_text = (
        "name a target (sm_80, sm_90, sm_100) to compile for it without one, run with interpret=True, or use "
        "target='cpu'"
    )


class CudaFailed(TargetError):
    text = "{action} failed: {name}, {what}"
    help_text = "run with CUDA_LAUNCH_BLOCKING=1 to see which launch it was, and look at nvidia-smi"


class GpuOutOfMemory(LimitError):
    text = "the GPU has not enough memory for {what}"
    help_text = "free tensors (torch.cuda.empty_cache()), or split the operands"


@dataclass(frozen=True)
class Device:
    """A GPU that is present."""

    number: int
    name: str
    capability: tuple[int, int]
    processors: int
    shared: int
    """The most bytes of shared memory of one block."""
    cache: int
    """Bytes of its last-level cache."""


class Cuda:
    """The driver. ``library`` is what ctypes loads; tests give another."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.contexts: dict[int, ctypes.c_void_p] = {}
        self.check("starting the driver", library.cuInit(0))

    def check(self, action: str, code: int) -> None:
        """Raise what an error code of the driver means."""
        if code == 0:
            return
        if code == _OUT_OF_MEMORY:
            raise GpuOutOfMemory(what=action)
        text = self.words("cuGetErrorString", code)
        if code == _NO_DEVICE:
            raise GpuAbsent(problem=text)
        raise CudaFailed(action=action, name=self.words("cuGetErrorName", code), what=text)

    def words(self, function: str, code: int) -> str:
        found = ctypes.c_char_p()
        getattr(self.library, function)(code, ctypes.byref(found))
        return (found.value or b"").decode() or f"error {code}"

    def count(self) -> int:
        number = ctypes.c_int()
        self.check("counting GPUs", self.library.cuDeviceGetCount(ctypes.byref(number)))
        return number.value

    def device(self, number: int) -> Device:
        """What a GPU is."""
        name = ctypes.create_string_buffer(128)
        self.check("asking for a GPU's name", self.library.cuDeviceGetName(name, 128, number))

        def attribute(which: int) -> int:
            value = ctypes.c_int()
            self.check(
                "asking what a GPU is",
                self.library.cuDeviceGetAttribute(ctypes.byref(value), which, number),
            )
            return value.value

        return Device(
            number,
            name.value.decode(),
            (attribute(_COMPUTE_MAJOR), attribute(_COMPUTE_MINOR)),
            attribute(_PROCESSORS),
            attribute(_MAX_SHARED),
            attribute(_L2_BYTES),
        )

    def enter(self, number: int) -> None:
        """Make a device's primary context this thread's."""
        context = self.contexts.get(number)
        if context is None:
            context = self.contexts[number] = ctypes.c_void_p()
            self.check(
                f"opening GPU {number}",
                self.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), number),
            )
        self.check(f"entering GPU {number}", self.library.cuCtxSetCurrent(context))

    def load(self, code: bytes, symbol: str, shared: int, device: int) -> int:
        """The function of a symbol in a cubin or in PTX text; the code stays loaded."""
        self.enter(device)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(
            f"loading kernel {symbol}", self.library.cuModuleLoadData(ctypes.byref(module), code)
        )
        self.check(
            f"finding kernel {symbol}",
            self.library.cuModuleGetFunction(ctypes.byref(function), module, symbol.encode()),
        )
        if shared > 48 * 1024:
            self.check(
                f"giving kernel {symbol} {shared} bytes of shared memory",
                self.library.cuFuncSetAttribute(function, _DYNAMIC_SHARED, shared)
                or self.library.cuFuncSetCacheConfig(function, _PREFER_SHARED),
            )
        return function.value or 0

    def tensor_map(
        self,
        address: int,
        shape: Sequence[int],
        strides: Sequence[int],
        box: Sequence[int],
        element: tuple[int, int, int],
    ) -> bytes:
        """A tensor map of ``shape`` elements; ``strides`` in elements; ``element``: bytes, type, swizzle."""
        size, kind, swizzle = element
        rank = len(shape)
        memory = ctypes.create_string_buffer(256)
        start = -(-ctypes.addressof(memory) // 128) * 128
        # The driver counts dimensions from the inner one, and the inner one has no stride.
        extents = (ctypes.c_uint64 * rank)(*reversed(shape))
        steps = (ctypes.c_uint64 * rank)(*[s * size for s in reversed(strides[:-1])], 0)
        boxes = (ctypes.c_uint32 * rank)(*reversed(box))
        ones = (ctypes.c_uint32 * rank)(*[1] * rank)
        code = self.library.cuTensorMapEncodeTiled(
            ctypes.c_void_p(start), kind, rank, ctypes.c_void_p(address), extents, steps, boxes, ones,
            0, swizzle, 2, 0,  # no interleaving; L2 fetches of 128 bytes; zeros beyond the ends
        )  # fmt: skip
        self.check(f"describing a tensor of shape {tuple(shape)} for bulk copies", code)
        return ctypes.string_at(start, 128)

    def synchronize(self) -> None:
        """Wait for all work of this thread's context."""
        self.check("waiting for the GPU", self.library.cuCtxSynchronize())


@cache
def cuda() -> Cuda:
    """The driver of this machine. Raises GpuAbsent."""
    problem = "the driver library libcuda is not installed"
    for name in _NAMES:
        try:
            library: Any = ctypes.CDLL(name)
        except OSError:
            continue
        found = Cuda(library)
        if found.count() == 0:
            raise GpuAbsent(problem="the driver finds none (CUDA_VISIBLE_DEVICES?)")
        return found
    raise GpuAbsent(problem=problem)
