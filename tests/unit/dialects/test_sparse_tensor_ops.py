"""Operations: each is parsed, verified, printed, and read again in both forms."""

from __future__ import annotations

from io import StringIO

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType, UnitAttr, f64, i32
from xdsl.dialects.test import TestOp as Producer
from xdsl.printer import Printer

from sparsecc.dialects.sparse_tensor import body_ops, ops
from sparsecc.dialects.sparse_tensor.dialect import SparseTensor
from sparsecc.dialects.sparse_tensor.types import with_format
from sparsecc.dialects.text.printer import print_module
from sparsecc.formats import parse_format
from sparsecc.frontends.mlir_text import parse_module

ALIASES = """
#CSR_p32 = #sparse_tensor.encoding<{
  map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32
}>
#CSC_p32 = #sparse_tensor.encoding<{
  map = (d0, d1) -> (d1 : dense, d0 : compressed), posWidth = 32
}>
#COO = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton) }>
"""
ARGUMENTS = (
    "%a: tensor<4x6xf64, #CSR_p32>, %b: tensor<4x6xf64, #COO>, %p: tensor<2xindex>, "
    "%c: tensor<3x2xindex>, %v: tensor<3xf64>, %i: index, %x: f64, %y: f32, %file: !llvm.ptr"
)

OPERATIONS = {
    "convert": "%0 = sparse_tensor.convert %a : tensor<4x6xf64, #CSR_p32> to tensor<?x6xf32, #COO>",
    "reinterpret_map": "%0 = sparse_tensor.reinterpret_map %a : tensor<4x6xf64, #CSR_p32> "
    "to tensor<6x4xf64, #CSC_p32>",
    "new": "%0 = sparse_tensor.new %file : !llvm.ptr to tensor<?x?xf64, #CSR_p32>",
    "assemble": "%0 = sparse_tensor.assemble (%p, %c), %v : (tensor<2xindex>, tensor<3x2xindex>), "
    "tensor<3xf64> to tensor<4x6xf64, #COO>",
    "disassemble": "%0, %1, %2, %3, %4, %5 = sparse_tensor.disassemble %b : tensor<4x6xf64, #COO> "
    "out_lvls(%p, %c : tensor<2xindex>, tensor<3x2xindex>) out_vals(%v : tensor<3xf64>) "
    "-> (tensor<2xindex>, tensor<3x2xindex>), tensor<3xf64>, (index, index), index",
    "positions": "%0 = sparse_tensor.positions %a {level = 1 : index} : tensor<4x6xf64, #CSR_p32> "
    "to memref<?xi32>",
    "coordinates": "%0 = sparse_tensor.coordinates %a {level = 1 : index} : "
    "tensor<4x6xf64, #CSR_p32> to memref<?xindex>",
    "coordinates (strided)": "%0 = sparse_tensor.coordinates %b {level = 1 : index} : "
    "tensor<4x6xf64, #COO> to memref<?xindex, strided<[?], offset: ?>>",
    "coordinates_buffer": "%0 = sparse_tensor.coordinates_buffer %b : tensor<4x6xf64, #COO> "
    "to memref<?xindex>",
    "values": "%0 = sparse_tensor.values %a : tensor<4x6xf64, #CSR_p32> to memref<?xf64>",
    "number_of_entries": "%0 = sparse_tensor.number_of_entries %a : tensor<4x6xf64, #CSR_p32>",
    "lvl": "%0 = sparse_tensor.lvl %a, %i : tensor<4x6xf64, #CSR_p32>",
    "concatenate": "%0 = sparse_tensor.concatenate %a, %b {dimension = 0 : index} : "
    "tensor<4x6xf64, #CSR_p32>, tensor<4x6xf64, #COO> to tensor<8x6xf64>",
    "load": "%0 = sparse_tensor.load %a : tensor<4x6xf64, #CSR_p32>",
    "load (inserts)": "%0 = sparse_tensor.load %a hasInserts : tensor<4x6xf64, #CSR_p32>",
    "print": "sparse_tensor.print %a : tensor<4x6xf64, #CSR_p32>",
    "has_runtime_library": "%0 = sparse_tensor.has_runtime_library",
    "unary": """%0 = sparse_tensor.unary %x : f64 to f32 present = {
      ^bb0(%1: f64):
        %2 = arith.truncf %1 : f64 to f32
        sparse_tensor.yield %2 : f32
      } absent = {
        %3 = arith.constant 1.000000e+00 : f32
        sparse_tensor.yield %3 : f32
      }""",
    "binary": """%0 = sparse_tensor.binary %x, %x : f64, f64 to f64 overlap = {
      ^bb0(%1: f64, %2: f64):
        sparse_tensor.yield %1 : f64
      } left = identity right = {
      }""",
    "reduce": """%0 = sparse_tensor.reduce %x, %x, %x : f64 {
      ^bb0(%1: f64, %2: f64):
        %3 = arith.mulf %1, %2 : f64
        sparse_tensor.yield %3 : f64
      }""",
    "select": """%0 = sparse_tensor.select %x : f64 {
      ^bb0(%1: f64):
        %2 = arith.constant true
        sparse_tensor.yield %2 : i1
      }""",
}


def program(body: str) -> str:
    return f"{ALIASES}func.func @f({ARGUMENTS}) {{\n    {body}\n    func.return\n}}\n"


def test_every_operation_has_an_example():
    named = {name.split()[0] for name in OPERATIONS} | {"yield"}
    assert named == {op.name.partition(".")[2] for op in SparseTensor.operations}


@pytest.mark.parametrize("body", OPERATIONS.values(), ids=OPERATIONS)
def test_round_trip(body: str):
    module = parse_module(program(body))
    text = print_module(module)
    assert " ".join(body.split()) in " ".join(text.split())
    assert print_module(parse_module(text)) == text


@pytest.mark.parametrize("body", OPERATIONS.values(), ids=OPERATIONS)
def test_generic_form(body: str):
    module = parse_module(program(body))
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    assert parse_module(stream.getvalue()).is_structurally_equivalent(module)


def test_built_from_python():
    csr = parse_format("CSR").with_widths(32, 32)
    source = Producer(result_types=[TensorType(f64, [4, 6])]).results[0]
    convert = ops.ConvertOp(source, with_format(source.type, csr))
    sparse = convert.dest
    positions = ops.PositionsOp(sparse, 1, MemRefType(i32, [DYNAMIC_INDEX]))
    built = [
        convert,
        positions,
        ops.CoordinatesOp(sparse, 1, MemRefType(i32, [DYNAMIC_INDEX])),
        ops.ValuesOp(sparse),
        ops.NumberOfEntriesOp(sparse),
        ops.LoadOp(sparse, has_inserts=True),
        ops.PrintOp(sparse),
    ]
    for op in built:
        op.verify()
    assert positions.level.value.data == 1
    assert built[5].properties["hasInserts"] == UnitAttr()
    assert ops.ValuesOp(sparse).result.type == MemRefType(f64, [DYNAMIC_INDEX])


def test_identity_is_a_property_of_binary():
    text = OPERATIONS["binary"]
    module = parse_module(program(text))
    (binary,) = [op for op in module.walk() if isinstance(op, body_ops.BinaryOp)]
    assert binary.left_identity is not None and binary.right_identity is None
    assert not binary.left_region.blocks and not binary.right_region.blocks
