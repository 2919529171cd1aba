"""split-blocks: walk block formats as they are, by splitting loops into a block's number and a place inside it.

Before (A is BSR(2,3))::

    %y = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (j), (i, j) -> (i)], …} ins(%A, %x) outs(%z) …

After: A is seen by its levels, a tensor of rank 4 without blocks, and dense operands by sums of loops::

    %A_0 = sparse_tensor.reinterpret_map %A : tensor<?x?xf64, #BSR_2_3> to tensor<?x?x2x3xf64, #…>
    %y = linalg.generic {maps = [(i1, i0, j1, j0) -> (i1, j1, i0, j0), … -> (j1 * 3 + j0), … -> (i1 * 2 + i0)], …}
        ins(%A_0, %x) outs(%z) …

It applies where the result is dense, or stored as the block operand is; where every other operand with a split
index is dense, or has the same blocks; and where the body multiplies and adds only (a block's padding is stored
zeros, over which a quotient would differ). Elsewhere schedule-loops converts.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass

from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.dialects.sparse_tensor.ops import ReinterpretMapOp
from sparsecc.dialects.sparse_tensor.types import ranked_tensor
from sparsecc.formats import Ability, Format, LevelExpr
from sparsecc.passes.sparsification.merge_lattice import pattern_leaf
from sparsecc.passes.sparsification.term import Access, GenericView, Node, Structure

Digits = tuple[tuple[int, int], ...]
"""(div, mod) of the digits of a split loop, largest first."""


@dataclass(frozen=True)
class SplitBlocks(ModulePass):
    """Loops over dimensions become loops over the levels of block formats."""

    name = "split-blocks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for generic in [g for g in op.walk() if isinstance(g, linalg.GenericOp)]:
            if any(blocked(v.type) for v in generic.inputs):
                view = GenericView.of(generic)
                if multiplies_and_adds(view.term):
                    split(generic, view)


def blocked(type_: Attribute) -> bool:
    """Whether a type's format has blocks that loops can walk."""
    if not isinstance(type_, TensorType) or not isinstance(type_.encoding, EncodingAttr):
        return False
    fmt = type_.encoding.data
    return bool(
        fmt is not None
        and not fmt.is_dense
        and fmt.exprs  # a sum of parts has none
        and not fmt.is_permutation
        and fmt.ordered
        and all(
            level.name != "structured" and (level.can(Ability.FULL) or level.can(Ability.ITERATE))
            for level in fmt.levels
        )
    )


def multiplies_and_adds(node: Node) -> bool:
    """Whether a stored zero contributes what a missing entry does."""
    plain = {
        Structure.LEAF,
        Structure.CONSTANT,
        Structure.KEEP,
        Structure.CONJUNCTION,
        Structure.DISJUNCTION,
    }
    return node.structure in plain and all(map(multiplies_and_adds, node.args))


def digits_of(fmt: Format, dim: int) -> Digits:
    """The digits of a dimension, largest first."""
    digits = ((e.div, e.mod) for e in fmt.exprs if e.dim == dim)
    return tuple(sorted(digits, key=lambda digit: (-digit[0], digit[1])))


def compatible(access: Access, splits: dict[int, Digits], by_levels: bool) -> bool:
    """Whether an operand can be read by split loops: it is dense, or (walked by its levels) has the same blocks."""
    for dim in range(access.format.rank):
        loop = access.dim_loop(dim)
        if loop not in splits:
            continue
        plain = access.format.is_dense and access.format.is_permutation
        if not plain and not (by_levels and digits_of(access.format, dim) == splits[loop]):
            return False
    return True


def choose(view: GenericView) -> tuple[list[int], dict[int, Digits]]:
    """The inputs to walk by levels, and how the loops are split for them."""
    chosen: list[int] = []
    splits: dict[int, Digits] = {}
    for access in view.inputs:
        if not blocked(view.op.inputs[access.operand].type) or len(set(access.indices)) != len(
            access.indices
        ):
            continue
        mine = {
            access.dim_loop(d): digits_of(access.format, d)
            for d in range(access.format.rank)
            if len(digits_of(access.format, d)) > 1
        }
        if any(splits.get(loop, digits) != digits for loop, digits in mine.items()):
            continue
        merged = splits | mine
        if all(compatible(other, merged, True) for other in view.inputs):
            chosen.append(access.operand)
            splits = merged
    fits = all(compatible(other, splits, other.operand in chosen) for other in view.inputs)
    fits = fits and all(ends(view, loop, chosen) for loop in splits)
    return (chosen, splits) if fits else ([], {})


def ends(view: GenericView, loop: int, chosen: list[int]) -> bool:
    """Whether visits beyond the end of a dimension do no harm: a tensor seen by its dimensions says where the end
    is, or the term is 0 where block operands store nothing but padding."""
    others = [a for a in [*view.inputs, view.out] if a is view.out or a.operand not in chosen]
    if any(loop in access.indices for access in others):
        return True
    padded = {k for k in chosen if loop in view.inputs[k].indices}

    def vanishes(node: Node) -> bool:
        match node.structure:
            case Structure.LEAF:
                return node.operand in padded
            case Structure.CONJUNCTION:
                return any(map(vanishes, node.args))
            case Structure.DISJUNCTION:
                return all(map(vanishes, node.args))
            case Structure.KEEP:
                return vanishes(node.kept)
            case _:
                return False

    return vanishes(view.term)


def split(generic: linalg.GenericOp, view: GenericView) -> None:
    """Rewrite a generic by the levels of its block operands, where that applies."""
    chosen, splits = choose(view)
    dense = {k: a.format.is_dense for k, a in enumerate(view.inputs)}
    leaf = pattern_leaf(view.term, dense)
    like = leaf if leaf in chosen and same_storage(view.inputs[leaf], view.out) else None
    plain_result = view.out.format.is_dense and view.out.format.is_permutation
    if not chosen or (like is None and not plain_result):
        return
    loops: dict[tuple[int, int, int], int] = {}
    names: list[StringAttr] = []
    kinds: list[Attribute] = []
    for loop, kind in enumerate(generic.iterator_types.data):
        digits = splits.get(loop, ((1, 0),))
        for number, digit in enumerate(digits):
            loops[loop, *digit] = len(names)
            suffix = str(len(digits) - 1 - number) if len(digits) > 1 else ""
            names.append(StringAttr(view.names[loop] + suffix))
            kinds.append(kind)

    def subscript(loop: int) -> AffineExpr:
        total: AffineExpr | None = None
        for div, mod in splits.get(loop, ((1, 0),)):
            term: AffineExpr = AffineDimExpr(loops[loop, div, mod])
            term = term if div == 1 else term * AffineConstantExpr(div)
            total = term if total is None else total + term
        assert total is not None
        return total

    def map_of(access: Access, by_levels: bool) -> AffineMapAttr:
        dims = [access.dim_loop(d) for d in range(access.format.rank)]
        if by_levels:
            results = [AffineDimExpr(loops[dims[e.dim], e.div, e.mod]) for e in access.format.exprs]
            return AffineMapAttr(AffineMap(len(names), 0, tuple(results)))
        return AffineMapAttr(AffineMap(len(names), 0, tuple(subscript(loop) for loop in dims)))

    inputs = [reinterpreted(generic, v) if k in chosen else v for k, v in enumerate(generic.inputs)]
    maps = [map_of(access, access.operand in chosen) for access in view.inputs]
    maps.append(map_of(view.out, like is not None))
    result, init = generic.results[0], generic.outputs[0]
    if like is not None:
        init = reinterpreted(generic, init)
    new = linalg.GenericOp(
        inputs,
        [init],
        generic.detach_region(generic.body),
        ArrayAttr(maps),
        ArrayAttr(kinds),
        [init.type],
    )
    new.attributes.update(generic.attributes)
    new.attributes["sparsecc.indices"] = ArrayAttr(names)
    new.results[0].name_hint = result.name_hint
    assert generic.parent is not None
    generic.parent.insert_op_before(new, generic)
    replacement: SSAValue = new.results[0]
    if like is not None:
        back = ReinterpretMapOp(new.results[0], result.type)
        generic.parent.insert_op_before(back, generic)
        replacement = back.results[0]
        replacement.name_hint = result.name_hint
    result.replace_all_uses_with(replacement)
    generic.detach()
    generic.erase()


def same_storage(a: Access, b: Access) -> bool:
    """Whether two tensors are read alike and stored in the same format."""
    return a.subscripts == b.subscripts and a.format.with_widths(0, 0) == b.format.with_widths(0, 0)


def reinterpreted(generic: linalg.GenericOp, value: SSAValue) -> SSAValue:
    """A tensor seen by its levels."""
    type_ = ranked_tensor(value.type)
    assert type_ is not None and isinstance(type_.encoding, EncodingAttr)
    fmt = type_.encoding.data
    assert fmt is not None and generic.parent is not None
    shape = [d.data for d in type_.shape.data]
    sizes = [
        e.mod or (DYNAMIC_INDEX if shape[e.dim] == DYNAMIC_INDEX else e.size(shape[e.dim]))
        for e in fmt.exprs
    ]
    by_levels = Format(
        fmt.num_levels,
        tuple(LevelExpr(n) for n in range(fmt.num_levels)),
        fmt.levels,
        fmt.pos_width,
        fmt.crd_width,
    )
    op = ReinterpretMapOp(value, TensorType(type_.element_type, sizes, EncodingAttr(by_levels)))
    op.results[0].name_hint = value.name_hint
    generic.parent.insert_op_before(op, generic)
    return op.results[0]
