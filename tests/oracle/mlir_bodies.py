"""Random bodies of ``linalg.generic`` as text: expression trees over typed leaves."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

FLOATS = ("f64", "f32")


@dataclass(frozen=True)
class Leaf:
    """A block argument; ``exact``: small whole numbers."""

    name: str
    element: str
    exact: bool


def signless(element: str) -> str:
    """What arithmetic on an element is spelled with."""
    return element.removeprefix("u")


def constant(value: int, element: str) -> str:
    """The operation that makes a number of a type."""
    if element.startswith("complex"):
        return f"complex.constant [{value}.0, 0.0] : {element}"
    if element in FLOATS:
        return f"arith.constant {value}.0 : {element}"
    return (
        f"arith.constant {'true' if value else 'false'}"
        if element == "i1"
        else (f"arith.constant {value} : {element}")
    )


class BodyWriter:
    """Writes operations; values are names with whether they are exact.

    Operations that are not continuous (comparisons, rounding) are only put on exact values: the two
    sides of a test may differ in the last bit."""

    def __init__(self, rng: random.Random, leaves: Sequence[Leaf]) -> None:
        self.rng = rng
        self.leaves = leaves
        self.lines: list[str] = []
        self.entered: dict[str, str] = {}

    def op(self, text: str) -> str:
        name = f"b{len(self.lines)}"
        self.lines.append(f"%{name} = {text}")
        return name

    def value(self, element: str, depth: int) -> tuple[str, bool]:
        """A value of an element type, as a tensor holds it."""
        name, exact = self.tree(signless(element), depth)
        return self.leave(name, element), exact

    def leave(self, name: str, element: str) -> str:
        if not element.startswith("ui"):
            return name
        return self.op(
            f"builtin.unrealized_conversion_cast %{name} : {signless(element)} to {element}"
        )

    def combined(self, term: str, accumulator: str, element: str, sums_only: bool) -> str:
        """The accumulator with a term added, subtracted,
        or something that the compiler may refuse."""
        kind = signless(element)
        if kind != element:
            term, accumulator = (
                self.op(f"builtin.unrealized_conversion_cast %{n} : {element} to {kind}")
                for n in (term, accumulator)
            )
        if kind == "i1":
            ops = ["arith.ori"] if sums_only else ["arith.xori", "arith.andi"]
        elif kind in FLOATS:
            ops = (
                ["arith.addf", "arith.addf", "arith.subf"]
                if sums_only
                else ["arith.maximumf", "arith.mulf"]
            )
        elif kind.startswith("complex"):
            ops = ["complex.add", "complex.sub"] if sums_only else ["complex.mul"]
        else:
            ops = (
                ["arith.addi", "arith.addi", "arith.subi"]
                if sums_only
                else ["arith.maxsi", "arith.muli"]
            )
        op = self.rng.choice(ops)
        pair = [accumulator, term]
        if "sub" not in op and self.rng.random() < 0.3:
            pair.reverse()
        return self.leave(self.op(f"{op} %{pair[0]}, %{pair[1]} : {kind}"), element)

    # -- trees -------------------------------------------------------------------------------------

    def tree(self, kind: str, depth: int) -> tuple[str, bool]:
        if depth <= 0:
            return self.leaf(kind)
        if kind in FLOATS:
            return self.float(kind, depth)
        if kind.startswith("complex"):
            return self.complex(kind, depth)
        return self.integer(kind, depth)

    def leaf(self, kind: str) -> tuple[str, bool]:
        if self.rng.random() < 0.08:
            return self.op(constant(self.rng.choice((0, 1, 2, 3)), kind)), True
        same = [leaf for leaf in self.leaves if signless(leaf.element) == kind]
        leaf = self.rng.choice(same if same and self.rng.random() < 0.7 else self.leaves)
        return self.cast(self.enter(leaf), leaf, kind), leaf.exact

    def enter(self, leaf: Leaf) -> str:
        if not leaf.element.startswith("ui"):
            return leaf.name
        if leaf.name not in self.entered:
            kind = signless(leaf.element)
            text = f"builtin.unrealized_conversion_cast %{leaf.name} : {leaf.element} to {kind}"
            self.entered[leaf.name] = self.op(text)
        return self.entered[leaf.name]

    def cast(self, name: str, leaf: Leaf, kind: str) -> str:
        """A leaf in another type."""
        source = signless(leaf.element)
        if source == kind:
            return name
        if source.startswith("complex"):
            part = self.op(f"complex.{self.rng.choice(('re', 'im'))} %{name} : {source}")
            return part if kind == "f64" else self.between(part, "f64", kind, False)
        if kind.startswith("complex"):
            real = self.between(name, source, "f64", leaf.element.startswith("ui"))
            zero = self.op(constant(self.rng.choice((0, 0, 0, 2)), "f64"))
            return self.op(f"complex.create %{real}, %{zero} : {kind}")
        return self.between(name, source, kind, leaf.element.startswith("ui"))

    def between(self, name: str, source: str, kind: str, unsigned: bool) -> str:
        if source == kind:
            return name
        sign = "u" if unsigned or source == "i1" else "s"
        if source in FLOATS and kind in FLOATS:
            op = "extf" if kind == "f64" else "truncf"
        elif source in FLOATS:
            op = "fptosi"
        elif kind in FLOATS:
            op = f"{sign}itofp"
        else:
            op = f"ext{sign}i" if int(kind[1:]) > int(source[1:]) else "trunci"
        return self.op(f"arith.{op} %{name} : {source} to {kind}")

    def pair(self, kind: str, depth: int) -> tuple[str, str, bool]:
        (a, exact), (b, also) = self.tree(kind, depth - 1), self.tree(kind, depth - 1)
        return a, b, exact and also

    def float(self, kind: str, depth: int) -> tuple[str, bool]:
        draw = self.rng.random()
        if draw < 0.55:
            a, b, exact = self.pair(kind, depth)
            op = self.rng.choice(
                ("mulf", "mulf", "addf", "subf", "maximumf", "minimumf", "minnumf")
            )
            return self.op(f"arith.{op} %{a}, %{b} : {kind}"), exact
        if draw < 0.63:
            a, b, _ = self.pair(kind, depth)
            return self.op(f"arith.divf %{a}, %{b} : {kind}"), False
        a, exact = self.tree(kind, depth - 1)
        if draw < 0.70:
            return self.op(f"arith.negf %{a} : {kind}"), exact
        if draw < 0.82:
            op = self.rng.choice(("absf", "absf", "sin", "exp", "tanh", "sqrt", "cos"))
            if op == "sqrt":
                a = self.op(f"math.absf %{a} : {kind}")
            return self.op(f"math.{op} %{a} : {kind}"), exact and op == "absf"
        if exact and draw < 0.88:
            op = self.rng.choice(("floor", "ceil", "trunc", "roundeven", "round"))
            half = self.op(f"arith.constant 0.5 : {kind}")
            scaled = self.op(f"arith.mulf %{a}, %{half} : {kind}")
            return self.op(f"math.{op} %{scaled} : {kind}"), True
        b, also = self.tree(kind, depth - 1)
        if not (exact and also):
            return self.op(f"arith.addf %{a}, %{b} : {kind}"), False
        predicate = self.rng.choice(("olt", "oeq", "ogt", "une", "ule", "uge", "one", "ueq"))
        flag = self.op(f"arith.cmpf {predicate}, %{a}, %{b} : {kind}")
        if self.rng.random() < 0.3:
            return self.op(f"arith.uitofp %{flag} : i1 to {kind}"), True
        return self.op(f"arith.select %{flag}, %{a}, %{b} : {kind}"), True

    def integer(self, kind: str, depth: int) -> tuple[str, bool]:
        a, b, exact = self.pair(kind, depth)
        if kind == "i1":
            op = self.rng.choice(("andi", "ori", "xori", "addi", "muli", "andi"))
            return self.op(f"arith.{op} %{a}, %{b} : i1"), True
        draw = self.rng.random()
        if draw < 0.7:
            names = (
                "muli",
                "muli",
                "addi",
                "subi",
                "andi",
                "ori",
                "xori",
                "maxsi",
                "minsi",
                "maxui",
            )
            return self.op(f"arith.{self.rng.choice(names)} %{a}, %{b} : {kind}"), exact
        if draw < 0.8:
            by = self.op(constant(self.rng.choice((2, 3)), kind))
            op = self.rng.choice(("divsi", "remsi", "divui", "remui", "shli", "shrsi", "shrui"))
            return self.op(f"arith.{op} %{a}, %{by} : {kind}"), exact
        if draw < 0.87:
            zero = self.op(constant(0, kind))
            return self.op(f"arith.subi %{zero}, %{a} : {kind}"), exact
        predicate = self.rng.choice(("eq", "ne", "slt", "sge", "ugt", "ule"))
        flag = self.op(f"arith.cmpi {predicate}, %{a}, %{b} : {kind}")
        if self.rng.random() < 0.3:
            return self.op(f"arith.extui %{flag} : i1 to {kind}"), True
        return self.op(f"arith.select %{flag}, %{a}, %{b} : {kind}"), exact

    def complex(self, kind: str, depth: int) -> tuple[str, bool]:
        a, b, exact = self.pair(kind, depth)
        draw = self.rng.random()
        if draw < 0.7:
            op = self.rng.choice(("mul", "mul", "add", "sub"))
            return self.op(f"complex.{op} %{a}, %{b} : {kind}"), exact
        if draw < 0.85:
            return self.op(f"complex.neg %{a} : {kind}"), exact
        real, imaginary = self.op(f"complex.im %{a} : {kind}"), self.op(f"complex.re %{b} : {kind}")
        return self.op(f"complex.create %{real}, %{imaginary} : {kind}"), exact
