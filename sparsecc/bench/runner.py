"""Runs cells: makes the operands, asks every family for candidates, checks them, times the best in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sparsecc.bench.cells import Cell
from sparsecc.bench.peers import PEERS, Peer
from sparsecc.bench.problem import Candidate, Problem
from sparsecc.bench.results import OURS, Result, Time
from sparsecc.bench.timing import Call, Timer, interleaved
from sparsecc.bench.weights import Matrix
from sparsecc.diagnostics import SparseccError


class DeviceLost(SparseccError):
    text = "the device does not answer any more after {cell}: {problem}"
    help_text = "the cells before it have been measured; run the others with --only"


@dataclass(frozen=True)
class Settings:
    """How long to measure: ``ms`` for each sample, ``screen_ms`` for a first look that leaves ``keep`` candidates
    of a family."""

    rounds: int = 5
    ms: float = 12.0
    screen_ms: float = 2.0
    keep: int = 2
    device: str = "cuda"


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
    release: Callable[[], None] = lambda: None
    """Gives back the memory of a cell."""

    def run(self, cells: Sequence[Cell]) -> Iterator[Result]:
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
            try:
                self.alive()
            except RuntimeError as error:
                raise DeviceLost(cell=cell.name, problem=_first_line(error)) from None

    def measure(self, problem: Problem) -> Result:
        """One cell. A candidate that fails or is wrong is not timed; the result says so."""
        failures: dict[str, str] = {}
        errors: dict[str, float] = {}
        chosen: dict[str, dict[str, Candidate]] = {}
        sources = {OURS: (self.ours,)}
        sources |= {family: self.peers[family] for family in problem.cell.operation.rivals}
        for family, makers in sources.items():
            right: dict[str, Candidate] = {}
            for name, candidate in self._candidates(family, makers, problem, failures):
                error = self._checked(problem, candidate, name, failures)
                if error is not None:
                    right[name], errors[name] = candidate, error
            chosen[family] = self._screened(right)
        turns: dict[str, Sequence[Call]] = {
            name: candidate.calls for own in chosen.values() for name, candidate in own.items()
        }
        samples = interleaved(self.timer, turns, self.settings.rounds, self.settings.ms)
        times: dict[str, Time] = {}
        for family, own in chosen.items():
            if own:
                best = min(own, key=lambda name: samples[name].us)
                s = samples[best]
                times[family] = Time(
                    own[best].name, s.us, s.least, s.most, s.how, own[best].nbytes, errors[best]
                )
        return Result(problem.cell, problem.matrix.nnz, times, failures)

    def _candidates(
        self, family: str, makers: Sequence[Peer], problem: Problem, failures: dict[str, str]
    ) -> Iterator[tuple[str, Candidate]]:
        for maker in makers:
            found = maker(problem)
            while True:
                try:
                    candidate = next(found)
                except StopIteration:
                    break
                except (RuntimeError, SparseccError, NotImplementedError) as error:
                    failures[f"{family}: {getattr(maker, '__name__', family)}"] = _first_line(error)
                    break
                yield f"{family}: {candidate.name}", candidate

    def _checked(
        self, problem: Problem, candidate: Candidate, name: str, failures: dict[str, str]
    ) -> float | None:
        try:
            errors = problem.errors(candidate)
        except (RuntimeError, SparseccError, NotImplementedError) as error:
            failures[name] = _first_line(error)
            return None
        if not errors.accepted(problem.cell.dtype):
            failures[name] = f"wrong: error {errors.norm:.1e} (norm), {errors.worst:.1e} (worst)"
            return None
        return errors.norm

    def _screened(self, right: Mapping[str, Candidate]) -> dict[str, Candidate]:
        """The fastest few by a first look."""
        if len(right) <= self.settings.keep:
            return dict(right)
        first = {n: self.timer.us(c.calls, self.settings.screen_ms) for n, c in right.items()}
        return {n: right[n] for n in sorted(first, key=first.__getitem__)[: self.settings.keep]}


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:200] if text else 'no message'}"
