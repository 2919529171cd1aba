"""Training the strategy ``tree`` on a recorded table: ``python -m sparsecc.research.train_tree TABLE -o FILE``.

Needs scikit-learn (``pip install sparsecc[research]``). Problems that are held out are not trained on. A sample is a
plan that was measured; plans far from the best one of their problem weigh less."""

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
from sparsecc.research.fit import LEAST_WEIGHT
from sparsecc.research.table import Table, read_table
from sparsecc.selection.problem import Problem
from sparsecc.selection.strategies.features import features
from sparsecc.selection.strategies.tree import DecisionTree

LEAVES = 300
"""At most; 30 kB of JSON."""
LEAST_SAMPLES = 4
"""Samples of a leaf."""


class NoLearner(UsageError):
    text = "training needs scikit-learn, which is not installed"
    help_text = "pip install scikit-learn"


def samples(table: Table, held_out: bool) -> tuple[Any, Any, Any]:
    """Features, wanted values and weights of the plans of one side of the split."""
    rows: list[list[float]] = []
    values: list[float] = []
    weights: list[float] = []
    for id, entry in table.problems.items():
        times = table.runs(id)
        if entry.held_out != held_out or not times:
            continue
        problem: Problem = table.problem(id)
        best = times[0].seconds or 1.0
        for time in times:
            assert time.seconds is not None
            (engine,) = time.candidate.engines
            numbers, reference = features(problem, problem.expressions[0], time.candidate, engine)
            rows.append(numbers)
            values.append(float(np.log2(time.seconds / reference)))
            weights.append(max(LEAST_WEIGHT, best / time.seconds))
    return np.array(rows), np.array(values), np.array(weights)


def train(table: Table, leaves: int = LEAVES) -> DecisionTree:
    """A tree of the problems that are not held out. Raises NoLearner."""
    try:
        learner: Any = import_module("sklearn.tree")
    except ImportError:
        raise NoLearner() from None
    rows, values, weights = samples(table, held_out=False)
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
