"""Recording a table on a GPU: every plan of every problem, checked, timed in turns with cold weights.

A weight is made on the device, its statistics are counted there, and it is converted to each format once. Kernels are
compiled ahead in other processes, so that the device seldom waits for one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

from sparsecc.bench.problem import NORM, RIVALS, WORST
from sparsecc.bench.timing import Timer
from sparsecc.bench.weights import torch_dtype, torch_module
from sparsecc.diagnostics import SparseccError
from sparsecc.kernel import TileSource
from sparsecc.research.gpu_ahead import Ahead
from sparsecc.research.gpu_operands import Inputs, Product, Ready, Weight, reference
from sparsecc.research.gpu_plans import Staged, stage
from sparsecc.research.recording import failed, spread
from sparsecc.research.table import Time
from sparsecc.selection.candidate import GENERATED, Candidate

Tensor = Any
FAULTS = (RuntimeError, SparseccError, NotImplementedError, ValueError, TypeError)
"""What a plan may fail with: torch refuses in many ways."""


class WrongResult(SparseccError):
    text = "wrong: error {norm:.1e} (norm), {worst:.1e} (worst)"


class DeviceLost(SparseccError):
    text = "the device was lost in {problem} with {candidate}: {reason}"
    help_text = "run again with --resume in a new process: the plan is recorded as failed"


@dataclass(frozen=True)
class Settings:
    """``rounds`` in which all plans of a problem take turns, a sample of ``ms`` each; a plan that has used
    ``most_ms`` in ``least`` rounds is done. One whose call takes more than ``slow_ms`` takes no turns: it is looked
    at so many times, since neither caches nor launches matter to it."""

    rounds: int = 9
    ms: float = 2.5
    least: int = 3
    most_ms: float = 250.0
    slow_ms: float = 5.0
    looks: int = 3
    staged: int = 2
    """Weights that are made ahead at least, and at most."""
    most_staged: int = 6
    steady: float = 0.9
    """Times are taken again where the device is slower than this share of its best pace."""


class Moment(Protocol):
    """Tells how fast the device is; ``best`` is the fastest that it has been."""

    best: float

    def now(self) -> float: ...
    def warm(self) -> None: ...


@dataclass(frozen=True)
class Work:
    """A problem that is to be measured: its name, how it is run, and its plans."""

    name: str
    product: Product
    candidates: tuple[Candidate, ...]


@dataclass
class Prepared:
    """The problems of one weight with their plans, as far as they come without machine code."""

    weight: Weight
    problems: list[tuple[Work, Inputs, list[Staged], list[Time]]]
    """With the dense operands, the plans that can run, and those that can't."""

    @property
    def sources(self) -> Iterator[TileSource]:
        for _, _, plans, _ in self.problems:
            for plan in plans:
                yield from plan.sources


@dataclass
class Recorder:
    """Measures works weight by weight. ``make`` makes a weight, ``ahead`` compiles; ``alive`` raises RuntimeError
    if the device has failed for good, ``release`` gives back memory, ``fresh`` is called before a plan is timed first,
    ``tell`` hears of what is left out."""

    timer: Timer
    ahead: Ahead | None
    settings: Settings = field(default_factory=Settings)
    pace: Moment | None = None
    alive: Callable[[], None] = lambda: None
    release: Callable[[], None] = lambda: None
    fresh: Callable[[], None] = lambda: None
    tell: Callable[[str], None] = lambda _: None
    skip: frozenset[tuple[str, str]] = frozenset()
    """Names of problems, and digests of plans that lost the device there."""

    def run(
        self,
        groups: Iterable[Callable[[], tuple[Weight, Sequence[Work]]]],
        enough: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[Work, list[Time]]]:
        """What was measured of each problem, until ``enough`` says so. Each group makes a weight and says what is to
        be measured with it. Raises DeviceLost."""
        waiting: deque[Prepared] = deque()
        left = iter(groups)
        more = True
        while not enough():
            while more and self._wants(waiting) and not enough():
                make = next(left, None)
                if make is None:
                    more = False
                else:
                    waiting.extend(self._made(make))
            if not waiting:
                return
            prepared = waiting.popleft()
            for work, inputs, plans, faults in prepared.problems:
                if enough():
                    return
                try:
                    times = self.measure(work, prepared.weight, inputs, plans)
                except DeviceLost:
                    raise
                except FAULTS as error:  # the reference, mostly: there is no room for it
                    self._guard(work, work.candidates[0])
                    times = [failed(plan.candidate, error) for plan in plans]
                yield work, times + faults
                self.release()

    def _made(self, make: Callable[[], tuple[Weight, Sequence[Work]]]) -> list[Prepared]:
        """A weight and its problems; none if it can't be made, which is told."""
        try:
            return [self.prepare(*make())]
        except DeviceLost:
            raise
        except FAULTS as error:
            self.alive()
            self.tell(f"a weight is left out: {type(error).__name__}: {error}")
            return []

    def _wants(self, waiting: Sequence[Prepared]) -> bool:
        """Whether another weight is to be made before the next one is measured."""
        if len(waiting) < self.settings.staged:
            return True
        if self.ahead is None or len(waiting) >= self.settings.most_staged:
            return False
        return not self.ahead.ready(waiting[0].sources)

    # -- before machine code is there ----------------------------------------------------------

    def prepare(self, weight: Weight, works: Sequence[Work]) -> Prepared:
        """Convert a weight, make kernels up to their text, have them compiled."""
        prepared = Prepared(weight, [])
        for work in works:
            inputs = {name: random(work.product, name) for name in work.product.dense}
            plans: list[Staged] = []
            faults: list[Time] = []
            for candidate in work.candidates:
                if (work.name, candidate.digest) in self.skip:
                    faults.append(failed(candidate, "left out: the device was lost with it"))
                    continue
                try:
                    plans.append(stage(work.product, weight, inputs, candidate))
                except FAULTS as error:
                    faults.append(failed(candidate, error))
                    self._guard(work, candidate)
            prepared.problems.append((work, inputs, plans, faults))
        if self.ahead is not None:
            self.ahead.ask(prepared.sources)
        return prepared

    # -- measuring -----------------------------------------------------------------------------

    def measure(
        self, work: Work, weight: Weight, inputs: Inputs, plans: Sequence[Staged]
    ) -> list[Time]:
        """The times of one problem's plans; one that fails or is wrong says so."""
        found: dict[Candidate, Time] = {}
        ready: dict[Candidate, Ready] = {}
        slow: dict[Candidate, list[float]] = {}
        wanted = reference(work.product, weight, inputs)
        for plan in plans:
            try:
                if self.ahead is not None:
                    self.ahead.wait(plan.sources)
                made = plan.finish()
                start = perf_counter()
                check(work.product, plan.candidate, made, wanted)
                looks = self._looks(made, perf_counter() - start)
                ready[plan.candidate] = made
                if looks:
                    slow[plan.candidate] = looks
            except FAULTS as error:
                found[plan.candidate] = failed(plan.candidate, error)
            self._guard(work, plan.candidate)
        del wanted
        turns = {c: made for c, made in ready.items() if c not in slow}
        samples = {**slow, **self._steady(work, turns)}
        for candidate, times in samples.items():
            if isinstance(times, BaseException):
                found[candidate] = failed(candidate, times)
                continue
            made = ready[candidate]
            median, low, high = (us / 1e6 for us in spread(times))
            found[candidate] = Time(
                candidate, median, low, high, len(times), made.conversion, made.compile,
                made.nbytes, checked=True,
            )  # fmt: skip
        return [found[plan.candidate] for plan in plans]

    def _looks(self, made: Ready, first: float) -> list[float]:
        """Microseconds of a plan that is slow; none of one that is not. ``first``: seconds of its first call."""
        slow = self.settings.slow_ms * 1e3
        if first * 1e3 > 2 * self.settings.most_ms:
            return [first * 1e6]
        found = [self.timer.look(made.calls)]
        if found[0] <= slow:
            return []
        while len(found) < self.settings.looks and sum(found) < 1e3 * self.settings.most_ms:
            found.append(self.timer.look(made.calls))
        return found

    def _steady(
        self, work: Work, ready: Mapping[Candidate, Ready]
    ) -> dict[Candidate, list[float] | BaseException]:
        """Samples, taken again once where the device was slow."""
        pace = self.pace
        if pace is None:
            return self._samples(work, ready)
        before = pace.now()
        found = self._samples(work, ready)
        if min(before, pace.now()) < self.settings.steady * pace.best:
            pace.warm()
            found = self._samples(work, ready)
        return found

    def _samples(
        self, work: Work, ready: Mapping[Candidate, Ready]
    ) -> dict[Candidate, list[float] | BaseException]:
        """Microseconds of a call, a sample of each plan in every round; another plan starts each round."""
        settings = self.settings
        found: dict[Candidate, list[float] | BaseException] = {c: [] for c in ready}
        used = dict.fromkeys(ready, 0.0)
        order = list(ready)
        for turn in range(settings.rounds):
            for k in range(len(order)):
                candidate = order[(k + turn) % len(order)]
                times = found[candidate]
                if isinstance(times, BaseException):
                    continue
                if len(times) >= settings.least and used[candidate] > settings.most_ms:
                    continue
                start = perf_counter()
                if not times:
                    self.fresh()
                try:
                    times.append(self.timer.us(ready[candidate].calls, settings.ms))
                except FAULTS as error:
                    found[candidate] = error
                self._guard(work, candidate)
                used[candidate] += (perf_counter() - start) * 1e3 if times else 0.0
        return found

    def _guard(self, work: Work, candidate: Candidate) -> None:
        """Raise DeviceLost if the device has failed since it was asked last."""
        try:
            self.alive()
        except RuntimeError as error:
            lost = DeviceLost(
                problem=work.name, candidate=str(candidate), reason=str(error).partition("\n")[0]
            )
            lost.facts["digest"] = candidate.digest
            raise lost from None


def check(product: Product, candidate: Candidate, ready: Ready, wanted: Tensor) -> None:
    """Run a plan once, on poisoned memory where it writes into ours. Raises WrongResult."""
    torch = torch_module()
    if ready.out is not None:
        ready.out.fill_(float("nan"))
    found = ready.result(ready.calls[0]())
    if tuple(found.shape) != tuple(wanted.shape):
        raise WrongResult(norm=float("nan"), worst=float("nan"))
    difference = found.to(wanted.dtype) - wanted
    scale = max(float(torch.linalg.vector_norm(wanted)), 1e-30)
    norm = float(torch.linalg.vector_norm(difference)) / scale
    worst = float(difference.abs().max()) * max(wanted.numel(), 1) ** 0.5 / scale
    slack = 1.0 if candidate.engines == (GENERATED,) else RIVALS
    # NaN is not less than anything.
    if not (norm < slack * NORM[product.dtype] and worst < slack * WORST[product.dtype]):
        raise WrongResult(norm=norm, worst=worst)


def random(product: Product, name: str) -> Tensor:
    """Normally distributed numbers for an operand."""
    return torch_module().randn(
        *product.shape(name), device=product.device, dtype=torch_dtype(product.dtype)
    )
