"""Peak memory of a call: its result and the workspaces that ``explain`` names, and nothing else."""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any

import matrices
import numpy as np
from timing import Row, Table

import sparsecc as sc
from sparsecc.kernel import Launch


def result_bytes(result: Any) -> int:
    """What a result keeps in memory, a buffer that is larger than its view included."""
    if isinstance(result, np.ndarray):
        return result.nbytes
    return sum(a.nbytes for level in result.levels for _, a in level) + result.values.nbytes


def workspace_bytes(kernel: sc.Kernel, last_extent: int) -> int:
    """The dense row that collects the entries of a result's row: values, markers, coordinates."""
    steps = [s for s in kernel.plan.steps if isinstance(s, Launch) and s.assembly == "workspace"]
    return sum(last_extent * (8 + 8 + 8) for _ in steps)


def peak_bytes(run: Any) -> tuple[int, Any]:
    """What is allocated at most while ``run`` runs (NumPy's arrays are counted), and its result."""
    run()
    tracemalloc.start()
    try:
        result = run()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def memory(quick: bool) -> Table:
    """Peaks of calls beside what they have to allocate."""
    table = Table("memory", "Memory that a call takes beside its operands, at its peak (MB)",
                  "peak / (result + workspaces)")  # fmt: skip
    first = matrices.power_law(12 if quick else 15, 30_000 if quick else 250_000)
    n = first.shape[0]
    a, b = sc.asarray(first), sc.asarray(first.T.tocsr())
    x, d = np.ones(n), np.ones((n, 32))
    coordinates, values = matrices.tensor3(200, 50_000 if quick else 500_000)
    t = sc.from_coords(coordinates, values, (200,) * 3, format="CSF")
    c = np.ones((200, 32))
    cases: dict[str, tuple[str, dict[str, Any], str | None]] = {
        "SpMV": ("y[i] = A[i,j] * x[j]", {"A": a, "x": x}, None),
        "SpMM, 32 columns": ("C[i,j] = A[i,k] * B[k,j]", {"A": a, "B": d}, None),
        "CSR + CSR": ("C[i,j] = A[i,j] + B[i,j]", {"A": a, "B": b}, "CSR"),
        "CSR * CSR, by element": ("C[i,j] = A[i,j] * B[i,j]", {"A": a, "B": b}, "CSR"),
        "SpGEMM": ("C[i,j] = A[i,k] * B[k,j]", {"A": a, "B": b}, "CSR"),
        "SpGEMM into CSC": ("C[i,j] = A[i,k] * B[k,j]", {"A": a, "B": b}, "CSC"),
        "SDDMM": ("C[i,j] = A[i,j] * B[i,k] * D[j,k]", {"A": a, "B": d, "D": d}, "CSR"),
        "MTTKRP": ("M[i,r] = T[i,j,k] * B[j,r] * C[k,r]", {"T": t, "B": c, "C": c}, None),
    }
    for name, (expr, operands, out) in cases.items():
        kernel = sc.compile(expr, out=out, operands=operands)
        peak, result = peak_bytes(partial(kernel.call, operands))
        work = workspace_bytes(kernel, result.shape[-1])
        # Python's own objects count where the result is small: no bar there.
        # A pattern that is shared with an operand takes nothing.
        kept = result.values.nbytes if name == "SDDMM" else result_bytes(result)
        table.add(
            Row(name, {"result": kept / 1e6, "workspaces": work / 1e6, "peak": peak / 1e6},
                peak / (kept + work), 1.05 if kept > 500_000 else None, "MB")
        )  # fmt: skip
    return table
