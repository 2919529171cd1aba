"""Products by libraries on a GPU, through torch: cuBLAS, cuSPARSE and cuSPARSELt, on the current stream.

cuBLAS and cuSPARSE write into the result, ``out=`` included. cuSPARSELt makes a result of its own, row by row of the
weight; a result ``Y[m,n]`` of ``X[m,k] * W[n,k]`` is that transposed, as torch's own ``F.linear`` gives it, and is
copied where ``out=`` is given or the program reads it on. In the interpreter torch's functions run on the processor.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sparsecc.formats import parse_format
from sparsecc.kernel import Library
from sparsecc.runtime import packs
from sparsecc.runtime.extents import result_shape
from sparsecc.runtime.library_recipe import LibraryRecipe
from sparsecc.runtime.library_views import Views, merged
from sparsecc.runtime.machines import TORCH, GpuMachine, Machine, torch_module
from sparsecc.runtime.sparselt_algorithms import algorithm
from sparsecc.runtime.tile_operands import Bound, Item, bound, brought, dense_bound
from sparsecc.runtime.tile_results import as_torch
from sparsecc.runtime.torch_guards import version
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
        self.views = views = Views.of(step)
        self.turn_left, self.turn_right = _turner(views.left), _turner(views.right)
        self.turn_result = _turner(views.result)
        self.dtype: Any = getattr(self.torch, TORCH[launch.dtype])
        self.algorithms: dict[tuple[Any, ...], int] = {}
        """Of cuSPARSELt, by the extents of a product."""
        self.uploaded: dict[int, tuple[SparseTensor, Bound]] = {}
        self.matrices: dict[int, tuple[weakref.ref[Bound], Tensor]] = {}
        """torch's CSR tensors, by the operand that each shares its arrays with."""
        self.compute: Callable[[list[Tensor], Tensor], None] = {
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
        inputs = [
            self.prepared(k, self.there(n, tensors[n], k)) for k, n in enumerate(launch.inputs)
        ]
        found = self.product(inputs, shape, None if out is None else as_torch(out))
        if self.format.is_row_major:
            return dense_bound(found if out is None else out, shape, found.stride(), self.format)
        order = self.format.dim_order
        return bound(shape, {"values": found.permute(order)}, self.format)

    def product(self, inputs: list[Tensor], shape: tuple[int, ...], out: Tensor) -> Tensor:
        """The result by its dimensions; of ``inputs`` the sparse one is the library's own."""
        if 0 in shape or any(0 in tensor.shape for tensor in inputs):
            return (self.empty(shape) if out is None else out).zero_()
        if out is None:
            if self.step.engine == "cusparselt" and self.final:
                return self.semi_structured(inputs)
            out = self.empty(shape)
        self.compute(inputs, self.turn_result(out))
        return out

    def empty(self, shape: tuple[int, ...]) -> Tensor:
        """Memory of a result, by its dimensions."""
        fmt = self.format
        sizes = shape if fmt.is_row_major else fmt.level_sizes(shape)
        made = self.torch.empty(sizes, dtype=self.dtype, device=self.machine.place)
        order = fmt.dim_order
        return (
            made if fmt.is_row_major else made.permute([order.index(d) for d in range(len(order))])
        )

    def recipe(
        self, tensors: Sequence[Bound], given: Sequence[Any], allocates: bool
    ) -> LibraryRecipe | None:
        """What a call like one that was just made needs: given are torch tensors and packed operands, by number."""
        launch, sparse = self.step.launch, self.step.sparse
        shape = result_shape(launch, tensors)
        if not self.format.is_row_major or any(0 in tensor.shape for tensor in tensors):
            return None
        alive: tuple[tuple[int, Any, int], ...] = ()
        stored: Any = None
        if sparse is not None:
            # Held by what it was made of, as its owner is: a recipe keeps no weight alive.
            place = launch.inputs[sparse]
            now = version(given[place])
            if now is None:
                return None
            alive = ((place, weakref.ref(given[place]), now),)
            stored = weakref.ref(tensors[place])
        places = tuple(enumerate(launch.inputs))
        dense = tuple(n for k, n in places if k != sparse)
        own = self.step.engine == "cusparselt"
        empty, turn, compute = partial(self.empty, shape), self.turn_result, self.compute

        def call(operands: Sequence[Tensor], out: Tensor) -> Tensor:
            inputs = [operands[n] for _, n in places]
            if sparse is not None:
                if (tensor := stored()) is None:
                    return None
                inputs[sparse] = self.prepared(sparse, tensor)
            if out is None:
                if own:
                    return self.semi_structured(inputs)
                out = empty()
            compute(inputs, turn(out))
            return out

        return LibraryRecipe(call, alive, dense, allocates)

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

    def prepared(self, k: int, tensor: Bound) -> Tensor:
        """Input ``k`` as torch's: the sparse one as the library reads it, others by their dimensions, as they lie."""
        if k != self.step.sparse:
            return _dense(tensor)
        return self.compressed(tensor) if self.step.packs else self.csr(tensor)

    # -- products ------------------------------------------------------------------------------

    def dense_product(self, inputs: list[Tensor], out: Tensor) -> None:
        views = self.views
        left = self.turn_left(inputs[views.product.left])
        right = self.turn_right(inputs[views.product.right])
        if views.product.batch:
            left, right, out = merged(left, right, out, (left.stride(), out.stride()))
        self.torch.matmul(left, right, out=out)

    def sparse_product(self, inputs: list[Tensor], out: Tensor) -> None:
        sparse, dense, turned = self.sides(inputs)
        self.torch.matmul(sparse, dense, out=out.t() if turned else out)

    def copied_product(self, inputs: list[Tensor], out: Tensor) -> None:
        out.copy_(self.semi_structured(inputs))

    def sides(self, inputs: list[Tensor]) -> tuple[Tensor, Tensor, bool]:
        """The sparse operand, what it is multiplied with on its right, and whether the product comes transposed."""
        views, sparse = self.views, self.step.sparse or 0
        turned = sparse == views.product.right
        dense = (self.turn_left if turned else self.turn_right)(inputs[1 - sparse])
        return inputs[sparse], dense.t() if turned else dense, turned

    def csr(self, tensor: Bound) -> Tensor:
        """A CSR operand as torch's, on the same arrays; made once while it lives."""
        key, matrices = id(tensor), self.matrices
        known = matrices.get(key)
        if known is not None and known[0]() is tensor:
            return known[1]
        arrays = [
            as_torch(tensor.arrays[role]) for role in ("positions1", "coordinates1", "values")
        ]
        made = self.torch.sparse_csr_tensor(*arrays, size=tensor.shape, check_invariants=False)
        matrices[key] = (weakref.ref(tensor, lambda _: matrices.pop(key, None)), made)
        return made

    def semi_structured(self, inputs: list[Tensor]) -> Tensor:
        """The product by cuSPARSELt, in memory of its own."""
        weight, dense, turned = self.sides(inputs)
        vector = dense.ndim == 1
        dense = dense.unsqueeze(1) if vector else dense
        tokens = dense.shape[1]
        if tokens % TOKENS:
            room = dense.new_zeros((-(-tokens // TOKENS) * TOKENS, dense.shape[0]))
            room[:tokens] = dense.t()
            dense = room.t()
        elif not (dense.is_contiguous() or dense.t().is_contiguous()):
            dense = dense.t().contiguous().t()
        key = (tuple(weight.shape), tuple(dense.shape), dense.is_contiguous())
        number = self.algorithms.get(key)
        if number is None:
            assert isinstance(self.machine, GpuMachine)
            number = self.algorithms[key] = algorithm(self.machine, weight, dense)
        made = self.torch._cslt_sparse_mm(weight, dense, alg_id=number)[:, :tokens]
        if vector:
            return made[:, 0]
        return made.t() if turned else made

    def compressed(self, tensor: Bound) -> Tensor:
        """A weight in the library's order: what comes from the host is compressed now, once."""
        if "compressed" not in tensor.arrays and all(tensor.shape):
            from sparsecc.backends.triton.packing.semi_structured import compressed

            tensor.arrays["compressed"] = compressed(tensor.arrays["values"])
            del tensor.arrays["values"]
        return tensor.arrays["compressed" if all(tensor.shape) else "values"]


def _dense(tensor: Bound) -> Tensor:
    """A dense operand by its dimensions, as it lies."""
    array = as_torch(tensor.arrays["values"])
    shape, strides = tensor.shape, tensor.strides
    if tuple(array.shape) == shape and tuple(array.stride()) == strides:
        return array
    return array.as_strided(shape, strides)


def _turner(axes: Axes) -> Callable[[Tensor], Tensor]:
    """What shows a tensor along axes."""
    order, at = axes.order, axes.at
    if axes.plain:
        return lambda tensor: tensor
    if not at:
        return lambda tensor: tensor.permute(order)
    return lambda tensor: tensor.permute(order)[at]
