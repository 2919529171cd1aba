"""What the code of a program depends on beside its types: how large operands are, how they lie, how rows are filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sparsecc.formats.row_tables import LAYOUTS
from sparsecc.kernel import Plan, TileLaunch
from sparsecc.request import Request
from sparsecc.runtime.machines import is_torch
from sparsecc.runtime.tile_operands import Bound
from sparsecc.storage.tensor import SparseTensor

BUCKETS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Ranges of tokens that contractions are compiled for, by their ends; the last is open."""
SKEWED = 4
"""So many times the mean is a length that counts as long."""
Tensors = Sequence[Bound | SparseTensor]
Options = dict[str, Any]
"""Fields of Request."""
_BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i8": 1, "i32": 4, "i64": 8}


class Program(Protocol):
    """What is asked of a kernel."""

    plan: Plan
    request: Request
    sized: TileLaunch | None
    tabled: tuple[TileLaunch, int] | None


def bucket(tokens: int) -> int:
    """The end of the range that a number of tokens falls in."""
    return next((end for end in BUCKETS if tokens <= end), BUCKETS[-1])


def tabled(plan: Plan) -> tuple[TileLaunch, int] | None:
    """The first launch whose kernel reads a matrix with tables, and the number of that tensor."""
    for step in plan.tiles:
        for k, layout in step.packs:
            if layout in LAYOUTS:
                return step, step.launch.inputs[k]
    return None


def options(program: Program, tensors: Tensors, out: Any) -> Options | None:
    """What to compile a program for, given operands; None: it is as it is."""
    if program.sized is not None:
        return _of_contraction(program, program.sized, tensors)
    if program.tabled is not None:
        return _of_rows(program, *program.tabled, tensors, out)
    return None


def _of_contraction(program: Program, step: TileLaunch, tensors: Tensors) -> Options:
    """The extents of a contraction, where its types leave them open."""
    assert step.sizes is not None
    launch = step.launch
    tokens, rows, reduction = (
        tensors[launch.extents[g][1][0][0]].shape[launch.extents[g][1][0][1]] for g in step.sizes
    )
    packed = [tensors[launch.inputs[k]] for k, _ in step.packs]
    facts: dict[str, int] = {}
    for tensor in packed:
        facts.update(tensor.facts if isinstance(tensor, Bound) else {})
    operands = program.plan.operands
    return {
        "tokens": program.request.tokens or bucket(tokens),
        "rows": rows,
        "reduction": reduction,
        "steps": facts.get("steps"),
        "entries": None if "entries" not in facts else -(-facts["entries"] // 32) * 32,
        "aligned": all(_aligned(tensors[n], o.dtype) for n, o in enumerate(operands)),
    }


def _of_rows(
    program: Program, step: TileLaunch, matrix: int, tensors: Tensors, out: Any
) -> Options | None:
    """How the rows of a matrix are filled, and how wide what they are multiplied with is."""
    launch = step.launch
    tensor = tensors[matrix] if matrix < len(tensors) else None
    if not isinstance(tensor, Bound) or any(n >= len(tensors) for n in launch.inputs):
        return None  # an earlier step makes it
    groups = [(dims, tensors[dims[0][0]].shape[dims[0][1]]) for _, dims in launch.extents]
    columns = [n for dims, n in groups if all(number != matrix for number, _ in dims)]
    inner = [
        n
        for g, (dims, n) in enumerate(groups)
        if g not in launch.shape and any(number == matrix for number, _ in dims)
    ]
    mean = max(1, tensor.facts["mean"])
    addresses = [
        found.words["values"]
        for number in launch.inputs
        if number != matrix and isinstance(found := tensors[number], Bound) and len(found.shape) > 1
    ]
    if is_torch(out):
        addresses.append(out.data_ptr())
    return {
        "tokens": program.request.tokens or (bucket(columns[0]) if columns else None),
        "reduction": 1 << (inner[0] - 1).bit_length() if inner and inner[0] else None,
        "length": 1 << (mean - 1).bit_length(),
        "skewed": tensor.facts["longest"] > SKEWED * mean + 64,
        "even": bool(columns) and columns[0] % 16 == 0 and all(a % 16 == 0 for a in addresses),
    }


def _aligned(tensor: Bound | SparseTensor, dtype: str) -> bool:
    """Whether a dense operand begins at a multiple of 16 bytes, and so do its rows and their ends."""
    if not isinstance(tensor, Bound) or not tensor.format.is_dense or len(tensor.shape) < 2:
        return True
    size = _BYTES.get(dtype, 1)
    inner = tensor.format.dim_order[-1] if tensor.format.is_permutation else -1
    steps = [s for d, s in enumerate(tensor.strides) if d != inner]
    return tensor.words["values"] % 16 == 0 and all(
        n * size % 16 == 0 for n in (*steps, tensor.shape[inner])
    )
