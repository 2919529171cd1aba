"""tree: the cost model, corrected by a decision tree that was trained on recorded times.

The tree of a target is ``trees/TARGET.json``, written by ``python -m sparsecc.research.train_tree``: nodes with a
feature and a threshold (smaller or equal goes left), leaves with a value. The value of a plan's leaf is the logarithm
(to base 2) of its time over the time that the cost model predicts; :mod:`features` says what a tree sees."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from sparsecc.diagnostics import FileError, TargetError
from sparsecc.selection.calibrations import calibration_of
from sparsecc.selection.candidate import Ranked
from sparsecc.selection.costs import conversions, work_of
from sparsecc.selection.costs.work import total
from sparsecc.selection.problem import Problem
from sparsecc.selection.strategies.features import NAMES, features
from sparsecc.selection.strategies.plain import legal

VERSION = 1


class BadTree(FileError):
    text = "this is no decision tree: {problem}"
    help_text = "train one: python -m sparsecc.research.train_tree TABLE -o FILE"


class NoTree(TargetError):
    text = "no tree has been trained for {target}"
    help_text = "train one on a recorded table (python -m sparsecc.research.train_tree), or name the strategy roofline"


@dataclass(frozen=True)
class DecisionTree:
    """Nodes by number, the root first. Of a leaf ``left`` is -1; ``value`` counts there alone."""

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[float, ...]

    def predict(self, numbers: Sequence[float]) -> float:
        """The value of the leaf that numbers lead to."""
        node = 0
        while self.left[node] >= 0:
            smaller = numbers[self.feature[node]] <= self.threshold[node]
            node = self.left[node] if smaller else self.right[node]
        return self.value[node]

    def to_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "features": list(NAMES),
            **{name: list(getattr(self, name)) for name in FIELDS},
        }

    @staticmethod
    def from_json(data: object, place: str = "") -> DecisionTree:
        """The inverse; every path ends at a leaf. Raises BadTree."""
        if not isinstance(data, dict):
            raise BadTree(place=place, problem="it is not an object")
        found = cast("dict[str, Any]", data)
        if found.get("version") != VERSION or found.get("features") != list(NAMES):
            raise BadTree(place=place, problem="it is of another version, or has other features")
        columns: dict[str, tuple[Any, ...]] = {}
        for name in FIELDS:
            values = found.get(name)
            if not isinstance(values, list) or not values:
                raise BadTree(place=place, problem=f"{name!r} is not a list of numbers")
            columns[name] = tuple(cast("list[Any]", values))
        made = DecisionTree(**columns)
        if problem := made.problem():
            raise BadTree(place=place, problem=problem)
        return made

    def problem(self) -> str:
        """What is wrong with the nodes; empty if nothing is."""
        count = len(self.feature)
        if any(len(getattr(self, name)) != count for name in FIELDS):
            return "its lists have different lengths"
        for n in range(count):
            whole = (self.feature[n], self.left[n], self.right[n])
            if any(type(k) is not int for k in whole):
                return f"node {n} has a number that is not whole"
            if not all(_is_finite(x) for x in (self.threshold[n], self.value[n])):
                return f"node {n} has a number that is not finite"
            if self.left[n] < 0:
                continue
            # Children come after their parent, so every path ends.
            if not all(n < child < count for child in (self.left[n], self.right[n])):
                return f"node {n} has a child that does not come after it"
            if not 0 <= self.feature[n] < len(NAMES):
                return f"node {n} has feature {self.feature[n]}, of {len(NAMES)}"
        return ""


FIELDS = ("feature", "threshold", "left", "right", "value")


def _is_finite(x: object) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)


def read_tree(path: Path) -> DecisionTree:
    """The tree in a file. Raises BadTree, OSError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadTree(place=str(path), problem=str(error)) from None
    return DecisionTree.from_json(data, str(path))


@lru_cache(maxsize=8)
def tree_of(target: str) -> DecisionTree:
    """The tree that ships for a target. Raises NoTree."""
    found = files("sparsecc.selection.strategies").joinpath("trees", f"{target}.json")
    if not found.is_file():
        raise NoTree(target=target)
    return DecisionTree.from_json(json.loads(found.read_text(encoding="utf-8")), found.name)


class Tree:
    """All legal plans by the time that a decision tree predicts. ``tree``: another one than that which ships."""

    name = "tree"

    def __init__(self, tree: DecisionTree | None = None) -> None:
        self.tree = tree

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        """Raises NoTree, NoSuchPlan."""
        plans = legal(problem, self.name)
        tree = self.tree or tree_of(problem.target.name)
        rates = calibration_of(problem.target.name)
        found: list[Ranked] = []
        for plan in plans:
            seconds = 0.0
            parts = work_of(problem, plan, rates)
            for expression, engine, (work, _) in zip(
                problem.expressions, plan.engines, parts, strict=True
            ):
                numbers = features(problem, expression, plan, engine)
                seconds += total(work.seconds(rates)) * 2.0 ** tree.predict(numbers)
            share = conversions(problem, plan, rates)
            found.append(Ranked(plan, seconds + share, {"conversion": share}, "by a trained tree"))
        return sorted(found, key=lambda r: (r.seconds or 0.0, r.candidate))
