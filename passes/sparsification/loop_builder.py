"""Building scf/arith/memref operations: the LoopBuilder that level formats call, and what lowering needs besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math, memref, scf, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.complex import AddOp as ComplexAddOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from sparsecc.dialects.reading import element_type, integer_width

index = IndexType()


class ScfBuilder:
    """Appends operations to ``block``; implements :class:`sparsecc.formats.builder.LoopBuilder`."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.constants: dict[int, SSAValue] = {}
        self.entry = block

    def add_op(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def do(self, op: Operation) -> None:
        self.block.add_op(op)

    # -- LoopBuilder ---------------------------------------------------------------------------

    def index(self, value: int) -> SSAValue:
        """A constant, made once at the top of the function."""
        if value not in self.constants:
            op = arith.ConstantOp(IntegerAttr.from_index_int_value(value))
            first = self.entry.first_op
            if first is None:
                self.entry.add_op(op)
            else:
                self.entry.insert_op_before(op, first)
            op.result.name_hint = f"c{value}"
            self.constants[value] = op.result
        return self.constants[value]

    def is_constant(self, value: SSAValue, number: int) -> bool:
        return self.constants.get(number) is value

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        if self.is_constant(a, 0):
            return b
        if self.is_constant(b, 0):
            return a
        return self.add_op(arith.AddiOp(a, b))

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add_op(arith.SubiOp(a, b))

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        if self.is_constant(a, 0) or self.is_constant(b, 0):
            return self.index(0)
        return self.add_op(arith.MuliOp(a, b))

    def div(self, a: SSAValue, number: int) -> SSAValue:
        return self.add_op(arith.DivUIOp(a, self.index(number)))

    def mod(self, a: SSAValue, number: int) -> SSAValue:
        return self.add_op(arith.RemUIOp(a, self.index(number)))

    def bit(self, word: SSAValue, at: SSAValue) -> SSAValue:
        moved = self.add_op(arith.ShRUIOp(word, at))
        return self.ne(self.add_op(arith.AndIOp(moved, self.index(1))), self.index(0))

    def bits_below(self, word: SSAValue, at: SSAValue) -> SSAValue:
        mask = self.sub(self.add_op(arith.ShLIOp(self.index(1), at)), self.index(1))
        bits = self.add_op(arith.IndexCastOp(self.add_op(arith.AndIOp(word, mask)), i64))
        return self.add_op(arith.IndexCastOp(self.add_op(math.CtPopOp(bits)), index))

    def lt(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add_op(arith.CmpiOp(a, b, "slt"))

    def eq(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add_op(arith.CmpiOp(a, b, "eq"))

    def ne(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add_op(arith.CmpiOp(a, b, "ne"))

    def load(self, array: SSAValue, position: SSAValue) -> SSAValue:
        value = self.load_value(array, position)
        if isinstance(value.type, IndexType):
            return value
        return self.unsigned(value)

    def unsigned(self, value: SSAValue) -> SSAValue:
        """An integer zero-extended to an index."""
        width = integer_width(value.type)
        assert width
        if width < 64:
            value = self.add_op(arith.ExtUIOp(value, IntegerType(64)))
        return self.add_op(arith.IndexCastOp(value, index))

    def scan(self, lo: SSAValue, hi: SSAValue, go_on: Callable[[SSAValue], SSAValue]) -> SSAValue:
        def before(args: Sequence[SSAValue]) -> SSAValue:
            return self.guarded(self.lt(args[0], hi), lambda: go_on(args[0]))

        return self.loop_while([lo], before, lambda args: [self.add(args[0], self.index(1))])[0]

    def lower_bound(self, array: SSAValue, lo: SSAValue, hi: SSAValue, key: SSAValue) -> SSAValue:
        def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
            low, high = args
            half = self.add_op(arith.ShRUIOp(self.sub(high, low), self.index(1)))
            middle = self.add(low, half)
            less = self.lt(self.load(array, middle), key)
            after = self.add(middle, self.index(1))
            return [self.select(less, after, low), self.select(less, high, middle)]

        return self.loop_while([lo, hi], lambda args: self.lt(args[0], args[1]), body)[0]

    def guarded(self, condition: SSAValue, then: Callable[[], SSAValue]) -> SSAValue:
        return self.either(condition, lambda: [then()], lambda: [self.false()], [i1])[0]

    # -- beyond level formats ------------------------------------------------------------------

    def true(self) -> SSAValue:
        return self.add_op(arith.ConstantOp(IntegerAttr(1, i1)))

    def false(self) -> SSAValue:
        return self.add_op(arith.ConstantOp(IntegerAttr(0, i1)))

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add_op(arith.SelectOp(condition, a, b))

    def both(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
        if a is None or b is None:
            return b if a is None else a
        return self.add_op(arith.AndIOp(a, b))

    def minimum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add_op(arith.MinSIOp(a, b))

    def truth(self, flag: SSAValue) -> SSAValue:
        """A flag as the index 0 or 1."""
        return self.unsigned(flag)

    def load_value(self, array: SSAValue, position: SSAValue, width: int = 0) -> SSAValue:
        element = element_type(array.type)
        if width > 1:
            return self.add_op(vector.LoadOp(array, [position], VectorType(element, [width])))
        return self.add_op(memref.LoadOp(operands=[array, [position]], result_types=[element]))

    def store(self, value: SSAValue, array: SSAValue, position: SSAValue) -> None:
        """Store a value (a vector: at consecutive positions); an index is narrowed to the array's width."""
        if isinstance(value.type, VectorType):
            self.do(vector.StoreOp(value, array, [position]))
            return
        element = element_type(array.type)
        if isinstance(value.type, IndexType) and not isinstance(element, IndexType):
            value = self.add_op(arith.IndexCastOp(value, element))
        self.do(memref.StoreOp(operands=[value, array, [position]]))

    def broadcast(self, value: SSAValue, width: int) -> SSAValue:
        if width <= 1 or isinstance(value.type, VectorType):
            return value
        return self.add_op(vector.BroadcastOp(value, VectorType(value.type, [width])))

    def accumulate(self, old: SSAValue, value: SSAValue) -> SSAValue:
        """The sum in the element's arithmetic: or for booleans."""
        element = element_type(value.type)
        if isinstance(element, ComplexType):
            return self.add_op(ComplexAddOp(old, value))
        if isinstance(element, AnyFloat):
            return self.add_op(arith.AddfOp(old, value))
        return self.add_op(arith.OrIOp(old, value) if element == i1 else arith.AddiOp(old, value))

    def counter(self, hint: str = "count") -> SSAValue:
        """A local index variable, 0 at first; a register in the machine code."""
        cell = memref.AllocaOp.get(index, shape=[1])
        self.add_op(cell).name_hint = hint
        self.store(self.index(0), cell.results[0], self.index(0))
        return cell.results[0]

    def get(self, cell: SSAValue) -> SSAValue:
        return self.load_value(cell, self.index(0))

    def put(self, cell: SSAValue, value: SSAValue) -> None:
        self.store(value, cell, self.index(0))

    # -- structure -----------------------------------------------------------------------------

    def inside(self, block: Block, body: Callable[[], Operation]) -> None:
        """Run ``body`` with ``block`` as the place to build; its answer ends the block."""
        saved, self.block = self.block, block
        terminator = body()
        self.block.add_op(terminator)
        self.block = saved

    def either(
        self,
        condition: SSAValue,
        then: Callable[[], Sequence[SSAValue]],
        otherwise: Callable[[], Sequence[SSAValue]],
        types: Sequence[Attribute],
    ) -> Sequence[SSAValue]:
        yes, no = Block(), Block()
        self.inside(yes, lambda: scf.YieldOp(*then()))
        self.inside(no, lambda: scf.YieldOp(*otherwise()))
        op = scf.IfOp(condition, types, Region(yes), Region(no))
        self.do(op)
        return op.results

    def when(self, condition: SSAValue | None, then: Callable[[], object]) -> None:
        """Build ``then`` under a condition (None: unconditionally)."""
        if condition is None:
            then()
            return
        yes = Block()

        def body() -> Operation:
            then()
            return scf.YieldOp()

        self.inside(yes, body)
        self.do(scf.IfOp(condition, [], Region(yes)))

    def loop_for(
        self,
        lo: SSAValue,
        hi: SSAValue,
        step: int,
        inits: Sequence[SSAValue],
        body: Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]],
        hint: str = "i",
    ) -> Sequence[SSAValue]:
        block = Block(arg_types=[index, *(v.type for v in inits)])
        block.args[0].name_hint = hint
        self.inside(block, lambda: scf.YieldOp(*body(block.args[0], block.args[1:])))
        op = scf.ForOp(lo, hi, self.index(step), list(inits), Region(block))
        self.do(op)
        return op.results

    def loop_while(
        self,
        inits: Sequence[SSAValue],
        condition: Callable[[Sequence[SSAValue]], SSAValue],
        body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        types = [v.type for v in inits]
        before, after = Block(arg_types=types), Block(arg_types=types)
        self.inside(before, lambda: scf.ConditionOp(condition(before.args), *before.args))
        self.inside(after, lambda: scf.YieldOp(*body(after.args)))
        op = scf.WhileOp(list(inits), types, Region(before), Region(after))
        self.do(op)
        return op.results
