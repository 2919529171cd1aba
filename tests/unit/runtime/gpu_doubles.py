"""Stand-ins for a GPU: a driver whose launches run in Triton's interpreter from the very words that were packed for it,
and programs of kernels that are written by hand."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch as torch_module

from sparsecc.backends.triton.cuda import Cuda
from sparsecc.backends.triton.interpret import interpret
from sparsecc.formats import parse_format
from sparsecc.kernel import Launch, Operand, Plan, TileLaunch, TileSource
from sparsecc.request import OperandSpec, Request
from sparsecc.runtime.machines import GpuMachine
from sparsecc.runtime.tile_kernel import TileKernel

torch: Any = torch_module
_CTYPES = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "fp32": ctypes.c_float}


@dataclass
class Library:
    """libcuda, as far as the runtime calls it."""

    sources: dict[str, TileSource] = field(default_factory=dict[str, TileSource])
    launches: list[tuple[str, tuple[int, ...], int]] = field(
        default_factory=list[tuple[str, tuple[int, ...], int]]
    )
    """Symbol, grid and stream of each launch."""
    symbols: list[str] = field(default_factory=list[str])
    loaded: list[bytes] = field(default_factory=list[bytes])
    capability: tuple[int, int] = (9, 0)
    devices: int = 1
    shared: int = 227 * 1024
    fails: dict[str, int] = field(default_factory=dict[str, int])

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*args: Any) -> int:
            return self.fails.get(name) or getattr(self, f"do_{name}", _nothing)(*args)

        return call

    def do_cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.devices
        return 0

    def do_cuDeviceGetName(self, buffer: Any, _size: int, _number: int) -> int:
        buffer.value = b"a GPU of the tests"
        return 0

    def do_cuDeviceGetAttribute(self, value: Any, which: int, _number: int) -> int:
        known = {
            75: self.capability[0],
            76: self.capability[1],
            97: self.shared,
            16: 132,
            38: 1 << 20,
        }
        value._obj.value = known[which]
        return 0

    def do_cuModuleLoadData(self, module: Any, code: bytes) -> int:
        self.loaded.append(code)
        module._obj.value = len(self.loaded)
        return 0

    def do_cuModuleGetFunction(self, function: Any, _module: Any, symbol: bytes) -> int:
        self.symbols.append(symbol.decode())
        function._obj.value = len(self.symbols)
        return 0

    def do_cuGetErrorName(self, code: int, text: Any) -> int:
        text._obj.value = f"CUDA_ERROR_{code}".encode()
        return 0

    def do_cuGetErrorString(self, code: int, text: Any) -> int:
        text._obj.value = f"what {code} means".encode()
        return 0

    def do_cuLaunchKernel(self, function: Any, *rest: Any) -> int:
        x, y, z, _threads, _y, _z, _shared, stream, parameters, _extra = rest
        symbol = self.symbols[int(function.value) - 1]
        self.launches.append((symbol, (x, y, z), stream.value or 0))
        source = self.sources[symbol]
        words = {
            name: _word(parameters[n], kind) for n, (name, kind) in enumerate(source.arguments)
        }
        interpret(source, words)
        return 0


def _stream(_number: int) -> int:
    return 77


def _nothing(*_args: Any) -> int:
    return 0


def _word(place: int, kind: str) -> Any:
    if kind.startswith("*"):
        return ctypes.c_uint64.from_address(place).value
    return _CTYPES[kind].from_address(place).value


class Machine(GpuMachine):
    """A GPU whose memory is this processor's: tensors of torch on the CPU are where they belong."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.driver = Cuda(library)
        self.torch = torch
        self.raw_stream = _stream
        self.current = lambda: 0
        self.device = self.driver.device(0)
        self.number = 0
        self.place = "cpu"
        self.captures = False

    def check(self, name: str, tensor: Any) -> None:
        if getattr(tensor, "elsewhere", False):
            super().check(name, tensor)

    def capturing(self) -> bool:
        return self.captures

    def launcher(self, source: TileSource, target: str) -> Any:
        self.library.sources[source.entry] = source
        return super().launcher(source, target)


MATMUL_TEXT = """import triton
import triton.language as tl

BLOCK = 16


@triton.jit
def matmul(x, w, y, M, N, K, ldx, ldy):
    m = tl.program_id(0) * 16 + tl.arange(0, 16)
    n = tl.program_id(1) * 16 + tl.arange(0, 16)
    total = tl.zeros((16, 16), tl.float32)
    for step in range(0, tl.cdiv(K, 16)):
        k = step * 16 + tl.arange(0, 16)
        a = tl.load(x + m[:, None] * ldx + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(w + n[:, None] * K + k[None, :], mask=(n[:, None] < N) & (k[None, :] < K), other=0.0)
        total += tl.sum(a[:, None, :] * b[None, :, :], 2)
    tl.store(y + m[:, None] * ldy + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


def grid(M, N, K, ldx, ldy):
    return ((M + BLOCK - 1) // BLOCK, (N + BLOCK - 1) // BLOCK)
"""
MATMUL = TileSource(
    "matmul",
    MATMUL_TEXT,
    False,
    (
        ("x", "*fp32"), ("w", "*fp32"), ("y", "*fp32"), ("M", "i32"), ("N", "i32"), ("K", "i32"), ("ldx", "i32"),
        ("ldy", "i32"),
    ),
    ("in0.values", "in1.values", "out.values", "in0.dim0", "in1.dim0", "in1.dim1", "in0.stride0", "out.stride0"),
    ("x",),
    1,
)  # fmt: skip
TOTAL_TEXT = """import triton
import triton.language as tl


@triton.jit
def total(x, y, partial, counters, n):
    pid = tl.program_id(0)
    at = pid * 16 + tl.arange(0, 16)
    tl.store(partial + pid, tl.sum(tl.load(x + at, mask=at < n, other=0.0), 0))
    before = tl.atomic_add(counters, 1)
    programs = tl.num_programs(0)
    if before == programs - 1:
        k = tl.arange(0, 64)
        tl.store(y, tl.sum(tl.load(partial + k, mask=k < programs, other=0.0), 0))
        tl.store(counters, 0)


def grid(n):
    return ((n + 15) // 16,)


def work(n):
    return {"partial": 4 * grid(n)[0], "counters": 4}
"""
TOTAL = TileSource(
    "total",
    TOTAL_TEXT,
    False,
    (("x", "*fp32"), ("y", "*fp32"), ("partial", "*fp32"), ("counters", "*i32"), ("n", "i32")),
    ("in0.values", "out.values", "work.partial", "work.counters", "in0.dim0"),
    (),
    1,
)


def launch(
    kernel: str, inputs: int, extents: Any, shape: tuple[int, ...], **changes: Any
) -> Launch:
    """A launch of the plain kind: its operands are tensors 0 …, its result is dense and written in full."""
    dense = str(parse_format("dense", len(shape)))
    plain = Launch(
        kernel=kernel, inputs=tuple(range(inputs)), init=None, fill=(0,), dest=inputs, assembly="dense", pattern=None,
        covers=True, bound=None, extents=extents, shape=shape, static=(None,) * len(shape), format=dense, dtype="f32",
        roles=(), count_roles=(), source="a program of the tests", order=(), reason="",
    )  # fmt: skip
    return replace(plain, **changes)


def program(
    source: TileSource, operands: tuple[Operand, ...], launched: Launch, **changes: Any
) -> Plan:
    """A plan of one kernel."""
    step = TileLaunch(launched, source, (), None, "blocks", "", ())
    return Plan(operands, (replace(step, **changes),), (launched.dest,), ("y",))


SCHEDULES = tuple(f'#tile.schedule<"hand", {{number = {n}}}>' for n in range(3))


def matmul_plan(schedule: int = 0, packed: bool = False) -> Plan:
    """``Y[m,n] = X[m,k] * W[n,k]``, with a space of schedules that differ in nothing but a comment."""
    dense = str(parse_format("dense", 2))
    operands = tuple(Operand(name, (None, None), "f32", dense) for name in "XW")
    extents = (("m", ((0, 0),)), ("k", ((0, 1), (1, 1))), ("n", ((1, 0),)))
    source = replace(MATMUL, text=f"# schedule {schedule}\n{MATMUL.text}")
    return program(
        source,
        operands,
        launch("matmul", 2, extents, (0, 2)),
        sizes=(0, 2, 1),
        schedule=SCHEDULES[schedule],
        space=SCHEDULES,
    )


def spmv_plan(source: TileSource) -> Plan:
    """``y[i] = A[i,j] * x[j]``, A in CSR."""
    csr = str(parse_format("CSR", 2).with_widths(32, 32))
    dense = str(parse_format("dense", 1))
    operands = (Operand("A", (None, None), "f32", csr), Operand("x", (None,), "f32", dense))
    extents = (("i", ((0, 0),)), ("j", ((0, 1), (1, 0))))
    return program(source, operands, launch("spmv", 2, extents, (0,)))


def kernel_of(plan: Plan, machine: Any, remake: Any = None, **options: Any) -> TileKernel:
    """A kernel on a machine."""
    specs = tuple((o.name, OperandSpec(o.shape, o.dtype, o.format)) for o in plan.operands)
    request = Request("expression", "a program of the tests", specs, target="sm_90")
    made = TileKernel(plan, {}, lambda stage: stage, request=request, remake=remake, **options)
    if machine is not None:
        made._machine = machine  # pyright: ignore[reportPrivateUsage]
    return made


class Remakes:
    """Makes variants of the matrix product, and remembers what was asked for."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.asked: list[dict[str, Any]] = []
        self.known: dict[Any, TileKernel] = {}

    def kernel(self, **options: Any) -> TileKernel:
        """The product for some options of its request."""
        schedules = dict(options.get("schedules", ()))
        number = SCHEDULES.index(schedules.get("matmul", SCHEDULES[0]))
        key = tuple(sorted(options.items()))
        if key not in self.known:
            made = kernel_of(matmul_plan(number), self.machine)
            made.request = replace(made.request, **options)
            made.remake = lambda **more: self.remade(options, more)
            self.known[key] = made
        return self.known[key]

    def remade(self, options: dict[str, Any], more: dict[str, Any]) -> TileKernel:
        self.asked.append(more)
        return (
            self.kernel(**options, **more)
            if not options.keys() & more.keys()
            else self.kernel(**options | more)
        )


ROWS = np.array([[1, 0, 2, 0], [0, 0, 0, 3], [4, 5, 0, 6]], "f4")
X = np.array([1, 2, 3, 4], "f4")


def csr(dtype: Any = None) -> Any:
    """``ROWS`` as torch stores it, with indices of a width of their own."""
    matrix = torch.from_numpy(ROWS).to_sparse_csr()
    if dtype is None:
        return matrix
    return torch.sparse_csr_tensor(
        matrix.crow_indices().to(dtype),
        matrix.col_indices().to(dtype),
        matrix.values(),
        size=(3, 4),
    )
