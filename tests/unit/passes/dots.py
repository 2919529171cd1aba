"""Programs with products that become dots: matched, and run in Triton's interpreter against the reference."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from sparsecc.backends.triton.emit import emit_kernel
from sparsecc.backends.triton.interpret import interpret
from sparsecc.dialects import iteration
from sparsecc.frontends.mlir_text import parse_module, verify_module
from sparsecc.kernel import TileSource
from sparsecc.pipeline import run_passes
from sparsecc.runtime.reference import evaluate_module
from sparsecc.targets import known_target
from tests.unit.passes.programs import COLUMN_MAJOR, Program, Tensor, product

Array = Any
KINDS: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "i8": np.int8,
    "i32": np.int32,
}


def matched(text: str, **options: str) -> ModuleOp:
    module = parse_module(text, "program")
    names: list[tuple[str, dict[str, str]]] = [
        ("generalize-named-ops", {}),
        ("select-formats", {}),
        ("dot-contractions", options),
    ]
    run_passes(module, names, verify=True)
    verify_module(module)
    return module


def kernels(module: ModuleOp, target: str = "sm_90") -> list[tuple[func.FuncOp, TileSource]]:
    found = [f for f in module.body.block.ops if isinstance(f, func.FuncOp)]
    return [
        (f, emit_kernel(f, known_target(target))) for f in found if "tile.kernel" in f.attributes
    ]


def random(rng: np.random.Generator, shape: list[int], dtype: str) -> Array:
    if dtype.startswith("i"):
        return rng.integers(-90, 90, shape).astype(KINDS[dtype])
    return rng.standard_normal(shape).astype(KINDS[dtype])


def check(
    program: Program,
    result: Tensor,
    operands: dict[str, Array],
    packed: dict[str, Array],
    **options: str,
) -> None:
    """Compile a program, run its kernel in the interpreter on poisoned memory, compare with the reference."""
    text = program.text(result)
    (expected,) = evaluate_module(parse_module(text, "p"), operands)
    assert isinstance(expected, np.ndarray)
    module = matched(text, **options)
    ((_, source),) = kernels(module)
    main = next(f for f in module.body.block.ops if isinstance(f, func.FuncOp)).body.block
    (launch,) = [op for op in main.ops if isinstance(op, iteration.LaunchOp)]
    names = [v.name_hint for v in launch.inputs]
    out = np.full(expected.shape, 77 if result.dtype.startswith("i") else np.nan, expected.dtype)
    roles: dict[str, Array] = {"out.values": out}
    for number, name in enumerate(names):
        assert name is not None
        value = operands[name]
        roles |= {f"in{number}.dim{d}": extent for d, extent in enumerate(value.shape)}
        tensor = next(t for t in program.tensors if t.name == name)
        if name == "W":
            roles |= {f"in{number}.{role}": array for role, array in packed.items()}
        else:
            stored = value.T if tensor.map == COLUMN_MAJOR else value
            roles[f"in{number}.values"] = np.ascontiguousarray(stored)
    interpret(
        source, {n: roles[r] for (n, _), r in zip(source.arguments, source.roles, strict=True)}
    )
    if result.dtype.startswith("i"):
        np.testing.assert_array_equal(out, expected)
        return
    scale = max(1.0, float(np.abs(expected.astype(np.float64)).max()))
    limit = {"f16": 4e-3, "bf16": 3e-2, "f32": 1e-5}[result.dtype]
    assert np.abs(out.astype(np.float64) - expected.astype(np.float64)).max() <= scale * limit


def source_of(
    weight_: Tensor, x: str, y: str, target: str, dtype: str = "f16", **options: str
) -> TileSource:
    tensors = [weight_, Tensor("X", x, dtype)]
    program = Program(tensors)
    out = program.generic(tensors, Tensor("Y", y, dtype), product(dtype, dtype))
    options = {"target": target, "even": "true"} | options
    return kernels(matched(program.text(out), **options), target)[0][1]
