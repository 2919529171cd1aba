"""Tensors that a kernel can't read as they lie, or whose derivatives would be lost: refused with the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.runtime.compiled_kernel import BadOutput
from sparsecc.runtime.tile_kernel import TileKernel
from sparsecc.runtime.torch_guards import NeedsGrad
from sparsecc.storage.torch_plain import NotPlain
from tests.unit.backends.triton.kernels import SPMV
from tests.unit.runtime.gpu_doubles import Library, Machine, kernel_of, spmv_plan, torch

EYE = np.eye(5, dtype="f4")
X = np.arange(5, dtype="f4")


def kernel(target: str) -> Any:
    options: dict[str, Any] = {} if target == "cpu" else {"interpret": True}
    matrix = sc.asarray(EYE).to("CSR")
    made = sc.compile("y[i] = A[i,j] * x[j]", A=matrix, x=X, target=target, **options)

    def run(x: Any, **more: Any) -> Any:
        return made(A=matrix, x=x, **more)

    return run


def fake() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(5)


ODD: dict[str, tuple[Callable[[], Any], str]] = {
    "mkldnn": (lambda: torch.ones(5).to_mkldnn(), ".to_dense()"),
    "meta": (lambda: torch.ones(5, device="meta"), "make it on a device"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(5), 0.1, 0, torch.qint8), ".dequantize()"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(5)]), "padded"),
    "jagged": (lambda: torch.nested.nested_tensor([torch.ones(5)], layout=torch.jagged), "padded"),
    "fake": (fake, "the plain tensor"),
}  # fmt: skip


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("name", ODD)
def test_elements_that_are_nowhere_are_refused(name: str, target: str) -> None:
    make, remedy = ODD[name]
    with pytest.raises(NotPlain, match=remedy):
        kernel(target)(make())


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_inside_a_transformation_is_refused(target: str) -> None:
    run = kernel(target)
    with pytest.raises(NotPlain, match="outside of it"):
        torch.vmap(run)(torch.ones(2, 5))


LAZY: dict[str, tuple[Callable[[], Any], str, Any]] = {
    "negated": (lambda: torch.from_numpy(X)._neg_view(), "resolve_neg", -X),
    "zeros": (lambda: torch._efficientzerotensor((5,)), "clone", 0 * X),
}


@pytest.mark.parametrize("name", LAZY)
def test_lazy_elements_are_refused_on_a_gpu(name: str) -> None:
    make, remedy, _ = LAZY[name]
    with pytest.raises(NotPlain, match=remedy):
        kernel("sm_90")(make())


@pytest.mark.parametrize("name", LAZY)
def test_lazy_elements_are_resolved_on_the_cpu(name: str) -> None:
    make, _, wanted = LAZY[name]
    assert np.array_equal(kernel("cpu")(make()), wanted)
    assert np.array_equal(sc.asarray(make()).to_numpy(), wanted)


def test_conjugates_are_resolved() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j])
    assert np.array_equal(sc.asarray(z.conj()).to_numpy(), z.numpy().conj())
    assert np.array_equal(sc.asarray(z.conj().imag).to_numpy(), -z.numpy().imag)


def test_a_resolved_tensor_is_taken() -> None:
    assert np.array_equal(kernel("sm_90")(torch.from_numpy(X)._neg_view().resolve_neg()), -X)


def test_plain_subclasses_and_inference_tensors_are_taken() -> None:
    class Sub(torch.Tensor):
        pass

    with torch.inference_mode():
        made = torch.from_numpy(X.copy()) + 0
    for x in (made, torch.from_numpy(X).as_subclass(Sub)):
        assert np.array_equal(np.asarray(kernel("sm_90")(x)), X)


# -- derivatives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_operands_that_want_gradients_are_refused(target: str) -> None:
    run, x = kernel(target), torch.nn.Parameter(torch.from_numpy(X))
    with pytest.raises(NeedsGrad, match="'x'.*\n.*no_grad"):
        run(x)
    assert np.array_equal(run(x.detach()), X)
    with torch.no_grad():
        assert np.array_equal(run(x), X)
    with torch.inference_mode():
        assert np.array_equal(run(x), X)


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_forward_derivatives_are_not_lost(target: str) -> None:
    forward: Any = torch.autograd.forward_ad
    run = kernel(target)
    with forward.dual_level():
        with pytest.raises(NeedsGrad):
            run(forward.make_dual(torch.ones(5), torch.ones(5)))
        assert np.array_equal(run(torch.from_numpy(X)), X)


def test_evaluate_and_einsum_lose_no_gradient() -> None:
    x = torch.ones(5, requires_grad=True)
    with pytest.raises(NeedsGrad, match="'x'"):
        sc.evaluate("y[i] = 2 * x[i]", x=x)
    with pytest.raises(NeedsGrad, match="'op0'"):
        sc.einsum("i->", x)
    sc.compile("y[i] = 2 * x[i]", x=x)  # an example of the type alone


# -- results ---------------------------------------------------------------------------------------


def masked_zeros() -> Any:
    library: Any = np.ma
    return library.zeros(5, "f4")


def read_only() -> Any:
    array = np.zeros(5, "f4")
    array.setflags(write=False)
    return array


OUT: dict[str, tuple[Callable[[], Any], str]] = {
    "byte order": (lambda: np.zeros(5, ">f4"), "another order"),
    "masked": (masked_zeros, "it is a (masked array|MaskedArray)"),
    "read-only": (read_only, "read-only"),
    "not aligned": (lambda: np.frombuffer(bytearray(21), "u1")[1:].view("f4"), "not aligned"),
}


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("name", OUT)
def test_arrays_that_take_no_result(name: str, target: str) -> None:
    make, problem = OUT[name]
    array = make()
    with pytest.raises(BadOutput, match=problem) as caught:
        kernel(target)(X, out=array)
    assert "of shape (5,)" in str(caught.value)
    assert not array.any()


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_operands_of_another_byte_order_are_converted(target: str) -> None:
    assert np.array_equal(kernel(target)(X.astype(">f4")), X)


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_masked_arrays_are_not_unmasked(target: str) -> None:
    library: Any = np.ma
    masked = library.array(X, mask=[1, 0, 0, 0, 0])
    with pytest.raises(sc.SparseccError, match="no value"):
        kernel(target)(masked)


def test_tensors_that_take_no_result() -> None:
    run = kernel("sm_90")
    with pytest.raises(NeedsGrad, match="out="):
        run(X, out=torch.zeros(5, requires_grad=True))
    with pytest.raises(NotPlain, match="out="):
        run(X, out=torch.zeros(5)._neg_view())


# -- calls that were made before ---------------------------------------------------------------------


@pytest.fixture
def warm() -> tuple[TileKernel, Any]:
    """A kernel on a GPU's double that knows calls with and without a result's memory, and a matrix."""
    made = kernel_of(spmv_plan(SPMV), Machine(Library()))
    rows = torch.from_numpy(EYE).to_sparse_csr()
    indices = rows.crow_indices().int(), rows.col_indices().int()
    matrix = torch.sparse_csr_tensor(*indices, rows.values(), size=(5, 5))
    for _ in range(2):
        made(A=matrix, x=torch.from_numpy(X))
        made(A=matrix, x=torch.from_numpy(X), out=torch.zeros(5))
    assert len(made.recipes.known) == 2
    return made, matrix


@pytest.mark.parametrize("operand", ["x", "out"])
def test_a_known_call_still_refuses(warm: tuple[TileKernel, Any], operand: str) -> None:
    made, matrix = warm
    given = {"A": matrix, "x": torch.from_numpy(X), "out": torch.zeros(5)}

    def wrapped(x: Any) -> Any:
        return made(**given | {operand: x})

    with pytest.raises(NotPlain, match="resolve_neg"):
        made(**given | {operand: torch.ones(5)._neg_view()})
    with pytest.raises(NotPlain, match="clone"):
        made(**given | {operand: torch._efficientzerotensor((5,))})
    with pytest.raises(NeedsGrad):
        made(**given | {operand: torch.ones(5, requires_grad=True)})
    with pytest.raises(NotPlain, match="outside of it"):
        torch.vmap(wrapped)(torch.ones(2, 5))


def test_a_known_matrix_that_wants_gradients_now(warm: tuple[TileKernel, Any]) -> None:
    made, matrix = warm
    matrix.requires_grad_()
    with pytest.raises(NeedsGrad, match="'A'"):
        made(A=matrix, x=torch.from_numpy(X))
    with torch.no_grad():
        assert np.array_equal(made(A=matrix, x=torch.from_numpy(X)), X)
