"""Work on a GPU, by kernel family. Weights come from memory (cold), dense operands and results from the second cache.

Amounts, of a matrix of ``n`` x ``k`` and ``t`` tokens (columns of the dense operand):

``cold``       bytes of the matrix as it is stored
``warm``       bytes of the dense operands and the result, once
``x_l2``       bytes of the dense operand that programs read from the second cache, each for itself
``x_dram``     the same from memory, where the operand does not stay in the second cache
``mac``        multiplications of matrix units, with tokens padded to what the kernel's tile has
``wave``       how often all processors get a new program (the last time some of them get none)
``decode``     cells whose place in a compressed tile is computed
``entry``      entries walked, ``segment`` rows (or parts of rows) begun, ``program`` programs begun
``long``       entries of the longest row: what one program does while the others are done
``call``       1, ``gap`` 1 where a kernel zeroes or sums parts of k first

Memory traffic is ``bytes``, multiplications are ``macs``, everything per cell, entry and program is ``issue``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil

from sparsecc.selection.costs.facts import Facts
from sparsecc.selection.costs.work import Work
from sparsecc.selection.footprint import block_of, footprint, largest
from sparsecc.selection.operations import GENERAL, MTTKRP, SDDMM, SPMM, SPMV
from sparsecc.statistics import Statistics
from sparsecc.targets import Target, TargetAbility

LEAST_TOKENS = 16
PART = 512
"""Entries of a row beyond which it is shared by several programs."""
ROWS_OF_A_RING = 160
"""Rows a processor from which 32 tokens stream through registers too."""
TYPES = {"f16": "16", "bf16": "16", "f32": "32", "f64": "64", "i8": "8"}
Sizes = Mapping[str, float]


def work(facts: Facts, engine: str, sizes: Sizes) -> Work:
    """The work of an expression."""
    if engine != "generated":
        return LIBRARIES[engine](facts, sizes)
    kind = facts.operation.kind
    matrix = facts.operation.matrix
    if kind in (SPMV, SPMM) and matrix is not None:
        family = facts.format_of(matrix.name).partition("(")[0]
        return PRODUCTS[family](facts, sizes)
    return {SDDMM: _sddmm, MTTKRP: _general, GENERAL: _general}[kind](facts, sizes)


class Product:
    """The numbers of a product with a matrix."""

    def __init__(self, facts: Facts) -> None:
        operation = facts.operation
        assert operation.matrix is not None
        self.facts, self.operation = facts, operation
        self.name = operation.matrix.name
        self.s: Statistics = facts.statistics(self.name, operation.matrix.indices)
        self.n, self.k, self.t = (facts.of_letter(letter) for letter in "nkt")
        self.item = facts.item(self.name)
        self.type = TYPES.get(facts.tensor(self.name).dtype, "32")
        self.format = facts.format_of(self.name)
        self.warm = float(self.t * (self.n + self.k) * self.item)

    @property
    def stored(self) -> float:
        return footprint(self.format, self.s).bytes


def padded(tokens: int, least: int = LEAST_TOKENS, most: int = 128) -> int:
    """Tokens as tiles have them: a power of two, or multiples of the largest tile."""
    wide = max(least, 1 << max(tokens - 1, 0).bit_length())
    return wide if wide <= most else ceil(tokens / most) * most


def waves(programs: float, sizes: Sizes) -> float:
    """How often all processors get a program."""
    return float(ceil(programs / sizes["processors"]))


def grouped_family(tokens: int, rows: int, target: Target) -> str:
    """The family of schedules that leads for a 2:4 weight."""
    if not target.can(TargetAbility.SPARSE_MMA_2_4):
        return "spread"
    if tokens <= 16:
        return "ring"
    processors = target.rate("processors")
    each = rows / (processors.value if processors else 132)
    if tokens <= 32:
        return "staged" if each < ROWS_OF_A_RING else "ring"
    return "warpgroup" if target.can(TargetAbility.WGMMA_SPARSE) else "staged"


def _grouped(facts: Facts, sizes: Sizes) -> Work:
    """2:4 on the sparse tensor cores."""
    p = Product(facts)
    family = grouped_family(p.t, p.n, facts.problem.target)
    tokens = padded(p.t, 8 if family == "ring" else 16, 32 if family == "ring" else 128)
    rows = {"ring": 64, "staged": 64, "warpgroup": 128, "spread": 128}[family]
    tile = min(tokens, 128)
    programs = ceil(p.n / rows) * ceil(tokens / tile)
    return Work(
        f"2:4-{family}",
        {"cold": p.stored, "warm": p.warm},
        {"mac": p.n * p.k * tokens / 2},
        {"x_l2": ceil(p.n / rows) * tokens * p.k * p.item, "wave": waves(programs, sizes)},
        {"call": 1},
    )


def _residual(facts: Facts, sizes: Sizes) -> Work:
    """2:4 and a rest, both by sparse matrix instructions."""
    p = Product(facts)
    tokens = padded(p.t, 8, 32)
    rest = p.stored - footprint("2:4", p.s).bytes
    return Work(
        "2:4+CSR",
        {"cold": p.stored, "warm": p.warm},
        {"mac": float(p.n * p.k * tokens)},
        {
            "x_l2": ceil(p.n / 64) * tokens * p.k * p.item,
            "entry": rest / (p.item + 4) * ceil(tokens / 32),
            "decode": p.n * p.k * ceil(tokens / 32),
        },
        {"call": 1},
    )


def _blocks(facts: Facts, sizes: Sizes) -> Work:
    """Rows of dense blocks as dots."""
    p = Product(facts)
    rows, columns = block_of(p.format) or (1, 1)
    f = footprint(p.format, p.s)
    tile = padded(p.t, 16, 64 if p.t <= 64 else 256 if p.t > 128 else 128)
    across = ceil(p.t / min(tile, 256))
    programs = ceil(p.n / rows) * across
    # A row of blocks is one program's: the fullest one ends last.
    fullest = min(
        ceil(p.k / columns), largest(p.s, 0) if p.operation.by_rows else ceil(p.k / columns)
    )
    return Work(
        f"blocks-{rows}-{p.type}",
        {"cold": f.bytes, "warm": p.warm},
        {"mac": f.entries * max(p.t, LEAST_TOKENS)},
        {
            "x_l2": f.units * columns * p.t * p.item,
            "block": f.units * across,
            "wave": waves(programs, sizes),
            "long": float(fullest),
        },
        {"call": 1},
    )


def _bitmap(facts: Facts, sizes: Sizes) -> Work:
    """Bits and packed values, decompressed on chip."""
    p = Product(facts)
    tokens = padded(p.t)
    return Work(
        "bitmap",
        {"cold": p.stored, "warm": p.warm},
        {"mac": float(p.n * p.k * tokens)},
        {
            "decode": float(p.n * p.k * ceil(tokens / 128)),
            "x_l2": ceil(p.n / 64) * tokens * p.k * p.item,
            "wave": waves(ceil(p.n / 64) * ceil(tokens / 128), sizes),
        },
        {"call": 1},
    )


def _rows(facts: Facts, sizes: Sizes) -> Work:
    """Sparse rows: balanced kernels where columns are contiguous, else the general path."""
    p = Product(facts)
    nnz = float(p.s.nnz)
    gathered = nnz * p.t * p.item
    stays = min(1.0, sizes["l2"] / max(float(p.k * p.t * p.item), 1.0))
    longest = float(largest(p.s, 0 if p.operation.by_rows else 1))
    bytes_ = {"cold": p.stored, "warm": p.warm}
    if not p.operation.has_row_kernel:
        return Work(
            "rows-general", bytes_, {},
            {"x_l2": gathered * stays, "x_dram": gathered * (1 - stays), "entry": nnz,
             "term": nnz * p.t, "program": float(p.n * ceil(p.t / 128)), "long": longest},
            {"call": 1},
        )  # fmt: skip
    if p.operation.kind == SPMV:
        skewed = longest > 8 * max(nnz / max(p.n, 1), 16.0)
        return Work(
            f"vector-{'bins' if skewed else 'groups'}", bytes_, {},
            {"entry": nnz, "segment": float(p.n), "long": min(longest, 1024.0)},
            {"call": 1},
        )  # fmt: skip
    segments = p.n + nnz / PART
    across = ceil(p.t / 64)
    return Work(
        f"segments-{p.type}", bytes_, {},
        {"x_l2": gathered * stays, "x_dram": gathered * (1 - stays), "entry": nnz * across,
         "segment": segments * across, "long": min(longest, float(PART))},
        {"call": 1},
    )  # fmt: skip


def _dense(facts: Facts, sizes: Sizes) -> Work:
    """A generated product of dense matrices: the general path, no matrix units."""
    p = Product(facts)
    return Work(
        "dense-general",
        {"cold": float(p.n * p.k * p.item), "warm": p.warm},
        {"mac": float(p.n * p.k * p.t)},
        {},
        {"call": 1},
    )


def _sddmm(facts: Facts, sizes: Sizes) -> Work:
    """A product at the entries of a matrix."""
    operation = facts.operation
    assert operation.matrix is not None
    s = facts.statistics(operation.matrix.name, operation.matrix.indices)
    depth = facts.of_letter("k")
    item = facts.item(operation.matrix.name)
    fmt = facts.format_of(operation.matrix.name)
    f = facts.footprint(operation.matrix.name, s)
    warm = float(sum(s.shape) * depth * item)
    if fmt == "dense":
        return Work(
            "sampled-dense", {"cold": 2 * f.bytes, "warm": warm}, {"mac": f.entries * depth}, {},
            {"call": 1},
        )  # fmt: skip
    gathered = 2.0 * s.nnz * depth * item
    stays = min(1.0, sizes["l2"] / max(warm, 1.0))
    return Work(
        "sampled",
        {"cold": f.bytes + s.nnz * item, "warm": warm},
        {},
        {"x_l2": gathered * stays, "x_dram": gathered * (1 - stays), "entry": float(s.nnz),
         "segment": f.slices},
        {"call": 1},
    )  # fmt: skip


def _general(facts: Facts, sizes: Sizes) -> Work:
    """Anything else, by the general path: entries times the coordinates that no sparse operand has."""
    expression = facts.operation.expression
    moved, steps, covered = 0.0, 1.0, set[str]()
    for access in expression.inputs:
        s = facts.statistics(access.name, access.indices)
        f = facts.footprint(access.name, s)
        moved += f.bytes
        if facts.format_of(access.name) != "dense":
            steps *= max(f.entries, 1.0) if not covered else max(f.entries / max(f.slices, 1), 1.0)
            covered |= set(access.indices)
    for index in expression.indices:
        if index not in covered:
            steps *= facts.extent(index)
    return Work("general", {"cold": moved}, {}, {"step": steps}, {"call": 1})


# -- libraries -----------------------------------------------------------------------------------


def _cublas(facts: Facts, sizes: Sizes) -> Work:
    p = Product(facts)
    cold = float(p.n * p.k * p.item)
    if p.operation.kind == SPMV:
        return Work(f"cublas-vector-{p.type}", {"cold": cold}, {}, {}, {"call": 1})
    tokens = padded(p.t, 16, 64)
    tiles = ceil(p.n / 128) * ceil(tokens / 128)
    return Work(
        f"cublas-{p.type}",
        {"cold": cold, "warm": p.warm},
        {"mac": float(p.n * p.k * tokens)},
        {"wave": waves(tiles, sizes) * p.k},
        {"call": 1, "split": 1.0 if tiles < sizes["processors"] else 0.0},
    )


def _cusparselt(facts: Facts, sizes: Sizes) -> Work:
    p = Product(facts)
    tokens = padded(p.t, 16, 64)
    tiles = ceil(p.n / 128) * ceil(tokens / 128)
    dtype = facts.tensor(p.name).dtype
    return Work(
        f"cusparselt-{dtype}",
        {"cold": footprint("2:4", p.s).bytes, "warm": p.warm},
        {"mac": p.n * p.k * tokens / 2},
        {"wave": waves(tiles, sizes) * p.k},
        {"call": 1},
    )


def _cusparse(facts: Facts, sizes: Sizes) -> Work:
    p = Product(facts)
    nnz = float(p.s.nnz)
    longest = float(largest(p.s, 0))
    if p.operation.kind == SPMV:
        return Work(
            f"cusparse-vector-{p.type}", {"cold": p.stored, "warm": p.warm}, {},
            {"entry": nnz, "segment": float(p.n)}, {"call": 1},
        )  # fmt: skip
    gathered = nnz * p.t * p.item
    stays = min(1.0, sizes["l2"] / max(float(p.k * p.t * p.item), 1.0))
    return Work(
        f"cusparse-{p.type}", {"cold": p.stored, "warm": p.warm}, {},
        {"x_l2": gathered * stays, "x_dram": gathered * (1 - stays), "entry": nnz * ceil(p.t / 32),
         "segment": p.n * ceil(p.t / 32), "long": longest},
        {"call": 1},
    )  # fmt: skip


PRODUCTS: dict[str, Callable[[Facts, Sizes], Work]] = {
    "dense": _dense, "2:4": _grouped, "2:4+CSR": _residual, "BSR": _blocks, "BITMAP": _bitmap,
    "CSR": _rows, "CSC": _rows,
}  # fmt: skip
"""Products by format."""
LIBRARIES: dict[str, Callable[[Facts, Sizes], Work]] = {
    "cublas": _cublas, "cusparselt": _cusparselt, "cusparse": _cusparse,
}  # fmt: skip
