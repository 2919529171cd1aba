"""Scalar operations as C expressions; a vector's expression is that of its element ``lane``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, complex
from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    i1,
)
from xdsl.ir import Attribute, Operation, SSAValue

from sparsecc.backends.cpu.c_types import (
    ADD,
    AND,
    ANY,
    CHOICE,
    EQUAL,
    FLOAT_BINARY,
    FLOAT_COMPARISONS,
    HELPERS,
    INT_BINARY,
    INT_COMPARISONS,
    LESS,
    LIBM,
    LOGIC,
    OR,
    PRIMARY,
    SHIFT,
    SIGNED,
    UNARY,
    XOR,
    Expr,
    c_type,
    element,
    float_literal,
)
from sparsecc.backends.cpu.llvm_types import alignment
from sparsecc.diagnostics import UnsupportedError


class NoCOperation(UnsupportedError):
    text = "the operation {name} has no C spelling yet"


Use = Callable[[SSAValue], Expr]

OPERANDS: dict[int, tuple[int, int]] = {
    **dict.fromkeys((SHIFT, AND, XOR, OR), (UNARY, UNARY)),
    **dict.fromkeys((LESS, EQUAL), (ADD, ADD)),
    ANY: (OR, OR),
}
"""How tightly operands have to bind where C's own rules are not what readers like."""


def combine(text: str, rank: int, kind: str, operands: Sequence[Expr]) -> Expr:
    """An expression that reads what its operands read."""
    variables = frozenset[str]().union(*(e.variables for e in operands))
    memories = frozenset[str]().union(*(e.memories for e in operands))
    return Expr(text, rank, kind, variables, memories)


def binary(sign: str, rank: int, kind: str, a: Expr, b: Expr) -> Expr:
    """``a sign b``."""
    left, right = OPERANDS.get(rank, (rank, rank + 1))
    found = combine(f"{a.at(left)} {sign} {b.at(right)}", rank, kind, [a, b])
    parts = (sign, a.text, b.text)
    return Expr(found.text, rank, kind, found.variables, found.memories, parts)


def cast(kind: str, e: Expr) -> Expr:
    """``(kind)e``."""
    if e.text.startswith(f"({kind})") and e.rank == UNARY:
        return e
    return combine(f"({kind}){e.at(UNARY)}", UNARY, kind, [e])


def negative(e: Expr, kind: str) -> Expr:
    """``-e``."""
    return combine(f"-{e.at(PRIMARY)}", UNARY, kind, [e])


def call(name: str, kind: str, operands: Sequence[Expr]) -> Expr:
    return combine(f"{name}({', '.join(e.text for e in operands)})", PRIMARY, kind, operands)


def wide(e: Expr, kind: str) -> Expr:
    """An operand of integer arithmetic in a type: cast where C would compute in another."""
    return cast(kind, e) if e.kind != kind and e.kind != "bool" else e


class Expressions:
    """Spells operations; ``helpers`` collects the texts of functions that the spelling calls."""

    def __init__(self, helpers: dict[str, str]) -> None:
        self.helpers = helpers

    def helper(self, op: str, kind: str) -> str:
        """The name of a helper for a type; its text is kept."""
        stem, text = HELPERS[op]
        real = kind.removesuffix(" _Complex")
        suffix = "f" if real == "float" else ""
        name = f"{stem}_{kind.replace(' _Complex', '_complex').removesuffix('_t')}"
        if name not in self.helpers:
            calls_pair = op in ("complex.mul", "complex.div")
            pair = self.helper("complex.create", kind) if calls_pair else ""
            self.helpers[name] = text.format(t=real, f=name, s=suffix, pair=pair)
        return name

    def constant(self, value: Attribute, type_: Attribute) -> Expr:
        """A literal."""
        kind = c_type(type_)
        if isinstance(value, FloatAttr):
            text = float_literal(value.value.data, kind)
        elif isinstance(value, IntegerAttr):
            number = value.value.data
            text = ("true" if number else "false") if type_ == i1 else str(number)
            if number == -(2**63):
                text = "INT64_MIN"
        else:
            raise NoCOperation(name="arith.constant")
        return Expr(text, UNARY if text.startswith("-") else PRIMARY, kind)

    def spell(self, op: Operation, use: Use) -> Expr:
        """The expression of an operation's result. Raises NoCOperation."""
        kind = c_type(op.results[0].type)
        match op:
            case arith.ConstantOp():
                return self.constant(op.value, op.result.type)
            case arith.CmpiOp():
                return self.compare_integers(op, use)
            case arith.CmpfOp():
                a, b = use(op.lhs), use(op.rhs)
                pattern = FLOAT_COMPARISONS[op.predicate.value.data]
                rank = PRIMARY if "(" in pattern else EQUAL if "=" in pattern else LESS
                if rank == PRIMARY:
                    return combine(pattern.format(a=a.text, b=b.text), UNARY, "bool", [a, b])
                return combine(pattern.format(a=a.at(ADD), b=b.at(ADD)), rank, "bool", [a, b])
            case arith.SelectOp():
                return self.choose(use(op.cond), use(op.lhs), use(op.rhs), kind)
            case arith.NegfOp() | complex.NegOp():
                return negative(use(op.operands[0]), kind)
            case complex.ReOp() | complex.ImOp():
                suffix = "f" if kind == "float" else ""
                name = "creal" if isinstance(op, complex.ReOp) else "cimag"
                return call(name + suffix, kind, [use(op.operands[0])])
            case complex.ConstantOp():
                assert isinstance(op.value, ArrayAttr)
                return self.pair([self.constant(p, p.get_type()) for p in _parts(op)], kind)
            case complex.CreateOp():
                return self.pair([use(op.real), use(op.imaginary)], kind)
            case arith.IndexCastOp():
                return self.index_cast(use(op.input), op)
            case _:
                return self.spell_by_name(op, use, kind, element(op.results[0].type))

    def spell_by_name(self, op: Operation, use: Use, kind: str, type_: Attribute) -> Expr:
        if op.name in FLOAT_BINARY:
            a, b = (use(v) for v in op.operands)
            return binary(*FLOAT_BINARY[op.name], kind, a, b)
        if op.name in LOGIC and type_ == i1:
            return self.logic(op.name, *(use(v) for v in op.operands))
        if op.name in INT_BINARY and (op.name not in HELPERS or isinstance(type_, IndexType)):
            a, b = (use(v) for v in op.operands)
            return self.integer(op.name, type_, kind, a, b)
        if op.name in HELPERS:
            return call(self.helper(op.name, kind), kind, [use(v) for v in op.operands])
        if op.name in LIBM:
            suffix = "f" if kind == "float" else ""
            return call(LIBM[op.name] + suffix, kind, [use(v) for v in op.operands])
        if op.name == "math.ctpop":
            return call("__builtin_popcountll", kind, [use(op.operands[0])])
        if op.name in ("arith.extf", "arith.truncf"):
            return cast(kind, use(op.operands[0]))
        if len(op.operands) == 1 and op.name.startswith("arith."):
            return self.conversion(op.name, use(op.operands[0]), element(op.operands[0].type), kind)
        raise NoCOperation(name=op.name)

    # -- kinds of operations -------------------------------------------------------------------

    def pair(self, parts: Sequence[Expr], kind: str) -> Expr:
        """A complex number; a plain 0 where both parts are."""
        if all(p.text in ("0.0", "0.0f") for p in parts):
            return Expr(parts[0].text, PRIMARY, kind)
        return call(self.helper("complex.create", kind), kind, parts)

    def choose(self, condition: Expr, a: Expr, b: Expr, kind: str) -> Expr:
        """``condition ? a : b``; with literal truth values, logic."""
        if a.text == "true":
            return binary("||", *LOGIC["arith.ori"][1:], "bool", condition, b)
        if b.text == "false":
            return binary("&&", *LOGIC["arith.andi"][1:], "bool", condition, a)
        if kind.endswith("_t"):
            a, b = wide(a, kind), wide(b, kind)
        text = f"{condition.at(CHOICE + 1)} ? {a.at(CHOICE + 1)} : {b.at(CHOICE)}"
        return combine(text, CHOICE, kind, [condition, a, b])

    def logic(self, name: str, a: Expr, b: Expr) -> Expr:
        sign, rank = LOGIC[name]
        if sign == "!=" and "true" in (a.text, b.text):
            flag = a if b.text == "true" else b
            return combine(f"!{flag.at(UNARY)}", UNARY, "bool", [flag])
        if sign == "||" and "true" in (a.text, b.text):
            return Expr("true", PRIMARY, "bool")
        return binary(sign, rank, "bool", a, b)

    def integer(self, name: str, type_: Attribute, kind: str, a: Expr, b: Expr) -> Expr:
        """Arithmetic on integers: indices never overflow or are negative, elements wrap around."""
        sign, rank = INT_BINARY[name]
        if isinstance(type_, IndexType):
            if b.text == "0" and sign in "+-":
                return a
            if not any(e.kind == kind and not e.text.isdigit() for e in (a, b)):
                a, b = wide(a, kind), wide(b, kind)
            return binary(sign, rank, kind, a, b)
        width = alignment(type_) * 8
        if name in SIGNED:
            found = binary(sign, rank, kind, wide(a, kind), wide(b, kind))
            return found if width >= 32 or rank < ADD else cast(kind, found)
        small = width < 32 and name in ("arith.addi", "arith.subi", "arith.muli")
        if not small:
            a, b = cast(f"u{kind}", a), cast(f"u{kind}", b)
        return cast(kind, binary(sign, rank, kind, a, b))

    def compare_integers(self, op: arith.CmpiOp, use: Use) -> Expr:
        number = op.predicate.value.data
        sign = INT_COMPARISONS[number]
        a, b = use(op.lhs), use(op.rhs)
        if number >= 6 and not isinstance(element(op.lhs.type), IndexType):
            unsigned = f"u{c_type(op.lhs.type)}"
            a, b = cast(unsigned, a), cast(unsigned, b)
        rank = EQUAL if sign in ("==", "!=") else LESS
        return binary(sign, rank, "bool", a, b)

    def index_cast(self, e: Expr, op: arith.IndexCastOp) -> Expr:
        kind = c_type(op.result.type)
        if kind == "int64_t":
            return e if e.kind != "int32_t" else cast(kind, e)
        found = cast(kind, e)
        return Expr(found.text, found.rank, kind, found.variables, found.memories, None, e.text)

    def conversion(self, name: str, e: Expr, source: Attribute, kind: str) -> Expr:
        flag = source == i1
        unsigned = e.kind if e.kind.startswith("u") or flag else f"u{c_type(source)}"
        match name:
            case "arith.extui":
                # Widening an unsigned value (or a flag) is what C does by itself.
                return e if unsigned == e.kind else cast(kind, cast(unsigned, e))
            case "arith.extsi":
                return negative(e, kind) if flag else cast(kind, e)
            case "arith.trunci":
                if kind == "bool":
                    return binary(
                        "&", *INT_BINARY["arith.andi"][1:], kind, e, Expr("1", PRIMARY, kind)
                    )
                return cast(kind, e)
            case "arith.sitofp":
                return negative(cast(kind, e), kind) if flag else cast(kind, e)
            case "arith.uitofp":
                return cast(kind, e if unsigned == e.kind else cast(unsigned, e))
            case "arith.fptosi":
                return cast(kind, e)
            case "arith.fptoui":
                return cast(kind, cast(f"u{kind}", e))
            case _:
                raise NoCOperation(name=name)


def _parts(op: complex.ConstantOp) -> list[FloatAttr]:
    """The real and the imaginary part of a constant."""
    return [part for part in op.value.data if isinstance(part, FloatAttr)]
