"""Building block-shaped operations: the LoopBuilder that level formats call, one lane for each place of a block.

Values are scalars, or blocks of the kernel's rank with size 1 along the axes on which they do not depend; they are
broadcast where they meet. Index values are i32, and i64 where a product with an extent may need it. What holds only for
some lanes is said by *masks*: loads and stores happen where all masks hold that can bear on their offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from sparsecc.dialects.reading import block_shape, block_type, element_type, integer_width
from sparsecc.dialects.tile import blocks
from sparsecc.passes.sparsification.loop_builder import ScfBuilder
from sparsecc.passes.tiling.block_values import Shape, implies, joint_shape, varies


class BlockBuilder(ScfBuilder):
    """Appends operations on blocks to ``block``."""

    def __init__(self, block: Block) -> None:
        super().__init__(block)
        self.masks: list[SSAValue] = []
        self.numbers: dict[Attribute, SSAValue] = {}
        self.known: dict[tuple[object, ...], SSAValue] = {}
        """Values that a block has already, by what they are made of."""

    # -- shapes and types ----------------------------------------------------------------------

    def shape(self, value: SSAValue) -> Shape:
        return block_shape(value.type)

    def fit(self, value: SSAValue, shape: Shape) -> SSAValue:
        """A value as a block of a shape."""
        if self.shape(value) == shape:
            return value
        wanted = block_type(shape, element_type(value.type))
        repeat = blocks.BroadcastOp if isinstance(value.type, VectorType) else blocks.SplatOp
        return self.once((repeat, value, wanted), lambda: repeat(value, wanted))

    def once(self, key: tuple[object, ...], make: Callable[[], Operation]) -> SSAValue:
        """What an operation gives, made only once in a block."""
        key = (self.block, *key)
        if key not in self.known:
            self.known[key] = self.add_op(make())
        return self.known[key]

    def meet(self, *values: SSAValue) -> list[SSAValue]:
        """Values as blocks of their joint shape."""
        shape = joint_shape(*map(self.shape, values))
        return [self.fit(v, shape) for v in values]

    def pair(self, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
        a, b = self.meet(a, b)
        return a, b

    def integers(self, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Two index values in their joint shape and width."""
        if element_type(a.type) != element_type(b.type):
            a, b = self.wide(a), self.wide(b)
        return self.pair(a, b)

    def wide(self, value: SSAValue) -> SSAValue:
        """An index value in 64 bits."""
        return value if element_type(value.type) == i64 else self.cast("extsi", value, i64)

    def cast(self, kind: str, value: SSAValue, element: Attribute) -> SSAValue:
        return self.once((kind, value, element), lambda: blocks.CastOp(kind, value, element))

    # -- LoopBuilder ---------------------------------------------------------------------------

    def constant(
        self, attribute: IntegerAttr[IntegerType | IndexType] | FloatAttr, hint: str = ""
    ) -> SSAValue:
        """A constant, made once at the top of the function."""
        if attribute not in self.numbers:
            op = arith.ConstantOp(attribute)
            first = self.entry.first_op
            if first is None:
                self.entry.add_op(op)
            else:
                self.entry.insert_op_before(op, first)
            op.result.name_hint = hint or None
            self.numbers[attribute] = op.result
        return self.numbers[attribute]

    def index(self, value: int) -> SSAValue:
        fits = -(1 << 31) <= value < 1 << 31
        found = self.constant(IntegerAttr(value, i32 if fits else i64), f"c{value}")
        self.constants[value] = found
        return found

    def zero(self, element: Attribute) -> SSAValue:
        if isinstance(element, AnyFloat):
            return self.constant(FloatAttr(0.0, element), "zero")
        return self.constant(IntegerAttr(0, IntegerType(integer_width(element))), "zero")

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        if self.is_constant(a, 0):
            return b
        if self.is_constant(b, 0):
            return a
        return self.add_op(arith.AddiOp(*self.integers(a, b)))

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        if self.is_constant(b, 0):
            return a
        return self.add_op(arith.SubiOp(*self.integers(a, b)))

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        if self.is_constant(a, 0) or self.is_constant(b, 0):
            return self.index(0)
        if self.is_constant(a, 1) or self.is_constant(b, 1):
            return b if self.is_constant(a, 1) else a
        return self.add_op(arith.MuliOp(*self.pair(self.wide(a), self.wide(b))))

    def div(self, a: SSAValue, number: int) -> SSAValue:
        return self.add_op(arith.DivSIOp(*self.integers(a, self.index(number))))

    def mod(self, a: SSAValue, number: int) -> SSAValue:
        return self.add_op(arith.RemSIOp(*self.integers(a, self.index(number))))

    def bit(self, word: SSAValue, at: SSAValue) -> SSAValue:
        return self.ne(self.masked(self.shifted(word, at), 1), self.index(0))

    def bits_below(self, word: SSAValue, at: SSAValue) -> SSAValue:
        low = self.add_op(arith.ShLIOp(*self.integers(self.index(1), at)))
        bits = self.add_op(arith.AndIOp(*self.integers(word, self.sub(low, self.index(1)))))
        # Pairs, fours, eights and all of them: compilers know these steps as one instruction.
        bits = self.sub(bits, self.masked(self.shifted(bits, self.index(1)), 0x55555555))
        fours = self.masked(self.shifted(bits, self.index(2)), 0x33333333)
        bits = self.add(self.masked(bits, 0x33333333), fours)
        bits = self.masked(self.add(bits, self.shifted(bits, self.index(4))), 0x0F0F0F0F)
        total = self.add_op(arith.MuliOp(*self.integers(bits, self.index(0x01010101))))
        return self.add_op(arith.ShRUIOp(*self.integers(total, self.index(24))))

    def shifted(self, word: SSAValue, by: SSAValue) -> SSAValue:
        return self.add_op(arith.ShRSIOp(*self.integers(word, by)))

    def masked(self, word: SSAValue, bits: int) -> SSAValue:
        return self.add_op(arith.AndIOp(*self.integers(word, self.index(bits))))

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add_op(blocks.CompareOp(predicate, *self.integers(a, b)))

    def lt(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.compare("slt", a, b)

    def eq(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.compare("eq", a, b)

    def ne(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.compare("ne", a, b)

    def unsigned(self, value: SSAValue) -> SSAValue:
        """A stored position or coordinate as an index value."""
        width = integer_width(element_type(value.type))
        return value if width >= 32 else self.cast("extui", value, i32)

    def load(self, array: SSAValue, position: SSAValue) -> SSAValue:
        return self.unsigned(self.load_value(array, position))

    def load_value(self, array: SSAValue, position: SSAValue, width: int = 0) -> SSAValue:
        mask = self.mask(self.shape(position))
        if mask is not None:
            position, mask = self.meet(position, mask)
        return self.add_op(blocks.LoadOp(array, position, mask))

    def store(self, value: SSAValue, array: SSAValue, position: SSAValue) -> None:
        mask = self.mask(None)
        if mask is None:
            self.do(blocks.StoreOp(*self.placed(value, array, position), None))
            return
        value, position, mask = self.meet(value, position, mask)
        self.do(blocks.StoreOp(value, array, position, mask))

    def placed(
        self, value: SSAValue, array: SSAValue, position: SSAValue
    ) -> tuple[SSAValue, SSAValue, SSAValue]:
        value, position = self.meet(value, position)
        return value, array, position

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        if a is b:
            return a
        if {element_type(a.type), element_type(b.type)} == {i32, i64}:
            a, b = self.integers(a, b)
        return self.add_op(blocks.SelectOp(*self.meet(condition, a, b)))

    def both(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
        if a is None or b is None or a is b:
            return b if a is None else a
        if implies(b, a):
            return b
        x, y = self.meet(a, b)
        return self.once((arith.AndIOp, x, y), lambda: arith.AndIOp(x, y))

    def either_of(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Where one or the other holds."""
        return self.add_op(arith.OrIOp(*self.pair(a, b)))

    def minimum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add_op(arith.MinSIOp(*self.integers(a, b)))

    def broadcast(self, value: SSAValue, width: int) -> SSAValue:
        return value

    def accumulate(self, old: SSAValue, value: SSAValue) -> SSAValue:
        """The sum in the element's arithmetic: or for booleans."""
        old, value = self.meet(old, value)
        element = element_type(value.type)
        if isinstance(element, AnyFloat):
            return self.add_op(arith.AddfOp(old, value))
        return self.add_op(arith.OrIOp(old, value) if element == i1 else arith.AddiOp(old, value))

    # -- masks ---------------------------------------------------------------------------------

    def mask(self, shape: Shape | None) -> SSAValue | None:
        """Where offsets of a shape may be read: the masks along its axes (None: all masks). A mask along an axis
        on which offsets do not depend can't make them wrong."""
        found: SSAValue | None = None
        for mask in self.masks:
            if shape is None or varies(self.shape(mask)) <= varies(shape):
                found = self.both(found, mask)
        return found

    @contextmanager
    def where(self, *masks: SSAValue | None) -> Generator[None]:
        """Build under further masks."""
        saved = list(self.masks)
        self.masks += [m for m in masks if m is not None]
        yield
        self.masks = saved

    def guarded(self, condition: SSAValue, then: Callable[[], SSAValue]) -> SSAValue:
        with self.where(condition):
            found = self.both(condition, then())
        assert found is not None
        return found

    def either(
        self,
        condition: SSAValue,
        then: Callable[[], Sequence[SSAValue]],
        otherwise: Callable[[], Sequence[SSAValue]],
        types: Sequence[Attribute],
    ) -> Sequence[SSAValue]:
        """Both sides, the first one under the condition's mask; then a selection."""
        with self.where(condition):
            yes = then()
        return [self.select(condition, a, b) for a, b in zip(yes, otherwise(), strict=True)]

    def when(self, condition: SSAValue | None, then: Callable[[], object]) -> None:
        with self.where(condition):
            then()

    # -- reductions and loops ------------------------------------------------------------------

    def reduce(self, kind: str, value: SSAValue, axis: int | None) -> SSAValue:
        """Along an axis, or of all elements."""
        if not isinstance(value.type, VectorType):
            return value
        return self.add_op(blocks.ReduceOp(kind, value, axis))

    def loop_for(
        self,
        lo: SSAValue,
        hi: SSAValue,
        step: int,
        inits: Sequence[SSAValue],
        body: Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]],
        hint: str = "i",
    ) -> Sequence[SSAValue]:
        kind = element_type(lo.type)
        inner = Block(arg_types=[kind, *(v.type for v in inits)])
        inner.args[0].name_hint = hint
        self.inside(inner, lambda: scf.YieldOp(*body(inner.args[0], inner.args[1:])))
        by = self.constant(IntegerAttr(step, i64 if kind == i64 else i32), f"c{step}")
        op = scf.ForOp(lo, hi, by, list(inits), Region(inner))
        self.do(op)
        return op.results

    def branch(
        self,
        condition: SSAValue,
        then: Callable[[], Sequence[SSAValue]],
        otherwise: Callable[[], Sequence[SSAValue]],
        types: Sequence[Attribute],
    ) -> Sequence[SSAValue]:
        """One side or the other, by a scalar condition."""
        return super().either(condition, then, otherwise, types)

    def branch_when(self, condition: SSAValue, then: Callable[[], object]) -> None:
        super().when(condition, then)

    def any(self, flags: SSAValue) -> SSAValue:
        """Whether any lane's flag holds."""
        return self.reduce("or", flags, None)

    def bisect(
        self, lo: SSAValue, hi: SSAValue, before: Callable[[SSAValue], SSAValue]
    ) -> SSAValue:
        """The first position in [lo, hi) for which ``before``, which ends once, has ended."""
        lo, hi = self.integers(lo, hi)

        def active(low: SSAValue, high: SSAValue) -> SSAValue:
            flag = self.both(self.lt(low, high), self.mask(self.shape(low)))
            assert flag is not None
            return flag

        def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
            low, high = args
            going = active(low, high)
            half = self.add_op(
                arith.ShRSIOp(
                    *self.integers(self.sub(high, low), self.fit(self.index(1), self.shape(low)))
                )
            )
            middle = self.add(low, half)
            less = self.guarded(going, lambda: before(middle))
            right = self.select(less, self.add(middle, self.index(1)), low)
            stay = self.select(going, middle, high)
            return [right, self.select(less, high, stay)]

        return self.loop_until_done(
            [lo, hi], lambda args: self.any(active(args[0], args[1])), body
        )[0]

    def scan(self, lo: SSAValue, hi: SSAValue, go_on: Callable[[SSAValue], SSAValue]) -> SSAValue:
        # Levels are ordered, so what holds for a first position and not for a later one ends once.
        return self.bisect(lo, hi, go_on)

    def lower_bound(self, array: SSAValue, lo: SSAValue, hi: SSAValue, key: SSAValue) -> SSAValue:
        return self.bisect(lo, hi, lambda p: self.lt(self.load(array, p), key))

    def loop_until_done(
        self,
        inits: Sequence[SSAValue],
        condition: Callable[[Sequence[SSAValue]], SSAValue],
        body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        """A while loop whose carried values may grow in shape: the body is tried out to find it."""
        shapes = [self.shape(v) for v in inits]
        while True:
            types = [
                block_type(s, element_type(v.type)) for s, v in zip(shapes, inits, strict=True)
            ]
            scratch = Block(arg_types=types)
            saved, self.block = self.block, scratch
            results = [self.shape(v) for v in body(scratch.args)]
            self.block = saved
            for op in reversed(list(scratch.ops)):
                op.detach()
                op.erase()
            self.known = {k: v for k, v in self.known.items() if k[0] is not scratch}
            grown = [joint_shape(a, b) for a, b in zip(shapes, results, strict=True)]
            if grown == shapes:
                break
            shapes = grown
        starts = [self.fit(v, s) for v, s in zip(inits, shapes, strict=True)]
        return self.loop_while(
            starts,
            condition,
            lambda args: [self.fit(v, s) for v, s in zip(body(args), shapes, strict=True)],
        )
