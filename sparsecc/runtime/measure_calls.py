"""How long a call of a kernel takes with operands that are there, for strategies that measure."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from statistics import median
from time import perf_counter
from typing import Any

from sparsecc.runtime.compiled_kernel import Kernel, OperandConverted

RUNS = 15
LIMIT = 0.5
"""Seconds after which no further call is made."""


def seconds_of_call(kernel: Kernel, operands: Mapping[str, Any]) -> float:
    """Seconds of one call; operands are brought into the kernel's formats before.

    The median of calls on this processor; on a GPU the time of its kernels, with inputs that its cache does not
    hold. Raises SparseccError where the kernel can't run."""
    from sparsecc.runtime.machines import GpuMachine
    from sparsecc.runtime.tile_kernel import TileKernel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OperandConverted)
        if not isinstance(kernel, TileKernel):
            return median_of_calls(kernel, kernel.prepare(operands))
        machine = kernel.machine()
        operands = kernel.prepare(operands)
        if not isinstance(machine, GpuMachine):
            return median_of_calls(kernel, operands)
        from sparsecc.runtime.autotune import ColdTimer

        tensors, variant = kernel.prepared(operands)
        return ColdTimer(machine)(kernel.program(variant), tensors) * 1e-6


def median_of_calls(kernel: Kernel, operands: Mapping[str, Any]) -> float:
    """Seconds: the median of several calls after a first one, of as many as fit in the time."""
    start = perf_counter()
    kernel.call(operands)
    times: list[float] = []
    while not times or (len(times) < RUNS and perf_counter() - start < LIMIT):
        before = perf_counter()
        kernel.call(operands)
        times.append(perf_counter() - before)
    return median(times)
