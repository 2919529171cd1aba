"""Asking a strategy, which may be somebody else's: whatever it raises or answers, the error is one of ours."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import cast

from sparsecc.diagnostics import PassError, SparseccError
from sparsecc.selection.candidate import Candidate, Ranked
from sparsecc.selection.problem import Problem, Strategy
from sparsecc.selection.registry import BadStrategy


class StrategyFailed(PassError):
    text = "strategy {name!r} fails: {problem}"
    help_text = "it is a fault of the strategy; name another, or the formats"


def ask(strategy: Strategy, problem: Problem) -> tuple[Ranked, ...]:
    """The plans of a problem as a strategy ranks them: at least one.

    Raises StrategyFailed, BadStrategy, and what the strategy raises of ours."""
    name = strategy.name
    try:
        given = cast(object, strategy.rank(problem))
        if isinstance(given, Sequence):
            given = tuple(cast("Sequence[object]", given))
    except SparseccError:
        raise
    except Exception as error:  # of a strategy that is not ours
        raise StrategyFailed(name=name, problem=f"{type(error).__name__}: {error}") from error
    return _checked(given, name)


def _checked(given: object, name: str) -> tuple[Ranked, ...]:
    if not isinstance(given, tuple):
        problem = f"rank() gives {type(given).__name__}, no sequence of Ranked"
        raise BadStrategy(name=name, problem=problem)
    ranked = cast("tuple[object, ...]", given)
    if not ranked:
        raise BadStrategy(name=name, problem="rank() gives no plan; staying dense is always legal")
    for one in ranked:
        if not isinstance(one, Ranked) or not isinstance(cast(object, one.candidate), Candidate):
            problem = f"rank() gives {one!r} among its plans, no Ranked of a Candidate"
            raise BadStrategy(name=name, problem=problem)
        seconds: object = one.seconds
        if seconds is not None and not isinstance(seconds, Real):
            problem = f"rank() gives {seconds!r} as the seconds of a plan, no number"
            raise BadStrategy(name=name, problem=problem)
    return cast("tuple[Ranked, ...]", ranked)
