"""A seeded generator of tensor-level programs as ``.mlir`` text, with operands for them.

They say what the expression language can't: functions, comparisons and selections in bodies,
several results and operations in a row with formats between them, sums that start from something,
named operations, conversions, extents that are known. The same number gives the same program.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.formats import parse_format
from sparsecc.storage.entries import from_coords
from sparsecc.storage.tensor import SparseTensor
from tests.oracle.generator import random_pattern, random_values
from tests.oracle.mlir_bodies import BodyWriter, Leaf, constant, signless

EXTENTS = (0, 1, 2, 3, 5, 7)
FORMATS: dict[int, tuple[str, ...]] = {
    0: ("dense",),
    1: ("dense", "SV", "*"),
    2: ("dense", "CSR", "CSR", "CSC", "DCSR", "COO", "BSR(2,2)", "ELL", "*"),
    3: ("dense", "CSF", "COO(3)", "dds", "CSF(1,2,0)", "*"),
}
DTYPES = {"f64": "f64", "f32": "f32", "i32": "i32", "i64": "i64", "i1": "bool", "ui8": "u8",
          "complex<f64>": "c128"}  # fmt: skip
"""Element types, and what the library calls them."""
FAMILIES = (("f64",), ("f64",), ("f32",), ("i32",), ("f64", "f32", "i32"), ("i64", "f64"), ("i1",),
            ("ui8",), ("complex<f64>", "f64"))  # fmt: skip
"""The element types of one program."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of a program: the loop that each of its dimensions belongs to, and how it is stored.

    ``exact``: its values are small whole numbers: comparisons and roundings of them are safe."""

    name: str
    indices: str
    element: str
    format: str
    exact: bool = True

    @property
    def encoded(self) -> bool:
        return self.format != "dense"


@dataclass(frozen=True)
class Program:
    """A program, the tensors that ``@main`` takes and gives, and the extents of its loops."""

    seed: int
    text: str
    arguments: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    extents: dict[str, int]
    loose: bool
    """Whether a format that the compiler chooses may store more zeros than a rule says."""

    def operands(self) -> dict[str, Any]:
        """What to call it with."""
        rng = np.random.default_rng(self.seed)
        return {a.name: self._operand(a, rng) for a in self.arguments}

    def _operand(self, tensor: Tensor, rng: np.random.Generator) -> Any:
        shape = tuple(self.extents[i] for i in tensor.indices)
        values = random_values(rng, shape, DTYPES[tensor.element])
        if not tensor.encoded:
            return values
        stored = random_pattern(rng, shape)
        name = (
            tensor.format
            if tensor.format != "*"
            else "SV"
            if len(shape) == 1
            else f"COO({len(shape)})"
        )
        fmt = parse_format(name, len(shape))
        if fmt.padded:
            stored &= values != 0
        return from_coords(np.nonzero(stored), values[stored], shape, fmt)


def generate(seed: int) -> Program:
    """The program of a number."""
    return _Generator(random.Random(seed * 7919 + 13)).program(seed)


def stored_entries(tensor: SparseTensor) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Where a tensor has entries."""
    mask = np.zeros(tensor.shape, np.bool_)
    mask[tensor.to_coords()[0]] = True
    return mask


class _Generator:
    """Writes statements one after the other; arguments are made when a statement wants one."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.letters = "ijk"
        self.extents = {
            i: rng.choice(EXTENTS if rng.random() < 0.15 else EXTENTS[1:]) for i in self.letters
        }
        self.static = {i for i in self.letters if rng.random() < 0.3}
        self.elements = rng.choice(FAMILIES)
        self.arguments: list[Tensor] = []
        self.made: list[Tensor] = []
        self.lines: list[str] = []
        self.counter = 0
        self.loose = False

    def program(self, seed: int) -> Program:
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            self.rng.choice((self.generic,) * 6 + (self.named, self.convert))()
        if self.rng.random() < 0.1:
            self.argument("ij", None)  # nobody reads it
        given = [
            *self.made[-1:],
            *([self.rng.choice(self.made)] if self.rng.random() < 0.2 else []),
        ]
        self.loose |= len(self.made) > 1 and any(
            t.format == "*" for t in (*self.made, *self.arguments)
        )
        self.loose |= any(not t.indices for t in self.made[:-1]) or any(
            t.format == "*" and len(t.indices) == 1 for t in self.arguments
        )
        return Program(
            seed, self.text(given), tuple(self.arguments), tuple(given), self.extents, self.loose
        )

    def text(self, given: Sequence[Tensor]) -> str:
        parameters = ", ".join(f"%{a.name}: {self.type(a)}" for a in self.arguments)
        types = ", ".join(self.type(t) for t in given)
        values = ", ".join(f"%{t.name}" for t in given)
        head = f"func.func @main({parameters}) -> ({types}) {{"
        return "\n".join(
            [head, *(f"  {line}" for line in self.lines), f"  return {values} : {types}", "}", ""]
        )

    # -- tensors -----------------------------------------------------------------------------------

    def type(self, tensor: Tensor) -> str:
        extents = [str(self.extents[i]) if i in self.static else "?" for i in tensor.indices]
        encoding = ""
        if tensor.format == "*":
            encoding = f", {EncodingAttr(None)}"
        elif tensor.encoded:
            encoding = f", {EncodingAttr(parse_format(tensor.format, len(tensor.indices)))}"
        return f"tensor<{''.join(f'{e}x' for e in extents)}{tensor.element}{encoding}>"

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def line(self, text: str, stem: str = "v") -> str:
        """A statement; the name of its value."""
        name = self.fresh(stem)
        self.lines.append(f"%{name} = {text}")
        return name

    def argument(self, indices: str, element: str | None, format: str | None = None) -> Tensor:
        format = format or self.rng.choice(FORMATS[len(indices)])
        made = Tensor(self.fresh("a"), indices, element or self.rng.choice(self.elements), format)
        self.arguments.append(made)
        return made

    def input(self) -> Tensor:
        """Something to read: what a statement made, an argument, or a new one."""
        if self.made and self.rng.random() < 0.5:
            return self.rng.choice(self.made)
        if self.arguments and self.rng.random() < 0.2:
            return self.rng.choice(self.arguments)
        rank = self.rng.choice((0, 1, 1, 2, 2, 2, 2, 3))
        return self.argument("".join(self.rng.sample(self.letters, rank)), None)

    def start(self, out: Tensor, needed: bool) -> tuple[str, bool]:
        """What a result starts from, and whether that is something else than zeros."""
        draw = self.rng.random()
        if draw < 0.1:
            return self.argument(out.indices, out.element, out.format).name, True
        dynamic = ", ".join(f"%{self.size(i)}" for i in out.indices if i not in self.static)
        type_ = self.type(out)
        if out.encoded:
            return self.line(f"tensor.empty({dynamic}) : {type_}"), False
        number = self.rng.choice((0, 2, 3)) if draw < 0.4 else 0
        value = self.line(constant(number, signless(out.element)), "c")
        if out.element.startswith("ui"):
            kind = signless(out.element)
            cast = f"builtin.unrealized_conversion_cast %{value} : {kind} to {out.element}"
            value = self.line(cast, "c")
        if out.element.startswith("complex"):
            sizes = f"[{dynamic}]" if dynamic else ""
            return self.line(f"tensor.splat %{value}{sizes} : {type_}"), number != 0
        empty = self.line(f"tensor.empty({dynamic}) : {type_}")
        if not needed and self.rng.random() < 0.3:
            return empty, False
        text = f"linalg.fill ins(%{value} : {out.element}) outs(%{empty} : {type_}) -> {type_}"
        return self.line(text), number != 0

    def size(self, index: str) -> str:
        """The extent of a loop at run time, from any tensor that has it."""
        have = [t for t in (*self.arguments, *self.made) if index in t.indices]
        tensor = self.rng.choice(have)
        number = self.line(f"arith.constant {tensor.indices.index(index)} : index", "c")
        return self.line(f"tensor.dim %{tensor.name}, %{number} : {self.type(tensor)}", "n")

    def finish(self, out: Tensor, text: str) -> None:
        self.lines.append(f"%{out.name} = {text}")
        self.made.append(out)

    # -- statements --------------------------------------------------------------------------------

    def generic(self) -> None:
        rng = self.rng
        inputs = [self.input() for _ in range(rng.choice((1, 2, 2, 3)))]
        used = sorted({i for t in inputs for i in t.indices})
        reduced = rng.sample(used, rng.randint(0, len(used))) if rng.random() < 0.5 else []
        kept = [i for i in used if i not in reduced]
        rng.shuffle(kept)
        element = rng.choice([t.element for t in inputs])
        loops = [*kept, *reduced]
        body = BodyWriter(rng, [Leaf(f"x{n}", t.element, t.exact) for n, t in enumerate(inputs)])
        term, exact = body.value(element, rng.choice((0, 1, 2, 2, 3)))
        out = Tensor(self.fresh("t"), "".join(kept), element, rng.choice(FORMATS[len(kept)]), exact)
        start, something = self.start(out, bool(reduced))
        if reduced or something and rng.random() < 0.7:
            term = body.combined(term, "acc", element, sums_only=rng.random() < 0.95)
        maps = [self.map(loops, t.indices) for t in (*inputs, out)]
        kinds = ['"parallel"'] * len(kept) + ['"reduction"'] * len(reduced)
        ins = (
            f"ins({', '.join(f'%{t.name}' for t in inputs)} : {', '.join(map(self.type, inputs))})"
        )
        arguments = [f"%x{n}: {t.element}" for n, t in enumerate(inputs)] + [f"%acc: {element}"]
        lines = [
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            f"iterator_types = [{', '.join(kinds)}]}}",
            f"  {ins} outs(%{start} : {self.type(out)}) {{",
            f"^bb0({', '.join(arguments)}):",
            *(f"  {line}" for line in body.lines),
            f"  linalg.yield %{term} : {element}",
            f"}} -> {self.type(out)}",
        ]
        self.finish(out, "\n  ".join(lines))

    def map(self, loops: Sequence[str], indices: str) -> str:
        return f"affine_map<({', '.join(loops)}) -> ({', '.join(indices)})>"

    def named(self) -> None:
        name, ins, indices = self.rng.choice(
            (
                ("matmul", ("ij", "jk"), "ik"),
                ("matvec", ("ij", "j"), "i"),
                ("vecmat", ("i", "ij"), "j"),
                ("dot", ("i", "i"), ""),
                ("matmul_transpose_b", ("ij", "kj"), "ik"),
                ("add", ("ij", "ij"), "ij"),
                ("mul", ("ij", "ij"), "ij"),
                ("sub", ("i", "i"), "i"),
            )
        )
        element = self.rng.choice(
            [e for e in self.elements if not e.startswith(("complex", "ui"))] or ["f64"]
        )
        inputs = [self.argument(i, element) for i in ins]
        out = Tensor(self.fresh("t"), indices, element, self.rng.choice(FORMATS[len(indices)]))
        start, _ = self.start(out, True)
        names, types = ", ".join(f"%{t.name}" for t in inputs), ", ".join(map(self.type, inputs))
        outs = f"outs(%{start} : {self.type(out)}) -> {self.type(out)}"
        self.finish(out, f"linalg.{name} ins({names} : {types}) {outs}")

    def convert(self) -> None:
        source = self.rng.choice(self.made) if self.made else self.input()
        rank = len(source.indices)
        formats = [f for f in FORMATS[rank] if f not in ("*", source.format)]
        if not rank or not formats:
            return self.generic()
        out = Tensor(
            self.fresh("t"), source.indices, source.element, self.rng.choice(formats), source.exact
        )
        self.finish(
            out, f"sparse_tensor.convert %{source.name} : {self.type(source)} to {self.type(out)}"
        )
