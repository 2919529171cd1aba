"""lower-iteration: kernels of the iteration dialect become loops over positions, coordinates and values.

Before::

    %s = iterate %A, %a1, %zero {index = "j", levels = [1], …} ({ ^(%j, %a2, %sum): … value %A, %a2 … })

After::

    %lo = load %A_positions1[%i]; %hi = load %A_positions1[%i + 1]
    %s = scf.for %p = %lo to %hi iter_args(%sum = %zero) { %j = load %A_coordinates1[%p]; … %A_values[%p] … }

A kernel whose result size is not known beforehand becomes two functions: ``k_count`` and ``k``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    VectorType,
    i1,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from sparsecc.diagnostics import InternalError
from sparsecc.dialects import iteration
from sparsecc.formats import Ability, Format, Level
from sparsecc.formats.builder import LevelCode
from sparsecc.passes.sparsification.assembly import ASSEMBLIES, Assembly
from sparsecc.passes.sparsification.kernel_arguments import Arguments, buffer, element_type
from sparsecc.passes.sparsification.loop_builder import ScfBuilder
from sparsecc.passes.sparsification.sorting import sort_function
from sparsecc.passes.sparsification.term import stored_type, tensor_format


@dataclass(frozen=True)
class LowerIteration(ModulePass):
    """iteration kernels -> scf loops over memrefs."""

    name = "lower-iteration"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sorts = False
        for fn in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            if "iteration.kernel" not in fn.attributes:
                continue
            assert fn.parent is not None
            sorts = sorts or fn.attributes.get("iteration.assembly") == StringAttr("workspace")
            if "iteration.counted" in fn.attributes:
                fn.parent.insert_op_before(KernelLowering(fn, counting=True).run(), fn)
            fn.parent.insert_op_before(KernelLowering(fn, counting=False).run(), fn)
            fn.detach()
            fn.erase()
        if sorts:
            op.body.block.add_op(sort_function())


@dataclass(frozen=True)
class Cursor:
    """A node at run time. ``segment_end``: below a nonunique level it is the positions [position, end).
    ``flag``: whether it is there (None: always). ``safe``: its position can be read even if it is not.
    ``width`` > 1: so many consecutive positions at once."""

    position: SSAValue
    segment_end: SSAValue | None = None
    flag: SSAValue | None = None
    safe: bool = True
    width: int = 1


class KernelLowering:
    """One kernel to one function of loops; ``counting``: it only finds how much it would store."""

    def __init__(self, kernel: func.FuncOp, counting: bool) -> None:
        self.kernel = kernel
        self.counting = counting
        self.formats: dict[SSAValue, Format] = {}
        self.owners: dict[SSAValue, str] = {}
        self.values: dict[SSAValue, SSAValue] = {}
        self.cursors: dict[SSAValue, Cursor] = {}
        self.width = 1
        self.args = Arguments()
        *inputs, self.out = kernel.body.block.args
        for number, arg in enumerate([*inputs, self.out]):
            self.owners[arg] = "out" if arg is self.out else f"in{number}"
            self.formats[arg] = tensor_format(arg.type)
        name = kernel.attributes["iteration.assembly"]
        assert isinstance(name, StringAttr)
        for arg in inputs:
            owner = self.owners[arg]
            self.args.request(f"{owner}.values", buffer(stored_type(element_type(arg.type))))
            self.args.request_arrays(owner, self.formats[arg])
            self.args.request_dims(owner, self.formats[arg].rank)
        element = stored_type(element_type(self.out.type))
        self.args.request_dims("out", self.formats[self.out].rank)
        self.assembly: Assembly = ASSEMBLIES[name.data](self.formats[self.out], element, counting)
        self.assembly.request(self.args)

    def run(self) -> func.FuncOp:
        name = self.kernel.sym_name.data + ("_count" if self.counting else "")
        fn = func.FuncOp(name, FunctionType.from_lists(self.args.types, []))
        fn.attributes.update({k: v for k, v in self.kernel.attributes.items() if k != "iteration.kernel"})
        fn.attributes["loops.args"] = ArrayAttr([StringAttr(r) for r in self.args.roles])
        block = fn.body.block
        self.args.bind(list(block.args))
        self.b = ScfBuilder(block)
        self.assembly.begin(self.b, self.args)
        self.lower_block(self.kernel.body.block)
        self.assembly.finish()
        self.b.do(func.ReturnOp())
        return fn

    # -- operations ----------------------------------------------------------------------------

    def lower_block(self, block: Block) -> Sequence[SSAValue]:
        """Lower a block's operations; gives what its terminator yields."""
        for op in block.ops:
            if isinstance(op, iteration.YieldOp):
                return [self.get(v) for v in op.values]
            self.lower(op)
        return []

    def get(self, value: SSAValue) -> SSAValue:
        return self.values[value]

    def lower(self, op: Operation) -> None:
        match op:
            case tensor.DimOp():
                number = op.index.owner
                assert isinstance(number, arith.ConstantOp) and isinstance(number.value, IntegerAttr)
                self.values[op.result] = self.args[f"{self.owners[op.source]}.dim{number.value.value.data}"]
            case arith.ConstantOp() if isinstance(op.value, IntegerAttr) and op.result.type == self.b.index(0).type:
                self.values[op.result] = self.b.index(op.value.value.data)
            case iteration.RootOp():
                self.cursors[op.result] = Cursor(self.b.index(0))
            case iteration.LocateOp():
                self.cursors[op.result] = self.locate(op)
            case iteration.ValueOp():
                self.values[op.result] = self.value(op)
            case iteration.PresentOp():
                flag = self.cursors[op.at].flag
                self.values[op.result] = self.b.true() if flag is None else flag
            case iteration.NonemptyOp():
                lo, hi = self.bounds(op.tensor, self.cursors[op.at], op.level.value.data)
                self.values[op.result] = self.b.lt(lo, hi)
            case iteration.IterateOp():
                self.iterate(op)
            case iteration.WorkspaceOp():
                self.assembly.open_workspace()
                self.lower_block(op.body[0].block)
                self.assembly.close_workspace([self.size(op.out, n) for n in range(self.formats[op.out].num_levels)])
            case iteration.InsertOp():
                self.insert(op)
            case func.ReturnOp():
                pass
            case _ if not op.regions:
                self.copy(op)
            case _:
                raise InternalError(f"no lowering for {op.name}")

    def copy(self, op: Operation) -> None:
        """A scalar operation; if an operand is a vector the others are broadcast and the result is one."""
        operands = [self.get(v) for v in op.operands]
        types = [r.type for r in op.results]
        if any(isinstance(v.type, VectorType) for v in operands):
            first = 1 if isinstance(op, arith.SelectOp) else 0
            operands = [v if n < first else self.b.broadcast(v, self.width) for n, v in enumerate(operands)]
            types = [VectorType(t, [self.width]) for t in types]
        new = op.create(
            operands=operands, result_types=types, properties=dict(op.properties), attributes=dict(op.attributes)
        )
        self.b.do(new)
        self.values.update(zip(op.results, new.results, strict=True))

    # -- cursors -------------------------------------------------------------------------------

    def size(self, tensor_: SSAValue, level: int) -> SSAValue:
        """The size of a level."""
        expr = self.formats[tensor_].exprs[level]
        return self.args[f"{self.owners[tensor_]}.dim{expr.dim}"]

    def code(self, tensor_: SSAValue, level: int) -> tuple[Level, LevelCode]:
        kind = self.formats[tensor_].levels[level]
        return kind, self.args.level_code(self.owners[tensor_], level, self.size(tensor_, level))

    def bounds(self, tensor_: SSAValue, parent: Cursor, level: int) -> tuple[SSAValue, SSAValue]:
        """The positions of a cursor's children; none if the cursor is not there."""
        if parent.segment_end is not None:
            # Below a nonunique level the children are the positions of the segment, empty if absent.
            return parent.position, parent.segment_end
        kind, code = self.code(tensor_, level)
        if parent.flag is None:
            return kind.bounds(self.b, code, parent.position)
        zero = self.b.index(0)
        lo, hi = self.b.either(
            parent.flag, lambda: kind.bounds(self.b, code, parent.position), lambda: [zero, zero], [zero.type] * 2
        )
        return lo, hi

    def locate(self, op: iteration.LocateOp) -> Cursor:
        b, level = self.b, op.level.value.data
        parent, coordinate = self.cursors[op.above], self.get(op.coordinate)
        kind, code = self.code(op.tensor, level)
        if kind.can(Ability.FULL):
            position, _ = kind.locate(b, code, parent.position, coordinate)
            wide = self.width if coordinate is self.vector_index else 1
            return Cursor(position, None, parent.flag, parent.safe, max(wide, parent.width))
        if parent.segment_end is None and parent.flag is None and kind.can(Ability.LOCATE):
            position, found = kind.locate(b, code, parent.position, coordinate)
            return Cursor(position, None, found, found is None)
        lo, hi = self.bounds(op.tensor, parent, level)
        position = b.scan(lo, hi, lambda p: b.lt(kind.coordinate(b, code, parent.position, p), coordinate))

        def same(p: SSAValue) -> SSAValue:
            return b.eq(kind.coordinate(b, code, parent.position, p), coordinate)

        if kind.unique:
            return Cursor(position, None, b.guarded(b.lt(position, hi), lambda: same(position)), False)
        end = b.scan(position, hi, same)
        return Cursor(position, end, b.lt(position, end), False)

    def value(self, op: iteration.ValueOp) -> SSAValue:
        b, at = self.b, self.cursors[op.at]
        values = self.args[f"{self.owners[op.tensor]}.values"]
        if at.flag is None:
            return b.load_value(values, at.position, at.width)
        zero = b.add_op(arith.ConstantOp(IntegerAttr(0, i1))) if op.result.type == i1 else None
        zero = self.zero_like(op) if zero is None else zero
        zero = b.broadcast(zero, at.width)
        if at.safe:
            return b.select(at.flag, b.load_value(values, at.position, at.width), zero)
        return b.either(
            at.flag, lambda: [b.load_value(values, at.position, at.width)], lambda: [zero], [zero.type]
        )[0]

    def zero_like(self, op: iteration.ValueOp) -> SSAValue:
        from sparsecc.passes.sparsification.kernel_builder import zero_ops

        ops = zero_ops(op.result.type)
        for zero in ops:
            self.b.do(zero)
        return ops[-1].results[0]

    def insert(self, op: iteration.InsertOp) -> None:
        coordinates = [self.get(c) for c in op.coordinates]
        sizes = [self.size(op.out, n) for n in range(len(coordinates))]
        present = None if op.present is None else self.get(op.present)
        position = None if op.at is None else self.cursors[op.at].position
        value = self.get(op.value)
        if self.vector_index is not None:
            value = self.b.broadcast(value, self.width)
        self.b.when(
            present,
            lambda: self.assembly.insert(value, coordinates, sizes, position, op.accumulate is not None),
        )

    # -- iteration -----------------------------------------------------------------------------

    vector_index: SSAValue | None = None

    def iterate(self, op: iteration.IterateOp) -> None:
        inits = [self.get(v) for v in op.inits]
        if self.vector_index is not None:
            # Inside a block of columns every loop-carried element is a vector; presence is shared.
            inits = [v if v.type == i1 else self.b.broadcast(v, self.width) for v in inits]
        if op.vector is not None:
            assert not inits
            self.blocks(op, [int(w) for w in op.vector.get_values()])
            return
        results = self.full(op, inits) if op.extent is not None else self.merge(op, inits)
        self.values.update(zip(op.results, results, strict=True))

    def visit(
        self, op: iteration.IterateOp, region: int, coordinate: SSAValue, cursors: Sequence[Cursor], carried: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """The body of a loop at a coordinate."""
        block = op.bodies[region].block
        self.values[block.args[0]] = coordinate
        for arg, cursor in zip(block.args[1:], cursors, strict=False):
            self.cursors[arg] = cursor
        self.values.update(zip(block.args[1 + len(cursors) :], carried, strict=True))
        level = None if op.assemble is None else op.assemble.value.data
        mark = None if level is None else self.assembly.enter(level, coordinate)
        results = self.lower_block(block)
        if level is not None:
            self.assembly.leave(level, coordinate, self.size(self.out, level), mark)
        if self.vector_index is not None:
            results = [v if v.type == i1 else self.b.broadcast(v, self.width) for v in results]
        return results

    def blocks(self, op: iteration.IterateOp, widths: Sequence[int]) -> None:
        """A loop along contiguous values: by blocks of each width, then one by one."""
        b, lo = self.b, self.b.index(0)
        assert op.extent is not None
        extent = self.get(op.extent)
        for width in [*widths, 1]:
            step = b.index(width)
            count = b.sub(extent, lo)
            hi = extent if width == 1 else b.add(lo, b.mul(b.add_op(arith.DivUIOp(count, step)), step))

            def body(i: SSAValue, carried: Sequence[SSAValue], width: int = width) -> Sequence[SSAValue]:
                self.width, self.vector_index = width, i if width > 1 else None
                self.visit(op, 0, i, [], [])
                self.width, self.vector_index = 1, None
                return carried

            b.loop_for(lo, hi, width, [], body, op.index.data)
            lo = hi

    def full(self, op: iteration.IterateOp, inits: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Every coordinate of an extent, with sparse iterators alongside."""
        b = self.b
        assert op.extent is not None
        walkers = self.walkers(op)
        starts = [w.lo for w in walkers]

        def body(i: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            positions, inner = carried[: len(walkers)], carried[len(walkers) :]
            cursors: list[Cursor] = []
            nexts: list[SSAValue] = []
            for walker, p in zip(walkers, positions, strict=True):
                if walker.level.unique:
                    flag = b.guarded(b.lt(p, walker.hi), lambda w=walker, p=p: b.eq(w.coordinate(b, p), i))
                    cursors.append(Cursor(p, None, flag, False))
                    nexts.append(b.add(p, b.truth(flag)))
                else:
                    end = b.scan(p, walker.hi, lambda q, w=walker: b.eq(w.coordinate(b, q), i))
                    cursors.append(Cursor(p, end, b.lt(p, end), False))
                    nexts.append(end)
            return [*nexts, *self.visit(op, 0, i, cursors, inner)]

        results = b.loop_for(b.index(0), self.get(op.extent), 1, [*starts, *inits], body, op.index.data)
        return results[len(walkers) :]

    def walkers(self, op: iteration.IterateOp) -> list[Walker]:
        found: list[Walker] = []
        for tensor_, parent, level in zip(op.tensors, op.parents, op.levels.get_values(), strict=True):
            cursor = self.cursors[parent]
            lo, hi = self.bounds(tensor_, cursor, int(level))
            kind, code = self.code(tensor_, int(level))
            found.append(Walker(kind, code, cursor.position, lo, hi))
        return found

    def merge(self, op: iteration.IterateOp, inits: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The loops of a lattice, one after the other; positions carry over from each to the next."""
        walkers = self.walkers(op)
        positions = [w.lo for w in walkers]
        carried = list(inits)
        for region in range(len(op.bodies)):
            active = op.loop_iterators(region)
            if len(active) == 1 and walkers[active[0]].level.unique:
                carried = list(self.single(op, region, walkers[active[0]], positions[active[0]], carried))
                continue
            results = self.joint(op, region, walkers, active, [positions[k] for k in active], carried)
            for n, k in enumerate(active):
                positions[k] = results[n]
            carried = list(results[len(active) :])
        return carried

    def single(
        self, op: iteration.IterateOp, region: int, walker: Walker, start: SSAValue, carried: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        def body(p: SSAValue, inner: Sequence[SSAValue]) -> Sequence[SSAValue]:
            coordinate = walker.coordinate(self.b, p)
            coordinate.name_hint = op.index.data
            return self.visit(op, region, coordinate, [Cursor(p)], inner)

        return self.b.loop_for(start, walker.hi, 1, carried, body, "p")

    def joint(
        self,
        op: iteration.IterateOp,
        region: int,
        walkers: Sequence[Walker],
        active: Sequence[int],
        starts: Sequence[SSAValue],
        carried: Sequence[SSAValue],
    ) -> Sequence[SSAValue]:
        """Walk several iterators while all last: visit their least coordinate, advance those that had it."""
        b, count = self.b, len(active)
        points = op.loop_points(region)
        certain = frozenset.intersection(*points)

        def condition(args: Sequence[SSAValue]) -> SSAValue:
            going: SSAValue | None = None
            for k, p in zip(active, args, strict=False):
                going = b.both(going, b.lt(p, walkers[k].hi))
            assert going is not None
            return going

        def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
            positions = dict(zip(active, args, strict=False))
            coordinates = {k: walkers[k].coordinate(b, positions[k]) for k in active}
            least = coordinates[active[0]]
            for k in active[1:]:
                least = b.minimum(least, coordinates[k])
            least.name_hint = op.index.data
            flags = {k: b.eq(coordinates[k], least) for k in active} if count > 1 else {}
            nexts: list[SSAValue] = []
            cursors: list[Cursor] = []
            for k in active:
                flag = None if k in certain else flags[k]
                if walkers[k].level.unique:
                    cursors.append(Cursor(positions[k], None, flag))
                    nexts.append(b.add(positions[k], b.truth(flags[k]) if flags else b.index(1)))
                else:
                    end = b.scan(positions[k], walkers[k].hi, lambda q, k=k: b.eq(walkers[k].coordinate(b, q), least))
                    cursors.append(Cursor(positions[k], end, flag))
                    nexts.append(end)
            inner = args[count:]
            guard = self.visited(points, flags, active)

            def then() -> Sequence[SSAValue]:
                return self.visit(op, region, least, cursors, inner)

            if guard is None:
                return [*nexts, *then()]
            return [*nexts, *b.either(guard, then, lambda: inner, [v.type for v in inner])]

        return b.loop_while([*starts, *carried], condition, body)

    def visited(
        self, points: Sequence[frozenset[int]], flags: dict[int, SSAValue], active: Sequence[int]
    ) -> SSAValue | None:
        """Whether those present include a point; None if the least coordinate always does."""
        if not flags or all(frozenset({k}) in points for k in active):
            return None
        any_: SSAValue | None = None
        for point in points:
            every: SSAValue | None = None
            for k in sorted(point):
                every = self.b.both(every, flags[k])
            assert every is not None
            any_ = every if any_ is None else self.b.add_op(arith.OrIOp(any_, every))
        return any_


@dataclass(frozen=True)
class Walker:
    """An iterator at run time: the level, its parent's position, and the positions [lo, hi)."""

    level: Level
    code: LevelCode
    parent: SSAValue
    lo: SSAValue
    hi: SSAValue

    def coordinate(self, b: ScfBuilder, position: SSAValue) -> SSAValue:
        return self.level.coordinate(b, self.code, self.parent, position)


_ = (IntegerType, Region, TensorType, UnitAttr)
