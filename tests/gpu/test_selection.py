"""Formats that are chosen for a real GPU: by the model, and by measuring."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc import driver
from sparsecc.diagnostics import SparseccError
from sparsecc.runtime.compiled_kernel import OperandConverted

torch: Any = pytest.importorskip("torch")
CONVERTED = f"{OperandConverted.__module__}.OperandConverted"
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings(f"ignore::{CONVERTED}")]
LAYER = "Y[m,n] = X[m,k] * W[n,k]"


def weight(pattern: str) -> Any:
    """A layer's weight on the GPU: of any density, or 2:4."""
    torch.manual_seed(5)
    dense = torch.randn(512, 1024, device="cuda", dtype=torch.float16)
    if pattern == "2:4":
        groups = dense.abs().view(512, -1, 4)
        kept = torch.zeros_like(groups).scatter_(-1, groups.topk(2, -1).indices, 1)
        return dense * kept.view(512, 1024)
    return torch.where(torch.rand_like(dense) < float(pattern), dense, 0)


@pytest.fixture(autouse=True)
def no_kernels() -> None:
    driver.forget()


@pytest.mark.parametrize("strategy", ["always-dense", "bytes", "roofline", "autotune", "oracle"])
@pytest.mark.parametrize("pattern", ["1.0", "0.5", "0.05", "2:4"])
def test_a_layer(pattern: str, strategy: str) -> None:
    w = weight(pattern)
    x = torch.randn(16, 1024, device="cuda", dtype=torch.float16)
    options: dict[str, Any] = {"formats": {"W": "*"}, "strategy": strategy, "target": "gpu"}
    kernel = sc.compile(LAYER, W=w, X=x, **options)
    decision = kernel.decision
    assert decision is not None
    wanted = x.float() @ w.float().T
    for found in (kernel(**kernel.prepare(W=w, X=x)), sc.evaluate(LAYER, W=w, X=x, **options)):
        error = (found.float() - wanted).norm() / wanted.norm()
        assert error < 2e-3, f"{decision.candidate}: {error}"
    if strategy in ("autotune", "oracle"):
        assert "measured" in decision.ranked[0].terms
        times = [r.seconds for r in decision.ranked if "measured" in r.terms]
        assert all(t is not None and 0 < t < 1 for t in times)
    again = sc.compile(LAYER, W=w, X=x, target="gpu", plan=kernel.plan_json())
    assert again.saved_plan == kernel.saved_plan


def test_every_plan_of_a_layer_is_right() -> None:
    """A legal plan that does not run is refused with a reason; one that runs gives the product."""
    w = weight("2:4")
    x = torch.randn(16, 1024, device="cuda", dtype=torch.float16)
    first = sc.compile(LAYER, W=w, X=x, formats={"W": "*"}, strategy="roofline", target="gpu")
    assert first.decision is not None
    wanted = (x.float() @ w.float().T).cpu().numpy()
    ran: list[str] = []
    for plan in first.decision.problem.candidates:
        try:
            found = sc.evaluate(LAYER, W=w, X=x, plan=plan, target="gpu")
        except SparseccError as refused:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn(f"{plan}: {refused}", stacklevel=1)
            continue
        error = np.linalg.norm(found.float().cpu().numpy() - wanted) / np.linalg.norm(wanted)
        assert error < 2e-3, f"{plan}: {error}"
        ran.append(str(plan))
    assert len(ran) >= len(first.decision.problem.candidates) - 1, ran
