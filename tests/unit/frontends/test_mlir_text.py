"""Programs in text: what upstream writes is read, all else is an IRError with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    ModuleOp,
    TensorType,
    f64,
)
from xdsl.dialects.linalg.ops import FillOp, GenericOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from sparsecc.diagnostics import FileError, IRError
from sparsecc.dialects.sparse_tensor.types import encoding_of, op_place
from sparsecc.dialects.text.named_ops import NAMED
from sparsecc.dialects.text.printer import print_module
from sparsecc.frontends.mlir_text import (
    NoBody,
    NoEntry,
    check_entry,
    parse_module,
    read_module,
    verify_module,
)
from sparsecc.passes.generalize_named_ops import GeneralizeNamedOps

EXAMPLES = Path(__file__).parents[3] / "examples"
CSR = "#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>\n"


def only(module: ModuleOp, name: str) -> Operation:
    (found,) = [op for op in module.walk() if op.name == name]
    return found


def wrap(body: str, arguments: str = "") -> str:
    return f"{CSR}func.func @f({arguments}) {{\n{body}\n  return\n}}\n"


# -- what is read ------------------------------------------------------------------------------


def test_spmm_example():
    module = read_module(EXAMPLES / "spmm.mlir")
    generic = only(module, "linalg.generic")
    assert isinstance(generic, GenericOp)
    assert [str(map.data) for map in generic.indexing_maps] == [
        "(d0, d1, d2) -> (d0, d2)",
        "(d0, d1, d2) -> (d2, d1)",
        "(d0, d1, d2) -> (d0, d1)",
    ]
    assert [kind.data.value for kind in generic.iterator_types] == [
        "parallel",
        "parallel",
        "reduction",
    ]
    assert generic.doc is not None and generic.doc.data == "C(i,j) += A(i,k) * B(k,j)"
    assert encoding_of(generic.inputs[0].type) is not None
    text = print_module(module)
    assert print_module(parse_module(text)) == text


def test_operations_keep_their_places():
    text = (EXAMPLES / "spmm.mlir").read_text()
    module = parse_module(text, "spmm.mlir")
    lines = text.split("\n")
    for op in module.walk():
        if isinstance(op, ModuleOp) or isinstance(op.parent_op(), FillOp):
            continue  # not written in the text
        assert isinstance(op.location, FileLineColLoc)
        name, line, column = op_place(op).split(":")
        assert name == "spmm.mlir"
        assert op.name.removeprefix("func.") in lines[int(line) - 1][int(column) - 1 :]


def test_written_locations_win():
    module = parse_module('%0 = arith.constant 1 : index loc("other.mlir":7:3)')
    assert op_place(only(module, "arith.constant")) == "other.mlir:7:3"


def test_extra_entries_of_a_trait_are_kept():
    text = """
    #trait = {
      indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"], sorted = true
    }
    func.func @f(%a: tensor<4xf64>) -> (tensor<4xf64>) {
      %0 = linalg.generic #trait outs(%a : tensor<4xf64>) attrs = {tag = "x"} {
      ^bb0(%x: f64):
        linalg.yield %x : f64
      } -> (tensor<4xf64>)
      return %0 : tensor<4xf64>
    }"""
    module = parse_module(text)
    assert set(only(module, "linalg.generic").attributes) == {"sorted", "tag"}
    assert parse_module(print_module(module)).is_structurally_equivalent(module)


def test_generic_with_several_results():
    text = """
    #trait = {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]
    }
    func.func @f(%a: tensor<4xf64>) {
      %0:2 = linalg.generic #trait outs(%a, %a : tensor<4xf64>, tensor<4xf64>) {
      ^bb0(%x: f64, %y: f64):
        linalg.yield %x, %y : f64, f64
      } -> (tensor<4xf64>, tensor<4xf64>)
      return
    }"""
    module = parse_module(text)
    assert len(only(module, "linalg.generic").results) == 2
    assert parse_module(print_module(module)).is_structurally_equivalent(module)


@pytest.mark.parametrize(
    "body",
    [
        "  %0 = bufferization.alloc_tensor() : tensor<4x6xf64, #CSR>",
        "  %0 = bufferization.alloc_tensor(%i, %i) : tensor<?x?xf64, #CSR>",
        "  %0 = bufferization.alloc_tensor() copy(%a) : tensor<4x6xf64, #CSR>",
        "  %0 = bufferization.alloc_tensor(%i, %i) size_hint=%i : tensor<?x?xf64, #CSR>",
        "  bufferization.dealloc_tensor %a : tensor<4x6xf64, #CSR>",
        '  %0 = arith.cmpf "olt", %x, %x : f64',
        "  %0 = arith.cmpf olt, %x, %x fastmath<nnan> : f64",
        '  %0 = arith.cmpi "slt", %i, %i : index',
        "  vector.print %x : f64",
        "  %0 = tensor.generate %i {\n  ^bb0(%m: index, %n: index):\n"
        "    tensor.yield %x : f64\n  } : tensor<?x3xf64>",
        "  %0 = scf.for %k = %i to %i step %i iter_args(%q = %x) -> f64 {\n"
        "    scf.yield %q : f64\n  }",
        "  %0 = scf.for %k = %i to %i step %i iter_args(%q = %x) -> (f64) {\n"
        "    scf.yield %q : f64\n  }",
        "  %0 = tensor.extract %a[%i, %i] : tensor<4x6xf64, #CSR>",
        "  %0 = math.absf %x : f64",
        "  // RUN: nothing",
    ],
)
def test_upstream_spellings(body: str):
    text = wrap(body, "%a: tensor<4x6xf64, #CSR>, %i: index, %x: f64")
    module = parse_module(text)
    printed = print_module(module)
    assert print_module(parse_module(printed)) == printed


def test_sparse_literal():
    def values(literal: str) -> list[float]:
        constant = only(parse_module(f"%0 = arith.constant {literal}"), "arith.constant")
        value = constant.properties["value"]
        assert isinstance(value, DenseIntOrFPElementsAttr)
        return [float(v) for v in value.iter_values() if not isinstance(v, tuple)]

    found = values("sparse<[[0, 1], [1, 0]], [1.5, -2.0]> : tensor<2x3xf64>")
    assert found == [0, 1.5, 0, -2, 0, 0]
    assert values("sparse<[[1], [2]], 7> : tensor<4xi32>") == [0, 7, 7, 0]
    assert values("sparse<> : tensor<3xf32>") == [0, 0, 0]


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ("sparse<[[4]], [1]> : tensor<4xi32>", "coordinate 4 is outside [0, 4)"),
        ("sparse<[[-1]], [1]> : tensor<4xi32>", "coordinate -1 is outside [0, 4)"),
        ("sparse<[[1, 2]], [1]> : tensor<4xi32>", "1 values want 1 coordinates of 1 numbers"),
        ("sparse<[[1]], [1, 2]> : tensor<4xi32>", "2 values want 2 coordinates"),
        ("sparse<[[1.5]], [1]> : tensor<4xi32>", "the coordinate 1.5 is no integer"),
        ("sparse<[[1]], [1]> : tensor<99999999999xi32>", "is the most"),
    ],
)
def test_bad_sparse_literals(literal: str, text: str):
    with pytest.raises(IRError, match="error") as caught:
        parse_module(f"%0 = arith.constant {literal}", "f.mlir")
    assert text in caught.value.message
    assert caught.value.place.startswith("f.mlir:1:")


# -- named operations --------------------------------------------------------------------------

SHAPES: dict[str, tuple[str, str, str]] = {
    "linalg.dot": ("4", "4", ""),
    "linalg.matvec": ("4x6", "6", "4"),
    "linalg.vecmat": ("4", "4x6", "6"),
    "linalg.batch_matmul": ("2x4x5", "2x5x3", "2x4x3"),
    "linalg.batch_matvec": ("2x4x5", "2x5", "2x4"),
    "linalg.matmul_transpose_a": ("5x4", "5x3", "4x3"),
    "linalg.matmul_transpose_b": ("4x5", "3x5", "4x3"),
    "linalg.conv_1d": ("8", "3", "6"),
    "linalg.conv_2d": ("8x8", "3x3", "6x6"),
    "linalg.conv_3d": ("8x8x8", "3x3x3", "6x6x6"),
    "linalg.conv_1d_nwc_wcf": ("3x8x1", "3x1x2", "3x6x2"),
    "linalg.conv_1d_ncw_fcw": ("3x1x8", "2x1x3", "3x2x6"),
    "linalg.conv_3d_ndhwc_dhwcf": ("1x8x8x8x1", "3x3x3x1x1", "1x6x6x6x1"),
    "linalg.pooling_nhwc_sum": ("1x4x4x1", "2x2", "1x3x3x1"),
    "linalg.pooling_nhwc_max": ("1x4x4x1", "2x2", "1x3x3x1"),
}


def named(name: str, element: str = "f64", attributes: str = "") -> str:
    a, b, c = (f"tensor<{shape}{'x' if shape else ''}{element}>" for shape in SHAPES[name])
    return (
        f"func.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{\n"
        f"  %0 = {name} {attributes} ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}\n"
        f"  return %0 : {c}\n}}\n"
    )


@pytest.mark.parametrize("element", ["f32", "i32"])
@pytest.mark.parametrize("name", NAMED)
def test_named_operations_become_generic(name: str, element: str):
    module = parse_module(named(name, element))
    generic = only(module, "linalg.generic")
    assert isinstance(generic, GenericOp) and generic.doc is not None
    assert generic.doc.data == name
    assert parse_module(print_module(module)).is_structurally_equivalent(module)


def test_strides_and_dilations():
    text = named(
        "linalg.pooling_nhwc_sum",
        attributes="{dilations = dense<2> : tensor<2xi64>,"
        " strides = dense<[1, 3]> : tensor<2xi64>}",
    ).replace("1x4x4x1", "1x9x9x1")
    generic = only(parse_module(text), "linalg.generic")
    assert isinstance(generic, GenericOp)
    map = generic.indexing_maps.data[0].data
    # n o p c k l: output coordinates (0, 2, 1, 0), window (1, 1)
    assert map.eval([0, 2, 1, 0, 1, 1], []) == (0, 2 + 2, 3 + 2, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%0 = linalg.matvec ins() outs()", "linalg.matvec takes 2 ins and one outs"),
        (named("linalg.conv_2d", attributes="{strides = dense<1> : tensor<3xi64>}"), "2 numbers"),
        (named("linalg.conv_2d", attributes="{strides = dense<0> : tensor<2xi64>}"), "positive"),
        (named("linalg.conv_2d", attributes="{strides = 3}"), "dense tensor of integers"),
        (named("linalg.dot").replace("tensor<f64>", "tensor<f32>"), "do not widen"),
    ],
)
def test_bad_named_operations(text: str, message: str):
    with pytest.raises(IRError) as caught:
        parse_module(text, "f.mlir")
    assert message in caught.value.message
    assert caught.value.place.startswith("f.mlir:")


def test_generalize():
    body = """
      %0 = linalg.matmul ins(%a, %b : tensor<4x6xf64, #CSR>, tensor<6x4xf64>)
                         outs(%c : tensor<4x4xf64>) -> tensor<4x4xf64>
      %1 = linalg.fill ins(%x : f64) outs(%c : tensor<4x4xf64>) -> tensor<4x4xf64>"""
    arguments = "%a: tensor<4x6xf64, #CSR>, %b: tensor<6x4xf64>, %c: tensor<4x4xf64>, %x: f64"
    module = parse_module(wrap(body, arguments), "f.mlir")
    place = op_place(next(op for op in module.walk() if op.name == "linalg.matmul"))
    GeneralizeNamedOps().apply(Context(), module)
    verify_module(module)
    assert op_place(only(module, "linalg.generic")) == place == "f.mlir:4:7"
    assert only(module, "linalg.fill")


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("func.func @f(", 1),
        ("func.func @f() {\n  return\n", 3),
        ("func.func @f() {\n  %0 = nosuch.op\n  return\n}", 2),
        ("func.func @f() {\n  return %x : f64\n}", 2),
        ("%0 = arith.constant 1 : index\n%0 = arith.constant 2 : index", 2),
        ("%0 = arith.constant 1.5 : i32", 1),
        ('%0 = arith.constant "\\q" : i32', 1),
        ("\n\x00\x01\x02", 2),
        ("%0 = linalg.generic #nosuch", 1),
        ("%0 = linalg.generic {} ", 1),
        ("%0 = linalg.generic {indexing_maps = 3, iterator_types = []}", 1),
        ("%0 = linalg.generic {indexing_maps = [], iterator_types = 3}", 1),
        ("%0 = linalg.generic {indexing_maps = [], iterator_types = [], doc = 3}", 1),
        ("#a = 3\n#a = 4", 2),
        ("#a = #sparse_tensor.encoding", 1),
        ("#a = #sparse_tensor.encoding<", 1),
        ("#a = #sparse_tensor.encoding<{", 1),
        ("#a = #sparse_tensor.encoding<{ map = (d0) -> (d0", 1),
        ("#a = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) } ,", 1),
        ("#a = affine_map<(i) -> (i * i)>", 1),
        ("func.func @f(%a: tensor<99999999999999999999x?x>)", 1),
    ],
)
def test_malformed_text(text: str, line: int):
    with pytest.raises(IRError) as caught:
        parse_module(text, "bad.mlir")
    assert caught.value.place.startswith(f"bad.mlir:{line}:"), str(caught.value)
    assert caught.value.span is not None and caught.value.message


def test_unknown_names_are_blamed_where_they_stand():
    with pytest.raises(IRError, match="did you mean 'sparse_tensor.convert'") as caught:
        parse_module("func.func @f() {\n  %0 = sparse_tensor.convrt %a\n}", "f.mlir")
    assert caught.value.place == "f.mlir:2:8"
    with pytest.raises(IRError, match="value %x is used, but nothing defines it") as caught:
        parse_module("func.func @f(%x1: f64) {\n  return %x : f64\n}", "f.mlir")
    assert caught.value.place == "f.mlir:2:10"


def test_open_quotes_take_no_time():
    with pytest.raises(IRError, match="closing string literal"):
        parse_module('#a = "' + "a" * 100_000)


@pytest.mark.parametrize("text", ["", "  \n\n", "// only\n  // comments\n"])
def test_empty_program(text: str):
    with pytest.raises(IRError, match="empty.mlir: error: the program is empty"):
        parse_module(text, "empty.mlir")


@pytest.mark.parametrize(
    "text",
    [
        "func.func @f() {" * 50_000,
        "#a = " + "[" * 50_000,
        "#a = " + "tensor<1x" * 50_000,
        "#a = affine_map<(i) -> (" + "(" * 50_000,
        "builtin.module {" * 20_000 + "}" * 20_000,
    ],
)
def test_deep_nesting(text: str):
    with pytest.raises(IRError):
        parse_module(text, "deep.mlir")


def test_error_of_an_operation_names_it_and_shows_its_line():
    body = "  %0 = sparse_tensor.values %a : tensor<4xf64> to memref<?xf64>"
    text = wrap(body, "%a: tensor<4xf64>")
    with pytest.raises(IRError) as caught:
        parse_module(text, "f.mlir")
    assert str(caught.value) == (
        "f.mlir:3:3: error: 'sparse_tensor.values' does not verify: "
        "the operand must be a tensor with a sparse encoding, not tensor<4xf64>\n"
        "    %0 = sparse_tensor.values %a : tensor<4xf64> to memref<?xf64>\n"
        "    " + "^" * 61
    )


def test_types_are_verified_without_a_text():
    module = parse_module(wrap("", "%a: tensor<4x6xf64, #CSR>"))
    argument = next(op for op in module.walk() if op.name == "func.func").regions[0].block.args[0]
    encoding = encoding_of(argument.type)
    assert encoding is not None
    Rewriter.replace_value_with_new_type(argument, TensorType(f64, [4], encoding))
    with pytest.raises(IRError, match="'func.func'.*maps 2 dimensions, but the tensor has 1"):
        verify_module(module)


def test_files(tmp_path: Path):
    file = tmp_path / "a.mlir"
    with pytest.raises(FileError, match="No such file"):
        read_module(file)
    file.write_bytes(b"func.func\n\xff\xfe\x00")
    with pytest.raises(FileError, match=r"a\.mlir:2: error: byte 10 is not UTF-8"):
        read_module(file)
    with pytest.raises(FileError):
        read_module(tmp_path)


JUNK = ["", "<", ")", "{", "%0", "#CSR", '"', "0", "->", "\x00", "é"]
SPMM = (EXAMPLES / "spmm.mlir").read_text()


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_text_is_an_ir_error_or_a_program(data: st.DataObject):
    text = SPMM
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        end = data.draw(st.integers(at, min(len(text), at + 12)))
        junk = data.draw(st.sampled_from(JUNK))
        text = text[:at] + junk + text[end:]
    try:
        module = parse_module(text, "spmm.mlir")
    except IRError as error:
        assert error.place.startswith("spmm.mlir")
    else:
        assert print_module(module)


def test_a_program_without_the_entry_names_what_it_has():
    with pytest.raises(NoEntry, match="no function @main"):
        check_entry(parse_module("func.func @f() {\n  return\n}\n"), "main")
    with pytest.raises(NoBody, match="@main has no body"):
        check_entry(parse_module("func.func private @main()\n"), "main")
