"""Runs the text of a fragment kernel on NumPy arrays: what it means, without layouts, lanes or a GPU.

Tensors are arrays of their logical shape; a block runs as one thread of control, blocks one after the other. The
functions around inline PTX are replaced by what their instructions do, by the independent model of ``instructions``.
Asynchronous copies land as late as the text allows (when it waits for them) or at once, as a test asks: a text that
reads too early or overwrites too early gives another answer in one of the two. Shared memory starts as NaN; a load
outside its array, or of a copy's bytes beyond ``size``, is an error.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from sparsecc.kernel import TileSource
from tests.unit.backends.triton import instructions

Any_ = npt.NDArray[Any]
DTYPES: dict[str, Any] = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
}  # fmt: skip
SPACE = 40
"""Bits of an address within one array."""


class Tensor(np.ndarray):
    """A block's value."""

    def __array_wrap__(self, array: Any_, context: Any = None, return_scalar: bool = False) -> Any:
        return array.view(Tensor)

    def to(self, dtype: Any, bitcast: bool = False) -> Any:
        return self.view(dtype) if bitcast else tensor(self.astype(dtype))

    def permute(self, order: list[int]) -> Any:
        return self.transpose(order)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key].view(Tensor)


def tensor(value: Any, dtype: Any = None) -> Any:
    return np.asarray(value, dtype=dtype).view(Tensor)


class Pointer:
    """Addresses of elements of arrays."""

    def __init__(self, address: Any, kind: Any) -> None:
        self.address, self.kind = address, np.dtype(kind)

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.address + np.asarray(offset, np.int64) * self.kind.itemsize, self.kind)

    def to(self, dtype: Any) -> Any:
        assert dtype is np.int64
        return tensor(self.address, np.int64)


class Block:
    """Memory, and the block that is running."""

    def __init__(self, late: bool, shared: int, waits: Mapping[str, int]) -> None:
        self.late, self.waits = late, waits
        self.arrays: list[Any_] = []
        self.shared: Any_ = np.full(shared, 0xFF, np.uint8)
        self.open: list[Callable[[], None]] = []
        self.groups: list[list[Callable[[], None]]] = []
        self.program: tuple[int, int, int] = (0, 0, 0)
        self.grid: tuple[int, int, int] = (1, 1, 1)

    def pointer(self, array: Any_) -> Pointer:
        self.arrays.append(array.reshape(-1).view(np.uint8))
        return Pointer(np.int64(len(self.arrays) << SPACE), array.dtype)

    def read(self, address: Any_, size: int) -> Any_:
        """Bytes [..., size] at addresses of memory."""
        out = np.zeros((*address.shape, size), np.uint8)
        number = address >> SPACE
        for which in np.unique(number):
            here = number == which
            at = address[here] - (int(which) << SPACE)
            array = self.arrays[int(which) - 1]
            assert at.min() >= 0 and at.max() + size <= array.size, "a load outside its array"
            out[here] = array[at[:, None] + np.arange(size)]
        return out

    def load(self, pointer: Pointer, mask: Any = True, other: Any = 0, **_: Any) -> Any:
        address, mask = np.broadcast_arrays(np.asarray(pointer.address), np.asarray(mask))
        out = np.full(address.shape, other, pointer.kind)
        if mask.any():
            raw = self.read(np.asarray(address)[mask], pointer.kind.itemsize)
            out[mask] = np.ascontiguousarray(raw).view(pointer.kind)[:, 0]
        return tensor(out)

    def store(self, pointer: Pointer, value: Any, mask: Any = True) -> None:
        value = np.asarray(value, pointer.kind)
        address, value, mask = np.broadcast_arrays(
            np.asarray(pointer.address), value, np.asarray(mask)
        )
        for at, v, m in zip(address.reshape(-1), value.reshape(-1), mask.reshape(-1), strict=True):
            if m:
                array = self.arrays[(int(at) >> SPACE) - 1].view(pointer.kind)
                index, rest = divmod(int(at) & ((1 << SPACE) - 1), pointer.kind.itemsize)
                assert rest == 0 and index < array.size, "a store outside its array"
                array[index] = v

    def atomic_add(self, pointer: Pointer, value: Any, **_: Any) -> Any:
        old = self.load(pointer)
        self.store(pointer, old + value)
        return old

    # What the functions around PTX do.
    def copy_16(self, target: Any, source: Any, size: Any) -> None:
        self.copy_16_if(1, target, source, size)

    def copy_16_if(self, wanted: Any, target: Any, source: Any, size: Any) -> None:
        w, t, s, z = (
            np.asarray(a).reshape(-1) for a in np.broadcast_arrays(wanted, target, source, size)
        )
        t, s, z = t[w != 0], s[w != 0], z[w != 0]
        assert np.isin(z, (0, 16)).all() and (t % 16 == 0).all()
        assert (s[z == 16] % 16 == 0).all(), (
            "a copy of 16 bytes from an address that is no multiple of 16"
        )
        data = np.zeros((t.size, 16), np.uint8)
        if (z == 16).any():
            data[z == 16] = self.read(s[z == 16], 16)

        def land() -> None:
            self.shared[t[:, None] + np.arange(16)] = data

        self.open.append(land) if self.late else land()

    def commit(self, lane: Any) -> None:
        self.groups.append(self.open)
        self.open = []

    def wait(self, name: str) -> Callable[[Any], None]:
        def wait_copies(lane: Any) -> None:
            while len(self.groups) > self.waits[name]:
                for land in self.groups.pop(0):
                    land()

        return wait_copies

    def words(self, address: Any, count: int) -> Any_:
        """32-bit words [..., count] of shared memory."""
        at = np.asarray(address)
        assert (at % (4 * count) == 0).all(), "a misaligned access to shared memory"
        return np.ascontiguousarray(self.shared[at[..., None] + np.arange(4 * count)]).view(
            np.int32
        )

    def load_16(self, address: Any) -> Any:
        return tensor(self.words(np.asarray(address)[..., 0], 4))

    def load_4(self, address: Any) -> Any:
        return tensor(self.words(address, 1)[..., 0])

    def clear_16(self, address: Any) -> None:
        self.shared[np.asarray(address)[..., :1] + np.arange(16)] = 0

    def scatter(self, entries: Any, base: Any) -> None:
        words, base = np.broadcast_arrays(np.asarray(entries).view(np.uint32), np.asarray(base))
        at = (words >> 16).astype(np.int64) + base
        self.shared[at] = (words & 0xFF).astype(np.uint8)
        self.shared[at + 1] = (words >> 8 & 0xFF).astype(np.uint8)

    def store_element(self, size: int) -> Callable[[Any, Any], None]:
        def store_element(address: Any, bits: Any) -> None:
            at, value = np.broadcast_arrays(np.asarray(address), np.asarray(bits))
            for byte in range(size):
                self.shared[at + byte] = (value >> 8 * byte & 0xFF).astype(np.uint8)

        return store_element

    def load_x(self, transposed: bool) -> Callable[[Any], Any]:
        """ldmatrix.x4: lane i of each eight names row i of a matrix of 8 rows of 16 bytes."""

        def load_x(address: Any) -> Any:
            rows = self.words(np.asarray(address)[..., 0], 4)  # [..., 32 rows, 4 words]
            halves = rows.view(np.int16).reshape(*rows.shape[:-2], 4, 8, 8)  # matrix, row, half
            if transposed:
                halves = np.swapaxes(halves, -1, -2)
            words = np.ascontiguousarray(halves).view(np.int32)  # matrix, row, pair
            lanes = np.moveaxis(words, -3, -1)  # row, pair, matrix
            return tensor(np.ascontiguousarray(lanes).reshape(*rows.shape[:-2], 32, 4))

        return load_x

    def multiply(self, dtype: str, selector: int) -> Callable[..., Any]:
        def multiply(acc: Any, a: Any, b: Any, meta: Any) -> Any:
            ra, rb = (np.ascontiguousarray(np.asarray(v, np.int32)).view(np.uint32) for v in (a, b))
            rm = np.ascontiguousarray(np.asarray(meta, np.int64) & 0xFFFFFFFF).astype(np.uint32)[
                ..., 0
            ]
            if dtype == "i8":
                assert selector == 0
                left = instructions.sparse_a_k64(ra, rm)
            else:
                left = instructions.sparse_a_k32(ra, rm, selector, dtype)
            d = instructions.accumulators(left @ instructions.dense_b(rb, dtype))
            return tensor((np.asarray(acc) + d).astype(np.asarray(acc).dtype))

        return multiply


class Allocation:
    def _keep_alive(self) -> None: ...


def _gluon(block: Block) -> Any:
    gl: Any = types.SimpleNamespace(**DTYPES)
    gl.constexpr = lambda value: value  # pyright: ignore[reportUnknownLambdaType]
    for name in ("DistributedLinearLayout", "BlockedLayout", "SliceLayout", "SwizzledSharedLayout"):
        setattr(gl, name, lambda *a, **k: None)  # pyright: ignore[reportUnknownLambdaType]
    gl.program_id = lambda axis: tensor(block.program[axis], np.int32)  # pyright: ignore
    gl.num_programs = lambda axis: tensor(block.grid[axis], np.int32)  # pyright: ignore
    gl.arange = lambda first, last, layout=None: tensor(np.arange(first, last, dtype=np.int32))  # pyright: ignore
    gl.full = lambda shape, value, kind, layout=None: tensor(np.full(shape, value, kind))  # pyright: ignore
    gl.set_auto_layout = gl.convert_layout = lambda value, layout: value  # pyright: ignore
    gl.static_range = range
    gl.cdiv = lambda a, b: -(-a // b)  # pyright: ignore
    gl.minimum = lambda a, b, propagate_nan=None: tensor(np.minimum(a, b))  # pyright: ignore
    gl.maximum = lambda a, b, propagate_nan=None: tensor(np.maximum(a, b))  # pyright: ignore
    gl.where = lambda c, a, b: tensor(_where(c, a, b))  # pyright: ignore
    gl.sum = lambda value, axis: tensor(np.sum(value, axis=axis, dtype=value.dtype))  # pyright: ignore
    for name in ("exp", "exp2", "log", "log2", "sin", "cos", "abs", "floor", "ceil"):
        setattr(gl, name, getattr(np, name))
    gl.sqrt_rn = np.sqrt
    gl.rsqrt = lambda v: 1 / np.sqrt(v)  # pyright: ignore
    gl.erf = np.vectorize(__import__("math").erf, otypes=[np.float32])
    gl.thread_barrier = lambda: None
    gl.allocate_shared_memory = lambda *a: Allocation()  # pyright: ignore
    gl.load, gl.store, gl.atomic_add = block.load, block.store, block.atomic_add
    return gl


def _where(condition: Any, a: Any, b: Any) -> Any_:
    """Python numbers take the other side's type, or are 32-bit integers."""
    if isinstance(a, int) and isinstance(b, int):
        a, b = np.int32(a), np.int32(b)
    return np.where(condition, a, b)


def run(
    source: TileSource, arrays: Mapping[str, Any_], integers: Mapping[str, int], late: bool = True
) -> None:
    """Run all blocks of a launch; arrays by argument name, changed in place; work arrays are made here and kept."""
    waits = {
        name: int(groups)
        for name, groups in re.findall(
            r'def (\w+)\(lane\):[^@]*?"cp.async.wait_group (\d+);', source.text
        )
    }
    words = int(re.findall(r"allocate_shared_memory\(gl.int32, \[(\d+), 1, 128\]", source.text)[0])
    block = Block(late, words * 512, waits)
    kind = re.findall(r"row\.col\.\w+\.(\w+)", source.text)[0]
    dtype: str = {"s8": "i8"}.get(str(kind), str(kind))
    module = _module(source.text, _gluon(block))
    module["range"] = lambda *bounds: (tensor(i, np.int32) for i in range(*bounds))  # pyright: ignore
    for name in waits:
        module[name] = block.wait(name)
    bits = re.findall(r"The low (\d+) bits", source.text)
    replaced: dict[str, Any] = {
        "shared_base": lambda scalar: tensor(0, np.int32),  # pyright: ignore[reportUnknownLambdaType]
        "fence": lambda scalar: None,  # pyright: ignore[reportUnknownLambdaType]
        "sync_warp": lambda lane: None,  # pyright: ignore[reportUnknownLambdaType]
        "load_x": block.load_x(".trans" in source.text),
        "store_element": block.store_element(int(bits[0]) // 8 if bits else 0),
        "multiply0": block.multiply(dtype, 0),
        "multiply1": block.multiply(dtype, 1),
    }
    for name in ("copy_16", "copy_16_if", "commit", "load_16", "load_4", "clear_16", "scatter"):
        replaced[name] = getattr(block, name)
    for name, function in replaced.items():
        if name in module:
            module[name] = function
    left = re.findall(r"(\w+)\(.*\):\n(?:    .*\n)*?.*inline_asm_elementwise", source.text)
    assert set(left) <= {*replaced, *waits}, f"instructions without a model: {left}"
    block.grid = module["grid"](**integers)
    values: dict[str, Any] = {name: block.pointer(array) for name, array in arrays.items()}
    for name, kind in source.arguments:
        if name in integers:
            values[name] = tensor(integers[name], np.int32 if kind == "i32" else np.int64)
    with np.errstate(all="ignore"):
        for z in range(block.grid[2]):
            for y in range(block.grid[1]):
                for x in reversed(range(block.grid[0])):
                    block.program = (x, y, z)
                    block.shared[:] = 0xFF
                    block.open, block.groups = [], []
                    module[source.entry](*(values[name] for name, _ in source.arguments))
                    assert not block.open and not any(block.groups), "copies are left under way"


def work(source: TileSource, integers: Mapping[str, int]) -> dict[str, int]:
    """The bytes of a launch's work arrays."""
    module = _module(source.text, _gluon(Block(True, 0, {})))
    return module["work"](**integers) if "work" in module else {}


def _module(text: str, gl: Any) -> dict[str, Any]:
    """The text's names, with stand-ins for what it imports."""
    gluon: Any = types.ModuleType("triton.experimental.gluon")
    gluon.jit = lambda function: function  # pyright: ignore[reportUnknownLambdaType]
    gluon.language = gl
    language: Any = types.ModuleType("triton.language")
    language.PropagateNan = types.SimpleNamespace(ALL=None)
    triton: Any = types.ModuleType("triton")
    triton.language = language
    stand_ins = {
        "triton": triton,
        "triton.language": language,
        "triton.experimental": types.ModuleType("triton.experimental"),
        "triton.experimental.gluon": gluon,
        "triton.experimental.gluon.language": gl,
    }
    kept = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        module: dict[str, Any] = {}
        exec(compile(text, "kernel.py", "exec"), module)
        return module
    finally:
        for name, value in kept.items():
            if value is None:
                del sys.modules[name]
            else:
                sys.modules[name] = value
