"""Training the strategy ``tree`` on a recorded table: ``python -m sparsecc.research.train_tree TABLE -o FILE``.

Needs scikit-learn (``pip install sparsecc[research]``). Problems that are held out are not trained on. A sample is a
plan that was measured; plans far from the best one of their problem weigh less. Its value is the logarithm of the
measured time over the one that the calibration of the target predicts, so train after a new calibration."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from sparsecc.diagnostics import UsageError
from sparsecc.research.fit import momentary
from sparsecc.research.observations import observations, predicted
from sparsecc.research.table import Table, read_table
from sparsecc.selection.calibrations import calibration_of
from sparsecc.selection.problem import Problem
from sparsecc.selection.strategies.features import features
from sparsecc.selection.strategies.tree import DecisionTree

LEAVES = 80
"""At most."""
LEAST_SAMPLES = 30
"""Samples of a leaf: with few, a tree learns the noise of the table."""


class NoLearner(UsageError):
    text = "training needs scikit-learn, which is not installed"
    help_text = "pip install scikit-learn"


def samples(table: Table, held_out: bool = False) -> tuple[Any, Any, Any]:
    """Features, wanted values and weights of the plans of one side of the split."""
    rates = calibration_of(table.target)
    seen = [o for o in observations(table, rates) if o.held_out == held_out]
    moments = momentary(seen, rates)
    rows: list[list[float]] = []
    values: list[float] = []
    for o in seen:
        problem: Problem = table.problem(o.problem)
        (engine,) = o.candidate.engines
        rows.append(features(problem, problem.expressions[0], o.candidate, engine))
        steady = o.seconds * moments[o.problem]
        values.append(float(np.log2(steady / predicted(o, rates))))
    return np.array(rows), np.array(values), np.array([o.weight for o in seen])


def train(table: Table, leaves: int = LEAVES) -> DecisionTree:
    """A tree of the problems that are not held out. Raises NoLearner."""
    try:
        learner: Any = import_module("sklearn.tree")
    except ImportError:
        raise NoLearner() from None
    rows, values, weights = samples(table)
    made = learner.DecisionTreeRegressor(
        max_leaf_nodes=leaves, min_samples_leaf=LEAST_SAMPLES, random_state=0
    )
    made.fit(rows, values, sample_weight=weights)
    return of_sklearn(made.tree_)


def of_sklearn(found: Any) -> DecisionTree:
    """A tree of scikit-learn's arrays, numbered so that children come after their parents."""
    order, waiting = [0], [0]
    while waiting:
        node = waiting.pop(0)
        if found.children_left[node] >= 0:
            children = [int(found.children_left[node]), int(found.children_right[node])]
            order += children
            waiting += children
    place = {node: n for n, node in enumerate(order)}
    leaf = [found.children_left[node] < 0 for node in order]
    return DecisionTree(
        feature=tuple(
            0 if end else int(found.feature[n]) for n, end in zip(order, leaf, strict=True)
        ),
        threshold=tuple(
            0.0 if end else float(found.threshold[n]) for n, end in zip(order, leaf, strict=True)
        ),
        left=tuple(
            -1 if end else place[int(found.children_left[n])]
            for n, end in zip(order, leaf, strict=True)
        ),
        right=tuple(
            -1 if end else place[int(found.children_right[n])]
            for n, end in zip(order, leaf, strict=True)
        ),
        value=tuple(round(float(found.value[n].ravel()[0]), 4) for n in order),
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train a decision tree on a recorded table.")
    parser.add_argument("table", help="a table's name or FOLDER/NAME")
    parser.add_argument("-o", "--output", required=True, help="where to write the tree")
    parser.add_argument("--leaves", type=int, default=LEAVES, help=f"at most (default: {LEAVES})")
    options = parser.parse_args(argv)
    table = read_table(options.table)
    made = train(table, options.leaves)
    text = json.dumps(made.to_json(), separators=(",", ":"))
    Path(options.output).write_text(text + "\n", encoding="utf-8")
    print(f"wrote {options.output}: {len(made.value)} nodes", file=sys.stderr)


if __name__ == "__main__":
    main()
