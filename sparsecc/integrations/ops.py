"""The products as operators of torch: ``torch.compile`` takes them whole, autograd knows their derivatives.

The derivative of each is made of the other two, so they can be derived again and again:

| operator | with respect to the dense operand | with respect to the values |
|---|---|---|
| ``spmm`` (``W x``) | ``spmm_transposed`` | ``sampled`` |
| ``spmm_transposed`` (``W' g``) | ``spmm`` | ``sampled`` |
| ``sampled`` (``g x'`` at the places of ``W``) | ``spmm_transposed``, ``spmm`` | |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from sparsecc.diagnostics import UnsupportedError
from sparsecc.integrations.patterns import known_layout
from sparsecc.integrations.products import Weight
from sparsecc.integrations.slots import slot_of

Tensor = torch.Tensor
custom_op: Any = torch.library.custom_op  # its methods have no types of their own

_WEIGHT = "Tensor values, Tensor[] arrays, str format, int rows, int columns, str form, str target, int slot"
"""What every operator takes of a weight; ``form`` says where the tokens of dense operands are."""


def _weight(values: Tensor, arrays: Sequence[Tensor], rest: Sequence[Any]) -> tuple[Weight, str]:
    format, rows, columns, form, target, slot = rest
    layout = known_layout(format, rows, columns)
    return Weight.of(values, arrays, layout, slot_of(slot), target), form


def _owned(result: Tensor, *inputs: Tensor) -> Tensor:
    """Operators give memory of their own."""
    return result.clone() if any(result.data_ptr() == x.data_ptr() != 0 for x in inputs) else result


# -- W times x -----------------------------------------------------------------------------------


@custom_op(
    "sparsecc::spmm", mutates_args=(), schema=f"(Tensor x, Tensor? bias, {_WEIGHT}) -> Tensor"
)
def spmm(x: Any, bias: Any, values: Any, arrays: Any, *rest: Any) -> Tensor:
    weight, form = _weight(values, arrays, rest)
    return weight.times(x, form, bias)


@spmm.register_fake
def _(x: Any, bias: Any, values: Any, arrays: Any, *rest: Any) -> Tensor:
    _, rows, _, form, _, _ = rest
    return x.new_empty((x.shape[0], rows) if form == "linear" else (rows, x.shape[1]))


def _save_spmm(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, bias, values, arrays, *ctx.rest = inputs
    ctx.save_for_backward(x, values, *arrays)
    ctx.bias = bias is not None


def _spmm_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    x, values, *arrays = ctx.saved_tensors
    to_x = to_bias = to_values = None
    if ctx.needs_input_grad[0]:
        to_x = spmm_transposed(grad, values, arrays, *ctx.rest)
    if ctx.bias and ctx.needs_input_grad[1]:
        to_bias = grad.sum(0)  # a bias belongs to rows of W, the last dimension of the linear form
    if ctx.needs_input_grad[2]:
        to_values = sampled(grad, x, values, arrays, *ctx.rest)
    return (to_x, to_bias, to_values, [None] * len(arrays), *([None] * len(ctx.rest)))


# -- the transpose of W times g --------------------------------------------------------------------


@custom_op("sparsecc::spmm_transposed", mutates_args=(), schema=f"(Tensor g, {_WEIGHT}) -> Tensor")
def spmm_transposed(g: Any, values: Any, arrays: Any, *rest: Any) -> Tensor:
    weight, form = _weight(values, arrays, rest)
    return weight.transposed_times(g, form)


@spmm_transposed.register_fake
def _(g: Any, values: Any, arrays: Any, *rest: Any) -> Tensor:
    _, _, columns, form, _, _ = rest
    return g.new_empty((g.shape[0], columns) if form == "linear" else (columns, g.shape[1]))


def _save_transposed(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    g, values, arrays, *ctx.rest = inputs
    ctx.save_for_backward(g, values, *arrays)


def _transposed_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    g, values, *arrays = ctx.saved_tensors
    to_g = to_values = None
    if ctx.needs_input_grad[0]:
        to_g = spmm(grad, None, values, arrays, *ctx.rest)
    if ctx.needs_input_grad[1]:
        to_values = sampled(g, grad, values, arrays, *ctx.rest)
    return (to_g, to_values, [None] * len(arrays), *([None] * len(ctx.rest)))


# -- g times x, where W has values ----------------------------------------------------------------


@custom_op(
    "sparsecc::sampled", mutates_args=(), schema=f"(Tensor g, Tensor x, {_WEIGHT}) -> Tensor"
)
def sampled(g: Any, x: Any, values: Any, arrays: Any, *rest: Any) -> Tensor:
    """The values themselves do not matter, only their shape and type."""
    weight, form = _weight(values, arrays, rest)
    return _owned(weight.sampled(g, x, form), values)


@sampled.register_fake
def _(g: Any, x: Any, values: Any, arrays: Any, *rest: Any) -> Tensor:
    return values.new_empty(values.shape)


def _save_sampled(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    g, x, _, arrays, *ctx.rest = inputs
    ctx.save_for_backward(g, x, *arrays)


def _sampled_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    g, x, *arrays = ctx.saved_tensors
    to_g = to_x = None
    if ctx.needs_input_grad[0]:
        to_g = spmm(x, None, grad.contiguous(), arrays, *ctx.rest)
    if ctx.needs_input_grad[1]:
        to_x = spmm_transposed(g, grad.contiguous(), arrays, *ctx.rest)
    return (to_g, to_x, None, [None] * len(arrays), *([None] * len(ctx.rest)))


spmm.register_autograd(_spmm_backward, setup_context=_save_spmm)
spmm_transposed.register_autograd(_transposed_backward, setup_context=_save_transposed)
sampled.register_autograd(_sampled_backward, setup_context=_save_sampled)


# -- transformations of functions --------------------------------------------------------------------


class NotBatched(UnsupportedError):
    text = "torch.vmap over a sparse product"
    help_text = "a layer takes any number of leading dimensions: give it the batch as one of them, or call it in a loop"


def _refuse_vmap(_info: Any, _dims: Any, *_arguments: Any) -> Any:
    raise NotBatched()


for _operator in (spmm, spmm_transposed, sampled):
    _operator.register_vmap(_refuse_vmap)
