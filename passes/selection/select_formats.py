"""select-formats: give every tensor type a format, every format its widths, and every expression who computes it.

Before (``#ANY`` is ``#sparse_tensor.encoding<*>``; of the operand that it leaves open something is known)::

    func.func @main(%A: tensor<4x4xf64, #ANY> {sparsecc.stored = "COO", sparsecc.statistics = {nnz = 3 : i64, …}},
                    %x: tensor<4xf64>) -> tensor<4xf64, #ANY>
      %y = linalg.generic … ins(%A, %x : …) outs(%z : …) -> tensor<4xf64, #ANY>

After ``select-formats{strategy=always-dense}``::

    func.func @main(%A: tensor<4x4xf64> {…}, %x: tensor<4xf64>) -> tensor<4xf64>
      %y = linalg.generic … ins(%A, %x : …) outs(%z : …) attrs = {sparsecc.engine = "blas"} -> tensor<4xf64>

A strategy sees all expressions of a function at once, so that those that share a tensor choose together. Where its
plan names a tensor whose format is fixed, the expressions read a converted copy (``sparse_tensor.convert``). What
it leaves open, and everything with the strategy ``inferred``, follows the rules of ``passes.selection.inferred``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sparsecc.diagnostics import PassError, did_you_mean
from sparsecc.dialects.sparse_tensor.types import one_block
from sparsecc.passes.selection.apply_plan import THE_PLAN, apply_plan
from sparsecc.passes.selection.choose_plan import Circumstances, choose_plan
from sparsecc.passes.selection.inferred import infer_formats
from sparsecc.passes.selection.read_problem import read_function
from sparsecc.selection.registry import INFERRED, strategy
from sparsecc.selection.saved_plans import plan_of
from sparsecc.targets import known_target


class BadCalls(PassError):
    text = "calls is {found!r}, but it is a number of calls, above 0"


class NoEntry(PassError):
    text = "entry names @{entry}, which the program does not have"


class BadSizes(PassError):
    text = "sizes is {found!r}, but it names extents, as in m:16;n:32"


MAIN = "main"


@dataclass(frozen=True)
class SelectFormats(ModulePass):
    """Fill in open formats, engines and widths. ``strategy``: a name, or ``package.module:Class``; ``calls``: over how
    many conversions of operands are spread (empty: they are not counted); ``sizes``: extents of indices that no type
    says, ``m:16;n:32``. ``plan``: a plan in place of a strategy, JSON text or a file of it, for function ``entry``."""

    name = "select-formats"

    strategy: str = INFERRED
    target: str = "cpu"
    calls: str = ""
    sizes: str = ""
    plan: str = ""
    entry: str = MAIN

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.walk() if isinstance(f, func.FuncOp)]
        target, calls, sizes = (
            known_target(self.target), read_calls(self.calls), read_sizes(self.sizes)
        )  # fmt: skip
        for fn in functions:
            one_block(fn)
        if self.entry != MAIN:
            self.entry_of(functions)
        if self.plan:
            plan = plan_of(self.plan).for_target(self.target).candidate
            apply_plan(read_function(self.entry_of(functions)), plan, THE_PLAN)
        elif self.strategy != INFERRED:
            ranker = strategy(self.strategy)
            views = [view for view in map(read_function, functions) if view.expressions]
            known = {index for view in views for e in view.expressions for index in e.indices}
            for view in views:
                # A size is of the functions that have its index; one that no function has is refused.
                own = {i for e in view.expressions for i in e.indices}
                said = {i: n for i, n in sizes.items() if i in own or i not in known}
                plan = choose_plan(view, ranker, Circumstances(target, calls, said)).candidate
                apply_plan(view, plan, f"strategy {ranker.name!r}")
        for fn in functions:
            infer_formats(fn)

    def entry_of(self, functions: Sequence[func.FuncOp]) -> func.FuncOp:
        """The function of the plan. Raises NoEntry."""
        for fn in functions:
            if fn.sym_name.data == self.entry:
                return fn
        known = [f.sym_name.data for f in functions]
        raise NoEntry(entry=self.entry, help=did_you_mean(self.entry, known))


def read_calls(text: str) -> float | None:
    """The option ``calls``. Raises BadCalls."""
    try:
        calls = float(text) if text else None
    except ValueError:
        raise BadCalls(found=text) from None
    if calls is not None and not (isfinite(calls) and calls > 0):
        raise BadCalls(found=text)
    return calls


def read_sizes(text: str) -> Mapping[str, int]:
    """The option ``sizes``. Raises BadSizes."""
    found: dict[str, int] = {}
    for item in filter(None, text.split(";")):
        match = re.fullmatch(r"(\w+):(\d+)", item)
        if match is None or match[1] in found:
            raise BadSizes(found=text)
        found[match[1]] = int(match[2])
    return found
