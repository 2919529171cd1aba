"""All tables of the benchmarks, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import conversions_table
import kernels
import latency
import matrices
import memory
from timing import Row, Table


def tables(quick: bool, folder: Path | None) -> dict[str, Callable[[], Table]]:
    """What can be measured, by name, in order."""
    standard, products = matrices.standard(quick), matrices.products(quick)
    if folder is not None:
        standard |= dict(matrices.from_folder(folder))
    found: dict[str, Callable[[], Table]] = {
        "processes": lambda: latency.processes(quick),
        "compile": lambda: latency.compilation(quick),
        "disk-cache": lambda: latency.from_disk(quick),
        "call": lambda: latency.call_overhead(quick),
        "spmv": lambda: kernels.spmv(standard, quick),
    }
    for columns in (32, 1, 8, 128):
        found[f"spmm-{columns}"] = lambda n=columns: kernels.spmm(standard, n, quick)
    return found | {
        "add": lambda: kernels.add(products, quick),
        "spgemm": lambda: kernels.spgemm(products, quick),
        "sddmm": lambda: kernels.sddmm(products, quick),
        "mttkrp": lambda: kernels.mttkrp(quick),
        "memory": lambda: memory.memory(quick),
        "conversions": lambda: conversions_table.conversions(quick),
    }


def attempt(name: str, measure: Callable[[], Table]) -> Table:
    """A table, or the reason why there is none: one failure must not cost all the rest."""
    try:
        return measure()
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        return Table(name, f"{name} (failed)", rows=[Row(name, {}, note=f"failed: {reason}")])
