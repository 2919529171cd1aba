"""Decision trees: what is read, what is refused, what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparsecc.selection.candidate import Candidate
from sparsecc.selection.strategies.features import NAMES, features
from sparsecc.selection.strategies.tree import (
    BadTree,
    DecisionTree,
    NoTree,
    Tree,
    read_tree,
    tree_of,
)
from tests.unit.selection.problems import CPU_ENGINES, SPMM, iid, problem

FORMAT = NAMES.index("format")
STUMP = DecisionTree((FORMAT, 0, 0), (0.5, 0.0, 0.0), (1, -1, -1), (2, -1, -1), (0.0, -20.0, 4.0))
"""Dense plans are far faster than all others."""
GOOD: dict[str, Any] = STUMP.to_json()


def test_a_tree_decides() -> None:
    p = problem(SPMM, statistics={"A": iid(512, 512, density=0.01)}, sizes={"k": 8},
                libraries=CPU_ENGINES)  # fmt: skip
    ranked = Tree(STUMP).rank(p)
    assert {r.candidate.format_of("A") for r in ranked[:2]} == {"dense"}
    assert len(ranked) == len(p.candidates)
    assert [r.seconds for r in ranked] == sorted(r.seconds or 0.0 for r in ranked)


def test_features_are_numbers_of_the_plan() -> None:
    p = problem(SPMM, statistics={"A": iid(511, 255, density=0.1)}, sizes={"k": 7})
    numbers = features(p, p.expressions[0], Candidate.of({"A": "dense"}), "generated")
    found = dict(zip(NAMES, numbers, strict=True))
    assert (found["log_rows"], found["log_columns"], found["log_width"]) == (9, 8, 3)
    assert found["format"] == 0 and found["padding"] > 3
    csr = features(p, p.expressions[0], Candidate.of({"A": "CSR"}), "generated")
    assert dict(zip(NAMES, csr, strict=True))["padding"] == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 2}, "another version"),
        ({"features": ["other"]}, "other features"),
        ({"left": []}, "'left' is not a list"),
        ({"left": [1, -1]}, "different lengths"),
        ({"left": [0, -1, -1]}, "node 0 has a child"),
        ({"left": [7, -1, -1]}, "node 0 has a child"),
        ({"right": [0, -1, -1]}, "node 0 has a child"),
        ({"feature": [99, 0, 0]}, "feature 99"),
        ({"feature": [0.5, 0, 0]}, "not whole"),
        ({"left": [True, -1, -1]}, "not whole"),
        ({"threshold": [float("nan"), 0, 0]}, "not finite"),
        ({"value": ["x", 0, 0]}, "not finite"),
    ],
)
def test_hostile_trees(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = tmp_path / "tree.json"
    path.write_text(json.dumps({**GOOD, **change}))
    with pytest.raises(BadTree, match=says):
        read_tree(path)


def test_a_good_file_and_no_file(tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(GOOD))
    assert read_tree(path) == STUMP
    path.write_text("[" * 100_000)
    with pytest.raises(BadTree):
        read_tree(path)
    with pytest.raises(NoTree, match="sm_80"):
        tree_of("sm_80")


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_what_ships(target: str) -> None:
    assert len(tree_of(target).value) > 20
