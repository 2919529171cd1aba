"""What a kernel of the iteration dialect has for loops, as tiling sees them.

* *grid* loops are shared out over programs: they run over all coordinates of an index of the result, or over the root
  levels of operands. A lone root level is shared out by positions, of which there are no more than coordinates; several
  are looked up by coordinate, as sparse operands beside a loop over all coordinates are;
* *walks* go over the positions of one level inside a program, *merges* over several levels at once, *dense* loops over
  all coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr

from sparsecc.diagnostics import UnsupportedError
from sparsecc.dialects import iteration
from sparsecc.dialects.iteration.types import numbers
from sparsecc.dialects.reading import elements, strings
from sparsecc.passes.sparsification.term import tensor_format


class SumAcrossPrograms(UnsupportedError):
    text = "programs would add to the same elements of the result: the loop over {index!r} is a sum, and stands outside"
    help_text = (
        "run schedule-loops with target=…, which puts the indices of the result first (and converts an operand "
        "if it has to), or compile for target='cpu'"
    )


@dataclass(frozen=True)
class GridLoop:
    """A loop that is shared out: its index, and the argument that holds (a bound of) its extent."""

    index: str
    extent: str


@dataclass
class Loop:
    """All iterations over one index in a kernel."""

    index: str
    plain: bool
    """No values are carried: it is a loop of the result."""
    full: bool = True
    walk: bool = True
    inner: set[str] = field(default_factory=set[str])
    """Indices of loops inside it."""
    top: bool = False
    extent: str = ""


@dataclass(frozen=True)
class KernelLoops:
    """The loops of a kernel: outer to inner."""

    grid: tuple[GridLoop, ...]
    walks: tuple[str, ...]
    """Walks that have no walk or merge inside."""
    dense: tuple[str, ...]
    """Dense loops that have no loop inside."""
    serial: tuple[str, ...]
    """All other loops in a program: element by element."""
    merges: bool

    @staticmethod
    def of(kernel: func.FuncOp) -> KernelLoops:
        """Raises SumAcrossPrograms."""
        found = _Reader(kernel).loops
        outputs = result_indices(kernel)
        grid: list[GridLoop] = []
        for loop in found.values():
            if loop.plain and loop.index not in outputs:
                raise SumAcrossPrograms(index=loop.index, place=source(kernel))
            if loop.plain and (loop.full or loop.top):
                grid.append(GridLoop(loop.index, loop.extent))
        shared = {g.index for g in grid}
        rest = [loop for loop in found.values() if loop.index not in shared]
        dense = {loop.index for loop in rest if loop.full and not loop.inner - shared}
        full = {loop.index for loop in rest if loop.full}
        walks = {
            loop.index
            for loop in rest
            if loop.walk and not loop.full and not loop.inner - shared - full
        }
        return KernelLoops(
            tuple(grid),
            tuple(loop.index for loop in rest if loop.index in walks),
            tuple(loop.index for loop in rest if loop.index in dense),
            tuple(loop.index for loop in rest if loop.index not in walks | dense),
            any(not loop.walk and not loop.full for loop in rest),
        )


def source(kernel: func.FuncOp) -> str:
    """The expression of a kernel, or its name."""
    given = kernel.attributes.get("sparsecc.source")
    return getattr(given, "data", kernel.sym_name.data)


def result_indices(kernel: func.FuncOp) -> set[str]:
    """The indices of the result."""
    names = strings(kernel.attributes.get("iteration.loops"))
    maps = elements(kernel.attributes.get("iteration.maps"))
    assert isinstance(maps[-1], AffineMapAttr)
    found: set[str] = set()
    for expr in maps[-1].data.results:
        found |= {names[e.position] for e in expr.dfs() if isinstance(e, AffineDimExpr)}
    return found


class _Reader:
    def __init__(self, kernel: func.FuncOp) -> None:
        self.loops: dict[str, Loop] = {}
        self.owners: dict[SSAValue, str] = {
            arg: f"in{n}" for n, arg in enumerate(kernel.body.block.args[:-1])
        }
        self.read(kernel.body.block, ())

    def read(self, block: Block, outside: tuple[str, ...]) -> None:
        for op in block.ops:
            if isinstance(op, iteration.IterateOp):
                self.iterate(op, outside)
            else:
                for region in op.regions:
                    for inner in region.blocks:
                        self.read(inner, outside)

    def iterate(self, op: iteration.IterateOp, outside: tuple[str, ...]) -> None:
        index = op.index.data
        new = index not in self.loops
        loop = self.loops.setdefault(index, Loop(index, not op.inits))
        for name in outside:
            self.loops[name].inner.add(index)
        loop.plain = loop.plain and not op.inits
        loop.full = loop.full and op.extent is not None
        single = len(op.bodies) == 1 and len(op.tensors) == 1 and op.extent is None
        unique = single and tensor_format(op.tensors[0].type).levels[numbers(op.levels)[0]].unique
        loop.walk = loop.walk and unique
        roots = all(isinstance(p.owner, iteration.RootOp) for p in op.parents)
        loop.top = new and not outside and roots
        if op.extent is not None:
            loop.extent = self.dim(op.extent)
        elif loop.top:
            dim = tensor_format(op.tensors[0].type).exprs[numbers(op.levels)[0]].dim
            loop.extent = f"{self.owners[op.tensors[0]]}.dim{dim}"
        for body in op.bodies:
            self.read(body.block, (*outside, index))

    def dim(self, extent: SSAValue) -> str:
        """The role of the argument that holds an extent."""
        op = extent.owner
        assert isinstance(op, tensor.DimOp)
        number = op.index.owner
        assert isinstance(number, arith.ConstantOp) and isinstance(number.value, IntegerAttr)
        return f"{self.owners[op.source]}.dim{number.value.value.data}"
