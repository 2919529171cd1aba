"""The syntax tree of tensor expressions, and its canonical printer.

Nodes say what was written, nothing of what it means: names are not bound, sums are implicit.
A node's ``span`` takes no part in equality, so ``parse(str(program)) == program``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sparsecc.diagnostics import Span

FUNCTIONS = frozenset(
    "exp log log1p expm1 abs sqrt sin cos tan tanh sign floor ceil round conj real imag "
    "where stored relu sigmoid".split()
)
"""Names that are called with values, ``exp(A[i,j])``."""

REDUCTIONS = frozenset("sum prod min max any all".split())
"""Names of reductions, ``sum[j](A[i,j])``; ``min`` and ``max`` are also functions of two values."""

CONSTANTS = {"inf": float("inf"), "nan": float("nan")}
"""Names of numbers."""

RESERVED = FUNCTIONS | REDUCTIONS | frozenset(CONSTANTS)
"""Names that no tensor can have."""

PRECEDENCE = {
    "or": 1, "and": 2, "not": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "|": 5, "^": 6, "&": 7, "+": 8, "-": 8, "*": 9, "/": 9, "//": 9, "%": 9, "neg": 10, "**": 11,
}  # fmt: skip
ATOM = 12


@dataclass(frozen=True)
class Node:
    """Anything that was written at a place; ``span`` is None for trees made by a program."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Expr(Node):
    """A value at each point of the index space."""

    @property
    def precedence(self) -> int:
        return ATOM

    def operands(self) -> tuple[Expr, ...]:
        """The expressions directly within this one, index expressions included."""
        return ()


@dataclass(frozen=True, eq=False)
class Number(Expr):
    """A literal: int, float or imaginary; ``unsigned`` for the suffix ``u``.

    Equal if spelled equally: 2 is not 2.0, and nan is nan."""

    value: int | float | complex
    unsigned: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def precedence(self) -> int:
        # The parser makes no negative number, but programs that build trees may.
        return PRECEDENCE["neg"] if str(self).startswith("-") else ATOM

    def __str__(self) -> str:
        # All that repr prints of a float is in the grammar: 1e+20, inf, nan.
        if isinstance(self.value, complex):
            return f"{self.value.imag!r}j"
        return f"{self.value!r}" + "u" * self.unsigned


@dataclass(frozen=True)
class Scalar(Expr):
    """A name without indices."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Index(Node):
    """A plain index of an access."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class IndexExpr(Node):
    """Any other index of an access: a constant, an affine form, a gather."""

    expr: Expr

    def __str__(self) -> str:
        return str(self.expr)


@dataclass(frozen=True)
class Access(Expr):
    """``name[indices]``."""

    name: str
    indices: tuple[Index | IndexExpr, ...]

    def __str__(self) -> str:
        return f"{self.name}[{_commas(self.indices)}]"

    def operands(self) -> tuple[Expr, ...]:
        return tuple(i.expr for i in self.indices if isinstance(i, IndexExpr))


@dataclass(frozen=True)
class Unary(Expr):
    """``-x`` or ``not x``."""

    op: str
    operand: Expr

    @property
    def precedence(self) -> int:
        return PRECEDENCE["not" if self.op == "not" else "neg"]

    def __str__(self) -> str:
        text = _within(self.operand, self.precedence)
        return f"not {text}" if self.op == "not" else f"-{text}"

    def operands(self) -> tuple[Expr, ...]:
        return (self.operand,)


@dataclass(frozen=True)
class Binary(Expr):
    """``lhs op rhs``; left-associative but for ``**``."""

    op: str
    lhs: Expr
    rhs: Expr

    @property
    def precedence(self) -> int:
        return PRECEDENCE[self.op]

    def __str__(self) -> str:
        p = self.precedence
        if self.op == "**":  # atom ** unary
            return f"{_within(self.lhs, ATOM)} ** {_within(self.rhs, PRECEDENCE['neg'])}"
        # Comparisons do not chain, so neither side may be one.
        left = p + 1 if p == PRECEDENCE["=="] else p
        return f"{_within(self.lhs, left)} {self.op} {_within(self.rhs, p + 1)}"

    def operands(self) -> tuple[Expr, ...]:
        return (self.lhs, self.rhs)


@dataclass(frozen=True)
class Call(Expr):
    """``function(arguments)`` of a reserved name."""

    function: str
    arguments: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"{self.function}({_commas(self.arguments)})"

    def operands(self) -> tuple[Expr, ...]:
        return self.arguments


@dataclass(frozen=True)
class Reduce(Expr):
    """``sum[j](expr)``."""

    reduction: str
    indices: tuple[Index | IndexExpr, ...]
    operand: Expr

    def __str__(self) -> str:
        return f"{self.reduction}[{_commas(self.indices)}]({self.operand})"

    def operands(self) -> tuple[Expr, ...]:
        return (self.operand, *(i.expr for i in self.indices if isinstance(i, IndexExpr)))


@dataclass(frozen=True)
class Assign(Node):
    """``target = expr``, or ``target op= expr``; op: ``+ - * & | ^ min max and or``."""

    target: Access | Scalar
    op: str | None
    expr: Expr

    def __str__(self) -> str:
        sign = {None: "=", "and": "and=", "or": "or="}.get(self.op, f"{self.op}=")
        return f"{self.target} {sign} {self.expr}"


@dataclass(frozen=True)
class Program(Node):
    """Statements in order; the last target is the result. ``text`` is the source as written."""

    statements: tuple[Assign, ...]
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return "; ".join(str(s) for s in self.statements)


def walk(expr: Expr) -> Iterator[Expr]:
    """An expression and the values within it, outer first; not the computed indices."""
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        yield node
        match node:
            case Access():
                pass
            case Reduce(_, _, operand):
                stack.append(operand)
            case _:
                stack.extend(reversed(node.operands()))


def names_read(expr: Expr) -> set[str]:
    """The names of all accesses and scalars in an expression, also within computed indices."""
    found: set[str] = set()
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Access | Scalar):
            found.add(node.name)
        stack.extend(node.operands())
    return found


def depth(expr: Expr) -> int:
    """The height of the tree, computed indices included; found without recursion."""
    deepest = 0
    stack: list[tuple[Expr, int]] = [(expr, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in node.operands())
    return deepest


def _commas(items: Sequence[object]) -> str:
    return ",".join(str(item) for item in items)


def _within(expr: Expr, least: int) -> str:
    """The text of an operand, in parentheses if it binds less tightly than ``least``."""
    return str(expr) if expr.precedence >= least else f"({expr})"
