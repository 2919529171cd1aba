"""One scheduled linalg.generic to one kernel of the iteration dialect.

Loops go outer to inner in the scheduled order. Loops over the result's indices come as a nest;
reductions inside them are loop-carried values. Factors of a product that do not depend on an inner
reduction are multiplied once, outside of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Region, SSAValue

from sparsecc.dialects import iteration
from sparsecc.formats import Ability
from sparsecc.passes.sparsification import merge_lattice
from sparsecc.passes.sparsification.host import initial_constant, initial_value
from sparsecc.passes.sparsification.loop_nest import LoopNest
from sparsecc.passes.sparsification.term import (
    GenericView,
    Node,
    NotSparsifiable,
    Structure,
)
from sparsecc.passes.sparsification.term_values import Result, State


class KernelBuilder(LoopNest):
    """Builds ``func.func @name`` from a generic that schedule-loops has annotated."""

    def __init__(self, generic: linalg.GenericOp, name: str) -> None:
        self.generic = generic
        out_type = generic.results[0].type
        self.fn = func.FuncOp(
            name, FunctionType.from_lists([*(v.type for v in generic.inputs), out_type], [])
        )
        order = generic.attributes.get("sparsecc.order")
        assembly = generic.attributes.get("sparsecc.assembly")
        vector = generic.attributes.get("sparsecc.vector")
        if not isinstance(order, DenseArrayBase) or not isinstance(assembly, StringAttr):
            raise NotSparsifiable(problem="it is not scheduled; run schedule-loops first")
        kind, _, number = assembly.data.partition(":")
        self.pattern = int(number) if number else None
        super().__init__(
            GenericView.of(generic),
            self.fn.body.block,
            tuple(int(k) for k in order.get_values()),
            kind,
            tuple(int(k) for k in vector.get_values())
            if isinstance(vector, DenseArrayBase)
            else (),
        )
        self.element: Attribute = self.view.sum_type
        self.last_out = max((self.order.index(k) for k in self.view.out_indices), default=-1)

    def kernel(self) -> func.FuncOp:
        view, fn = self.view, self.fn
        for arg, value in zip(
            self.entry.args, [*self.generic.inputs, self.generic.results[0]], strict=True
        ):
            arg.name_hint = value.name_hint
        fn.attributes["iteration.kernel"] = UnitAttr()
        fn.attributes["iteration.assembly"] = StringAttr(self.assembly)
        if self.pattern is not None:
            fn.attributes["iteration.pattern"] = IntegerAttr.from_index_int_value(self.pattern)
        constant = initial_constant(self.generic)
        if constant is not None:
            if self.assembly != "dense":
                raise NotSparsifiable(problem="its sparse result starts from a number other than 0")
            fn.attributes["iteration.fill"] = constant
        for key in ("sparsecc.source", "sparsecc.place", "sparsecc.format_reason"):
            if key in self.generic.attributes:
                fn.attributes[key] = self.generic.attributes[key]
        fn.attributes["iteration.order"] = ArrayAttr(
            [StringAttr(view.names[k]) for k in self.order]
        )
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
        self.find_extents()
        roots = [
            self.add(iteration.RootOp(t), f"{(t.name_hint or 't').lower()}0") for t in self.tensors
        ]
        state = State(tuple(roots), (0,) * len(roots), (None,) * view.num_loops)
        self.nest(0, self.locate_all(state))
        self.end(func.ReturnOp())
        for op in reversed(list(self.entry.ops)):
            if isinstance(op, tensor.DimOp | arith.ConstantOp) and op.result.first_use is None:
                op.detach()
                op.erase()
        return fn

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
        if not all(
            level.can(Ability.APPEND)
            for level in self.view.out.format.levels[self.first_sparse() :]
        ):
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
        return initial_value(self.generic) is not None or initial_constant(self.generic) is not None

    # -- loops ---------------------------------------------------------------------------------

    def nest(self, at: int, state: State) -> None:
        """The loops of the result's indices."""
        if at > self.last_out:
            result = self.reduce(
                at, state, self.view.term, want_present=self.assembly not in ("dense", "pattern")
            )
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
        return max(
            (self.order.index(self.view.out.level_index(n)) + 1 for n in range(outer)), default=0
        )

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
            result = self.evaluate(node, state)
            return Result(result.value) if result is not None and state.certain else result
        outer, inner = self.split_factors(node, state.bound())
        if outer and inner is not None:
            assert node.op is not None
            # An empty sum is missing: without knowing it, 0 * inf would become NaN.
            exact = isinstance(self.element, IntegerType)
            result = self.reduce(at, state, inner, want_present or not exact)
            for factor in outer:
                value = self.evaluate(factor, state)
                result = (
                    None
                    if result is None or value is None
                    else self.conjunction(node.op, value, result)
                )
            return result
        return self.reduction_loop(at, state, node, want_present)

    def split_factors(self, node: Node, bound: frozenset[int]) -> tuple[list[Node], Node | None]:
        """Factors of a product that are known already, and the product of the others (None: no others)."""
        factors: list[Node] = []

        def flatten(n: Node) -> None:
            if (
                n.structure is Structure.CONJUNCTION
                and n.op is not None
                and node.op is not None
                and n.op.name == node.op.name
            ):
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
            product = Node(
                node.structure,
                node.op,
                (product, factor),
                -1,
                product.indices | factor.indices,
                node.type,
            )
        return outer, product

    def reduction_loop(
        self, at: int, state: State, node: Node, want_present: bool
    ) -> Result | None:
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
            total = self.combine(
                carried[0], self.guarded(result), innermost=at + 1 == len(self.order)
            )
            if not carry:
                return [total]
            present = self.true() if result.present is None else result.present
            return [total, self.add(arith.OrIOp(carried[1], present))]

        results = self.iterate(at, state, lattice, inits, body)
        if carry:
            return Result(results[0], results[1])
        return Result(results[0], known)

    def known_presence(
        self, at: int, state: State, node: Node, lattice: merge_lattice.Lattice
    ) -> SSAValue | None:
        """Whether the innermost loop visits anything, where that can be told before it runs."""
        if (
            at + 1 < len(self.order)
            or lattice.full
            or len(lattice.points) != 1
            or len(lattice.iterators) != 1
        ):
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
        present = (
            result.present if self.assembly in ("append", "workspace", "coordinates") else None
        )
        accumulate = self.accumulates() or (self.assembly == "dense" and self.reads_init())
        if self.view.rounding is not None:
            if accumulate or self.assembly in ("workspace", "coordinates"):
                raise NotSparsifiable(
                    problem="its sums would be rounded at each step; run widen-sums before schedule-loops"
                )
            value = self.apply(self.view.rounding, [value])
        self.end(iteration.InsertOp(value, self.out, coordinates, at, present, accumulate))
