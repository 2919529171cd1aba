"""Recognised contractions compute what the program says: kernels in the model against the reference interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg

from sparsecc.dialects.text.printer import print_module
from sparsecc.frontends.mlir_text import parse_module, verify_module
from sparsecc.pipeline import run_passes
from sparsecc.runtime.reference import evaluate_module
from tests.unit.passes.fragments_model import run_module
from tests.unit.passes.programs import (
    COLUMN_MAJOR,
    RESIDUAL,
    SUMS,
    TRANSPOSED,
    Program,
    Tensor,
    data,
    product,
    weight,
)

Array = Any
EXTENTS = {"b": 3, "t": 5, "n": 19, "k": 76}


def matched(text: str, **options: str) -> ModuleOp:
    """A program after the pass."""
    module = parse_module(text, "program")
    names: list[tuple[str, dict[str, str]]] = [
        ("generalize-named-ops", {}),
        ("select-formats", {}),
        ("match-contractions", options),
    ]
    run_passes(module, names, verify=True)
    verify_module(module)
    return module


def check(program: Program, result: Tensor, **extents: int) -> None:
    """Compile a program and compare; nothing but launches may be left of it."""
    text = program.text(result)
    rng = np.random.default_rng(len(text))
    sizes = EXTENTS | extents
    operands = [data(t, sizes, rng) for t in program.tensors]
    names = [t.name for t in program.tensors]
    (expected,) = evaluate_module(parse_module(text, "p"), dict(zip(names, operands, strict=True)))
    found = run_module(matched(text), operands)
    assert isinstance(expected, np.ndarray)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if result.dtype.startswith("i"):
        np.testing.assert_array_equal(found, expected)
    else:
        scale = max(1.0, float(np.abs(expected.astype(np.float64)).max()))
        wrong = np.abs(found.astype(np.float64) - expected.astype(np.float64)).max()
        assert wrong <= scale * {"f16": 4e-3, "bf16": 3e-2}.get(result.dtype, 1e-5)


def linear(
    x: str, w: str, y: str, dtype: str = "f16", result: str = "f16", **more: bool
) -> tuple[Program, Tensor]:
    """Y = X * W, by letters."""
    tensors = [Tensor("X", x, dtype), weight(w, dtype)]
    program = Program(tensors)
    inputs = tensors[::-1] if more.get("swap") else tensors
    out = program.generic(inputs, Tensor("Y", y, result), product(dtype, result, **more))
    return program, out


@pytest.mark.parametrize(
    ("x", "w", "y"),
    [
        ("tk", "nk", "tn"), ("kt", "nk", "nt"), ("tk", "nk", "nt"), ("kt", "nk", "tn"),
        ("btk", "nk", "btn"), ("bkt", "nk", "bnt"), ("btk", "bnk", "btn"), ("tbk", "nk", "tbn"),
        ("bkt", "bnk", "btn"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        ("f16", "f16"),
        ("bf16", "bf16"),
        ("bf16", "f32"),
        ("f16", "f32"),
        ("i8", "i32"),
        ("i8", "i8"),
    ],
)
def test_orders_batches_and_types(x: str, w: str, y: str, dtype: str, result: str) -> None:
    check(*linear(x, w, y, dtype, result))


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("sub", [False, True])
def test_operands_in_either_order_and_differences(swap: bool, sub: bool) -> None:
    check(*linear("tk", "nk", "tn", swap=swap, sub=sub))
    check(*linear("tk", "nk", "tn", "i8", "i32", swap=swap, sub=sub))


@pytest.mark.parametrize(("t", "n", "k"), [(1, 1, 4), (1, 16, 64), (33, 7, 128), (2, 65, 132)])
def test_extents(t: int, n: int, k: int) -> None:
    check(*linear("tk", "nk", "tn"), t=t, n=n, k=k)


def test_a_weight_that_is_stored_by_columns_and_a_dense_operand_too() -> None:
    tensors = [Tensor("X", "tk", "f16", COLUMN_MAJOR), weight("kn", map=TRANSPOSED)]
    program = Program(tensors)
    check(program, program.generic(tensors, Tensor("Y", "tn", "f32"), product("f16", "f32")))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize(("x", "y"), [("tk", "tn"), ("kt", "nt"), ("btk", "btn")])
def test_a_weight_with_a_residual(dtype: str, x: str, y: str) -> None:
    tensors = [Tensor("X", x, dtype), weight("nk", dtype, RESIDUAL)]
    program = Program(tensors)
    out = program.generic(tensors, Tensor("Y", y, "f32"), product(dtype, "f32"))
    check(program, out)
    text = print_module(matched(program.text(out), tokens="64"))
    assert text.count("tile.sparse_dot") == 2 and text.count("tile.complement") == 1


def test_factors_do_not_depend_on_k() -> None:
    tensors = [
        Tensor("X", "tk", "f16"),
        weight("nk"),
        Tensor("s", "t", "f32"),
        Tensor("g", "", "f32"),
    ]
    body = [
        "%wide_X = arith.extf %X : f16 to f32", "%wide_W = arith.extf %W : f16 to f32",
        "%two = arith.constant 2.0 : f32", "%a = arith.mulf %s, %wide_X : f32",
        "%b = arith.mulf %a, %wide_W : f32", "%c = arith.mulf %b, %two : f32",
        "%d = arith.mulf %g, %c : f32", "%sum = arith.addf %out, %d : f32", "linalg.yield %sum : f32",
    ]  # fmt: skip
    program = Program(tensors)
    check(program, program.generic(tensors, Tensor("Y", "tn", "f32"), body))


def test_a_start() -> None:
    tensors = [Tensor("X", "tk", "f16"), weight("nk"), Tensor("Z", "tn", "f16")]
    program = Program(tensors)
    out = Tensor("Y", "tn", "f16")
    check(program, program.generic(tensors[:2], out, product("f16", "f16", sub=True), start="%Z"))


EPILOGUES: dict[str, tuple[list[Tensor], str, list[str]]] = {
    # name: tensors, the result's letters, body on %Z (f16)
    "bias": ([Tensor("v", "n", "f16")], "tn", [
        "%r = arith.addf %Z, %v : f16", "linalg.yield %r : f16"]),
    "bias, wide and rounded": ([Tensor("v", "n", "f16")], "tn", [
        "%a = arith.extf %Z : f16 to f32", "%b = arith.extf %v : f16 to f32",
        "%r = arith.addf %a, %b : f32", "%h = arith.truncf %r : f32 to f16", "linalg.yield %h : f16"]),
    "scale of tokens": ([Tensor("v", "t", "f16")], "tn", [
        "%r = arith.mulf %v, %Z : f16", "linalg.yield %r : f16"]),
    "scalar": ([Tensor("v", "", "f16")], "tn", [
        "%r = arith.mulf %v, %Z : f16", "linalg.yield %r : f16"]),
    "relu": ([], "tn", [
        "%zero = arith.constant 0.0 : f16", "%r = arith.maximumf %Z, %zero : f16", "linalg.yield %r : f16"]),
    "relu by comparison": ([], "tn", [
        "%zero = arith.constant 0.0 : f16", "%c = arith.cmpf ogt, %Z, %zero : f16",
        "%r = arith.select %c, %Z, %zero : f16", "linalg.yield %r : f16"]),
    "silu": ([], "tn", [
        "%one = arith.constant 1.0 : f16", "%m = arith.negf %Z : f16", "%e = math.exp %m : f16",
        "%d = arith.addf %one, %e : f16", "%r = arith.divf %Z, %d : f16", "linalg.yield %r : f16"]),
    "tanh, transposed": ([], "nt", ["%r = math.tanh %Z : f16", "linalg.yield %r : f16"]),
    "residual connection": ([Tensor("v", "tn", "f16")], "tn", [
        "%r = arith.subf %v, %Z : f16", "linalg.yield %r : f16"]),
}  # fmt: skip


@pytest.mark.parametrize("name", EPILOGUES)
def test_epilogues(name: str) -> None:
    more, letters, body = EPILOGUES[name]
    tensors = [Tensor("X", "tk", "f16"), weight("nk")]
    program = Program([*tensors, *more])
    z = program.generic(tensors, Tensor("Z", "tn", "f16"), product("f16", "f16"))
    check(program, program.generic([z, *more], Tensor("Y", letters, "f16"), body))


def test_a_chain_is_fused_into_one_launch_with_a_batch() -> None:
    tensors = [
        Tensor("X", "btk", "i8"),
        weight("nk", "i8"),
        Tensor("s", "n", "f32"),
        Tensor("r", "btn", "f16"),
    ]
    program = Program(tensors)
    z = program.generic(tensors[:2], Tensor("Z", "btn", "i32"), product("i8", "i32"))
    scaled = program.generic([z, tensors[2]], Tensor("S", "btn", "f16"), [
        "%f = arith.sitofp %Z : i32 to f32", "%p = arith.mulf %f, %s : f32",
        "%h = arith.truncf %p : f32 to f16", "linalg.yield %h : f16"])  # fmt: skip
    out = program.generic([scaled, tensors[3]], Tensor("Y", "btn", "f16"), [
        "%a = arith.addf %S, %r : f16", "linalg.yield %a : f16"])  # fmt: skip
    check(program, out)
    module = matched(program.text(out))
    kernels = [op.sym_name.data for op in module.body.block.ops if hasattr(op, "sym_name")]  # type: ignore[attr-defined]
    assert kernels == ["main", "contraction0"]


def test_what_is_read_twice_is_stored() -> None:
    tensors = [Tensor("X", "tk", "f16"), weight("nk")]
    program = Program(tensors)
    z = program.generic(tensors, Tensor("Z", "tn", "f16"), product("f16", "f16"))
    body = ["%r = math.tanh %Z : f16", "linalg.yield %r : f16"]
    a = program.generic([z], Tensor("A", "tn", "f16"), body)
    b = program.generic([z, a], Tensor("Y", "tn", "f16"), [
        "%r = arith.mulf %Z, %A : f16", "linalg.yield %r : f16"])  # fmt: skip
    text = str(matched(program.text(b)))
    assert (
        text.count("iteration.launch") == 1
        and text.count('"linalg.generic"') + text.count("linalg.generic") == 2
    )


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def order(letters: str) -> str:
        return "".join(rng.permutation(list(letters)))

    batch = "b" if rng.random() < 0.5 else ""
    dtype = str(rng.choice(["f16", "bf16", "i8"]))
    wide = SUMS[dtype]
    result = str(rng.choice([dtype, wide]))
    extents = {c: int(rng.integers(1, 40)) for c in "btn"} | {"k": 4 * int(rng.integers(1, 40))}
    x, y = batch + order("tk"), batch + order("tn")
    w = (batch if rng.random() < 0.5 else "") + "nk"
    tensors = [Tensor("X", x, dtype), weight(w, dtype)]
    indices = ["", "n", "t", batch + order("tn")]
    more = [Tensor(f"v{i}", str(rng.choice(indices)), result) for i in range(2)]
    program = Program([*tensors, *more])
    swap, sub = rng.random(2) < 0.5
    current = program.generic(
        tensors[:: -1 if swap else 1], Tensor("Y", y, result), product(dtype, result, swap, sub)
    )
    kind = "i" if result.startswith("i") else "f"
    for number, other in enumerate(more):
        name = str(rng.choice(["add", "sub", "mul"]))
        out = Tensor(f"Z{number}", batch + order("tn"), result)
        body = [
            f"%r = arith.{name}{kind} %{current.name}, %{other.name} : {result}",
            f"linalg.yield %r : {result}",
        ]
        current = program.generic([current, other], out, body)
    check(program, current, **extents)


def kept(program: Program, result: Tensor) -> str:
    """Why a program is not a kernel of sparse matrix instructions; empty if nothing is said."""
    module = matched(program.text(result))
    (generic,) = (op for op in module.walk() if isinstance(op, linalg.GenericOp))
    reason = generic.attributes["sparsecc.format_reason"]
    assert isinstance(reason, StringAttr)
    _, _, said = reason.data.partition("not on the sparse tensor cores: ")
    return said


def other(x: str, w: str, y: str, dtype: str, result: str, map: str = "") -> tuple[Program, Tensor]:
    """A product in the result's type."""
    tensors = [Tensor("X", x, dtype), weight(w, dtype, map)]
    program = Program(tensors)
    widen = dtype != result
    names = ("%a", "%b") if widen else ("%X", "%W")
    body = [
        f"%a = arith.extf %X : {dtype} to {result}",
        f"%b = arith.extf %W : {dtype} to {result}",
    ]
    body = [
        *(body if widen else []), f"%p = arith.mulf {names[0]}, {names[1]} : {result}",
        f"%s = arith.addf %out, %p : {result}", f"linalg.yield %s : {result}",
    ]  # fmt: skip
    return program, program.generic(tensors, Tensor("Y", y, result), body)


def residual_of_bytes() -> tuple[Program, Tensor]:
    tensors = [Tensor("X", "tk", "i8"), weight("nk", "i8", RESIDUAL)]
    program = Program(tensors)
    return program, program.generic(tensors, Tensor("Y", "tn", "i32"), product("i8", "i32"))


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (other("tk", "nk", "tn", "f32", "f32"), "sm_90 has no sparse matrix instruction for f32"),
        (other("tk", "nk", "tn", "f64", "f64"), "sm_90 has no sparse matrix instruction for f64"),
        (other("tk", "nk", "tn", "f16", "f64"), "the products are wanted in f64, and are summed in f32"),
        (other("tk", "kn", "tn", "f16", "f16"), "the groups of four do not run along the only index"),
        (other("k", "nk", "n", "f16", "f16"), "it multiplies a vector"),
        (other("abtk", "nk", "abtn", "f16", "f16"), "more than one dimension of batches"),
        (other("tk", "bnk", "btn", "f16", "f16"), "another tensor has an index of its own"),
        (other("tkb", "bnk", "tnb", "f16", "f16"), "a batch lies inside of a matrix"),
        (other("nk", "nk", "n", "f16", "f16"), "the other tensor has no index that is summed over, or the weight's"),
        (other("tk", "nk", "tn", "f16", "f16", "(d0, d1) -> (d0 : dense, d1 : compressed)"), ""),
        (other("tk", "nk", "tn", "f32", "f32", RESIDUAL), "sm_90 has no sparse matrix instruction for f32"),
        (residual_of_bytes(), "the entries of a residual are 16 bits wide, the weight's are 8"),
    ],
)  # fmt: skip
def test_reasons_of_what_is_left_alone(program: tuple[Program, Tensor], why: str) -> None:
    said = kept(*program)
    assert said.startswith(why) if why.startswith(("sm", "the p", "the e")) else why in said
    assert bool(why) == bool(said)


def test_a_matched_program_reads_back() -> None:
    text = print_module(matched(linear("tk", "nk", "tn")[0].text(Tensor("Y", "tn", "f16"))))
    assert print_module(parse_module(text, "again")) == text
    assert '"tile.' not in text
