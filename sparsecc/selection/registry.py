"""The strategies that there are, name -> ``module:Class``, and the spaces of plans. Outsiders add strategies by an
entry point ``sparsecc.strategies``, or spell ``package.module:Class`` where a strategy is named."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import cast

from sparsecc.diagnostics import PassError, UnsupportedError, did_you_mean
from sparsecc.entry_points import load, with_entry_points
from sparsecc.selection.problem import Space, Strategy
from sparsecc.selection.strategies import DEFAULT
from sparsecc.selection.strategies import STRATEGIES as SHIPPED
from sparsecc.targets import Target

INFERRED = "inferred"
"""The rules of ``passes.selection.inferred``, which ask no cost model. They fill in what a plan leaves open too."""

STRATEGIES: dict[str, str] = {
    INFERRED: "sparsecc.passes.selection.inferred:infer_formats",
    **SHIPPED,
}
"""What ships. ``DEFAULT`` is asked where something is known of an open operand and no strategy is named."""

GROUP = "sparsecc.strategies"

__all__ = [
    "DEFAULT",
    "INFERRED",
    "STRATEGIES",
    "checked_strategy",
    "space_of",
    "strategies",
    "strategy",
]


class UnknownStrategy(PassError):
    text = "there is no strategy {name!r}"


class BadStrategy(PassError):
    text = "strategy {name!r} can't be used: {problem}"
    help_text = "name a class that is made without arguments and has a method rank(problem)"


class NoSpace(UnsupportedError):
    text = "target {target} has no plans to choose from"
    help_text = "name the formats, or use the strategy 'inferred'"


@cache
def strategies() -> dict[str, str]:
    """All strategies: name -> ``module:Class``. Raises NameClash."""
    return with_entry_points(GROUP, STRATEGIES)


def strategy(name: str) -> Strategy:
    """A new strategy of a name, or of a class spelled ``package.module:Class``.

    Raises UnknownStrategy, BadStrategy."""
    # Entry points take a while to read: only a name that is not ours asks for them.
    reference = name if ":" in name else STRATEGIES.get(name) or strategies().get(name)
    if reference is None:
        raise UnknownStrategy(name=name, help=did_you_mean(name, list(strategies())))
    try:
        made = cast("Callable[[], object]", load(reference))()
    except Exception as error:  # of a package that is not ours
        problem = f"{type(error).__name__}: {error}"
        raise BadStrategy(name=name, problem=problem) from error
    return checked_strategy(made, name)


def checked_strategy(made: object, name: str) -> Strategy:
    """An object as a strategy. Raises BadStrategy."""
    if isinstance(made, type) or not callable(getattr(made, "rank", None)):
        raise BadStrategy(name=name, problem="it has no method rank(problem)")
    if not isinstance(getattr(made, "name", None), str):
        raise BadStrategy(name=name, problem="it has no name, a text")
    return cast("Strategy", made)


def space_of(target: Target) -> Space:
    """The plans of a target. Raises NoSpace."""
    from sparsecc.selection.spaces import SPACES

    if target.backend not in SPACES:
        raise NoSpace(target=target.name)
    return SPACES[target.backend]
