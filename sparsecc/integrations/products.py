"""The three products of a sparse weight ``W[n,k]`` as compiled kernels, on torch tensors.

Each has two forms: ``linear`` for dense operands with the tokens first (``Y[m,n] = X[m,k] * W[n,k]``), ``matrix`` for
those with the tokens last (``Y[n,m] = W[n,k] * X[k,m]``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from sparsecc import api
from sparsecc.diagnostics import OperandError, TargetError
from sparsecc.integrations.arrays import numpy_of, torch_of
from sparsecc.integrations.patterns import Layout
from sparsecc.integrations.slots import Slot

Tensor = torch.Tensor

PRODUCT = {
    "linear": "Y[m,n] = X[m,k] * W[n,k]",
    "matrix": "Y[n,m] = W[n,k] * X[k,m]",
}
SAMPLED = {
    "linear": "D[n,k] = W[n,k] * G[m,n] * X[m,k]",
    "matrix": "D[n,k] = W[n,k] * G[n,m] * X[k,m]",
}
DTYPES = {
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
}  # fmt: skip

DENSIFIED: Counter[str] = Counter()
"""How often a product has made a dense weight, by product and format; see ``densified``."""


class WrongDtype(OperandError):
    text = "{name} is {found}, the weight's values are {wanted}"
    help_text = "convert one of them"


class WrongDevice(OperandError):
    text = "{name} is on {found}, the weight's values are on {wanted}"
    help_text = "move one of them"


class NoTorchDtype(OperandError):
    text = "there is no kernel for values of {dtype}"
    help_text = "known: float16, bfloat16, float32, float64"


class NoTargetForDevice(TargetError):
    text = "there are no kernels for tensors on {device}"
    help_text = "move the layer to the CPU or to an NVIDIA GPU"


def target_of(device: torch.device) -> str:
    """The target that runs where a tensor is. Raises NoTargetForDevice."""
    if device.type == "cpu":
        return "cpu"
    if device.type != "cuda":
        raise NoTargetForDevice(device=device)
    return f"sm_{torch.cuda.get_device_capability(device)[0]}0"


@lru_cache(maxsize=1024)
def compiled(
    text: str, layout: Layout, dtype: str, target: str, out: str | None, bias: bool
) -> Any:
    """The kernel of a product. On a GPU the weight's extents are constants of it."""
    known = {"n": layout.rows, "k": layout.columns} if target != "cpu" else {}
    specs: dict[str, Any] = {}
    for name, *indices in _operands(text + (" + b[n]" if bias else "")):
        shape = tuple(known.get(index) for index in indices)
        specs[name] = api.Spec(shape, dtype, layout.format if name == "W" else None)
    return api.compile(text + (" + b[n]" if bias else ""), out=out, target=target, operands=specs)


def _operands(text: str) -> list[list[str]]:
    """Names and indices of the operands of a product's text."""
    parts = text.partition("=")[2].replace("+", "*").split("*")
    return [[part.strip()[0], *part.strip()[2:-1].split(",")] for part in parts]


@dataclass(frozen=True)
class Weight:
    """A sparse weight in a call: layout and tensors, and where what is made of them is kept."""

    layout: Layout
    values: Tensor
    arrays: Sequence[Tensor]
    slot: Slot
    target: str
    part: str = ""
    """Tells the transpose's things in the slot from the weight's own."""

    @staticmethod
    def of(
        values: Tensor, arrays: Sequence[Tensor], layout: Layout, slot: Slot, target: str
    ) -> Weight:
        """The weight, its arrays checked (once for a version of them).

        Raises BadArrays, NoTorchDtype, NoTargetForDevice, WrongDevice."""
        if values.dtype not in DTYPES:
            raise NoTorchDtype(dtype=values.dtype)
        for array in arrays:
            _same_device("an index array", array, values)
        slot.keep("checked", arrays, lambda: layout.check(arrays))
        wanted = layout.values_shape(arrays)
        if tuple(values.shape) != wanted:
            raise OperandError(
                f"values of shape {tuple(values.shape)} where the arrays want {wanted}"
            )
        return Weight(layout, values, arrays, slot, target or target_of(values.device))

    @property
    def packed(self) -> bool:
        """Whether kernels read the weight in a layout of their own: 2:4 on matrix units, which take 16-bit values."""
        narrow = self.values.dtype in (torch.float16, torch.bfloat16)
        return self.target != "cpu" and narrow and self.layout.format.startswith("2:4")

    @property
    def dtype(self) -> str:
        return DTYPES[self.values.dtype]

    def keep(self, what: str, tensors: Sequence[Tensor], make: Any) -> Any:
        return self.slot.keep((self.part, what, self.target), tensors, make)

    def plain(self) -> Weight:
        """The weight as CSR or BSR, its values shared: a 2:4 weight has columns / 2 entries in each row."""
        if self.layout.format == "2:4+CSR":
            layout = Layout("CSR", *self.layout.shape)
            return Weight(layout, self.values, self.arrays, self.slot, self.target, "plain")
        if self.layout.format != "2:4":
            return self
        layout = Layout("CSR", *self.layout.shape)
        arrays = self.keep("as CSR", self.arrays, lambda: self.layout.pairs_as_csr(self.arrays))
        return Weight(layout, self.values.reshape(-1), arrays, self.slot, self.target, "plain")

    def transposed(self) -> Weight:
        """The transpose of a CSR or BSR weight: the pattern is made once."""
        layout, arrays, order = self.keep(
            "turned", self.arrays, lambda: self.layout.transposed(self.arrays)
        )
        # Values are moved anew each time: one written through ``.data`` leaves no trace in its version.
        values = self.layout.transposed_values(self.values.detach(), order)
        return Weight(layout, values, arrays, self.slot, self.target, self.part + "turned")

    def dense(self, why: str) -> Tensor:
        """The weight as a dense tensor; counted."""
        DENSIFIED[f"{why}, {self.layout.format}"] += 1
        return self.layout.to_dense(self.values, self.arrays)

    # -- the products -----------------------------------------------------------------------------

    def times(self, x: Tensor, form: str, bias: Tensor | None = None) -> Tensor:
        """``W`` times the dense operand (plus a bias for each row of ``W``)."""
        weight = self if self.packed else self.plain()
        kernel = compiled(
            PRODUCT[form], weight.layout, self.dtype, self.target, None, bias is not None
        )
        dense = {"X": self._fitting("x", x)}
        if bias is not None:
            dense["b"] = self._fitting("the bias", bias)
        return weight.run(kernel, dense)

    def transposed_times(self, g: Tensor, form: str) -> Tensor:
        """The transpose of ``W`` times the dense operand."""
        g = self._fitting("the gradient", g)
        if self.packed:
            dense = self.dense("transposed product")
            return g @ dense if form == "linear" else dense.t() @ g
        return self.plain().transposed().times(g, form)

    def sampled(self, g: Tensor, x: Tensor, form: str) -> Tensor:
        """``g`` times ``x`` at the places of the weight's values: what the values' gradient is."""
        g, x = self._fitting("the gradient", g), self._fitting("x", x)
        if self.packed:
            DENSIFIED[f"sampled product, {self.layout.format}"] += 1
            whole = g.t() @ x if form == "linear" else g @ x.t()
            return self.layout.at_entries(whole, self.arrays)
        plain = self.plain()
        ones = plain.keep(f"ones {self.dtype}", plain.arrays, lambda: torch.ones_like(plain.values))
        pattern = Weight(plain.layout, ones, plain.arrays, self.slot, self.target, "ones")
        kernel = compiled(
            SAMPLED[form], plain.layout, self.dtype, self.target, plain.layout.format, False
        )
        found = pattern.run(kernel, {"G": g, "X": x})
        return found.reshape(self.values.shape)

    def run(self, kernel: Any, dense: Mapping[str, Tensor]) -> Tensor:
        """Call a kernel with the weight: a dense result, or the values of a sparse one."""
        if self.target == "cpu":
            weight = self.keep(
                "tensor", (self.values, *self.arrays),
                lambda: self.layout.as_tensor(self.values, self.arrays),
            )  # fmt: skip
            arrays = {name: numpy_of(tensor) for name, tensor in dense.items()}
            return torch_of(kernel(W=weight, **arrays))
        values = self.values.detach()

        def operand() -> Any:
            if self.packed:
                return kernel.pack(W=self.layout.to_dense(values, self.arrays))
            return self.layout.as_sparse(values, self.arrays)

        weight = self.keep("operand", (self.values, *self.arrays), operand)
        return torch_of(kernel(W=weight, **dense))

    def _fitting(self, name: str, x: Tensor) -> Tensor:
        """A dense operand, contiguous (a copy if it is not), of the weight's type and on its device."""
        if x.dtype != self.values.dtype:
            raise WrongDtype(name=name, found=x.dtype, wanted=self.values.dtype)
        _same_device(name, x, self.values)
        return x.contiguous()


def _same_device(name: str, found: Tensor, wanted: Tensor) -> None:
    if found.device != wanted.device:
        raise WrongDevice(name=name, found=found.device, wanted=wanted.device)
