"""The IR of resolved programs: exact texts, verification, values."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, islice
from typing import cast

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, NoneAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute

from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.formats import Format, dense_format, parse_format
from sparsecc.frontends import OperandType, dtypes, mistakes, parse, resolve
from sparsecc.frontends.ast import Access, names_read, walk
from sparsecc.frontends.module_builder import build_module
from tests.oracle.corpus import ROWS, Row
from tests.oracle.dense_ir import numpy_type, run
from tests.oracle.evaluator import evaluate
from tests.oracle.generator import DENSE, generate, make_operands

CSR = parse_format("CSR")
DENSE_ENC = "#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>"


def build(text: str, out: Format | None = None, **operands: OperandType) -> ModuleOp:
    module = build_module(resolve(parse(text), operands, out))
    module.verify()
    return module


def matrix(dtype: str = "f64", fmt: Format | None = CSR) -> OperandType:
    return OperandType((None, None), dtype, fmt)


def vector(dtype: str = "f64", extent: int | None = None) -> OperandType:
    return OperandType((extent,), dtype, dense_format(1))


# -- exact texts ----------------------------------------------------------------------------------


def expected(text: str) -> str:
    """Golden text with CSR for the encoding of compressed rows."""
    return text.replace("#CSR", DENSE_ENC).strip("\n")


SPMV = """
builtin.module {
  func.func @main(%A: tensor<?x?xf64, #CSR>, %x: tensor<?xf64>) -> tensor<?xf64> attributes \
{sparsecc.expression = "y[i] = A[i,j] * x[j]", sparsecc.args = ["A", "x"], \
sparsecc.results = ["y"]} {
    %0 = arith.constant 0 : index
    %1 = tensor.dim %A, %0 : tensor<?x?xf64, #CSR>
    %2 = arith.constant 0.000000e+00 : f64
    %3 = tensor.empty(%1) : tensor<?xf64>
    %4 = linalg.fill ins(%2 : f64) outs(%3 : tensor<?xf64>) -> tensor<?xf64>
    %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, \
affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], \
iterator_types = ["parallel", "reduction"]} \
ins(%A, %x : tensor<?x?xf64, #CSR>, tensor<?xf64>) outs(%4 : tensor<?xf64>) \
attrs =  {sparsecc.source = "y[i] = A[i,j] * x[j]", sparsecc.indices = ["i", "j"]} {
    ^bb0(%5: f64, %6: f64, %7: f64):
      %8 = arith.mulf %5, %6 : f64
      %9 = arith.addf %7, %8 : f64
      linalg.yield %9 : f64
    } -> tensor<?xf64>
    func.return %y : tensor<?xf64>
  }
}
"""

SPGEMM = """
builtin.module {
  func.func @main(%A: tensor<?x?xf64, #CSR>, %B: tensor<?x?xf32, #CSR>) -> \
tensor<?x?xf64, #CSR> attributes {sparsecc.expression = "C[i,j] = A[i,k] * B[k,j]", \
sparsecc.args = ["A", "B"], sparsecc.results = ["C"]} {
    %0 = arith.constant 0 : index
    %1 = tensor.dim %A, %0 : tensor<?x?xf64, #CSR>
    %2 = arith.constant 1 : index
    %3 = tensor.dim %B, %2 : tensor<?x?xf32, #CSR>
    %4 = tensor.empty(%1, %3) : tensor<?x?xf64, #CSR>
    %C = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, \
affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], \
iterator_types = ["parallel", "parallel", "reduction"]} \
ins(%A, %B : tensor<?x?xf64, #CSR>, tensor<?x?xf32, #CSR>) outs(%4 : tensor<?x?xf64, #CSR>) \
attrs =  {sparsecc.source = "C[i,j] = A[i,k] * B[k,j]", sparsecc.indices = ["i", "j", "k"]} {
    ^bb0(%5: f64, %6: f32, %7: f64):
      %8 = arith.extf %6 : f32 to f64
      %9 = arith.mulf %5, %8 : f64
      %10 = arith.addf %7, %9 : f64
      linalg.yield %10 : f64
    } -> tensor<?x?xf64, #CSR>
    func.return %C : tensor<?x?xf64, #CSR>
  }
}
"""

RESIDUAL = """
builtin.module {
  func.func @main(%b: tensor<3xui8>, %A: tensor<?x?xi8, #CSR>, %x: tensor<?xi8>) -> \
tensor<3xi16> attributes {sparsecc.expression = "y[i] = b[i] - A[i,j] * x[j]", \
sparsecc.args = ["b", "A", "x"], sparsecc.results = ["y"]} {
    %0 = arith.constant 0 : i8
    %1 = tensor.empty() : tensor<3xi8>
    %2 = linalg.fill ins(%0 : i8) outs(%1 : tensor<3xi8>) -> tensor<3xi8>
    %t0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, \
affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], \
iterator_types = ["parallel", "reduction"]} \
ins(%A, %x : tensor<?x?xi8, #CSR>, tensor<?xi8>) outs(%2 : tensor<3xi8>) \
attrs =  {sparsecc.source = "t0[i] = A[i,j] * x[j]", sparsecc.indices = ["i", "j"]} {
    ^bb0(%3: i8, %4: i8, %5: i8):
      %6 = arith.muli %3, %4 : i8
      %7 = arith.addi %5, %6 : i8
      linalg.yield %7 : i8
    } -> tensor<3xi8>
    %8 = arith.constant 0 : i16
    %9 = tensor.empty() : tensor<3xi16>
    %10 = linalg.fill ins(%8 : i16) outs(%9 : tensor<3xi16>) -> tensor<3xi16>
    %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, \
affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} \
ins(%b, %t0 : tensor<3xui8>, tensor<3xi8>) outs(%10 : tensor<3xi16>) \
attrs =  {sparsecc.source = "y[i] = b[i] - A[i,j] * x[j]", sparsecc.indices = ["i"]} {
    ^bb0(%11: ui8, %12: i8, %13: i16):
      %14 = builtin.unrealized_conversion_cast %11 : ui8 to i8
      %15 = arith.extui %14 : i8 to i16
      %16 = arith.extsi %12 : i8 to i16
      %17 = arith.subi %15, %16 : i16
      linalg.yield %17 : i16
    } -> tensor<3xi16>
    func.return %y : tensor<3xi16>
  }
}
"""


def test_spmv_text() -> None:
    module = build("y(i) = A(i,j) * x(j)", dense_format(1), A=matrix(), x=vector())
    assert str(module).strip() == expected(SPMV)


def test_spgemm_text() -> None:
    module = build("C(i,j) = A(i,k) * B(k,j)", CSR, A=matrix(), B=matrix("f32"))
    assert str(module).strip() == expected(SPGEMM)


def test_residual_text() -> None:
    operands = {"b": vector("u8", 3), "A": matrix("i8"), "x": vector("i8")}
    module = build("y(i) = b(i) - A(i,j) * x(j)", dense_format(1), **operands)
    assert str(module).strip() == expected(RESIDUAL)


# -- structure ------------------------------------------------------------------------------------


def generics(module: ModuleOp) -> list[linalg.GenericOp]:
    return [op for op in module.walk() if isinstance(op, linalg.GenericOp)]


def result_type(module: ModuleOp) -> TensorType[Attribute]:
    main = next(op for op in module.ops if isinstance(op, func.FuncOp))
    (kind,) = main.function_type.outputs.data
    assert isinstance(kind, TensorType)
    return cast(TensorType[Attribute], kind)


def test_each_access_is_one_input() -> None:
    (frobenius,) = generics(build("s = A[i,j] * A[i,j]", A=matrix()))
    assert len(frobenius.inputs) == 1
    (product,) = generics(build("s = A[i,j] * A[j,i]", A=matrix()))
    assert len(product.inputs) == 2
    assert product.inputs[0] is product.inputs[1]


def test_open_formats_are_encoded_as_such() -> None:
    module = build("C[i,j] = A[i,j] + B[i,j]", A=matrix(fmt=None), B=matrix())
    assert result_type(module).encoding == EncodingAttr(None)
    assert generics(module)[0].inputs[0].type == result_type(module)


def test_column_major_is_encoded() -> None:
    columns = dense_format(2).permuted((1, 0))
    module = build("C[i,j] = A[i,j] * 2", A=matrix(fmt=columns))
    assert generics(module)[0].inputs[0].type == TensorType(
        result_type(module).element_type, [-(2**63)] * 2, EncodingAttr(columns)
    )
    assert result_type(module).encoding == NoneAttr()


def test_scalars_have_no_encoding() -> None:
    module = build("s = a * A[i,j]", a=OperandType((), "f64"), A=matrix())
    assert str(generics(module)[0].inputs[0].type) == "tensor<f64>"
    assert str(result_type(module)) == "tensor<f64>"


@pytest.mark.parametrize("dtype", dtypes.NAMES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_corpus_verifies(row: Row, dtype: str) -> None:
    program = parse(row.text)
    (statement,) = program.statements
    ranks = {a.name: len(a.indices) for a in walk(statement.expr) if isinstance(a, Access)}
    types = {
        name: OperandType((None,) * ranks.get(name, 0), dtype, _format(row, name, ranks))
        for name in names_read(statement.expr)
    }
    target = statement.target.name
    rank = len(statement.target.indices) if isinstance(statement.target, Access) else 0
    out = parse_format(row.formats[target], rank) if target in row.formats else None
    if dtype == "bool" and row.name in ("residual", "sub"):  # 1 - d of pagerank is in i64
        with pytest.raises(mistakes.NoSubtraction):
            resolve(program, types, out)
        return
    resolved = resolve(program, types, out)
    module = build_module(resolved)
    module.verify()
    assert len(generics(module)) == len(resolved.steps)
    result = result_type(module)
    assert numpy_type(result.element_type) == dtypes.NUMPY[resolved.result_type.dtype]
    assert result.get_num_dims() == rank
    assert result.encoding == (NoneAttr() if rank == 0 or not row.formats else EncodingAttr(out))


def _format(row: Row, name: str, ranks: dict[str, int]) -> Format:
    rank = ranks.get(name, 0)
    return parse_format(row.formats[name], rank) if name in row.formats else dense_format(rank)


# -- values ---------------------------------------------------------------------------------------

MIXTURES = (
    ("f64",),
    ("i8", "u8", "i32", "f32"),
    ("bool", "i32"),
    ("bool",),
    ("c64", "f64", "u64", "i64"),
    ("u8", "u16", "i16", "u32"),
    ("c128", "f32", "i8"),
    ("f16",),
    ("bf16", "f16", "u8"),
)


@pytest.mark.parametrize("seed", range(0, 140, 20))
def test_random_programs_mean_what_the_oracle_says(seed: int) -> None:
    for number, mixture in enumerate(islice(cycle(MIXTURES), 20), start=seed):
        case = generate(number, mixture)
        case = replace(case, formats=dict.fromkeys(case.shapes, DENSE))
        operands = make_operands(case)
        expected_values, _ = evaluate(case.text, operands)
        types = {
            name: OperandType(
                shape if number % 2 else (None,) * len(shape),
                case.dtypes[name],
                dense_format(len(shape)),
            )
            for name, shape in case.shapes.items()
        }
        resolved = resolve(parse(case.text), types)
        module = build_module(resolved)
        module.verify()
        got = run(module, {name: values for name, (values, _) in operands.items()})
        assert got.dtype == expected_values.dtype == dtypes.NUMPY[resolved.result_type.dtype]
        if dtypes.is_narrow(resolved.result_type.dtype):
            got, expected_values = got.astype("f4"), expected_values.astype("f4")
            np.testing.assert_allclose(got, expected_values, rtol=1e-2, err_msg=str(case))
            continue
        np.testing.assert_allclose(got, expected_values, rtol=1e-4, atol=1e-5, err_msg=str(case))


def test_several_statements() -> None:
    text = "s = r[i] * r[i]; t = q[i] * A[i,j] * q[j]; y[i] = x[i] + s / t * q[i]"
    rng = np.random.default_rng(1)
    arrays = {n: rng.random(3).astype("f4") for n in "rqx"} | {"A": rng.random((3, 3))}
    types = {
        n: OperandType(a.shape, "f64" if n == "A" else "f32", dense_format(a.ndim))
        for n, a in arrays.items()
    }
    got = run(build(text, None, **types), arrays)
    r, q, x, a = arrays["r"], arrays["q"], arrays["x"], arrays["A"]
    np.testing.assert_allclose(got, x + (r @ r) / (q @ a @ q) * q, rtol=1e-6)
