"""NumPy's einsum notation to the syntax tree of expressions.

``"ij,jk"`` with operands of rank 2 becomes ``out[i,k] = op0[i,j] * op1[j,k]``. The dimensions under
an ellipsis get the names ``d0, d1, …`` counted from the last, so operands with fewer of them align
as in NumPy; extents of 1 are not broadcast, and are an error where operands are bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sparsecc.diagnostics import ExpressionError, LimitError, Source, Span
from sparsecc.frontends.ast import Access, Assign, Binary, Expr, Index, Program, Scalar

ELLIPSIS = "..."
MAX_OPERANDS = 64


class SubscriptCharacter(ExpressionError):
    text = "{character!r} can't be part of einsum subscripts"
    help_text = "subscripts are letters, ',', '->' and '...'"


class SubscriptArrow(ExpressionError):
    text = "einsum subscripts have one '->'"


class SubscriptEllipsis(ExpressionError):
    text = "{problem}"
    help_text = "an ellipsis is three dots, once in each operand"


class OperandCount(ExpressionError):
    text = "einsum subscripts for {found} operands, but there are {wanted}"


class TooManyOperands(LimitError):
    text = "einsum of {found} operands, more than the limit of {limit}"


class SubscriptRank(ExpressionError):
    text = "operand {number} has rank {rank} but {found} subscripts"
    help_text = "write one letter a dimension, or '...' for the rest"


class OutputSubscript(ExpressionError):
    text = "output subscript {letter!r} {problem}"


@dataclass(frozen=True)
class _Term:
    """The subscripts of one operand or of the output: letters and at most one ellipsis."""

    parts: tuple[tuple[str, Span], ...]
    span: Span

    @property
    def letters(self) -> list[str]:
        return [part for part, _ in self.parts if part != ELLIPSIS]

    @property
    def ellipsis(self) -> Span | None:
        return next((span for part, span in self.parts if part == ELLIPSIS), None)

    def indices(self, width: int) -> tuple[Index, ...]:
        """The indices, with the ellipsis standing for ``width`` dimensions."""
        found: list[Index] = []
        for part, span in self.parts:
            names = _hidden(width) if part == ELLIPSIS else [part]
            found += [Index(name, span=span) for name in names]
        return tuple(found)


def _hidden(width: int) -> list[str]:
    """Names of the dimensions under an ellipsis; the last is always d0."""
    return [f"d{k}" for k in reversed(range(width))]


def einsum_program(subscripts: str, ranks: Sequence[int], out: str = "out") -> Program:
    """The program of einsum subscripts over operands ``op0, op1, …`` of those ranks.

    Raises ExpressionError (of this module's classes)."""
    source = Source(subscripts, "<einsum>")
    inputs, output = _split(source)
    whole = Span(source, 0, len(subscripts))
    if len(inputs) != len(ranks):
        raise OperandCount(span=whole, found=len(inputs), wanted=len(ranks))
    if len(inputs) > MAX_OPERANDS:
        raise TooManyOperands(place=whole.place, found=len(inputs), limit=MAX_OPERANDS)
    widths: list[int] = []
    for number, (term, rank) in enumerate(zip(inputs, ranks, strict=True)):
        found = len(term.letters)
        if found > rank or (found < rank and term.ellipsis is None):
            raise SubscriptRank(span=term.span, number=number, rank=rank, found=found)
        widths.append(rank - found)
    hidden = max(widths, default=0)
    target = _implicit(inputs, hidden) if output is None else _explicit(output, inputs, hidden)
    accesses = [
        _access(f"op{number}", term.indices(width), term.span)
        for number, (term, width) in enumerate(zip(inputs, widths, strict=True))
    ]
    expr: Expr = accesses[0]
    for access in accesses[1:]:
        expr = Binary("*", expr, access, span=whole)
    place = whole if output is None else output.span
    statement = Assign(_access(out, target, place), None, expr, span=whole)
    return Program((statement,), subscripts, span=whole)


def _access(name: str, indices: tuple[Index, ...], span: Span) -> Access | Scalar:
    return Access(name, indices, span=span) if indices else Scalar(name, span=span)


# -- reading --------------------------------------------------------------------------------------


def _split(source: Source) -> tuple[list[_Term], _Term | None]:
    """The terms of the operands, and of the output if there is an arrow."""
    text = source.text
    left, arrow, _ = text.partition("->")
    inputs: list[_Term] = []
    start = 0
    for piece in left.split(","):
        inputs.append(_term(source, start, start + len(piece)))
        start += len(piece) + 1
    if not arrow:
        return inputs, None
    start = len(left) + 2
    if (second := text.find("->", start)) >= 0:
        raise SubscriptArrow(span=Span(source, second, second + 2))
    if (comma := text.find(",", start)) >= 0:
        raise SubscriptCharacter(
            span=Span(source, comma, comma + 1), character=",", help="there is one output"
        )
    return inputs, _term(source, start, len(text))


def _term(source: Source, start: int, end: int) -> _Term:
    text = source.text
    parts: list[tuple[str, Span]] = []
    at = start
    while at < end:
        character = text[at]
        width = 1
        if character == ".":
            width = 3
            span = Span(source, at, min(at + 3, end))
            if text[at : min(at + 3, end)] != ELLIPSIS:
                raise SubscriptEllipsis(span=span, problem="a dot that is not part of an ellipsis")
            if any(part == ELLIPSIS for part, _ in parts):
                raise SubscriptEllipsis(span=span, problem="a second ellipsis in one operand")
            parts.append((ELLIPSIS, span))
        elif character.isascii() and character.isalpha():
            parts.append((character, Span(source, at, at + 1)))
        elif not character.isspace():
            raise SubscriptCharacter(span=Span(source, at, at + 1), character=character)
        at += width
    return _Term(tuple(parts), Span(source, start, max(end, start)))


# -- outputs --------------------------------------------------------------------------------------


def _implicit(inputs: Sequence[_Term], hidden: int) -> tuple[Index, ...]:
    """The ellipsis, then the letters that appear once, sorted as NumPy does (capitals first)."""
    counts = Counter(letter for term in inputs for letter in term.letters)
    once = sorted(letter for letter, count in counts.items() if count == 1)
    return tuple(Index(name) for name in _hidden(hidden) + once)


def _explicit(output: _Term, inputs: Sequence[_Term], hidden: int) -> tuple[Index, ...]:
    known = {letter for term in inputs for letter in term.letters}
    seen: set[str] = set()
    for part, span in output.parts:
        if part == ELLIPSIS:
            continue
        if part not in known:
            raise OutputSubscript(span=span, letter=part, problem="is in no operand")
        if part in seen:
            raise OutputSubscript(span=span, letter=part, problem="is repeated")
        seen.add(part)
    if hidden and output.ellipsis is None:
        problem = f"the operands' ellipsis has {hidden} dimensions, and the output has no ellipsis"
        raise SubscriptEllipsis(span=output.span, problem=problem, help="write '...' in the output")
    return output.indices(hidden)
