"""Programs that were once compiled wrongly, each as small as it could be made."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from sparsecc import api
from sparsecc.backends.host import HostCast
from sparsecc.frontends.mlir_text import parse_module
from sparsecc.passes.sparsification.term import NotSparsifiable
from sparsecc.runtime.extents import ExtentsDiffer
from sparsecc.runtime.reference import evaluate_module
from sparsecc.storage.entries import from_coords
from sparsecc.storage.tensor import SparseTensor

SV = "#sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>"
CSR = "#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>"
DCSR = "#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed, d1 : compressed) }>"
BSR = (
    "#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 floordiv 2 : dense, "
    "d1 floordiv 2 : compressed, d0 mod 2 : dense, d1 mod 2 : dense) }>"
)


def tensor(element: str, rank: int, encoding: str = "") -> str:
    return f"tensor<{'?x' * rank}{element}{', ' + encoding if encoding else ''}>"


def element(type_: str) -> str:
    inside = type_.removeprefix("tensor<").removesuffix(">")
    return inside.replace("?x", "").partition(",")[0]


def generic(ins: dict[str, tuple[str, str]], out: tuple[str, str], start: str, body: str) -> str:
    """An operation that yields %z; ``ins``: name -> (loops, type), also the names in the body."""
    loops = sorted({i for indices, _ in ins.values() for i in indices})
    loops.sort(key=lambda i: i not in out[0])
    kinds = ", ".join('"parallel"' if i in out[0] else '"reduction"' for i in loops)
    maps = ", ".join(
        f"affine_map<({', '.join(loops)}) -> ({', '.join(indices)})>"
        for indices, _ in (*ins.values(), out)
    )
    names, types = ", ".join(f"%{n}" for n in ins), ", ".join(t for _, t in ins.values())
    arguments = ", ".join(f"%{n}_: {element(t)}" for n, (_, t) in ins.items())
    return f"""linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
    ins({names} : {types}) outs(%{start} : {out[1]}) {{
  ^bb0({arguments}, %y_: {element(out[1])}):
    {body}
    linalg.yield %z : {element(out[1])}
  }} -> {out[1]}"""


def program(
    ins: dict[str, tuple[str, str]], out: tuple[str, str], body: str, start: str = ""
) -> str:
    """One operation on arguments; the result starts from zeros, or from the argument ``start``."""
    given = [f"%{name}: {type_}" for name, (_, type_) in ins.items()]
    lines: list[str] = []
    if start:
        given.append(f"%{start}: {out[1]}")
    else:
        for index in out[0]:
            name, (indices, type_) = next((n, v) for n, v in ins.items() if index in v[0])
            lines.append(f"%c{index} = arith.constant {indices.index(index)} : index")
            lines.append(f"%n{index} = tensor.dim %{name}, %c{index} : {type_}")
        lines.append(f"%start = tensor.empty({', '.join(f'%n{i}' for i in out[0])}) : {out[1]}")
    operation = generic(ins, out, start or "start", body)
    head = f"func.func @main({', '.join(given)}) -> {out[1]} {{"
    return "\n".join([head, *lines, f"%r = {operation}", f"return %r : {out[1]}", "}"])


def agree(text: str, **operands: Any) -> Any:
    """The result, which the interpreter gives as well: values, and where they are stored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = api.compile_mlir(text).call(operands)
    (wanted,) = evaluate_module(parse_module(text), operands)
    if isinstance(found, SparseTensor):
        assert isinstance(wanted, SparseTensor)
        found.check("full")
        for a, b in zip(found.to_coords()[0], wanted.to_coords()[0], strict=True):
            np.testing.assert_array_equal(a, b)
        found = found.to_numpy()
    a = np.asarray(found)
    b = wanted.to_numpy() if isinstance(wanted, SparseTensor) else wanted
    assert a.dtype == b.dtype
    np.testing.assert_allclose(a, b)
    return a


def vector(*at: int, value: float = 1.0) -> SparseTensor:
    return from_coords([list(at)], np.arange(len(at)) + value, (5,), "SV")


def matrix(format: str = "CSR") -> SparseTensor:
    return from_coords([[0, 0, 2], [1, 3, 2]], np.array([2.0, 3.0, 5.0]), (3, 4), format)


# -- wrong values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["", CSR])
def test_subtraction_over_two_loops(format: str) -> None:
    """The sum of the inner loop was subtracted from the outer one once more."""
    text = program({"a": ("ij", tensor("f64", 2, format))}, ("", "tensor<f64>"),
                   "%z = arith.subf %y_, %a_ : f64")  # fmt: skip
    assert agree(text, a=matrix()) == -10


@pytest.mark.parametrize("product", ["andi", "muli"])
@pytest.mark.parametrize("sum", ["addi", "ori"])
def test_factors_outside_of_a_sum(product: str, sum: str) -> None:
    """A factor was taken out of sums that it does not distribute over."""
    ins = {"a": ("i", tensor("i32", 1)), "b": ("ij", tensor("i32", 2))}
    body = f"%p = arith.{product} %a_, %b_ : i32\n%z = arith.{sum} %y_, %p : i32"
    a, b = np.array([3, 6], np.int32), np.array([[1, 2, 3], [3, 1, 6]], np.int32)
    found = agree(program(ins, ("", "tensor<i32>"), body), a=a, b=b)
    terms = (np.bitwise_and if product == "andi" else np.multiply)(a[:, None], b)
    assert found == (np.add if sum == "addi" else np.bitwise_or).reduce(terms, axis=None)


def test_a_constant_in_two_steps() -> None:
    text = program({"a": ("i", tensor("f64", 1))}, ("i", tensor("f64", 1)),
                   "%k = arith.constant 2.0 : f64\n%z = arith.negf %k : f64")  # fmt: skip
    assert agree(text, a=np.zeros(3)).tolist() == [-2] * 3


COMPLEX = "complex<f64>"


@pytest.mark.parametrize("out", ["", SV])
def test_complex_numbers_of_two_parts(out: str) -> None:
    """Where the real part was missing the imaginary one was lost."""
    ins = {"a": ("i", tensor("f64", 1, SV)), "b": ("i", tensor("f64", 1, SV))}
    text = program(ins, ("i", tensor(COMPLEX, 1, out)), f"%z = complex.create %a_, %b_ : {COMPLEX}")
    found = agree(text, a=vector(1, 3), b=vector(0, 3, value=7.0))
    assert found.tolist() == [7j, 1, 0, 2 + 8j, 0]


def test_complex_numbers_with_a_constant_part() -> None:
    body = f"%k = arith.constant 1.0 : f64\n%z = complex.create %a_, %k : {COMPLEX}"
    text = program({"a": ("i", tensor("f64", 1, SV))}, ("i", tensor(COMPLEX, 1)), body)
    assert agree(text, a=vector(1)).tolist() == [1j, 1 + 1j, 1j, 1j, 1j]


def test_a_function_that_is_zero_at_zero_keeps_the_pattern() -> None:
    type_ = tensor("f64", 2, CSR)
    found = agree(
        program({"a": ("ij", type_)}, ("ij", type_), "%z = math.absf %a_ : f64"), a=matrix()
    )
    assert np.count_nonzero(found) == 3


def test_a_cast_names_a_tensor_twice() -> None:
    """What came after a cast was numbered as if the cast had made a tensor."""
    operation = generic({"b": ("i", tensor("f64", 1))}, ("i", tensor("f64", 1)), "e",
                        "%z = arith.negf %b_ : f64")  # fmt: skip
    text = f"""func.func @main(%a: tensor<4xf64>) -> {tensor("f64", 1)} {{
  %b = tensor.cast %a : tensor<4xf64> to {tensor("f64", 1)}
  %n = arith.constant 4 : index
  %e = tensor.empty(%n) : {tensor("f64", 1)}
  %r = {operation}
  return %r : {tensor("f64", 1)}
}}"""
    assert agree(text, a=np.arange(4.0)).tolist() == [0, -1, -2, -3]


def test_a_cast_between_formats_converts() -> None:
    a, b = tensor("f64", 2, CSR), tensor("f64", 2, DCSR)
    text = f"""func.func @main(%a: {a}) -> {b} {{
  %r = tensor.cast %a : {a} to {b}
  return %r : {b}
}}"""
    assert agree(text, a=matrix())[0].tolist() == [0, 2, 0, 3]


def test_blocks_of_a_computed_tensor() -> None:
    """A crash: a computed tensor that is converted to blocks, and then walked by them."""
    a, b = tensor("f64", 2, CSR), tensor("f64", 2, BSR)
    negate = generic({"a": ("ij", a)}, ("ij", a), "e", "%z = arith.negf %a_ : f64")
    add = generic({"q": ("ij", b)}, ("", "tensor<f64>"), "s", "%z = arith.addf %y_, %q_ : f64")
    text = f"""func.func @main(%a: {a}) -> tensor<f64> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : {a}
  %n = tensor.dim %a, %c1 : {a}
  %e = tensor.empty(%m, %n) : {a}
  %p = {negate}
  %q = sparse_tensor.convert %p : {a} to {b}
  %s = tensor.empty() : tensor<f64>
  %r = {add}
  return %r : tensor<f64>
}}"""
    assert agree(text, a=matrix()) == -10


@pytest.mark.parametrize("op", ["divsi", "divui", "remsi", "remui"])
@pytest.mark.parametrize("reduced", [False, True])
def test_integer_division_by_zero(op: str, reduced: bool) -> None:
    """It ended the process; a missing divisor is 0, too."""
    encoding = "" if reduced else SV  # dense columns: a vectorised loop
    ins = {
        "a": ("ji" if reduced else "i", tensor("i32", 1 + reduced)),
        "b": ("i", tensor("i32", 1, encoding)),
    }
    body = f"%q = arith.{op} %a_, %b_ : i32\n%z = arith.addi %y_, %q : i32"
    least = np.iinfo(np.int32).min
    a = np.resize(np.array([7, -7, least, least, 5], np.int32), (3, 5) if reduced else 5)
    divisor = np.array([2, 0, -1, 0, 3], np.int32)
    b = divisor if reduced else from_coords([[0, 2, 3, 4]], divisor[[0, 2, 3, 4]], (5,), "SV")
    found = agree(program(ins, ("i", tensor("i32", 1)), body), a=a, b=b)
    assert found[1] == found[3] == 0


# -- what a result starts from ---------------------------------------------------------------------


ADD = "%z = arith.addf %y_, %a_ : f64"


def test_a_dense_start() -> None:
    text = program({"a": ("i", tensor("f64", 1, SV))}, ("i", tensor("f64", 1)), ADD, "c")
    start = np.ones(5)
    assert agree(text, a=vector(1, 3), c=start).tolist() == [1, 2, 1, 3, 1]
    assert start.tolist() == [1] * 5


def test_a_start_that_is_too_small() -> None:
    """The kernel wrote beyond its end."""
    text = program({"a": ("i", tensor("f64", 1))}, ("i", tensor("f64", 1)), ADD, "c")
    with pytest.raises(ExtentsDiffer):
        api.compile_mlir(text)(a=np.ones(1000), c=np.ones(3))


@pytest.mark.parametrize("format", [SV, "#sparse_tensor.encoding<*>"])
def test_a_sparse_start(format: str) -> None:
    """It was ignored; it is refused until it is added."""
    rank = 1 if format == SV else 2
    type_ = tensor("f64", rank, format)
    text = program({"a": ("ij"[:rank], tensor("f64", rank))}, ("ij"[:rank], type_), ADD, "c")
    with pytest.raises(NotSparsifiable, match="adds to a sparse tensor"):
        api.compile_mlir(text)


# -- conversions that were taken for something else ------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "a", "b"),
    [
        ("sparse_tensor.convert", tensor("f64", 1, SV), tensor("f32", 1, SV)),
        ("tensor.cast", tensor("f64", 1), "tensor<4xf64>"),
    ],
)
def test_conversions_that_are_refused(operation: str, a: str, b: str) -> None:
    """The element type stayed what it was; nobody looked at the extent."""
    text = (
        f"func.func @main(%a: {a}) -> {b} {{\n%r = {operation} %a : {a} to {b}\nreturn %r : {b}\n}}"
    )
    with pytest.raises(HostCast):
        api.compile_mlir(text)


@pytest.mark.parametrize("name", ["bool", "int64", "float64", "uint8"])
def test_specs_take_numpy_types(name: str) -> None:
    """A NumPy type equals names of ours, and was taken for one."""
    given = np.ones(3, name)
    kernel = api.compile("y[i] = a[i] * a[i]", a=api.Spec((None,), given.dtype))
    assert kernel(a=given).tolist() == given.tolist()


def test_a_result_may_start_from_a_number() -> None:
    text = """
      #CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
      func.func @main(%A: tensor<?x?xf64, #CSR>, %x: tensor<?xf64>) -> tensor<?xf64> {
        %c0 = arith.constant 0 : index
        %start = arith.constant 2.5 : f64
        %m = tensor.dim %A, %c0 : tensor<?x?xf64, #CSR>
        %e = tensor.empty(%m) : tensor<?xf64>
        %i = linalg.fill ins(%start : f64) outs(%e : tensor<?xf64>) -> tensor<?xf64>
        %y = linalg.matvec ins(%A, %x : tensor<?x?xf64, #CSR>, tensor<?xf64>)
                           outs(%i : tensor<?xf64>) -> tensor<?xf64>
        return %y : tensor<?xf64>
      }"""
    kernel = api.compile_mlir(text)
    a, out = api.asarray(np.array([[2.0, 0], [0, 0], [0, 3]])).to("CSR"), np.full(3, 9.0)
    assert np.array_equal(kernel(A=a, x=np.ones(2)), [4.5, 2.5, 5.5])
    assert kernel(A=a, x=np.ones(2), out=out) is out and np.array_equal(out, [4.5, 2.5, 5.5])


def test_a_result_of_fixed_extents_keeps_to_them() -> None:
    text = """
      func.func @main(%x: tensor<?xf64>) -> tensor<4xf64> {
        %e = tensor.empty() : tensor<4xf64>
        %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                             iterator_types = ["parallel"]}
          ins(%x : tensor<?xf64>) outs(%e : tensor<4xf64>) {
        ^bb0(%a: f64, %b: f64):
          %s = arith.addf %a, %a : f64
          linalg.yield %s : f64
        } -> tensor<4xf64>
        return %y : tensor<4xf64>
      }"""
    kernel = api.compile_mlir(text)
    assert np.array_equal(kernel(x=np.ones(4)), np.full(4, 2.0))
    with pytest.raises(ExtentsDiffer):
        kernel(x=np.ones(6))
