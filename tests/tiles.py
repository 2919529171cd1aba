"""Programs on the GPU path without a GPU: the host's plan, with kernels that run in Triton's interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from sparsecc import api, driver
from sparsecc.backends.host import host_plan
from sparsecc.backends.triton.emit import emit_kernel
from sparsecc.backends.triton.interpret import interpret
from sparsecc.kernel import TileSource
from sparsecc.pipeline import run_passes
from sparsecc.runtime.compiled_kernel import Kernel, actual_format
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


@dataclass(frozen=True)
class Memory:
    """Memory by its address, as the interpreter takes it."""

    address: int

    @property
    def device(self) -> Memory:
        return self

    type = "cpu"

    def data_ptr(self) -> int:
        return self.address


def interpreted(source: TileSource) -> Any:
    """A function of argument words that runs a kernel in the interpreter."""

    def run(words: int) -> None:
        values = (ctypes.c_int64 * len(source.arguments)).from_address(words)
        given = {
            name: Memory(value) if kind.startswith("*") else value
            for (name, kind), value in zip(source.arguments, values, strict=True)
        }
        with np.errstate(all="ignore"):  # the interpreter computes with NumPy, a GPU does not warn
            interpret(source, given)

    return run


def request(text: str, operands: Mapping[str, Any], out: str | None) -> driver.Request:
    """What ``api.compile`` asks for."""
    specs: list[tuple[str, driver.OperandSpec]] = []
    for name, given in operands.items():
        tensor = asarray(given)
        dtype = api._known_name(tensor)  # pyright: ignore[reportPrivateUsage] # the api's own name of a type
        specs.append(
            (name, driver.OperandSpec((None,) * tensor.rank, dtype, str(actual_format(tensor))))
        )
    return driver.Request("expression", text, tuple(specs), out)


def compiled(
    text: str, operands: Mapping[str, Any], out: str | None, schedule: Options | None = None
) -> Kernel:
    """A kernel whose launches run in the interpreter."""
    module = tile_module(request(text, operands, out), schedule=schedule)
    sources = tile_sources(module)
    for fn in module.body.block.ops:
        if isinstance(fn, func.FuncOp) and "tile.args" in fn.attributes:
            fn.attributes["loops.args"] = fn.attributes["tile.args"]
    plan = host_plan(module, "main")
    return Kernel(plan, {name: interpreted(s) for name, s in sources.items()}, lambda stage: "")


def evaluate(
    text: str, *, out: str | None, operands: Mapping[str, Any], schedule: Options | None = None
) -> Any:
    """``api.evaluate`` on the GPU path."""
    return compiled(text, operands, out, schedule).call(operands)
