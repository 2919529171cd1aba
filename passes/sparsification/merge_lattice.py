"""Merge lattices: which operands are walked together along one index, and in which loops.

For ``A + B`` with both compressed along j there are three loops: while both last, then what is left of
either. For ``A * B`` there is one. ``(A + B) * D`` has {A,B,D}, {A,D}, {B,D}. A term that is stored
everywhere along j makes the lattice *full*: every coordinate is visited, sparse operands go alongside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparsecc.passes.sparsification.term import Node, Structure

Point = frozenset[int]


@dataclass(frozen=True)
class Lattice:
    """``points`` are sets of inputs whose joint presence makes the term stored; largest first."""

    full: bool
    points: tuple[Point, ...]

    @property
    def iterators(self) -> tuple[int, ...]:
        """All inputs that are walked."""
        return tuple(sorted(frozenset[int]().union(*self.points)))

    def loops(self) -> tuple[Point, ...]:
        """One loop for each point, largest first; a full lattice is one loop over everything."""
        return (frozenset(self.iterators),) if self.full else self.points

    def below(self, loop: Point) -> tuple[Point, ...]:
        """The minimal points that can be visited in a loop."""
        inside = [p for p in self.points if p <= loop]
        return tuple(p for p in inside if not any(q < p for q in inside))


FULL = Lattice(True, (frozenset(),))


def is_stored_everywhere(node: Node, dense: Mapping[int, bool]) -> bool:
    """Whether a denominator can't be missing: built of dense operands and constants alone."""
    return all(dense[k] for k in node.leaves())


def build(
    node: Node, walks: Mapping[int, bool], absent: frozenset[int], dense: Mapping[int, bool]
) -> Lattice | None:
    """The lattice of a term along one index, or None if it is missing altogether.

    ``walks[k]``: input k has a sparse level to walk along the index; the others are there or located.
    ``absent``: inputs known to be missing. ``dense[k]``: all levels of input k are full."""
    match node.structure:
        case Structure.LEAF:
            if node.operand in absent:
                return None
            return Lattice(False, (frozenset({node.operand}),)) if walks[node.operand] else FULL
        case Structure.CONSTANT | Structure.ANY:
            return _with_iterators(FULL, node, walks, absent)
        case Structure.KEEP:
            parts = [
                build(a, walks, absent, dense)
                for a in node.args
                if a.structure is not Structure.CONSTANT
            ]
            return _any(parts)
        case Structure.DISJUNCTION:
            return _any([build(a, walks, absent, dense) for a in node.args])
        case Structure.QUOTIENT if not is_stored_everywhere(node.args[1], dense):
            return _with_iterators(FULL, node, walks, absent)
        case _:
            parts = [build(a, walks, absent, dense) for a in node.args]
            result = parts[0]
            for part in parts[1:]:
                result = None if result is None or part is None else _both(result, part)
            return result


def _with_iterators(
    lattice: Lattice, node: Node, walks: Mapping[int, bool], absent: frozenset[int]
) -> Lattice:
    """A full lattice that still walks the sparse inputs of a term alongside, in every combination."""
    alongside: list[Lattice | None] = [
        Lattice(False, (frozenset({k}),))
        for k in sorted(set(node.leaves()))
        if walks[k] and k not in absent
    ]
    result = _any([lattice, *alongside])
    assert result is not None
    return result


def _both(a: Lattice, b: Lattice) -> Lattice:
    return _sorted(a.full and b.full, {p | q for p in a.points for q in b.points})


def _any(parts: list[Lattice | None]) -> Lattice | None:
    result: Lattice | None = None
    for part in parts:
        if part is None or result is None:
            result = part if result is None else result
            continue
        points = {p | q for p in result.points for q in part.points} | {
            *result.points,
            *part.points,
        }
        result = _sorted(result.full or part.full, points)
    return result


def _sorted(full: bool, points: set[Point]) -> Lattice:
    return Lattice(full, tuple(sorted(points, key=lambda p: (-len(p), sorted(p)))))


def pattern_leaf(node: Node, dense: Mapping[int, bool]) -> int | None:
    """The input where a term is stored, and nowhere else; -1 if it is stored everywhere, None otherwise."""
    match node.structure:
        case Structure.LEAF:
            return -1 if dense[node.operand] else node.operand
        case Structure.CONSTANT:
            return -1
        case Structure.KEEP:
            return pattern_leaf(node.kept, dense)
        case Structure.CONJUNCTION:
            found = {pattern_leaf(a, dense) for a in node.args} - {-1}
            return None if None in found or len(found) > 1 else found.pop() if found else -1
        case Structure.QUOTIENT if pattern_leaf(node.args[1], dense) == -1:
            return pattern_leaf(node.args[0], dense)
        case _:
            return None
