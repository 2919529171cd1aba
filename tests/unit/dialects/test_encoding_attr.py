"""``#sparse_tensor.encoding``: text and Format, there and back."""

from __future__ import annotations

import pytest
from encodings_for_tests import ALL, MAPS, formats
from hypothesis import given
from xdsl.dialects.builtin import TensorType, f64
from xdsl.parser import Parser

from sparsecc.dialects.registry import make_context
from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.dialects.sparse_tensor.types import encoding_of, format_of, with_format
from sparsecc.formats import Format, dense_format, parse_format


def parse(body: str) -> Format | None:
    attribute = Parser(make_context(), f"#sparse_tensor.encoding<{body}>").parse_attribute()
    assert isinstance(attribute, EncodingAttr)
    return attribute.data


@pytest.mark.parametrize("fmt", ALL, ids=str)
def test_round_trip(fmt: Format):
    text = str(EncodingAttr(fmt))
    again = Parser(make_context(), text).parse_attribute()
    assert again == EncodingAttr(fmt)
    assert str(again) == text


@given(formats())
def test_round_trip_of_random_formats(fmt: Format):
    attribute = EncodingAttr(fmt)
    assert Parser(make_context(), str(attribute)).parse_attribute() == attribute


@pytest.mark.parametrize("text", MAPS)
def test_prints_as_upstream(text: str):
    assert str(EncodingAttr(parse(f"{{ map = {text} }}"))) == (
        f"#sparse_tensor.encoding<{{ map = {text} }}>"
    )


def test_widths_are_printed_where_they_are_fixed():
    fmt = parse_format("CSR").with_widths(32, 16)
    assert str(EncodingAttr(fmt)).endswith("compressed), posWidth = 32, crdWidth = 16 }>")
    assert str(EncodingAttr(fmt.with_widths(0, 8))).endswith("compressed), crdWidth = 8 }>")


def test_level_variables_and_inverse():
    bsr = parse(
        "{ map = {l0, l1, l2, l3} (i = l0 * 2 + l2, j = 3 * l1 + l3) -> "
        "(l0 = i floordiv 2 : dense, l1 = (j floordiv 3) : compressed,"
        " l2 = i mod 2 : dense, l3 = j mod 3 : dense), crdWidth = 32, implicitVal = 0.0 : f64 }"
    )
    assert bsr == parse_format("BSR(2,3)").with_widths(0, 32)


def test_nested_digits_with_parentheses():
    fmt = parse(
        "{ map = (i) -> (i floordiv 12 : dense, (i floordiv 4) mod 3 : compressed, "
        "i mod 4 : dense) }"
    )
    assert fmt is not None
    assert [(e.div, e.mod) for e in fmt.exprs] == [(12, 0), (4, 3), (1, 4)]
    assert parse(f"{{ map = {fmt} }}") == fmt


def test_encoding_still_to_be_chosen():
    assert parse("*") is None
    assert str(EncodingAttr(None)) == "#sparse_tensor.encoding<*>"


def test_our_own_level_types_are_read():
    fmt = parse("{ map = (d0, d1) -> (d0 : dense, d1 : padded) }")
    assert fmt == parse_format("ELL")


def test_types_and_formats():
    csr = parse_format("CSR")
    type = with_format(TensorType(f64, [3, 4]), csr)
    assert encoding_of(type) == EncodingAttr(csr)
    assert format_of(type) == csr
    assert format_of(TensorType(f64, [3, 4])) == dense_format(2)
    assert format_of(with_format(type, None)) is None
    assert encoding_of(f64) is None and format_of(f64) is None
