"""torch tensors as NumPy arrays and back, on the host, without copies; ``bfloat16`` too."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from sparsecc.storage.tensor import SparseTensor


def numpy_of(tensor: torch.Tensor) -> Any:
    """The memory of a host tensor as an array. NumPy's bfloat16 is that of ml_dtypes."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def torch_of(result: Any) -> torch.Tensor:
    """A kernel's result as a tensor: a dense one as it is, of a sparse one the stored values."""
    if isinstance(result, torch.Tensor):
        return result if result.layout == torch.strided else result.values()
    array: Any = result.values if isinstance(result, SparseTensor) else np.asarray(result)
    library: Any = torch  # its types lack NumPy's
    if array.dtype.name == "bfloat16":
        return library.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return library.from_numpy(array)
