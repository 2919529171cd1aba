"""How large a contraction is, and how its operands lie: what its kernel is compiled for, where types leave it open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparsecc.formats import parse_format
from sparsecc.kernel import GRID, Plan, TileLaunch
from sparsecc.runtime.machines import numpy_dtype
from sparsecc.runtime.packs import OPEN
from sparsecc.runtime.tile_operands import Bound

BUCKETS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Ranges of tokens that contractions are compiled for, by their ends; the last is open."""


def bucket(tokens: int) -> int:
    """The end of the range that a number of tokens falls in."""
    return next((end for end in BUCKETS if tokens <= end), BUCKETS[-1])


def sizes_of(
    tokens: int | None, plan: Plan, step: TileLaunch, tensors: Sequence[Any]
) -> dict[str, Any]:
    """Options of a request for operands: extents, what is known of a packing, alignment. ``tokens``: if it is fixed."""
    assert step.sizes is not None
    launch = step.launch
    places = [launch.extents[group][1][0] for group in step.sizes]
    found, rows, reduction = [tensors[number].shape[dim] for number, dim in places]
    facts: dict[str, int] = {}
    for k, layout in step.packs:
        tensor = tensors[launch.inputs[k]]
        if layout in OPEN and isinstance(tensor, Bound):
            facts.update(tensor.facts)
    dense = [
        (tensors[n], numpy_dtype(operand.dtype).itemsize)
        for n, operand in enumerate(plan.operands)
        if _is_dense(tensors[n])
    ]
    return {
        "tokens": tokens or bucket(found),
        "rows": rows,
        "reduction": reduction,
        "steps": facts.get("steps"),
        "aligned": all(_aligned(tensor, size) for tensor, size in dense),
        "entries": None if "entries" not in facts else -(-facts["entries"] // 32) * 32,
        "even": _even(step, tensors, [tensor for tensor, _ in dense]),
        "folded": folded(found, *_batches(step, tensors)),
    }


def folded(*extents: int) -> bool:
    """Whether dimensions may have more programs than the second and third axis of a grid have room for."""
    return any(extent > most for extent, most in zip(extents, GRID[1:], strict=False))


def _batches(step: TileLaunch, tensors: Sequence[Any]) -> list[int]:
    """The extents of a launch that are not among its sizes."""
    assert step.sizes is not None
    groups = enumerate(step.launch.extents)
    return [tensors[d[0][0]].shape[d[0][1]] for n, (_, d) in groups if n not in step.sizes]


def _is_dense(tensor: Any) -> bool:
    return isinstance(tensor, Bound) and tensor.format.is_dense and len(tensor.shape) > 1


def _aligned(tensor: Bound, size: int) -> bool:
    """Whether a dense operand begins at a multiple of 16 bytes, and so do its rows and their ends.

    Rows that overlap (those of ``expand``), and those without elements, count as not aligned: bulk copies can't read
    them, and code for rows that are not aligned has none."""
    inner = tensor.format.exprs[-1].dim
    steps = [s for dim, s in enumerate(tensor.strides) if dim != inner]
    if min(steps) < max(1, tensor.shape[inner]):
        return False
    words = (*steps, tensor.shape[inner])
    return tensor.words["values"] % 16 == 0 and all(n * size % 16 == 0 for n in words)


def _even(step: TileLaunch, tensors: Sequence[Any], dense: Sequence[Bound]) -> bool:
    """Whether contiguous extents of dense operands and of the result are multiples of 16."""
    launch = step.launch
    extents = [tensor.shape[tensor.format.exprs[-1].dim] for tensor in dense]
    rank = len(launch.shape)
    if rank:
        inner = parse_format(launch.format, rank).exprs[-1].dim
        number, dim = launch.extents[launch.shape[inner]][1][0]
        extents.append(tensors[number].shape[dim])
    return all(extent % 16 == 0 for extent in extents)
