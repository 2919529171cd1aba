"""The options of ``compile`` and its like that say how a plan is found: formats, strategy, calls, sizes, plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, cast

from sparsecc import driver
from sparsecc.diagnostics import UsageError, did_you_mean
from sparsecc.formats import Format
from sparsecc.request import Request
from sparsecc.runtime.call_checks import BadOption, is_whole
from sparsecc.runtime.compiled_kernel import Kernel
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.problem import Strategy
from sparsecc.selection.registry import checked_strategy
from sparsecc.selection.saved_plans import SavedPlan, plan_of
from sparsecc.specs import OPEN, Given


class PlanIsChosen(UsageError):
    text = "{name}= does not go with plan=, which says the formats already"
    help_text = "leave one of the two out"


class NoSuchOperand(UsageError):
    text = "formats= names {name!r}, which is no operand"


class AlreadySaid(UsageError):
    text = "operand {name!r} is a Spec of format {found}, but formats= says {wanted}"
    help_text = "say it in one place"


@dataclass(frozen=True)
class PlanOptions:
    """Checked. ``formats``: by operand, or ``*`` for all that are given as sparse tensors."""

    formats: Mapping[str, str | Format] | str | None = None
    strategy: str | None = None
    ranker: Strategy | None = None
    calls: float | None = None
    sizes: tuple[tuple[str, int], ...] = ()
    plan: SavedPlan | None = None

    @staticmethod
    def of(
        formats: object = None, strategy: object = None, calls: object = None,
        sizes: object = None, plan: object = None,
    ) -> PlanOptions:  # fmt: skip
        """The options as they are given. Raises BadOption, BadStrategy, BadPlan, FileError, PlanIsChosen."""
        if plan is not None:
            for name, value in (("formats", formats), ("strategy", strategy), ("sizes", sizes)):
                if value is not None:
                    raise PlanIsChosen(name=name)
            return PlanOptions(plan=plan_of(plan))
        named = isinstance(strategy, str)
        ranker = None
        if strategy is not None and not named:
            ranker = checked_strategy(strategy, type(strategy).__name__)
        return PlanOptions(
            _checked_formats(formats), strategy if named else None, ranker, _checked_calls(calls), _checked_sizes(sizes)
        )  # fmt: skip

    def request(self, request: Request, given: Mapping[str, Given]) -> Request:
        """The request for operands, and what is known of them where something is to be chosen.

        Raises NoSuchOperand, AlreadySaid, FormatError, PackedStays."""
        operands = self.opened(given)
        shapes = {name: g.shape for name, g in operands.items() if g.shape is not None}
        request = replace(request, operands=tuple((n, g.spec) for n, g in operands.items()))
        if self.plan is not None:
            return replace(request, shapes=tuple(shapes.items()))
        is_open = {n: g for n, g in operands.items() if g.spec.format is None}
        statistics = ((n, g.statistics) for n, g in is_open.items())
        stored = ((n, g.stored) for n, g in is_open.items())
        return replace(
            request,
            statistics=tuple((n, s) for n, s in statistics if s is not None),
            stored=tuple((n, s) for n, s in stored if s is not None),
            shapes=tuple(shapes.items()),
            sizes=self.sizes,
            strategy=self.strategy,
            calls=self.calls,
        )

    def opened(self, given: Mapping[str, Given]) -> dict[str, Given]:
        """The operands with the formats that the options say, or with none yet."""
        found = dict(given)
        if self.plan is not None:
            named = dict(self.plan.candidate.formats)
            for name, one in given.items():
                if name in named and one.tensor is not None:
                    found[name] = one.without_format()
            return found
        if self.formats == OPEN:
            return {n: g.open(n) if g.sparse else g for n, g in given.items()}
        wanted = cast("Mapping[str, str | Format]", self.formats or {})
        for name, fmt in wanted.items():
            if name not in given:
                raise NoSuchOperand(name=name, help=did_you_mean(name, list(given)))
            one = given[name]
            if one.tensor is None and one.spec.format is not None:
                raise AlreadySaid(name=name, found=one.spec.format, wanted=fmt)
            found[name] = one.open(name) if fmt == OPEN else one.in_format(fmt)
        return found

    def compile(self, request: Request, operands: Mapping[str, Any] | None = None) -> Kernel:
        """The kernel of a request that ``request`` has made. ``operands``: all of them, to measure plans with."""
        if self.plan is not None:
            return driver.compile_plan(request, self.plan)
        measure = None if operands is None else _measure(request, operands)
        return driver.compile_request(request, self.ranker, measure)


def _measure(request: Request, operands: Mapping[str, Any]) -> Callable[[Candidate], float]:
    """Seconds of a call of a plan, with operands that are there."""

    def seconds(candidate: Candidate) -> float:
        from sparsecc.runtime.measure_calls import seconds_of_call

        kernel = driver.compile_plan(request, SavedPlan(candidate))
        return seconds_of_call(kernel, operands)

    return seconds


def _checked_formats(formats: object) -> Mapping[str, str | Format] | str | None:
    if formats is None or (isinstance(formats, str) and formats == OPEN):
        return formats
    found = cast("Mapping[object, object]", formats)
    if isinstance(formats, Mapping):
        pairs = found.items()
        if all(isinstance(k, str) and isinstance(v, str | Format) for k, v in pairs):
            return cast("Mapping[str, str | Format]", formats)
    wanted = "'*' for all sparse operands, or a mapping from operands to formats, as in {'A': '*'}"
    raise BadOption(name="formats", found=found, wanted=wanted)


def _checked_calls(calls: object) -> float | None:
    if calls is None:
        return None
    number = is_whole(calls) or isinstance(calls, float)
    if not number or not isfinite(value := float(cast(float, calls))) or value <= 0:
        wanted = "how often the kernel will be called, above 0 (None: conversions don't count)"
        raise BadOption(name="calls", found=calls, wanted=wanted)
    return value


def _checked_sizes(sizes: object) -> tuple[tuple[str, int], ...]:
    if sizes is None:
        return ()
    found = cast("Mapping[object, object]", sizes)
    if isinstance(sizes, Mapping):
        pairs = found.items()
        if all(isinstance(k, str) and is_whole(v) and cast(int, v) >= 1 for k, v in pairs):
            known = cast("Mapping[str, int]", sizes)
            return tuple(sorted((name, int(extent)) for name, extent in known.items()))
    wanted = "a mapping from indices to extents of at least 1, as in {'m': 16}"
    raise BadOption(name="sizes", found=found, wanted=wanted)
