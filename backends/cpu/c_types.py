"""C spelling of types, constants and operations: what :mod:`sparsecc.backends.cpu.emit_c` looks up.

Keys are operation names, as in :mod:`sparsecc.backends.cpu.llvm_types`. Integers are signed
in C (IR has no sign); operations that would overflow or need the other sign are unsigned.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute

from sparsecc.backends.cpu.llvm_types import NoSuchElement

PRIMARY, UNARY, MUL, ADD, SHIFT, LESS, EQUAL, AND, XOR, OR, ALL, ANY, CHOICE = range(16, 3, -1)
"""How tightly operators bind, tightest first."""


@dataclass(frozen=True)
class Expr:
    """C text of a value. ``kind``: its C type, which may be narrower than the value's own where
    that is harmless. ``variables`` and ``memories`` (pointers, cells): what it reads that may
    change. ``parts``: operator and operands, if it is ``a op b``. ``unnarrowed``: the text before a
    cast to fewer bits."""

    text: str
    rank: int
    kind: str
    variables: frozenset[str] = frozenset()
    memories: frozenset[str] = frozenset()
    parts: tuple[str, str, str] | None = None
    unnarrowed: str = ""

    def at(self, rank: int) -> str:
        """The text as an operand of an operator that binds so tightly."""
        return self.text if self.rank >= rank else f"({self.text})"

    @property
    def simple(self) -> bool:
        """A name or a literal."""
        return self.rank == PRIMARY and not self.memories and self.text[-1] not in ")]"


def element(type_: Attribute) -> Attribute:
    """The type of a vector's or array's elements; other types as they are."""
    if isinstance(type_, VectorType | MemRefType):
        return cast("VectorType[Attribute]", type_).element_type
    return type_


def lanes(type_: Attribute) -> int:
    """The number of elements of a vector; 0 for other types."""
    if isinstance(type_, VectorType):
        return cast("VectorType[Attribute]", type_).get_shape()[0]
    return 0


def c_type(type_: Attribute) -> str:
    """The C type of a value (of a vector: of its elements)."""
    match type_:
        case IndexType():
            return "int64_t"
        case IntegerType():
            width = type_.width.data
            return "bool" if width == 1 else f"int{width}_t"
        case Float64Type():
            return "double"
        case Float32Type():
            return "float"
        case Float16Type():
            return "_Float16"
        case BFloat16Type():
            return "__bf16"
        case ComplexType():
            return f"{c_type(type_.element_type)} _Complex"
        case VectorType():
            return c_type(type_.element_type)
        case _:
            raise NoSuchElement(type=type_)


def memory_type(type_: Attribute, role: str) -> str:
    """The C type of an array's elements: a boolean takes a byte, narrow positions have no sign."""
    kind = c_type(element(type_))
    if kind == "bool":
        return "uint8_t"
    narrow = kind in ("int8_t", "int16_t", "int32_t")
    return f"u{kind}" if narrow and ("positions" in role or "coordinates" in role) else kind


def float_literal(value: float, kind: str) -> str:
    """A literal that reads back as exactly that number."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "-INFINITY" if value < 0 else "INFINITY"
    if kind in ("_Float16", "__bf16"):
        return f"({kind}){value!r}f"
    if kind == "float":
        value = struct.unpack("f", struct.pack("f", value))[0]
        return f"{value!r}f"
    return repr(value)


def default_name(type_: Attribute) -> str:
    """What a value that goes through a loop or a branch is called, if nobody said."""
    kind = c_type(type_)
    return "found" if kind == "bool" else "p" if isinstance(type_, IndexType) else "sum"


def assignment(target: str, value: Expr) -> str:
    """``target = value;``, shorter where it can be."""
    if value.parts is not None and value.parts[1] == target and value.parts[0] in "+-*":
        sign, _, rest = value.parts
        if rest == "1" and sign in "+-":
            return f"{sign}{sign}{target};"
        return f"{target} {sign}= {rest};"
    return f"{target} = {value.text};"


FLOAT_BINARY: dict[str, tuple[str, int]] = {
    "arith.addf": ("+", ADD), "arith.subf": ("-", ADD),
    "arith.mulf": ("*", MUL), "arith.divf": ("/", MUL),
    "complex.add": ("+", ADD), "complex.sub": ("-", ADD),
}  # fmt: skip

INT_BINARY: dict[str, tuple[str, int]] = {
    "arith.addi": ("+", ADD), "arith.subi": ("-", ADD), "arith.muli": ("*", MUL),
    "arith.divui": ("/", MUL), "arith.remui": ("%", MUL),
    "arith.divsi": ("/", MUL), "arith.remsi": ("%", MUL),
    "arith.shli": ("<<", SHIFT), "arith.shrui": (">>", SHIFT), "arith.shrsi": (">>", SHIFT),
    "arith.andi": ("&", AND), "arith.ori": ("|", OR), "arith.xori": ("^", XOR),
}  # fmt: skip

SIGNED = {"arith.divsi", "arith.remsi", "arith.shrsi", "arith.andi", "arith.ori", "arith.xori"}
"""Those that are right on C's signed integers as they stand; the others take unsigned ones."""

LOGIC: dict[str, tuple[str, int]] = {
    "arith.andi": ("&&", ALL), "arith.ori": ("||", ANY), "arith.xori": ("!=", EQUAL),
    "arith.muli": ("&&", ALL),
}  # fmt: skip
"""On booleans."""

LIBM: dict[str, str] = {
    "math.sqrt": "sqrt", "math.exp": "exp", "math.exp2": "exp2", "math.log": "log",
    "math.log2": "log2", "math.log10": "log10", "math.sin": "sin", "math.cos": "cos",
    "math.absf": "fabs", "math.ceil": "ceil", "math.floor": "floor",
    "math.powf": "pow", "math.fma": "fma",
    "math.copysign": "copysign",
    "math.trunc": "trunc", "math.roundeven": "rint", "math.round": "round", "math.tanh": "tanh",
    "arith.remf": "fmod", "arith.minnumf": "fmin", "arith.maxnumf": "fmax",
}  # fmt: skip

INT_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
"""By predicate; the last four are unsigned."""

FLOAT_COMPARISONS = (
    "false", "{a} == {b}", "{a} > {b}", "{a} >= {b}", "{a} < {b}", "{a} <= {b}",
    "islessgreater({a}, {b})", "!isunordered({a}, {b})", "!islessgreater({a}, {b})",
    "!islessequal({a}, {b})", "!isless({a}, {b})",
    "!isgreaterequal({a}, {b})", "!isgreater({a}, {b})",
    "{a} != {b}", "isunordered({a}, {b})", "true",
)  # fmt: skip

HELPERS: dict[str, tuple[str, str]] = {
    # operation: name of the helper for a type, and its text
    "arith.divsi": ("quotient", """\
/* 0 where the divisor is; the least number divided by -1 stays. */
static {t} {f}({t} a, {t} b) {{
    return b == 0 ? 0 : b == -1 ? ({t})(0 - (u{t})a) : a / b;
}}"""),
    "arith.remsi": ("remainder", "static {t} {f}({t} a, {t} b) {{ return b == 0 || b == -1 ? 0 : a % b; }}"),
    "arith.divui": ("uquotient", "static {t} {f}({t} a, {t} b) {{ return b == 0 ? 0 : (u{t})a / (u{t})b; }}"),
    "arith.remui": ("uremainder", "static {t} {f}({t} a, {t} b) {{ return b == 0 ? 0 : (u{t})a % (u{t})b; }}"),
    "arith.minsi": ("min", "static {t} {f}({t} a, {t} b) {{ return a < b ? a : b; }}"),
    "arith.maxsi": ("max", "static {t} {f}({t} a, {t} b) {{ return a > b ? a : b; }}"),
    "arith.minui": ("umin", "static {t} {f}({t} a, {t} b) {{ return (u{t})a < (u{t})b ? a : b; }}"),
    "arith.maxui": ("umax", "static {t} {f}({t} a, {t} b) {{ return (u{t})a > (u{t})b ? a : b; }}"),
    "arith.minimumf": ("minimum", """\
/* The smaller one; NaN if either is. */
static {t} {f}({t} a, {t} b) {{
    return a != a ? a : b != b ? b : a < b ? a : b < a ? b : signbit(a) ? a : b;
}}"""),
    "arith.maximumf": ("maximum", """\
/* The larger one; NaN if either is. */
static {t} {f}({t} a, {t} b) {{
    return a != a ? a : b != b ? b : a > b ? a : b > a ? b : signbit(a) ? b : a;
}}"""),
    "complex.create": ("pair", """\
/* re + im * I, which is not what that product gives for infinities. */
static {t} _Complex {f}({t} re, {t} im) {{
    {t} _Complex z;
    (({t} *)&z)[0] = re;
    (({t} *)&z)[1] = im;
    return z;
}}"""),
    "complex.mul": ("mul", """\
/* The product by its definition; C's own looks after infinities. */
static {t} _Complex {f}({t} _Complex x, {t} _Complex y) {{
    const {t} a = creal{s}(x), b = cimag{s}(x), c = creal{s}(y), d = cimag{s}(y);
    return {pair}(a * c - b * d, a * d + b * c);
}}"""),
    "complex.div": ("div", """\
/* Smith's method: scale by the larger part of the divisor; by 0, divide the parts. */
static {t} _Complex {f}({t} _Complex x, {t} _Complex y) {{
    const {t} a = creal{s}(x), b = cimag{s}(x), c = creal{s}(y), d = cimag{s}(y);
    if (fabs{s}(c) + fabs{s}(d) == 0)
        return {pair}(a / fabs{s}(c), b / fabs{s}(d));
    if (fabs{s}(c) >= fabs{s}(d)) {{
        const {t} r = d / c, scale = c + d * r;
        return {pair}((a + b * r) / scale, (b - a * r) / scale);
    }}
    const {t} r = c / d, scale = d + c * r;
    return {pair}((b + a * r) / scale, (b * r - a) / scale);
}}"""),
}  # fmt: skip
"""What C has no operator for. ``{t}``: the (real) type, ``{s}``: libm's suffix for it."""

RESERVED = {
    *"auto break case char const continue default do double else enum extern float for".split(),
    *"goto if inline".split(),
    *"int long register restrict return short signed sizeof static struct switch".split(),
    *"typedef union unsigned void volatile while bool true false complex I NAN INFINITY".split(),
    *"lane main sort signbit creal cimag crealf cimagf".split(),
    *(f"{name}{suffix}" for name in LIBM.values() for suffix in ("", "f")),
}  # fmt: skip
"""Names that no local may have."""
