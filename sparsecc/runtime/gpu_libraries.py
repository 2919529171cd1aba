"""Products by libraries on a GPU, through torch: cuBLAS, cuSPARSE and cuSPARSELt, on the current stream.

cuBLAS and cuSPARSE write into the result, ``out=`` included. cuSPARSELt makes a result of its own, row by row of the
weight; a result ``Y[m,n]`` of ``X[m,k] * W[n,k]`` is that transposed, as torch's own ``F.linear`` gives it, and is
copied where ``out=`` is given or the program reads it on. In the interpreter torch's functions run on the processor.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from sparsecc.formats import Format, parse_format
from sparsecc.kernel import Library
from sparsecc.runtime import packs
from sparsecc.runtime.extents import result_shape
from sparsecc.runtime.library_views import Views, merged
from sparsecc.runtime.machines import GpuMachine, Machine, torch_module
from sparsecc.runtime.sparselt_algorithms import algorithm
from sparsecc.runtime.tile_operands import Bound, Item, bound, brought, dense_bound
from sparsecc.runtime.tile_results import as_torch
from sparsecc.selection.engines import ENGINES, LibraryAbsent
from sparsecc.selection.products import Axes
from sparsecc.storage.tensor import SparseTensor

Tensor = Any
TOKENS = 8
"""cuSPARSELt takes multiples of so many columns of 16-bit values."""


class LibraryLauncher:
    """A step that a library computes. ``final``: nothing of the program reads the result. Raises TorchMissing,
    LibraryAbsent."""

    def __init__(self, step: Library, machine: Machine, final: bool) -> None:
        self.step, self.machine, self.final = step, machine, final
        self.torch = torch_module()
        launch = step.launch
        self.format = parse_format(launch.format, len(launch.shape))
        self.views = Views.of(step)
        self.uploaded: dict[int, tuple[SparseTensor, Bound]] = {}
        self.kept: tuple[weakref.ref[Bound], Tensor] | None = None
        self.compute: Callable[[list[Bound], Tensor], None] = {
            "cublas": self.dense_product, "cusparse": self.sparse_product, "cusparselt": self.copied_product,
        }[step.engine]  # fmt: skip
        if step.engine == "cusparselt":
            self.check_sparselt()

    def check_sparselt(self) -> None:
        engine = ENGINES["cusparselt"]
        reason = ""
        if not isinstance(self.machine, GpuMachine):
            reason = "it runs on GPUs alone, not in the interpreter"
        elif not self.torch.backends.cusparselt.is_available():
            reason = f"this torch ({self.torch.__version__}) was built without it"
        if reason:
            raise LibraryAbsent(title=engine.title, reason=reason, remedy=engine.remedy)

    def __call__(self, tensors: Sequence[Bound | SparseTensor], out: Item | None) -> Bound:
        launch = self.step.launch
        shape = result_shape(launch, tensors)
        inputs = [self.there(n, tensors[n], k) for k, n in enumerate(launch.inputs)]
        nothing = 0 in shape or any(0 in tensor.shape for tensor in inputs)
        if self.step.engine == "cusparselt" and out is None and self.final and not nothing:
            made = self.semi_structured(inputs)
            return dense_bound(made, shape, tuple(made.stride()), self.format)
        values = (
            self.machine.empty(self.format.level_sizes(shape), launch.dtype) if out is None else out
        )
        seen = as_torch(values)
        if out is None:
            seen = _by_dimensions(seen, self.format)
        if nothing:
            seen.zero_()
        else:
            self.compute(inputs, _turned(seen, self.views.result))
        if out is None:
            return bound(shape, {"values": values}, self.format)
        return dense_bound(out, shape, tuple(seen.stride()), self.format)

    def there(self, number: int, tensor: Bound | SparseTensor, k: int) -> Bound:
        """An input on the machine: one that was converted on the host is brought now, once."""
        if isinstance(tensor, Bound):
            return tensor
        known = self.uploaded.get(number)
        if known is None or known[0] is not tensor:
            layout = dict(self.step.packs).get(k)
            known = self.uploaded[number] = (tensor, self.brought(tensor, layout))
        return known[1]

    def brought(self, tensor: SparseTensor, layout: str | None) -> Bound:
        if layout is None:
            return brought(tensor, self.machine)
        packed = packs.pack(layout, tensor)
        arrays = {role: self.machine.upload(array) for role, array in packed.arrays.items()}
        return bound(tensor.shape, arrays, tensor.format)

    # -- products ------------------------------------------------------------------------------

    def dense_product(self, inputs: list[Bound], out: Tensor) -> None:
        views = self.views
        left = _turned(_dense(inputs[views.product.left]), views.left)
        right = _turned(_dense(inputs[views.product.right]), views.right)
        if views.product.batch:
            left, right, out = merged(left, right, out, (left.stride(), out.stride()))
        self.torch.matmul(left, right, out=out)

    def sparse_product(self, inputs: list[Bound], out: Tensor) -> None:
        sparse, dense, turned = self.sides(inputs)
        self.torch.matmul(self.csr(sparse), dense, out=out.t() if turned else out)

    def copied_product(self, inputs: list[Bound], out: Tensor) -> None:
        out.copy_(self.semi_structured(inputs))

    def sides(self, inputs: list[Bound]) -> tuple[Bound, Tensor, bool]:
        """The sparse operand, what it is multiplied with on its right, and whether the product comes transposed."""
        views, sparse = self.views, self.step.sparse or 0
        turned = sparse == views.product.right
        dense = _turned(_dense(inputs[1 - sparse]), views.left if turned else views.right)
        return inputs[sparse], dense.t() if turned else dense, turned

    def csr(self, tensor: Bound) -> Tensor:
        """A CSR operand as torch's, on the same arrays; made once while it lives."""
        if self.kept is None or self.kept[0]() is not tensor:
            arrays = [
                as_torch(tensor.arrays[role]) for role in ("positions1", "coordinates1", "values")
            ]
            made = self.torch.sparse_csr_tensor(*arrays, size=tensor.shape, check_invariants=False)
            self.kept = (weakref.ref(tensor), made)
        return self.kept[1]

    def semi_structured(self, inputs: list[Bound]) -> Tensor:
        """The product by cuSPARSELt, in memory of its own."""
        machine = self.machine
        assert isinstance(machine, GpuMachine)
        sparse, dense, turned = self.sides(inputs)
        weight, vector = self.compressed(sparse), dense.ndim == 1
        dense = dense.unsqueeze(1) if vector else dense
        tokens = dense.shape[1]
        if tokens % TOKENS:
            room = dense.new_zeros((-(-tokens // TOKENS) * TOKENS, dense.shape[0]))
            room[:tokens] = dense.t()
            dense = room.t()
        elif not (dense.is_contiguous() or dense.t().is_contiguous()):
            dense = dense.t().contiguous().t()
        number = algorithm(machine, weight, dense, sparse.shape[0])
        made = self.torch._cslt_sparse_mm(weight, dense, alg_id=number)[:, :tokens]
        if vector:
            return made[:, 0]
        return made.t() if turned else made

    def compressed(self, tensor: Bound) -> Tensor:
        """A weight in the library's order: what comes from the host is compressed now, once."""
        if "compressed" not in tensor.arrays:
            from sparsecc.backends.triton.packing.semi_structured import compressed

            tensor.arrays["compressed"] = compressed(tensor.arrays["values"])
            del tensor.arrays["values"]
        return tensor.arrays["compressed"]


def _dense(tensor: Bound) -> Tensor:
    """A dense operand by its dimensions, as it lies."""
    array = as_torch(tensor.arrays["values"])
    shape, strides = tensor.shape, tensor.strides
    if tuple(array.shape) == shape and tuple(array.stride()) == strides:
        return array
    return array.as_strided(shape, strides)


def _by_dimensions(array: Tensor, format: Format) -> Tensor:
    """An array in the order of a dense format's levels, by its dimensions."""
    order = format.dim_order
    return (
        array if format.is_row_major else array.permute([order.index(d) for d in range(len(order))])
    )


def _turned(array: Tensor, axes: Axes) -> Tensor:
    if axes.plain:
        return array
    turned = array.permute(axes.order)
    return turned[axes.at] if axes.missing else turned
