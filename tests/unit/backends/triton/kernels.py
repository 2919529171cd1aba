"""Kernels written by hand, small enough to read: what the loader and the runtime are tested with."""

from __future__ import annotations

from sparsecc.kernel import TileSource

SPMV_TEXT = """import triton
import triton.language as tl


@triton.jit
def spmv(pos, crd, val, x, y, rows):
    row = tl.program_id(0) * 4 + tl.arange(0, 4)
    live = row < rows
    lo = tl.load(pos + row, mask=live, other=0)
    hi = tl.load(pos + row + 1, mask=live, other=0)
    total = tl.zeros((4,), tl.float32)
    for step in range(0, tl.cdiv(tl.max(hi - lo, 0), 8)):
        p = lo[:, None] + step * 8 + tl.arange(0, 8)[None, :]
        inside = p < hi[:, None]
        j = tl.load(crd + p, mask=inside, other=0)
        a = tl.load(val + p, mask=inside, other=0.0)
        total += tl.sum(a * tl.load(x + j, mask=inside, other=0.0), 1)
    tl.store(y + row, total, mask=live)


def grid(rows):
    return ((rows + 3) // 4, 1, 1)
"""
SPMV = TileSource(
    "spmv",
    SPMV_TEXT,
    False,
    (
        ("pos", "*i32"),
        ("crd", "*i32"),
        ("val", "*fp32"),
        ("x", "*fp32"),
        ("y", "*fp32"),
        ("rows", "i32"),
    ),
    ("in0.positions1", "in0.coordinates1", "in0.values", "in1.values", "out.values", "in0.dim0"),
    ("val",),
    1,
)
COPY_TEXT = """from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

async_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared


@gluon.jit
def copy(x, y, n):
    buf = gl.allocate_shared_memory(gl.float16, [64, 64], x.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, x.block_type.nbytes)
    async_load(x, [gl.program_id(0) * 64, 0], bar, buf)
    mbarrier.wait(bar, 0)
    mbarrier.invalidate(bar)
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    v = buf.load(layout)
    r = gl.program_id(0) * 64 + gl.arange(0, 64, gl.SliceLayout(1, layout))
    c = gl.arange(0, 64, gl.SliceLayout(0, layout))
    gl.store(y + r[:, None] * 64 + c[None, :], v, mask=(r < n)[:, None])


def grid(n):
    return ((n + 63) // 64, 1, 1)
"""
COPY = TileSource(
    "copy",
    COPY_TEXT,
    True,
    (("x", "tensordesc<fp16[64, 64]>"), ("y", "*fp16"), ("n", "i32")),
    ("in0.values", "out.values", "in0.dim0"),
    ("y",),
    4,
)
