"""The three spellings of a format: names (``CSR``, ``BSR(4,4)``, ``2:4``), TACO letters (``ds:1,0``), MLIR maps; and
sums of them (``2:4+CSR``).

``parse(str(f)) == f`` for every format, and ``parse(short(f))`` too where a short name exists.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from sparsecc.diagnostics import FormatError, did_you_mean
from sparsecc.formats.format import BadFormat, Format, LevelExpr
from sparsecc.formats.level import Level
from sparsecc.formats.levels import level_class
from sparsecc.formats.levels.compressed import Compressed
from sparsecc.formats.levels.dense import Dense
from sparsecc.formats.levels.singleton import Singleton
from sparsecc.formats.names import NAMES, nm
from sparsecc.formats.sum_format import sum_format

LETTERS: dict[str, Level] = {
    "d": Dense(),
    "s": Compressed(),
    "u": Compressed(unique=False),
    "q": Singleton(),
    "c": Singleton(unique=False),
}


class UnknownFormat(FormatError):
    text = "there is no format {spelling!r}"


class RankOfFormat(FormatError):
    text = "format {spelling!r} is for tensors of rank {found}, not {wanted}"


def parse(text: str, rank: int | None = None) -> Format:
    """The format of a spelling; ``rank`` is the tensor's, where it is known.

    Raises UnknownFormat, BadFormat, RankOfFormat."""
    spelling = text.strip()
    summands = _summands(spelling)
    if len(summands) > 1:
        return _parse_sum(spelling, summands, rank)
    body, widths = spelling, (0, 0)
    if match := re.search(r"@\s*i?(\d+)\s*/\s*i?(\d+)$", spelling):
        body, widths = spelling[: match.start()].strip(), (int(match[2]), int(match[1]))
    if match := re.search(r"!\s*([-+\w.]+)$", body):
        if match[1] not in ("0", "0.0"):
            raise BadFormat(
                spelling=spelling,
                problem=f"a fill value of {match[1]} is not supported yet, only 0",
            )
        body = body[: match.start()].strip()
    fmt = _parse_body(body, spelling, rank)
    if widths != (0, 0):
        fmt = fmt.with_widths(*widths)
    if rank is not None and fmt.rank != rank:
        raise RankOfFormat(spelling=spelling, found=fmt.rank, wanted=rank)
    return fmt


def _summands(spelling: str) -> list[str]:
    """What stands between the ``+`` outside of parentheses (one of a fill value is its sign)."""
    found: list[str] = []
    depth = start = 0
    for at, c in enumerate(spelling):
        depth += (c == "(") - (c == ")")
        if c == "+" and not depth and not spelling[start:at].rstrip().endswith("!"):
            found.append(spelling[start:at])
            start = at + 1
    return [*found, spelling[start:]]


def _parse_sum(spelling: str, summands: Sequence[str], rank: int | None) -> Format:
    if not all(part.strip() for part in summands):
        raise BadFormat(spelling=spelling, problem="a part of the sum is missing beside its '+'")
    parts = [parse(part, rank) for part in summands]
    found = {part.rank for part in parts}
    if len(found) > 1 and rank is None:
        # Names such as 2:4 and COO take the rank of those that fix it.
        parts = [_of_rank(part, max(found)) for part in summands]
    try:
        return sum_format(parts)
    except BadFormat as error:
        raise BadFormat(spelling=spelling, problem=str(error.facts["problem"])) from None


def _of_rank(spelling: str, rank: int) -> Format:
    try:
        return parse(spelling, rank)
    except RankOfFormat:
        return parse(spelling)


def _parse_body(body: str, spelling: str, rank: int | None) -> Format:
    if body.startswith("("):
        return _MapParser(body, spelling).parse()
    if match := re.fullmatch(r"(\d+)\s*:\s*(\d+)", body):
        return nm(int(match[1]), int(match[2]), 2 if rank is None else rank)
    body, order = _split_order(body)
    fmt = _named(body, spelling, rank)
    if order is None:
        return fmt
    if not fmt.is_permutation or sorted(order) != list(range(fmt.rank)):
        raise BadFormat(
            spelling=spelling, problem=f"{list(order)} is not an order of its {fmt.rank} dimensions"
        )
    return fmt.permuted(order)


def _split_order(body: str) -> tuple[str, tuple[int, ...] | None]:
    match = re.search(r":\s*(\d+(?:\s*,\s*\d+)*)$", body)
    if match is None:
        return body, None
    return body[: match.start()].strip(), tuple(int(d) for d in match[1].split(","))


def _named(body: str, spelling: str, rank: int | None) -> Format:
    match = re.fullmatch(r"([A-Za-z][A-Za-z0-9]*)\s*(?:\(\s*(\d+(?:\s*,\s*\d+)*)?\s*\))?", body)
    if match is None:
        raise UnknownFormat(spelling=spelling, help=_suggest(body))
    name, arguments = match[1], match[2]
    if name.upper() in NAMES and (
        name == name.upper() or name.lower() == "dense" or arguments is not None
    ):
        build, counts, _ = NAMES[name.upper()]
        args = tuple(int(a) for a in arguments.split(",")) if arguments else ()
        if counts is not None and len(args) not in counts:
            wanted = " or ".join(map(str, counts))
            raise BadFormat(
                spelling=spelling, problem=f"{name} takes {wanted} arguments, not {len(args)}"
            )
        if name.upper() == "CSF" and sorted(args or (0,)) != list(range(len(args) or 1)):
            raise BadFormat(
                spelling=spelling, problem=f"{list(args)} is not an order of dimensions"
            )
        return build(args, rank)
    if (
        arguments is None
        and name == name.lower()
        and name not in ("csc", "csr", "coo")
        and set(name) <= set(LETTERS)
    ):
        levels = tuple(LETTERS[c] for c in name)
        # A trailing non-unique level has nothing below it to tell its entries apart.
        return Format(len(levels), tuple(LevelExpr(d) for d in range(len(levels))), levels)
    raise UnknownFormat(spelling=spelling, help=_suggest(name))


def _suggest(name: str) -> str:
    if name.upper() in NAMES:
        return f"did you mean {name.upper()!r}?"
    return did_you_mean(name, [*NAMES, "2:4"])


class _MapParser:
    """``(i, j) -> (i floordiv 2 : dense, j : compressed(nonunique), …)``."""

    TOKEN = re.compile(r"\s*(->|[A-Za-z_]\w*|\d+|[()\[\],:])")

    def __init__(self, text: str, spelling: str) -> None:
        self.spelling = spelling
        self.tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            match = self.TOKEN.match(text, at)
            if match is None:
                self.fail(f"unexpected {text[at:].strip()[:1]!r}")
            self.tokens.append(match[1])
            at = match.end()
        self.at = 0

    def fail(self, problem: str) -> NoReturn:
        raise BadFormat(spelling=self.spelling, problem=problem)

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            self.fail(f"expected {wanted or 'more'!r}, found {token or 'the end'!r}")
        self.at += 1
        return token

    def number(self) -> int:
        token = self.take()
        if not token.isdigit():
            self.fail(f"expected a number, found {token!r}")
        return int(token)

    def parse(self) -> Format:
        names = self.names()
        self.take("->")
        self.take("(")
        exprs: list[LevelExpr] = []
        levels: list[Level] = []
        while self.peek() != ")":
            if levels:
                self.take(",")
            exprs.append(self.expr(names))
            self.take(":")
            levels.append(self.level())
        self.take(")")
        if self.peek():
            self.fail(f"unexpected {self.peek()!r} at the end")
        return Format(len(names), tuple(exprs), tuple(levels))

    def names(self) -> list[str]:
        self.take("(")
        names: list[str] = []
        while self.peek() != ")":
            if names:
                self.take(",")
            name = self.take()
            if not name.isidentifier() or name in names:
                self.fail(f"{name!r} is not a new dimension name")
            names.append(name)
        self.take(")")
        return names

    def expr(self, names: Sequence[str]) -> LevelExpr:
        name = self.take()
        if name not in names:
            self.fail(f"there is no dimension {name!r}; {did_you_mean(name, list(names))}")
        ops: list[tuple[str, int]] = []
        while self.peek() in ("floordiv", "mod"):
            ops.append((self.take(), self.number()))
        try:
            return level_expr(names.index(name), ops)
        except ValueError as error:
            raise BadFormat(spelling=self.spelling, problem=str(error)) from None

    def level(self) -> Level:
        cls = level_class(self.take())
        values: dict[str, Any] = {}
        if self.peek() == "[":
            self.take("[")
            numbers = [self.number()]
            while self.peek() == ",":
                self.take(",")
                numbers.append(self.number())
            self.take("]")
            if len(numbers) != len(cls.parameters):
                self.fail(f"{cls.name} takes {len(cls.parameters)} numbers, not {len(numbers)}")
            values.update(zip(cls.parameters, numbers, strict=True))
        elif cls.parameters:
            self.fail(f"{cls.name} wants its {len(cls.parameters)} numbers: {cls()}")
        if self.peek() == "(":
            self.take("(")
            while self.peek() != ")":
                if self.peek() == ",":
                    self.take(",")
                values.update(level_property(cls, self.take(), self.spelling))
            self.take(")")
        return cls(**values)


def level_expr(dim: int, ops: Sequence[tuple[str, int]]) -> LevelExpr:
    """The digit that a chain of floordiv and mod selects; ValueError where it is none."""
    div, mod = 1, 0
    for op, value in ops:
        if value < 1:
            raise ValueError(f"'{op} {value}' wants a positive number")
        if op == "mod":
            if mod and (mod % value or value > mod):
                raise ValueError(f"'mod {mod} mod {value}' is not a digit of a dimension")
            mod = value
        else:
            if mod and mod % value:
                raise ValueError(f"'mod {mod} floordiv {value}' does not divide")
            div, mod = div * value, mod // value
    return LevelExpr(dim, div, mod)


def level_property(cls: type[Level], name: str, spelling: str) -> dict[str, bool]:
    """The field that a property keyword sets."""
    if name == "nonunique":
        return {"unique": False}
    if name == "nonordered":
        return {"ordered": False}
    if name in cls.__dataclass_fields__ and cls.__dataclass_fields__[name].type in (bool, "bool"):
        return {name: True}
    raise BadFormat(spelling=spelling, problem=f"{cls.name} has no property {name!r}")
