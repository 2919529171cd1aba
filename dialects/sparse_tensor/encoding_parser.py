"""Parser of the body of ``#sparse_tensor.encoding``: upstream's grammar, each mistake in its place.

A mistake is a :class:`xdsl.utils.exceptions.ParseError` whose span is the offending word and whose
text says what was found and what would be right. The rules themselves are those of
:class:`sparsecc.formats.Format`; this module finds out which word broke them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute
from xdsl.parser import AttrParser

from sparsecc.diagnostics import FormatError, SparseccError, did_you_mean
from sparsecc.formats import Format, Level, LevelExpr, SumFormat, sum_format
from sparsecc.formats.format import WIDTHS, BadFormat
from sparsecc.formats.levels import level_class
from sparsecc.formats.spelling import level_expr, level_property

KEYS = ("map", "sum", "posWidth", "crdWidth", "explicitVal", "implicitVal")


@dataclass(frozen=True)
class Word:
    """A word of the text and where it stands."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class Stretch:
    """The characters that a part of the map takes."""

    start: int
    end: int


@dataclass(frozen=True)
class DimDef:
    """``d0 = l0 * 2 + l1``: a dimension, with its expression over level variables if spelled."""

    name: Word
    terms: tuple[tuple[Word, int], ...]
    """Level variables with their factors; empty where no expression is spelled."""
    place: Stretch


@dataclass(frozen=True)
class LevelDef:
    """``l0 = d0 floordiv 2 : dense``."""

    variable: Word | None
    expr: LevelExpr
    level: Level
    place: Stretch
    level_place: Stretch


class EncodingParser:
    """Recursive descent over an xDSL attribute parser that stands before the ``<``."""

    def __init__(self, parser: AttrParser) -> None:
        self.parser = parser
        self.dims: list[DimDef] = []

    # -- places --------------------------------------------------------------------------------

    def fail(self, message: str, place: Word | Stretch) -> NoReturn:
        self.parser.raise_error(message, place.start, place.end)

    def since(self, start: int) -> Stretch:
        """What has been parsed since ``start``, without the space before the next token."""
        text = self.parser.lexer.input.content
        return Stretch(start, start + len(text[start : self.parser.pos].rstrip()))

    def word(self, what: str) -> Word:
        start = self.parser.pos
        text = self.parser.parse_optional_identifier()
        if text is None:
            self.parser.raise_error(f"expected {what}")
        return Word(text, start)

    def number(self, what: str) -> tuple[int, Stretch]:
        start = self.parser.pos
        value = self.parser.parse_optional_integer(allow_boolean=False)
        if value is None:
            self.parser.raise_error(f"expected {what}")
        return value, self.since(start)

    # -- the attribute -------------------------------------------------------------------------

    def parse(self) -> Format | None:
        """``<{ key = value, ... }>``, or ``<*>`` for an encoding that has still to be chosen."""
        with self.parser.in_angle_brackets():
            if self.parser.parse_optional_punctuation("*"):
                return None
            return self.body()

    def body(self) -> Format:
        start = self.parser.pos
        self.parser.parse_punctuation("{", " as in #sparse_tensor.encoding<{ map = ... }>")
        seen: set[str] = set()
        fmt: Format | None = None
        widths = {"posWidth": 0, "crdWidth": 0}
        while not self.parser.parse_optional_punctuation("}"):
            if seen:
                self.parser.parse_punctuation(",", " or '}' after an encoding's value")
            key = self.word(f"a key of the encoding: {', '.join(KEYS)}")
            if key.text not in KEYS:
                help = did_you_mean(key.text, KEYS)
                self.fail(f"an encoding has no key '{key.text}'; {help}", key)
            if key.text in seen:
                self.fail(f"the key '{key.text}' is given twice; remove one", key)
            seen.add(key.text)
            self.parser.parse_punctuation("=", f" after '{key.text}'")
            if key.text in ("map", "sum") and fmt is not None:
                self.fail("an encoding is a map or a sum, not both; remove one", key)
            if key.text == "map":
                fmt = self.map()
            elif key.text == "sum":
                fmt = self.sum()
            elif key.text in widths:
                widths[key.text] = self.width(key)
            elif key.text == "explicitVal":
                self.fail("explicitVal is not supported yet; remove it and store the values", key)
            else:
                self.implicit_value()
        if fmt is None:
            message = "the encoding has no map; add map = (d0, ...) -> (d0 : dense, ...)"
            self.fail(message, self.since(start))
        if isinstance(fmt, SumFormat):
            for role in {"posWidth", "crdWidth"} & seen:
                message = f"{role} stands in the encodings of the parts; move it there"
                self.fail(message, self.since(start))
            return fmt
        return fmt.with_widths(widths["posWidth"], widths["crdWidth"])

    def sum(self) -> Format:
        """``[#NM_2_4, #CSR]``: the encodings of the parts."""
        start = self.parser.pos
        parts: list[Format] = []

        def part() -> None:
            at = self.parser.pos
            attribute = self.parser.parse_attribute()
            data = getattr(attribute, "data", None)
            if attribute.name != "sparse_tensor.encoding" or not isinstance(data, Format):
                message = "a part of a sum is an encoding with a map: #sparse_tensor.encoding<{ map = ... }>"
                self.fail(message, self.since(at))
            parts.append(data)

        self.parser.parse_comma_separated_list(self.parser.Delimiter.SQUARE, part)
        try:
            return sum_format(parts)
        except BadFormat as error:
            self.fail(str(error.facts["problem"]), self.since(start))

    def width(self, key: Word) -> int:
        value, place = self.number("a width in bits")
        if value not in WIDTHS:
            known = ", ".join(map(str, WIDTHS))
            self.fail(f"{key.text} is {value} bits; use one of {known} (0: index)", place)
        return value

    def implicit_value(self) -> None:
        start = self.parser.pos
        value = self.parser.parse_attribute()
        if not _is_zero(value):
            message = f"the implicit value {value} is not supported; it must be 0"
            self.fail(message, self.since(start))

    # -- the map -------------------------------------------------------------------------------

    def map(self) -> Format:
        start = self.parser.pos
        self.symbols()
        declared = self.parser.parse_optional_comma_separated_list(
            self.parser.Delimiter.BRACES, lambda: self.word("a level variable")
        )
        if declared:
            self.check_new(declared, "level variable")
        self.paren_list(self.dim)
        self.check_new([dim.name for dim in self.dims], "dimension")
        self.parser.parse_punctuation("->", " between the dimensions and the levels of the map")
        levels: list[LevelDef] = []
        self.paren_list(lambda: levels.append(self.level()))
        whole = self.since(start)
        if not levels:
            message = "an encoding has at least one level; a tensor of rank 0 can't be sparse"
            self.fail(message, whole)
        self.check_variables(declared or [], levels)
        fmt = self.format(levels, whole)
        self.check_inverse(fmt, levels)
        return fmt

    def paren_list(self, parse: Callable[[], object]) -> None:
        self.parser.parse_comma_separated_list(self.parser.Delimiter.PAREN, parse)

    def symbols(self) -> None:
        start = self.parser.pos
        symbols = self.parser.parse_optional_comma_separated_list(
            self.parser.Delimiter.SQUARE, lambda: self.word("a symbol")
        )
        if symbols:
            message = "symbols in an encoding's map are not supported yet; use constants"
            self.fail(message, self.since(start))

    def check_new(self, names: Sequence[Word], what: str) -> None:
        seen: set[str] = set()
        for name in names:
            if name.text in seen:
                self.fail(f"the {what} '{name.text}' is declared twice; rename one", name)
            seen.add(name.text)

    def dim(self) -> None:
        start = self.parser.pos
        name = self.word("a dimension name")
        terms: list[tuple[Word, int]] = []
        if self.parser.parse_optional_punctuation("="):
            terms.append(self.term())
            while self.parser.parse_optional_punctuation("+"):
                terms.append(self.term())
        place = self.since(start)
        if self.parser.parse_optional_punctuation(":"):
            self.fail("dimension slices are not supported yet; use tensor.extract_slice", place)
        self.dims.append(DimDef(name, tuple(terms), place))

    def term(self) -> tuple[Word, int]:
        """``l0``, ``l0 * 2`` or ``2 * l0``."""
        factor = self.parser.parse_optional_integer(allow_boolean=False)
        if factor is not None:
            self.parser.parse_punctuation("*", " and a level variable")
            return self.word("a level variable"), factor
        name = self.word("a level variable")
        if self.parser.parse_optional_punctuation("*"):
            factor, _ = self.number("the level variable's stride")
        return name, 1 if factor is None else factor

    def level(self) -> LevelDef:
        start = self.parser.pos
        variable: Word | None = None
        what = "a level expression over the dimensions"
        inner = self.parser.parse_optional_punctuation("(") is not None
        word = self.word(what)
        if not inner and self.parser.parse_optional_punctuation("="):
            variable = word
            inner = self.parser.parse_optional_punctuation("(") is not None
            word = self.word(what)
        expr = self.expr(word, inner)
        self.parser.parse_punctuation(":", " and a level type after the level's expression")
        level_start = self.parser.pos
        level = self.level_type()
        return LevelDef(variable, expr, level, self.since(start), self.since(level_start))

    def expr(self, name: Word, inner: bool) -> LevelExpr:
        """The digit of a dimension; ``inner``: an opening parenthesis has been taken already."""
        names = [dim.name.text for dim in self.dims]
        if name.text not in names:
            help = did_you_mean(name.text, names)
            self.fail(f"there is no dimension '{name.text}'; {help}", name)
        ops: list[tuple[str, int]] = []
        while True:
            while op := self.parser.parse_optional_keyword_in(("floordiv", "mod", "ceildiv")):
                if op == "ceildiv":
                    message = "'ceildiv' is no level expression; use floordiv or mod"
                    self.fail(message, self.since(name.start))
                ops.append((op, self.number(f"a constant after '{op}'")[0]))
            if not (inner and self.parser.parse_optional_punctuation(")")):
                break
            inner = False
        for sign in ("+", "-", "*"):
            if self.parser.parse_optional_punctuation(sign):
                self.parser.parse_optional_identifier()
                message = (
                    "a level stores a digit of one dimension: 'd', 'd floordiv n' or 'd mod n'; "
                    "sums and differences of dimensions (diagonals) can't be mapped back"
                )
                self.fail(message, self.since(name.start))
        try:
            return level_expr(names.index(name.text), ops)
        except ValueError as error:
            self.fail(f"{error}; use 'd floordiv n' and 'd mod n'", self.since(name.start))

    def level_type(self) -> Level:
        name = self.word("a level type")
        try:
            cls = level_class(name.text)
        except SparseccError as error:
            self.fail(f"{error.message}; {error.help}", name)
        # Parameters are integers, properties booleans: fields that only the class knows.
        values: dict[str, Any] = {}
        start = self.parser.pos
        numbers = self.parser.parse_optional_comma_separated_list(
            self.parser.Delimiter.SQUARE, lambda: self.number("a number")[0]
        )
        if len(numbers or ()) != len(cls.parameters):
            wanted = f"{name.text}[{', '.join(cls.parameters)}]" if cls.parameters else name.text
            message = f"{name.text} is given {len(numbers or ())} parameters; write {wanted}"
            self.fail(message, self.since(start) if numbers else name)
        values.update(zip(cls.parameters, numbers or (), strict=True))
        properties = self.parser.parse_optional_comma_separated_list(
            self.parser.Delimiter.PAREN, lambda: self.word("a property")
        )
        for word in properties or ():
            try:
                values.update(level_property(cls, word.text, name.text))
            except FormatError:
                help = did_you_mean(word.text, _property_names(cls))
                self.fail(f"{name.text} has no property '{word.text}'; {help}", word)
        return cls(**values)

    # -- rules over several words --------------------------------------------------------------

    def check_variables(self, declared: Sequence[Word], levels: Sequence[LevelDef]) -> None:
        """Declared level variables are all bound, in the order of their declaration."""
        if declared and len(declared) != len(levels):
            counts = f"{len(declared)} level variables are declared for {len(levels)} levels"
            self.fail(f"{counts}; declare one for each", declared[-1])
        for k, level in enumerate(levels):
            found = level.variable
            if not declared:
                if found is not None:
                    fact = f"the level variable '{found.text}' is not declared"
                    self.fail(f"{fact}; write {{{found.text}, ...}} before the dimensions", found)
            elif found is None:
                remedy = f"write '{declared[k].text} = ...'"
                self.fail(f"this level does not bind its variable; {remedy}", level.place)
            elif found.text != declared[k].text:
                fact = f"level {k} binds '{found.text}', but '{declared[k].text}' is declared there"
                self.fail(f"{fact}; use one order", found)

    def format(self, levels: Sequence[LevelDef], whole: Stretch) -> Format:
        exprs = tuple(level.expr for level in levels)
        types = tuple(level.level for level in levels)
        try:
            return Format(len(self.dims), exprs, types)
        except BadFormat as error:
            problem = str(error.facts["problem"])
        # The rules don't say which level breaks them: the first one that complains alone does.
        for k, level in enumerate(levels):
            if types[k].problem(types[:k], types[k + 1 :]) == problem:
                self.fail(problem, level.level_place)
        self.fail(problem, whole)

    def check_inverse(self, fmt: Format, levels: Sequence[LevelDef]) -> None:
        """A dimension spelled over level variables says what the levels' expressions say."""
        names = {level.variable.text: k for k, level in enumerate(levels) if level.variable}
        for d, dim in enumerate(self.dims):
            if not dim.terms:
                continue
            wanted = {k: e.div for k, e in enumerate(fmt.exprs) if e.dim == d}
            found: dict[int, int] = {}
            for name, factor in dim.terms:
                if name.text not in names:
                    help = did_you_mean(name.text, list(names))
                    self.fail(f"there is no level variable '{name.text}'; {help}", name)
                level = names[name.text]
                found[level] = found.get(level, 0) + factor
            if found != wanted:
                spell = {k: name for name, k in names.items()}
                terms = [spell[k] if f == 1 else f"{spell[k]} * {f}" for k, f in wanted.items()]
                remedy = f"write {dim.name.text} = {' + '.join(terms)}"
                self.fail(f"this does not invert the level expressions; {remedy}", dim.place)


def _property_names(cls: type[Level]) -> list[str]:
    """The keywords that may stand in parentheses behind a level type."""
    flags = [f.name for f in fields(cls) if f.type in (bool, "bool")]
    return ["nonunique", "nonordered", *(n for n in flags if n not in ("unique", "ordered"))]


def _is_zero(value: Attribute) -> bool:
    """Whether an attribute is the number 0 of any type."""
    if isinstance(value, IntegerAttr):
        return value.value.data == 0
    if isinstance(value, FloatAttr):
        return value.value.data == 0.0
    return False
