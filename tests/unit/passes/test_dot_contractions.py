"""Products with weights of dense blocks or spread groups: kernels in Triton's interpreter against the reference."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sparsecc.backends.triton.load import compile_source, sass
from sparsecc.backends.triton.operands import pack_2_4, pack_stored
from sparsecc.dialects.reading import elements
from sparsecc.formats.names import bsr
from sparsecc.runtime.schedules import read_schedule
from sparsecc.storage.pack import pack_dense
from tests.unit.passes.dots import Array, check, kernels, matched, random, source_of
from tests.unit.passes.programs import Program, Tensor, product, weight

PLAIN = ["%p = arith.mulf %W, %X : f32", "%s = arith.addf %out, %p : f32", "linalg.yield %s : f32"]


def blocks(letters: str, dtype: str, height: int, width: int, transposed: bool = False) -> Tensor:
    r, c = ("d1", "d0") if transposed else ("d0", "d1")
    map_ = (
        f"(d0, d1) -> ({r} floordiv {height} : dense, {c} floordiv {width} : compressed, "
        f"{r} mod {height} : dense, {c} mod {width} : dense)"
    )
    return Tensor("W", letters, dtype, map_)


def some_blocks(rng: np.random.Generator, w: npt.NDArray[Any], height: int, width: int) -> Array:
    """About a third of the blocks stay; one row of blocks is empty."""
    keep = rng.random((-(-w.shape[0] // height), -(-w.shape[1] // width))) < 0.35
    keep[len(keep) // 2] = False
    mask = np.kron(keep, np.ones((height, width), bool))[: w.shape[0], : w.shape[1]]
    return w * mask.astype(w.dtype)


def check_blocks(
    x: str = "kt", w: str = "nk", y: str = "nt", dtype: str = "f16", result: str = "f16",
    size: tuple[int, int] = (16, 16), extents: tuple[int, int, int] = (70, 90, 33), tokens: int = 0, **options: str,
) -> None:  # fmt: skip
    n, k, t = extents
    sizes = {"n": n, "k": k, "t": t, "b": 2}
    rng = np.random.default_rng(n * k + t)
    tensors = [blocks(w, dtype, *size, transposed=w == "kn"), Tensor("X", x, dtype)]
    program = Program(tensors)
    body = PLAIN if dtype == "f32" else product(dtype, result)
    out = program.generic(tensors, Tensor("Y", y, result), body)
    dense = some_blocks(rng, random(rng, [n, k], dtype), *size)
    fmt = bsr(*size)
    arrays = dict(pack_stored(pack_dense(dense, fmt)).arrays)
    operands = {
        "W": dense if w == "nk" else np.ascontiguousarray(dense.T),
        "X": random(rng, [sizes[c] for c in x], dtype),
    }
    if tokens:
        options["tokens"] = str(tokens)
    check(program, out, operands, arrays, **options)


@pytest.mark.parametrize(
    ("x", "w", "y"),
    [
        ("kt", "nk", "nt"), ("tk", "nk", "tn"), ("tk", "nk", "nt"), ("kt", "nk", "tn"), ("btk", "nk", "btn"),
        ("bkt", "nk", "bnt"), ("kt", "kn", "nt"), ("tk", "kn", "tn"),
    ],
)  # fmt: skip
def test_orders_and_batches(x: str, w: str, y: str) -> None:
    check_blocks(x, w, y)


@pytest.mark.parametrize(
    ("dtype", "result"),
    [("f16", "f16"), ("f16", "f32"), ("bf16", "bf16"), ("f32", "f32"), ("i8", "i32")],
)
def test_types(dtype: str, result: str) -> None:
    check_blocks(dtype=dtype, result=result)


@pytest.mark.parametrize(
    "size", [(16, 16), (32, 32), (64, 64), (4, 4), (8, 16), (5, 7), (20, 12), (1, 1), (33, 64)]
)
@pytest.mark.parametrize("tokens", [0, pytest.param(512, marks=pytest.mark.full)])
def test_block_sizes(size: tuple[int, int], tokens: int) -> None:
    check_blocks(size=size, tokens=tokens)


@pytest.mark.parametrize("extents", [(1, 1, 1), (16, 16, 16), (17, 15, 1), (128, 64, 130)])
def test_extents(extents: tuple[int, int, int]) -> None:
    check_blocks(extents=extents)


def test_an_epilogue_is_part_of_the_kernel() -> None:
    rng = np.random.default_rng(3)
    tensors = [Tensor("X", "tk", "f16"), blocks("nk", "f16", 16, 16), Tensor("v", "n", "f32")]
    program = Program(tensors)
    z = program.generic(tensors[:2], Tensor("Z", "tn", "f32"), product("f16", "f32"))
    body = [
        "%a = arith.addf %Z, %v : f32", "%zero = arith.constant 0.0 : f32",
        "%c = arith.cmpf ogt, %a, %zero : f32", "%r = arith.select %c, %a, %zero : f32", "linalg.yield %r : f32",
    ]  # fmt: skip
    out = program.generic([z, tensors[2]], Tensor("Y", "tn", "f32"), body)
    dense = some_blocks(rng, random(rng, [40, 50], "f16"), 16, 16)
    operands = {"W": dense, "X": random(rng, [9, 50], "f16"), "v": random(rng, [40], "f32")}
    check(program, out, operands, dict(pack_stored(pack_dense(dense, bsr(16, 16))).arrays))


def test_a_start() -> None:
    rng = np.random.default_rng(4)
    tensors = [blocks("nk", "f16", 16, 16), Tensor("X", "kt", "f16"), Tensor("Z", "nt", "f32")]
    program = Program(tensors)
    out = program.generic(
        tensors[:2], Tensor("Y", "nt", "f32"), product("f16", "f32", sub=True), start="%Z"
    )
    dense = some_blocks(rng, random(rng, [40, 50], "f16"), 16, 16)
    operands = {"W": dense, "X": random(rng, [50, 9], "f16"), "Z": random(rng, [40, 9], "f32")}
    check(program, out, operands, dict(pack_stored(pack_dense(dense, bsr(16, 16))).arrays))


@pytest.mark.parametrize(
    ("x", "w", "y"),
    [("tk", "nk", "tn"), ("kt", "nk", "nt"), ("btk", "nk", "btn"), ("btk", "bnk", "btn")],
)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize(("n", "k", "t"), [(33, 132, 20), (1, 4, 1), (130, 64, 17)])
def test_groups_of_four(x: str, w: str, y: str, dtype: str, n: int, k: int, t: int) -> None:
    rng = np.random.default_rng(n + k)
    tensors = [Tensor("X", x, dtype), weight(w, dtype)]
    program = Program(tensors)
    out = program.generic(tensors, Tensor("Y", y, "f32"), product(dtype, "f32"))
    sizes = {"b": 2, "n": n, "t": t, "k": k}
    whole = [sizes[c] for c in w]
    groups: Array = random(rng, [*whole[:-1], k // 4, 4], dtype)
    order = rng.random((*whole[:-1], k // 4, 4))
    dropped: Array = np.argsort(order, axis=-1)[..., :2]
    np.put_along_axis(groups, dropped, 0, -1)
    dense = groups.reshape(whole)
    operands = {"W": dense, "X": random(rng, [sizes[c] for c in x], dtype)}
    check(program, out, operands, dict(pack_2_4(dense).arrays), target="sm_100")


@pytest.mark.parametrize(
    ("target", "instruction"),
    [("sm_80", "HMMA.16816"), ("sm_90", "HGMMA.64x"), ("sm_100", "UTCHMMA")],
)
def test_machine_code_of_blocks(target: str, instruction: str) -> None:
    """Blocks of 64 rows are tiles of the largest instruction that a target has; copies run ahead."""
    done = compile_source(
        source_of(blocks("nk", "f16", 64, 64), "kt", "nt", target, tokens="512"), target
    )
    code = sass(done.cubin)
    assert instruction in code and done.spills == 0
    assert re.search(r"LDGSTS\.E\.BYPASS\.(LTC128B\.)?128", code)


@pytest.mark.parametrize(("x", "y"), [("kt", "nt"), ("tk", "tn")])
def test_machine_code_of_groups(x: str, y: str) -> None:
    """Groups are spread into the operand of Blackwell's matrix unit (compiled, never run)."""
    done = compile_source(source_of(weight("nk"), x, y, "sm_100", tokens="128"), "sm_100")
    assert "UTCHMMA" in sass(done.cubin) and "tcgen05.mma" in done.ptx and done.spills == 0


@pytest.mark.parametrize(
    ("form", "tokens"),
    [
        (blocks("nk", "f16", 32, 32), "64"),
        pytest.param(blocks("nk", "f16", 16, 16), "512", marks=pytest.mark.full),
        pytest.param(blocks("nk", "f16", 20, 12), "64", marks=pytest.mark.full),
        pytest.param(weight("nk"), "64", marks=pytest.mark.full),
    ],
)
def test_every_schedule_compiles(form: Tensor, tokens: str) -> None:
    tensors = [form, Tensor("X", "kt", "f16")]
    program = Program(tensors)
    out = program.generic(tensors, Tensor("Y", "nt", "f16"), product("f16", "f16"))
    text = program.text(out)
    ((first, _),) = kernels(matched(text, tokens=tokens, even="true"))
    space = elements(first.attributes["tile.space"])
    assert len(space) >= 3
    for member, schedule in enumerate(space):
        ((fn, source),) = kernels(matched(text, tokens=tokens, even="true", member=str(member)))
        assert fn.attributes["tile.schedule"] == schedule
        assert set(elements(fn.attributes["tile.space"])) == set(space)
        assert compile_source(source, "sm_90").spills == 0, schedule


CHEAP = {(16, "64"), (32, ""), (64, "512")}


@pytest.mark.parametrize("even", ["false", pytest.param("true", marks=pytest.mark.full)])
@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        pytest.param(size, tokens, marks=[] if (size, tokens) in CHEAP else pytest.mark.full)
        for size in (4, 16, 32, 64, 128)
        for tokens in ("", "64", "512")
    ],
)
def test_first_choices_do_not_spill(size: int, tokens: str, even: str) -> None:
    options = {"even": even} | ({"tokens": tokens} if tokens else {})
    source = source_of(blocks("nk", "f16", size, size), "tk", "tn", "sm_90", **options)
    assert compile_source(source, "sm_90").spills == 0


def first_choice(size: int, **options: str) -> tuple[int, ...]:
    """Tokens, joined blocks and warps."""
    tensors = [blocks("nk", "f16", size, size), Tensor("X", "kt", "f16")]
    program = Program(tensors)
    out = program.generic(tensors, Tensor("Y", "nt", "f16"), product("f16", "f16"))
    ((fn, _),) = kernels(matched(program.text(out), **options))
    numbers = read_schedule(str(fn.attributes["tile.schedule"]))[1]
    return tuple(int(numbers[name]) for name in ("tokens", "join", "warps"))


def test_what_was_measured_fastest_leads_where_registers_have_room() -> None:
    for size, tokens, expected in (
        (16, "64", (64, 4, 1)), (32, "64", (64, 4, 2)), (64, "64", (64, 2, 4)),
        (16, "128", (128, 1, 2)), (32, "128", (128, 1, 2)), (64, "128", (128, 1, 4)),
        (16, "512", (256, 1, 2)), (32, "512", (256, 1, 2)), (64, "512", (256, 1, 8)),
    ):  # fmt: skip
        assert first_choice(size, tokens=tokens, even="true") == expected
    assert first_choice(32, tokens="64") == (64, 2, 4)
    assert first_choice(64, tokens="64", target="sm_80") == (64, 2, 8)


def test_what_is_no_dot_stays_and_says_why() -> None:
    tensors = [blocks("nk", "f64", 16, 16), Tensor("X", "kt", "f64")]
    program = Program(tensors)
    body = [
        "%p = arith.mulf %W, %X : f64",
        "%s = arith.addf %out, %p : f64",
        "linalg.yield %s : f64",
    ]
    out = program.generic(tensors, Tensor("Y", "nt", "f64"), body)
    module = matched(program.text(out))
    assert not kernels(module)
    assert "not as dots of tiles: its operands are f64" in str(module)
