"""The three assembly texts of a warpgroup kernel: which registers hold what, and what is read and multiplied.

All tensors that go through them have 32 elements a thread (``[WARPS, 32, 32]``): a piece of the sums (64 rows x 64
tokens), the values of a chunk (four registers a k step, row tile by row tile), its metadata (a register a unit).
"""

from __future__ import annotations

from dataclasses import dataclass

REGISTERS = 32
"""Elements a thread of each tensor."""
PANEL = 128
"""Bytes of a swizzled row of shared memory: two k steps."""
EMPTY = 0x44444444
"""Metadata of nothing: every group holds its elements 0 and 1."""
SWIZZLED = 0x40000040 << 32
"""A descriptor's 128-byte swizzle, and 1024 bytes between groups of eight rows."""


@dataclass(frozen=True)
class Shape:
    """What the assembly depends on."""

    dtype: str
    row_tiles: int
    """Tiles of 64 rows (of 16 for each warp) that a warpgroup owns."""
    tokens: int
    steps: int
    """k steps of a chunk: 32 columns of 16 bits, 64 of 8 bits; 64 bytes of X."""
    transposed: bool
    """Tokens are contiguous in shared memory."""

    @property
    def pieces(self) -> int:
        """Tensors of sums: row tiles x 64 tokens."""
        return self.row_tiles * self.tokens // 64

    @property
    def unit_steps(self) -> int:
        """k steps of a packed unit of 64 columns."""
        return 1 if self.dtype == "i8" else 2

    @property
    def units(self) -> int:
        """Packed units of a chunk, for each row tile."""
        return self.steps // self.unit_steps

    @property
    def unit_bytes(self) -> int:
        """16 rows x 64 columns: values, then metadata."""
        return self.unit_steps * 512 + 128

    @property
    def columns(self) -> int:
        """Columns of a chunk."""
        return self.units * 64

    @property
    def stage_bytes(self) -> int:
        """X of a chunk in shared memory."""
        return self.steps * 64 * self.tokens


def load_text(s: Shape) -> tuple[str, str]:
    """Read a chunk's values and metadata, 16 bytes a lane and step: outputs values, metadata; inputs the address of
    each row tile's first vector of this lane, and the units left from here (zeros for those beyond the weight)."""
    values, metadata, tiles = 0, REGISTERS, 2 * REGISTERS
    left = tiles + s.row_tiles * REGISTERS
    lines = [
        f".reg .pred in<{s.units}>;",
        ".reg .b32 lane;",
        ".reg .b64 skew, at;",
        "mov.u32 lane, %laneid;",
        "mul.wide.u32 skew, lane, 12;",
    ]
    lines += [f"setp.gt.s32 in{u}, ${left}, {u};" for u in range(s.units)]
    for tile in range(s.row_tiles):
        address = f"${tiles + tile * REGISTERS}"
        lines.append(f"sub.s64 at, {address}, skew;")
        for unit in range(s.units):
            for step in range(s.unit_steps):
                slot = (tile * s.units + unit) * s.unit_steps + step
                vector = [f"${values + slot * 4 + i}" for i in range(4)]
                lines += [f"mov.b32 {register}, 0;" for register in vector]
                offset = unit * s.unit_bytes + step * 512
                lines.append(
                    f"@in{unit} ld.global.L1::no_allocate.v4.b32 {{{', '.join(vector)}}}, [{address}+{offset}];"
                )
            word = f"${metadata + tile * s.units + unit}"
            lines.append(f"mov.b32 {word}, {EMPTY:#x};")
            offset = unit * s.unit_bytes + s.unit_steps * 512
            lines.append(f"@in{unit} ld.global.L1::no_allocate.b32 {word}, [at+{offset}];")
    constraints = ["=r"] * (2 * REGISTERS) + ["l"] * (s.row_tiles * REGISTERS) + ["r"] * REGISTERS
    return _braces(lines), ",".join(constraints)


def multiply_text(s: Shape) -> tuple[str, str]:
    """Multiply a chunk: outputs the pieces; inputs the pieces before, values, metadata, the stage's byte offset.

    The group of instructions is waited for at once: registers of A that are in flight at a loop's back edge would make
    ptxas wait after each instruction."""
    sums = s.pieces * REGISTERS
    values = 2 * sums
    metadata = values + REGISTERS
    offset = metadata + REGISTERS
    leading = 64 * PANEL if s.transposed else 16
    lines = [
        f".reg .b64 at<{s.steps}>;",
        ".reg .b32 t;",
        ".reg .pred add;",
        "setp.eq.u32 add, 0, 0;",
        "mov.u32 t, global_smem;",
        f"add.u32 t, t, ${offset};",
        "and.b32 t, t, 0x3ffff;",
        "shr.u32 t, t, 4;",
        "cvt.u64.u32 at0, t;",
        f"or.b64 at0, at0, {SWIZZLED | (leading >> 4 << 16):#x};",
    ]
    lines += [f"add.s64 at{k}, at0, {_step_offset(s, k) >> 4};" for k in range(1, s.steps)]
    lines.append("wgmma.fence.sync.aligned;")
    for step in range(s.steps):
        for tile in range(s.row_tiles):
            lines.append(_instruction(s, step, tile, values, metadata))
    lines += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    kind = "r" if s.dtype == "i8" else "f"
    constraints = [f"={kind}"] * sums + [str(i) for i in range(sums)] + ["r"] * (3 * REGISTERS)
    return _braces(lines), ",".join(constraints)


def _instruction(s: Shape, step: int, tile: int, values: int, metadata: int) -> str:
    registers = s.tokens // 2
    sums = ",".join(f"${tile * registers + i}" for i in range(registers))
    unit, within = divmod(step, s.unit_steps)
    slot = (tile * s.units + unit) * s.unit_steps + within
    a = ",".join(f"${values + slot * 4 + i}" for i in range(4))
    word = f"${metadata + tile * s.units + unit}"
    operands = f"{{{sums}}}, {{{a}}}, at{step}, {word}, {within}, add"
    if s.dtype == "i8":
        return f"wgmma.mma_async.sp.sync.aligned.m64n{s.tokens}k64.s32.s8.s8 {operands};"
    return (
        f"wgmma.mma_async.sp.sync.aligned.m64n{s.tokens}k32.f32.{s.dtype}.{s.dtype} "
        f"{operands}, 1, 1, {int(s.transposed)};"
    )


def _step_offset(s: Shape, step: int) -> int:
    """Bytes from a stage's begin to the X of a k step."""
    panel, half = divmod(step, 2)
    if s.transposed:  # panels of 64 tokens, each 64 columns of k tall
        return panel * (s.tokens * PANEL) + half * 32 * PANEL
    return panel * (s.tokens * PANEL) + half * 64


def _braces(lines: list[str]) -> str:
    return "\n".join(["{", *(f"    {line}" for line in lines), "}"])
