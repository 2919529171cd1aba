"""The iteration dialect: how a kernel walks its operands, before loops over memory exist.

An operand is a tree of levels; a *cursor* is a node of that tree (or the absence of one). A kernel is a
``func.func`` with the attribute ``iteration.kernel``. SpMV over a CSR matrix reads::

    func.func @k0(%A : tensor<?x?xf64, #CSR>, %x : tensor<?xf64>, %y : tensor<?xf64>)
        attributes {iteration.kernel, iteration.assembly = "dense"} {
      %a = iteration.root %A : tensor<?x?xf64, #CSR>
      iteration.iterate {index = "i", full} ({
      ^bb0(%i : index):
        %a1 = iteration.locate %A, %a, %i {level = 0} : tensor<?x?xf64, #CSR>
        %s = iteration.iterate %A, %a1, %zero {index = "j", levels = [1], points = [[[0]]]} ({
        ^bb0(%j : index, %a2 : !iteration.cursor, %sum : f64):
          …
          iteration.yield %sum2
        })
        iteration.insert %s, %y, %i
        iteration.yield
      })
      func.return
    }

One region of ``iterate`` is one loop of the merge lattice: the iterators of its point are all active there.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import (
    Attribute,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

Points = ArrayAttr[ArrayAttr[DenseArrayBase]]


@irdl_attr_definition
class CursorType(ParametrizedAttribute, TypeAttribute):
    """A node of an operand's tree of levels, or the absence of one."""

    name = "iteration.cursor"


cursor = CursorType()
index = IndexType()


def ints(values: Sequence[int]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, values)


@irdl_op_definition
class RootOp(IRDLOperation):
    """The root of an operand's tree: one position, 0."""

    name = "iteration.root"
    tensor = operand_def()
    result = result_def(CursorType)
    assembly_format = "$tensor attr-dict `:` type($tensor)"

    def __init__(self, tensor: SSAValue) -> None:
        super().__init__(operands=[tensor], result_types=[cursor])


@irdl_op_definition
class LocateOp(IRDLOperation):
    """The child of a cursor with that coordinate; absent if there is none."""

    name = "iteration.locate"
    tensor = operand_def()
    above = operand_def(CursorType)
    coordinate = operand_def(IndexType)
    level = prop_def(IntegerAttr)
    result = result_def(CursorType)

    def __init__(self, tensor: SSAValue, above: SSAValue, coordinate: SSAValue, level: int) -> None:
        super().__init__(
            operands=[tensor, above, coordinate],
            properties={"level": IntegerAttr(level, i64)},
            result_types=[cursor],
        )


@irdl_op_definition
class ValueOp(IRDLOperation):
    """The value at a leaf cursor; the fill value (0) where the cursor is absent."""

    name = "iteration.value"
    tensor = operand_def()
    at = operand_def(CursorType)
    result = result_def()

    def __init__(self, tensor: SSAValue, at: SSAValue, element: Attribute) -> None:
        super().__init__(operands=[tensor, at], result_types=[element])


@irdl_op_definition
class PresentOp(IRDLOperation):
    """Whether a cursor is there."""

    name = "iteration.present"
    at = operand_def(CursorType)
    result = result_def(i1)
    assembly_format = "$at attr-dict"

    def __init__(self, at: SSAValue) -> None:
        super().__init__(operands=[at], result_types=[i1])


@irdl_op_definition
class NonemptyOp(IRDLOperation):
    """Whether a cursor has a child at a level."""

    name = "iteration.nonempty"
    tensor = operand_def()
    at = operand_def(CursorType)
    level = prop_def(IntegerAttr)
    result = result_def(i1)

    def __init__(self, tensor: SSAValue, at: SSAValue, level: int) -> None:
        super().__init__(
            operands=[tensor, at], properties={"level": IntegerAttr(level, i64)}, result_types=[i1]
        )


@irdl_op_definition
class IterateOp(IRDLOperation):
    """Visit the coordinates of one index, by co-iterating levels of operands.

    ``tensors[k]`` is walked at ``levels[k]`` below ``parents[k]``: iterator k. Region r is the loop in which the
    iterators ``loops[r]`` are all active; a coordinate is visited there if those present include one of
    ``points[r]``. With an ``extent`` every coordinate of ``[0, extent)`` is visited and the only region walks
    whatever iterators there are alongside. Block arguments: coordinate, a cursor for each iterator of
    ``loops[r]``, then the loop-carried values. ``vector`` lists block widths for an index along which every
    value is contiguous. ``assemble`` names the output level that takes this index's coordinates.
    """

    name = "iteration.iterate"
    extent = opt_operand_def(IndexType)
    tensors = var_operand_def()
    parents = var_operand_def(CursorType)
    inits = var_operand_def()
    index = prop_def(StringAttr)
    levels = prop_def(DenseArrayBase)
    loops = prop_def(ArrayAttr[DenseArrayBase])
    points = prop_def(Points)
    vector = opt_prop_def(DenseArrayBase)
    assemble = opt_prop_def(IntegerAttr)
    results_ = var_result_def()
    bodies = var_region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        name: str,
        extent: SSAValue | None,
        tensors: Sequence[SSAValue],
        parents: Sequence[SSAValue],
        levels: Sequence[int],
        loops: Sequence[Sequence[int]],
        points: Sequence[Sequence[Sequence[int]]],
        inits: Sequence[SSAValue],
        bodies: Sequence[Region],
        vector: Sequence[int] = (),
        assemble: int | None = None,
    ) -> None:
        super().__init__(
            operands=[extent, tensors, parents, inits],
            properties={
                "index": StringAttr(name),
                "levels": ints(levels),
                "loops": ArrayAttr([ints(loop) for loop in loops]),
                "points": ArrayAttr([ArrayAttr([ints(p) for p in loop]) for loop in points]),
                "vector": ints(vector) if vector else None,
                "assemble": None if assemble is None else IntegerAttr(assemble, i64),
            },
            result_types=[[v.type for v in inits]],
            regions=[bodies],
        )

    def loop_iterators(self, region: int) -> tuple[int, ...]:
        return tuple(int(k) for k in self.loops.data[region].get_values())

    def loop_points(self, region: int) -> tuple[frozenset[int], ...]:
        return tuple(frozenset(int(k) for k in p.get_values()) for p in self.points.data[region])

    def verify_(self) -> None:
        if len(self.tensors) != len(self.parents) or len(self.levels) != len(self.tensors):
            raise VerifyException("an iterator is a tensor, a parent cursor and a level")
        if len(self.bodies) != len(self.loops) or len(self.bodies) != len(self.points):
            raise VerifyException("each region needs its loop and its points")
        if self.extent is not None and len(self.bodies) != 1:
            raise VerifyException("an iteration over a whole extent has one region")
        for r, body in enumerate(self.bodies):
            wanted = [index, *[cursor] * len(self.loop_iterators(r)), *(v.type for v in self.inits)]
            if [a.type for a in body.block.args] != wanted:
                raise VerifyException(f"region {r} has the wrong block arguments")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The end of a visit: the next loop-carried values."""

    name = "iteration.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, values: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[values])


@irdl_op_definition
class WorkspaceOp(IRDLOperation):
    """A dense workspace over the innermost output index, with a marker and a list of what was touched.

    Inserts of the region land in it; after the region its entries are appended in order of coordinates."""

    name = "iteration.workspace"
    out = operand_def()
    level = prop_def(IntegerAttr)
    index = prop_def(StringAttr)
    body = var_region_def("single_block")

    def __init__(self, out: SSAValue, level: int, name: str, body: Region) -> None:
        super().__init__(
            operands=[out],
            properties={"level": IntegerAttr(level, i64), "index": StringAttr(name)},
            regions=[[body]],
        )


@irdl_op_definition
class InsertOp(IRDLOperation):
    """Put a value at output coordinates (in level order), or at the position of an operand's leaf cursor.

    ``accumulate`` adds to what stands there. With ``present`` it happens only if that holds."""

    name = "iteration.insert"
    value = operand_def()
    out = operand_def()
    coordinates = var_operand_def(IndexType)
    at = opt_operand_def(CursorType)
    present = opt_operand_def(i1)
    accumulate = opt_prop_def(UnitAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        value: SSAValue,
        out: SSAValue,
        coordinates: Sequence[SSAValue],
        at: SSAValue | None = None,
        present: SSAValue | None = None,
        accumulate: bool = False,
    ) -> None:
        super().__init__(
            operands=[value, out, coordinates, at, present],
            properties={"accumulate": UnitAttr() if accumulate else None},
        )


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Run a kernel on tensors: the host side's call. ``init`` is what a dense result starts from."""

    name = "iteration.launch"
    inputs = var_operand_def()
    init = opt_operand_def()
    kernel = prop_def(StringAttr)
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self, kernel: str, inputs: Sequence[SSAValue], init: SSAValue | None, result: Attribute
    ) -> None:
        super().__init__(
            operands=[inputs, init], properties={"kernel": StringAttr(kernel)}, result_types=[result]
        )


_OPS: list[type[Operation]] = [
    RootOp, LocateOp, ValueOp, PresentOp, NonemptyOp, IterateOp, YieldOp, WorkspaceOp, InsertOp, LaunchOp,
]  # fmt: skip

Iteration = Dialect("iteration", _OPS, [CursorType])

__all__ = [
    "BoolAttr", "CursorType", "InsertOp", "IterateOp", "Iteration", "LaunchOp", "LocateOp", "NonemptyOp",
    "PresentOp", "RootOp", "ValueOp", "WorkspaceOp", "YieldOp", "cursor", "ints",
]  # fmt: skip
