"""Measuring plans on a CPU: CPU time of the calling thread, plans in turns, medians.

Arrays lie elsewhere every few rounds, so that the luck of one place is not taken for a property of a plan. Libraries
are held to one thread (``threads.one_thread``): only the calling thread's time is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import thread_time_ns
from typing import Any

import numpy as np

from sparsecc.diagnostics import SparseccError
from sparsecc.elements import NUMPY
from sparsecc.research.cpu_plans import Array, Call, Plans, Ready, check
from sparsecc.research.recording import failed, spread
from sparsecc.research.table import Time
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.problem import Problem

FAULTS = (SparseccError, RuntimeError, NotImplementedError, ValueError, TypeError, MemoryError)
"""What a plan may fail with: libraries refuse in many ways."""


@dataclass(frozen=True)
class Settings:
    """``rounds`` in which all plans take turns, with arrays elsewhere every ``stay`` rounds. A sample lasts ``ms``
    or one call. A plan that has used ``most_ms`` is done after ``least`` rounds, and so is one that takes ``far`` times
    as long as the fastest; if a call of that one takes more than ``most_ms``, the first call is its only sample."""

    rounds: int = 15
    stay: int = 3
    ms: float = 2.0
    least: int = 3
    far: float = 4.0
    most_ms: float = 200.0


def seconds(call: Call, repeats: int = 1) -> float:
    """Seconds of this thread's CPU time for one of so many calls in a row."""
    start = thread_time_ns()
    for _ in range(repeats):
        call()
    return (thread_time_ns() - start) / 1e9 / repeats


def sampled(
    calls: Mapping[Candidate, Call],
    first: Mapping[Candidate, float],
    settings: Settings,
    elsewhere: Mapping[Candidate, Callable[[], Call]] | None = None,
) -> dict[Candidate, list[float]]:
    """Seconds of a call, a sample of each plan in every round; another plan starts each round.

    ``first``: seconds of the first call of each. ``elsewhere``: what gives the same calls with arrays elsewhere."""
    current = dict(calls)
    repeats: dict[Candidate, int] = {}
    found: dict[Candidate, list[float]] = {}
    used = dict.fromkeys(calls, 0.0)
    once: dict[Candidate, float] = {}
    for candidate, call in calls.items():
        known = first[candidate]
        found[candidate] = []
        if known * 1e3 > settings.most_ms:
            found[candidate].append(known)
        elif known * 1e3 < settings.ms:
            known = seconds(call, 2)  # the first call has found cold caches
        once[candidate] = known
        repeats[candidate] = max(1, round(settings.ms / 1e3 / max(known, 1e-7)))
    best = min(once.values(), default=0.0)
    order = list(calls)
    for turn in range(settings.rounds):
        for k in range(len(order)):
            candidate = order[(k + turn) % len(order)]
            times, count = found[candidate], repeats[candidate]
            far = once[candidate] > settings.far * best
            if len(times) >= settings.least and (far or used[candidate] > settings.most_ms):
                continue
            if far and times and once[candidate] * 1e3 > settings.most_ms:
                continue
            if elsewhere and turn and turn % settings.stay == 0 and candidate in elsewhere:
                current[candidate] = elsewhere[candidate]()
                current[candidate]()  # libraries look at new arrays once
            times.append(seconds(current[candidate], count))
            used[candidate] += times[-1] * count * 1e3
    return found


@dataclass
class CpuMeasure:
    """What ``Problem.measure`` is on a CPU: the seconds of a call of a plan, measured once and remembered."""

    plans: Plans
    settings: Settings = field(default_factory=Settings)
    known: dict[Candidate, float] = field(default_factory=dict[Candidate, float])

    def __call__(self, candidate: Candidate) -> float:
        """Raises SparseccError where the plan can't run, WrongResult where its result is another one."""
        if candidate not in self.known:
            (timed,) = measured(self.plans, [candidate], self.settings)
            if timed.seconds is None:
                raise SparseccError(timed.failure)
            self.known[candidate] = timed.seconds
        return self.known[candidate]


def measured(
    plans: Plans, candidates: Sequence[Candidate], settings: Settings | None = None
) -> list[Time]:
    """The times of plans of one problem; one that fails or is wrong says so."""
    settings = settings or Settings()
    wanted = plans.reference()
    found: dict[Candidate, Time] = {}
    ready: dict[Candidate, Ready] = {}
    first: dict[Candidate, float] = {}
    for candidate in candidates:
        try:
            made = plans.ready(candidate)
            first[candidate] = check(made, wanted)
            ready[candidate] = made
        except FAULTS as error:
            found[candidate] = failed(candidate, error)
    calls = {candidate: made.call for candidate, made in ready.items()}
    elsewhere = {candidate: made.elsewhere for candidate, made in ready.items()}
    for candidate, times in sampled(calls, first, settings, elsewhere).items():
        made = ready[candidate]
        median, low, high = spread(times)
        found[candidate] = Time(
            candidate, median, low, high, len(times), made.conversion, made.compile, made.nbytes,
            checked=True,
        )  # fmt: skip
    return [found[candidate] for candidate in candidates]


def operands_of(problem: Problem, stored: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """Operands for the problem's tensors: those that are given, dense arrays of random numbers for the others."""
    rng = np.random.default_rng(seed)
    results = {expression.result.name for expression in problem.expressions}
    found: dict[str, Any] = {}
    for expression in problem.expressions:
        for access in expression.inputs:
            name = access.name
            if name in found or name in results:
                continue
            if name in stored:
                found[name] = stored[name]
                continue
            shape = [problem.extents[index] for index in access.indices]
            array: Array = rng.standard_normal(tuple(n for n in shape if n is not None))
            found[name] = array.astype(NUMPY[problem.tensors[name].dtype])
    return found
