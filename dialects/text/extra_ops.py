"""Operations of upstream's dialects that xDSL does not define."""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    region_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class DeallocTensorOp(IRDLOperation):
    """The end of a tensor's life."""

    name = "bufferization.dealloc_tensor"

    tensor = operand_def(TensorType[Attribute])

    assembly_format = "$tensor attr-dict `:` type($tensor)"

    def __init__(self, tensor: SSAValue | Operation) -> None:
        super().__init__(operands=[tensor])


@irdl_op_definition
class GenerateOp(IRDLOperation):
    """A dense tensor whose elements a region computes from their coordinates."""

    name = "tensor.generate"

    dynamic_extents = var_operand_def(IndexType())
    body = region_def("single_block")
    result = result_def(TensorType[Attribute])

    assembly_format = "$dynamic_extents $body attr-dict `:` type($result)"

    def verify_(self) -> None:
        shape = self.result.type.get_shape()
        dynamic = shape.count(DYNAMIC_INDEX)
        given = len(self.dynamic_extents)
        if dynamic != given:
            raise VerifyException(f"{given} sizes for {dynamic} dynamic dimensions")
        types = tuple(arg.type for arg in self.body.block.args)
        if types != (IndexType(),) * len(shape):
            raise VerifyException(f"the region takes {len(shape)} coordinates of type index")
