"""A parser that keeps the place of each operation, checks encodings where they stand, and takes
what upstream writes and xDSL refuses in builtin syntax.

Sugar of single operations is in :mod:`sparsecc.dialects.text.syntax`; the context brings it along.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyTensorType,
    AnyUnrankedTensorType,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    IntAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser, ParserState
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from sparsecc.diagnostics import did_you_mean
from sparsecc.dialects.sparse_tensor.types import encoding_problem

T = TypeVar("T")

MAX_LITERAL = 1 << 20
"""Most elements that a ``sparse<...>`` literal is spread out to."""


class ModuleLexer(MLIRLexer):
    """xDSL's lexer, but that its pattern of a string takes exponential time on an open quote."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


class ModuleParser(Parser):
    """xDSL's parser with places, checks and sugar. It relies on internals of the pinned xDSL."""

    def __init__(self, ctx: Context, input: str, name: str = "<unknown>") -> None:
        super().__init__(ctx, "", name)
        self._parser_state = ParserState(ModuleLexer(Input(input, name)))
        self._file = StringAttr(name)
        self._lines = [0, *(i + 1 for i, c in enumerate(input) if c == "\n")]

    def location(self, offset: int) -> FileLineColLoc:
        """The place of a character."""
        line = bisect_right(self._lines, offset)
        column = offset - self._lines[line - 1] + 1
        return FileLineColLoc(self._file, IntAttr(line), IntAttr(column))

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        try:
            return super().parse_module(allow_implicit_module)
        except ParseError:
            # xDSL blames the end of the file for a value that nothing defines.
            if self._current_token.kind is not MLIRTokenKind.EOF or not self.forward_ssa_references:
                raise
        name = "%" + next(iter(self.forward_ssa_references))
        use = re.search(re.escape(name) + r"(?![\w$.-])", self.lexer.input.content)
        start = use.start() if use else self.pos
        message = f"the value {name} is used, but nothing defines it"
        self.raise_error(message, start, start + len(name))

    def _get_op_by_name(self, name: str) -> type[Operation]:
        found = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if found is not None:
            return found
        start = max(0, self.lexer.input.content.rfind(name, 0, self.pos))
        dialect = name.partition(".")[0]
        known = [op.name for op in self.ctx.loaded_ops if op.name.startswith(f"{dialect}.")]
        help = did_you_mean(name, known) if known else f"there is no dialect '{dialect}' either"
        self.raise_error(f"there is no operation '{name}'; {help}", start, start + len(name))

    def parse_operation(self) -> Operation:
        start = self.pos
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            op.location = self.location(start)
        # Named operations bring a body that is not written: it stands where they do.
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    if isinstance(inner.location, UnknownLoc):
                        inner.location = op.location
        return op

    def parse_comma_separated_list(
        self, delimiter: Parser.Delimiter, parse: Callable[[], T], context_msg: str = ""
    ) -> list[T]:
        # Upstream leaves out the parentheses around a single result type: scf.for ... -> f64 {
        if delimiter is self.Delimiter.PAREN and self._current_token.text != "(":
            if self.lexer.input.content[: self.pos].rstrip().endswith("->"):
                return [parse()]
        return super().parse_comma_separated_list(delimiter, parse, context_msg)

    def _parse_tensor_attrs(self) -> AnyTensorType | AnyUnrankedTensorType:
        start = self.pos
        type = super()._parse_tensor_attrs()
        if isinstance(type, TensorType):
            encoding: Attribute = type.encoding
            if problem := encoding_problem(type.get_num_dims(), encoding):
                self.raise_error(problem, start, self.pos)
        return type

    def _parse_optional_builtin_parametrized_attr(self) -> Attribute | None:
        if self.parse_optional_keyword("sparse"):
            return self._parse_sparse_literal()
        return super()._parse_optional_builtin_parametrized_attr()

    def _parse_sparse_literal(self) -> DenseIntOrFPElementsAttr:
        """``sparse<coordinates, values> : type``, spread out to a dense literal."""
        start = self.pos
        self.parse_punctuation("<", " in a sparse literal")
        places: list[int] = []
        shape: list[int] = [0]
        values: list[Parser._TensorLiteralElement] = []
        if not self.parse_optional_punctuation(">"):
            coordinates, shape = self._parse_tensor_literal()
            self.parse_punctuation(",", " between coordinates and values of a sparse literal")
            values, value_shape = self._parse_tensor_literal()
            self.parse_punctuation(">", " in a sparse literal")
            places = [self._coordinate(element.value, start) for element in coordinates]
            if len(shape) == 0:
                shape = [1, 1]
            if len(value_shape) == 0:
                values = values * shape[0]
        self.parse_punctuation(":", " and the type of a sparse literal")
        type = self._parse_dense_literal_type()
        sizes = type.get_shape()
        rank = len(sizes)
        total = prod(sizes)
        if any(size < 0 for size in sizes) or total > MAX_LITERAL:
            message = f"a sparse literal of {total} elements; {MAX_LITERAL} is the most"
            self.raise_error(message, start, self.pos)
        if len(places) != rank * len(values):
            message = f"{len(values)} values want {len(values)} coordinates of {rank} numbers each"
            self.raise_error(message, start, self.pos)
        zero = self._TensorLiteralElement(False, 0, self._current_token.span)
        cells = [zero.to_type(self, type.element_type)] * total
        for k, value in enumerate(values):
            at = 0
            for size, place in zip(sizes, places[k * rank : (k + 1) * rank], strict=True):
                if not 0 <= place < size:
                    self.raise_error(f"coordinate {place} is outside [0, {size})", start, self.pos)
                at = at * size + place
            cells[at] = value.to_type(self, type.element_type)
        build: Any = DenseIntOrFPElementsAttr.from_list  # one overload for each element type
        return build(type, cells)

    def _coordinate(self, value: object, start: int) -> int:
        if not isinstance(value, int):
            self.raise_error(f"the coordinate {value} is no integer", start, self.pos)
        return value
