"""Programs whose products are computed by libraries, and what NumPy makes of the same."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import numpy as np

from sparsecc import driver
from sparsecc.runtime.compiled_kernel import Kernel
from sparsecc.specs import given_operand

Operands = Mapping[str, Any]


def compiled(
    text: str, operands: Operands, *engines: str, out: str | None = None, **options: Any
) -> Kernel:
    """An expression for operands (Specs too), by engines."""
    gpu = options.get("target", "cpu") != "cpu"
    specs = tuple((n, given_operand(n, v, gpu).spec) for n, v in operands.items())
    return driver.compile_request(
        driver.Request("expression", text, specs, out, engines=engines, **options)
    )


def einsum(text: str, operands: Operands) -> Any:
    """The product of dense arrays, by NumPy."""
    result, _, product = text.replace(" ", "").partition("=")
    terms = [factor.rstrip("]").split("[") for factor in product.split("*")]
    subscripts = ",".join(indices.replace(",", "") for _, indices in terms)
    arrays = [operands[name] for name, _ in terms]
    out = result.partition("[")[2].rstrip("]").replace(",", "")
    return np.einsum(f"{subscripts}->{out}", *arrays)


def spelled(first: str, second: str, result: str, turned: bool = False) -> str:
    """``C[i,k] = A[i,j] * B[j,k]`` from ``ij jk ik``; the operands the other way round if ``turned``."""
    factors = [f"A[{','.join(first)}]", f"B[{','.join(second)}]"]
    target = f"C[{','.join(result)}]" if result else "C"
    return f"{target} = {' * '.join(reversed(factors) if turned else factors)}"


def every_order(first: str, second: str, result: str) -> list[str]:
    """A product with its operands and their dimensions in all orders."""
    return [
        spelled("".join(a), "".join(b), "".join(c), turned)
        for a in permutations(first)
        for b in permutations(second)
        for c in permutations(result)
        for turned in (False, True)
    ]


def arrays(text: str, extents: Mapping[str, int], dtype: Any, seed: int = 0) -> dict[str, Any]:
    """Random dense operands of an expression."""
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for factor in text.partition("=")[2].split("*"):
        name, _, indices = factor.strip().rstrip("]").partition("[")
        shape = [extents[i] for i in indices.split(",")]
        kind = np.dtype(dtype).kind
        values: Any = rng.integers(-9, 9, shape) if kind == "i" else rng.random(shape) - 0.5
        if kind == "u":
            values = rng.integers(0, 200, shape)
        if kind == "c":
            values = values + 1j * rng.random(shape)
        found[name] = np.asarray(values).astype(dtype)
    return found
