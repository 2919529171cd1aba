"""Options, names and weights that are used wrongly: errors of ours, whatever is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.api import NotForCpu
from sparsecc.cli import main
from sparsecc.diagnostics import SparseccError
from sparsecc.runtime.call_checks import BadOption
from sparsecc.runtime.compiled_kernel import (
    MissingOperand,
    UnknownOperandName,
    WrongDtype,
    WrongExtent,
    WrongRank,
)
from sparsecc.runtime.packs import NotPacked
from sparsecc.runtime.torch_formats import WrongTorchLayout
from sparsecc.runtime.torch_indices import BadIndices
from sparsecc.runtime.weights import NoWeight, NoWeights
from sparsecc.storage.torch_plain import NotPlain
from sparsecc.targets import UnknownTarget
from tests.unit.runtime.gpu_doubles import torch

X = np.arange(3, dtype="f4")
COPY = "y[i] = x[i]"


@pytest.mark.parametrize("target", [None, 90, 9.0, ["sm_90"], b"cpu", ("cpu",)])
def test_a_target_is_a_name(target: Any) -> None:
    for call in (
        lambda: sc.compile(COPY, x=X, target=target),
        lambda: sc.evaluate(COPY, x=X, target=target),
        lambda: sc.einsum("i->i", X, target=target),
        lambda: sc.compile_mlir("func.func @main() { return }", target=target),
    ):
        with pytest.raises(UnknownTarget, match="a target is a name"):
            call()


@pytest.mark.parametrize("target", ["cuda", "CUDA:1", "nvidia"])
def test_names_for_any_gpu(target: str) -> None:
    with pytest.raises(UnknownTarget, match="is called 'gpu'"):
        sc.compile(COPY, x=X, target=target)


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("schedule", [3, 0, ["a"], [], b"x", {1: "a"}, {"k0": 2}])
def test_a_schedule_is_a_text(schedule: Any, target: str) -> None:
    with pytest.raises(BadOption, match="as explain"):
        sc.compile(COPY, x=X, target=target, schedule=schedule)


@pytest.mark.parametrize("tokens", [0, -1, "3", 2.5, True, [1]])
def test_tokens_are_a_number(tokens: Any) -> None:
    with pytest.raises(BadOption, match="at least 1"):
        sc.compile(COPY, x=X, target="sm_90", tokens=tokens)
    with pytest.raises(BadOption, match="at least 1"):
        sc.compile_mlir("func.func @main() { return }", target="sm_90", tokens=tokens)


def test_numbers_of_numpy_are_numbers() -> None:
    four: Any = np.int64(4)
    assert sc.compile(COPY, x=X, target="sm_90", tokens=four).formats["y"] == "dense"


def test_options_of_gpus_are_not_for_the_cpu() -> None:
    given: dict[str, Any] = {"tokens": 4, "schedule": "", "interpret": True, "autotune": True}
    for name, value in given.items():
        options = {name: value}
        with pytest.raises(NotForCpu):
            sc.compile(COPY, x=X, **options)


@pytest.mark.parametrize("tokens", ["0", "-1", "x", "1.5"])
def test_tokens_of_the_command_line(tokens: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", COPY, "--target", "sm_90", "--tokens", tokens]) == 2
    assert "invalid positive count value" in capsys.readouterr().err


def test_interpret_of_the_command_line_is_no_keyword(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", X)
    assert main(["run", COPY, f"x={tmp_path}/x.npy", "--interpret"]) != 0
    said = capsys.readouterr().err
    assert "GPU targets" in said
    assert "=" not in said


@pytest.mark.parametrize("text", [3, None, ["y[i] = x[i]"]])
def test_a_program_is_a_text(text: Any) -> None:
    with pytest.raises(BadOption, match="it is a text"):
        sc.compile(text, x=X)
    with pytest.raises(BadOption, match="it is a text"):
        sc.compile_mlir(text)


@pytest.mark.parametrize("shape", [5, ("a",), (1.5, 4), (True,), None, "ab"])
def test_extents_of_a_spec(shape: Any) -> None:
    with pytest.raises(BadOption, match="whole numbers"):
        sc.compile(COPY, x=sc.Spec(shape, "f4"), target="sm_90")


def test_formats_and_types_of_a_spec() -> None:
    wrong: Any = 3
    with pytest.raises(BadOption, match="a Format"):
        sc.compile(COPY, x=sc.Spec((None,), "f32", wrong))
    made = sc.compile("y[i] = x[i]", x=sc.Spec((None,), torch.bfloat16), target="sm_90")
    assert made.plan.operands[0].dtype == "bf16"


def test_the_environment_interprets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSECC_INTERPRET", "1")
    assert np.array_equal(sc.compile(COPY, x=X, target="gpu")(x=X), X)
    assert np.array_equal(sc.evaluate(COPY, x=X, target="gpu"), X)


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"target": "sm_90", "interpret": True}])
def test_operands_with_names_of_keywords(options: dict[str, Any]) -> None:
    given = {"out": X, "self": X, "expr": X}
    made = sc.compile("y[i] = out[i] + self[i] * expr[i]", operands=given, **options)
    assert np.array_equal(made.call(given), X + X * X)
    with pytest.raises(MissingOperand, match=r"kernel.call\(\{'out'"):
        made(**given)
    with pytest.raises(BadOption, match="a mapping"):
        wrong: Any = [X]
        made.call(wrong)
    other = sc.compile("y[i] = 2 * self[i]", self=X, **options)
    assert np.array_equal(other(self=X), 2 * X)
    assert np.array_equal(sc.evaluate("y[i] = 2 * expr[i]", expr=X), 2 * X)


@pytest.mark.parametrize("operands", [[X], {3: X}, 5])
def test_operands_are_a_mapping(operands: Any) -> None:
    with pytest.raises(BadOption, match="a mapping"):
        sc.compile(COPY, operands=operands)
    with pytest.raises(BadOption, match="a mapping"):
        sc.evaluate(COPY, operands=operands)


def test_what_a_kernel_is_asked_for() -> None:
    made: Any = sc.compile(COPY, x=X, target="sm_90", interpret=True)
    for ask in (lambda: made.ir(3), lambda: made.asm(3), lambda: made.call({3: X, "x": X})):
        with pytest.raises(SparseccError, match="no .*3"):
            ask()
    for ask in (made.pack, made.autotune):
        with pytest.raises(BadOption, match="a mapping"):
            ask([X])


@pytest.mark.parametrize(
    "options", [{"seconds": -1}, {"seconds": "a"}, {"seconds": float("nan")}, {"workers": 0}, {"workers": 1.5}]
)  # fmt: skip
def test_options_of_tuning(options: Any) -> None:
    made: Any = sc.compile(COPY, x=X, target="sm_90", interpret=True)
    with pytest.raises(BadOption):
        made.autotune(x=X, timer=min, **options)


# -- weights -----------------------------------------------------------------------------------------


def linear(weight: str = "2:4", **shape: Any) -> Any:
    known = {"X": sc.Spec((None, None), "f16"), "W": sc.Spec((None, None), "f16", weight)}
    given = known | {name: sc.Spec(s, "f16", weight) for name, s in shape.items()}
    return sc.compile("Y[m,n] = X[m,k] * W[n,k]", operands=given, target="sm_90")


def weight(dtype: Any = "f2", rows: int = 16, columns: int = 64) -> Any:
    made = np.zeros((rows, columns), dtype)
    made[:, ::4] = 1
    return made


@pytest.mark.parametrize("layout", ["2:4", "2:4+CSR"])
def test_weights_are_checked(layout: str) -> None:
    kernel = linear(layout)
    assert kernel.pack(W=weight()).layout == kernel.pack({"W": weight()}).layout == layout
    wrong: list[tuple[Any, type[SparseccError]]] = [
        (weight("i1"), WrongDtype),
        (torch.zeros(16, 64, dtype=torch.bfloat16), WrongDtype),
        (sc.asarray(weight("f4")), WrongDtype),
        (weight(">f2"), WrongDtype),
        (weight()[None], WrongRank),
        (torch.zeros(2, 16, 64, dtype=torch.float16), WrongRank),
        (torch.zeros(16, 64, dtype=torch.float16)._neg_view(), NotPlain),
        (torch.sparse_csr_tensor([0, 9], [0], torch.ones(1).half(), (1, 4)), BadIndices),
        (torch.eye(4).half().to_sparse_bsc((2, 2)), WrongTorchLayout),
        ([[1.0]], NoWeight),
        (None, NoWeight),
        (kernel.pack(W=weight()), NoWeight),
    ]
    for given, error in wrong:
        with pytest.raises(error):
            kernel.pack(W=given)
    for six in (np.zeros((16, 6), "f2"), torch.zeros(16, 6, dtype=torch.float16)):
        with pytest.raises(SparseccError, match="multiple of 4"):
            kernel.pack(W=six)


def test_known_extents_of_weights() -> None:
    kernel = linear(W=(16, 64))
    kernel.pack(W=weight())
    with pytest.raises(WrongExtent):
        kernel.pack(W=weight(rows=32))
    with pytest.raises(WrongExtent):
        kernel.pack(W=weight(columns=32))


def test_names_of_weights() -> None:
    kernel = linear()
    with pytest.raises(NoWeights, match=r"kernel.pack\(W=\.\.\.\)"):
        kernel.pack()
    with pytest.raises(NotPacked):
        kernel.pack(X=weight())
    with pytest.raises(UnknownOperandName):
        kernel.pack(V=weight())


@pytest.mark.parametrize("tokens", [0, -3, "a", 1.5])
def test_weights_for_a_number_of_tokens(tokens: Any) -> None:
    with pytest.raises(BadOption, match="at least 1"):
        linear("2:4+CSR").pack(W=weight(), tokens=tokens)
