"""A product of two tensors as a matrix product: which operand stands left, and what its indices are to it.

Libraries compute ``left[row, summed] @ right[summed, column]``. Any order of the operands and of their dimensions is
that up to transpositions::

    C[i,k] = A[i,j] * B[j,k]        A @ B
    Y[m,n] = X[m,k] * W[n,k]        X @ W.T
    y[j] = x[i] * A[i,j]            A.T @ x
    C[b,i,k] = A[b,i,j] * B[j,k]    A[b] @ B for each b
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Indices = Sequence[str]


class NoMatrixProduct(Exception):
    """Indices that make no matrix product; the text says why."""


@dataclass(frozen=True)
class Axes:
    """How a tensor is seen: its dimensions in the order of a product, and where a dimension of extent 1 is put in."""

    order: tuple[int, ...]
    missing: tuple[bool, ...] = ()
    """By axis of the view: whether the tensor lacks it; empty where it lacks none."""

    @property
    def plain(self) -> bool:
        """Whether the tensor is seen as it is."""
        return self.order == tuple(range(len(self.order))) and not self.missing

    @property
    def at(self) -> tuple[slice | None, ...]:
        """What a transposed array is indexed with."""
        return tuple(None if absent else slice(None) for absent in self.missing)


@dataclass(frozen=True)
class MatrixProduct:
    """``left`` is the number of the operand (0 or 1) that has the rows; ``batch`` are indices before the matrices, in
    the result's order. A vector has no row or no column, two of them have neither."""

    left: int
    batch: tuple[str, ...]
    row: str | None
    column: str | None
    summed: str

    @property
    def right(self) -> int:
        return 1 - self.left

    def axes(self, indices: Indices, matrix: Sequence[str | None]) -> Axes:
        """How an operand or the result with these indices is seen. ``matrix``: the two indices of its matrix; without
        a batch a vector stays one."""
        if not self.batch:
            return Axes(tuple(indices.index(i) for i in matrix if i is not None))
        wanted = (*self.batch, *matrix)
        there = tuple(i for i in wanted if i in indices)
        missing = tuple(i not in indices for i in wanted)
        return Axes(
            tuple(indices.index(i) for i in there if i is not None), missing if any(missing) else ()
        )

    def left_axes(self, indices: Indices) -> Axes:
        return self.axes(indices, (self.row, self.summed))

    def right_axes(self, indices: Indices) -> Axes:
        return self.axes(indices, (self.summed, self.column))

    def result_axes(self, indices: Indices) -> Axes:
        return self.axes(indices, (self.row, self.column))


def matrix_product(first: Indices, second: Indices, result: Indices) -> MatrixProduct:
    """The product that indices of two operands and a result make. Raises NoMatrixProduct."""
    for indices in (first, second, result):
        repeated = next((i for i in indices if list(indices).count(i) > 1), None)
        if repeated is not None:
            raise NoMatrixProduct(f"index {repeated} is repeated in one tensor")
    operands = (set(first), set(second))
    both = operands[0] & operands[1]
    alone = [i for i in (*first, *second) if i not in both and i not in result]
    if alone:
        raise NoMatrixProduct(f"index {alone[0]} is summed in one operand alone")
    summed = [i for i in first if i in both and i not in result]
    if len(summed) != 1:
        found = " and ".join(summed) if summed else "nothing"
        raise NoMatrixProduct(f"it sums over {found}; a matrix product sums over one index")
    if lost := [i for i in result if i not in operands[0] | operands[1]]:
        raise NoMatrixProduct(f"no operand has index {lost[0]} of the result")
    last = [
        next((i for i in reversed(result) if i in one and i not in both), None) for one in operands
    ]
    places = [len(result) if i is None else list(result).index(i) for i in last]
    left = 0 if places[0] <= places[1] else 1
    row, column = last[left], last[1 - left]
    batch = tuple(i for i in result if i not in (row, column))
    return MatrixProduct(left, batch, row, column, summed[0])
