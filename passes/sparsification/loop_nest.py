"""Loops of a kernel: at each index the merge lattice says which operands are walked together.

All others are located as soon as their coordinates are bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Region, SSAValue

from sparsecc.diagnostics import LimitError
from sparsecc.dialects import iteration
from sparsecc.dialects.iteration.types import index
from sparsecc.formats import Ability
from sparsecc.passes.sparsification import merge_lattice
from sparsecc.passes.sparsification.term import (
    GenericView,
    Node,
    NotSparsifiable,
)
from sparsecc.passes.sparsification.term_values import State, TermValues

Body = Callable[[State, Sequence[SSAValue]], Sequence[SSAValue]]


MAX_LOOPS = 256


class TooManyLoops(LimitError):
    text = "the term takes more than {limit} loops: every combination of its sparse operands is one"
    help_text = (
        "compute parts of it first, as in 'T[i,j] = A[i,j] + B[i,j]; C[i,j] = T[i,j] + D[i,j]'"
    )


class LoopNest(TermValues):
    """Builds loops in a scheduled order."""

    def __init__(
        self,
        view: GenericView,
        entry: Block,
        order: tuple[int, ...],
        assembly: str,
        vector: tuple[int, ...],
    ) -> None:
        super().__init__(view, entry)
        self.order, self.assembly, self.vector = order, assembly, vector
        self.loop_count = 0
        self.extents: list[SSAValue] = []
        """The extent of each loop, once ``find_extents`` has run."""

    def find_extents(self) -> None:
        self.extents = [self.extent(k) for k in range(self.view.num_loops)]

    def extent(self, loop: int) -> SSAValue:
        for value, access in zip(self.tensors, self.view.inputs, strict=True):
            for dim in range(access.format.rank):
                if access.dim_loop(dim) == loop:
                    return self.dim(value, dim, f"n{self.view.names[loop]}")
        raise NotSparsifiable(problem=f"no operand gives loop {self.view.names[loop]} an extent")

    def locate_all(self, state: State) -> State:
        """Move every cursor down through levels whose coordinates are bound."""
        cursors, depth, dynamic = list(state.cursors), list(state.depth), set(state.dynamic)
        for k, access in enumerate(self.view.inputs):
            if k in state.absent:
                continue
            while depth[k] < access.format.num_levels:
                level = depth[k]
                subscript = access.level_subscript(level)
                if any(state.coordinates[loop] is None for loop, _ in subscript):
                    break
                coordinate = self.coordinate(subscript, state)
                hint = f"{(self.tensors[k].name_hint or 't').lower()}{level + 1}"
                cursors[k] = self.add(
                    iteration.LocateOp(self.tensors[k], cursors[k], coordinate, level), hint
                )
                if not access.format.levels[level].can(Ability.FULL):
                    dynamic.add(k)
                depth[k] += 1
        certain = state.certain and dynamic <= state.dynamic
        return replace(
            state,
            cursors=tuple(cursors),
            depth=tuple(depth),
            dynamic=frozenset(dynamic),
            certain=certain,
        )

    def walks(self, loop: int, state: State) -> dict[int, bool]:
        """Which inputs have a sparse level to walk along a loop."""
        answer: dict[int, bool] = {}
        for k, access in enumerate(self.view.inputs):
            level = state.depth[k]
            answer[k] = (
                k not in state.absent
                and level < access.format.num_levels
                and access.level_index(level) == loop
                and not access.format.levels[level].can(Ability.FULL)
            )
        return answer

    def lattice(self, at: int, state: State, node: Node) -> merge_lattice.Lattice | None:
        return merge_lattice.build(
            node, self.walks(self.order[at], state), state.absent, self.dense
        )

    def iterate(
        self,
        at: int,
        state: State,
        lattice: merge_lattice.Lattice,
        inits: Sequence[SSAValue],
        body: Body,
    ) -> Sequence[SSAValue]:
        """The loop(s) over index ``order[at]``; gives the loop-carried values after them."""
        loop = self.order[at]
        walking = frozenset(k for k, w in self.walks(loop, state).items() if w)
        iterators = lattice.iterators
        number = {k: n for n, k in enumerate(iterators)}
        regions: list[Region] = []
        saved = self.block
        self.loop_count += len(lattice.loops())
        if self.loop_count > MAX_LOOPS:
            raise TooManyLoops(limit=MAX_LOOPS, place=self.view.source)
        for active in lattice.loops():
            members = sorted(active)
            types: list[Attribute] = [
                index,
                *[iteration.cursor] * len(members),
                *(v.type for v in inits),
            ]
            block = Block(arg_types=types)
            block.args[0].name_hint = self.view.names[loop]
            below = lattice.below(active)
            certain = frozenset[int]() if lattice.full else below[0].intersection(*below)
            cursors, depth = list(state.cursors), list(state.depth)
            for k, arg in zip(members, block.args[1:], strict=False):
                arg.name_hint = f"{(self.tensors[k].name_hint or 't').lower()}{depth[k] + 1}"
                cursors[k] = arg
                depth[k] += 1
            for arg, hint in zip(block.args[1 + len(members) :], ("sum", "found"), strict=False):
                arg.name_hint = hint
            coordinates = list(state.coordinates)
            coordinates[loop] = block.args[0]
            inner = State(
                tuple(cursors),
                tuple(depth),
                tuple(coordinates),
                (state.dynamic - active) | (active - certain),
                state.absent | (walking - active),
            )
            self.block = block
            if not lattice.full:
                inner = replace(inner, certain=inner.dynamic <= active)
            carried = self.guarded_visit(loop, inner, block.args[1 + len(members) :], body)
            self.end(iteration.YieldOp(carried))
            regions.append(Region(block))
        self.block = saved
        op = iteration.IterateOp(
            self.view.names[loop],
            self.extents[loop] if lattice.full else None,
            [self.tensors[k] for k in iterators],
            [state.cursors[k] for k in iterators],
            [state.depth[k] for k in iterators],
            [[number[k] for k in sorted(active)] for active in lattice.loops()],
            [[[number[k] for k in sorted(p)] for p in lattice.below(a)] for a in lattice.loops()],
            inits,
            regions,
            self.vector[1:] if self.vector and self.vector[0] == loop else (),
            self.assembled_level(loop),
        )
        self.end(op)
        return op.results

    def guarded_visit(
        self, loop: int, state: State, carried: Sequence[SSAValue], body: Body
    ) -> Sequence[SSAValue]:
        """The body of a visit, run only inside the dimensions."""
        flag = self.inside(loop, state)
        if flag is None:
            return body(self.locate_all(state), carried)
        saved, yes = self.block, Block()
        self.block = yes
        results = body(self.locate_all(state), carried)
        self.end(scf.YieldOp(*results))
        self.block = saved
        no = Region(Block([scf.YieldOp(*carried)])) if carried else Region()
        op = scf.IfOp(flag, [v.type for v in carried], Region(yes), no)
        self.end(op)
        return op.results

    def assembled_level(self, loop: int) -> int | None:
        """The level of the result that takes this loop's coordinates as they come."""
        if self.assembly not in ("append", "workspace") or loop not in self.view.out_indices:
            return None
        levels = [self.view.out.level_index(n) for n in range(self.view.out.format.num_levels)]
        level = levels.index(loop)
        return None if self.assembly == "workspace" and level == len(levels) - 1 else level
