"""Sparse layers and products for torch: ``SparseLinear``, ``SparseMatrix``, ``spmm``, ``sddmm``.

    layer = SparseLinear.from_linear(torch.nn.Linear(4096, 14336), "CSR")
    y = layer(x)                                    # on the CPU or a GPU, where the layer is
    A = SparseMatrix.from_torch(adjacency)          # any 2-D torch tensor, sparse or dense
    h = spmm(A, x)
    scores = sddmm(A, queries, keys)                # a SparseMatrix of A's pattern

All are differentiable with respect to dense operands and stored values, and go through ``torch.compile`` whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from sparsecc.diagnostics import OperandError, UsageError, did_you_mean
from sparsecc.integrations import ops
from sparsecc.integrations.patterns import Layout, entries_of_blocks, narrow
from sparsecc.integrations.products import DENSIFIED, WrongDevice
from sparsecc.integrations.slots import Slot

__all__ = ["SparseLinear", "SparseMatrix", "densified", "sddmm", "spmm"]

Tensor = torch.Tensor

ARRAYS = {"2:4": ("places",)}
"""The names of a format's index arrays in a state dict, where they are not these:"""
POSITIONS = ("positions", "coordinates")

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu, "gelu": functional.gelu, "silu": functional.silu,
}  # fmt: skip


class UnknownActivation(UsageError):
    text = "there is no activation {name!r}"


class NotAMatrix(OperandError):
    text = "a sparse matrix has two dimensions, this tensor has shape {shape}"


class WrongExtents(OperandError):
    text = "{product} of a {rows} x {columns} matrix and {found}"
    help_text = "{wanted}"


class NotDense(OperandError):
    text = "{name} is {found}, where a dense tensor of torch is wanted"
    help_text = "convert it once: torch.as_tensor(...), or .to_dense() of a sparse tensor"


class WrongValues(OperandError):
    text = "values of shape {found} for a {format} matrix that has places for {wanted}"
    help_text = "one value for each place, in the order of the matrix's own: A.values"


def densified() -> dict[str, int]:
    """How often backward passes have made a dense weight since the program began, by product and format.

    Those of 2:4 and 2:4+CSR weights do so on a GPU: a transposed 2:4 weight is not 2:4."""
    return dict(DENSIFIED)


class SparseMatrix:
    """A sparse matrix as torch tensors: ``values`` (which may want gradients), ``arrays``, ``format``, ``shape``."""

    def __init__(
        self, values: Tensor, arrays: Sequence[Tensor], format: str, shape: Sequence[int],
        target: str | None = None, slot: Slot | None = None,
    ) -> None:  # fmt: skip
        self.values, self.arrays = values, tuple(arrays)
        self.layout = Layout(format, *shape)
        self.target = target or ""
        self.slot = slot or Slot()

    @staticmethod
    def from_torch(tensor: Tensor, format: str = "CSR", target: str | None = None) -> SparseMatrix:
        """Of a dense tensor or any 2-D sparse one; zeros of dense ones are not stored.

        Raises NotTwoOfFour where the format can't hold every value."""
        if tensor.dim() != 2:
            raise NotAMatrix(shape=tuple(tensor.shape))
        layout = Layout(format, *tensor.shape)
        given: Any = tensor.detach()
        if given.layout == torch.strided or format.startswith("2:4"):
            values, arrays = layout.of_dense(
                given if given.layout == torch.strided else given.to_dense()
            )
        else:
            if given.layout == torch.sparse_bsr and tuple(given.values().shape[1:]) != layout.block:
                given = entries_of_blocks(given)
            made = given.to_sparse_bsr(layout.block) if layout.block else given.to_sparse_csr()
            values, arrays = made.values(), narrow(made.crow_indices(), made.col_indices())
        return SparseMatrix(values, arrays, format, layout.shape, target)

    @property
    def format(self) -> str:
        return self.layout.format

    @property
    def shape(self) -> tuple[int, int]:
        return self.layout.shape

    def with_values(self, values: Tensor) -> SparseMatrix:
        """Other values at the same places. Raises WrongValues."""
        wanted = self.layout.values_shape(self.arrays)
        if tuple(_dense("the values", values).shape) != wanted:
            found = tuple(values.shape)
            raise WrongValues(found=found, format=self.format, wanted=wanted)
        return SparseMatrix(values, self.arrays, self.format, self.shape, self.target, self.slot)

    def to_dense(self) -> Tensor:
        """A dense tensor."""
        return self.layout.to_dense(self.values, self.arrays)

    def __repr__(self) -> str:
        rows, columns = self.shape
        where = f"{self.values.dtype}, {self.values.device}"
        return (
            f"<SparseMatrix {rows}x{columns} {self.format}, {self.values.numel()} values, {where}>"
        )

    def arguments(self, form: str) -> tuple[Any, ...]:
        """What operators take of it."""
        rest = (self.format, *self.shape, form, self.target, self.slot.number)
        return (self.values, list(self.arrays), *rest)


def _dense(name: str, given: Any) -> Tensor:
    """What is given, if it is a dense tensor. Raises NotDense."""
    if not isinstance(given, Tensor):
        raise NotDense(name=name, found=f"a {type(given).__name__}")
    if given.layout != torch.strided:
        raise NotDense(name=name, found=f"a tensor of layout {given.layout}")
    return given


def _fitting(name: str, given: Any, values: Tensor) -> Tensor:
    """A dense operand; within autocast in the type of the values, as torch's ``custom_fwd(cast_inputs=...)`` does."""
    given = _dense(name, given)
    if given.device.type != values.device.type:
        raise WrongDevice(name=name, found=given.device, wanted=values.device)
    if given.device.type == "meta":
        return given
    if torch.is_autocast_enabled(given.device.type) and given.is_floating_point():
        return given if given.dtype == torch.float64 else given.to(values.dtype)
    return given


def spmm(A: SparseMatrix, X: Tensor) -> Tensor:
    """``A @ X`` for a dense matrix or vector."""
    rows, columns = A.shape
    x = _fitting("X", X, A.values)
    if x.dim() not in (1, 2) or x.shape[0] != columns:
        wanted = f"the dense operand has {columns} rows"
        raise WrongExtents(
            product="the product", rows=rows, columns=columns, found=tuple(x.shape), wanted=wanted
        )
    if x.dim() == 1:
        return spmm(A, x[:, None])[:, 0]
    return ops.spmm(x, None, *A.arguments("matrix"))


def sddmm(A: SparseMatrix, U: Tensor, V: Tensor) -> SparseMatrix:
    """``A * (U @ V.T)`` at the places of A's values: ``U`` has A's rows, ``V`` A's columns."""
    rows, columns = A.shape
    u, v = _fitting("U", U, A.values), _fitting("V", V, A.values)
    if (
        u.dim() != 2
        or v.dim() != 2
        or (u.shape[0], v.shape[0]) != A.shape
        or u.shape[1] != v.shape[1]
    ):
        wanted = f"U is {rows} x r and V is {columns} x r"
        found = f"{tuple(u.shape)}, {tuple(v.shape)}"
        raise WrongExtents(
            product="the sampled product", rows=rows, columns=columns, found=found, wanted=wanted
        )
    return A.with_values(A.values * ops.sampled(u, v, *A.arguments("matrix")))


class SparseLinear(torch.nn.Module):
    """A linear layer with a sparse weight; ``values`` and ``bias`` are its parameters.

    The activation (``relu``, ``gelu``, ``silu``) is applied to the result."""

    def __init__(
        self, weight: SparseMatrix, bias: Tensor | None = None, activation: str | None = None
    ) -> None:
        super().__init__()
        if activation is not None and activation not in ACTIVATIONS:
            raise UnknownActivation(
                name=activation, help=did_you_mean(activation, list(ACTIVATIONS))
            )
        self.format, self.target = weight.format, weight.target
        self.out_features, self.in_features = weight.shape
        self.activation = activation
        self.values = torch.nn.Parameter(weight.values.detach())
        self.array_names = ARRAYS.get(weight.format, POSITIONS)
        for name, array in zip(self.array_names, weight.arrays, strict=True):
            self.register_buffer(name, array)
        self.bias = None if bias is None else torch.nn.Parameter(bias.detach())
        self.slot = Slot()
        module: Any = self  # the type of the method lacks the hook's
        module.register_load_state_dict_pre_hook(_take_extents)

    @classmethod
    def from_linear(
        cls, linear: torch.nn.Linear, format: str = "2:4", target: str | None = None,
        activation: str | None = None,
    ) -> SparseLinear:  # fmt: skip
        """The layer with the same weight: ``2:4``, ``2:4+CSR``, ``BSR(32,32)``, ``CSR``. ``target`` None: that of the
        device it is on.

        Raises NotTwoOfFour, with the first bad group, where the format can't hold every value."""
        matrix = SparseMatrix.from_torch(linear.weight, format, target)
        bias: Any = linear.bias  # None where the layer has none, whatever its type says
        return cls(matrix, None if bias is None else bias.detach().clone(), activation)

    @property
    def arrays(self) -> tuple[Tensor, ...]:
        return tuple(getattr(self, name) for name in self.array_names)

    @property
    def weight(self) -> SparseMatrix:
        """The weight as a matrix, its values those of the parameter."""
        shape = (self.out_features, self.in_features)
        return SparseMatrix(self.values, self.arrays, self.format, shape, self.target, self.slot)

    def forward(self, x: Tensor) -> Tensor:
        x = _fitting("x", x, self.values)
        if x.dim() == 0 or x.shape[-1] != self.in_features:
            raise WrongExtents(
                product="the layer", rows=self.out_features, columns=self.in_features, found=tuple(x.shape),
                wanted=f"the last dimension has {self.in_features} elements",
            )  # fmt: skip
        tokens = x.reshape(-1, self.in_features)
        rest = (self.format, self.out_features, self.in_features, "linear", self.target)
        y = ops.spmm(tokens, self.bias, self.values, list(self.arrays), *rest, self.slot.number)
        y = y.reshape(*x.shape[:-1], self.out_features)
        return y if self.activation is None else ACTIVATIONS[self.activation](y)

    def forget(self) -> None:
        """Have operands packed anew: needed after values were written through ``.data`` (packed formats on GPUs)."""
        self.slot.forget()

    def extra_repr(self) -> str:
        kept = f", activation={self.activation}" if self.activation else ""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, format={self.format}, "
            f"values={self.values.numel()}, bias={self.bias is not None}{kept}"
        )


def _take_extents(
    layer: SparseLinear, state_dict: dict[str, Any], prefix: str, *_rest: object
) -> None:
    """Another pattern may have another number of entries: make room for it. Its arrays are checked in use."""
    for name in ("values", *layer.array_names):
        found: Any = state_dict.get(prefix + name)
        held: Tensor = getattr(layer, name)
        if isinstance(found, Tensor) and found.dim() == held.dim() and found.shape != held.shape:
            held.data = torch.empty(found.shape, dtype=held.dtype, device=held.device)
