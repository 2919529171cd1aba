"""A linalg.generic as the sparsifier sees it: accesses, indices, and the term with its structure.

The *structure* of an operation says when its result is stored, given what its operands store. It is a
table of operation names, so that an operation nobody declared is still right: it is evaluated wherever
the loops go densely (``ANY``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from xdsl.dialects import arith, complex
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    UnrealizedConversionCastOp,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from sparsecc.diagnostics import UnsupportedError
from sparsecc.dialects.iteration.subscripts import Subscript, read_subscript
from sparsecc.dialects.reading import element_type, integer_width, strings
from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.formats import Ability, Format, dense_format


class Structure(Enum):
    """When a result is stored."""

    LEAF = auto()  # where the operand is
    CONSTANT = auto()  # everywhere
    CONJUNCTION = auto()  # where all operands are: a missing one annihilates
    DISJUNCTION = auto()  # where any operand is
    KEEP = auto()  # where the operand is: f(0) = 0
    QUOTIENT = auto()  # where the numerator is, if the denominator is everywhere
    ANY = auto()  # everywhere: nothing is known


STRUCTURES: dict[str, Structure] = {
    **dict.fromkeys(["arith.mulf", "arith.muli", "arith.andi", "complex.mul"], Structure.CONJUNCTION),
    **dict.fromkeys(
        ["arith.addf", "arith.addi", "arith.subf", "arith.subi", "arith.ori", "arith.xori",
         "complex.add", "complex.sub"],
        Structure.DISJUNCTION,
    ),
    **dict.fromkeys(
        ["arith.negf", "arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.extsi",
         "arith.extui", "arith.trunci", "arith.fptosi", "arith.fptoui", "complex.neg", "complex.re",
         "complex.im", "complex.create", "complex.conj", "complex.abs",
         "math.absf", "math.absi", "math.sqrt", "math.cbrt",
         "math.expm1", "math.log1p", "math.sin", "math.tan", "math.tanh", "math.atan", "math.ceil", "math.floor",
         "math.trunc", "math.round", "math.roundeven"],
        Structure.KEEP,
    ),
    **dict.fromkeys(["arith.divf", "complex.div"], Structure.QUOTIENT),
    **dict.fromkeys(["arith.constant", "complex.constant"], Structure.CONSTANT),
}  # fmt: skip

ADDITIONS = {"arith.addf", "arith.addi", "arith.ori", "complex.add"}
ADDITION_FOR = {
    "arith.subf": arith.AddfOp,
    "arith.subi": arith.AddiOp,
    "complex.sub": complex.AddOp,
}
"""What puts together what was subtracted in parts."""
SUBTRACTIONS = {"arith.subf", "arith.subi", "complex.sub"}


def is_zero(value: SSAValue) -> bool:
    """Whether a scalar is a constant 0."""
    op = value.owner
    if isinstance(op, complex.CreateOp | UnrealizedConversionCastOp):
        return all(is_zero(v) for v in op.operands)
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr | IntegerAttr):
        return op.value.value.data == 0
    if isinstance(op, complex.ConstantOp):
        return all(p.value.data == 0 for p in op.value.data)
    return False


class NotSparsifiable(UnsupportedError):
    text = "this linalg.generic can't be compiled yet: {problem}"


@dataclass(frozen=True)
class Access:
    """Input ``operand`` of the generic; its dimension d is read at ``subscripts[d]``."""

    operand: int
    subscripts: tuple[Subscript, ...]
    format: Format

    @cached_property
    def indices(self) -> tuple[int, ...]:
        """All loops of the subscripts, in order."""
        return tuple(loop for subscript in self.subscripts for loop, _ in subscript)

    def dim_loop(self, dim: int) -> int:
        """The loop of a dimension, or -1 if its subscript is no plain index."""
        subscript = self.subscripts[dim]
        return subscript[0][0] if len(subscript) == 1 and subscript[0][1] == 1 else -1

    def level_subscript(self, level: int) -> Subscript:
        """The subscript of a level (formats without blocks)."""
        return self.subscripts[self.format.exprs[level].dim]

    def level_index(self, level: int) -> int:
        """The loop of a level, or -1 if its subscript is no plain index."""
        return self.dim_loop(self.format.exprs[level].dim)


@dataclass(frozen=True, eq=False)
class Node:
    """An operation of the body; a leaf carries the number of its input."""

    structure: Structure
    op: Operation | None
    args: tuple[Node, ...]
    operand: int
    indices: frozenset[int]
    type: Attribute

    @property
    def kept(self) -> Node:
        """The operand that a KEEP operation is stored with: the one that is no constant."""
        return next((a for a in self.args if a.structure is not Structure.CONSTANT), self.args[0])

    def leaves(self) -> Iterator[int]:
        if self.structure is Structure.LEAF:
            yield self.operand
        for arg in self.args:
            yield from arg.leaves()


def stored_type(element: Attribute) -> Attribute:
    """The element type in a buffer: signless (the arithmetic says how it is read)."""
    width = integer_width(element)
    return IntegerType(width) if width else element


def strip_casts(value: SSAValue) -> SSAValue:
    """The value behind casts between ui32 and i32, which change nothing."""
    while isinstance(value.owner, UnrealizedConversionCastOp):
        value = value.owner.operands[0]
    return value


def tensor_format(type_: Attribute) -> Format:
    """The format of a tensor type; a scalar is a dense tensor of rank 0."""
    if not isinstance(type_, TensorType):
        return dense_format(0)
    encoding = type_.encoding
    if isinstance(encoding, EncodingAttr):
        if encoding.data is None:
            raise NotSparsifiable(
                problem=f"the format of {type_} is not chosen; run select-formats first"
            )
        return encoding.data
    return dense_format(len(type_.shape.data))


@dataclass
class GenericView:
    """What the sparsifier needs of one generic; index k of the iteration space is loop k."""

    op: linalg.GenericOp
    inputs: list[Access]
    out: Access
    names: list[str]
    term: Node
    reduces: bool
    combine: Operation | None
    """The body's addition of the term to the result; None if the result is the term."""
    rounding: arith.TruncFOp | None = None
    """Of ``truncf(extf(result) + term)``: the sum is kept as wide as the term, and rounded once at the end of the
    reduction. ``combine`` and the term are of the wide type then."""

    @property
    def sum_type(self) -> Attribute:
        """The type in which the result is summed."""
        if self.rounding is not None:
            return self.rounding.operands[0].type
        return stored_type(element_type(self.op.results[0].type))

    @property
    def negated(self) -> bool:
        """Whether the term is subtracted."""
        return self.combine is not None and self.combine.name in SUBTRACTIONS

    @property
    def source(self) -> str:
        """The program's own text of the term, if it is known."""
        given = self.op.attributes.get("sparsecc.source")
        return given.data if isinstance(given, StringAttr) else ""

    @property
    def num_loops(self) -> int:
        return len(self.names)

    @property
    def out_indices(self) -> tuple[int, ...]:
        return self.out.indices

    @property
    def reductions(self) -> list[int]:
        return [k for k in range(self.num_loops) if k not in self.out.indices]

    @staticmethod
    def of(op: linalg.GenericOp) -> GenericView:
        """Raises NotSparsifiable, naming what is not understood."""
        if len(op.outputs) != 1 or len(op.res) != 1:
            raise NotSparsifiable(problem="it has several results")
        maps = [m.data for m in op.indexing_maps.data]
        accesses: list[Access] = []
        for number, (map_, value) in enumerate(zip(maps, [*op.inputs, *op.outputs], strict=True)):
            fmt = tensor_format(value.type)
            subscripts: list[Subscript] = []
            for expr in map_.results:
                subscript = read_subscript(expr)
                if subscript is None:
                    raise NotSparsifiable(
                        problem=f"its subscript {expr} is no sum of loops with positive strides"
                    )
                subscripts.append(subscript)
            accesses.append(Access(number, tuple(subscripts), fmt))
            check_subscripts(accesses[-1])
        count = maps[0].num_dims
        out = accesses.pop()
        if len(set(out.indices)) != len(out.indices):
            raise NotSparsifiable(problem="an index is repeated in the result")
        used = {k for a in accesses for k in a.indices} | set(out.indices)
        if missing := set(range(count)) - used:
            raise NotSparsifiable(
                problem=f"loop {min(missing)} has no operand to give it an extent"
            )
        return _read_body(op, accesses, out, _names(op, count))


def check_subscripts(access: Access) -> None:
    """Sums of loops are looked up, so they need levels that have every coordinate."""
    for dim in range(len(access.subscripts)):
        levels = [
            level
            for level, e in zip(access.format.levels, access.format.exprs, strict=True)
            if e.dim == dim
        ]
        full = bool(levels) and all(level.can(Ability.FULL) for level in levels)
        if access.dim_loop(dim) < 0 and not full:
            raise NotSparsifiable(
                problem=f"a sum of loops subscripts dimension {dim} of a sparse operand"
            )


def _names(op: linalg.GenericOp, count: int) -> list[str]:
    given = strings(op.attributes.get("sparsecc.indices"))
    return given if len(given) == count else [f"d{k}" for k in range(count)]


def _read_body(
    op: linalg.GenericOp, inputs: list[Access], out: Access, names: list[str]
) -> GenericView:
    block = op.body.block
    last = block.last_op
    assert last is not None
    result = strip_casts(last.operands[0])
    accumulator: SSAValue = block.args[-1]
    rounding = wide_sum(block)
    if rounding is not None:
        result = rounding.operands[0]
        (use,) = accumulator.uses
        accumulator = use.operation.results[0]
    reduces = any(k not in out.indices for k in range(len(names)))
    term, combine = result, None
    operands = (
        [strip_casts(v) for v in result.owner.operands]
        if isinstance(result.owner, Operation)
        else []
    )
    if isinstance(result.owner, Operation) and accumulator in operands:
        combine = result.owner
        a, b = operands[0], operands[-1]
        if combine.name in ADDITIONS and a is not b:
            term = b if a is accumulator else a
        elif combine.name in SUBTRACTIONS and a is accumulator and b is not a:
            term = b
        else:
            raise NotSparsifiable(problem=f"a reduction with {combine.name} is not an addition")
    elif reduces:
        raise NotSparsifiable(
            problem="it has a reduction loop, but its body does not add to the result"
        )
    reader = _BodyReader(block, inputs)
    node = reader.node(term)
    return GenericView(op, inputs, out, names, node, reduces, combine, rounding)


def wide_sum(block: Block) -> arith.TruncFOp | None:
    """The rounding of a body that yields ``truncf(extf(result) + term)`` and reads its result nowhere else."""
    last = block.last_op
    assert last is not None
    rounding = last.operands[0].owner
    if not isinstance(rounding, arith.TruncFOp):
        return None
    users = [use.operation for use in block.args[-1].uses]
    if len(users) != 1 or not isinstance(users[0], arith.ExtFOp):
        return None
    combine = rounding.operands[0].owner
    widened = users[0].results[0]
    fits = isinstance(combine, arith.AddfOp | arith.SubfOp) and widened in combine.operands
    return rounding if fits and widened.type == rounding.operands[0].type else None


class _BodyReader:
    def __init__(self, block: Block, inputs: list[Access]) -> None:
        self.block, self.inputs = block, inputs
        self.memo: dict[SSAValue, Node] = {}

    def node(self, value: SSAValue) -> Node:
        value = strip_casts(value)
        if value not in self.memo:
            self.memo[value] = self._node(value)
        return self.memo[value]

    def _node(self, value: SSAValue) -> Node:
        if isinstance(value, BlockArgument):
            if value.block is not self.block or value.index >= len(self.inputs):
                raise NotSparsifiable(problem="the body reads the result other than to add to it")
            access = self.inputs[value.index]
            indices = frozenset(access.indices)
            return Node(Structure.LEAF, None, (), value.index, indices, stored_type(value.type))
        op = value.owner
        assert isinstance(op, Operation)
        if op.parent is not self.block:
            if isinstance(op, arith.ConstantOp):
                return Node(Structure.CONSTANT, op, (), -1, frozenset(), value.type)
            raise NotSparsifiable(
                problem="the body reads a value computed outside; pass it as an operand"
            )
        if (
            op.regions
            or len(op.results) != 1
            or not op.name.startswith(("arith.", "math.", "complex."))
        ):
            raise NotSparsifiable(problem=f"the operation {op.name} in its body")
        args = tuple(self.node(v) for v in op.operands)
        indices = frozenset[int]().union(*(a.indices for a in args))
        structure = STRUCTURES.get(op.name, Structure.ANY)
        if op.name in SUBTRACTIONS and is_zero(op.operands[0]):
            structure = Structure.KEEP  # integers are negated so
        if isinstance(op, complex.CreateOp) and not any(map(is_zero, op.operands)):
            structure = Structure.DISJUNCTION
        if structure is Structure.KEEP and all(a.structure is Structure.CONSTANT for a in args):
            structure = Structure.ANY  # a constant, spelled in two steps
        return Node(structure, op, args, -1, indices, value.type)
