"""Iteration graphs: in which order the loops can go, and what has to give way where they can't.

Nodes are loop indices; an edge i -> j says "i outside j", since an operand stores j's coordinates below
i's. Each operand is a set of edges, the result another (to be appended in order, its reductions must not
stand outside all but its last index). Where the union has a cycle the cheapest sets are dropped: a dropped
operand is converted, a dropped result is assembled in another order or as unsorted coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product

import networkx as nx

from sparsecc.formats import Ability
from sparsecc.passes.sparsification import merge_lattice
from sparsecc.passes.sparsification.term import Access, GenericView

CONVERT_OPERAND, REORDER_RESULT, UNSORTED_RESULT, SWEEP = 1.0, 1.2, 1.9, 4.0
"""Relative costs of giving way: conversions are linear passes, unsorted coordinates need a sort, and a sweep
multiplies the extents of loops that have nothing to do with each other."""


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
        outer = {loop for k in range(level) for loop, _ in access.level_subscript(k)} - {inner}
        edges |= {(loop, inner) for loop in outer}
    return edges


def result_edges(out_order: Sequence[int], reductions: Sequence[int]) -> Edges:
    """Levels in order; reductions inside all but the innermost level (there a workspace helps)."""
    edges = {(a, b) for a, b in zip(out_order, out_order[1:], strict=False)}
    return edges | {(a, r) for a in out_order[:-1] for r in reductions}


def digit_edges(view: GenericView) -> Edges:
    """The number of a block before the place inside it."""
    return {
        (a[0], b[0])
        for access in [*view.inputs, view.out]
        for subscript in access.subscripts
        for a, b in zip(subscript, subscript[1:], strict=False)
    }


def order_loops(
    view: GenericView, out_order: tuple[int, ...] | None, sums_inside: bool = False
) -> LoopOrder:
    """The cheapest order. ``out_order``: loop indices of the result's levels, or None if it is dense.
    ``sums_inside``: reductions stand inside all loops of the result, so that nothing is added to in memory."""
    fixed = [(k, edges) for k, edges in enumerate(map(operand_edges, view.inputs)) if edges]
    outs: list[tuple[float, tuple[int, ...] | None]] = [(0.0, out_order)]
    if out_order is not None:
        others = permutations(out_order) if len(out_order) <= 4 else ()
        outs += [(REORDER_RESULT, p) for p in others if p != out_order] + [(UNSORTED_RESULT, None)]
    # An operand is walked as it is, follows the other constraints, or (a matrix) is walked the other way.
    ways: list[list[Edges | None]] = [
        [edges, set[tuple[int, int]](), *([{(b, a) for a, b in edges}] if len(edges) == 1 else [])]
        for _, edges in fixed
    ]
    candidates = sorted(
        (
            (cost + CONVERT_OPERAND * sum(way > 0 for way in choice), n, choice, out)
            for n, (cost, out) in enumerate(outs)
            for choice in product(*(range(len(w)) for w in ways))
        ),
        key=lambda c: c[:3],
    )
    # Loops of the result come first, so that a reduction stays in a register.
    rank = {k: n for n, k in enumerate([*(out_order or view.out_indices), *view.reductions])}
    digits = digit_edges(view)
    if sums_inside:
        digits |= {(k, r) for k in view.out_indices for r in view.reductions}
    best: tuple[float, LoopOrder] | None = None
    for cost, _, choice, out in candidates:
        if best is not None and best[0] <= cost:
            break
        edges = digits.union(*(ways[n][way] or () for n, way in enumerate(choice)))
        if out is not None:
            edges |= result_edges(out, view.reductions)
        order = sorted_loops(view.num_loops, edges, rank)
        if order is None:
            continue
        converted = tuple(fixed[n][0] for n, way in enumerate(choice) if way)
        total = cost + SWEEP * sweeps(view, order, converted)
        if best is None or total < best[0]:
            best = (total, LoopOrder(order, converted, out))
    assert best is not None, "without constraints every order is possible"
    return best[1]


def sorted_loops(count: int, edges: Edges, rank: dict[int, int]) -> tuple[int, ...] | None:
    """The loops in an order that respects the edges, by rank where they leave it open; None if they can't be."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    try:
        return tuple(nx.lexicographical_topological_sort(graph, key=rank.__getitem__))
    except nx.NetworkXUnfeasible:
        return None


def sweeps(view: GenericView, order: tuple[int, ...], converted: tuple[int, ...]) -> int:
    """How many loops sweep all coordinates of an index, inside loops that the sparse operand with that index
    knows nothing of: for ``C[i,j] = A[i,k] * B[j,k]`` in the order i, j, k every row of B is visited for every
    row of A, however few of them meet."""
    dense = {k: a.format.is_dense for k, a in enumerate(view.inputs)}
    count = 0
    for at, loop in enumerate(order):
        sparse = [k for k, a in enumerate(view.inputs) if not dense[k] and loop in a.indices]
        walks = {
            k: k in sparse and not full_at(view.inputs[k], loop, order, k in converted)
            for k in dense
        }
        lattice = merge_lattice.build(view.term, walks, frozenset(), dense)
        outside = set(order[:at])
        known = any(
            outside <= set(view.inputs[k].indices) or below_sparse(view.inputs[k], loop)
            for k in sparse
        )
        if sparse and not known and lattice is not None and lattice.full:
            count += 1
    return count


def below_sparse(access: Access, loop: int) -> bool:
    """Whether an operand's level of a loop stands below a sparse one: its coordinates are stored ones."""
    for level, kind in enumerate(access.format.levels):
        if loop in {k for k, _ in access.level_subscript(level)}:
            return False
        if not kind.can(Ability.FULL):
            return True
    return False


def full_at(access: Access, loop: int, order: tuple[int, ...], converted: bool) -> bool:
    """Whether an operand's level of a loop has every coordinate."""
    if converted:
        # By rows if it is a matrix, compressed in every level otherwise.
        first = min(access.indices, key=order.index)
        return len(access.indices) == 2 and loop == first
    levels = [
        n
        for n in range(access.format.num_levels)
        if loop in {k for k, _ in access.level_subscript(n)}
    ]
    return all(access.format.levels[n].can(Ability.FULL) for n in levels)
