"""Products with weights of bits and packed values: in the interpreter against the reference, and as machine code."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.backends.triton.load import compile_source, sass
from sparsecc.backends.triton.operands import pack_2_4, pack_bitmap
from sparsecc.diagnostics import SparseccError
from sparsecc.dialects.reading import elements
from sparsecc.runtime.compiled_kernel import OperandConverted
from sparsecc.storage.tensor import SparseTensor
from tests.unit.passes.dots import Array, check, kernels, matched, random, source_of
from tests.unit.passes.programs import Program, Tensor, product

BITMAP = {
    2: "(d0, d1) -> (d0 : dense, d1 : bitmap)",
    3: "(d0, d1, d2) -> (d0 : dense, d1 : dense, d2 : bitmap)",
}
PLAIN = ["%p = arith.mulf %W, %X : f32", "%s = arith.addf %out, %p : f32", "linalg.yield %s : f32"]


def bits(letters: str = "nk", dtype: str = "f16") -> Tensor:
    return Tensor("W", letters, dtype, BITMAP[len(letters)])


def sparse(rng: np.random.Generator, shape: list[int], dtype: str, density: float = 0.5) -> Array:
    kept: Array = rng.random(shape) < density
    return random(rng, shape, dtype) * kept.astype(np.int8)


def check_bitmap(
    x: str = "tk", w: str = "nk", y: str = "tn", dtype: str = "f16", result: str = "f16", density: float = 0.5,
    extents: tuple[int, int, int] = (70, 130, 9), **options: str,
) -> None:  # fmt: skip
    n, k, t = extents
    sizes = {"n": n, "k": k, "t": t, "b": 2}
    rng = np.random.default_rng(n * k + t)
    tensors = [Tensor("X", x, dtype), bits(w, dtype)]
    program = Program(tensors)
    body = PLAIN if dtype == "f32" else product(dtype, result)
    out = program.generic(tensors, Tensor("Y", y, result), body)
    dense = sparse(rng, [sizes[c] for c in w], dtype, density).astype(random(rng, [1], dtype).dtype)
    operands = {"W": dense, "X": random(rng, [sizes[c] for c in x], dtype)}
    check(program, out, operands, dict(pack_bitmap(dense).arrays), **options)


@pytest.mark.parametrize(
    ("x", "w", "y"),
    [("tk", "nk", "tn"), ("kt", "nk", "nt"), ("tk", "nk", "nt"), ("btk", "nk", "btn"), ("btk", "bnk", "btn")],
)  # fmt: skip
def test_orders_and_batches(x: str, w: str, y: str) -> None:
    check_bitmap(x, w, y)


@pytest.mark.parametrize(
    ("dtype", "result"),
    [("f16", "f32"), ("bf16", "bf16"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32")],
)
def test_types(dtype: str, result: str) -> None:
    check_bitmap(dtype=dtype, result=result)


@pytest.mark.parametrize(
    "extents", [(1, 1, 1), (64, 64, 16), (65, 31, 3), (63, 33, 17), (129, 65, 40), (3, 500, 2)]
)
@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_extents_and_tiles_empty_and_full(extents: tuple[int, int, int], density: float) -> None:
    check_bitmap(extents=extents, density=density)


def test_one_value_and_one_gap() -> None:
    """A tile with the last bit of a word alone, and one where it alone is missing."""
    dense = np.zeros((64, 128), np.float16)
    dense[5, 31] = dense[5, 32] = 2
    dense[7, 64:] = 1
    dense[7, 95] = 0
    tensors = [Tensor("X", "tk", "f16"), bits()]
    program = Program(tensors)
    out = program.generic(tensors, Tensor("Y", "tn", "f32"), product("f16", "f32"))
    x = np.arange(2 * 128, dtype=np.float16).reshape(2, 128)
    check(program, out, {"W": dense, "X": x}, dict(pack_bitmap(dense).arrays))


@pytest.mark.parametrize("member", range(5))
def test_every_schedule_runs(member: int) -> None:
    check_bitmap(extents=(140, 70, 40), tokens="40", member=str(member))


@pytest.mark.parametrize(
    ("target", "instruction"),
    [("sm_80", "HMMA.16816"), ("sm_90", "HGMMA.64x"), ("sm_100", "UTCHMMA")],
)
@pytest.mark.parametrize("dtype", ["f16", pytest.param("bf16", marks=pytest.mark.full)])
def test_machine_code(target: str, instruction: str, dtype: str) -> None:
    """Tiles are decompressed into the dense instruction of each target; bits are counted by one instruction."""
    done = compile_source(
        source_of(bits(dtype=dtype), "tk", "tn", target, dtype, tokens="128"), target
    )
    code = sass(done.cubin)
    assert instruction in code and "POPC" in code and done.spills == 0
    assert ("tcgen05.mma" in done.ptx) == (target == "sm_100")


@pytest.mark.parametrize("target", ["sm_90", pytest.param("sm_100", marks=pytest.mark.full)])
def test_every_schedule_compiles(target: str) -> None:
    tensors = [Tensor("X", "tk", "f16"), bits()]
    program = Program(tensors)
    text = program.text(program.generic(tensors, Tensor("Y", "tn", "f16"), product("f16", "f16")))
    ((first, _),) = kernels(matched(text, tokens="64", target=target), target)
    space = elements(first.attributes["tile.space"])
    for member, schedule in enumerate(space):
        options = {"tokens": "64", "even": "true", "member": str(member), "target": target}
        ((fn, source),) = kernels(matched(text, **options), target)
        assert fn.attributes["tile.schedule"] == schedule
        assert compile_source(source, target).spills == 0, schedule


def test_the_plan_says_what_becomes_of_the_weight() -> None:
    tensors = [Tensor("X", "tk", "f16"), bits()]
    program = Program(tensors)
    text = program.text(program.generic(tensors, Tensor("Y", "tn", "f16"), product("f16", "f16")))
    assert "decompressed on chip and multiplied as dense f16, summed in f32 by tcgen05" in str(
        matched(text, target="sm_100")
    )


# -- through the compiler ----------------------------------------------------------------------


def compiled(text: str, format: str = "BITMAP", **shapes: int) -> Any:
    specs: dict[str, Any] = {name: sc.Spec((None,) * rank, "f16") for name, rank in shapes.items()}
    specs["W"] = sc.Spec((None, None), "f16", format)
    return sc.compile(text, **specs, target="sm_90", interpret=True, out="dense")


def some(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return sparse(rng, [70, 90], "f16"), random(rng, [5, 90], "f16")


def close(found: Any, expected: Array) -> None:
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=5e-3, atol=5e-2)


LINEAR = "Y[t,n] = X[t,k] * W[n,k]"


def test_a_weight_is_packed_by_itself_or_once_for_all() -> None:
    kernel = compiled(LINEAR, X=2)
    w, x = some()
    expected = x.astype(np.float64) @ w.T.astype(np.float64)
    with pytest.warns(OperandConverted, match="W: packed as bitmap"):
        close(kernel(X=x, W=w), expected)
    packed = kernel.pack(W=w)
    assert packed.layout == "bitmap"
    close(kernel(X=x, W=packed), expected)
    stored = sc.asarray(w)
    assert isinstance(stored, SparseTensor)
    close(kernel(X=x, W=stored), expected)


@pytest.mark.parametrize(
    ("format", "multiplied"), [("BITMAP", True), ("2:4+CSR", True), ("CSR", False)]
)
def test_zeros_of_tiles_times_what_is_not_finite_are_said(format: str, multiplied: bool) -> None:
    """The rule of a missing factor is the CPU's and the general path's; matrix units multiply the zeros of tiles."""
    kernel = compiled(LINEAR, format, X=2)
    assert ("times inf or NaN they give NaN" in kernel.explain()) == multiplied
    if format == "2:4+CSR":  # its kernels are not interpreted
        return
    w, x = np.zeros((3, 8), np.float16), np.ones((2, 8), np.float16)
    w[0], w[1, 4] = 2, 1
    x[0, 0], x[1, 5] = np.inf, np.nan
    found = np.asarray(kernel(X=x, W=sc.asarray(w).to(format)), np.float64)
    missing = [np.inf, 1, 0], [np.nan, 1, 0]
    tiles = [np.inf, np.nan, np.nan], [np.nan, np.nan, np.nan]
    np.testing.assert_array_equal(found, tiles if multiplied else missing)


def test_other_packings_are_refused() -> None:
    kernel = compiled(LINEAR, X=2)
    w, x = some()
    with pytest.raises(
        SparseccError, match="packed as bitmap 16x32, the kernel reads bitmap 64x64"
    ):
        kernel(X=x, W=pack_bitmap(w, block=(16, 32)))
    with pytest.raises(SparseccError, match="packed as 2:4, the kernel reads bitmap 64x64"):
        kernel(X=x, W=pack_2_4(np.zeros((70, 92), np.float16)))


@pytest.mark.parametrize(
    ("text", "shapes", "reason"),
    [
        ("y[n] = W[n,k] * v[k]", {"v": 1}, "it multiplies a vector"),
        ("Y[t,k] = G[t,n] * W[n,k]", {"G": 2}, "the rows of bits do not run along"),
        ("Y[n,k] = W[n,k] * H[n,k]", {"H": 2}, ""),
        ("Y[n,m] = W[n,k] * V[m,k]", {"V": 2}, ""),
    ],
)
def test_what_is_no_dot_is_converted_or_looked_up(
    text: str, shapes: dict[str, int], reason: str
) -> None:
    w, _ = some()
    kernel = compiled(
        text, "BITMAP" if reason or "H" in text else "(i, j) -> (j : dense, i : bitmap)", **shapes
    )
    assert not kernel.plan.tiles[0].packs
    plan = kernel.explain()
    assert reason in plan and ("converted to CS" in plan or "H" in text)
    (name,) = shapes
    extents = {"v": [90], "G": [3, 70], "H": [70, 90], "V": [4, 90]}[name]
    other = random(np.random.default_rng(1), extents, "f16")
    a, b = w.astype(np.float64), other.astype(np.float64)
    expected = {"v": lambda: a @ b, "G": lambda: b @ a, "H": lambda: a * b, "V": lambda: a @ b.T}[
        name
    ]()
    close(sc.asarray(kernel(W=w, **{name: other})).to_numpy(), expected)


def test_an_operand_is_not_read_two_ways() -> None:
    with pytest.raises(SparseccError, match="packed as bitmap by one kernel, and") as problem:
        compiled(f"{LINEAR}; Z[t,k] = Y[t,n] * W[n,k]", X=2)
    assert re.search("two names", problem.value.help)
