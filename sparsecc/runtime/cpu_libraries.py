"""Products by libraries on the CPU: NumPy's BLAS on views of dense arrays, SciPy on views of a sparse tensor's.

BLAS writes into the result, ``out=`` included. SciPy's public functions make a result of their own, which is copied
where there is ``out=``; the SciPy matrix of a SparseTensor shares its arrays and is made once while the tensor lives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from sparsecc.elements import NUMPY
from sparsecc.formats import LevelArrays, parse_format
from sparsecc.kernel import Library
from sparsecc.runtime.extents import result_shape
from sparsecc.runtime.library_views import Views, in_levels, merged
from sparsecc.selection.engines import (
    ENGINES,
    EngineRefused,
    LibraryAbsent,
    present,
    wrong_extents,
)
from sparsecc.selection.products import Axes
from sparsecc.storage import limits
from sparsecc.storage.tensor import SparseTensor

Array = npt.NDArray[Any]
View = Callable[[SparseTensor], Array]
Multiply = Callable[[Sequence[SparseTensor], Array, bool], None]
"""Puts the product of a plan's tensors into an array; or adds it."""


class LibraryCaller:
    """A step that a library computes. Raises LibraryAbsent when it is made where that is not installed."""

    def __init__(self, step: Library) -> None:
        self.step, launch = step, step.launch
        engine = ENGINES[step.engine]
        if step.engine not in present("cpu"):
            raise LibraryAbsent(
                title=engine.title, reason="it is not installed", remedy=engine.remedy
            )
        self.format = parse_format(launch.format, len(launch.shape))
        self.dtype = NUMPY[launch.dtype]
        self.no_arrays = (LevelArrays(),) * len(launch.shape)
        self.multiply: Multiply = _MULTIPLIES[step.engine](step)

    def __call__(self, tensors: Sequence[SparseTensor], out: Array | None) -> SparseTensor:
        launch = self.step.launch
        shape = result_shape(launch, tensors)
        sizes = self.format.level_sizes(shape)
        limits.refuse_beyond(
            limits.volume(sizes), self.dtype.itemsize, limits.MAX_DENSE_BYTES, "result", shape
        )
        if launch.init is not None:
            values = np.array(tensors[launch.init].values, dtype=self.dtype).reshape(sizes)
        else:
            values = np.empty(sizes, self.dtype) if out is None else out
        self.multiply(tensors, values, launch.init is not None)
        return SparseTensor(shape, self.format, self.no_arrays, values.reshape(-1))


class _Blas:
    def __init__(self, step: Library) -> None:
        views, inputs = Views.of(step), step.launch.inputs
        self.left_at, self.right_at = inputs[views.product.left], inputs[views.product.right]
        self.left, self.right = _turner(views.left), _turner(views.right)
        result = in_levels(views.result, parse_format(step.launch.format, len(step.launch.shape)))
        self.result = _turner(result)
        self.batch = bool(views.product.batch)

    def __call__(self, tensors: Sequence[SparseTensor], out: Array, add: bool) -> None:
        left = self.left(_dense(tensors[self.left_at]))
        right = self.right(_dense(tensors[self.right_at]))
        target = self.result(out)
        if self.batch:
            left, right, target = merged(left, right, target, (left.strides, target.strides))
        if add:
            target += np.matmul(left, right)
        else:
            np.matmul(left, right, out=target)


class _Scipy:
    """The sparse operand always stands left: ``L @ S`` is ``(S.T @ L.T).T``."""

    def __init__(self, step: Library) -> None:
        views, inputs = Views.of(step), step.launch.inputs
        self.step = step
        self.turned = step.sparse == views.product.right
        sparse, dense = (views.right, views.left) if self.turned else (views.left, views.right)
        self.transposed = (sparse.order == (1, 0)) != self.turned
        self.dense = _turner(dense)
        self.sparse_at = inputs[step.sparse or 0]
        self.dense_at = inputs[1 - (step.sparse or 0)]
        result = in_levels(views.result, parse_format(step.launch.format, len(step.launch.shape)))
        self.result = _turner(result)
        self.known: WeakKeyDictionary[SparseTensor, Any] = WeakKeyDictionary()

    def __call__(self, tensors: Sequence[SparseTensor], out: Array, add: bool) -> None:
        tensor = tensors[self.sparse_at]
        matrix = self.known.get(tensor)
        if matrix is None:
            matrix = self.known[tensor] = self.matrix(tensor)
        dense = self.dense(_dense(tensors[self.dense_at]))
        found = (matrix @ dense.T).T if self.turned else matrix @ dense
        target = self.result(out)
        if add:
            target += found
        else:
            np.copyto(target, found)

    def matrix(self, tensor: SparseTensor) -> Any:
        """The sparse operand as SciPy's, on the same arrays, as it stands on the left."""
        launch = self.step.launch
        reason = wrong_extents(self.step.engine, "the matrix", tensor.format, tensor.shape)
        if reason is not None and all(tensor.shape):
            raise EngineRefused(engine="SciPy", expression=launch.source, reason=reason)
        made = tensor.to_scipy()
        return made.T if self.transposed else made


_MULTIPLIES: dict[str, Callable[[Library], Multiply]] = {"blas": _Blas, "scipy": _Scipy}


def _dense(tensor: SparseTensor) -> Array:
    """A dense tensor by its dimensions, whatever the order of its levels."""
    shaped = tensor.values.reshape(
        tensor.shape if tensor.format.is_row_major else tensor.level_sizes
    )
    if tensor.format.is_row_major:
        return shaped
    order = tensor.format.dim_order
    return shaped.transpose([order.index(dim) for dim in range(len(order))])


def _turner(axes: Axes) -> Callable[[Array], Array]:
    """What shows an array along axes."""
    if axes.plain:
        return lambda array: array
    order, at = axes.order, axes.at
    if not at:
        return lambda array: array.transpose(order)
    return lambda array: array.transpose(order)[at]
