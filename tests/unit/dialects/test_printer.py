"""Aliases at the top of a printed module."""

from __future__ import annotations

from encodings_for_tests import ALL, formats
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, ModuleOp, TensorType, f64
from xdsl.dialects.func import FuncOp

from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.dialects.text.printer import alias_name, print_module
from sparsecc.formats import Format, parse_format
from sparsecc.frontends.mlir_text import parse_module


def module_of(encodings: list[Format | None]) -> ModuleOp:
    types = [
        TensorType(f64, [DYNAMIC_INDEX] * (2 if fmt is None else fmt.rank), EncodingAttr(fmt))
        for fmt in encodings
    ]
    return ModuleOp([FuncOp.external("f", types, types[:1])])


def test_names():
    names = {
        "CSR": "CSR",
        "CSC": "CSC",
        "BSR(2,2)": "BSR_2_2",
        "2:4": "NM_2_4",
        "COO": "COO",
        "COO(3)": "COO_3",
        "dense": "DENSE",
        "CSF(2,0,1)": "CSF_2_0_1",
        "CSR@i32/i32": "CSR_i32",
        "CSR@i32/i64": "CSR_p64_c32",
        "CSR@i32/i0": "CSR_c32",
        "(d0, d1) -> (d0 : compressed, d1 : dense)": "SPARSE",
        "(d0, d1) -> (d1 : dense, d0 : dense)": "DENSE",
    }
    for text, name in names.items():
        assert alias_name(parse_format(text)) == name
    assert alias_name(None) == "ANY"


def test_one_alias_for_each_encoding():
    csr = parse_format("CSR")
    text = print_module(module_of([csr, csr, None]))
    assert text.splitlines() == [
        "#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>",
        "#ANY = #sparse_tensor.encoding<*>",
        "builtin.module {",
        "  func.func private @f(tensor<?x?xf64, #CSR>, tensor<?x?xf64, #CSR>, "
        "tensor<?x?xf64, #ANY>) -> tensor<?x?xf64, #CSR>",
        "}",
    ]


def test_clashing_names_are_numbered():
    one = parse_format("(d0, d1) -> (d0 : compressed, d1 : dense)")
    two = parse_format("(d0, d1) -> (d0 : dense, d1 : loose_compressed)")
    three = parse_format("(d0, d1) -> (d0 : loose_compressed, d1 : loose_compressed)")
    lines = print_module(module_of([one, two, three])).splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["#SPARSE", "#SPARSE_1", "#SPARSE_2"]


def test_all_known_encodings_in_one_module():
    text = print_module(module_of([*ALL, None]))
    assert text.count(" = #sparse_tensor.encoding") == len(set(ALL)) + 1
    assert print_module(parse_module(text)) == text


@settings(max_examples=30)
@given(st.lists(formats(), min_size=1, max_size=4))
def test_fixpoint_of_random_encodings(encodings: list[Format | None]):
    module = module_of(encodings)
    text = print_module(module)
    again = parse_module(text)
    assert again.is_structurally_equivalent(module)
    assert print_module(again) == text


def test_comments_stand_behind_operations():
    module = module_of([parse_format("CSR")])
    function = next(op for op in module.walk() if isinstance(op, FuncOp))
    assert isinstance(function.function_type, FunctionType)
    text = print_module(module, {function: "found in\nA.mtx"})
    assert "tensor<?x?xf64, #CSR>  // found in A.mtx\n" in text
    assert parse_module(text).is_structurally_equivalent(module)
