"""Programs that share a sum: the last one to arrive at a counter finds what the others have stored.

Each program stores its part, then ``%last = tile.arrive %counters[%n] of %count : memref<?xi32>, i32``; where that
holds the parts are loaded again (``{tile.shared}``: past caches of this processor alone) and put together in a fixed
order.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, MemRefType, i1, i32
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from sparsecc.dialects.reading import element_type

SHARED = "tile.shared"
"""The attribute of loads that read what other programs have stored."""


@irdl_op_definition
class ArriveOp(IRDLOperation):
    """Count this program at a counter, after all that it has stored: whether it is the last of ``count``.

    The counter is 0 before the first and after the last."""

    name = "tile.arrive"
    counters = operand_def(MemRefType)
    offset = operand_def(IntegerType)
    count = operand_def(i32)
    result = result_def(i1)
    assembly_format = (
        "$counters `[` $offset `]` `of` $count attr-dict `:` type($counters) `,` type($offset)"
    )

    def __init__(self, counters: SSAValue, offset: SSAValue, count: SSAValue) -> None:
        super().__init__(operands=[counters, offset, count], result_types=[i1])

    def verify_(self) -> None:
        if element_type(self.counters.type) != i32:
            raise VerifyException("counters are i32")


OPS: list[type[Operation]] = [ArriveOp]
