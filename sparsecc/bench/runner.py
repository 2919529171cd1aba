"""Runs cells: makes the operands, asks every family for candidates, checks them, times the best in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sparsecc.bench.cells import Cell
from sparsecc.bench.peers import PEERS, Peer
from sparsecc.bench.problem import RIVALS, Candidate, Errors, Problem
from sparsecc.bench.results import FIRST, OURS, Result, Time
from sparsecc.bench.timing import Call, Sample, Timer, interleaved
from sparsecc.bench.weights import Matrix
from sparsecc.diagnostics import SparseccError


class DeviceLost(SparseccError):
    text = "the device was lost in {cell} with {candidate}: {problem}"
    help_text = "--json FILE --resume measures the cells that are left, --skip '{cell} | {candidate}' without it"


SKIPPED = "left out: the device was lost with it"
DEFAULT = "default"
"""The name of our first choice."""


HOPELESS = 2.0
"""A candidate that takes so many times as long as the fastest of its family is not looked at twice."""


class Moment(Protocol):
    """Tells how fast the device is; ``best`` is the fastest that it has been."""

    best: float

    def now(self) -> float: ...
    def warm(self) -> None: ...


@dataclass(frozen=True)
class Settings:
    """How long to measure: ``ms`` for each sample, ``screen_ms`` for a first look that leaves ``keep`` candidates
    of a family."""

    rounds: int = 5
    ms: float = 8.0
    screen_ms: float = 2.0
    keep: int = 2
    device: str = "cuda"
    steady: float = 0.9
    """Times are taken again where the device is slower than this share of its best pace."""
    again: int = 2


QUICK = Settings(rounds=3, ms=6.0, keep=1)


@dataclass
class Runner:
    """``ours`` gives our candidates, ``peers`` those of the rivals by family."""

    timer: Timer
    ours: Peer
    settings: Settings = field(default_factory=Settings)
    peers: Mapping[str, tuple[Peer, ...]] = field(default_factory=lambda: PEERS)
    alive: Callable[[], None] = lambda: None
    """Raises RuntimeError if the device has failed for good."""
    skip: frozenset[tuple[str, str]] = frozenset()
    """Names of cells with candidates that are not to run."""
    pace: Moment | None = None
    release: Callable[[], None] = lambda: None
    """Gives back the memory of a cell."""

    def run(self, cells: Iterable[Cell]) -> Iterator[Result]:
        """The results in the order of the cells. Raises DeviceLost when nothing can run any more."""
        matrix: Matrix | None = None
        for cell in cells:
            if matrix is None or matrix.cell.matrix != cell.matrix:
                matrix = None
                self.release()
                matrix = Matrix(cell, self.settings.device)
            result = self.measure(Problem(cell, matrix))
            self.release()
            yield result

    def measure(self, problem: Problem) -> Result:
        """One cell. A candidate that fails or is wrong is not timed; the result says so."""
        failures: dict[str, str] = {}
        errors: dict[str, float] = {}
        chosen: dict[str, dict[str, Candidate]] = {}
        sources = {OURS: (self.ours,)}
        sources |= {family: self.peers[family] for family in problem.cell.operation.rivals}
        loose: set[str] = set()
        for family, makers in sources.items():
            right: dict[str, Candidate] = {}
            slack = 1.0 if family == OURS else RIVALS
            for name, candidate in self._candidates(family, makers, problem, failures):
                found = self._checked(problem, candidate, name, failures, slack)
                if found is not None:
                    right[name], errors[name] = candidate, found.norm
                    if not found.accepted(problem.cell.dtype):
                        loose.add(name)
            chosen[family] = self._screened(problem, right, failures)
        turns: dict[str, Sequence[Call]] = {
            name: candidate.calls for own in chosen.values() for name, candidate in own.items()
        }
        samples, copied = self._sampled(problem, turns)

        def time(name: str, candidate: Candidate) -> Time:
            s = samples[name]
            return Time(
                candidate.name, s.us, s.least, s.most, s.how, candidate.nbytes, errors[name], name in loose
            )  # fmt: skip

        times: dict[str, Time] = {}
        for family, own in chosen.items():
            if own:
                best = min(own, key=lambda name: samples[name].us)
                times[family] = time(best, own[best])
        first = f"{OURS}: {DEFAULT}"
        if first in chosen[OURS]:
            times[FIRST] = time(first, chosen[OURS][first])
        return Result(problem.cell, problem.matrix.nnz, times, failures, copied)

    def _sampled(
        self, problem: Problem, turns: Mapping[str, Sequence[Call]]
    ) -> tuple[dict[str, Sample], float | None]:
        """The times, taken again while the device is slow; and its pace, of the best attempt."""

        def sample() -> dict[str, Sample]:
            settings = self.settings
            return interleaved(
                self.timer, turns, settings.rounds, settings.ms, lambda name: self._guard(problem, name)
            )  # fmt: skip

        pace = self.pace
        if pace is None:
            return sample(), None
        found: dict[str, Sample] = {}
        fastest = 0.0
        for _ in range(1 + self.settings.again):
            before = pace.now()
            samples = sample()
            slowest = min(before, pace.now())
            if slowest > fastest:
                found, fastest = samples, slowest
            if slowest >= self.settings.steady * pace.best:
                break
            pace.warm()
        return found, fastest

    def _guard(self, problem: Problem, name: str) -> None:
        """Raise DeviceLost if the device has failed since it was asked last."""
        try:
            self.alive()
        except RuntimeError as error:
            raise DeviceLost(
                cell=problem.cell.name, candidate=name, problem=_first_line(error)
            ) from None

    def _candidates(
        self, family: str, makers: Sequence[Peer], problem: Problem, failures: dict[str, str]
    ) -> Iterator[tuple[str, Candidate]]:
        cell = problem.cell.name
        for maker in makers:
            found = maker(problem)
            making = f"{family}: {getattr(maker, '__name__', family)}"
            while (cell, making) not in self.skip:
                try:
                    candidate = next(found)
                except StopIteration:
                    break
                except (RuntimeError, SparseccError, NotImplementedError) as error:
                    failures[making] = _first_line(error)
                    self._guard(problem, making)
                    break
                self._guard(problem, making)
                name = f"{family}: {candidate.name}"
                if (cell, name) in self.skip:
                    failures[name] = SKIPPED
                else:
                    yield name, candidate
                making = f"{family}: what follows {candidate.name}"
            else:
                failures[making] = SKIPPED

    def _checked(
        self, problem: Problem, candidate: Candidate, name: str, failures: dict[str, str],
        slack: float,
    ) -> Errors | None:  # fmt: skip
        try:
            errors = problem.errors(candidate)
        except (RuntimeError, SparseccError, NotImplementedError) as error:
            failures[name] = _first_line(error)
            self._guard(problem, name)
            return None
        self._guard(problem, name)
        if not errors.accepted(problem.cell.dtype, slack):
            failures[name] = f"wrong: error {errors.norm:.1e} (norm), {errors.worst:.1e} (worst)"
            return None
        return errors

    def _screened(
        self,
        problem: Problem,
        right: Mapping[str, Candidate],
        failures: dict[str, str],
    ) -> dict[str, Candidate]:
        """The fastest few by a first look, and our first choice in any case."""

        def timed(names: Iterable[str], measure: Callable[[Candidate], float]) -> dict[str, float]:
            found: dict[str, float] = {}
            for name in names:
                try:
                    found[name] = measure(right[name])
                except (RuntimeError, SparseccError) as error:
                    failures[name] = _first_line(error)
                self._guard(problem, name)
            return found

        ours = f"{OURS}: {DEFAULT}"
        looks = timed(right, lambda candidate: self.timer.look(candidate.calls))
        slow = HOPELESS * min(looks.values(), default=0.0)
        near = [name for name, us in looks.items() if us <= slow or name == ours]
        first = timed(
            near, lambda candidate: self.timer.us(candidate.calls, self.settings.screen_ms)
        )
        kept = sorted(first, key=first.__getitem__)[: self.settings.keep]
        if ours in first:
            kept = list(dict.fromkeys((ours, *kept)))
        return {name: right[name] for name in kept}


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:200] if text else 'no message'}"
