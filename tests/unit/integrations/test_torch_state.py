"""What layers keep: state dicts, copies, packed operands, versions of values; and mistakes."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from sparsecc.diagnostics import OperandError, UsageError  # noqa: E402
from sparsecc.integrations import products  # noqa: E402
from sparsecc.integrations.patterns import (  # noqa: E402
    BadArrays,
    Layout,
    NotDivisible,
    NoTorchFormat,
    NotTwoOfFour,
)  # fmt: skip
from sparsecc.integrations.torch import (  # noqa: E402
    SparseLinear,
    SparseMatrix,
    densified,
    sddmm,
    spmm,
)  # fmt: skip
from tests.unit.integrations.layers_for_tests import (  # noqa: E402
    FORMATS,
    dense_weight,
    layer_of,
    tokens,
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


# -- state ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_state_dict(format: str) -> None:
    _, layer = layer_of(format)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    # Another pattern, with another number of entries where the format has one.
    other = torch.nn.Linear(12, 8, dtype=torch.float64)
    with torch.no_grad():
        other.weight.copy_(dense_weight("2:4").flip(0))
        if format.startswith("BSR"):
            other.weight[:, :8] = 0
    again = SparseLinear.from_linear(other, format)
    x = tokens(3, 12)
    again(x)
    again.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(again(x), layer(x))
    again(x).sum().backward()
    grad: Any = again.values.grad
    assert grad.shape == again.values.shape


def test_copies_are_their_own() -> None:
    _, layer = layer_of("2:4")
    x = tokens(3, 12)
    before = layer(x)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert twin.slot.number != layer.slot.number
        torch.testing.assert_close(twin(x), before)
        with torch.no_grad():
            twin.values.zero_()
        torch.testing.assert_close(layer(x), before)


def test_bad_arrays_are_found_when_they_come() -> None:
    _, layer = layer_of("CSR")
    x = tokens(3, 12)
    layer(x)
    good = layer.state_dict()
    coordinates, positions = good["coordinates"].clone(), good["positions"].clone()
    for name, bad in (
        ("coordinates", coordinates + 100),
        ("coordinates", coordinates.flip(0)),
        ("positions", positions * 2),
        ("positions", positions.flip(0)),
    ):
        layer.load_state_dict(good | {name: bad})
        with pytest.raises(BadArrays, match="are not valid"):
            layer(x)
        layer.load_state_dict(good | {"coordinates": coordinates, "positions": positions})
        layer(x)
    _, layer = layer_of("2:4")
    good = copy.deepcopy(layer.state_dict())
    layer.load_state_dict(good | {"places": good["places"] * 0})
    with pytest.raises(BadArrays, match="do not rise"):
        layer(x)


# -- packed formats ------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["2:4", "2:4+CSR"])
def test_dense_weights_of_backward_passes_are_counted(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a GPU does for packed formats, on the CPU."""
    _, layer = layer_of(format)
    x = tokens(4, 12)
    x.requires_grad_()
    y = layer(x)
    before = densified()
    monkeypatch.setattr(products.Weight, "packed", property(lambda self: True))
    to_x, to_values = torch.autograd.grad(y.square().sum(), (x, layer.values))
    after = densified()
    grew = {key for key in after if after[key] - before.get(key, 0) == 1}
    assert grew == {f"transposed product, {format}", f"sampled product, {format}"}
    monkeypatch.undo()
    expected = torch.autograd.grad(layer(x).square().sum(), (x, layer.values))
    torch.testing.assert_close((to_x, to_values), expected)


class GpuKernel:
    """Stands in for a GPU's kernel: a packed operand is the dense weight."""

    def __init__(self) -> None:
        self.packs = 0

    def pack(self, W: Any) -> Any:
        self.packs += 1
        return W.clone()

    def __call__(self, W: Any, X: Any, b: Any) -> Any:
        return X @ W.to_dense().t() + b


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_operands_of_a_gpu_are_packed_when_values_change(
    format: str, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = GpuKernel()
    asked: list[Any] = []

    def compiled(*what: Any) -> GpuKernel:
        asked.append(what)
        return kernel

    monkeypatch.setattr(products, "compiled", compiled)
    linear, layer = layer_of(format, dtype, target="sm_90")
    packed = format.startswith("2:4") and dtype == torch.float16
    stored = format if packed or format.startswith("BSR") else "CSR"
    x = tokens(4, 12, dtype=dtype)
    for times in (1, 1, 2):
        if times == 2:
            with torch.no_grad():
                layer.values.mul_(2)
                linear.weight.mul_(2)
        torch.testing.assert_close(layer(x), linear(x), rtol=1e-2, atol=1e-3)
        assert kernel.packs == times * packed
    text, layout, *rest = asked[0]
    assert (text, layout.format) == ("Y[m,n] = X[m,k] * W[n,k]", stored)
    assert rest == [products.DTYPES[dtype], "sm_90", None, True]
    # A write that torch's versions do not show.
    layer.values.data.mul_(2)
    linear.weight.data.mul_(2)
    if packed:
        layer.forget()
    torch.testing.assert_close(layer(x), linear(x), rtol=1e-2, atol=1e-3)
    assert kernel.packs == 3 * packed


def test_the_cpu_makes_no_dense_weight() -> None:
    before = densified()
    for format in FORMATS:
        _, layer = layer_of(format)
        layer(tokens(2, 12).requires_grad_()).sum().backward()
    assert densified() == before


def test_a_slot_sees_versions() -> None:
    slot = SparseMatrix.from_torch(dense_weight("CSR")).slot
    values = torch.ones(3)
    made: list[float] = []

    def make() -> int:
        made.append(float(values.sum()))
        return len(made)

    assert slot.keep("sum", [values], make) == slot.keep("sum", [values.detach()], make) == 1
    values.mul_(2)
    assert slot.keep("sum", [values], make) == 2
    assert slot.keep("sum", [values.clone()], make) == 3
    slot.forget()
    assert slot.keep("sum", [values], make) == 4
    with torch.inference_mode():
        values = torch.ones(3)
    # Without a version nothing is kept.
    assert slot.keep("sum", [values], make) == 5
    assert slot.keep("sum", [values], make) == 6
    assert made == [3.0, 6.0, 6.0, 6.0, 3.0, 3.0]


# -- mistakes ------------------------------------------------------------------------------------


def test_what_is_not_two_of_four_is_refused_with_its_place() -> None:
    weight = dense_weight("2:4")
    weight[3, 4:8] = 1
    weight[5, 0:3] = 1
    with pytest.raises(NotTwoOfFour) as error:
        SparseMatrix.from_torch(weight, "2:4")
    assert "2 of 24 groups" in str(error.value)
    assert "row 3, columns 4 to 7" in str(error.value)


def test_mistakes() -> None:
    linear, layer = layer_of("CSR")
    with pytest.raises(NoTorchFormat, match="ELL"):
        SparseLinear.from_linear(linear, "ELL")
    with pytest.raises(NotDivisible, match="8 x 12"):
        SparseLinear.from_linear(linear, "BSR(5,4)")
    with pytest.raises(NotDivisible, match="multiple of 4"):
        Layout("2:4", 8, 10)
    with pytest.raises(UsageError, match="relu"):
        SparseLinear.from_linear(linear, "CSR", activation="rellu")
    with pytest.raises(
        OperandError, match=r"x is torch.float32, the weight's values are torch.float64"
    ):
        layer(tokens(3, 12, dtype=torch.float32))
    with pytest.raises(OperandError, match="12 elements"):
        layer(tokens(3, 11))
    with pytest.raises(OperandError, match="12 rows"):
        spmm(layer.weight, tokens(8, 2))
    with pytest.raises(OperandError, match="V is 12 x r"):
        sddmm(layer.weight, tokens(8, 2), tokens(8, 2))
    with pytest.raises(OperandError, match="no kernel for values of torch.int64"):
        spmm(SparseMatrix.from_torch(torch.ones(2, 2, dtype=torch.int64)), torch.ones(2, 2).long())
    with pytest.raises(OperandError, match="two dimensions"):
        SparseMatrix.from_torch(torch.ones(2, 2, 2))
    with pytest.raises(OperandError, match="arrays want"):
        spmm(SparseMatrix(layer.values[1:], layer.arrays, "CSR", (8, 12)), tokens(12, 2))
