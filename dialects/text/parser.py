"""A parser that keeps the place of each operation, checks encodings where they stand, and takes
what upstream writes and xDSL refuses in builtin syntax.

Sugar of single operations is in :mod:`sparsecc.dialects.text.syntax`; the context brings it along.
"""

from __future__ import annotations

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
    StringAttr,
    TensorType,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser

from sparsecc.dialects.sparse_tensor.types import encoding_problem

T = TypeVar("T")

MAX_LITERAL = 1 << 20
"""Most elements that a ``sparse<...>`` literal is spread out to."""


class ModuleParser(Parser):
    """xDSL's parser with places, checks and sugar. It relies on internals of the pinned xDSL."""

    def __init__(self, ctx: Context, input: str, name: str = "<unknown>") -> None:
        super().__init__(ctx, input, name)
        self._file = StringAttr(name)
        self._lines = [0, *(i + 1 for i, c in enumerate(input) if c == "\n")]

    def location(self, offset: int) -> FileLineColLoc:
        """The place of a character."""
        line = bisect_right(self._lines, offset)
        column = offset - self._lines[line - 1] + 1
        return FileLineColLoc(self._file, IntAttr(line), IntAttr(column))

    def parse_operation(self) -> Operation:
        start = self.pos
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            op.location = self.location(start)
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
