"""One kernel of the iteration dialect to one program on blocks: values, insertion, and the grid.

What loops look like is in :mod:`tile_loops`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    VectorType,
    f32,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from sparsecc.dialects import iteration
from sparsecc.dialects.reading import block_type, element_type, elements, integer_width
from sparsecc.dialects.sparse_tensor.types import ranked_tensor
from sparsecc.dialects.tile import blocks
from sparsecc.formats import known_name
from sparsecc.passes.sparsification.coiteration import LoopLowering
from sparsecc.passes.sparsification.kernel_arguments import buffer
from sparsecc.passes.sparsification.term import stored_type
from sparsecc.passes.tiling.block_builder import BlockBuilder
from sparsecc.passes.tiling.block_values import Shape, is_zero, joint_shape
from sparsecc.passes.tiling.iteration_loops import KernelLoops, source
from sparsecc.passes.tiling.iteration_space import LoopSchedule
from sparsecc.passes.tiling.tile_arguments import (
    Place,
    SparseResult,
    TileArguments,
    TypeNotOnGpu,
    refuse_large,
)

HALVES = (Float16Type, BFloat16Type)
COMPARISONS = {arith.CmpiOp: blocks.INTEGER_PREDICATES, arith.CmpfOp: blocks.FLOAT_PREDICATES}
CASTS = {
    f"arith.{kind}": kind
    for kind in ("extui", "extsi", "trunci", "sitofp", "uitofp", "fptosi", "fptoui")
}


def computed(element: Attribute) -> Attribute:
    """The type in which elements are computed on: sums of halves are kept in f32, and rounded once when stored."""
    return f32 if isinstance(element, HALVES) else element


class TileKernel(LoopLowering):
    """One kernel to one tile kernel of the blocks form, with a schedule."""

    b: BlockBuilder
    new_arguments = TileArguments

    def __init__(
        self,
        kernel: func.FuncOp,
        loops: KernelLoops,
        schedule: LoopSchedule,
        space: Sequence[LoopSchedule],
    ) -> None:
        name = kernel.attributes["iteration.assembly"]
        assert isinstance(name, StringAttr)
        if name.data not in ("dense", "pattern"):
            raise SparseResult(place=source(kernel))
        super().__init__(kernel, counting=False)
        self.loops, self.schedule, self.space = loops, schedule, space
        for arg in kernel.body.block.args:
            self.check_type(element_type(arg.type))
            role = f"{self.owners[arg]}.values"
            self.args.types[self.args.roles.index(role)] = buffer(element_type(arg.type))
        self.places: dict[str, Place] = {}
        self.shares, self.part_volume, self.nested = False, 1, 0
        self.partial_type = computed(stored_type(element_type(self.out.type)))
        self.request_shared()
        self.open: Shape = ()
        """The axes of all loops around the current place, as a shape."""
        self.widths, self.axes = self.blocked()
        self.rank = len(self.axes)

    def check_type(self, element: Attribute) -> None:
        wide = integer_width(element) > 64
        if wide or type(element) is ComplexType:
            raise TypeNotOnGpu(type=element, place=source(self.kernel))

    def blocked(self) -> tuple[dict[str, int], dict[str, int]]:
        """The width of each loop, and the axis of those wider than 1: positions, rows, sums, columns.

        Where nothing is known of addresses Triton puts neighbouring lanes along axis 0: there positions gain most."""
        s, grid = self.schedule, [g.index for g in self.loops.grid]
        widths = dict.fromkeys(self.loops.walks, s.positions)
        widths.update({name: s.rows for name in (grid[-2:-1] if len(grid) > 1 else grid)})
        widths.update(dict.fromkeys(self.loops.dense, s.sums))
        widths.update({name: s.columns for name in grid[1:][-1:]})
        wide = [name for name, width in widths.items() if width > 1]
        return widths, {name: axis for axis, name in enumerate(wide)}

    # -- the function --------------------------------------------------------------------------

    def run(self) -> func.FuncOp:
        fn = func.FuncOp(self.kernel.sym_name.data, FunctionType.from_lists(self.args.types, []))
        fn.attributes.update(
            {k: v for k, v in self.kernel.attributes.items() if k != "iteration.kernel"}
        )
        fn.attributes["tile.kernel"] = UnitAttr()
        fn.attributes["tile.form"] = StringAttr("blocks")
        fn.attributes["tile.schedule"] = self.schedule.attribute()
        rest = [s for s in self.space if s != self.schedule]
        fn.attributes["tile.space"] = ArrayAttr([s.attribute() for s in (self.schedule, *rest)])
        block = fn.body.block
        self.args.bind(list(block.args))
        self.name_arguments()
        self.b = BlockBuilder(block)
        extents = self.fixed_extents()
        for role, extent in extents.items():
            self.args.values[role] = self.b.index(extent)
        for role, first in self.equal_extents().items():
            self.args.values[role] = self.args[first]
        self.assembly.begin(self.b, self.args)
        factors = self.enter_grid(extents)
        self.lower_block(self.kernel.body.block)
        self.b.do(func.ReturnOp())
        read = [n for role, n in extents.items() if self.args.values[role].first_use is not None]
        refuse_large(read, source(self.kernel))
        fn.attributes["tile.operands"] = ArrayAttr([StringAttr(line) for line in self.operands])
        axes = [factors]
        if self.shares:
            axes.append([blocks.Factor("", self.schedule.split)])
            fn.attributes["tile.work"] = self.work(factors)
        else:
            fn.attributes["tile.schedule"] = replace(self.schedule, split=1).attribute()
        fn.attributes["tile.grid"] = blocks.GridAttr.of(axes)
        self.drop_unused(fn, {f.extent for f in factors})
        return fn

    def name_arguments(self) -> None:
        """``A_values``, ``A_positions1`` … and what each operand is, for readers."""
        lines: list[str] = []
        for number, (arg, owner) in enumerate(self.owners.items()):
            name = arg.name_hint or owner
            for role in self.args.roles:
                if role.startswith(f"{owner}."):
                    self.args[role].name_hint = f"{name}_{role.partition('.')[2]}"
            result = "result, " if number + 1 == len(self.owners) else ""
            format = known_name(self.formats[arg])
            lines.append(f"{name}: {result}{element_type(arg.type)}, {format}")
        self.operands = lines

    def equal_extents(self) -> dict[str, str]:
        """Extents that are those of an argument before: of dimensions with the same index."""
        first: dict[int, str] = {}
        found: dict[str, str] = {}
        maps = elements(self.kernel.attributes.get("iteration.maps"))
        for owner, map_ in zip(self.owners.values(), maps, strict=True):
            assert isinstance(map_, AffineMapAttr)
            for dim, expr in enumerate(map_.data.results):
                if isinstance(expr, AffineDimExpr):
                    role = f"{owner}.dim{dim}"
                    found[role] = first.setdefault(expr.position, role)
        fixed = self.fixed_extents()
        constant = {found[role]: role for role in fixed if role in found}
        return {role: constant.get(same, same) for role, same in found.items()}

    def request_shared(self) -> None:
        raise NotImplementedError

    def work(self, factors: Sequence[blocks.Factor]) -> blocks.GridAttr:
        raise NotImplementedError

    def added(self, kind: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """Two sums put together."""
        if is_zero(a):
            return b
        if kind == "or":
            return self.b.either_of(a, b)
        return self.b.accumulate(a, b)

    def fixed_extents(self) -> dict[str, int]:
        """Extents that types say."""
        found: dict[str, int] = {}
        for arg, owner in self.owners.items():
            type_ = ranked_tensor(arg.type)
            for dim, extent in enumerate(() if type_ is None else type_.get_shape()):
                if extent != DYNAMIC_INDEX:
                    found[f"{owner}.dim{dim}"] = extent
        return found

    def drop_unused(self, fn: func.FuncOp, needed: set[str]) -> None:
        """Erase constants and arguments that nothing reads."""
        entry, roles = fn.body.block, list(self.args.roles)
        for op in reversed(list(entry.ops)):
            if isinstance(op, arith.ConstantOp) and op.result.first_use is None:
                op.detach()
                op.erase()
        for number in reversed(range(len(roles))):
            arg = entry.args[number]
            if arg.first_use is None and roles[number] not in needed:
                entry.erase_arg(arg)
                del roles[number]
        fn.function_type = FunctionType.from_lists([a.type for a in entry.args], [])
        fn.attributes["tile.args"] = ArrayAttr([StringAttr(r) for r in roles])

    # -- the grid ------------------------------------------------------------------------------

    def enter_grid(self, extents: dict[str, int]) -> list[blocks.Factor]:
        """Bind the coordinates of the grid loops; programs beside each other have neighbouring rows."""
        b, grid = self.b, self.loops.grid
        factors: list[blocks.Factor] = []
        if not grid:
            return factors
        number = b.add_op(blocks.ProgramIdOp(0))
        number.name_hint = "program"
        same = self.equal_extents()
        for n, loop in enumerate(grid):
            role = same.get(loop.extent, loop.extent)
            width, extent = self.widths.get(loop.index, 1), self.args[role]
            if role in extents:
                refuse_large([extents[role]], source(self.kernel))
                factors.append(blocks.Factor("", -(-extents[role] // width)))
            else:
                factors.append(blocks.Factor(role, width))
            at = number
            if n + 1 < len(grid):
                count = extent
                if width > 1:
                    up = b.add(extent, b.index(width - 1))
                    count = b.add_op(arith.DivSIOp(up, b.index(width)))
                at = b.add_op(arith.RemSIOp(number, count))
                number = b.add_op(arith.DivSIOp(number, count))
            inside: SSAValue | None = None
            if width > 1:
                start = b.add_op(arith.MuliOp(at, b.index(width)))
                at = b.add(start, self.lanes(loop.index))
                inside = b.lt(at, extent)
            at.name_hint = loop.index
            self.places[loop.index] = Place(at, inside)
        return factors

    def lanes(self, index: str) -> SSAValue:
        """0, 1, 2 … along a loop's axis."""
        axis, width = self.axes[index], self.widths[index]
        return self.b.add_op(blocks.IotaOp(axis, VectorType(i32, self.along(axis, width))))

    def along(self, axis: int, width: int) -> Shape:
        return tuple(width if k == axis else 1 for k in range(self.rank))

    @contextmanager
    def opened(self, index: str) -> Generator[None]:
        """Build inside a loop."""
        saved = self.open
        if index in self.axes:
            self.open = joint_shape(saved, self.along(self.axes[index], self.widths[index]))
        yield
        self.open = saved

    # -- values --------------------------------------------------------------------------------

    def copy(self, op: Operation) -> None:
        """An operation of the body on blocks."""
        self.values[op.results[0]] = self.copied(op, [self.get(v) for v in op.operands])

    def copied(self, op: Operation, operands: list[SSAValue]) -> SSAValue:
        b = self.b
        result = op.results[0].type
        self.check_type(result)
        match op:
            case arith.ConstantOp():
                return self.constant(op.value, result)
            case arith.AddfOp() | arith.AddiOp() | arith.OrIOp() if is_zero(operands[0]):
                return operands[1]
            case arith.AddiOp() if isinstance(result, IndexType):
                return b.add(*operands)
            case arith.MuliOp() if isinstance(result, IndexType):
                return b.mul(*operands)
            case arith.CmpiOp() if isinstance(op.lhs.type, IndexType):
                return b.compare(blocks.INTEGER_PREDICATES[op.predicate.value.data], *operands)
            case arith.CmpiOp() | arith.CmpfOp():
                known = (
                    COMPARISONS[type(op)] if type(op) in COMPARISONS else blocks.INTEGER_PREDICATES
                )
                return b.add_op(
                    blocks.CompareOp(known[op.predicate.value.data], *b.meet(*operands))
                )
            case arith.SelectOp():
                return b.select(*operands)
            case arith.ExtFOp() | arith.TruncFOp():
                return self.resized(operands[0], result)
            case _ if op.name in CASTS:
                return b.add_op(blocks.CastOp(CASTS[op.name], operands[0], computed(result)))
            case _:
                met = b.meet(*operands)
                wanted = block_type(b.shape(met[0]), computed(result))
                new = op.create(
                    operands=met,
                    result_types=[wanted],
                    properties=dict(op.properties),
                    attributes=dict(op.attributes),
                )
                return b.add_op(new)

    def constant(self, value: Attribute, type_: Attribute) -> SSAValue:
        match value:
            case FloatAttr():
                element = computed(value.type)
                assert isinstance(element, AnyFloat)
                return self.b.constant(FloatAttr(value.value.data, element))
            case IntegerAttr() if isinstance(type_, IndexType):
                return self.b.index(value.value.data)
            case _:
                assert isinstance(value, IntegerAttr)
                kind = IntegerType(integer_width(type_))
                return self.b.constant(IntegerAttr(value.value.data, kind))

    def resized(self, value: SSAValue, element: Attribute) -> SSAValue:
        """A float in another width; halves stay in f32, rounded where the program rounds."""
        b, was = self.b, element_type(value.type)
        if isinstance(element, HALVES):
            return self.widened_half(b.add_op(arith.TruncFOp(value, self.like(value, element))))
        if was == element:
            return value
        assert isinstance(was, AnyFloat) and isinstance(element, AnyFloat)
        cast = arith.ExtFOp if was.bitwidth < element.bitwidth else arith.TruncFOp
        return b.add_op(cast(value, self.like(value, element)))

    def like(self, value: SSAValue, element: Attribute) -> Attribute:
        return block_type(self.b.shape(value), element)

    def widened_half(self, value: SSAValue) -> SSAValue:
        if not isinstance(element_type(value.type), HALVES):
            return value
        return self.b.add_op(arith.ExtFOp(value, self.like(value, Float32Type())))

    def value(self, op: iteration.ValueOp) -> SSAValue:
        b, at = self.b, self.cursors[op.at]
        values, position = self.args[f"{self.owners[op.tensor]}.values"], at.position
        if at.flag is not None:
            # A load gives 0 where its mask does not hold.
            position = b.meet(position, at.flag)[0]
        with b.where(at.flag):
            return self.widened_half(b.load_value(values, position))

    def branch(self, op: scf.IfOp) -> None:
        """A visit that is left out beyond the end of a dimension."""
        b, condition = self.b, self.get(op.cond)
        with b.where(condition):
            yes = self.lower_block(op.true_region.block)
        if op.results:
            no = self.lower_block(op.false_region.block)
            chosen = [b.select(condition, *pair) for pair in zip(yes, no, strict=True)]
            self.values.update(zip(op.results, chosen, strict=True))

    def insert(self, op: iteration.InsertOp) -> None:
        b = self.b
        coordinates = [self.get(c) for c in op.coordinates]
        position = (
            self.assembly.linear(
                b.index(0), coordinates, [self.size(op.out, n) for n in range(len(coordinates))]
            )
            if op.at is None
            else self.cursors[op.at].position
        )
        value, array = self.get(op.value), self.args["out.values"]
        if op.accumulate is not None:
            old = self.widened_half(b.load_value(array, position))
            value = b.accumulate(old, value)
        element = element_type(self.out.type)
        if isinstance(element, HALVES):
            last = value.owner
            rounded = isinstance(last, arith.ExtFOp) and element_type(last.input.type) == element
            value = (
                last.input
                if isinstance(last, arith.ExtFOp) and rounded
                else b.add_op(arith.TruncFOp(value, self.like(value, element)))
            )
        b.store(value, array, position)
