"""Text of tensor expressions to their syntax tree.

``parse("y(i) = A(i,j) * x(j)")`` reads all accepted forms (``A[i,j]``, ``A(i,j)``, ``A_{i,j}``);
the grammar is ``index_notation.lark``. Errors are ExpressionErrors with a caret; those of the
parser library never escape.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError
from lark.visitors import Transformer_NonRecursive

from sparsecc.diagnostics import ExpressionError, LimitError, Source, Span
from sparsecc.frontends.ast import (
    CONSTANTS,
    FUNCTIONS,
    REDUCTIONS,
    RESERVED,
    Access,
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    IndexExpr,
    Number,
    Program,
    Reduce,
    Scalar,
    Unary,
    depth,
)

MAX_LENGTH = 20_000
MAX_DEPTH = 120


class SyntaxMistake(ExpressionError):
    text = "expected {expected}, found {found}"


class UnexpectedEnd(ExpressionError):
    text = "the expression ends where {expected} should follow"


class BadCharacter(ExpressionError):
    text = "{character!r} can't be part of an expression"


class UnbalancedBracket(ExpressionError):
    text = "{found!r} has no partner"


class EmptyExpression(ExpressionError):
    text = "the expression is empty"
    help_text = "write an assignment, such as 'y[i] = A[i,j] * x[j]'"


class ChainedComparison(ExpressionError):
    text = "comparisons do not chain"
    help_text = "write 'a < b and b < c'"


class ReservedName(ExpressionError):
    text = "{name!r} is the name of a {kind}, so no tensor can have it"
    help_text = "rename the tensor"


class UnknownReduction(ExpressionError):
    text = "{name!r} is not a reduction"
    help_text = "known: " + ", ".join(sorted(REDUCTIONS)) + "; a product is written with '*'"


class NumberTooLong(ExpressionError):
    text = "the number has more digits than any type holds"


class TooDeep(LimitError):
    text = "the expression is nested {found} deep, more than the limit of {limit}"
    help_text = "split it in several statements: 't[i] = …; y[i] = … t[i] …'"


class TooLong(LimitError):
    text = "the expression has {found} characters, more than the limit of {limit}"
    help_text = "split it in several programs"


_VALUE = {"NAME", "NUMBER", "LPAR", "ADDOP", "_NOT"}
_OPERATOR = {"MULOP", "_POW", "CMP", "VBAR", "CIRCUMFLEX", "AMPERSAND", "_AND", "_OR"}
_WORDS = {
    "NAME": "a name", "NUMBER": "a number", "LPAR": "'('", "RPAR": "')'", "LSQB": "'['",
    "RSQB": "']'", "LBRACE": "'{'", "RBRACE": "'}'", "COMMA": "','",
    "SEMICOLON": "';'", "EQUAL": "'='",
    "REDOP": "an operator with '='", "$END": "the end", "ADDOP": "'+' or '-'",
}  # fmt: skip
_CLOSERS = {")": "(", "]": "[", "}": "{"}


def parse(text: str, name: str = "<expression>") -> Program:
    """The program that a text spells; ``name`` is shown in errors.

    Raises ExpressionError (of this module's classes) or LimitError."""
    source = Source(text, name)
    if len(text) > MAX_LENGTH:
        place = Span(source, 0, 1)
        raise TooLong(place=place.place, found=len(text), limit=MAX_LENGTH)
    if not any(line.partition("#")[0].strip() for line in text.split("\n")):
        raise EmptyExpression(span=Span(source, 0, 0))
    try:
        tree = _lark().parse(text)  # pyright: ignore[reportUnknownMemberType]  # lark leaves it open
    except UnexpectedCharacters as error:
        at = cast(int, error.pos_in_stream)
        span, character = Span(source, at, at + 1), text[at]
        help = "slices are not part of the language yet" if character == ":" else ""
        raise BadCharacter(span=span, character=character, help=help) from None
    except UnexpectedToken as error:
        raise _mistake(error, source) from None
    try:
        return cast(Program, _Builder(source).transform(tree))
    except VisitError as error:
        # The builder raises our errors only; Lark wraps them.
        raise error.orig_exc from None


@cache
def _lark() -> Lark:
    grammar = Path(__file__).with_name("index_notation.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", maybe_placeholders=False)


# -- errors ---------------------------------------------------------------------------------------


def _mistake(error: UnexpectedToken, source: Source) -> ExpressionError:
    token = cast(Token, error.token)
    expected = _in_words(set(error.accepts or error.expected))
    if token.type == "$END":
        end = len(source.text.rstrip())
        return UnexpectedEnd(span=Span(source, end, end), expected=expected)
    span = _token_span(source, token)
    if token.type == "CMP":
        return ChainedComparison(span=span)
    if token in _CLOSERS and token.type not in error.expected:
        before = source.text[: span.start]
        if before.count(token) >= before.count(_CLOSERS[token]):
            return UnbalancedBracket(span=span, found=str(token))
    help = ""
    if token.type == "EQUAL":
        help = "compare with '=='; separate statements with ';'"
    return SyntaxMistake(span=span, expected=expected, found=repr(str(token)), help=help)


def _in_words(terminals: set[str]) -> str:
    """``a value or ')'``: what may follow, as a reader would say it."""
    words: list[str] = []
    if _VALUE <= terminals | {"_NOT"}:
        words.append("a value")
        terminals = terminals - _VALUE
    if len(terminals & _OPERATOR) > 1:
        words.append("an operator")
        terminals = terminals - _OPERATOR - {"ADDOP"}
    words += sorted(_WORDS.get(t, repr(t.strip("_").lower())) for t in terminals)
    if len(words) > 1:
        return ", ".join(words[:-1]) + " or " + words[-1]
    return words[0] if words else "the end"


def _token_span(source: Source, token: Token) -> Span:
    start = token.start_pos or 0
    return Span(source, start, start + len(token))


# -- parse tree to syntax tree --------------------------------------------------------------------

if TYPE_CHECKING:
    _Base = Transformer_NonRecursive[Token, Any]
else:
    _Base = Transformer_NonRecursive


class _Builder(_Base):
    """One callback a rule; non-recursive, so that input can't exhaust the stack."""

    def __init__(self, source: Source) -> None:
        super().__init__(visit_tokens=False)
        self.source = source

    # -- places --------------------------------------------------------------------------------

    def span(self, *items: Token | Expr | Assign) -> Span:
        """From the first item's start to the last one's end."""
        return Span(self.source, self._bounds(items[0])[0], self._bounds(items[-1])[1])

    def _bounds(self, item: Token | Expr | Assign) -> tuple[int, int]:
        if isinstance(item, Token):
            start = item.start_pos or 0
            return start, start + len(item)
        span = item.span
        assert span is not None
        return span.start, span.end

    # -- statements ----------------------------------------------------------------------------

    def start(self, items: list[Program]) -> Program:
        return items[0]

    def program(self, items: list[Assign]) -> Program:
        for statement in items:
            for part in (statement.target, statement.expr):
                if (found := depth(part)) > MAX_DEPTH:
                    raise TooDeep(span=part.span, found=found, limit=MAX_DEPTH)
        span = Span(self.source, 0, len(self.source.text))
        return Program(tuple(items), self.source.text, span=span)

    def assign(self, items: list[Any]) -> Assign:
        target, expr = items
        return Assign(target, None, expr, span=self.span(target, expr))

    def reduce_assign(self, items: list[Any]) -> Assign:
        target, op, expr = items
        return Assign(target, str(op), expr, span=self.span(target, expr))

    def target(self, items: list[Any]) -> Access | Scalar:
        name = cast(Token, items[0])
        self._check_free(name)
        if len(items) == 1:
            return Scalar(str(name), span=self.span(name))
        return self.access(items)

    # -- operators -----------------------------------------------------------------------------

    def ilist(self, items: list[Expr]) -> list[Expr]:
        return items

    def _left(self, items: list[Any], op: str = "") -> Expr:
        """``a op b op c`` as ``(a op b) op c``; ``op`` where the grammar drops the token."""
        result = cast(Expr, items[0])
        rest = items[1:] if op else items[2::2]
        ops = [op] * len(rest) if op else [str(token) for token in items[1::2]]
        for sign, rhs in zip(ops, rest, strict=True):
            result = Binary(sign, result, rhs, span=self.span(result, rhs))
        return result

    def or_e(self, items: list[Any]) -> Expr:
        return self._left(items, "or")

    def and_e(self, items: list[Any]) -> Expr:
        return self._left(items, "and")

    def bor(self, items: list[Any]) -> Expr:
        return self._left(items, "|")

    def bxor(self, items: list[Any]) -> Expr:
        return self._left(items, "^")

    def band(self, items: list[Any]) -> Expr:
        return self._left(items, "&")

    def power(self, items: list[Any]) -> Expr:
        return self._left(items, "**")

    def cmp(self, items: list[Any]) -> Expr:
        return self._left(items)

    def add(self, items: list[Any]) -> Expr:
        return self._left(items)

    def mul(self, items: list[Any]) -> Expr:
        return self._left(items)

    def not_e(self, items: list[Any]) -> Expr:
        return Unary("not", items[1], span=self.span(*items))

    def neg(self, items: list[Any]) -> Expr:
        sign, operand = items
        if sign == "+":
            return replace(operand, span=self.span(*items))
        return Unary("-", operand, span=self.span(*items))

    # -- atoms ---------------------------------------------------------------------------------

    def paren(self, items: list[Any]) -> Expr:
        return replace(items[1], span=self.span(*items))

    def num(self, items: list[Token]) -> Number:
        text, span = str(items[0]), self.span(items[0])
        unsigned, imaginary = text.endswith("u"), text.endswith("j")
        digits = text.rstrip("uj")
        if digits.isdigit():
            # Python refuses to read integers of thousands of digits; no dtype holds 40.
            if len(digits) > 40:
                raise NumberTooLong(span=span)
            value: int | float = int(digits)
        else:
            value = float(digits)
        if imaginary:
            return Number(complex(0, value), span=span)
        return Number(value, unsigned, span=span)

    def scalar(self, items: list[Token]) -> Scalar | Number:
        name, span = str(items[0]), self.span(items[0])
        if name in CONSTANTS:
            return Number(CONSTANTS[name], span=span)
        self._check_free(items[0])
        return Scalar(name, span=span)

    def access(self, items: list[Any]) -> Access:
        name, bracket, indices = items[:3]
        text = str(name)
        if bracket == "{" and text.endswith("_") and len(text) > 1:
            text = text[:-1]  # A_{i,j} is A[i,j]
        self._check_free(name, text)
        return Access(text, self._indices(indices), span=self.span(name, items[-1]))

    def call(self, items: list[Any]) -> Expr:
        name, _, arguments, _ = items
        if str(name) in FUNCTIONS | REDUCTIONS:
            return Call(str(name), tuple(arguments), span=self.span(*items))
        return self.access(items)

    def reduce(self, items: list[Any]) -> Reduce:
        name, _, indices, _, _, operand, _ = items
        if str(name) not in REDUCTIONS:
            raise UnknownReduction(span=self.span(name), name=str(name))
        return Reduce(str(name), self._indices(indices), operand, span=self.span(*items))

    def _indices(self, items: list[Expr]) -> tuple[Index | IndexExpr, ...]:
        return tuple(
            Index(e.name, span=e.span) if isinstance(e, Scalar) else IndexExpr(e, span=e.span)
            for e in items
        )

    def _check_free(self, token: Token, name: str = "") -> None:
        name = name or str(token)
        if name not in RESERVED:
            return
        kind = "function" if name in FUNCTIONS else "reduction"
        kind = "number" if name in CONSTANTS else kind
        help = "" if name in CONSTANTS else f"call it, as in '{name}(…)', or rename the tensor"
        raise ReservedName(span=self.span(token), name=name, kind=kind, help=help)
