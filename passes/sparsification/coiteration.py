"""Loops: dense ones, walks of one level, and co-iteration by the points of a merge lattice.

``A + B`` along a compressed index becomes three loops::

    scf.while (both last) { least coordinate; presence flags; visit; advance those that had it }
    scf.for (what is left of A) { visit }
    scf.for (what is left of B) { visit }
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from sparsecc.dialects import iteration
from sparsecc.dialects.iteration.types import numbers
from sparsecc.passes.sparsification.kernel_lowering import Cursor, KernelLowering, Walker


class LoopLowering(KernelLowering):
    """A kernel's lowering with its loops."""

    # -- iteration -----------------------------------------------------------------------------

    def iterate(self, op: iteration.IterateOp) -> None:
        inits = self.widened([self.get(v) for v in op.inits])
        if op.vector is not None:
            assert not inits
            self.blocks(op, numbers(op.vector))
            return
        results = self.full(op, inits) if op.extent is not None else self.merge(op, inits)
        self.values.update(zip(op.results, results, strict=True))

    def visit(
        self,
        op: iteration.IterateOp,
        region: int,
        coordinate: SSAValue,
        cursors: Sequence[Cursor],
        carried: Sequence[SSAValue],
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
        return self.widened(results)

    def blocks(self, op: iteration.IterateOp, widths: Sequence[int]) -> None:
        """A loop along contiguous values: by blocks of each width, then one by one."""
        b, lo = self.b, self.b.index(0)
        assert op.extent is not None
        extent = self.get(op.extent)
        for width in [*widths, 1]:
            step = b.index(width)
            count = b.sub(extent, lo)
            hi = (
                extent
                if width == 1
                else b.add(lo, b.mul(b.add_op(arith.DivUIOp(count, step)), step))
            )

            def body(
                i: SSAValue, carried: Sequence[SSAValue], width: int = width
            ) -> Sequence[SSAValue]:
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
                    flag = b.guarded(
                        b.lt(p, walker.hi), lambda w=walker, p=p: b.eq(w.coordinate(b, p), i)
                    )
                    cursors.append(Cursor(p, None, flag, False))
                    nexts.append(b.add(p, b.truth(flag)))
                else:
                    end = b.scan(p, walker.hi, lambda q, w=walker: b.eq(w.coordinate(b, q), i))
                    cursors.append(Cursor(p, end, b.lt(p, end), False))
                    nexts.append(end)
            return [*nexts, *self.visit(op, 0, i, cursors, inner)]

        results = b.loop_for(
            b.index(0), self.get(op.extent), 1, [*starts, *inits], body, op.index.data
        )
        return results[len(walkers) :]

    def walkers(self, op: iteration.IterateOp) -> list[Walker]:
        found: list[Walker] = []
        for tensor_, parent, level in zip(op.tensors, op.parents, numbers(op.levels), strict=True):
            cursor = self.cursors[parent]
            lo, hi = self.bounds(tensor_, cursor, level)
            kind, code = self.code(tensor_, level)
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
                carried = list(
                    self.single(op, region, walkers[active[0]], positions[active[0]], carried)
                )
                continue
            results = self.joint(
                op, region, walkers, active, [positions[k] for k in active], carried
            )
            for n, k in enumerate(active):
                positions[k] = results[n]
            carried = list(results[len(active) :])
        return carried

    def single(
        self,
        op: iteration.IterateOp,
        region: int,
        walker: Walker,
        start: SSAValue,
        carried: Sequence[SSAValue],
    ) -> Sequence[SSAValue]:
        def body(p: SSAValue, inner: Sequence[SSAValue]) -> Sequence[SSAValue]:
            coordinate = walker.coordinate(self.b, p)
            coordinate.name_hint = op.index.data
            return self.visit(op, region, coordinate, [Cursor(p)], inner)

        return self.b.loop_for(start, walker.hi, 1, carried, body, "p")

    def meet(
        self,
        op: iteration.IterateOp,
        walkers: Sequence[Walker],
        active: Sequence[int],
        certain: frozenset[int],
        args: Sequence[SSAValue],
    ) -> tuple[SSAValue, dict[int, SSAValue], list[Cursor], list[SSAValue]]:
        """The least coordinate at some positions (the first of ``args``), which iterators have it, their cursors there,
        and the positions behind it."""
        b = self.b
        positions = dict(zip(active, args, strict=False))
        coordinates = {k: walkers[k].coordinate(b, positions[k]) for k in active}
        least = coordinates[active[0]]
        for k in active[1:]:
            least = b.minimum(least, coordinates[k])
        least.name_hint = op.index.data
        flags = {k: b.eq(coordinates[k], least) for k in active} if len(active) > 1 else {}
        nexts: list[SSAValue] = []
        cursors: list[Cursor] = []
        for k in active:
            flag = None if k in certain else flags[k]
            if walkers[k].level.unique:
                cursors.append(Cursor(positions[k], None, flag))
                nexts.append(b.add(positions[k], b.truth(flags[k]) if flags else b.index(1)))
            else:
                end = b.scan(
                    positions[k],
                    walkers[k].hi,
                    lambda q, k=k: b.eq(walkers[k].coordinate(b, q), least),
                )
                cursors.append(Cursor(positions[k], end, flag))
                nexts.append(end)
        return least, flags, cursors, nexts

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
        certain = points[0].intersection(*points)

        def condition(args: Sequence[SSAValue]) -> SSAValue:
            going: SSAValue | None = None
            for k, p in zip(active, args, strict=False):
                going = b.both(going, b.lt(p, walkers[k].hi))
            assert going is not None
            return going

        def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
            least, flags, cursors, nexts = self.meet(op, walkers, active, certain, args)
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
