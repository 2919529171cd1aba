"""Fragments kernels read as plain data, written by their families, and run by the model of the instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func

from sparsecc.backends.triton import ring
from sparsecc.backends.triton.contraction import Contraction, EpilogueStep
from sparsecc.backends.triton.emit import emit_kernel
from sparsecc.backends.triton.epilogue_text import BINARY, COMPARE
from sparsecc.backends.triton.fragments import COMPARISONS, FragmentsReader
from sparsecc.backends.triton.load import compile_source
from sparsecc.backends.triton.operands import pack_2_4, pack_sum_2_4
from sparsecc.diagnostics import InternalError
from sparsecc.dialects.reading import elements
from sparsecc.dialects.tile import ScheduleAttr
from sparsecc.dialects.tile.fragments import SparseDotOp, set_schedule
from sparsecc.frontends.mlir_text import parse_module
from sparsecc.kernel import TileSource
from sparsecc.passes.tiling.epilogues import FUSABLE, PREDICATES
from sparsecc.pipeline import run_passes
from sparsecc.runtime.reference import evaluate_module
from sparsecc.targets import known_target
from tests.unit.backends.triton import gluon_model
from tests.unit.passes.programs import RESIDUAL, Program, Tensor, data, product, weight

Array = Any


def kernel(program: Program, result: Tensor, **options: str) -> func.FuncOp:
    module = parse_module(program.text(result), "program")
    run_passes(module, [("select-formats", {}), ("match-contractions", options)], verify=True)
    (found,) = (
        f
        for f in module.body.block.ops
        if isinstance(f, func.FuncOp) and "tile.kernel" in f.attributes
    )
    return found


def layer(
    x: str = "tk", w: str = "nk", y: str = "tn", map: str = "", bias: str = "n", scale: str = "t"
) -> tuple[Program, Tensor]:
    """relu(X * W + bias) * s, with everything in f16 and the scale of a token in f32."""
    tensors = [
        Tensor("X", x, "f16"),
        weight(w, map=map),
        Tensor("bias", bias, "f16"),
        Tensor("s", scale, "f32"),
    ]
    program = Program(tensors)
    z = program.generic(tensors[:2], Tensor("Z", y, "f16"), product("f16", "f16"))
    out = program.generic([z, *tensors[2:]], Tensor("Y", y, "f16"), [
        "%a = arith.addf %Z, %bias : f16", "%zero = arith.constant 0.0 : f16",
        "%r = arith.maximumf %a, %zero : f16", "%f = arith.extf %r : f16 to f32",
        "%m = arith.mulf %f, %s : f32", "%h = arith.truncf %m : f32 to f16", "linalg.yield %h : f16",
    ])  # fmt: skip
    return program, out


def test_what_is_read() -> None:
    fn = kernel(*layer(), target="sm_90", tokens="8")
    assert FragmentsReader(fn).contraction("sm_90", {"steps": 4}) == Contraction(
        name="contraction0",
        comments=(
            "X: f16 (d0, d1) -> (d0 : dense, d1 : dense)",
            "W: f16 (d0, d1) -> (d0 : dense, d1 floordiv 4 : dense, d1 mod 4 : structured[2, 4])@i32/i0",
            "bias: f16 (d0) -> (d0 : dense)",
            "s: f32 (d0) -> (d0 : dense)",
            "Y: f16 (d0, d1) -> (d0 : dense, d1 : dense)",
        ),
        target="sm_90",
        weight="2:4",
        dtype="f16",
        accumulator="f32",
        out_dtype="f16",
        x_order="tk",
        y_order="tn",
        batched=(False, False),
        aligned=True,
        epilogue=(
            EpilogueStep("s0", "load", ("bias", "n")),
            EpilogueStep("s1", "load", ("s", "t")),
            EpilogueStep("s2", "cast", ("s0", "f32")),
            EpilogueStep("s3", "arith.addf", ("acc", "s2")),
            EpilogueStep("s4", "constant", ("0.0",)),
            EpilogueStep("s5", "arith.maximumf", ("s3", "s4")),
            EpilogueStep("s6", "arith.mulf", ("s5", "s1")),
            EpilogueStep("s7", "cast", ("s6", "f16")),
        ),
        operands=(("bias", "f16", "n"), ("s", "f32", "t")),
        facts=(("steps", 4),),
    )


@pytest.mark.parametrize(
    ("x", "w", "y", "wanted"),
    [
        ("tk", "nk", "tn", {"tokens": "in0.dim0", "x.stride0": "in0.stride0", "y.stride0": "out.stride0"}),
        ("kt", "nk", "nt", {
            "tokens": "in0.dim1", "x.stride0": "in0.stride0", "reduction": "in1.dim1",
            "e:bias.values": "in2.values"}),
        ("btk", "bnk", "btn", {
            "batches": "in0.dim0", "x.batch_stride": "in0.stride0", "x.stride0": "in0.stride1",
            "y.batch_stride": "out.stride0", "y.stride0": "out.stride1", "rows": "in1.dim1"}),
        # Without a batch of weights the outer index of X is the batch, whatever it is called.
        ("tbk", "nk", "btn", {
            "batches": "in0.dim0", "x.batch_stride": "in0.stride0", "x.stride0": "in0.stride1",
            "y.batch_stride": "out.stride1", "y.stride0": "out.stride0"}),
        ("btk", "bnk", "nbt", {"y.batch_stride": "out.stride1", "y.stride0": "out.stride0"}),
    ],
)  # fmt: skip
def test_roles(x: str, w: str, y: str, wanted: dict[str, str]) -> None:
    program, out = layer(x, w, y)
    roles = FragmentsReader(kernel(program, out)).roles()
    assert wanted.items() <= roles.items()
    assert roles["w.packed"] == "in1.packed"


def schedules(fn: func.FuncOp) -> list[ScheduleAttr]:
    return [s for s in elements(fn.attributes["tile.space"]) if isinstance(s, ScheduleAttr)]


def launch(
    source: TileSource, inputs: list[Array], out: Array, packed: Mapping[str, Array]
) -> None:
    """Run a kernel by the model, with arguments found by their roles."""
    arrays: dict[str, Array] = {}
    integers: dict[str, int] = {}
    for (name, _), role in zip(source.arguments, source.roles, strict=True):
        owner, _, what = role.partition(".")
        if owner == "work":
            continue
        array = out if owner == "out" else inputs[int(owner[2:])]
        if what in ("packed", "offsets"):
            arrays[name] = packed[what]
        elif what == "values":
            arrays[name] = array
        elif what.startswith("dim"):
            integers[name] = array.shape[int(what[3:])]
        else:
            integers[name] = int(array.strides[int(what[6:])]) // int(array.itemsize)
    for name, size in gluon_model.work(source, integers).items():
        arrays[name] = np.zeros(size // 4, np.int32 if name == "counters" else np.float32)
    gluon_model.run(source, arrays, integers)


@pytest.mark.parametrize(
    ("x", "w", "y", "tokens", "map"),
    [
        ("tk", "nk", "tn", 8, ""), ("kt", "nk", "nt", 16, ""), ("btk", "nk", "btn", 64, ""),
        ("btk", "bnk", "bnt", 8, ""), ("tk", "nk", "tn", 8, RESIDUAL), ("bkt", "nk", "bnt", 16, RESIDUAL),
    ],
)  # fmt: skip
def test_programs_run_as_the_reference_says(x: str, w: str, y: str, tokens: int, map: str) -> None:
    program, out = layer(x, w, y, map)
    fn = kernel(program, out, target="sm_80", tokens=str(tokens))
    wanted = (
        {"ring"} if map else {8: {"ring", "staged"}, 16: {"ring", "staged"}, 64: {"staged"}}[tokens]
    )
    assert check(program, out, fn, tokens, bool(map)) == wanted


@pytest.mark.parametrize(
    ("bias", "scale", "y"), [("bn", "bt", "btn"), ("btn", "t", "bnt"), ("bnt", "btn", "btn"), ("n", "bn", "btn")]
)  # fmt: skip
@pytest.mark.parametrize("w", ["nk", "bnk"])
def test_operands_of_an_epilogue_with_a_batch(bias: str, scale: str, y: str, w: str) -> None:
    """Each batch has its own."""
    program, out = layer("btk", w, y, bias=bias, scale=scale)
    fn = kernel(program, out, target="sm_80", tokens="16")
    assert check(program, out, fn, 16, False) == {"ring", "staged"}


def test_operands_with_a_batch_in_a_warpgroup_kernel() -> None:
    """By its text, which the model does not run: the arguments of its function step over whole batches."""
    fn = kernel(*layer("btk", y="btn", bias="bn", scale="btn"), target="sm_90", tokens="512")
    set_schedule(fn, next(s for s in schedules(fn) if s.family.data == "warpgroup"))
    source = emit_kernel(fn, known_target("sm_90"))
    assert "e_bias + batch.to(gl.int64) * N + row" in source.text
    assert "e_s + batch.to(gl.int64) * M * N + (token" in source.text
    assert compile_source(source, "sm_90").spills == 0


def check(program: Program, out: Tensor, fn: func.FuncOp, tokens: int, sum_: bool) -> set[str]:
    """A kernel in one schedule of each family, by the model, against the reference; gives the families."""
    rng = np.random.default_rng(tokens)
    extents = {"b": 2, "t": 16, "n": 35, "k": 136}
    inputs = [data(t, extents, rng) for t in program.tensors]
    names = [t.name for t in program.tensors]
    module = parse_module(program.text(out), "p")
    (expected,) = evaluate_module(module, dict(zip(names, inputs, strict=True)))
    assert isinstance(expected, np.ndarray)
    families: dict[str, ScheduleAttr] = {}
    for schedule in schedules(fn):
        families.setdefault(schedule.family.data, schedule)
    for family, schedule in families.items():
        set_schedule(fn, schedule)
        fn.verify()
        steps = schedule.numbers()["steps"]
        operand = pack_sum_2_4(inputs[1], steps=steps) if sum_ else pack_2_4(inputs[1])
        source = emit_kernel(fn, known_target("sm_80"), operand.facts)
        assert source.entry == "contraction0" and family in source.text
        found = np.full(expected.shape, np.nan, expected.dtype)
        launch(source, inputs, found, operand.arrays)
        scale = float(np.abs(expected).max()) + 1
        assert np.abs(found.astype(np.float64) - expected.astype(np.float64)).max() <= 4e-3 * scale
    return set(families)


def test_a_warpgroup_kernel_is_written_for_the_target_that_has_it() -> None:
    fn = kernel(*layer(), target="sm_90", tokens="512")
    source = emit_kernel(fn, known_target("sm_90"))
    assert "HGMMA.SP" in source.instructions
    assert (
        dict(zip((n for n, _ in source.arguments), source.roles, strict=True))["x"] == "in0.values"
    )
    assert not [r for r in source.roles if not r.startswith(("in", "out.", "work."))]


def test_another_schedule_brings_its_instruction() -> None:
    fn = kernel(*layer(), target="sm_90", tokens="64")
    for schedule in reversed(schedules(fn)):
        set_schedule(fn, schedule)
        fn.verify()
        (dot,) = (op for op in fn.walk() if isinstance(op, SparseDotOp))
        wanted = "wgmma.sp" if schedule.family.data == "warpgroup" else "mma.sp"
        assert dot.instruction.data == wanted


def test_facts_reach_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Contraction] = []

    def emit(contraction: Contraction, schedule: object) -> TileSource:
        seen.append(contraction)
        return TileSource("k", "", True, (("x", "*fp16"),), ("x.values",), (), 1)

    monkeypatch.setattr(ring, "emit", emit)
    fn = kernel(*layer(), target="sm_90", tokens="8")
    assert emit_kernel(fn, known_target("sm_90"), {"steps": 8, "entries": 5}).roles == (
        "in0.values",
    )
    assert dict(seen[0].facts) == {"steps": 8, "entries": 5}


def test_an_argument_without_a_role_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    source = TileSource("k", "", True, (("x", "*fp16"),), ("x.value",), (), 1)
    monkeypatch.setattr(ring, "emit", lambda contraction, schedule: source)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(InternalError, match="argument of role 'x.value'"):
        emit_kernel(kernel(*layer(), target="sm_90", tokens="8"), known_target("sm_90"))


SCALARS = sorted(FUSABLE - {"arith.constant", "arith.select", "arith.cmpf", "arith.cmpi"})


def scalar(name: str) -> tuple[Program, Tensor]:
    """A contraction of f32 (of i32 for operations on integers), and one operation on what it gives."""
    _, _, short = name.partition(".")
    whole = short.endswith("i") and short != "fptosi" or short == "sitofp"
    dtype, wide = ("i8", "i32") if whole else ("f16", "f32")
    tensors = [Tensor("X", "tk", dtype), weight("nk", dtype)]
    program = Program(tensors)
    z = program.generic(tensors, Tensor("Z", "tn", wide), product(dtype, wide))
    casts = {
        "extf": "f32",
        "truncf": "f16",
        "extsi": "i32",
        "trunci": "i8",
        "sitofp": "f32",
        "fptosi": "i32",
    }
    first = [f"%z = arith.constant 1 : {wide}"] if whole else [f"%z = arith.constant 1.0 : {wide}"]
    source, value = wide, "%Z"
    if short in ("extf", "extsi"):
        source = "f16" if short == "extf" else "i8"
        first.append(f"%c = arith.trunc{'f' if short == 'extf' else 'i'} %Z : {wide} to {source}")
        value = "%c"
    result = casts.get(short, wide)
    if short in casts:
        line = f"%r = {name} {value} : {source} to {result}"
    elif name in BINARY:
        line = f"%r = {name} %Z, %z : {wide}"
    else:
        line = f"%r = {name} %Z : {wide}"
    body = [*first, line, f"linalg.yield %r : {result}"]
    return program, program.generic([z], Tensor("Y", "tn", result), body)


@pytest.mark.parametrize("name", SCALARS)
def test_every_scalar_operation_of_an_epilogue_is_written(name: str) -> None:
    fn = kernel(*scalar(name), target="sm_80", tokens="8")
    steps = FragmentsReader(fn).contraction("sm_80", {}).epilogue
    assert steps[-1].op in (name, "cast")
    compile(emit_kernel(fn, known_target("sm_80")).text, "kernel", "exec")


@pytest.mark.parametrize("name", PREDICATES)
def test_every_comparison_of_an_epilogue_is_written(name: str) -> None:
    spelled = COMPARISONS[name]
    for number in PREDICATES[name]:
        assert spelled[number] in COMPARE
