"""Random products with a stored weight: drawn from a seed, computed by a kernel, held against float64.

A *program* is an expression with a weight; its cases share compiled variants. Whatever is drawn comes from the seed
that a failure prints: ``run(program(format, dtype, seed), machine, cases)`` repeats it anywhere.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from sparsecc import api
from sparsecc.diagnostics import SparseccError
from sparsecc.formats import parse_format
from sparsecc.runtime.compiled_kernel import BadOutput
from sparsecc.runtime.machines import numpy_dtype
from sparsecc.storage.entries import from_coords

Tensor = Any

FLOATS = ("f16", "bf16", "f32")
HALVES = ("f16", "bf16")
FORMATS: dict[str, tuple[str, ...]] = {
    "dense": FLOATS,
    "2:4": ("f16", "bf16", "i8"),
    "2:4+CSR": HALVES,
    "BITMAP": FLOATS,
    "BSR(16,16)": FLOATS,
    "BSR(32,32)": FLOATS,
    "BSR(64,64)": FLOATS,
    "BSR(5,7)": FLOATS,
    "CSR": FLOATS,
    "COO": FLOATS,
    "DCSR": FLOATS,
}
"""The formats that a GPU path is claimed for, with the element types of each."""
GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    f"{name} {dtype}": (name, (dtype,)) for name in ("2:4", "2:4+CSR") for dtype in FORMATS[name]
} | {name: (name, dtypes) for name, dtypes in FORMATS.items() if not name.startswith("2:4")}
"""What is tested by itself: a format with the types that its programs take in turn."""

TORCH = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "i8": "int8", "i32": "int32"}
ROUNDING = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-23}
"""The error of rounding a result once."""
SUMS = 2.0**-18
"""The error of a sum in f32, over the sum of the absolute values."""
LEAST = 2.0**-24
"""The error of what is next to zero: half of an f16 has no more digits."""

REPEATS = 3
ENDS = (8, 16, 32, 64, 128, 256, 300)
"""Ranges of tokens, by their ends: a program is compiled for some of them."""


@dataclass(frozen=True)
class Program:
    """An expression, and the seed that everything else comes from."""

    format: str
    dtype: str
    seed: int
    text: str
    rows: int
    columns: int
    batch: int
    """0: none."""
    density: float
    ranges: tuple[tuple[int, int], ...]
    """Of tokens: first and last."""

    @property
    def columns_first(self) -> bool:
        """Whether the tokens are the last dimension of X and of the result."""
        return "m]" in self.text.partition("=")[0]

    @property
    def out_dtype(self) -> str | None:
        return "i32" if self.dtype == "i8" else None

    def __str__(self) -> str:
        return f"{self.format} {self.dtype} seed {self.seed}: {self.text} with W {self.rows}x{self.columns}"


def programs(group: str, count: int) -> Iterator[Program]:
    """The programs of a group, by their seeds."""
    fmt, dtypes = GROUPS[group]
    for seed in range(count):
        yield program(fmt, dtypes[seed % len(dtypes)], seed)


def program(fmt: str, dtype: str, seed: int) -> Program:
    """A program of a format and type."""
    rng = random.Random(f"{fmt} {dtype} {seed}")
    batch = rng.choice((0, 0, 0, 2, 3))
    b = "b," if batch else ""
    text = rng.choice((
        f"Y[{b}m,n] = X[{b}m,k] * W[n,k]", f"Y[{b}n,m] = W[n,k] * X[{b}k,m]",
        f"Y[{b}m,n] = W[n,k] * X[{b}m,k]",
    ))  # fmt: skip
    if rng.random() < 0.4 and dtype != "i8":
        text += " + v[n]"
    least = 4 if fmt.startswith("2:4") else 1
    columns = least * rng.choice((1, 2, rng.randint(2, 600 // least), rng.randint(2, 600 // least)))
    if rng.random() < 0.3:
        columns = rng.choice((64, 128, 512))
    rows = rng.choice((1, 16, rng.randint(1, 300) | 1, rng.randint(1, 300), 128))
    starts = (1, *(end + 1 for end in ENDS[:-1]))
    ranges = tuple(rng.sample(list(zip(starts, ENDS, strict=True)), 3))
    density = rng.choice((0.0, 0.02, 0.1, 0.3, 0.5, 1.0))
    return Program(fmt, dtype, seed, text, rows, columns, batch, density, ranges)


class Maker:
    """What a program's cases are made of, on a machine: ``cuda``, or ``interpreter`` (NumPy arrays)."""

    def __init__(self, program: Program, machine: str) -> None:
        self.program, self.machine = program, machine
        self.torch: Any = import_module("torch")
        self.generator = self.torch.Generator().manual_seed(program.seed)
        self.rng = random.Random(program.seed)

    def numbers(self, *shape: int) -> Tensor:
        """Numbers of the program's type, as a torch tensor of the host."""
        torch, dtype = self.torch, self.program.dtype
        if dtype == "i8":
            return torch.randint(-128, 128, shape, generator=self.generator, dtype=torch.int8)
        return torch.randn(*shape, generator=self.generator).to(getattr(torch, TORCH[dtype]))

    def weight(self) -> Tensor:
        """A dense weight that fits the format, on the host. Whole blocks are empty, and rows."""
        p, torch = self.program, self.torch
        dense = self.numbers(p.rows, p.columns)
        if p.format == "dense":
            return dense
        if p.format == "2:4":
            score = torch.rand(p.rows, p.columns // 4, 4, generator=self.generator)
            keep = torch.zeros_like(score, dtype=torch.bool)
            keep.scatter_(-1, score.topk(2, dim=-1).indices, True)
            dense = dense.masked_fill(~keep.view(p.rows, p.columns), 0)
            return dense.masked_fill(self.random(p.rows, p.columns) < 0.1, 0)
        if p.format.startswith("BSR"):
            r, c = blocks(p.format)
            mask = self.random(-(-p.rows // r), -(-p.columns // c)) < p.density
            mask = mask.repeat_interleave(r, 0).repeat_interleave(c, 1)
            return dense.masked_fill(~mask[: p.rows, : p.columns], 0)
        mask = self.random(p.rows, p.columns) < p.density
        return dense.masked_fill(~(mask & (self.random(p.rows, 1) < 0.8)), 0)

    def random(self, *shape: int) -> Tensor:
        return self.torch.rand(*shape, generator=self.generator)

    def given(self, tensor: Tensor) -> Any:
        """A dense tensor as the machine takes it."""
        return to_numpy(tensor) if self.machine == "interpreter" else tensor.cuda()

    def stored(self, dense: Tensor) -> tuple[Any, str]:
        """The weight in the program's format, and the format's name with its widths: torch's own tensors where torch
        has the format, now and then ours."""
        p = self.program
        if p.format == "dense":
            return self.given(dense), "dense"
        of_torch = self.machine != "interpreter" and self.rng.random() < 0.7
        if p.format in ("2:4", "2:4+CSR") and self.machine != "interpreter":
            return dense.cuda(), p.format
        if of_torch and p.format == "CSR":
            made = dense.cuda().to_sparse_csr()
            parts = (made.crow_indices().int(), made.col_indices().int(), made.values())
            return self.torch.sparse_csr_tensor(*parts, size=dense.shape), "CSR"
        if of_torch and p.format == "COO":
            return dense.cuda().to_sparse_coo().coalesce(), "COO@i64/i64"
        if of_torch and p.format.startswith("BSR"):
            r, c = blocks(p.format)
            if p.rows % r == 0 and p.columns % c == 0:
                made = dense.cuda().to_sparse_bsr((r, c))
                parts = (made.crow_indices().int(), made.col_indices().int(), made.values())
                return self.torch.sparse_bsr_tensor(*parts, size=dense.shape), p.format
        array = to_numpy(dense)
        places = np.nonzero(array)
        return from_coords(places, array[places], array.shape, parse_format(p.format, 2)), p.format


def blocks(fmt: str) -> tuple[int, int]:
    """The extents of the blocks of ``BSR(5,7)``."""
    rows, columns = fmt[4:-1].split(",")
    return int(rows), int(columns)


def to_numpy(tensor: Tensor) -> np.ndarray[Any, Any]:
    """A host tensor as an array; bf16 is that of ml_dtypes."""
    if str(tensor.dtype) == "torch.bfloat16":
        return tensor.view(import_module("torch").int16).numpy().view(numpy_dtype("bf16"))
    return tensor.numpy()


def run(p: Program, machine: str, count: int) -> Iterator[str]:
    """What is wrong with ``count`` cases of a program, one text a case; empty where nothing is."""
    maker = Maker(p, machine)
    dense = maker.weight()
    weight, fmt = maker.stored(dense)
    bias = maker.numbers(p.rows) if "v[" in p.text else None
    batch = (None,) if p.batch else ()
    specs = {
        "X": api.Spec((*batch, None, None), p.dtype),
        "W": api.Spec((None, None), p.dtype, fmt),
    }
    operands = {"W": weight}
    if bias is not None:
        specs["v"], operands["v"] = api.Spec((None,), p.dtype), maker.given(bias)
    kernel: Any = api.compile(
        p.text, out="dense", out_dtype=p.out_dtype, operands=specs, interpret=machine == "interpreter",
        target="sm_90" if machine == "interpreter" else "gpu",
    )  # fmt: skip
    if kernel.gpu_slots["W"].packing is not None:
        operands["W"] = kernel.pack(W=maker.given(dense))
    for number in range(count):
        tokens = maker.rng.randint(*p.ranges[number % len(p.ranges)])
        shape = (p.columns, tokens) if p.columns_first else (tokens, p.columns)
        x = maker.numbers(*((p.batch, *shape) if p.batch else shape))
        place = f"{p}, M = {tokens}, case {number}"
        try:
            found = case(
                maker, kernel, operands | {"X": maker.given(x)}, reference(p, x, dense, bias)
            )
        except (SparseccError, RuntimeError, ValueError) as error:
            found = f"{type(error).__name__}: {error}"
        yield f"{place}: {found}" if found else ""


def case(maker: Maker, kernel: Any, operands: dict[str, Any], wanted: tuple[Tensor, Tensor]) -> str:
    """Run a kernel on poisoned memory, several times: what is wrong with the results, or empty."""
    torch = maker.torch
    expected, bound = wanted
    dtype = getattr(torch, TORCH[maker.program.out_dtype or maker.program.dtype])
    if maker.machine == "interpreter":
        with np.errstate(all="ignore"):
            result = np.asarray(kernel.call(operands))
        found = torch.from_numpy(result.astype(np.float64))
        # Triton's interpreter cuts f32 to bf16 instead of rounding it.
        return differs(found, expected, bound * (2 if maker.program.dtype == "bf16" else 1))
    poison = float("nan") if dtype.is_floating_point else -(2**31) + 1
    first: Tensor = None
    for turn in range(1 + REPEATS):
        room = torch.full(expected.shape, poison, device="cuda", dtype=dtype)
        try:
            result = kernel.call(operands, room)
        except BadOutput:  # The kernel adds to memory that it takes itself: where the poison was.
            del room
            result = kernel.call(operands)
        if result.dtype != dtype:
            return f"the result is {result.dtype}, not {dtype}"
        if turn == 0:
            problem = differs(result.double().cpu(), expected, bound)
            if problem:
                return problem
            first = result.clone()
        elif not torch.equal(bits(torch, first), bits(torch, result)):
            return f"launch {turn} gave other bits than the first"
    return ""


def bits(torch: Any, tensor: Tensor) -> Tensor:
    return tensor.contiguous().view(torch.int16 if tensor.element_size() == 2 else torch.int32)


def differs(found: Tensor, expected: Tensor, bound: Tensor) -> str:
    """Where a result is further from the reference than its bound: NaN is."""
    if found.shape != expected.shape:
        return f"shape {tuple(found.shape)}, not {tuple(expected.shape)}"
    wrong = ~((found - expected).abs() <= bound)
    if not wrong.any():
        return ""
    at = tuple(int(n) for n in wrong.nonzero()[0])
    return (
        f"{int(wrong.sum())} of {wrong.numel()} are wrong, the first at {at}: "
        f"{float(found[at])} for {float(expected[at])} +- {float(bound[at]):.2g}"
    )


def reference(p: Program, x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """The result in float64, and how far from it a right one may be."""
    x, weight = x.double(), weight.double()
    product, size = (_product(p, a, b) for a, b in ((x, weight), (x.abs(), weight.abs())))
    if p.dtype == "i8":
        return product, size * 0
    added = product * 0
    if bias is not None:
        added = added + (bias.double()[:, None] if p.columns_first else bias.double())
    expected = product + added
    rounding = ROUNDING[p.dtype]
    # A bias in a kernel of its own adds to what was rounded before.
    bound = rounding * (expected.abs() + (product.abs() if bias is not None else 0))
    return expected, 1.01 * bound + SUMS * (size + added.abs()) + LEAST


def _product(p: Program, x: Tensor, weight: Tensor) -> Tensor:
    return weight @ x if p.columns_first else x @ weight.t()
