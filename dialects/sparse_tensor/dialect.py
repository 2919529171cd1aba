"""The dialect object, for a Context."""

from xdsl.ir import Dialect

from sparsecc.dialects.sparse_tensor import body_ops, ops
from sparsecc.dialects.sparse_tensor.attributes import EncodingAttr

SparseTensor = Dialect(
    "sparse_tensor",
    [
        ops.ConvertOp,
        ops.ReinterpretMapOp,
        ops.NewOp,
        ops.AssembleOp,
        ops.DisassembleOp,
        ops.PositionsOp,
        ops.CoordinatesOp,
        ops.CoordinatesBufferOp,
        ops.ValuesOp,
        ops.NumberOfEntriesOp,
        ops.LvlOp,
        ops.ConcatenateOp,
        ops.LoadOp,
        ops.PrintOp,
        ops.HasRuntimeLibraryOp,
        body_ops.UnaryOp,
        body_ops.BinaryOp,
        body_ops.ReduceOp,
        body_ops.SelectOp,
        body_ops.YieldOp,
    ],
    [EncodingAttr],
)
