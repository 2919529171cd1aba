"""Tile kernels to Triton source: the form of a kernel, and the family of its schedule, say who writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from xdsl.dialects import func
from xdsl.dialects.builtin import StringAttr

from sparsecc.diagnostics import InternalError
from sparsecc.dialects.tile import ScheduleAttr
from sparsecc.kernel import TileSource
from sparsecc.targets import Target

FORMS: dict[str, str] = {
    "blocks": "sparsecc.backends.triton.emit_blocks:emit",
    "fragments": "sparsecc.backends.triton.fragments:emit_fragments",
}
"""form, or form.family -> ``module:function`` from a kernel and the target's name to its source."""
TOLD = ("fragments",)
"""Forms whose writers are told the facts of packed operands."""


def emit_kernel(
    fn: func.FuncOp, target: Target, facts: Mapping[str, int] | None = None
) -> TileSource:
    """The source of a tile kernel for a target. ``facts`` are numbers of the packing of its operands."""
    form, schedule = fn.attributes.get("tile.form"), fn.attributes.get("tile.schedule")
    if not isinstance(form, StringAttr) or not isinstance(schedule, ScheduleAttr):
        raise InternalError(f"@{fn.sym_name.data} is no tile kernel")
    family = f"{form.data}.{schedule.family.data}"
    spec = FORMS.get(family) or FORMS.get(form.data)
    if spec is None:
        raise InternalError(f"nobody writes kernels of the form and family {family}")
    module, _, name = spec.partition(":")
    write: Callable[..., TileSource] = getattr(import_module(module), name)
    return write(fn, target.name, facts or {}) if form.data in TOLD else write(fn, target.name)
