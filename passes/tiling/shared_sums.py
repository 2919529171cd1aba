"""Sums that several programs share: long rows, and sums to a scalar.

With ``split = 4`` a grid has four programs for each block of the result, along axis 1. A sum that is longer than one
step of each is cut into four ranges; each program stores its part in ``work.partial``, and the last to arrive at the
block's counter adds the parts in their order. A shorter sum is the first program's alone. All that follows is done
where the sum is whole, so results are the same at every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FixedBitwidthType, UnitAttr, VectorType, i32
from xdsl.ir import SSAValue

from sparsecc.dialects.reading import element_type
from sparsecc.dialects.tile import blocks, sharing
from sparsecc.passes.sparsification.kernel_arguments import buffer
from sparsecc.passes.tiling.tile_kernel import TileKernel

Sums = Callable[[SSAValue, SSAValue], Sequence[SSAValue]]


class SharedSums(TileKernel):
    """A tile kernel one of whose sums may be shared."""

    def can_share(self, lo: SSAValue, hi: SSAValue, inits: Sequence[SSAValue]) -> bool:
        """Whether a sum is the first one of a program, over one range, of one value."""
        return (
            self.schedule.split > 1
            and not self.shares
            and not self.nested
            and not self.b.shape(lo)
            and not self.b.shape(hi)
            and len(inits) == 1
            and self.partial_type == element_type(inits[0].type)
        )

    def shared_sum(
        self, lo: SSAValue, hi: SSAValue, width: int, kind: str, init: SSAValue, sums: Sums
    ) -> SSAValue:
        """A sum over [lo, hi), whole where the masks hold from here on."""
        b, split = self.b, self.schedule.split
        self.shares, self.part_volume = True, self.volume()
        part = b.add_op(blocks.ProgramIdOp(1))
        part.name_hint = "part"
        length = b.sub(hi, lo)
        long = b.lt(b.index(width * split), length)
        long.name_hint = "long"
        rounds = b.add_op(
            arith.DivSIOp(
                *b.integers(b.add(length, b.index(width * split - 1)), b.index(width * split))
            )
        )
        share = b.add_op(arith.MuliOp(*b.integers(rounds, b.index(width))))
        first = b.add(lo, b.add_op(arith.MuliOp(*b.integers(part, share))))
        alone = b.eq(part, b.index(0))
        begin = b.select(long, first, lo)
        end = b.select(long, b.minimum(b.add(first, share), hi), b.select(alone, hi, lo))
        share.name_hint, first.name_hint, end.name_hint = "share", "first", "end"
        (found,) = sums(begin, end)
        found = b.fit(found, self.open)

        def together() -> Sequence[SSAValue]:
            partial, counters = self.args["work.partial"], self.args["work.counters"]
            slot = b.add_op(blocks.ProgramIdOp(0))
            slot.name_hint = "slot"
            row = b.mul(slot, b.index(split))

            def at(number: SSAValue) -> SSAValue:
                size = b.index(self.volume())
                return b.fit(b.add(b.mul(b.add(row, number), size), self.lane()), self.open)

            b.do(blocks.StoreOp(found, partial, at(part), None))
            last = b.add_op(sharing.ArriveOp(counters, slot, b.index(split)))
            last.name_hint = "last"

            def add_up(number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                load = blocks.LoadOp(partial, at(number), None)
                load.attributes[sharing.SHARED] = UnitAttr()
                return [self.added(kind, carried[0], b.add_op(load))]

            nothing = b.fit(b.zero(element_type(found.type)), self.open)
            total = b.branch(
                last,
                lambda: b.loop_for(b.index(0), b.index(split), 1, [nothing], add_up, "n"),
                lambda: [nothing],
                [nothing.type],
            )
            return [*total, last]

        total, whole = b.branch(long, together, lambda: [found, alone], [found.type, alone.type])
        whole.name_hint = "whole"
        b.masks.append(whole)
        return b.fit(self.added(kind, init, total), self.open)

    def volume(self) -> int:
        """The elements of a part."""
        size = 1
        for n in self.open:
            size *= n
        return size

    def lane(self) -> SSAValue:
        """The number of each element among those of a part."""
        b, stride = self.b, self.volume()
        found = b.index(0)
        for axis, width in enumerate(self.open):
            stride //= width
            if width > 1:
                iota = b.add_op(blocks.IotaOp(axis, VectorType(i32, self.along(axis, width))))
                if stride > 1:
                    step = b.fit(b.index(stride), b.shape(iota))
                    iota = b.add_op(arith.MuliOp(iota, step))
                found = b.add(found, iota)
        return found

    def request_shared(self) -> None:
        """Arguments for what programs share; dropped again where nothing is."""
        self.args.request("work.partial", buffer(self.partial_type))
        self.args.request("work.counters", buffer(i32))

    def work(self, factors: Sequence[blocks.Factor]) -> blocks.GridAttr:
        """The bytes of parts and of counters."""
        kind = self.partial_type
        assert isinstance(kind, FixedBitwidthType)
        size = max(1, kind.bitwidth // 8) * self.schedule.split * self.part_volume
        parts = [blocks.Factor("", size), *factors]
        return blocks.GridAttr.of([parts, [blocks.Factor("", 4), *factors]])
