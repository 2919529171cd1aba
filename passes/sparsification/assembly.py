"""How a kernel puts its result together, one class for each way; what they do is in schedule-loops' docstring.

The runtime gives buffers and reads ``counters``: the number of positions of each level of the result.
A counting kernel has the same loops and stores nothing but the counters.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, SSAValue

from sparsecc.formats import Ability, Format
from sparsecc.passes.sparsification.kernel_arguments import Arguments, buffer
from sparsecc.passes.sparsification.loop_builder import ScfBuilder


class Assembly:
    """Nothing to assemble: values go to positions that exist already (dense, pattern)."""

    def __init__(self, fmt: Format, element: Attribute, counting: bool) -> None:
        self.fmt, self.element, self.counting = fmt, element, counting

    def request(self, args: Arguments) -> None:
        args.request("out.values", buffer(self.element))

    def begin(self, b: ScfBuilder, args: Arguments) -> None:
        self.b, self.args = b, args

    def finish(self) -> None:
        """After all loops."""

    def enter(self, level: int, coordinate: SSAValue) -> SSAValue | None:
        """A loop over the coordinates of a level begins a visit; gives a mark for its end."""
        return None

    def leave(
        self, level: int, coordinate: SSAValue, size: SSAValue, mark: SSAValue | None
    ) -> None:
        """The visit ends."""

    def open_workspace(self) -> None:
        raise NotImplementedError

    def close_workspace(self, sizes: Sequence[SSAValue]) -> None:
        raise NotImplementedError

    def linear(
        self, position: SSAValue, coordinates: Sequence[SSAValue], sizes: Sequence[SSAValue]
    ) -> SSAValue:
        """The position below dense levels."""
        for coordinate, size in zip(coordinates, sizes, strict=True):
            position = self.b.add(self.b.mul(position, size), coordinate)
        return position

    def insert(
        self,
        value: SSAValue,
        coordinates: Sequence[SSAValue],
        sizes: Sequence[SSAValue],
        position: SSAValue | None,
        accumulate: bool,
    ) -> None:
        if position is None:
            position = self.linear(self.b.index(0), coordinates, sizes)
        self.write(value, position, accumulate)

    def write(self, value: SSAValue, position: SSAValue, accumulate: bool) -> None:
        values = self.args["out.values"]
        if accumulate:
            width = getattr(value.type, "get_shape", lambda: (1,))()[0]
            value = self.b.accumulate(self.b.load_value(values, position, width), value)
        self.b.store(value, values, position)


class Coordinates(Assembly):
    """Append (coordinates, value) of each insert as it comes."""

    def request(self, args: Arguments) -> None:
        if not self.counting:
            args.request("out.values", buffer(self.element))
            for level in range(self.fmt.num_levels):
                args.request(f"out.coordinates{level}", buffer(IndexType()))
        args.request("counters", buffer(IndexType()))

    def begin(self, b: ScfBuilder, args: Arguments) -> None:
        super().begin(b, args)
        self.count = b.counter()

    def insert(
        self,
        value: SSAValue,
        coordinates: Sequence[SSAValue],
        sizes: Sequence[SSAValue],
        position: SSAValue | None,
        accumulate: bool,
    ) -> None:
        b = self.b
        n = b.get(self.count)
        if not self.counting:
            for level, coordinate in enumerate(coordinates):
                b.store(coordinate, self.args[f"out.coordinates{level}"], n)
            b.store(value, self.args["out.values"], n)
        b.put(self.count, b.add(n, b.index(1)))

    def finish(self) -> None:
        self.b.store(self.b.get(self.count), self.args["counters"], self.b.index(0))


class Append(Assembly):
    """Levels: dense ones, then compressed ones with a counter each, then dense ones below."""

    def __init__(self, fmt: Format, element: Attribute, counting: bool) -> None:
        super().__init__(fmt, element, counting)
        full = [level.can(Ability.FULL) for level in fmt.levels]
        self.first = full.index(False)
        self.last = max(n for n, f in enumerate(full) if not f)

    def request(self, args: Arguments) -> None:
        if not self.counting:
            args.request("out.values", buffer(self.element))
            args.request_arrays("out", self.fmt)
        args.request("counters", buffer(IndexType()))

    def begin(self, b: ScfBuilder, args: Arguments) -> None:
        super().begin(b, args)
        self.counts = {level: b.counter() for level in range(self.first, self.last + 1)}
        self.prefix: dict[int, SSAValue] = {}
        self.prefix_position = b.index(0)

    def enter(self, level: int, coordinate: SSAValue) -> SSAValue | None:
        b = self.b
        if level < self.first:
            outer = self.prefix.get(level - 1, b.index(0))
            self.prefix[level] = b.add(
                b.mul(outer, self.args[f"out.dim{self.fmt.exprs[level].dim}"]), coordinate
            )
            return None
        if level >= self.last:
            # Dense levels below: the block of this coordinate is the next one.
            return None
        return b.get(self.counts[level + 1])

    def leave(
        self, level: int, coordinate: SSAValue, size: SSAValue, mark: SSAValue | None
    ) -> None:
        b = self.b
        if level == self.first - 1:
            self.close(self.first, self.prefix[level])
        elif level == self.last:
            if level < self.fmt.num_levels - 1:
                self.append(level, coordinate)
        elif self.first <= level < self.last:
            assert mark is not None
            grown = b.lt(mark, b.get(self.counts[level + 1]))

            def keep() -> None:
                self.close(level + 1, b.get(self.counts[level]))
                self.append(level, coordinate)

            b.when(grown, keep)

    def close(self, level: int, parent: SSAValue) -> None:
        """End the children of a parent position of a compressed level."""
        if not self.counting:
            b = self.b
            b.store(
                b.get(self.counts[level]),
                self.args[f"out.positions{level}"],
                b.add(parent, b.index(1)),
            )

    def append(self, level: int, coordinate: SSAValue) -> None:
        b = self.b
        n = b.get(self.counts[level])
        if not self.counting:
            b.store(coordinate, self.args[f"out.coordinates{level}"], n)
        b.put(self.counts[level], b.add(n, b.index(1)))

    def insert(
        self,
        value: SSAValue,
        coordinates: Sequence[SSAValue],
        sizes: Sequence[SSAValue],
        position: SSAValue | None,
        accumulate: bool,
    ) -> None:
        n = self.b.get(self.counts[self.last])
        inner = self.last + 1
        if inner == self.fmt.num_levels:
            if not self.counting:
                self.write(value, n, False)
            self.append(self.last, coordinates[self.last])
        elif not self.counting:
            self.write(value, self.linear(n, coordinates[inner:], sizes[inner:]), accumulate)

    def finish(self) -> None:
        b = self.b
        if self.first == 0:
            self.close(0, b.index(0))
        for n, level in enumerate(range(self.first, self.last + 1)):
            b.store(b.get(self.counts[level]), self.args["counters"], b.index(n))


class Workspace(Append):
    """Append, with the innermost level collected in a dense workspace: values, a marker that holds the
    number of the row which touched an element last, and the list of touched coordinates."""

    def request(self, args: Arguments) -> None:
        super().request(args)
        if not self.counting:
            args.request("work.values", buffer(self.element))
        args.request("work.marker", buffer(IndexType()))
        args.request("work.list", buffer(IndexType()))

    def begin(self, b: ScfBuilder, args: Arguments) -> None:
        super().begin(b, args)
        self.stamp, self.touched = b.counter("row"), b.counter("touched")

    def open_workspace(self) -> None:
        b = self.b
        b.put(self.stamp, b.add(b.get(self.stamp), b.index(1)))
        b.put(self.touched, b.index(0))

    def insert(
        self,
        value: SSAValue,
        coordinates: Sequence[SSAValue],
        sizes: Sequence[SSAValue],
        position: SSAValue | None,
        accumulate: bool,
    ) -> None:
        b, at = self.b, coordinates[-1]
        marker, values = self.args["work.marker"], self.args.get("work.values")
        stamp, n = b.get(self.stamp), b.get(self.touched)
        fresh = b.ne(b.load_value(marker, at), stamp)
        # Without a branch: the list's next entry is overwritten until it counts.
        b.store(at, self.args["work.list"], n)
        b.put(self.touched, b.add(n, b.truth(fresh)))
        b.store(stamp, marker, at)
        if values is not None:
            total = b.accumulate(b.load_value(values, at), value)
            b.store(b.select(fresh, value, total), values, at)

    def close_workspace(self, sizes: Sequence[SSAValue]) -> None:
        b = self.b
        touched, size = b.get(self.touched), sizes[-1]
        count = self.counts[self.last]
        if self.counting:
            b.put(count, b.add(b.get(count), touched))
            return
        marker, values, listed = (
            self.args["work.marker"],
            self.args["work.values"],
            self.args["work.list"],
        )
        stamp = b.get(self.stamp)

        def keep(at: SSAValue) -> None:
            self.write(b.load_value(values, at), b.get(count), False)
            self.append(self.last, at)

        def scan() -> Sequence[SSAValue]:
            def body(at: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                b.when(b.eq(b.load_value(marker, at), stamp), lambda: keep(at))
                return carried

            b.loop_for(b.index(0), size, 1, [], body, "at")
            return []

        def sort() -> Sequence[SSAValue]:
            b.do(func.CallOp("sort", [listed, touched], []))

            def body(k: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                keep(b.load_value(listed, k))
                return carried

            b.loop_for(b.index(0), touched, 1, [], body, "k")
            return []

        # A row with one in 32 elements is read off in order; a sparser one is sorted.
        crowded = b.lt(size, b.add_op(arith.MuliOp(touched, b.index(32))))
        b.either(crowded, scan, sort, [])


ASSEMBLIES: dict[str, type[Assembly]] = {
    "dense": Assembly,
    "pattern": Assembly,
    "append": Append,
    "workspace": Workspace,
    "coordinates": Coordinates,
}
