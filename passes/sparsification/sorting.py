"""``@sort``: ascending order of a list of coordinates in place (Shell's sort, gaps 3k + 1), as loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FunctionType, IndexType
from xdsl.ir import SSAValue

from sparsecc.passes.sparsification.kernel_arguments import buffer
from sparsecc.passes.sparsification.loop_builder import ScfBuilder


def sort_function() -> func.FuncOp:
    """``func.func private @sort(%list : memref<?xindex>, %n : index)``."""
    fn = func.FuncOp("sort", FunctionType.from_lists([buffer(IndexType()), IndexType()], []))
    b = ScfBuilder(fn.body.block)
    listed, n = fn.body.block.args
    listed.name_hint, n.name_hint = "list", "n"
    one, three = b.index(1), b.index(3)

    def larger(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [b.add(b.mul(args[0], three), one)]

    gap = b.loop_while([one], lambda args: b.lt(b.mul(args[0], three), n), larger)[0]

    def sweep(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        (gap,) = args

        def place(i: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            key = b.load_value(listed, i)

            def above(at: Sequence[SSAValue]) -> SSAValue:
                inside = b.add_op(arith.CmpiOp(at[0], gap, "sge"))
                return b.guarded(inside, lambda: b.lt(key, b.load_value(listed, b.sub(at[0], gap))))

            def shift(at: Sequence[SSAValue]) -> Sequence[SSAValue]:
                lower = b.sub(at[0], gap)
                b.store(b.load_value(listed, lower), listed, at[0])
                return [lower]

            hole = b.loop_while([i], above, shift)[0]
            b.store(key, listed, hole)
            return carried

        b.loop_for(gap, n, 1, [], place, "i")
        return [b.add_op(arith.DivUIOp(gap, three))]

    b.loop_while([gap], lambda args: b.lt(b.index(0), args[0]), sweep)
    b.do(func.ReturnOp())
    return fn
