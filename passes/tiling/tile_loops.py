"""Loops of a tile kernel: walks by chunks of positions, dense loops by chunks of coordinates, merges lane by lane.

A walk over the positions of the rows of a block goes on to the longest of them, under the mask of those that last::

    %longest = tile.reduce max (%hi - %lo)
    %sum = scf.for %s = 0 to %longest step 32 iter_args(%acc = 0) {
      %p = %lo + %s + iota; %m = %s + iota < %hi - %lo
      … coordinates, values at %p if %m … %acc + … where %m
    }
    tile.reduce add %sum along the positions

A merge is a ``scf.while`` as on the CPU, in which each lane has positions of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i32, i64
from xdsl.ir import Attribute, Region, SSAValue

from sparsecc.dialects import iteration
from sparsecc.dialects.reading import element_type
from sparsecc.passes.sparsification.kernel_lowering import Cursor, Walker
from sparsecc.passes.tiling.block_values import is_zero, is_zero_outside, joint_shape
from sparsecc.passes.tiling.shared_sums import SharedSums

Item = TypeVar("Item")
Visit = Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]


def sum_kinds(bodies: Sequence[Region], count: int) -> list[str]:
    """How each carried value is put together."""
    kinds: list[str] = []
    for k in range(count):
        kind = "add"
        for body in bodies:
            carried = body.block.args[len(body.block.args) - count + k]
            names = {use.operation.name for use in carried.uses}
            if "arith.ori" in names or element_type(carried.type) == IntegerType(1):
                kind = "or"
        kinds.append(kind)
    return kinds


def always(bodies: Sequence[Region], count: int) -> list[bool]:
    """Which carried flags every visit sets."""
    found = [True] * count
    for body in bodies:
        last = body.block.last_op
        assert last is not None
        for k, value in enumerate(last.operands):
            op = value.owner
            true = op.operands[1].owner if isinstance(op, arith.OrIOp) else None
            found[k] = (
                found[k]
                and isinstance(true, arith.ConstantOp)
                and true.result.type == IntegerType(1)
                and isinstance(true.value, IntegerAttr)
                and bool(true.value.value.data)
            )
    return found


class TileLoops(SharedSums):
    """A tile kernel with its loops."""

    def iterate(self, op: iteration.IterateOp) -> None:
        index, inits = op.index.data, [self.get(v) for v in op.inits]
        if index in self.places:
            with self.opened(index):
                self.shared(op)
            return
        if op.extent is not None:
            results = self.full(op, inits)
        else:
            results = self.merge(op, inits)
        self.values.update(zip(op.results, results, strict=True))

    def shared(self, op: iteration.IterateOp) -> None:
        """A loop over programs."""
        b, place = self.b, self.places[op.index.data]
        if op.extent is not None:
            with b.where(place.inside):
                cursors = [self.located(w, place.at) for w in self.walkers(op)]
                self.visit(op, 0, place.at, cursors, [])
            return
        walkers = self.walkers(op)
        if len(walkers) == 1 and walkers[0].level.unique:
            (walker,) = walkers
            position = b.add(walker.lo, place.at)
            with b.where(b.lt(position, walker.hi)):
                coordinate = walker.coordinate(b, position)
                coordinate.name_hint = op.index.data
                self.visit(op, 0, coordinate, [Cursor(position)], [])
            return
        # In the first region all iterators are active: it visits whatever any region does.
        with b.where(place.inside):
            cursors = [self.located(walkers[k], place.at) for k in op.loop_iterators(0)]
            flags = {k: c.flag for k, c in zip(op.loop_iterators(0), cursors, strict=True)}
            guard: SSAValue | None = None
            for body in range(len(op.bodies)):
                for point in op.loop_points(body):
                    there: SSAValue | None = None
                    for k in sorted(point):
                        there = b.both(there, flags[k])
                    assert there is not None
                    guard = there if guard is None else b.either_of(guard, there)
            with b.where(guard):
                self.visit(op, 0, place.at, cursors, [])

    def located(self, walker: Walker, coordinate: SSAValue) -> Cursor:
        """The place of a coordinate among the positions of a walker."""
        b = self.b
        at = b.bisect(walker.lo, walker.hi, lambda p: b.lt(walker.coordinate(b, p), coordinate))
        if walker.level.unique:
            there = b.guarded(
                b.lt(at, walker.hi), lambda: b.eq(walker.coordinate(b, at), coordinate)
            )
            return Cursor(at, None, there, False)
        end = b.bisect(at, walker.hi, lambda p: b.eq(walker.coordinate(b, p), coordinate))
        return Cursor(at, end, b.lt(at, end), False)

    def full(self, op: iteration.IterateOp, inits: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Every coordinate of an extent; sparse iterators are looked up."""
        assert op.extent is not None
        walkers = self.walkers(op)

        def visit(coordinate: SSAValue, inner: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return self.visit(
                op, 0, coordinate, [self.located(w, coordinate) for w in walkers], inner
            )

        width = self.widths.get(op.index.data, 1)
        return self.chunks(op, self.b.index(0), self.get(op.extent), width, inits, visit)

    def single(
        self,
        op: iteration.IterateOp,
        region: int,
        walker: Walker,
        start: SSAValue,
        carried: Sequence[SSAValue],
    ) -> Sequence[SSAValue]:
        def visit(p: SSAValue, inner: Sequence[SSAValue]) -> Sequence[SSAValue]:
            coordinate = walker.coordinate(self.b, p)
            coordinate.name_hint = op.index.data
            return self.visit(op, region, coordinate, [Cursor(p)], inner)

        width = self.widths.get(op.index.data, 1)
        return self.chunks(op, start, walker.hi, width, carried, visit)

    # -- one loop ------------------------------------------------------------------------------

    def chunks(
        self,
        op: iteration.IterateOp,
        lo: SSAValue,
        hi: SSAValue,
        width: int,
        inits: Sequence[SSAValue],
        visit: Visit,
    ) -> Sequence[SSAValue]:
        """[lo, hi) by so many at a time, in each lane; carried values are summed up."""
        b, kinds = self.b, sum_kinds(op.bodies, len(inits))
        certain = always(op.bodies, len(inits))
        if not any(certain):
            return self.summed(op, lo, hi, width, inits, kinds, visit)
        # What holds at each visit holds if there is one.
        there = b.fit(b.lt(lo, hi), self.open)

        def picked(values: Sequence[Item]) -> list[Item]:
            return [v for v, c in zip(values, certain, strict=True) if not c]

        def visit_rest(at: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            rest = iter(carried)
            return picked(visit(at, [there if c else next(rest) for c in certain]))

        rest = iter(self.summed(op, lo, hi, width, picked(inits), picked(kinds), visit_rest))
        return [
            b.fit(self.added("or", v, there), self.open) if c else next(rest)
            for v, c in zip(inits, certain, strict=True)
        ]

    def summed(
        self,
        op: iteration.IterateOp,
        lo: SSAValue,
        hi: SSAValue,
        width: int,
        inits: Sequence[SSAValue],
        kinds: Sequence[str],
        visit: Visit,
    ) -> Sequence[SSAValue]:
        if self.can_share(lo, hi, inits):
            zero = self.b.zero(element_type(inits[0].type))
            return [
                self.shared_sum(
                    lo, hi, width, kinds[0], inits[0],
                    lambda a, z: self.summed(op, a, z, width, [zero], kinds, visit),
                )
            ]  # fmt: skip
        b, index, outside = self.b, op.index.data, self.open
        scalar = not joint_shape(b.shape(lo), b.shape(hi))
        length = hi if scalar else hinted(b.sub(hi, lo), "length")
        start, end = (lo, hi) if scalar else (b.index(0), b.reduce("max", length, None))
        if element_type(start.type) != element_type(end.type):
            start, end = b.wide(start), b.wide(end)
        name = index if op.extent is not None else "p"
        blocked = width > 1
        late = blocked and bool(self.schedule.late)
        with self.opened(index):
            inside = self.open
        shape = inside if late else outside
        axis = self.axes.get(index) if outside else None
        zeros = [b.zero(element_type(v.type)) for v in inits]
        starts = [b.fit(z if late else v, shape) for z, v in zip(zeros, inits, strict=True)]

        def body(step: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.nested += 1
            found = chunk(step, carried)
            self.nested -= 1
            return found

        def chunk(step: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            at = hinted(b.add(step, self.lanes(index)), name) if blocked else step
            last = None if scalar and not blocked else b.lt(at, length)
            position = at if scalar else hinted(b.add(lo, at), "at")
            with self.opened(index), b.where(last):
                if not blocked or late:
                    found = visit(position, carried)
                    if last is not None:
                        found = [self.kept(last, *p) for p in zip(found, carried, strict=True)]
                    return [b.fit(v, shape) for v in found]
                found = visit(position, zeros)
                assert last is not None
                found = [self.kept(last, v, z) for v, z in zip(found, zeros, strict=True)]
            parts = [
                b.reduce(kind, b.fit(v, inside), axis) for kind, v in zip(kinds, found, strict=True)
            ]
            return [b.fit(self.added(*p), shape) for p in zip(kinds, carried, parts, strict=True)]

        results = b.loop_for(start, end, width, starts, body, f"{name}0" if blocked else name)
        if not late:
            return results
        sums = [b.reduce(kind, v, axis) for kind, v in zip(kinds, results, strict=True)]
        return [b.fit(self.added(*p), outside) for p in zip(kinds, inits, sums, strict=True)]

    def kept(self, last: SSAValue, new: SSAValue, old: SSAValue) -> SSAValue:
        """A new sum where a lane lasts, the old one elsewhere."""
        op = new.owner
        if is_zero(old) and is_zero_outside(new, last):
            return new
        sums = isinstance(
            op, arith.AddfOp | arith.SubfOp | arith.AddiOp | arith.SubiOp | arith.OrIOp
        )
        if sums and op.operands[0] is old and is_zero_outside(op.operands[1], last):
            return new
        return self.b.select(last, new, old)

    def letter(self, tensor: SSAValue) -> str:
        return (tensor.name_hint or self.owners[tensor]).lower()

    # -- merges --------------------------------------------------------------------------------

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
        ends = [walkers[k].hi for k in active]
        shape = joint_shape(*(b.shape(v) for v in (*starts, *ends)))
        types = [joint_type(s, e) for s, e in zip(starts, ends, strict=True)]
        firsts = [
            b.fit(b.wide(s) if t == i64 else s, shape) for s, t in zip(starts, types, strict=True)
        ]

        def going(args: Sequence[SSAValue]) -> SSAValue:
            flag = b.mask(shape)
            for position, end in zip(args, ends, strict=False):
                flag = b.both(flag, b.lt(position, end))
            assert flag is not None
            return flag

        def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
            for k, position in zip(active, args, strict=False):
                position.name_hint = f"{self.letter(op.tensors[k])}_at"
            self.nested += 1
            lasts = going(args) if shape else None
            with b.where(lasts):
                nexts, results = self.step(op, region, walkers, active, certain, args, lasts)
            self.nested -= 1
            fitted = [
                b.fit(b.wide(v) if t == i64 else v, shape)
                for v, t in zip(nexts, types, strict=True)
            ]
            if lasts is not None:
                fitted = [b.select(lasts, v, a) for v, a in zip(fitted, args, strict=False)]
            return [*fitted, *results]

        inits = [b.fit(v, self.open) for v in carried]
        results = b.loop_while([*firsts, *inits], lambda args: b.any(going(args)), body)
        return [*results[:count], *results[count:]]

    def step(
        self,
        op: iteration.IterateOp,
        region: int,
        walkers: Sequence[Walker],
        active: Sequence[int],
        certain: frozenset[int],
        args: Sequence[SSAValue],
        lasts: SSAValue | None,
    ) -> tuple[list[SSAValue], Sequence[SSAValue]]:
        """One step of a merge: the next positions and carried values."""
        b = self.b
        least, flags, cursors, nexts = self.meet(op, walkers, active, certain, args)
        inner = args[len(active) :]
        guard = self.visited(op.loop_points(region), flags, active)
        shapes = [b.shape(v) for v in inner]

        def visit() -> list[SSAValue]:
            found = self.visit(op, region, least, cursors, inner)
            return [b.fit(v, s) for v, s in zip(found, shapes, strict=True)]

        if lasts is None and guard is None:
            return nexts, visit()
        if lasts is None and guard is not None:
            if inner:
                return nexts, b.branch(guard, visit, lambda: inner, [v.type for v in inner])
            b.branch_when(guard, visit)
            return nexts, []
        here = b.both(lasts, guard)
        assert here is not None
        with b.where(guard):
            found = visit()
        return nexts, [b.select(here, *pair) for pair in zip(found, inner, strict=True)]


def hinted(value: SSAValue, name: str) -> SSAValue:
    """A value with a name for readers, if it has none."""
    if value.name_hint is None:
        value.name_hint = name
    return value


def joint_type(a: SSAValue, b: SSAValue) -> Attribute:
    """The wider of two index types."""
    return i64 if i64 in (element_type(a.type), element_type(b.type)) else i32
