"""How tensors of torch read as formats."""

from __future__ import annotations

from typing import Any

from sparsecc.diagnostics import OperandError
from sparsecc.formats import dense_format, parse_format


class WrongTorchLayout(OperandError):
    text = "operand {name!r} is a torch tensor of layout {found}, the kernel reads {wanted}"
    help_text = "convert it once with {remedy}, or compile for the tensor that you have"


class HybridTorch(OperandError):
    text = "operand {name!r} is a torch tensor of layout {found} with {what}, which no kernel reads"
    help_text = "pass a plain one: .to_dense(), or its parts one by one"


def torch_format(tensor: Any, name: str = "?") -> str:
    """The format of a torch tensor, with the widths of its arrays, as spelled by Format.

    Raises WrongTorchLayout, HybridTorch."""
    layout, rank = str(tensor.layout), tensor.dim()
    if layout == "torch.strided":
        return str(dense_format(rank))
    if layout == "torch.sparse_coo":
        if tensor.dense_dim():
            raise HybridTorch(name=name, found=layout, what="dense dimensions")
        return str(parse_format("COO" if rank == 2 else f"COO({rank})", rank).with_widths(64, 64))
    kind = {"torch.sparse_csr": "CSR", "torch.sparse_csc": "CSC"}.get(layout)
    if layout == "torch.sparse_bsr":
        rows, columns = tensor.values().shape[-2:] if rank == 2 else (1, 1)
        kind = f"BSR({rows},{columns})"
    if kind is None:
        raise WrongTorchLayout(
            name=name, found=layout, wanted="strided, CSR, CSC, BSR or COO",
            remedy=".to_dense()" if layout == "torch._mkldnn" else ".to_dense().to_sparse_csr()",
        )  # fmt: skip
    if rank != 2 or tensor.values().dim() != (3 if layout == "torch.sparse_bsr" else 1):
        raise HybridTorch(name=name, found=layout, what="batch or dense dimensions")
    outer, inner = compressed(tensor, layout)
    fmt = parse_format(kind, 2).with_widths(outer.element_size() * 8, inner.element_size() * 8)
    return str(fmt)


def compressed(tensor: Any, layout: str) -> tuple[Any, Any]:
    """Positions and coordinates of a compressed torch tensor."""
    if layout in ("torch.sparse_csr", "torch.sparse_bsr"):
        return tensor.crow_indices(), tensor.col_indices()
    return tensor.ccol_indices(), tensor.row_indices()
