"""Operations on whole sparse tensors; those inside ``linalg.generic`` are in :mod:`body_ops`.

Names, operands, attributes and assembly formats are upstream's, so that either
compiler reads the other's text.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IndexTypeConstr,
    IntegerAttr,
    MemRefType,
    TensorType,
    UnitAttr,
    i1,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    SameVariadicResultSize,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from sparsecc.dialects.sparse_tensor import checks
from sparsecc.dialects.sparse_tensor.types import width_type
from sparsecc.formats import SumFormat

AnyTensor = TensorType[Attribute]
AnyMemRef = MemRefType[Attribute]


@irdl_op_definition
class ConvertOp(IRDLOperation):
    """The same tensor in another format (and of another element type, if they differ)."""

    name = "sparse_tensor.convert"

    source = operand_def(AnyTensor)
    dest = result_def(AnyTensor)

    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($dest)"

    def __init__(self, source: SSAValue | Operation, result_type: Attribute) -> None:
        super().__init__(operands=[source], result_types=[result_type])

    def verify_(self) -> None:
        checks.same_shape(self.source.type, self.dest.type)


@irdl_op_definition
class ReinterpretMapOp(IRDLOperation):
    """The same buffers seen through another map of dimensions to levels."""

    name = "sparse_tensor.reinterpret_map"

    source = operand_def(AnyTensor)
    dest = result_def(AnyTensor)

    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($dest)"

    def __init__(self, source: SSAValue | Operation, result_type: Attribute) -> None:
        super().__init__(operands=[source], result_types=[result_type])

    def verify_(self) -> None:
        source = checks.chosen(self.source.type, "the source")
        dest = checks.chosen(self.dest.type, "the result")
        if isinstance(source, SumFormat) or isinstance(dest, SumFormat):
            raise VerifyException("a sum of formats has no levels to be seen by")
        if source.levels != dest.levels or (
            (source.pos_width, source.crd_width) != (dest.pos_width, dest.crd_width)
        ):
            raise VerifyException("the source and the result must have the same levels and widths")
        if checks.element(self.source.type) != checks.element(self.dest.type):
            raise VerifyException("the source and the result must have the same element type")
        old, new = checks.shape(self.source.type, ""), checks.shape(self.dest.type, "")
        if DYNAMIC_INDEX in (*old, *new):
            return
        sizes = source.level_sizes(old), dest.level_sizes(new)
        if sizes[0] != sizes[1]:
            raise VerifyException(f"levels of sizes {sizes[0]} can't become {sizes[1]}")


@irdl_op_definition
class NewOp(IRDLOperation):
    """A sparse tensor read from what ``source`` names (a file)."""

    name = "sparse_tensor.new"

    source = operand_def()
    result = result_def(AnyTensor)

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue | Operation, result_type: Attribute) -> None:
        super().__init__(operands=[source], result_types=[result_type])

    def verify_(self) -> None:
        checks.encoded(self.result.type, "the result")


@irdl_op_definition
class AssembleOp(IRDLOperation):
    """A sparse tensor of given level buffers and values."""

    name = "sparse_tensor.assemble"

    levels = var_operand_def(AnyTensor)
    values = operand_def(AnyTensor)
    result = result_def(AnyTensor)

    traits = traits_def(Pure())
    assembly_format = (
        "` ` `(` $levels `)` `,` $values attr-dict "
        "`:` `(` type($levels) `)` `,` type($values) `to` type($result)"
    )

    def verify_(self) -> None:
        fmt = checks.chosen(self.result.type, "the result")
        wanted = checks.buffer_count(fmt)
        if len(self.levels) != wanted:
            raise VerifyException(f"the levels take {wanted} arrays, not {len(self.levels)}")
        found, element = checks.element(self.values.type), checks.element(self.result.type)
        if found != element:
            raise VerifyException(f"the values are {found}, but the tensor's elements {element}")


@irdl_op_definition
class DisassembleOp(IRDLOperation):
    """Copies level buffers and values out of a sparse tensor; gives them and their used lengths."""

    name = "sparse_tensor.disassemble"

    tensor = operand_def(AnyTensor)
    out_levels = var_operand_def(AnyTensor)
    out_values = operand_def(AnyTensor)
    ret_levels = var_result_def(AnyTensor)
    ret_values = result_def(AnyTensor)
    lvl_lens = var_result_def(IndexTypeConstr)
    val_len = result_def(IndexTypeConstr)

    irdl_options = (SameVariadicResultSize(),)
    assembly_format = (
        "$tensor attr-dict `:` type($tensor) "
        "`out_lvls` `(` $out_levels `:` type($out_levels) `)` "
        "`out_vals` `(` $out_values `:` type($out_values) `)` `->` "
        "`(` type($ret_levels) `)` `,` type($ret_values) `,` "
        "`(` type($lvl_lens) `)` `,` type($val_len)"
    )

    def verify_(self) -> None:
        fmt = checks.chosen(self.tensor.type, "the operand")
        wanted = checks.buffer_count(fmt)
        if len(self.out_levels) != wanted:
            raise VerifyException(f"the levels take {wanted} arrays, not {len(self.out_levels)}")
        if self.ret_values.type != self.out_values.type:
            raise VerifyException("the returned values have the type of their buffer")
        if tuple(self.ret_levels.types) != tuple(self.out_levels.types):
            raise VerifyException("the returned level arrays have the types of their buffers")


class LevelBufferOp(IRDLOperation):
    """What ``positions`` and ``coordinates`` share: a tensor, a level, a buffer."""

    tensor = operand_def(AnyTensor)
    result = result_def(AnyMemRef)
    level = prop_def(IntegerAttr[IndexType])

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$tensor attr-dict `:` type($tensor) `to` type($result)"

    ROLE: ClassVar[str] = ""

    def __init__(self, tensor: SSAValue | Operation, level: int, result_type: Attribute) -> None:
        super().__init__(
            operands=[tensor],
            result_types=[result_type],
            properties={"level": IntegerAttr.from_index_int_value(level)},
        )

    def verify_(self) -> None:
        fmt = checks.chosen(self.tensor.type, "the operand")
        number = self.level.value.data
        if not 0 <= number < fmt.num_levels:
            raise VerifyException(f"there is no level {number}; the format has {fmt.num_levels}")
        if self.ROLE not in fmt.levels[number].arrays:
            raise VerifyException(f"level {number} is {fmt.levels[number]}: it has no {self.ROLE}")
        width = fmt.pos_width if self.ROLE == "positions" else fmt.crd_width
        checks.buffer(self.result.type, width_type(width), self.ROLE)


@irdl_op_definition
class PositionsOp(LevelBufferOp):
    """The positions of a level."""

    name = "sparse_tensor.positions"
    ROLE: ClassVar[str] = "positions"


@irdl_op_definition
class CoordinatesOp(LevelBufferOp):
    """The coordinates of a level."""

    name = "sparse_tensor.coordinates"
    ROLE: ClassVar[str] = "coordinates"


@irdl_op_definition
class CoordinatesBufferOp(IRDLOperation):
    """The interleaved coordinates of a COO region."""

    name = "sparse_tensor.coordinates_buffer"

    tensor = operand_def(AnyTensor)
    result = result_def(AnyMemRef)

    traits = traits_def(Pure())
    assembly_format = "$tensor attr-dict `:` type($tensor) `to` type($result)"

    def verify_(self) -> None:
        fmt = checks.chosen(self.tensor.type, "the operand")
        if checks.buffer_count(fmt) == sum(len(level.arrays) for level in fmt.levels):
            raise VerifyException(f"{fmt} has no COO region with interleaved coordinates")
        checks.buffer(self.result.type, width_type(fmt.crd_width), "coordinates")


@irdl_op_definition
class ValuesOp(IRDLOperation):
    """The stored values."""

    name = "sparse_tensor.values"

    tensor = operand_def(AnyTensor)
    result = result_def(AnyMemRef)

    traits = traits_def(Pure())
    assembly_format = "$tensor attr-dict `:` type($tensor) `to` type($result)"

    def __init__(self, tensor: SSAValue | Operation) -> None:
        result = MemRefType(checks.element(SSAValue.get(tensor).type), [DYNAMIC_INDEX])
        super().__init__(operands=[tensor], result_types=[result])

    def verify_(self) -> None:
        checks.encoded(self.tensor.type, "the operand")
        checks.buffer(self.result.type, checks.element(self.tensor.type), "values")


@irdl_op_definition
class NumberOfEntriesOp(IRDLOperation):
    """How many values are stored, padding included."""

    name = "sparse_tensor.number_of_entries"

    tensor = operand_def(AnyTensor)
    result = result_def(IndexType())

    traits = traits_def(Pure())
    assembly_format = "$tensor attr-dict `:` type($tensor)"

    def __init__(self, tensor: SSAValue | Operation) -> None:
        super().__init__(operands=[tensor], result_types=[IndexType()])

    def verify_(self) -> None:
        checks.encoded(self.tensor.type, "the operand")


@irdl_op_definition
class LvlOp(IRDLOperation):
    """The size of a level."""

    name = "sparse_tensor.lvl"

    source = operand_def(AnyTensor)
    index = operand_def(IndexType())
    result = result_def(IndexType())

    traits = traits_def(Pure())
    assembly_format = "attr-dict $source `,` $index `:` type($source)"

    def __init__(self, source: SSAValue | Operation, index: SSAValue | Operation) -> None:
        super().__init__(operands=[source, index], result_types=[IndexType()])

    def verify_(self) -> None:
        checks.encoded(self.source.type, "the operand")


@irdl_op_definition
class ConcatenateOp(IRDLOperation):
    """Tensors one after the other along a dimension."""

    name = "sparse_tensor.concatenate"

    inputs = var_operand_def(AnyTensor)
    result = result_def(AnyTensor)
    dimension = prop_def(IntegerAttr[IndexType])

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$inputs attr-dict `:` type($inputs) `to` type($result)"

    def verify_(self) -> None:
        if len(self.inputs) < 2:
            raise VerifyException("needs two tensors or more")
        shape = checks.shape(self.result.type, "the result")
        axis = self.dimension.value.data
        if not 0 <= axis < len(shape):
            raise VerifyException(f"there is no dimension {axis}; the result has rank {len(shape)}")
        shapes = [checks.shape(value.type, f"input {k}") for k, value in enumerate(self.inputs)]
        for k, other in enumerate(shapes):
            if len(other) != len(shape):
                raise VerifyException(f"input {k} has rank {len(other)}, the result {len(shape)}")
        for d, size in enumerate(shape):
            sizes = [other[d] for other in shapes]
            if size == DYNAMIC_INDEX or DYNAMIC_INDEX in sizes:
                continue
            fits = sum(sizes) == size if d == axis else set(sizes) == {size}
            if not fits:
                raise VerifyException(f"inputs of sizes {sizes} in dimension {d} can't make {size}")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Materialises a tensor; with ``hasInserts`` insertions into it are finished first."""

    name = "sparse_tensor.load"

    T: ClassVar = VarConstraint("T", base(AnyTensor))

    tensor = operand_def(T)
    result = result_def(T)
    has_inserts = opt_prop_def(UnitAttr, prop_name="hasInserts")

    assembly_format = "$tensor (`hasInserts` $hasInserts^)? attr-dict `:` type($tensor)"

    def __init__(self, tensor: SSAValue | Operation, has_inserts: bool = False) -> None:
        super().__init__(
            operands=[tensor],
            result_types=[SSAValue.get(tensor).type],
            properties={"hasInserts": UnitAttr()} if has_inserts else {},
        )

    def verify_(self) -> None:
        checks.shape(self.tensor.type, "the operand")


@irdl_op_definition
class PrintOp(IRDLOperation):
    """Prints the arrays of a sparse tensor."""

    name = "sparse_tensor.print"

    tensor = operand_def(AnyTensor)

    assembly_format = "$tensor attr-dict `:` type($tensor)"

    def __init__(self, tensor: SSAValue | Operation) -> None:
        super().__init__(operands=[tensor])

    def verify_(self) -> None:
        checks.encoded(self.tensor.type, "the operand")


@irdl_op_definition
class HasRuntimeLibraryOp(IRDLOperation):
    """Whether the program runs against a library of sparse tensors."""

    name = "sparse_tensor.has_runtime_library"

    result = result_def(i1)

    traits = traits_def(NoMemoryEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[i1])
