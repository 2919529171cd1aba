"""What row kernels are compiled for: how the rows of a matrix are filled, how wide what they are multiplied with is."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Any

from sparsecc.formats.row_tables import LAYOUTS
from sparsecc.kernel import Plan, TileLaunch
from sparsecc.runtime.machines import is_torch
from sparsecc.runtime.tile_operands import Bound
from sparsecc.runtime.tile_sizes import bucket, folded
from sparsecc.storage.tensor import SparseTensor

SKEWED = 4
"""So many times the mean is a length that counts as long."""
Tensors = Sequence[Bound | SparseTensor]


def tabled(plan: Plan) -> tuple[TileLaunch, int] | None:
    """The first launch whose kernel reads a matrix with tables, and the number of that tensor."""
    for step in plan.tiles:
        for k, layout in step.packs:
            if layout in LAYOUTS:
                return step, step.launch.inputs[k]
    return None


def rows_of(
    tokens: int | None, step: TileLaunch, matrix: int, tensors: Tensors, out: Any
) -> dict[str, Any] | None:
    """Options of a request for operands, ``out`` among them; None: what the kernel reads is made by an earlier step.
    ``tokens``: if it is fixed."""
    launch = step.launch
    tensor = tensors[matrix] if matrix < len(tensors) else None
    if not isinstance(tensor, Bound) or any(n >= len(tensors) for n in launch.inputs):
        return None
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
        "tokens": tokens or (bucket(columns[0]) if columns else None),
        "reduction": 1 << (inner[0] - 1).bit_length() if inner and inner[0] else None,
        "length": 1 << round(log2(mean)),
        "skewed": tensor.facts["longest"] > SKEWED * mean + 64,
        "even": bool(columns) and columns[0] % 16 == 0 and all(a % 16 == 0 for a in addresses),
        "folded": folded(*columns[:1]),
    }
