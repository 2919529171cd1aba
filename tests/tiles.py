"""Programs on the GPU path without a GPU: the host's plan, with kernels in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from sparsecc import driver
from sparsecc.backends.host import host_plan
from sparsecc.backends.triton.emit import emit_kernel
from sparsecc.kernel import TileSource
from sparsecc.pipeline import run_passes
from sparsecc.runtime.compiled_kernel import actual_format
from sparsecc.runtime.tile_kernel import TileKernel
from sparsecc.specs import known_dtype
from sparsecc.storage.ingest import asarray
from sparsecc.targets import known_target

Options = Mapping[str, str]


def passes(target: str, schedule: Options) -> list[tuple[str, Options]]:
    """From the tensor level to tile kernels."""
    return [
        ("generalize-named-ops", {}),
        ("select-formats", {}),
        ("widen-sums", {"split": "false"}),
        ("split-blocks", {}),
        ("schedule-loops", {"target": target}),
        ("sparsify", {}),
        ("tile-iteration", schedule),
    ]


def tile_module(
    request: driver.Request, target: str = "sm_90", schedule: Options | None = None
) -> ModuleOp:
    """A request's program with its kernels tiled."""
    return run_passes(driver.front(request), passes(target, schedule or {}), verify=True)


def tile_sources(module: ModuleOp, target: str = "sm_90") -> dict[str, TileSource]:
    """The text of each tile kernel of a module."""
    return {
        fn.sym_name.data: emit_kernel(fn, known_target(target))
        for fn in module.body.block.ops
        if isinstance(fn, func.FuncOp) and "tile.kernel" in fn.attributes
    }


def request(text: str, operands: Mapping[str, Any], out: str | None) -> driver.Request:
    """What ``api.compile`` asks for."""
    specs: list[tuple[str, driver.OperandSpec]] = []
    for name, given in operands.items():
        tensor = asarray(given)
        dtype = known_dtype(tensor)
        specs.append(
            (name, driver.OperandSpec((None,) * tensor.rank, dtype, str(actual_format(tensor))))
        )
    return driver.Request("expression", text, tuple(specs), out)


def compiled(
    text: str, operands: Mapping[str, Any], out: str | None, schedule: Options | None = None
) -> TileKernel:
    """A kernel whose launches run in the interpreter."""
    wanted = request(text, operands, out)
    module = tile_module(wanted, schedule=schedule)
    plan = host_plan(module, "main", lambda fn: emit_kernel(fn, known_target("sm_90")))
    return TileKernel(plan, {}, lambda stage: "", request=wanted, interpret=True)


def evaluate(
    text: str, *, out: str | None, operands: Mapping[str, Any], schedule: Options | None = None
) -> Any:
    """``api.evaluate`` on the GPU path."""
    kernel = compiled(text, operands, out, schedule)
    with np.errstate(all="ignore"):  # the interpreter computes with NumPy, a GPU does not warn
        return kernel.call(operands)
