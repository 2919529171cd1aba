"""A linalg.generic read as a contraction with a packed weight: which input is what, and what its loops are.

Loops get letters: ``n`` the rows of the weight, ``k`` the reduction, ``t`` the tokens, ``b`` a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from sparsecc.dialects.reading import element_type
from sparsecc.dialects.sparse_tensor.types import format_of, ranked_tensor
from sparsecc.dialects.tile.fragment_types import ACCUMULATORS, type_name
from sparsecc.dialects.tile.weights import PackedWeight, packed_weight
from sparsecc.passes.sparsification.term import strip_casts
from sparsecc.targets import Target

SUMS = {"arith.addf": 1, "arith.addi": 1, "arith.subf": -1, "arith.subi": -1}
"""What puts a term and a result together, and the term's sign."""
FOURS = "groups of four"
STORED = {
    "2:4": FOURS,
    "2:4+CSR": FOURS,
    "blocks": "rows of blocks",
    "bitmap": "rows of bits",
    "rows": "entries of rows",
}
"""What a weight consists of, by its kind."""
PRODUCTS = ("arith.mulf", "arith.muli")
WIDENINGS = (arith.ExtFOp, arith.ExtSIOp)


class NoContraction(Exception):
    """A generic is no contraction with a packed weight; the text says why one with such a weight is not."""


@dataclass(frozen=True)
class ContractionView:
    """What a generic computes: ``result = start ± factors * sum over k of x * weight``."""

    generic: linalg.GenericOp
    weight: int
    """The number of the weight among the inputs; ``x`` is that of the dense operand."""
    x: int
    packed: PackedWeight
    letters: dict[int, str]
    """The letter of each loop."""
    dtype: str
    """Of the operands."""
    accumulator: str
    term_type: Attribute
    """What the body multiplies in."""
    factors: tuple[SSAValue, ...]
    """Values of the body that multiply each term and do not depend on k."""
    sign: int
    starts: bool
    """Whether the body adds to what the result holds at first."""

    def letters_at(self, operand: int) -> str:
        """The letters of the dimensions of an operand (inputs, then the result)."""
        return "".join(self.letters[loop] for loop in loops_of(self.generic, operand))


def loops_of(generic: linalg.GenericOp, operand: int) -> list[int]:
    """The loops that index an operand, one a dimension; raises NoContraction for other subscripts."""
    map_ = generic.indexing_maps.data[operand]
    assert isinstance(map_, AffineMapAttr)
    loops = [e.position if isinstance(e, AffineDimExpr) else -1 for e in map_.data.results]
    if -1 in loops or len(set(loops)) != len(loops):
        raise NoContraction("a subscript is no index of its own")
    return loops


def memory_order(type_: Attribute, letters: str) -> str:
    """The letters of a dense tensor's dimensions as they lie in memory, outer to inner; empty if it is not dense."""
    fmt = format_of(type_)
    if fmt is None or not (fmt.is_dense and fmt.is_permutation):
        return ""
    return "".join(letters[dim] for dim in fmt.dim_order)


def view_contraction(
    generic: linalg.GenericOp,
    target: Target,
    weight_of: Callable[[Attribute], PackedWeight | None] = packed_weight,
    accumulators: Mapping[str, str] | None = None,
    vectors: bool = False,
) -> ContractionView | None:
    """The contraction that a generic is; None where no input is a packed weight (as ``weight_of`` says).

    Raises NoContraction with the reason where one is, but no sparse matrix instruction computes this; with
    ``accumulators``, where the type of the operands is none of those. ``vectors``: the dense operand may be one."""
    weights = [k for k, v in enumerate(generic.inputs) if weight_of(v.type) is not None]
    if not weights or len(generic.outputs) != 1 or len(generic.res) != 1:
        return None
    if len(weights) > 1:
        kinds = " and ".join(
            STORED[p.kind] for k in weights if (p := weight_of(generic.inputs[k].type))
        )
        raise NoContraction(f"two of its operands are weights: {kinds}")
    (weight,) = weights
    packed = weight_of(generic.inputs[weight].type)
    assert packed is not None
    loops = loops_of(generic, weight)
    k, n = loops[packed.reduction], loops[packed.rows]
    kinds = [kind.data.name.lower() for kind in generic.iterator_types.data]
    reductions = [loop for loop, kind in enumerate(kinds) if kind == "reduction"]
    if kinds[n] != "parallel" or reductions != [k]:
        raise NoContraction(
            f"the {STORED[packed.kind]} do not run along the only index that is summed over"
        )
    ranked = ranked_tensor(generic.inputs[weight].type)
    extent = DYNAMIC_INDEX if ranked is None else ranked.get_shape()[packed.reduction]
    if STORED[packed.kind] == FOURS and extent != DYNAMIC_INDEX and extent % 4:
        raise NoContraction(
            f"the weight has {extent} columns, and only whole groups of four are packed (fill it up with zeros)"
        )
    letters = {k: "k", n: "n"}
    if packed.batch is not None:
        letters[loops[packed.batch]] = "b"
    body = Body(generic)
    pair, factors = body.split(k)
    others = [i for i, _ in pair if i != weight]
    if len(pair) != 2 or len(others) != 1:
        raise NoContraction("it is not the product of the weight and one other tensor")
    (x,) = others
    _name_loops(generic, x, kinds, letters, vectors)
    view = ContractionView(
        generic,
        weight,
        x,
        packed,
        letters,
        _dtype(generic, weight, x),
        "",
        body.term_type,
        tuple(factors),
        body.sign,
        body.starts,
    )
    return _checked(view, target, accumulators)


def _name_loops(
    generic: linalg.GenericOp, x: int, kinds: list[str], letters: dict[int, str], vectors: bool
) -> None:
    """Letters of the loops that the weight lacks: tokens, and a batch before them."""
    mine = loops_of(generic, x)
    out = loops_of(generic, len(generic.inputs))
    k = next(loop for loop, letter in letters.items() if letter == "k")
    n = next(loop for loop, letter in letters.items() if letter == "n")
    if k not in mine or n in mine:
        raise NoContraction("the other tensor has no index that is summed over, or the weight's")
    free = [loop for loop in mine if loop not in letters]
    order = memory_order(generic.inputs[x].type, "".join(chr(loop) for loop in mine))
    if not order:
        raise NoContraction("the tensor that the weight multiplies is not dense")
    free.sort(key=lambda loop: order.index(chr(loop)))
    batched = "b" in letters.values()
    if len(free) == 0 and not vectors:
        raise NoContraction("it multiplies a vector; a tile of tokens wants a matrix")
    if len(free) > (1 if batched else 2):
        raise NoContraction("it has more than one dimension of batches")
    if free:
        letters[free[-1]] = "t"
    if len(free) == 2:
        letters[free[0]] = "b"
    if set(out) != {loop for loop, kind in enumerate(kinds) if kind == "parallel"}:
        raise NoContraction("the result lacks an index")
    if set(letters) != set(range(len(kinds))) or not set(mine) >= set(letters) - {n}:
        raise NoContraction("another tensor has an index of its own")


def _dtype(generic: linalg.GenericOp, weight: int, x: int) -> str:
    found = {type_name(element_type(generic.inputs[i].type)) for i in (weight, x)}
    if len(found) != 1:
        raise NoContraction(f"its operands are of two types, {' and '.join(sorted(found))}")
    return found.pop()


def _checked(
    view: ContractionView, target: Target, accumulators: Mapping[str, str] | None
) -> ContractionView:
    """The view with its accumulator, if the target has the instruction and memory lies as it wants."""
    generic, dtype = view.generic, view.dtype
    if accumulators is None and not target.matrix_shapes(dtype, sparse=True):
        raise NoContraction(f"{target.name} has no sparse matrix instruction for {dtype}")
    if accumulators is not None and dtype not in accumulators:
        raise NoContraction(f"its operands are {dtype}, not {', '.join(accumulators)}")
    accumulator = (accumulators or ACCUMULATORS)[dtype]
    term = type_name(view.term_type)
    if term not in (dtype, accumulator):
        raise NoContraction(f"the products are wanted in {term}, and are summed in {accumulator}")
    result = type_name(element_type(generic.results[0].type))
    if result not in (dtype, accumulator):
        raise NoContraction(f"the sums are wanted in {result}, and are made in {accumulator}")
    x = memory_order(generic.inputs[view.x].type, view.letters_at(view.x))
    out = memory_order(generic.results[0].type, view.letters_at(len(generic.inputs)))
    if not out:
        raise NoContraction("its result is not dense")
    if x[-1] == "b" or out[-1] == "b":
        raise NoContraction("a batch lies inside of a matrix")
    return replace(view, accumulator=accumulator)


class Body:
    """The body of a generic as ``start ± product``."""

    def __init__(self, generic: linalg.GenericOp) -> None:
        self.generic = generic
        self.block: Block = generic.body.block
        self.accumulator = self.block.args[-1]
        last = self.block.last_op
        assert last is not None
        value = strip_casts(last.operands[0])
        wanted: SSAValue = self.accumulator
        if isinstance(value.owner, arith.TruncFOp):
            # A sum of 16 bits that is kept in f32 and rounded once.
            users = [use.operation for use in self.accumulator.uses]
            if len(users) == 1 and isinstance(users[0], arith.ExtFOp):
                value, wanted = value.owner.operands[0], users[0].results[0]
        combine = value.owner
        if not isinstance(combine, Operation) or combine.name not in SUMS:
            raise NoContraction("its body does not add a product to the result")
        left, right = (strip_casts(v) for v in combine.operands)
        self.sign = SUMS[combine.name]
        if left is wanted:
            self.term = right
        elif right is wanted and self.sign == 1:
            self.term = left
        else:
            raise NoContraction("its body does not add a product to the result")
        if sum(1 for _ in self.accumulator.uses) != 1 or sum(1 for _ in wanted.uses) != 1:
            raise NoContraction("its body reads the result other than to add to it")
        self.starts = True
        self.term_type: Attribute = self.term.type

    def split(self, k: int) -> tuple[list[tuple[int, SSAValue]], list[SSAValue]]:
        """The inputs with index k that are multiplied, and the other factors."""
        pair: list[tuple[int, SSAValue]] = []
        factors: list[SSAValue] = []
        for value in self._factors(self.term):
            leaf = strip_casts(value)
            while isinstance(leaf.owner, WIDENINGS):
                leaf = strip_casts(leaf.owner.operands[0])
            if isinstance(leaf, BlockArgument) and leaf.block is self.block:
                if k in loops_of(self.generic, leaf.index):
                    pair.append((leaf.index, leaf))
                    self.term_type = value.type
                    continue
            if k in self._loops(value):
                raise NoContraction("a factor is computed from the tensors that are multiplied")
            factors.append(value)
        return pair, factors

    def _factors(self, value: SSAValue) -> list[SSAValue]:
        value = strip_casts(value)
        product = value
        if isinstance(
            product.owner, arith.ExtFOp
        ):  # a product of 16 bits: the instruction keeps it exact
            product = strip_casts(product.owner.operands[0])
        if isinstance(product.owner, Operation) and product.owner.name in PRODUCTS:
            return [f for operand in product.owner.operands for f in self._factors(operand)]
        return [value]

    def _loops(self, value: SSAValue) -> set[int]:
        """The loops that a value depends on."""
        if isinstance(value, BlockArgument):
            return set(loops_of(self.generic, value.index)) if value.block is self.block else set()
        owner = value.owner
        assert isinstance(owner, Operation)
        return set[int]().union(*(self._loops(v) for v in owner.operands))
