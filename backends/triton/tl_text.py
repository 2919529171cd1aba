"""Pieces of ``tl`` text: expressions with their precedence, and how each operation on blocks is spelled.

Triton broadcasts where operands meet, so an expression may have a smaller shape than the value that it stands for;
where the full shape matters (loops, stores, reductions) it is spelled out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
)
from xdsl.ir import Attribute

from sparsecc.diagnostics import UnsupportedError
from sparsecc.dialects.reading import integer_width, is_unsigned

Shape = tuple[int, ...]
ATOM, UNARY, TIMES, PLUS, SHIFT, AND, XOR, OR, COMPARE = 9, 8, 7, 6, 5, 4, 3, 2, 1


class NoTritonSpelling(UnsupportedError):
    text = "Triton has no operation for {name} on {type}"
    help_text = "compile for target='cpu'"


@dataclass(frozen=True)
class Text:
    """An expression: its text, how tightly its last operator binds, its shape as Triton sees it (empty: a number)."""

    text: str
    binds: int = ATOM
    shape: Shape = ()
    literal: bool = False
    """A Python number, which takes the type of what it meets."""
    counter: bool = False
    """The variable of a ``for`` loop: a number of Python's own in the interpreter."""
    unsigned: bool = False
    """Triton sees an unsigned integer where the program's is signless."""
    narrow: Text | None = None
    """The same integer before it was widened, where Triton would widen it too."""

    def within(self, binds: int) -> str:
        """As an operand of an operator."""
        return f"({self.text})" if self.binds < binds else self.text


def joint(shapes: Sequence[Shape]) -> Shape:
    found: Shape = ()
    for shape in shapes:
        found = (
            shape
            if not found
            else found
            if not shape
            else tuple(max(m, n) for m, n in zip(found, shape, strict=True))
        )
    return found


def dtype(element: Attribute, unsigned: bool = False) -> str:
    """``tl``'s name of an element type."""
    match element:
        case Float16Type():
            return "tl.float16"
        case BFloat16Type():
            return "tl.bfloat16"
        case Float32Type():
            return "tl.float32"
        case Float64Type():
            return "tl.float64"
        case _ if width := integer_width(element):
            sign = (unsigned or is_unsigned(element)) and width > 1
            return f"tl.{'u' if sign else ''}int{width}"
        case _:
            raise NoTritonSpelling(name="elements", type=element)


def signature(element: Attribute) -> str:
    """The spelling of a type among the arguments of a kernel."""
    match element:
        case Float16Type():
            return "fp16"
        case BFloat16Type():
            return "bf16"
        case Float32Type() | Float64Type():
            return f"fp{element.bitwidth}"
        case _ if width := integer_width(element):
            return f"{'u' if is_unsigned(element) else 'i'}{width}"
        case _:
            raise NoTritonSpelling(name="arguments", type=element)


def literal(value: float | int, element: Attribute) -> Text:
    """A constant as Python spells it."""
    if isinstance(element, AnyFloat):
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            return Text(f'float("{number}")', literal=True)
        return Text(repr(number), UNARY if number < 0 else ATOM, literal=True)
    if element == IntegerType(1):
        return Text("True" if value else "False", literal=True)
    return Text(str(int(value)), UNARY if value < 0 else ATOM, literal=True)


def call(name: str, *args: Text, shape: Shape | None = None, extra: str = "") -> Text:
    """A call on operands that broadcast."""
    listed = ", ".join([*(a.text for a in args), *([extra] if extra else [])])
    return Text(
        f"{name}({listed})", shape=joint([a.shape for a in args]) if shape is None else shape
    )


def operator(sign: str, binds: int, a: Text, b: Text) -> Text:
    left = binds + 1 if binds == COMPARE else binds
    return Text(f"{a.within(left)} {sign} {b.within(binds + 1)}", binds, joint([a.shape, b.shape]))


def to(value: Text, element: Attribute, *, unsigned: bool = False, bitcast: bool = False) -> Text:
    """A cast; ``tl.cast`` where a Python number may stand."""
    name = dtype(element, unsigned)
    flag = ", bitcast=True" if bitcast else ""
    if value.literal or value.counter:
        return Text(f"tl.cast({value.text}, {name}{flag})", shape=value.shape)
    return Text(f"{value.within(ATOM)}.to({name}{flag})", shape=value.shape, unsigned=unsigned)


def as_unsigned(value: Text, element: Attribute) -> Text:
    """The same bits, read as an unsigned integer."""
    if value.unsigned or element == IntegerType(1):
        return value
    return to(value, element, unsigned=True, bitcast=True)


def as_signless(value: Text, element: Attribute) -> Text:
    """The same bits, read as Triton's signed integer."""
    return to(value, element, bitcast=True) if value.unsigned else value


Spell = Callable[[Sequence[Text], Attribute], Text]


def _operator(sign: str, binds: int) -> Spell:
    return lambda args, element: operator(sign, binds, *args)


def _unsigned(sign: str, binds: int) -> Spell:
    def spell(args: Sequence[Text], element: Attribute) -> Text:
        return to(
            operator(sign, binds, *(as_unsigned(a, element) for a in args)), element, bitcast=True
        )

    return spell


def _function(name: str, extra: str = "") -> Spell:
    return lambda args, element: call(name, *args, extra=extra)


_NAN = "propagate_nan=tl.PropagateNan.ALL"

OPERATIONS: dict[str, Spell] = {
    "arith.addi": _operator("+", PLUS),
    "arith.addf": _operator("+", PLUS),
    "arith.subi": _operator("-", PLUS),
    "arith.subf": _operator("-", PLUS),
    "arith.muli": _operator("*", TIMES),
    "arith.mulf": _operator("*", TIMES),
    "arith.divf": _operator("/", TIMES),
    "arith.divsi": _operator("//", TIMES),
    "arith.remsi": _operator("%", TIMES),
    "arith.divui": _unsigned("//", TIMES),
    "arith.remui": _unsigned("%", TIMES),
    "arith.andi": _operator("&", AND),
    "arith.ori": _operator("|", OR),
    "arith.xori": _operator("^", XOR),
    "arith.shli": _operator("<<", SHIFT),
    "arith.shrsi": _operator(">>", SHIFT),
    "arith.shrui": _unsigned(">>", SHIFT),
    "arith.minsi": _function("tl.minimum"),
    "arith.maxsi": _function("tl.maximum"),
    "arith.minnumf": _function("tl.minimum"),
    "arith.maxnumf": _function("tl.maximum"),
    "arith.minimumf": _function("tl.minimum", _NAN),
    "arith.maximumf": _function("tl.maximum", _NAN),
    "arith.negf": lambda args, element: Text(f"-{args[0].within(UNARY)}", UNARY, args[0].shape),
    "arith.extf": lambda args, element: to(args[0], element),
    "arith.truncf": lambda args, element: to(args[0], element),
    "arith.bitcast": lambda args, element: to(args[0], element, bitcast=True),
    "math.absf": _function("tl.abs"),
    "math.absi": _function("tl.abs"),
    "math.fma": _function("tl.fma"),
    **{
        f"math.{name}": _function(f"tl.{name}")
        for name in ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "floor", "ceil")
    },
    **{
        f"math.{name}": _function(f"libdevice.{other}")
        for name, other in {
            "tan": "tan", "tanh": "tanh", "sinh": "sinh", "cosh": "cosh", "asin": "asin", "acos": "acos",
            "atan": "atan", "atan2": "atan2", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "cbrt": "cbrt",
            "expm1": "expm1", "log1p": "log1p", "log10": "log10", "powf": "pow", "copysign": "copysign",
            "trunc": "trunc", "round": "round", "roundeven": "nearbyint",
        }.items()
    },
}  # fmt: skip
"""arith and math by name. ``libdevice`` is NVIDIA's library: the interpreter has no part of it."""

SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


def comparison(predicate: str, a: Text, b: Text, element: Attribute) -> Text:
    """``a predicate b``, by arith's names."""
    if not isinstance(element, AnyFloat):
        if predicate[0] in "us":
            if predicate[0] == "u":
                a, b = as_unsigned(a, element), as_unsigned(b, element)
            predicate = predicate[1:]
        return operator(SIGNS[predicate], COMPARE, a, b)
    match predicate:
        case "une":
            return operator("!=", COMPARE, a, b)
        case "ord":
            return operator("&", AND, operator("==", COMPARE, a, a), operator("==", COMPARE, b, b))
        case "uno":
            return operator("|", OR, operator("!=", COMPARE, a, a), operator("!=", COMPARE, b, b))
        case "one":
            return operator("|", OR, operator("<", COMPARE, a, b), operator(">", COMPARE, a, b))
        case "ueq":
            return negated(comparison("one", a, b, element))
        case "true" | "false":
            return negated(negated(literal(predicate == "true", IntegerType(1))))
        case _ if predicate[0] == "o":
            return operator(SIGNS[predicate[1:]], COMPARE, a, b)
        case _:
            return negated(operator(SIGNS[OPPOSITE[predicate[1:]]], COMPARE, a, b))


def negated(flag: Text) -> Text:
    return operator("^", XOR, flag, Text("True", literal=True))


def cast(kind: str, value: Text, source: Attribute, target: Attribute) -> Text:
    """A cast of integers, by arith's names."""
    match kind:
        case "extui" | "uitofp":
            return to(as_unsigned(value, source), target)
        case "fptoui":
            return to(to(value, target, unsigned=True), target, bitcast=True)
        case "trunci" if target == IntegerType(1):
            one = operator("&", AND, as_signless(value, source), Text("1", literal=True))
            return operator("!=", COMPARE, one, Text("0", literal=True))
        case "extsi":
            whole = as_signless(value, source)
            return replace(to(whole, target), narrow=whole)
        case _:
            return to(as_signless(value, source), target)


def reduction(kind: str, value: Text, axis: int | None, element: Attribute, shape: Shape) -> Text:
    """A reduction along an axis, which stays, or of all elements."""
    where = "" if axis is None else f"axis={axis}, keep_dims=True"
    narrow = 0 < integer_width(element) < 32
    if kind == "or":
        if element == IntegerType(1):
            found = call("tl.max", to(value, IntegerType(32)), shape=shape, extra=where)
            return operator("!=", COMPARE, found, Text("0", literal=True))
        return call("tl.reduce_or", value, shape=shape, extra=where or "axis=None")
    name = {"add": "tl.sum", "min": "tl.min", "max": "tl.max"}[kind]
    found = call(name, value, shape=shape, extra=where)
    return to(found, element) if narrow else found
