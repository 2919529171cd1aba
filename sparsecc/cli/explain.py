"""``sparsecc explain``: the plans of a program, the winner and why, with nothing compiled unless it is asked for."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecc.cli import programs
from sparsecc.cli.operands import (
    OPEN,
    FileOperand,
    check_dtype,
    load,
    parse_shapes,
)
from sparsecc.cli.output import note, show_json, write_text
from sparsecc.cli.plans import opened, plan_options
from sparsecc.diagnostics import TargetError, UnsupportedError, UsageError

if TYPE_CHECKING:
    from sparsecc.api import Kernel
    from sparsecc.explanation.gains import Gains
    from sparsecc.explanation.report import Report
    from sparsecc.selection.decision import Decision
    from sparsecc.selection.problem import Problem
    from sparsecc.statistics import Statistics
    from sparsecc.storage.tensor import SparseTensor


class TypeWithoutKernels(UnsupportedError):
    text = "operand {name!r} is {dtype}, for which target {target} has no kernels"
    help_text = (
        "--dtype f16 (or f32, f64) asks for another type; complex numbers are for the target cpu"
    )


FULL = 0.9
"""A dense file that is fuller than this stays dense where another operand is open."""


def explain(options: Namespace) -> None:
    """``sparsecc explain``: what was chosen, and why."""
    asked = _Asked(options)
    decision = None if options.plan is not None else asked.decision()
    steps = None
    if decision is None or asked.wants_kernel:
        kernel = asked.kernel(decision)
        steps = kernel.steps()
    if decision is None:
        for option, given in (("--json", options.json), ("--html", options.html)):
            if given:
                raise UsageError(
                    f"{option} is for a choice, and nothing is open here",
                    place="sparsecc",
                    help="leave the format of an operand away, or open it: A=FILE:*",
                )
        print(steps)
        return
    from sparsecc.explanation.report import explain as explained

    report = explained(decision, notes=asked.notes, index=asked.index)
    _show(report, options, steps, asked.tensors)


def _show(
    report: Report, options: Namespace, steps: str | None, tensors: dict[str, SparseTensor]
) -> None:
    if options.html is not None:
        from sparsecc.explanation.html import page as html_page

        write_text(Path(options.html), html_page(report, tensors))
        note(f"written to {options.html}")
    from sparsecc.explanation.text import page

    if options.json:
        show_json(report.to_json())
        return
    print(page(report, options.plans))
    if steps is not None:
        print(f"\n{steps}")


class _Asked:
    """What a command line asks for: operands that are opened, and how their plans are ranked."""

    def __init__(self, options: Namespace) -> None:
        self.options = options
        self.notes: list[str] = []
        self.tensors: dict[str, SparseTensor] = {}
        """Of files, by operand."""
        self.index: str | None = None
        self.chosen = plan_options(options)
        self.is_open: dict[str, str] = {}
        self.libraries = counted_on(options.target, self.notes)
        named, formats, dtypes = programs.said(options)
        self.given: dict[str, Any] = {}
        self.operands: dict[str, Any] = {}
        if programs.is_mlir(options.program):
            programs.refuse_open(opened(named, formats))
            self.source = programs.mlir_source(options)
            load(named, formats, dtypes)
            return
        self.source = None
        programs.check_expression(options.program)
        self.operands = load(named, formats, dtypes)
        files = [n for n, operand in named.items() if isinstance(operand, FileOperand)]
        self.tensors = {name: self.operands[name] for name in files}
        said = {n: o.format for n, o in named.items() if isinstance(o, FileOperand) and o.format}
        self.is_open = opened(named, formats)
        if options.plan is None:
            self._open({**formats, **said})
        usual = {str(_type(t)) for t in self.tensors.values() if t.shape}
        specs = programs.specs(
            options.program, formats, dtypes, parse_shapes(options.shape), set(self.operands),
            usual.pop() if len(usual) == 1 else "f64",
        )  # fmt: skip
        self.given = {**self.operands, **specs}
        programs.check_names(self.given)

    def _open(self, said: dict[str, str]) -> None:
        """Open the operands of files whose format nothing says; full ones only where no other is open."""
        free = [n for n, t in self.tensors.items() if n not in said and len(t.shape) > 1]
        full = [n for n in free if _is_full(self.tensors[n])]
        wanted = [n for n in free if n not in full]
        if not wanted and not self.is_open:
            wanted, full = full, []
        for name in full:
            self.notes.append(f"{name} has hardly a zero and stays dense; {name}=FILE:* opens it")
        self.is_open |= dict.fromkeys(wanted, OPEN)

    @property
    def wants_kernel(self) -> bool:
        """Whether anything is asked for that only a kernel can tell."""
        o = self.options
        return o.steps or o.tokens is not None or o.schedule is not None or o.save_plan is not None

    # -- deciding ------------------------------------------------------------------------------

    def decision(self) -> Decision | None:
        """What is chosen; an extent that nothing says is 16 where it is what plans hang on. Raises SparseccError."""
        from sparsecc.explanation.sizes import USUAL, unknown_indices
        from sparsecc.selection.strategies.measured import NothingToMeasure

        decide = self._decider()
        sizes: dict[str, int] = self.chosen.get("sizes", {})
        try:
            found = decide(sizes)
        except NothingToMeasure:
            if self.source is not None or set(self.given) != set(self.operands):
                raise
            return self._kernel({**self.chosen}).decision
        if found is None:
            return None
        unknown = unknown_indices(found.problem)
        self.index = next(iter([*(i for i in unknown if i in sizes), *unknown]), None)
        if self.index is not None and self.index not in sizes:
            found = decide({**sizes, self.index: USUAL})
        if found is not None:
            check_types(found)
            self._note_types(found.problem)
        return found

    def _note_types(self, problem: Problem) -> None:
        """Say which types have which kernels on a GPU."""
        from sparsecc.selection.spaces.gpu import DOTS, HALVES

        if problem.target.backend != "triton":
            return
        grouped = (*HALVES, *(t for t in DOTS if t.startswith("i")))
        for name in self.is_open:
            tensor = problem.tensors.get(name)
            if tensor is not None and tensor.dtype not in grouped:
                self.notes.append(
                    f"{name} is {tensor.dtype}: 2:4 has kernels of {', '.join(grouped)}, blocks and bitmaps of "
                    f"{', '.join(DOTS)}; --dtype f16 asks for f16"
                )

    def _decider(self) -> Callable[[dict[str, int]], Decision | None]:
        from sparsecc import api

        options = self.options
        chosen: dict[str, Any] = {**self.chosen, "libraries": self.libraries}
        chosen.pop("sizes", None)
        if self.source is not None:
            source = self.source
            return lambda sizes: api.decide_mlir(
                source, entry=options.entry, target=options.target, sizes=sizes, **chosen
            )
        facts = {name: self._facts(name) for name in self.is_open if name in self.tensors}
        given = {**self.given, **facts}
        others = {name: OPEN for name in self.is_open if name not in facts}
        out_dtype = None if options.out_dtype is None else check_dtype(options.out_dtype)
        return lambda sizes: api.decide(
            options.program, out=options.out_format, out_dtype=out_dtype, target=options.target,
            formats=others or None, sizes=sizes, **chosen, **given,
        )  # fmt: skip

    def _facts(self, name: str) -> Any:
        """An open operand as all that is known of it, counted once."""
        from sparsecc.formats import known_name
        from sparsecc.specs import Spec

        tensor = self.tensors[name]
        stored = known_name(tensor.format)
        return Spec(tensor.shape, _type(tensor), OPEN, tensor.statistics(), stored)

    # -- compiling -----------------------------------------------------------------------------

    def kernel(self, decision: Decision | None) -> Kernel:
        """The kernel of the plan that was chosen; of what the command line says where nothing was to be chosen."""
        if decision is None:
            return self._kernel(self.chosen)
        from sparsecc.selection.saved_plans import SavedPlan

        return self._kernel({"plan": SavedPlan(decision.candidate)}, closed=True)

    def _kernel(self, chosen: dict[str, Any], closed: bool = False) -> Kernel:
        if self.source is not None:
            return programs.mlir_kernel(self.options, chosen)
        is_open = {} if closed else self.is_open
        return programs.expression_kernel(self.options, self.given, is_open, chosen)


def check_types(decision: Decision) -> None:
    """Raise TypeWithoutKernels for what a target's kernels can't compute with."""
    problem = decision.problem
    for tensor in problem.tensors.values():
        if problem.target.backend == "triton" and tensor.dtype.startswith("c"):
            target = problem.target.name
            raise TypeWithoutKernels(name=tensor.name, dtype=tensor.dtype, target=target)


def _type(tensor: SparseTensor) -> str:
    from sparsecc.elements import name_of

    return name_of(tensor.dtype) or str(tensor.dtype)


def _is_full(tensor: SparseTensor) -> bool:
    """Whether a tensor is stored densely, and has hardly a zero."""
    if not tensor.format.is_dense or not tensor.values.size:
        return False
    import numpy as np

    step = max(1, tensor.values.size >> 20)  # a sample will do
    sample = tensor.values[::step]
    return float(np.count_nonzero(sample)) > FULL * sample.size


def counted_on(target: str, notes: list[str]) -> frozenset[str] | None:
    """The libraries to count on: those that are here; all that there are for a GPU that is not here."""
    from sparsecc.runtime.machines import present_target
    from sparsecc.selection.engines import ENGINES, of_target
    from sparsecc.targets import known_target

    if target in ("cpu", "gpu") or known_target(target).backend == "cpu":
        return None
    try:
        if present_target() == known_target(target).name:
            return None
    except TargetError:
        pass
    found = of_target(target)
    names = ", ".join(ENGINES[name].title for name in found)
    notes.append(f"no GPU of target {target} is here; where it is, {names} are counted on")
    return frozenset(found)


WIDTHS = {"cpu": (8, 32, 128), "triton": (1, 16, 64, 512)}
"""Of the dense operand, by backend."""


def predicted_gains(known: Statistics, stored: str, target: str) -> Gains:
    """What each format of a matrix would gain in products: with a vector and matrices on a CPU, in a linear layer on a
    GPU. Raises SparseccError."""
    from sparsecc import api
    from sparsecc.driver import named_target
    from sparsecc.explanation.gains import gains
    from sparsecc.specs import Spec
    from sparsecc.targets import known_target

    notes: list[str] = []
    libraries = counted_on(target, notes)
    target = named_target(target)
    matrix = Spec(known.shape, known.dtype, OPEN, known, stored)
    backend = known_target(target).backend

    def problem(program: str, x: str, rank: int, sizes: dict[str, int]) -> Problem:
        given = {"W": matrix, x: Spec((None,) * rank, known.dtype)}
        found = api.decide(program, operands=given, target=target, sizes=sizes, libraries=libraries)
        assert found is not None, "an operand with statistics is open"
        check_types(found)
        return found.problem

    problems: list[tuple[str, Problem]] = []
    if backend == "cpu":
        problems.append(("a vector", problem("y[n] = W[n,k] * x[k]", "x", 1, {})))
        program = "Y[n,m] = W[n,k] * X[k,m]"
    else:
        program = "Y[m,n] = X[m,k] * W[n,k]"
    for width in WIDTHS[backend]:
        problems.append((f"m = {width}", problem(program, "X", 2, {"m": width})))
    for text in notes:
        note(text)
    return gains(problems, "W")
