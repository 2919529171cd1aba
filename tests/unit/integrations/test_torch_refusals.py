"""What layers and products refuse, and what they do under autocast and vmap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.integrations.ops import NotBatched
from sparsecc.integrations.products import WrongDtype
from sparsecc.integrations.torch import (
    NotDense,
    SparseMatrix,
    WrongExtents,
    WrongValues,
    sddmm,
    spmm,
)
from tests.unit.integrations.layers_for_tests import layer_of, tokens, torch


def test_a_layer_takes_dense_tensors_with_its_features_last() -> None:
    _, layer = layer_of("CSR")
    with pytest.raises(WrongExtents, match=r"the layer of a 8 x 12 matrix and \(\)"):
        layer(torch.tensor(1.0, dtype=torch.float64))
    with pytest.raises(NotDense, match="x is a ndarray"):
        layer(np.ones((3, 12)))
    with pytest.raises(NotDense, match="x is a tensor of layout torch.sparse_coo"):
        layer(tokens(3, 12).to_sparse())


def test_products_take_dense_tensors() -> None:
    A = SparseMatrix.from_torch(torch.eye(3))
    x: Any = np.ones((3, 2), np.float32)
    with pytest.raises(NotDense, match="X is a ndarray"):
        spmm(A, x)
    with pytest.raises(WrongExtents):
        spmm(A, torch.tensor(1.0))
    with pytest.raises(NotDense, match="V is a tensor of layout torch.sparse_csr"):
        sddmm(A, torch.ones(3, 2), torch.ones(3, 2).to_sparse_csr())


@pytest.mark.parametrize("shape", [(5,), (1,), (0,), (3, 2)])
def test_other_values_are_as_many(shape: tuple[int, ...]) -> None:
    with pytest.raises(WrongValues, match=r"places for \(3,\)"):
        SparseMatrix.from_torch(torch.eye(3)).with_values(torch.ones(shape))


def test_values_of_blocks_have_their_shape() -> None:
    A = SparseMatrix.from_torch(torch.eye(4), "BSR(2,2)")
    assert A.with_values(2 * A.values).to_dense().equal(2 * torch.eye(4))
    with pytest.raises(WrongValues, match=r"places for \(2, 2, 2\)"):
        A.with_values(torch.ones(8))


def test_vmap_is_refused_with_the_remedy() -> None:
    _, layer = layer_of("CSR")
    with pytest.raises(NotBatched, match="leading dimensions"):
        torch.vmap(layer)(tokens(4, 3, 12))
    assert layer(tokens(4, 3, 12)).shape == (4, 3, 8)


@pytest.mark.parametrize("format", ["CSR", "2:4"])
def test_autocast_converts_operands_to_the_type_of_the_values(format: str) -> None:
    linear, layer = layer_of(format, torch.float32)
    x = tokens(3, 12, dtype=torch.float32).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        narrow = linear(x)  # bf16, as a layer before this one would give it
        found = layer(x.bfloat16())
        assert narrow.dtype == torch.bfloat16 and found.dtype == torch.float32
        torch.testing.assert_close(found, layer(x), rtol=2e-2, atol=2e-2)
        with pytest.raises(WrongDtype):
            layer(x.double())
    found.sum().backward()
    assert x.grad is not None and x.grad.dtype == torch.float32
    with pytest.raises(WrongDtype):
        layer(x.bfloat16())


def test_tensors_of_another_device_are_named() -> None:
    _, layer = layer_of("CSR")
    with pytest.raises(sc.SparseccError, match="x is on meta, the weight's values are on cpu"):
        layer(torch.zeros(3, 12, device="meta"))
