"""Upstream's syntax of operations that xDSL knows but reads in another spelling.

Each class here stands in for a stock operation while text is read, and builds the stock one:
passes meet xDSL's own classes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.utils.hints import isa

from sparsecc.diagnostics import did_you_mean


def operand_group(parser: Parser, keyword: str) -> list[SSAValue]:
    """``keyword(%a, %b : T, U)``, or nothing."""
    if not parser.parse_optional_keyword(keyword):
        return []
    pos = parser.pos
    parser.parse_punctuation("(", f" after {keyword}")
    if parser.parse_optional_punctuation(")"):
        return []
    names = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation(":", f" and the types of {keyword}")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")", f" to close {keyword}")
    return list(parser.resolve_operands(names, types, pos))


def result_types(parser: Parser) -> list[Attribute]:
    """``-> T`` or ``-> (T, U)``, or nothing."""
    if not parser.parse_optional_punctuation("->"):
        return []
    listed = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    if listed is not None:
        return list(listed)
    return list(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))


class StandIn(Operation):
    """Builds the stock operation where the text has the generic form."""

    STOCK: ClassVar[type[Operation]]

    @classmethod
    def create(cls, **parts: Any) -> Any:
        return cls.STOCK.create(**parts)


class GenericSyntax(StandIn, GenericOp):
    """``linalg.generic #trait ins(...) outs(...)``: the dictionary may be an alias."""

    STOCK = GenericOp

    @classmethod
    def parse(cls, parser: Parser) -> Any:  # a stock operation, which is no Self
        start = parser.pos
        trait = parser.parse_optional_attribute()
        end = parser.pos
        if not isinstance(trait, DictionaryAttr):
            wanted = "{indexing_maps = ..., iterator_types = ...}"
            message = f"linalg.generic wants {wanted} or an alias of such a dictionary"
            parser.raise_error(message, start, max(start + 1, end))
        attributes: dict[str, Attribute] = dict(trait.data)
        maps = attributes.pop("indexing_maps", None)
        if not isa(maps, ArrayAttr[AffineMapAttr]):
            message = "linalg.generic wants indexing_maps = [affine_map<...>, ...]"
            parser.raise_error(message, start, end)
        iterators = attributes.pop("iterator_types", None)
        if not isa(iterators, ArrayAttr[Attribute]):
            message = 'linalg.generic wants iterator_types = ["parallel", "reduction", ...]'
            parser.raise_error(message, start, end)
        texts: dict[str, StringAttr | None] = {}
        for key in ("doc", "library_call"):
            text = attributes.pop(key, None)
            if text is not None and not isinstance(text, StringAttr):
                parser.raise_error(f"'{key}' of linalg.generic is a string", start, end)
            texts[key] = text
        types = [cls._iterator(parser, it, start, end) for it in iterators]
        ins, outs = operand_group(parser, "ins"), operand_group(parser, "outs")
        if parser.parse_optional_keyword("attrs"):
            parser.parse_punctuation("=")
            attributes |= parser.parse_optional_attr_dict()
        body = parser.parse_region()
        results = result_types(parser)
        op = GenericOp(ins, outs, body, maps, types, results, texts["doc"], texts["library_call"])
        op.attributes |= attributes
        return op

    @staticmethod
    def _iterator(parser: Parser, value: Attribute, start: int, end: int) -> IteratorTypeAttr:
        if isinstance(value, IteratorTypeAttr):
            return value
        known = [str(kind) for kind in IteratorType]
        if isinstance(value, StringAttr) and value.data in known:
            return IteratorTypeAttr(IteratorType(value.data))
        name = value.data if isinstance(value, StringAttr) else str(value)
        parser.raise_error(
            f"there is no iterator type '{name}'; {did_you_mean(name, known)}", start, end
        )


class CmpfSyntax(StandIn, arith.CmpfOp):
    """``arith.cmpf "olt", %a, %b``: upstream takes the predicate in quotes too."""

    STOCK = arith.CmpfOp

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        predicate, a, b, flags = _comparison(parser, arith.CMPF_COMPARISON_OPERATIONS)
        return arith.CmpfOp(a, b, predicate, flags)


class CmpiSyntax(StandIn, arith.CmpiOp):
    """``arith.cmpi "slt", %a, %b``."""

    STOCK = arith.CmpiOp

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        predicate, a, b, _ = _comparison(parser, arith.CMPI_COMPARISON_OPERATIONS)
        return arith.CmpiOp(a, b, predicate)


class VectorPrintSyntax(StandIn, vector.PrintOp):
    """``vector.print %v : T``."""

    STOCK = vector.PrintOp

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        name = parser.parse_unresolved_operand("vector.print of text is not supported yet")
        parser.parse_punctuation(":")
        return vector.PrintOp(parser.resolve_operand(name, parser.parse_type()))


def _comparison(
    parser: Parser, known: Sequence[str]
) -> tuple[str, SSAValue, SSAValue, arith.FastMathFlagsAttr]:
    start = parser.pos
    predicate = parser.parse_identifier_or_str_literal(" as the predicate of a comparison")
    if predicate not in known:
        message = f"there is no predicate '{predicate}'; {did_you_mean(predicate, known)}"
        parser.raise_error(message, start, parser.pos)
    parser.parse_punctuation(",")
    a = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    b = parser.parse_unresolved_operand()
    flags = arith.FastMathFlagsAttr("none")
    if parser.parse_optional_keyword("fastmath"):
        flags = arith.FastMathFlagsAttr(arith.FastMathFlagsAttr.parse_parameter(parser))
    parser.parse_punctuation(":")
    type = parser.parse_type()
    return predicate, parser.resolve_operand(a, type), parser.resolve_operand(b, type), flags
