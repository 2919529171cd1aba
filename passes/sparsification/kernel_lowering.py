"""One kernel of the iteration dialect to one function of loops: cursors, values, insertion.

What loops look like is in :mod:`coiteration`, how results are put together in :mod:`assembly`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    VectorType,
    i1,
)
from xdsl.ir import Block, Operation, Region, SSAValue

from sparsecc.diagnostics import InternalError
from sparsecc.dialects import iteration
from sparsecc.dialects.reading import element_type
from sparsecc.formats import Ability, Format, Level
from sparsecc.formats.builder import LevelCode
from sparsecc.passes.sparsification.assembly import ASSEMBLIES, Assembly
from sparsecc.passes.sparsification.kernel_arguments import Arguments, buffer
from sparsecc.passes.sparsification.loop_builder import ScfBuilder
from sparsecc.passes.sparsification.term import stored_type, tensor_format
from sparsecc.passes.sparsification.term_values import zero_ops


@dataclass(frozen=True)
class Cursor:
    """A node at run time. ``segment_end``: below a nonunique level it is the positions [position, end).
    ``flag``: whether it is there (None: always). ``safe``: its position can be read even if it is not.
    ``width`` > 1: so many consecutive positions at once."""

    position: SSAValue
    segment_end: SSAValue | None = None
    flag: SSAValue | None = None
    safe: bool = True
    width: int = 1


@dataclass(frozen=True)
class Walker:
    """An iterator at run time: the level, its parent's position, and the positions [lo, hi)."""

    level: Level
    code: LevelCode
    parent: SSAValue
    lo: SSAValue
    hi: SSAValue

    def coordinate(self, b: ScfBuilder, position: SSAValue) -> SSAValue:
        return self.level.coordinate(b, self.code, self.parent, position)


def last_operands(region: Region) -> Sequence[SSAValue]:
    """What a region's terminator passes on."""
    last = region.block.last_op
    assert last is not None
    return list(last.operands)


class KernelLowering:
    """One kernel to one function of loops; ``counting``: it only finds how much it would store."""

    new_arguments: Callable[[], Arguments] = Arguments

    def __init__(self, kernel: func.FuncOp, counting: bool) -> None:
        self.kernel = kernel
        self.counting = counting
        self.formats: dict[SSAValue, Format] = {}
        self.owners: dict[SSAValue, str] = {}
        self.values: dict[SSAValue, SSAValue] = {}
        self.cursors: dict[SSAValue, Cursor] = {}
        self.width = 1
        self.vector_index: SSAValue | None = None
        """The coordinate of a block of ``width`` columns, inside a vectorised loop."""
        self.args = self.new_arguments()
        *inputs, self.out = kernel.body.block.args
        for number, arg in enumerate([*inputs, self.out]):
            self.owners[arg] = "out" if arg is self.out else f"in{number}"
            self.formats[arg] = tensor_format(arg.type)
        name = kernel.attributes["iteration.assembly"]
        assert isinstance(name, StringAttr)
        for arg in inputs:
            owner = self.owners[arg]
            self.args.request(f"{owner}.values", buffer(stored_type(element_type(arg.type))))
            self.args.request_arrays(owner, self.formats[arg])
            self.args.request_dims(owner, self.formats[arg].rank)
        element = stored_type(element_type(self.out.type))
        self.args.request_dims("out", self.formats[self.out].rank)
        self.assembly: Assembly = ASSEMBLIES[name.data](self.formats[self.out], element, counting)
        self.assembly.request(self.args)

    def run(self) -> func.FuncOp:
        name = self.kernel.sym_name.data + ("_count" if self.counting else "")
        fn = func.FuncOp(name, FunctionType.from_lists(self.args.types, []))
        fn.attributes.update(
            {k: v for k, v in self.kernel.attributes.items() if k != "iteration.kernel"}
        )
        fn.attributes["loops.args"] = ArrayAttr([StringAttr(r) for r in self.args.roles])
        block = fn.body.block
        self.args.bind(list(block.args))
        self.b = ScfBuilder(block)
        self.assembly.begin(self.b, self.args)
        self.lower_block(self.kernel.body.block)
        self.assembly.finish()
        self.b.do(func.ReturnOp())
        return fn

    # -- operations ----------------------------------------------------------------------------

    def lower_block(self, block: Block) -> Sequence[SSAValue]:
        """Lower a block's operations; gives what its terminator yields."""
        for op in block.ops:
            if isinstance(op, iteration.YieldOp | scf.YieldOp):
                return [self.get(v) for v in op.operands]
            self.lower(op)
        return []

    def get(self, value: SSAValue) -> SSAValue:
        return self.values[value]

    def lower(self, op: Operation) -> None:
        match op:
            case tensor.DimOp():
                number = op.index.owner
                assert isinstance(number, arith.ConstantOp) and isinstance(
                    number.value, IntegerAttr
                )
                self.values[op.result] = self.args[
                    f"{self.owners[op.source]}.dim{number.value.value.data}"
                ]
            case arith.ConstantOp() if (
                isinstance(op.value, IntegerAttr) and op.result.type == self.b.index(0).type
            ):
                self.values[op.result] = self.b.index(op.value.value.data)
            case iteration.RootOp():
                self.cursors[op.result] = Cursor(self.b.index(0))
            case iteration.LocateOp():
                self.cursors[op.result] = self.locate(op)
            case iteration.ValueOp():
                self.values[op.result] = self.value(op)
            case iteration.PresentOp():
                flag = self.cursors[op.at].flag
                self.values[op.result] = self.b.true() if flag is None else flag
            case iteration.NonemptyOp():
                lo, hi = self.bounds(op.tensor, self.cursors[op.at], op.level.value.data)
                self.values[op.result] = self.b.lt(lo, hi)
            case iteration.IterateOp():
                self.iterate(op)
            case iteration.WorkspaceOp():
                self.assembly.open_workspace()
                self.lower_block(op.body[0].block)
                self.assembly.close_workspace(
                    [self.size(op.out, n) for n in range(self.formats[op.out].num_levels)]
                )
            case iteration.InsertOp():
                self.insert(op)
            case scf.IfOp():
                self.branch(op)
            case func.ReturnOp():
                pass
            case _ if not op.regions:
                self.copy(op)
            case _:
                raise InternalError(f"no lowering for {op.name}")

    def branch(self, op: scf.IfOp) -> None:
        """A visit that is left out beyond the end of a dimension."""
        yes = op.true_region.block

        def then() -> Sequence[SSAValue]:
            return self.widened(self.lower_block(yes))

        if not op.results:
            self.b.when(self.get(op.cond), then)
            return
        otherwise = self.widened([self.get(v) for v in last_operands(op.false_region)])
        results = self.b.either(
            self.get(op.cond), then, lambda: otherwise, [v.type for v in otherwise]
        )
        self.values.update(zip(op.results, results, strict=True))

    def widened(self, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Loop-carried values; inside a block of columns every element is a vector, presence is shared."""
        if self.vector_index is None:
            return values
        return [v if v.type == i1 else self.b.broadcast(v, self.width) for v in values]

    def copy(self, op: Operation) -> None:
        """A scalar operation; if an operand is a vector the others are broadcast and the result is one."""
        operands = [self.get(v) for v in op.operands]
        types = [r.type for r in op.results]
        if any(isinstance(v.type, VectorType) for v in operands):
            first = 1 if isinstance(op, arith.SelectOp) else 0
            operands = [
                v if n < first else self.b.broadcast(v, self.width) for n, v in enumerate(operands)
            ]
            types = [VectorType(t, [self.width]) for t in types]
        new = op.create(
            operands=operands,
            result_types=types,
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        self.b.do(new)
        self.values.update(zip(op.results, new.results, strict=True))

    # -- cursors -------------------------------------------------------------------------------

    def size(self, tensor_: SSAValue, level: int) -> SSAValue:
        """The size of a level."""
        expr = self.formats[tensor_].exprs[level]
        return self.args[f"{self.owners[tensor_]}.dim{expr.dim}"]

    def code(self, tensor_: SSAValue, level: int) -> tuple[Level, LevelCode]:
        levels = self.formats[tensor_].levels
        kind = levels[level]
        if kind.name == "singleton" and level + 1 < len(levels):
            # Whatever it says: one coordinate of it may have several below.
            kind = replace(kind, unique=False)
        return kind, self.args.level_code(self.owners[tensor_], level, self.size(tensor_, level))

    def bounds(self, tensor_: SSAValue, parent: Cursor, level: int) -> tuple[SSAValue, SSAValue]:
        """The positions of a cursor's children; none if the cursor is not there."""
        if parent.segment_end is not None:
            # Below a nonunique level the children are the positions of the segment, empty if absent.
            return parent.position, parent.segment_end
        kind, code = self.code(tensor_, level)
        if parent.flag is None:
            lo, hi = kind.bounds(self.b, code, parent.position)
        else:
            zero = self.b.index(0)
            lo, hi = self.b.either(
                parent.flag,
                lambda: kind.bounds(self.b, code, parent.position),
                lambda: [zero, zero],
                [zero.type] * 2,
            )
        for end, hint in ((lo, "lo"), (hi, "hi")):
            if end.name_hint is None:
                end.name_hint = hint
        return lo, hi

    def locate(self, op: iteration.LocateOp) -> Cursor:
        b, level = self.b, op.level.value.data
        parent, coordinate = self.cursors[op.above], self.get(op.coordinate)
        kind, code = self.code(op.tensor, level)
        if kind.can(Ability.FULL):
            position, _ = kind.locate(b, code, parent.position, coordinate)
            wide = self.width if coordinate is self.vector_index else 1
            return Cursor(position, None, parent.flag, parent.safe, max(wide, parent.width))
        simple = parent.segment_end is None and parent.flag is None and kind.unique
        if simple and kind.can(Ability.LOCATE):
            position, found = kind.locate(b, code, parent.position, coordinate)
            return Cursor(position, None, found, found is None)
        lo, hi = self.bounds(op.tensor, parent, level)
        position = b.scan(
            lo, hi, lambda p: b.lt(kind.coordinate(b, code, parent.position, p), coordinate)
        )

        def same(p: SSAValue) -> SSAValue:
            return b.eq(kind.coordinate(b, code, parent.position, p), coordinate)

        if kind.unique:
            return Cursor(
                position, None, b.guarded(b.lt(position, hi), lambda: same(position)), False
            )
        end = b.scan(position, hi, same)
        return Cursor(position, end, b.lt(position, end), False)

    def value(self, op: iteration.ValueOp) -> SSAValue:
        b, at = self.b, self.cursors[op.at]
        values = self.args[f"{self.owners[op.tensor]}.values"]
        if at.flag is None:
            return b.load_value(values, at.position, at.width)
        zero = b.add_op(arith.ConstantOp(IntegerAttr(0, i1))) if op.result.type == i1 else None
        zero = self.zero_like(op) if zero is None else zero
        zero = b.broadcast(zero, at.width)
        if at.safe:
            return b.select(at.flag, b.load_value(values, at.position, at.width), zero)
        return b.either(
            at.flag,
            lambda: [b.load_value(values, at.position, at.width)],
            lambda: [zero],
            [zero.type],
        )[0]

    def zero_like(self, op: iteration.ValueOp) -> SSAValue:
        ops = zero_ops(op.result.type)
        for zero in ops:
            self.b.do(zero)
        return ops[-1].results[0]

    def insert(self, op: iteration.InsertOp) -> None:
        coordinates = [self.get(c) for c in op.coordinates]
        sizes = [self.size(op.out, n) for n in range(len(coordinates))]
        present = None if op.present is None else self.get(op.present)
        position = None if op.at is None else self.cursors[op.at].position
        value = self.get(op.value)
        if self.vector_index is not None:
            value = self.b.broadcast(value, self.width)
        self.b.when(
            present,
            lambda: self.assembly.insert(
                value, coordinates, sizes, position, op.accumulate is not None
            ),
        )

    def iterate(self, op: iteration.IterateOp) -> None:
        """Lower an iteration; defined where loops are."""
        raise NotImplementedError
