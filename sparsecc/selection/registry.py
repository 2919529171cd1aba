"""The strategies and the spaces of plans that there are: name -> ``module:Class``. Outsiders add strategies by an entry
point ``sparsecc.strategies``, or spell ``package.module:Class`` where a strategy is named."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import cast

from sparsecc.diagnostics import PassError, UnsupportedError, did_you_mean
from sparsecc.entry_points import load, with_entry_points
from sparsecc.selection.problem import Space, Strategy
from sparsecc.targets import Target

INFERRED = "inferred"
"""The rules of ``passes.selection.inferred``, which ask no cost model. They fill in what a plan leaves open too."""

DEFAULT = "roofline"
"""Where something is known of an open operand and no strategy is named."""

STRATEGIES: dict[str, str] = {
    INFERRED: "sparsecc.passes.selection.inferred:infer_formats",
}

ENGINES = ("generated", "blas", "scipy", "cublas", "cusparselt", "cusparse")
"""Who may compute an expression."""

LIBRARIES: dict[str, dict[str, str]] = {
    "cpu": {"blas": "numpy", "scipy": "scipy"},
    "triton": {"cublas": "torch", "cusparselt": "torch", "cusparse": "torch"},
}
"""By backend: engines, and the package that each comes with."""

SPACE_OF = "sparsecc.selection.spaces:space_of"

GROUP = "sparsecc.strategies"


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
    try:
        return load(SPACE_OF)(target)
    except ModuleNotFoundError:
        raise NoSpace(target=target.name) from None


@cache
def libraries_of(target: Target) -> frozenset[str]:
    """The engines of a target whose packages are installed; none is imported."""
    known = LIBRARIES.get(target.backend, {})
    return frozenset(engine for engine, package in known.items() if find_spec(package) is not None)
