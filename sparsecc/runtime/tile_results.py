"""Results of GPU kernels as users get them: torch tensors over the same memory, or what the CPU gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecc.formats import LevelArrays, known_name
from sparsecc.runtime.machines import Machine, is_torch, numpy_dtype, torch_module
from sparsecc.runtime.tile_operands import Bound, Item
from sparsecc.runtime.torch_indices import trust
from sparsecc.storage.tensor import SparseTensor

Result = Bound | SparseTensor


def torch_result(result: Result, machine: Machine) -> Any:
    """A torch tensor without a copy; a SparseTensor where torch has no such format."""
    if isinstance(result, SparseTensor):
        return result
    arrays = {role: as_torch(array) for role, array in result.arrays.items()}
    values = arrays["values"]
    fmt = result.format
    if fmt.is_dense and fmt.is_permutation:
        shaped = values.reshape(fmt.level_sizes(result.shape))
        if fmt.is_row_major:
            return shaped
        return shaped.permute([fmt.dim_order.index(d) for d in range(fmt.rank)])
    torch, shape, name = torch_module(), result.shape, known_name(fmt)
    if name in ("CSR", "CSC") or name.startswith("BSR"):
        make = {"CSR": torch.sparse_csr_tensor, "CSC": torch.sparse_csc_tensor}.get(
            name, torch.sparse_bsr_tensor
        )
        return trust(make(arrays["positions1"], arrays["coordinates1"], values, size=shape))
    if name.startswith("COO"):
        indices = arrays.get("indices")
        if indices is None:
            indices = torch.stack([arrays[f"coordinates{n}"] for n in range(len(shape))])
        return trust(torch.sparse_coo_tensor(indices, values, shape, is_coalesced=True))
    return host_result(result, machine)


def as_torch(array: Item) -> Any:
    """An array as torch's, sharing its memory."""
    if is_torch(array):
        return array
    torch = torch_module()
    if array.dtype == numpy_dtype("bf16"):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def host_result(result: Result, machine: Machine) -> Any:
    """An ndarray if it is dense, a NumPy scalar if it has rank 0, else a SparseTensor."""
    if isinstance(result, SparseTensor):
        return result
    fmt, shape = result.format, result.shape
    values = machine.download(result.arrays["values"]).reshape(-1)
    if fmt.is_row_major:
        return values.reshape(shape) if shape else values[0]
    levels = [LevelArrays()] * fmt.num_levels
    for number, level in enumerate(fmt.levels):
        found = {role: machine.download(result.arrays[f"{role}{number}"]) for role in level.arrays}
        levels[number] = LevelArrays(found.get("positions"), found.get("coordinates"))
    tensor = SparseTensor(shape, fmt.with_widths(0, 0), tuple(levels), values)
    return tensor.to_numpy() if fmt.is_dense else tensor
