"""Torch's tensors, by stand-ins with torch's attributes: torch itself is not a test dependency."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from storage_samples import sample

from sparsecc.diagnostics import OperandError
from sparsecc.storage.ingest import asarray


class Tensor:
    """What is read of a ``torch.Tensor``: layout, dtype, shape, that it is plain, and its parts as arrays."""

    is_nested = is_meta = is_quantized = False
    __torch_dispatch__ = None

    def __init__(self, layout: str, dtype: Any, shape: tuple[int, ...]) -> None:
        self.layout, self.dtype, self.shape = f"torch.{layout}", f"torch.{dtype}", shape

    def detach(self) -> Tensor:
        return self

    cpu = resolve_conj = resolve_neg = coalesce = detach

    def is_neg(self) -> bool:
        return False

    is_conj = _is_zerotensor = is_neg

    def data_ptr(self) -> int:
        return 16

    def numpy(self) -> Any:
        raise AssertionError("only strided parts become arrays")


class Strided(Tensor):
    def __init__(self, array: Any) -> None:
        super().__init__("strided", array.dtype, array.shape)
        self.array = array

    def numpy(self) -> Any:
        return self.array


def _itself(tensor: Any) -> Any:
    return tensor


def parted(layout: str, shape: tuple[int, ...], **parts: Any) -> Tensor:
    """A sparse stand-in whose parts are strided ones."""
    made = Tensor(layout, np.asarray(parts["values"]).dtype, shape)
    for name, part in parts.items():
        strided = Strided(np.asarray(part))
        setattr(made, name, partial(_itself, strided))
        setattr(made, f"_{name}", partial(_itself, strided))
    return made


@pytest.fixture(autouse=True)
def called_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    for cls in (Tensor, Strided):
        monkeypatch.setattr(cls, "__module__", "torch")
    module: Any = ModuleType("torch")
    module.Tensor = Tensor
    monkeypatch.setitem(sys.modules, "torch", module)


def test_dense_is_shared() -> None:
    array = sample((3, 4))
    assert np.shares_memory(asarray(Strided(array)).values, array)


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc"])
def test_rows_and_columns(layout: str) -> None:
    positions, coordinates, values = np.array([0, 1, 3]), np.array([2, 0, 1]), np.array([1.0, 2, 3])
    names = (
        ("crow_indices", "col_indices")
        if layout == "sparse_csr"
        else ("ccol_indices", "row_indices")
    )
    shape = (2, 3) if layout == "sparse_csr" else (3, 2)
    given = dict(zip(names, (positions, coordinates), strict=True))
    tensor = asarray(parted(layout, shape, values=values, **given)).check()
    wanted = np.array([[0, 0, 1.0], [2, 3, 0]])
    assert np.array_equal(tensor.to_numpy(), wanted if layout == "sparse_csr" else wanted.T)
    assert np.shares_memory(tensor.values, values)


def test_coordinates_and_blocks() -> None:
    coo = parted("sparse_coo", (2, 3), indices=[[1, 0], [0, 2]], values=[5.0, 6.0])
    assert asarray(coo).check().to_numpy().tolist() == [[0, 0, 6], [5, 0, 0]]
    blocks = np.arange(1.0, 5).reshape(1, 2, 2)
    bsr = parted("sparse_bsr", (2, 4), crow_indices=[0, 1], col_indices=[1], values=blocks)
    assert asarray(bsr).check().to_numpy().tolist() == [[0, 0, 1, 2], [0, 0, 3, 4]]


def test_what_is_refused() -> None:
    hybrid = parted("sparse_coo", (2, 3), indices=[[0]], values=np.ones((1, 3)))
    with pytest.raises(OperandError, match="sparse_coo with dense or batch"):
        asarray(hybrid)
    batched = parted("sparse_csr", (2, 2, 2), crow_indices=[0], col_indices=[0], values=[1.0])
    with pytest.raises(OperandError, match="sparse_csr with dense or batch"):
        asarray(batched)
    with pytest.raises(OperandError, match="dtype float8_e5m2"):
        asarray(Tensor("strided", "float8_e5m2", (2,)))
    beyond = parted("sparse_coo", (2, 3), indices=[[0], [9]], values=[1.0])
    with pytest.raises(OperandError, match="entry 0 has coordinate 9"):
        asarray(beyond)


@pytest.mark.parametrize(
    ("attribute", "words"),
    [("is_nested", "nested"), ("is_meta", "meta"), ("is_quantized", "dequantize"), ("__torch_dispatch__", "wrapper")],
)  # fmt: skip
def test_elements_that_are_elsewhere(attribute: str, words: str) -> None:
    odd = type("Odd", (Strided,), {attribute: True, "__module__": "torch"})
    with pytest.raises(OperandError, match=words):
        asarray(odd(np.ones(3)))


def test_lazy_elements_are_resolved() -> None:
    class Negated(Strided):
        def is_neg(self) -> bool:
            return True

        def resolve_neg(self) -> Tensor:
            return Strided(-self.array)

    Negated.__module__ = "torch"
    assert asarray(Negated(np.ones(3))).values.tolist() == [-1, -1, -1]


def test_to_torch_hands_over_the_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, Any]] = []

    class Made:
        def coalesce(self) -> Made:
            calls.append(("coalesce", None))
            return self

    def make(name: str, *parts: Any, size: tuple[int, ...]) -> Made:
        calls.append((name, (*parts, size)))
        return Made()

    torch: Any = ModuleType("torch")
    torch.from_numpy = _itself
    torch.sparse_csr_tensor = partial(make, "csr")
    torch.sparse_coo_tensor = partial(make, "coo")
    monkeypatch.setitem(sys.modules, "torch", torch)
    dense = sample((3, 4))
    tensor = asarray(dense)
    assert np.shares_memory(tensor.to_torch(), dense)
    rows = tensor.to("CSR")
    rows.to_torch()
    name, (positions, coordinates, values, size) = calls[-1]
    assert name == "csr" and size == (3, 4) and values is rows.values
    assert positions is rows.levels[1].positions and coordinates is rows.levels[1].coordinates
    tensor.to("CSC").to_torch()
    name, (coords, values, size) = calls[-2]
    assert name == "coo" and np.array_equal(coords, np.array(np.nonzero(dense)))
    assert np.array_equal(values, dense[np.nonzero(dense)]) and calls[-1][0] == "coalesce"
