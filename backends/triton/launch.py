"""Launching machine code: argument words packed once, one call of the driver, nothing allocated.

A launch takes a few microseconds and can be captured in a CUDA graph. The first one of a kernel on a device loads its
code; do that before capturing.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from threading import Lock
from typing import Any

from sparsecc.backends.triton.cuda import Cuda
from sparsecc.backends.triton.text_module import launch_functions
from sparsecc.diagnostics import InternalError, LimitError, OperandError
from sparsecc.kernel import GRID, LARGEST, Compiled, TensorMap, TileSource

Map = tuple[int, tuple[int, ...], tuple[int, ...]]
"""A tensor for bulk copies: address, extents, strides in elements."""
Word = int | float | Map

_CODES = {"i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "fp32": "f", "fp64": "d"}
_MAPS = 64
"""Tensor maps that a launcher keeps."""


class Misaligned(OperandError):
    text = "{argument} of kernel {kernel} is {value}, not a multiple of 16{unit}, which its code relies on"
    help_text = "make the operand contiguous in memory of its own (.clone()), or compile for one that is not aligned"


class TooLargeArgument(LimitError):
    text = "an argument of kernel {kernel} does not fit its type: {problem}"
    help_text = "split the operand: the kernel counts with 32 bits"


class TooLargeGrid(LimitError):
    text = "kernel {kernel} would have {grid} programs: a GPU runs {limit} along the axes of a grid at most"
    help_text = (
        "split the operands, or choose another schedule (k.autotune(), or compile(schedule=...))"
    )


class NoTensorMap(OperandError):
    text = "{argument} of kernel {kernel} can't be read by bulk copies: {problem}"
    help_text = "lay its rows out in multiples of 16 bytes, at an address that is one (.contiguous(), .clone())"


class SharedMemoryMissing(LimitError):
    text = "kernel {kernel} needs {wanted} bytes of shared memory, the GPU gives a block {found}"
    help_text = "choose another schedule (k.autotune(), or compile(schedule=...))"


class Grids:
    """The number of programs, and the bytes of work memory, from the integer arguments."""

    def __init__(self, source: TileSource) -> None:
        self.entry = source.entry
        self.narrow = [name for name, kind in source.arguments if kind == "i32"]
        self.names = [name for name, kind in source.arguments if kind in ("i32", "i64")]
        self.places = [n for n, (_, kind) in enumerate(source.arguments) if kind in ("i32", "i64")]
        self.grid, self.work = launch_functions(source)
        self.known: dict[tuple[int, ...], tuple[tuple[int, int, int], dict[str, int]]] = {}

    def of(self, numbers: tuple[int, ...]) -> tuple[tuple[int, int, int], dict[str, int]]:
        found = self.known.get(numbers)
        if found is None:
            named = dict(zip(self.names, numbers, strict=True))
            for name in self.narrow:
                if named[name] > LARGEST:
                    problem = f"{name} is {named[name]}, at most {LARGEST}"
                    raise TooLargeArgument(kernel=self.entry, problem=problem)
            x, y, z, *_ = (*map(int, self.grid(**named)), 1, 1)
            if any(n > most for n, most in zip((x, y, z), GRID, strict=True)):
                raise TooLargeGrid(kernel=self.entry, grid=(x, y, z), limit=GRID)
            work = {} if self.work is None else {k: int(v) for k, v in self.work(**named).items()}
            if len(self.known) > 256:
                self.known.clear()
            found = self.known[numbers] = ((x, y, z), work)
        return found


class Launcher:
    """A kernel on one device; call it with its argument words in order and a stream."""

    def __init__(
        self, compiled: Compiled, driver: Cuda, device: int, code: bytes | None = None
    ) -> None:
        source = compiled.source
        if compiled.scratch or compiled.programs != 1:
            raise InternalError(f"kernel {source.entry} asks for scratch memory or a cluster")
        most = driver.device(device).shared
        if compiled.shared > most:
            raise SharedMemoryMissing(kernel=source.entry, wanted=compiled.shared, found=most)
        self.compiled, self.driver, self.device = compiled, driver, device
        self.grids = Grids(source)
        self.function = driver.load(
            compiled.cubin if code is None else code, compiled.symbol, compiled.shared, device
        )
        self.lock = Lock()
        names = [name for name, _ in source.arguments]
        self.aligned = [names.index(name) for name in source.aligned]
        self.maps = _numbered_maps(compiled)
        self.kept: dict[tuple[int, Map], bytes] = {}
        self.lay_out()

    def lay_out(self) -> None:
        """Where each parameter is in the buffer that launches read."""
        sizes = self.compiled.parameters
        offsets: list[int] = []
        end = 0
        for size in sizes:
            align = 64 if size >= 128 else size
            end = -(-end // align) * align
            offsets.append(end)
            end += size
        self.memory = ctypes.create_string_buffer(end + 256)
        base = -(-ctypes.addressof(self.memory) // 128) * 128
        self.start = base - ctypes.addressof(self.memory)
        self.parameters = (ctypes.c_void_p * len(sizes))(*[base + offset for offset in offsets])
        codes, at, used = ["<"], 0, 0
        for code in _codes(self.compiled.source):
            codes.append(f"{offsets[used] - at}x{code}")
            at = offsets[used] + struct.calcsize(f"<{code}")
            if struct.calcsize(f"<{code}") != sizes[used]:
                raise InternalError(
                    f"parameter {used} of kernel {self.compiled.symbol} has {sizes[used]} bytes, its type says {code}"
                )
            used += 1
        self.words = struct.Struct("".join(codes))

    def __call__(self, arguments: Sequence[Word], stream: int) -> None:
        bits = 0
        for n in self.aligned:
            value = arguments[n]
            bits |= value if type(value) is int else value[0] if type(value) is tuple else 0
        if bits & 15:
            self.misaligned(arguments)
        grid, _ = self.grids.of(tuple([arguments[n] for n in self.grids.places]))  # type: ignore[misc]
        if 0 in grid:
            return
        words = arguments if not self.maps else self.described(arguments)
        compiled = self.compiled
        with self.lock:
            try:
                self.words.pack_into(self.memory, self.start, *words)
            except struct.error as error:
                raise TooLargeArgument(kernel=compiled.symbol, problem=error) from None
            code = self.driver.library.cuLaunchKernel(
                ctypes.c_void_p(self.function), *grid, compiled.threads, 1, 1, compiled.shared,
                ctypes.c_void_p(stream), self.parameters, None,
            )  # fmt: skip
        if code:
            self.driver.check(f"launching kernel {compiled.symbol}", code)

    def work(self, arguments: Sequence[Word]) -> dict[str, int]:
        """Bytes of each work memory of a launch."""
        return self.grids.of(tuple([arguments[n] for n in self.grids.places]))[1]  # type: ignore[misc]

    def misaligned(self, arguments: Sequence[Word]) -> None:
        for n in self.aligned:
            name, kind = self.compiled.source.arguments[n]
            word = arguments[n]
            value = word[0] if isinstance(word, tuple) else word
            if isinstance(value, int) and value % 16:
                raise Misaligned(
                    argument=f"{name} ({self.compiled.source.roles[n]})",
                    kernel=self.compiled.symbol,
                    value=hex(value) if kind.startswith(("*", "tensordesc")) else value,
                    unit=" bytes" if kind.startswith(("*", "tensordesc")) else "",
                )

    def described(self, arguments: Sequence[Word]) -> list[Any]:
        """Argument words with tensor maps in the place of tensors: the map, its extents, its strides."""
        words: list[Any] = []
        for n, word in enumerate(arguments):
            if not isinstance(word, tuple):
                words.append(word)
                continue
            made = self.kept.get((n, word))
            if made is None:
                if len(self.kept) >= _MAPS:
                    self.kept.clear()
                made = self.kept[n, word] = self.encode(n, word)
            words += [made, *word[1], *word[2]]
        return words

    def encode(self, n: int, word: Map) -> bytes:
        address, shape, strides = word
        found = self.maps[n]
        size = found.element_bytes
        problem = ""
        if strides[-1] != 1:
            problem = f"its last stride is {strides[-1]}"
        elif address % 16 or any(s * size % 16 for s in strides[:-1]):
            problem = f"it begins at {address:#x} and its rows are {strides[:-1]} elements apart"
        elif not all(shape):
            problem = f"its shape is {shape}"
        if problem:
            raise NoTensorMap(
                argument=self.compiled.source.roles[n], kernel=self.compiled.symbol, problem=problem
            )
        element = (size, found.element_type, found.swizzle)
        return self.driver.tensor_map(address, shape, strides, found.block, element)


def _numbered_maps(compiled: Compiled) -> dict[int, TensorMap]:
    kinds = [kind for _, kind in compiled.source.arguments]
    places = [n for n, kind in enumerate(kinds) if kind.startswith("tensordesc")]
    return dict(zip(places, compiled.tensor_maps, strict=True))


def _codes(source: TileSource) -> list[str]:
    """The words of the arguments as ``struct`` spells them; a tensor map is followed by extents and strides."""
    codes: list[str] = []
    for _, kind in source.arguments:
        if kind.startswith("tensordesc"):
            rank = kind.count(",") + 1
            codes += ["128s", *["i"] * rank, *["q"] * rank]
        else:
            codes.append("Q" if kind.startswith("*") else _CODES[kind])
    return codes
