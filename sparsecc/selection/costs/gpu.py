"""Work on a GPU, by kernel family. Weights come from memory (cold), dense operands and results from the second cache.

Amounts, of a matrix of ``n`` x ``k`` and ``t`` tokens (columns of the dense operand):

``cold``       bytes of the matrix as it is stored
``warm``       bytes of the dense operands and the result, once
``x_l2``       bytes of the dense operand that programs read from the second cache, each for itself
``x_turned``   the same where it does not lie as the kernel has it first
``reread``     bytes of the matrix that are read again for more tokens
``x_dram``     the same from memory, where the operand does not stay in the second cache
``mac``        (``mac_16``, by bits) multiplications of matrix units, with tokens padded to what the kernel's tile has
``wave``       how often all processors get a new program (the last time some of them get none)
``decode``     cells whose place in a compressed tile is computed
``entry``      entries walked, ``segment`` rows (or parts of rows) begun, ``program`` programs begun
``long``       entries of the longest row, or steps along k: what one program does after the other
``split``      1 where a library shares k among programs, since there are too few rows for all processors
``call``       1, ``gap`` 1 where a kernel zeroes or sums parts of k first

Memory traffic is ``bytes``, multiplications are ``macs``, everything per cell, entry and program is ``issue``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil

from sparsecc.selection.costs.facts import Facts, dense_product
from sparsecc.selection.costs.work import Work
from sparsecc.selection.footprint import block_of, footprint, largest
from sparsecc.selection.operations import GENERAL, MTTKRP, SDDMM, SPMM, SPMV
from sparsecc.statistics import Statistics
from sparsecc.targets import Target, TargetAbility

LEAST_TOKENS = 16
PART = 512
"""Entries of a row beyond which it is shared by several programs."""
SKEWED, SHORT, LONG = 4, 24, 512
"""A row so many times as long as the mean makes a matrix skewed; mean lengths of short and of long rows."""
RESIDENT = 4
"""Programs that a processor runs at a time, about."""
ENTRY = 4
"""Bytes of an entry of a residual as it is packed."""
ROWS_OF_A_RING = 160
"""Rows a processor from which 32 tokens stream through registers too."""
TYPES = {"f16": "16", "bf16": "16", "f32": "32", "f64": "64", "i8": "8"}
Sizes = Mapping[str, float]


def work(facts: Facts, engine: str, sizes: Sizes) -> Work:
    """The work of an expression."""
    kind = facts.operation.kind
    matrix = facts.operation.matrix
    if engine == "cublas":
        return _cublas(facts, sizes)
    if kind in (SPMV, SPMM) and matrix is not None:
        if engine != "generated":
            return LIBRARIES[engine](facts, sizes)
        family = facts.format_of(matrix.name).partition("(")[0]
        return PRODUCTS.get(family, _general)(facts, sizes)
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


def rows_of_program(rows: int, sizes: Sizes) -> float:
    """Rows of a weight that one program of fragments has: as many as keep all processors busy, 16 to 128."""
    return min(128.0, max(16.0, rows / sizes["processors"]))


def _reads(p: Product, size: float) -> dict[str, float]:
    """Bytes of the dense operand that programs read, by how it lies: ``x_l2`` where k (or for sparse rows and blocks
    the columns) is contiguous as the kernels have it first, else ``x_turned``."""
    return {"x_turned" if p.operation.streams_columns else "x_l2": size}


def _grouped(facts: Facts, sizes: Sizes) -> Work:
    """2:4 on the sparse tensor cores."""
    p = Product(facts)
    family = grouped_family(p.t, p.n, facts.problem.target)
    tokens = padded(p.t, 8 if family == "ring" else 16, 32 if family == "ring" else 128)
    rows = rows_of_program(p.n, sizes)
    programs = ceil(p.n / rows) * ceil(tokens / min(tokens, 128))
    return Work(
        f"2:4-{family}",
        {"cold": p.stored, "warm": p.warm},
        {"mac": p.n * p.k * tokens / 2},
        {**_reads(p, ceil(p.n / rows) * tokens * p.k * p.item), "wave": waves(programs, sizes)},
        {"call": 1},
    )


def _residual(facts: Facts, sizes: Sizes) -> Work:
    """2:4 and a rest, both by sparse matrix instructions. An entry of the rest is packed in ENTRY bytes."""
    p = Product(facts)
    tokens = padded(p.t, 8, 32)
    half = footprint("2:4", p.s).bytes
    rest = footprint("2:4+CSR", p.s).entries - footprint("2:4", p.s).entries
    sweeps = ceil(tokens / 32)
    rows = rows_of_program(p.n, sizes)
    return Work(
        "2:4+CSR",
        {
            "cold": half + rest * ENTRY,
            "warm": p.warm,
            "reread": (half + rest * ENTRY) * (sweeps - 1),
        },
        {"mac": float(p.n * p.k * tokens)},
        {
            **_reads(p, ceil(p.n / rows) * tokens * p.k * p.item),
            "entry": rest * sweeps,
            "decode": float(p.n * p.k * sweeps),
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
    fill = p.s.stored / max(f.entries, 1.0)
    longest = largest(p.s, 0) / max(columns * fill, 1e-9)
    fullest = min(ceil(p.k / columns), max(longest, f.units / max(f.slices, 1.0)))
    turned = {"x_l2": 0.0, "x_turned": 0.0}
    # Here columns are what kernels have first.
    turned["x_l2" if p.operation.streams_columns else "x_turned"] = (
        f.units * columns * max(p.t, LEAST_TOKENS) * p.item
    )
    return Work(
        f"blocks-{nearest_size(rows)}",
        {"cold": f.bytes, "warm": p.warm},
        {f"mac_{p.type}": f.entries * max(p.t, LEAST_TOKENS)},
        {
            **turned,
            "block": f.units * across,
            "wave": waves(programs, sizes),
            "long": float(fullest),
        },
        {"call": 1},
    )


def nearest_size(rows: int) -> int:
    """The size of blocks that has been measured and is nearest."""
    return min((16, 32, 64), key=lambda size: abs(size - rows))


def _bitmap(facts: Facts, sizes: Sizes) -> Work:
    """Bits and packed values, decompressed on chip."""
    p = Product(facts)
    tokens = padded(p.t)
    sweeps = ceil(tokens / 128)
    return Work(
        "bitmap",
        {"cold": p.stored, "warm": p.warm},
        {"mac": float(p.n * p.k * tokens)},
        {
            "decode": float(p.n * p.k * sweeps),
            "entry": float(p.s.stored * sweeps),
            **_reads(p, ceil(p.n / 64) * tokens * p.k * p.item),
            "long": ceil(p.k / 64) * waves(ceil(p.n / 64) * sweeps / RESIDENT, sizes),
        },
        {"call": 1},
    )


def _rows(facts: Facts, sizes: Sizes) -> Work:
    """Sparse rows: balanced kernels where columns are contiguous, else the general path."""
    p = Product(facts)
    nnz = float(p.s.stored)
    gathered = nnz * p.t * p.item
    stays = min(1.0, sizes["l2"] / max(float(p.k * p.t * p.item), 1.0))
    longest = float(largest(p.s, 0 if p.operation.by_rows else 1))
    mean = nnz / max(p.n, 1)
    skewed = longest > SKEWED * mean + 64
    bytes_ = {"cold": p.stored, "warm": p.warm}
    if not p.operation.has_row_kernel:
        return Work(
            "rows-general", bytes_, {},
            {"x_l2": gathered * stays, "x_dram": gathered * (1 - stays), "entry": nnz,
             "term": nnz * p.t, "program": float(p.n * ceil(p.t / 128)), "long": longest},
            {"call": 1},
        )  # fmt: skip
    if p.operation.kind == SPMV:
        bins = skewed or mean >= LONG
        return Work(
            f"vector-{'bins' if bins else 'groups'}", bytes_, {},
            {"entry": nnz, "segment": float(p.n), "long": min(longest, 1024.0)},
            {"call": 1},
        )  # fmt: skip
    line = max(16, 128 // p.item)
    wide = 4 * line if mean <= SHORT and not skewed else 128 if skewed else line
    across = ceil(p.t / wide)
    segments = p.n + nnz / PART
    return Work(
        f"segments-{p.type}", bytes_, {},
        {"x_l2": gathered * stays, "x_dram": gathered * (1 - stays), "entry": nnz * across,
         "segment": segments * across, "long": min(longest, float(PART))},
        {"call": 1},
    )  # fmt: skip


def _dense(facts: Facts, sizes: Sizes) -> Work:
    """A generated product of dense matrices: the general path, no matrix units. A program goes along all of k."""
    p = Product(facts)
    programs = ceil(p.n / 64) * ceil(p.t / 16)
    return Work(
        "dense-general",
        {"cold": float(p.n * p.k * p.item), "warm": p.warm},
        {"mac": float(p.n * p.k * padded(p.t))},
        {"long": p.k * waves(programs / RESIDENT, sizes)},
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
    found = dense_product(facts)
    name = facts.operation.expression.inputs[0].name
    item, bits = facts.item(name), TYPES.get(facts.tensor(name).dtype, "32")
    n, k, t, batch = found.rows, found.summed, found.columns, found.batch
    cold = float(batch * n * k * item)
    if found.vector:
        return Work(f"cublas-vector-{bits}", {"cold": cold * t}, {}, {}, {"call": 1})
    tokens = padded(t, 16, 64)
    tiles = ceil(n / 128) * ceil(tokens / 128) * batch
    warm = float(batch * t * (n + k) * item)
    return Work(
        f"cublas-{bits}",
        {"cold": cold, "warm": warm},
        {"mac": float(batch * n * k * tokens)},
        {"wave": waves(tiles, sizes) * k},
        {"call": 1, "split": float(t <= 32 and k >= 1024 and tiles < sizes["processors"])},
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
    nnz = float(p.s.stored)
    longest = float(largest(p.s, 0))
    bytes_ = {"cold": p.stored, "warm": p.warm}
    if p.operation.kind == SPMV:
        return Work(
            f"cusparse-vector-{p.type}", bytes_, {},
            {"entry": nnz, "segment": float(p.n)}, {"call": 1},
        )  # fmt: skip
    if not p.operation.streams_columns:
        return Work(
            f"cusparse-turned-{p.type}", bytes_, {},
            {"entry": nnz, "term": nnz * p.t, "segment": float(p.n * p.t)}, {"call": 1},
        )  # fmt: skip
    gathered = nnz * p.t * p.item
    stays = min(1.0, sizes["l2"] / max(float(p.k * p.t * p.item), 1.0))
    return Work(
        f"cusparse-{p.type}", bytes_, {},
        {"x_l2": gathered * stays, "x_dram": gathered * (1 - stays), "entry": nnz,
         "segment": p.n * ceil(p.t / 32), "long": longest},
        {"call": 1},
    )  # fmt: skip


PRODUCTS: dict[str, Callable[[Facts, Sizes], Work]] = {
    "dense": _dense, "2:4": _grouped, "2:4+CSR": _residual, "BSR": _blocks, "BITMAP": _bitmap,
    "CSR": _rows, "CSC": _rows,
}  # fmt: skip
"""Products by format; of any other it is the general path."""
LIBRARIES: dict[str, Callable[[Facts, Sizes], Work]] = {
    "cusparselt": _cusparselt, "cusparse": _cusparse,
}  # fmt: skip
