"""One scheduled linalg.generic to one kernel of the iteration dialect.

Loops go outer to inner in the scheduled order. At each loop the merge lattice of the term says which
operands are walked together; all others are located as soon as their coordinates are bound. Loops over
the result's indices come as a nest; reductions inside them are loop-carried values. Factors of a product
that do not depend on an inner reduction are multiplied once, outside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
    i1,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Region, SSAValue

from sparsecc.dialects import iteration
from sparsecc.formats import Ability
from sparsecc.passes.sparsification import merge_lattice
from sparsecc.passes.sparsification.host import initial_value
from sparsecc.passes.sparsification.term import GenericView, Node, NotSparsifiable, Structure, stored_type
from sparsecc.passes.sparsification.term_values import Result, State, TermValues

Body = Callable[[State, Sequence[SSAValue]], Sequence[SSAValue]]


class KernelBuilder(TermValues):
    """Builds ``func.func @name`` from a generic that schedule-loops has annotated."""

    def __init__(self, generic: linalg.GenericOp, name: str) -> None:
        self.generic = generic
        out_type = generic.results[0].type
        assert isinstance(out_type, TensorType)
        self.fn = func.FuncOp(name, FunctionType.from_lists([*(v.type for v in generic.inputs), out_type], []))
        super().__init__(GenericView.of(generic), self.fn.body.block)
        order = generic.attributes.get("sparsecc.order")
        assembly = generic.attributes.get("sparsecc.assembly")
        if not isinstance(order, DenseArrayBase) or not isinstance(assembly, StringAttr):
            raise NotSparsifiable(problem="it is not scheduled; run schedule-loops first")
        self.order = tuple(int(k) for k in order.get_values())
        self.assembly, _, number = assembly.data.partition(":")
        self.pattern = int(number) if number else None
        vector = generic.attributes.get("sparsecc.vector")
        self.vector: tuple[int, ...] = ()
        if isinstance(vector, DenseArrayBase):
            self.vector = tuple(int(k) for k in vector.get_values())
        self.element: Attribute = stored_type(out_type.element_type)
        self.last_out = max((self.order.index(k) for k in self.view.out_indices), default=-1)

    def kernel(self) -> func.FuncOp:
        view, fn = self.view, self.fn
        for arg, value in zip(self.entry.args, [*self.generic.inputs, self.generic.results[0]], strict=True):
            arg.name_hint = value.name_hint
        fn.attributes["iteration.kernel"] = UnitAttr()
        fn.attributes["iteration.assembly"] = StringAttr(self.assembly)
        if self.pattern is not None:
            fn.attributes["iteration.pattern"] = IntegerAttr.from_index_int_value(self.pattern)
        for key in ("sparsecc.source", "sparsecc.place"):
            if key in self.generic.attributes:
                fn.attributes[key] = self.generic.attributes[key]
        fn.attributes["iteration.order"] = ArrayAttr([StringAttr(view.names[k]) for k in self.order])
        fn.attributes["iteration.loops"] = ArrayAttr([StringAttr(name) for name in view.names])
        fn.attributes["iteration.maps"] = self.generic.indexing_maps
        if self.covers_result():
            fn.attributes["iteration.covers"] = UnitAttr()
        if self.assembly in ("append", "workspace", "coordinates"):
            bound = self.bound(view.term)
            if bound is None:
                fn.attributes["iteration.counted"] = UnitAttr()
            else:
                fn.attributes["iteration.bound"] = DenseArrayBase.from_list(i64, bound)
        self.extents = [self.extent(k) for k in range(view.num_loops)]
        roots = [self.add(iteration.RootOp(t), f"{(t.name_hint or 't').lower()}0") for t in self.tensors]
        state = State(tuple(roots), (0,) * len(roots), (None,) * view.num_loops)
        self.nest(0, self.locate_all(state))
        self.end(func.ReturnOp())
        return fn

    def extent(self, loop: int) -> SSAValue:
        for value, access in zip(self.tensors, self.view.inputs, strict=True):
            for dim in range(access.format.rank):
                if access.dim_loop(dim) == loop:
                    return self.dim(value, dim, f"n{self.view.names[loop]}")
        raise NotSparsifiable(problem=f"no operand gives loop {self.view.names[loop]} an extent")

    # -- what the loops do to the result -------------------------------------------------------

    def accumulates(self) -> bool:
        """Whether several visits add to one element of the result."""
        return any(k not in self.view.out_indices for k in self.order[: self.last_out + 1])

    def covers_result(self) -> bool:
        """Whether each element of a dense result is stored exactly once, so that it needs no zeros."""
        if self.assembly != "dense" or self.reads_init() or self.accumulates():
            return False
        for loop in self.view.out_indices:
            walks = {
                a.operand: any(
                    a.level_index(n) == loop and not level.can(Ability.FULL)
                    for n, level in enumerate(a.format.levels)
                )
                for a in self.view.inputs
            }
            lattice = merge_lattice.build(self.view.term, walks, frozenset(), self.dense)
            if lattice is None or not lattice.full:
                return False
        return True

    def bound(self, node: Node) -> list[int] | None:
        """Inputs whose stored entries together are no fewer than the result's; None if nothing is known."""
        wanted = set(self.view.out_indices)
        if self.assembly == "coordinates" or (self.view.reductions and self.assembly != "append"):
            wanted = set(range(self.view.num_loops))
        if not all(level.can(Ability.APPEND) for level in self.view.out.format.levels[self.first_sparse() :]):
            return None
        match node.structure:
            case Structure.LEAF if not self.dense[node.operand] and wanted <= set(node.indices):
                return [node.operand]
            case Structure.KEEP:
                return self.bound(node.kept)
            case Structure.CONJUNCTION:
                return next((b for b in map(self.bound, node.args) if b is not None), None)
            case Structure.DISJUNCTION:
                a, b = map(self.bound, node.args)
                return None if a is None or b is None else [*a, *b]
            case _:
                return None

    def first_sparse(self) -> int:
        full = [level.can(Ability.FULL) for level in self.view.out.format.levels]
        return full.index(False)

    def reads_init(self) -> bool:
        return initial_value(self.generic) is not None

    # -- loops ---------------------------------------------------------------------------------

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
                cursors[k] = self.add(iteration.LocateOp(self.tensors[k], cursors[k], coordinate, level), hint)
                if not access.format.levels[level].can(Ability.FULL):
                    dynamic.add(k)
                depth[k] += 1
        return replace(state, cursors=tuple(cursors), depth=tuple(depth), dynamic=frozenset(dynamic))

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
        return merge_lattice.build(node, self.walks(self.order[at], state), state.absent, self.dense)

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
        for active in lattice.loops():
            members = sorted(active)
            types = [iteration.ops.index, *[iteration.cursor] * len(members), *(v.type for v in inits)]
            block = Block(arg_types=types)
            block.args[0].name_hint = self.view.names[loop]
            below = lattice.below(active)
            certain = frozenset[int]() if lattice.full else frozenset.intersection(*below)
            cursors, depth = list(state.cursors), list(state.depth)
            for k, arg in zip(members, block.args[1:], strict=False):
                arg.name_hint = f"{(self.tensors[k].name_hint or 't').lower()}{depth[k] + 1}"
                cursors[k] = arg
                depth[k] += 1
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

    def nest(self, at: int, state: State) -> None:
        """The loops of the result's indices."""
        if at > self.last_out:
            result = self.reduce(at, state, self.view.term, want_present=self.assembly not in ("dense", "pattern"))
            if result is not None:
                self.insert(result, state)
            return
        if self.assembly == "workspace" and at == self.workspace_at():
            saved, body = self.block, Block()
            self.block = body
            self.plain_loop(at, state)
            self.end(iteration.YieldOp())
            self.block = saved
            level = self.view.out.format.num_levels - 1
            name = self.view.names[self.view.out.level_index(level)]
            self.end(iteration.WorkspaceOp(self.out, level, name, Region(body)))
            return
        self.plain_loop(at, state)

    def workspace_at(self) -> int:
        """The loop that the workspace encloses: the first inside all result indices but the innermost."""
        outer = self.view.out.format.num_levels - 1
        return max((self.order.index(self.view.out.level_index(n)) + 1 for n in range(outer)), default=0)

    def plain_loop(self, at: int, state: State) -> None:
        lattice = self.lattice(at, state, self.view.term)
        if lattice is None:
            return

        def body(inner: State, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.nest(at + 1, inner)
            return carried

        self.iterate(at, state, lattice, [], body)

    # -- values --------------------------------------------------------------------------------

    def reduce(self, at: int, state: State, node: Node, want_present: bool) -> Result | None:
        """The sum of a term over all loops from ``at`` on; None if it is missing."""
        if at == len(self.order):
            return self.evaluate(node, state)
        outer, inner = self.split_factors(node, state.bound())
        if outer and inner is not None:
            assert node.op is not None
            # An empty sum is missing: without knowing it, 0 * inf would become NaN.
            exact = isinstance(self.element, IntegerType)
            result = self.reduce(at, state, inner, want_present or not exact)
            for factor in outer:
                value = self.evaluate(factor, state)
                result = None if result is None or value is None else self.conjunction(node.op, value, result)
            return result
        return self.reduction_loop(at, state, node, want_present)

    def split_factors(self, node: Node, bound: frozenset[int]) -> tuple[list[Node], Node | None]:
        """Factors of a product that are known already, and the product of the others (None: no others)."""
        factors: list[Node] = []

        def flatten(n: Node) -> None:
            if n.structure is Structure.CONJUNCTION and n.op is not None and node.op is not None and n.op.name == node.op.name:
                for arg in n.args:
                    flatten(arg)
            else:
                factors.append(n)

        if node.structure is not Structure.CONJUNCTION or not self.distributes(node):
            return [], node
        flatten(node)
        outer = [f for f in factors if f.indices <= bound]
        rest = [f for f in factors if not f.indices <= bound]
        if not rest:
            return outer, None
        product = rest[0]
        for factor in rest[1:]:
            product = Node(node.structure, node.op, (product, factor), -1, product.indices | factor.indices, node.type)
        return outer, product

    def reduction_loop(self, at: int, state: State, node: Node, want_present: bool) -> Result | None:
        lattice = self.lattice(at, state, node)
        if lattice is None:
            return None
        known = self.known_presence(at, state, node, lattice) if want_present else None
        carry = want_present and known is None
        inits = [self.zero(self.element)]
        if carry:
            inits.append(self.zero(i1))

        def body(inner: State, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            result = self.reduce(at + 1, inner, node, carry)
            if result is None:
                return carried
            total = self.combine(carried[0], self.guarded(result), innermost=at + 1 == len(self.order))
            if not carry:
                return [total]
            present = self.true() if result.present is None else result.present
            return [total, self.add(arith.OrIOp(carried[1], present))]

        results = self.iterate(at, state, lattice, inits, body)
        if carry:
            return Result(results[0], results[1])
        return Result(results[0], known)

    def known_presence(self, at: int, state: State, node: Node, lattice: merge_lattice.Lattice) -> SSAValue | None:
        """Whether the innermost loop visits anything, where that can be told before it runs."""
        if at + 1 < len(self.order) or lattice.full or len(lattice.points) != 1 or len(lattice.iterators) != 1:
            return None
        (walked,) = lattice.iterators
        for k in node.leaves():
            rest = self.view.inputs[k].format.levels[state.depth[k] + (k == walked) :]
            if k in state.absent or (k in state.dynamic and k != walked):
                return None
            if not all(level.can(Ability.FULL) for level in rest):
                return None
        op = iteration.NonemptyOp(self.tensors[walked], state.cursors[walked], state.depth[walked])
        return self.add(op)

    def insert(self, result: Result, state: State) -> None:
        value = self.guarded(result)
        reduced_here = self.last_out + 1 < len(self.order)
        if self.view.negated and not reduced_here:
            assert self.view.combine is not None
            value = self.apply(self.view.combine, [self.zero(self.element), value])
        out = self.view.out
        at = None if self.pattern is None else state.cursors[self.pattern]
        coordinates: list[SSAValue] = []
        if at is None:
            for level in range(out.format.num_levels):
                coordinates.append(self.coordinate(out.level_subscript(level), state))
        present = result.present if self.assembly in ("append", "workspace", "coordinates") else None
        accumulate = self.accumulates() or (self.assembly == "dense" and self.reads_init())
        self.end(iteration.InsertOp(value, self.out, coordinates, at, present, accumulate))
