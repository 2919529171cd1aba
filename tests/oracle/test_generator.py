"""The generator covers what it promises, and is reproducible."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from sparsecc.frontends.ast import Access, Binary, Number, Unary, walk
from sparsecc.frontends.index_notation import parse
from tests.oracle.evaluator import evaluate
from tests.oracle.generator import DENSE, generate, make_operands

CASES = [generate(seed, ("f64", "i32")) for seed in range(400)]


def test_the_same_seed_is_the_same_case() -> None:
    assert CASES[:50] == [generate(seed, ("f64", "i32")) for seed in range(50)]
    first, second = make_operands(CASES[3]), make_operands(CASES[3])
    for name, (values, stored) in first.items():
        np.testing.assert_array_equal(values, second[name][0])
        assert (stored is None) == (second[name][1] is None)


def test_the_language_is_covered() -> None:
    seen: Counter[str] = Counter()
    for case in CASES:
        (statement,) = parse(case.text).statements
        accesses = [node for node in walk(statement.expr) if isinstance(node, Access)]
        uses = Counter(access.name for access in accesses)
        left = set(map(str, getattr(statement.target, "indices", ())))
        for node in walk(statement.expr):
            match node:
                case Binary(op):
                    seen[op] += 1
                case Unary():
                    seen["unary"] += 1
                case Number():
                    seen["constant"] += 1
                case _:
                    pass
        seen["repeated index"] += any(len(set(a.indices)) < len(a.indices) for a in accesses)
        seen["shared"] += any(count > 1 for count in uses.values())
        seen["transposed"] += any(
            a.name == b.name and a.indices != b.indices and set(a.indices) == set(b.indices)
            for a in accesses
            for b in accesses
        )
        seen["sum"] += any(str(i) not in left for a in accesses for i in a.indices)
        seen.update(f"rank {len(shape)}" for shape in case.shapes.values())
        seen.update(f"extent {extent}" for shape in case.shapes.values() for extent in shape)
        seen[f"{len(case.shapes)} operands"] += 1
        seen[f"result rank {len(left)}"] += 1
    wanted = {"+", "-", "*", "/", "unary", "constant", "repeated index", "shared", "transposed"}
    wanted |= {"sum"} | {f"rank {r}" for r in range(5)} | {f"result rank {r}" for r in range(5)}
    wanted |= {f"extent {n}" for n in (0, 1, 2, 3, 5, 7)} | {f"{n} operands" for n in range(1, 5)}
    assert not {what for what in wanted if seen[what] < 3}


def test_patterns_are_varied() -> None:
    masks = [
        stored
        for case in CASES
        for _, stored in make_operands(case).values()
        if stored is not None and stored.ndim == 2 and min(stored.shape) > 2
    ]
    assert any(mask.all() for mask in masks)
    assert any(not mask.any() for mask in masks)
    assert any(mask.all(axis=1).any() and not mask.all() for mask in masks)
    assert any((~mask.any(axis=1)).any() and mask.any() for mask in masks)


def test_dense_operands_have_no_pattern() -> None:
    case = replace(CASES[0], formats=dict.fromkeys(CASES[0].shapes, DENSE))
    assert all(stored is None for _, stored in make_operands(case).values())


def test_every_case_evaluates() -> None:
    for case in CASES:
        values, stored = evaluate(case.text, make_operands(case))
        assert values.shape == stored.shape
        assert not np.asarray(values)[~stored].any()


def test_without_division_all_values_are_finite() -> None:
    for seed in range(100):
        case = generate(seed, division=False)
        assert "/" not in case.text
        assert np.isfinite(evaluate(case.text, make_operands(case))[0]).all()
