"""A model of the sparse matrix instructions, written from the PTX ISA's chapters on their fragments.

Every function takes the registers of a warp's lanes (leading axes: many instructions at once) and gives the
accumulator registers. It decodes them with the ISA's own formulas: ``groupID = lane >> 2``, ``threadID_in_group =
lane % 4``, an element ``a_i`` of the sparse operand lies somewhere in columns ``firstcol .. lastcol`` of its row, and
the metadata of the chunk says where. Nothing here knows how weights are packed.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Registers = npt.NDArray[np.uint32]
Matrix = npt.NDArray[np.float64]
LANES = 32


def lanes_of(words: npt.NDArray[Any]) -> Registers:
    return np.ascontiguousarray(words).view(np.uint32)


def elements(registers: Registers, dtype: str) -> Matrix:
    """[..., lane, register] as the elements a_0, a_1, ... of each lane, lowest bits first."""
    kind = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8}[dtype]
    return np.ascontiguousarray(registers).view(kind).astype(np.float64)


def chunk_indices(nibble: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Where the two elements of a chunk of four stand; ordered metadata is defined for ascending pairs only."""
    first, second = nibble & 3, nibble >> 2 & 3
    assert (first < second).all(), "undefined behaviour: metadata is not ordered"
    return first.astype(np.int64), second.astype(np.int64)


def sparse_a_k32(a: Registers, metadata: Registers, selector: int, dtype: str) -> Matrix:
    """The 16x32 matrix A of m16n8k32, .f16 and .bf16: four registers, eight elements a lane.

    row = groupID for a_i with 0 <= i < 2 or 4 <= i < 6, else groupID + 8; firstcol = threadID_in_group * 4 for
    i < 4, else that + 16. Selector 0 takes the metadata of the quad's threads 0 and 1, selector 1 of 2 and 3: the
    first thread has chunks 0..3 of the row (columns 0-15), the second chunks 4..7; bits 0-15 are of row groupID,
    bits 16-31 of row groupID + 8."""
    value = elements(a, dtype)
    out = np.zeros((*a.shape[:-2], 16, 32))
    for lane in range(LANES):
        group, thread = lane >> 2, lane % 4
        for i in range(0, 8, 2):
            row = group if i < 2 or 4 <= i < 6 else group + 8
            firstcol = thread * 4 if i < 4 else thread * 4 + 16
            chunk = firstcol // 4
            source = group * 4 + 2 * selector + chunk // 4
            shift = 4 * (chunk % 4) + (16 if row >= 8 else 0)
            for offset, index in enumerate(chunk_indices(metadata[..., source] >> shift & 15)):
                where = (firstcol + index)[..., None]
                np.put_along_axis(
                    out[..., row, :], where, value[..., lane, i + offset][..., None], -1
                )
    return out


def sparse_a_k64(a: Registers, metadata: Registers) -> Matrix:
    """The 16x64 matrix A of m16n8k64, .s8: four registers, sixteen elements a lane.

    row = groupID for a_i with 0 <= i < 4 or 8 <= i < 12, else groupID + 8; firstcol = threadID_in_group * 8 for
    i < 8, else that + 32; lastcol = firstcol + 7: two chunks, two elements each. All four threads of a quad hold
    metadata: thread 0 chunks 0..7 of row groupID, thread 1 those of row groupID + 8, threads 2 and 3 chunks 8..15."""
    value = elements(a, "i8")
    out = np.zeros((*a.shape[:-2], 16, 64))
    for lane in range(LANES):
        group, thread = lane >> 2, lane % 4
        for i in range(0, 16, 2):
            upper = not (i < 4 or 8 <= i < 12)
            row = group + 8 if upper else group
            firstcol = thread * 8 if i < 8 else thread * 8 + 32
            chunk = firstcol // 4 + (i % 4) // 2
            source = group * 4 + 2 * (chunk // 8) + (1 if upper else 0)
            for offset, index in enumerate(
                chunk_indices(metadata[..., source] >> 4 * (chunk % 8) & 15)
            ):
                where = (4 * chunk + index)[..., None]
                np.put_along_axis(
                    out[..., row, :], where, value[..., lane, i + offset][..., None], -1
                )
    return out


def dense_b(b: Registers, dtype: str) -> Matrix:
    """Matrix B, k x 8: b_i of a lane stands in column groupID; a register's elements in consecutive rows from
    threadID_in_group * (elements a register), the next register 4 * (elements a register) rows below."""
    value = elements(b, dtype)
    each = value.shape[-1] // 4
    out = np.zeros((*b.shape[:-2], 16 * each, 8))
    for lane in range(LANES):
        group, thread = lane >> 2, lane % 4
        for i in range(4 * each):
            out[..., thread * each + i % each + 4 * each * (i // each), group] = value[..., lane, i]
    return out


def accumulators(d: Matrix) -> Matrix:
    """[..., 16, 8] as each lane's c0..c3: row groupID for c0 and c1, else + 8; column threadID_in_group * 2 + i % 2."""
    out = np.zeros((*d.shape[:-2], LANES, 4))
    for lane in range(LANES):
        group, thread = lane >> 2, lane % 4
        for i in range(4):
            out[..., lane, i] = d[..., group + 8 * (i // 2), thread * 2 + i % 2]
    return out


def mma_sp_m16n8k32(
    a: Registers, b: Registers, metadata: Registers, selector: int, dtype: str
) -> Matrix:
    """``mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col`` on zero accumulators, without rounding."""
    return accumulators(sparse_a_k32(a, metadata, selector, dtype) @ dense_b(b, dtype))


def mma_sp_m16n8k64(a: Registers, b: Registers, metadata: Registers) -> Matrix:
    """``mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32``: the selector must be 0."""
    return accumulators(sparse_a_k64(a, metadata) @ dense_b(b, "i8"))


def wgmma_sp_m64nk32(
    a: Registers, metadata: Registers, selector: int, shared_b: Matrix, dtype: str
) -> Matrix:
    """``wgmma.mma_async.sp.sync.aligned.m64nNk32`` with A in registers: [..., 128 threads, 4 registers] and B a 32xN
    matrix in shared memory. Warp w has rows 16*w .. +15 and in them the fragments of m16n8k32; d_i of a thread is
    row groupID + 8 * (i / 2 % 2) and column 8 * (i / 4) + threadID_in_group * 2 + i % 2."""
    columns = shared_b.shape[-1]
    out = np.zeros((*a.shape[:-2], 128, columns // 2))
    for warp in range(4):
        lanes = slice(32 * warp, 32 * warp + 32)
        rows = sparse_a_k32(a[..., lanes, :], metadata[..., lanes], selector, dtype)
        d = rows @ shared_b
        for j in range(columns // 8):
            out[..., lanes, 4 * j : 4 * j + 4] = accumulators(d[..., 8 * j : 8 * j + 8])
    return out


def b_registers(x: npt.NDArray[Any], dtype: str) -> Registers:
    """The B registers of a k x 8 matrix, from the same formulas as ``dense_b``."""
    each = {"f16": 2, "bf16": 2, "i8": 4}[dtype]
    out = np.zeros((LANES, 4 * each), dtype=x.dtype)
    for lane in range(LANES):
        group, thread = lane >> 2, lane % 4
        for i in range(4 * each):
            out[lane, i] = x[thread * each + i % each + 4 * each * (i // each), group]
    return out.view(np.uint32)


def rows_of(d: Matrix) -> Matrix:
    """Lanes' accumulators back as [..., 16, 8]."""
    out = np.zeros((*d.shape[:-2], 16, 8))
    for lane in range(LANES):
        group, thread = lane >> 2, lane % 4
        for i in range(4):
            out[..., group + 8 * (i // 2), thread * 2 + i % 2] = d[..., lane, i]
    return out
