"""The layers and products for torch, on the CPU: values, derivatives, compilation, state, mistakes."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from sparsecc.diagnostics import OperandError, UsageError  # noqa: E402
from sparsecc.integrations import ops, products  # noqa: E402
from sparsecc.integrations.patterns import (  # noqa: E402
    BadArrays,
    Layout,
    NotDivisible,
    NoTorchFormat,
    NotTwoOfFour,
)
from sparsecc.integrations.torch import (  # noqa: E402
    SparseLinear,
    SparseMatrix,
    densified,
    sddmm,
    spmm,
)

FORMATS = ("CSR", "BSR(4,2)", "2:4", "2:4+CSR")

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


def dense_weight(format: str, dtype: Any = None, rows: int = 8, columns: int = 12) -> Any:
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    if format == "2:4":
        groups = weight.view(rows, -1, 4)
        kept = groups.abs().topk(2, dim=-1).indices
        weight = (groups * torch.zeros_like(groups).scatter_(-1, kept, 1.0)).view(rows, columns)
        weight[0, 3:] = 0  # groups of less than two
    elif format.startswith("BSR"):
        weight[:4, 2:6] = 0
    else:
        weight *= torch.rand(weight.shape, generator=generator) < 0.5
    return weight.to(dtype or torch.float64)


def layer_of(format: str, dtype: Any = None, bias: bool = True, **more: Any) -> tuple[Any, Any]:
    linear = torch.nn.Linear(12, 8, bias=bias, dtype=dtype or torch.float64)
    with torch.no_grad():
        linear.weight.copy_(dense_weight(format, dtype))
    return linear, SparseLinear.from_linear(linear, format, **more)


def tokens(*shape: int, dtype: Any = None) -> Any:
    generator = torch.Generator().manual_seed(2)
    return torch.randn(*shape, generator=generator, dtype=dtype or torch.float64)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shape", [(12,), (5, 12), (2, 3, 12), (0, 12)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_forward(format: str, shape: tuple[int, ...], bias: bool) -> None:
    linear, layer = layer_of(format, bias=bias)
    x = tokens(*shape)
    y = layer(x)
    assert y.shape == linear(x).shape
    torch.testing.assert_close(y, linear(x))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_types(format: str, dtype: Any) -> None:
    linear, layer = layer_of(format, dtype)
    x, y = (tokens(5, 12, dtype=dtype).requires_grad_() for _ in range(2))
    found, expected = layer(x), linear(y)
    assert found.dtype == dtype
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5}[dtype]
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    found.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize("format", FORMATS)
def test_only_nonzeros_are_stored(format: str) -> None:
    weight = dense_weight(format)
    matrix = SparseMatrix.from_torch(weight, format)
    assert torch.equal(matrix.to_dense(), weight)
    stored = {"CSR": 96, "2:4+CSR": 96, "2:4": 48, "BSR(4,2)": 80}
    assert matrix.values.numel() == (
        int((weight != 0).sum()) if "CSR" in format else stored[format]
    )


@pytest.mark.parametrize("format", FORMATS)
def test_derivatives(format: str) -> None:
    _, layer = layer_of(format)

    def run(x: Any, values: Any, bias: Any) -> Any:
        return torch.func.functional_call(layer, {"values": values, "bias": bias}, (x,))

    inputs = (tokens(3, 12).requires_grad_(), layer.values, layer.bias)
    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs)


@pytest.mark.parametrize("format", FORMATS)
def test_gradients_are_those_of_the_dense_layer(format: str) -> None:
    linear, layer = layer_of(format, torch.float32, activation="relu")
    x, y = (tokens(6, 12, dtype=torch.float32).requires_grad_() for _ in range(2))
    torch.relu(linear(x)).square().sum().backward()
    layer(y).square().sum().backward()
    torch.testing.assert_close(y.grad, x.grad)
    torch.testing.assert_close(layer.bias.grad, linear.bias.grad)
    at_entries = SparseMatrix(layer.values.grad, layer.arrays, format, (8, 12)).to_dense()
    stored = SparseMatrix(torch.ones_like(layer.values), layer.arrays, format, (8, 12)).to_dense()
    torch.testing.assert_close(at_entries, linear.weight.grad * stored)


@pytest.mark.parametrize("format", FORMATS)
def test_a_step_is_seen(format: str) -> None:
    _, layer = layer_of(format)
    x = tokens(4, 12)
    for _ in range(3):
        layer.values.grad = torch.ones_like(layer.values)
        torch.optim.SGD([layer.values], lr=0.1).step()
        torch.testing.assert_close(layer(x), x @ layer.weight.to_dense().t() + layer.bias)


@pytest.mark.parametrize("format", FORMATS)
def test_compiled_whole(format: str) -> None:
    linear, layer = layer_of(format, torch.float32, activation="gelu")
    model = torch.nn.Sequential(layer, torch.nn.Linear(8, 2))
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    x = tokens(5, 12, dtype=torch.float32)
    torch.testing.assert_close(compiled(x), model[1](torch.nn.functional.gelu(linear(x))))
    compiled(x).sum().backward()
    found = layer.values.grad.clone()
    layer.values.grad = None
    model(x).sum().backward()
    torch.testing.assert_close(found, layer.values.grad)
    torch._dynamo.reset()


@pytest.mark.parametrize("format", FORMATS)
def test_operators_keep_torchs_rules(format: str) -> None:
    weight = SparseMatrix.from_torch(dense_weight(format), format)
    x, g = tokens(3, 12).requires_grad_(), tokens(3, 8).requires_grad_()
    weight.values.requires_grad_()
    torch.library.opcheck(ops.spmm, (x, None, *weight.arguments("linear")))
    torch.library.opcheck(ops.spmm_transposed, (g, *weight.arguments("linear")))
    torch.library.opcheck(ops.sampled, (g, x, *weight.arguments("linear")))


# -- matrices ------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_spmm_and_sddmm(format: str) -> None:
    weight = dense_weight(format)
    A = SparseMatrix.from_torch(weight, format)
    X, U, V = tokens(12, 5), tokens(8, 3), tokens(12, 3)
    torch.testing.assert_close(spmm(A, X), weight @ X)
    torch.testing.assert_close(spmm(A, X[:, 0]), weight @ X[:, 0])
    torch.testing.assert_close(spmm(A, X.t().contiguous().t()), weight @ X)
    found = sddmm(A, U, V)
    assert (found.format, found.shape) == (format, (8, 12))
    torch.testing.assert_close(found.to_dense(), weight * (U @ V.t()))

    def both(values: Any, U: Any, V: Any, X: Any) -> Any:
        return spmm(sddmm(A.with_values(values), U, V), X)

    inputs = [t.clone().requires_grad_() for t in (A.values, U, V, X)]
    assert torch.autograd.gradcheck(both, inputs)


def test_matrices_of_any_torch_layout() -> None:
    weight = dense_weight("CSR")
    for given in (weight, weight.to_sparse_csr(), weight.to_sparse_coo(), weight.to_sparse_csc()):
        for format in ("CSR", "2:4+CSR", "BSR(2,2)"):
            assert torch.equal(SparseMatrix.from_torch(given, format).to_dense(), weight)
    assert torch.equal(SparseMatrix.from_torch(weight.to_sparse_bsr((4, 4))).to_dense(), weight)


def test_empty_matrix() -> None:
    A = SparseMatrix.from_torch(torch.zeros(4, 6))
    assert torch.equal(spmm(A, tokens(6, 2, dtype=torch.float32)), torch.zeros(4, 2))


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
        torch.testing.assert_close(layer(x), linear(x))
        assert kernel.packs == times * packed
    text, layout, *rest = asked[0]
    assert (text, layout.format) == ("Y[m,n] = X[m,k] * W[n,k]", stored)
    assert rest == [products.DTYPES[dtype], "sm_90", None, True]
    # A write that torch's versions do not show.
    layer.values.data.mul_(2)
    linear.weight.data.mul_(2)
    if packed:
        layer.forget()
    torch.testing.assert_close(layer(x), linear(x))
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
        spmm(layer.weight.with_values(layer.values[1:]), tokens(12, 2))


def test_the_example_of_the_documents() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "gpu.md"
    text = page.read_text(encoding="utf-8").split("## In PyTorch")[1]
    code = text.split("```python\n")[1].split("```")[0]
    linear, x = torch.nn.Linear(6, 6), torch.randn(6, 6)
    adjacency = (torch.rand(6, 6) < 0.5).float()
    names: dict[str, Any] = {
        "linear": linear, "x": x, "adjacency": adjacency, "q": torch.randn(6, 3), "k": torch.randn(6, 3),
    }  # fmt: skip
    exec(compile(code, str(page), "exec"), names)
    torch.testing.assert_close(names["y"], linear(x))
    weights = torch.sigmoid(names["q"] @ names["k"].t()) * adjacency
    torch.testing.assert_close(names["h"], weights @ x)
