"""How a library's call sees its operands and its result, on the CPU and on a GPU alike: views, never copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from sparsecc.formats import Format
from sparsecc.kernel import Library
from sparsecc.selection.products import Axes, MatrixProduct, matrix_product

Array = Any
"""A NumPy array or a torch tensor."""


@dataclass(frozen=True)
class Views:
    """``left @ right`` of a call: which input stands where, and how each is turned."""

    product: MatrixProduct
    left: Axes
    right: Axes
    result: Axes

    @staticmethod
    def of(step: Library) -> Views:
        *inputs, out = step.indices
        product = matrix_product(inputs[0], inputs[1], out)
        left, right = inputs[product.left], inputs[product.right]
        return Views(
            product, product.left_axes(left), product.right_axes(right), product.result_axes(out)
        )


def in_levels(axes: Axes, format: Format) -> Axes:
    """Axes of a dense array that lies in the order of its format's levels."""
    place = {dim: level for level, dim in enumerate(format.dim_order)}
    return Axes(tuple(place[dim] for dim in axes.order), axes.missing)


def merged(
    left: Array, right: Array, out: Array, steps: Sequence[Sequence[int]]
) -> tuple[Array, Array, Array]:
    """One product of matrices in place of a batch of them, where the right operand is the same in all of them and the
    others lie so that their rows are one dimension. ``steps``: strides of ``left`` and ``out``."""
    alone = right.ndim > 2 and prod(right.shape[:-2]) == 1
    if not alone or not all(map(_one_step, (left.shape, out.shape), steps)):
        return left, right, out
    rows = prod(left.shape[:-1])
    return (
        left.reshape(rows, left.shape[-1]),
        right.reshape(right.shape[-2:]),
        out.reshape(rows, out.shape[-1]),
    )


def _one_step(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether all dimensions but the last are walked by one step."""
    if 0 in shape:
        return False
    dims = [(n, s) for n, s in zip(shape[:-1], strides[:-1], strict=True) if n != 1]
    pairs = zip(dims, dims[1:], strict=False)
    return all(outer == inner * extent for (_, outer), (extent, inner) in pairs)
