"""What a warpgroup kernel's text does to one chunk, in NumPy: its own assembly, copies and transposition, read from it.

Shared memory is bytes with the 128-byte swizzle of bulk copies (bits 4-6 of an address are XORed with bits 7-9), and
the matrix B is read from it by the descriptor as the PTX ISA says: rows of 128 bytes, groups of eight of them 1024
bytes apart; with tokens contiguous, panels of 64 tokens lie the leading offset apart.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tests.unit.backends.triton import instructions as model

AnyArray = npt.NDArray[Any]
KINDS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8}


def constant(text: str, name: str) -> int:
    found = re.search(rf"^{name} = gl.constexpr\((\d+)\)", text, re.M)
    assert found is not None, name
    return int(found[1])


def assembly(text: str, name: str) -> list[str]:
    found = re.search(rf'^{name} = gl.constexpr\("""(.*?)"""\)', text, re.M | re.S)
    assert found is not None, name
    return [line.strip() for line in found[1].splitlines()]


def load(
    text: str, packed: AnyArray, tiles: int, first_tile: int, unit: int, across: int
) -> AnyArray:
    """The 64 output registers of each of 128 threads, when a chunk begins at ``unit`` of ``across``."""
    unit_bytes = constant(text, "UNIT_BYTES")
    memory = packed.view(np.uint8)
    out = np.full((128, 64), 0xDEADBEEF, np.uint32)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        skewed = 0  # the row tile that ``at`` is of
        for line in assembly(text, "LOAD"):
            if moved := re.fullmatch(r"mov\.b32 \$(\d+), (\w+);", line):
                out[thread, int(moved[1])] = int(moved[2], 0)
            if skew := re.fullmatch(r"sub\.s64 at, \$(\d+), skew;", line):
                skewed = int(skew[1])
            loaded = re.fullmatch(r"@in(\d+) ld\.global\S* (\S.*), \[(\$\d+|at)\+(\d+)\];", line)
            if loaded is None or unit + int(loaded[1]) >= across:
                continue
            of_values = loaded[3] != "at"
            tile = ((int(loaded[3][1:]) if of_values else skewed) - 64) // 32
            row_tile = min(first_tile + tile * 4 + warp, tiles - 1)
            address = (row_tile * across + unit) * unit_bytes + lane * (16 if of_values else 4)
            for i, number in enumerate(re.findall(r"\$(\d+)", loaded[2])):
                at = address + int(loaded[4]) + 4 * i
                out[thread, int(number)] = memory[at : at + 4].view(np.uint32)[0]
    return out


def swizzled(address: AnyArray) -> AnyArray:
    return address ^ (address >> 7 & 7) << 4


def fill(text: str, x: AnyArray, column: int, transposed: bool) -> AnyArray:
    """The bytes of a stage after its copies; ``x`` is tokens x k."""
    size = constant(text, "BOX_BYTES")
    shared = np.zeros(constant(text, "BOXES") * size, np.uint8)
    copies = re.findall(
        r"x, \[([^\]]*)\], full\.index\(stage\), shared\.index\(stage \* BOXES \+ (\d+)\)", text
    )
    source = x.T if transposed else x
    for where, box in copies:
        rows, across = (
            int(eval(part, {"token": 0, "column": column})) for part in where.split(", ")[-2:]
        )
        wide = 128 // x.itemsize
        tall = size // 128
        block = np.zeros((tall, wide), x.dtype)
        part = source[rows : rows + tall, across : across + wide]
        block[: part.shape[0], : part.shape[1]] = part
        at = int(box) * size + np.arange(size)
        shared[swizzled(at)] = block.view(np.uint8).reshape(-1)
    return shared


def b_matrix(
    shared: AnyArray, descriptor: int, depth: int, tokens: int, dtype: str, transposed: bool
) -> AnyArray:
    """The matrix ``depth`` x ``tokens`` that an instruction reads by a descriptor."""
    start = (descriptor & 0x3FFF) << 4
    leading = (descriptor >> 16 & 0x3FFF) << 4
    stride = (descriptor >> 32 & 0x3FFF) << 4
    assert descriptor >> 62 == 1, "the 128-byte swizzle"
    kind = KINDS[dtype]
    size = np.dtype(kind).itemsize
    k, n = np.arange(depth)[:, None], np.arange(tokens)[None, :]
    if transposed:
        wide = 128 // size
        at = start + n // wide * leading + k // 8 * stride + k % 8 * 128 + n % wide * size
    else:
        at = start + n // 8 * stride + n % 8 * 128 + k * size
    at = swizzled(at)[..., None] + np.arange(size)
    return shared[at].reshape(depth, tokens, size).copy().view(kind)[..., 0].astype(np.float64)


def multiply(text: str, registers: AnyArray, shared: AnyArray, dtype: str) -> AnyArray:
    """The sums of a chunk, [row tile x 64 tokens, 128 threads, 32 registers], as the assembly addresses them."""
    lines = assembly(text, "MULTIPLY")
    descriptors: dict[str, int] = {}
    count = len(set(re.findall(r"(sum\d\d) = gl\.full", text)))
    sums = np.zeros((128, count * 32))
    base = 2 * count * 32
    for line in lines:
        if found := re.fullmatch(r"or\.b64 at0, at0, (0x\w+);", line):
            descriptors["at0"] = int(found[1], 16)
        if found := re.fullmatch(r"add\.s64 (at\d+), at0, (\d+);", line):
            descriptors[found[1]] = descriptors["at0"] + int(found[2])
        found = re.fullmatch(
            r"wgmma\.mma_async\.sp\.sync\.aligned\.m64n(\d+)k(\d+)\.\S+ \{(.*?)\}, \{(.*?)\}, (at\d+), "
            r"\$(\d+), (\d), add(?:, 1, 1, (\d))?;",
            line,
        )
        if found is None:
            continue
        tokens, depth = int(found[1]), int(found[2])
        transposed = found[8] == "1"
        accumulators = [int(r[1:]) for r in found[3].split(",")]
        a = registers[:, [int(r[1:]) - base for r in found[4].split(",")]]
        metadata = registers[:, int(found[6]) - base]
        b = b_matrix(shared, descriptors[found[5]], depth, tokens, dtype, transposed)
        d = np.zeros((128, tokens // 2))
        for warp in range(4):
            lanes = slice(32 * warp, 32 * warp + 32)
            a_lanes = np.ascontiguousarray(a[lanes])
            if dtype == "i8":
                assert found[7] == "0"
                rows = model.sparse_a_k64(a_lanes, metadata[lanes])
            else:
                rows = model.sparse_a_k32(a_lanes, metadata[lanes], int(found[7]), dtype)
            for j in range(tokens // 8):
                d[lanes, 4 * j : 4 * j + 4] = model.accumulators((rows @ b)[:, 8 * j : 8 * j + 8])
        sums[:, accumulators] += d
    return sums.reshape(128, count, 32).transpose(1, 0, 2)


def piece(text: str, sums: AnyArray) -> AnyArray:
    """A piece as [token, row], by the reshape and permutation that the text has."""
    found = re.search(
        r"\.reshape\(\[WARPS, ([\d, ]+)\]\)\.permute\(\[([\d, ]+)\]\)", text.replace("\n", "")
    )
    assert found is not None
    shape = [4, *map(int, found[1].split(","))]
    order = [int(n) for n in found[2].split(",")]
    return sums.reshape(shape).transpose(order).reshape(64, 64)
