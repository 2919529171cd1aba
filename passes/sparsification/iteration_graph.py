"""Iteration graphs: in which order the loops can go, and what has to give way where they can't.

Nodes are loop indices; an edge i -> j says "i outside j", since an operand stores j's coordinates below
i's. Each operand is a set of edges, the result another (to be appended in order, its reductions must not
stand outside all but its last index). Where the union has a cycle the cheapest sets are dropped: a dropped
operand is converted, a dropped result is assembled in another order or as unsorted coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import networkx as nx

from sparsecc.formats import Ability
from sparsecc.passes.sparsification.term import Access, GenericView

CONVERT_OPERAND, REORDER_RESULT, UNSORTED_RESULT = 1.0, 1.2, 1.9
"""Relative costs of giving way; conversions are linear passes, unsorted coordinates need a sort."""


@dataclass(frozen=True)
class LoopOrder:
    """Loops outer to inner; inputs to convert so that they can be walked so; the result's level order
    (None: coordinates come unsorted)."""

    order: tuple[int, ...]
    converted: tuple[int, ...]
    out_order: tuple[int, ...] | None


Edges = set[tuple[int, int]]


def operand_edges(access: Access) -> Edges:
    """Every sparse level comes after all levels above it."""
    edges: Edges = set()
    for level, kind in enumerate(access.format.levels):
        if kind.can(Ability.FULL):
            continue
        inner = access.level_index(level)
        edges |= {(access.level_index(k), inner) for k in range(level)} - {(inner, inner)}
    return edges


def result_edges(out_order: Sequence[int], reductions: Sequence[int]) -> Edges:
    """Levels in order; reductions inside all but the innermost level (there a workspace helps)."""
    edges = {(a, b) for a, b in zip(out_order, out_order[1:], strict=False)}
    return edges | {(a, r) for a in out_order[:-1] for r in reductions}


def order_loops(view: GenericView, out_order: tuple[int, ...] | None) -> LoopOrder:
    """The cheapest order. ``out_order``: loop indices of the result's levels, or None if it is dense."""
    operands = [(a, operand_edges(a)) for a in view.inputs]
    fixed = [(k, edges) for k, (_, edges) in enumerate(operands) if edges]
    outs: list[tuple[float, tuple[int, ...] | None]]
    if out_order is None:
        outs = [(0.0, None)]
    else:
        others = [p for p in permutations(out_order) if p != out_order] if len(out_order) <= 4 else []
        outs = [(0.0, out_order), *((REORDER_RESULT, p) for p in others), (UNSORTED_RESULT, None)]
    drops = [c for n in range(len(fixed) + 1) for c in combinations(range(len(fixed)), n)]
    candidates = sorted(
        ((cost + CONVERT_OPERAND * len(drop), n, drop, out) for n, (cost, out) in enumerate(outs) for drop in drops),
        key=lambda c: (c[0], c[1], len(c[2])),
    )
    # Loops of the result come first, so that a reduction stays in a register.
    rank = {k: n for n, k in enumerate([*(out_order or view.out_indices), *view.reductions])}
    for _, _, drop, out in candidates:
        graph = nx.DiGraph()
        graph.add_nodes_from(range(view.num_loops))
        for n, (_, edges) in enumerate(fixed):
            if n not in drop:
                graph.add_edges_from(edges)
        if out is not None:
            graph.add_edges_from(result_edges(out, view.reductions))
        try:
            order = tuple(nx.lexicographical_topological_sort(graph, key=lambda k: rank[k]))
        except nx.NetworkXUnfeasible:
            continue
        return LoopOrder(order, tuple(fixed[n][0] for n in drop), out)
    raise AssertionError("dropping every constraint leaves a graph without edges")
