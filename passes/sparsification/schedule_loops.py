"""schedule-loops: the order of loops, how each result is assembled, and the conversions that both need.

Before (a CSR matrix times a CSR matrix into CSC)::

    %C = linalg.generic … ins(%A, %B) outs(%e) -> tensor<?x?xf64, #CSC>

After: i, k, j goes along the storage of both, so rows are assembled in a workspace and converted::

    %C0 = linalg.generic … attrs = {sparsecc.order = [0, 2, 1], sparsecc.assembly = "workspace"}
        -> tensor<?x?xf64, #CSR>
    %C = sparse_tensor.convert %C0 : tensor<?x?xf64, #CSR> to tensor<?x?xf64, #CSC>

Assemblies: ``dense`` (stores into a dense result), ``pattern:k`` (the result is stored where input k is and
shares its positions and coordinates), ``append`` (entries come in order), ``workspace`` (rows are collected
in a dense row), ``coordinates`` (entries come unsorted and repeated; the general path).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    ComplexType,
    DenseArrayBase,
    FixedBitwidthType,
    Float16Type,
    Float32Type,
    IntegerType,
    ModuleOp,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from sparsecc.diagnostics import UnsupportedError
from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.dialects.sparse_tensor.ops import ConvertOp
from sparsecc.dialects.sparse_tensor.types import ranked_tensor
from sparsecc.formats import Ability, Format, SumFormat, dense_format, known_name
from sparsecc.formats.format import LevelExpr
from sparsecc.formats.level import Level
from sparsecc.formats.levels.compressed import Compressed
from sparsecc.formats.levels.dense import Dense
from sparsecc.formats.levels.singleton import Singleton
from sparsecc.passes.sparsification.iteration_graph import order_loops
from sparsecc.passes.sparsification.kernel_arguments import DEFAULT_WIDTH
from sparsecc.passes.sparsification.merge_lattice import pattern_leaf
from sparsecc.passes.sparsification.term import Access, GenericView, Node, Structure, tensor_format
from sparsecc.targets import TargetAbility, known_target

VECTOR_BYTES = (128, 32)
"""Block widths of a vectorised loop: two AVX-512 or four AVX2 registers of accumulators, enough to hide
the latency of additions; then one AVX2 register, so that few columns are left to the scalar loop. Wider
blocks gain at most a tenth where there are many columns, and lose up to four times where there are few."""


def natural_format(order: tuple[int, ...]) -> Format:
    """The format that loops in that order of dimensions assemble and walk best."""
    levels: tuple[Level, ...] = (Compressed(),) * len(order)
    if len(order) == 2:
        levels = (Dense(), Compressed())
    return Format(len(order), tuple(LevelExpr(d) for d in order), levels)


def walkable(fmt: Format) -> bool:
    """Whether loops can walk a format as it is: no blocks, ordered, every level iterable."""
    return (
        fmt.is_permutation
        and fmt.ordered
        and all(level.can(Ability.FULL) or level.can(Ability.ITERATE) for level in fmt.levels)
    )


def looked_up(access: Access) -> bool:
    """Whether every level of an operand that can't be walked is looked up below dense ones, as the columns of
    ``A[i,i]`` are."""
    fmt = access.format
    if not fmt.exprs or not fmt.is_permutation or not fmt.ordered:
        return False
    for n, level in enumerate(fmt.levels):
        if level.can(Ability.FULL) or level.can(Ability.ITERATE):
            continue
        above = [access.level_index(k) for k in range(n)]
        dense = all(fmt.levels[k].can(Ability.FULL) for k in range(n))
        if not (level.can(Ability.LOCATE) and dense and access.level_index(n) in above):
            return False
    return True


def why_not_walked(fmt: Format) -> str:
    """Why an operand is converted for loops."""
    if isinstance(fmt, SumFormat):
        return "loops walk one tensor, not a sum of parts"
    for level in fmt.levels:
        if not level.can(Ability.FULL) and not level.can(Ability.ITERATE):
            return f"a {level.name} level can be looked up, not walked"
    return "its blocks or order"


def appendable(fmt: Format) -> bool:
    """Whether a kernel can append to a format: dense levels, compressed levels, dense levels."""
    if not fmt.is_permutation or not fmt.ordered:
        return False
    kinds = ["d" if lvl.can(Ability.FULL) else "a" if lvl.can(Ability.APPEND) and lvl.unique else "?"
             for lvl in fmt.levels]  # fmt: skip
    text = "".join(kinds)
    return "?" not in text and "a" in text and "a" not in text.lstrip("d").lstrip("a")


def as_wide(fmt: Format, other: Format) -> Format:
    """A format with positions and coordinates as wide as another's, 32 bits at least."""
    return fmt.with_widths(max(other.pos_width, DEFAULT_WIDTH), max(other.crd_width, DEFAULT_WIDTH))


def unsorted_format(rank: int) -> Format:
    """Coordinates as they come: neither sorted nor unique; as wide as an index."""
    if rank == 1:
        return Format(1, (LevelExpr(0),), (Compressed(unique=True, ordered=False),), 64, 64)
    inner = tuple(Singleton(unique=k == rank - 2, ordered=False) for k in range(rank - 1))
    levels = (Compressed(unique=False, ordered=False), *inner)
    return Format(rank, tuple(LevelExpr(d) for d in range(rank)), levels, 64, 64)


def encoded(type_: TensorType[Attribute], fmt: Format) -> TensorType[Attribute]:
    """The tensor type in another format."""
    if fmt.is_row_major and not (fmt.pos_width or fmt.crd_width):
        return TensorType(type_.element_type, type_.shape)
    return TensorType(type_.element_type, type_.shape, EncodingAttr(fmt))


class SparseDivisor(UnsupportedError):
    text = "the result is 0 / 0 wherever the divisor is missing, so it can't be sparse"
    help_text = "ask for a dense result, or divide by a dense tensor"


def divides_by_sparse(node: Node, inputs: list[Access]) -> bool:
    """Whether a term divides by something that may be missing."""
    if node.structure is Structure.QUOTIENT:
        if any(not inputs[k].format.is_dense for k in node.args[1].leaves()):
            return True
    return any(divides_by_sparse(arg, inputs) for arg in node.args)


@dataclass(frozen=True)
class ScheduleLoops(ModulePass):
    """Order loops, choose assemblies, insert conversions."""

    name = "schedule-loops"

    vectorize: bool = True
    target: str = "cpu"
    """On a machine that runs tiles, sums stand inside all loops of the result: programs share nothing, at the price
    of conversions. Its loops have no vector widths."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for generic in [g for g in op.walk() if isinstance(g, linalg.GenericOp)]:
            self.schedule(generic)

    def schedule(self, generic: linalg.GenericOp) -> None:
        for access in GenericView.of(generic).inputs:
            fmt = access.format
            if not walkable(fmt) and not looked_up(access):
                natural = natural_format(tuple(range(fmt.rank)))
                self.convert_input(generic, access.operand, natural, why_not_walked(fmt))
        view = GenericView.of(generic)
        out_dense = view.out.format.is_dense
        if not out_dense and divides_by_sparse(view.term, view.inputs):
            raise SparseDivisor(place=view.source)
        out_order: tuple[int, ...] | None = None
        if not out_dense:
            out = view.out.format
            # A sum of parts has no levels: it is packed from what is natural.
            dims = dict.fromkeys(expr.dim for expr in out.exprs) or range(out.rank)
            out_order = tuple(view.out.dim_loop(d) for d in dims)
        tiles = known_target(self.target).can(TargetAbility.TILES)
        loops = order_loops(view, out_order, sums_inside=tiles)
        position = {k: n for n, k in enumerate(loops.order)}
        for k in loops.converted:
            access = view.inputs[k]
            order = tuple(
                sorted(range(access.format.rank), key=lambda d: position[access.dim_loop(d)])
            )
            self.convert_input(
                generic, k, natural_format(order), "its levels go against the loop order"
            )
        view = GenericView.of(generic)
        assembly, fmt = self.assembly(view, loops.order, loops.out_order)
        if fmt != view.out.format:
            generic = self.convert_result(generic, fmt)
        generic.attributes["sparsecc.order"] = DenseArrayBase.from_list(i64, list(loops.order))
        generic.attributes["sparsecc.assembly"] = StringAttr(assembly)
        vector = self.vector(view, fmt) if self.vectorize and not tiles else None
        if vector is not None:
            generic.attributes["sparsecc.vector"] = DenseArrayBase.from_list(i64, list(vector))

    def assembly(
        self, view: GenericView, order: tuple[int, ...], out_order: tuple[int, ...] | None
    ) -> tuple[str, Format]:
        """How the result is assembled, and the format in which."""
        fmt = view.out.format
        if fmt.is_dense:
            return "dense", dense_format(fmt.rank) if not fmt.is_permutation else fmt
        last_out = max(order.index(k) for k in view.out_indices)
        reduces_outside = any(k in view.reductions for k in order[:last_out])
        dense = {k: a.format.is_dense for k, a in enumerate(view.inputs)}
        leaf = pattern_leaf(view.term, dense)
        if leaf is not None and leaf >= 0 and not reduces_outside:
            access = view.inputs[leaf]
            if access.subscripts == view.out.subscripts and access.format.with_widths(
                0, 0
            ) == fmt.with_widths(0, 0):
                return f"pattern:{leaf}", access.format
        if out_order is None:
            return "coordinates", unsorted_format(fmt.rank)
        dims = tuple(view.out.indices.index(k) for k in out_order)
        if not appendable(fmt) or fmt.dim_order != dims:
            fmt = as_wide(natural_format(dims), fmt)
        if reduces_outside and not fmt.levels[-1].can(Ability.FULL):
            return "workspace", fmt
        return "append", fmt

    def vector(self, view: GenericView, out: Format) -> tuple[int, ...] | None:
        """The loop along which every value is contiguous, and its block widths."""
        if not view.out.indices or not out.is_permutation or not out.levels[-1].can(Ability.FULL):
            return None
        if any(a.format.rank and not a.format.is_permutation for a in view.inputs):
            return None
        loop = view.out.dim_loop(out.dim_order[-1])
        if loop < 0:
            return None

        def contiguous(access: Access) -> bool:
            if loop not in access.indices:
                return True
            last = access.format.num_levels - 1
            return (
                access.indices.count(loop) == 1
                and access.level_index(last) == loop
                and access.format.levels[last].can(Ability.FULL)
            )

        if not all(contiguous(a) for a in view.inputs) or not view.reductions:
            return None
        types = [ranked_tensor(v.type) for v in (*view.op.inputs, *view.op.results)]
        kinds = {t.element_type for t in types if t is not None} | {view.sum_type}
        if Float32Type() in kinds:  # floats of 16 bits are widened when they are loaded
            kinds -= {Float16Type(), BFloat16Type()}
        if any(isinstance(k, ComplexType) or k == IntegerType(1) for k in kinds) or len(kinds) != 1:
            return None
        (kind,) = kinds
        assert isinstance(kind, FixedBitwidthType)
        return (loop, *(width * 8 // kind.bitwidth for width in VECTOR_BYTES))

    # -- rewriting -----------------------------------------------------------------------------

    def convert_input(
        self, generic: linalg.GenericOp, number: int, fmt: Format, reason: str
    ) -> None:
        value = generic.inputs[number]
        type_ = ranked_tensor(value.type)
        assert type_ is not None and generic.parent is not None
        convert = ConvertOp(value, encoded(type_, as_wide(fmt, tensor_format(type_))))
        convert.attributes["sparsecc.reason"] = StringAttr(reason)
        convert.results[0].name_hint = value.name_hint
        generic.parent.insert_op_before(convert, generic)
        generic.operands[number] = convert.results[0]

    def convert_result(self, generic: linalg.GenericOp, fmt: Format) -> linalg.GenericOp:
        result = generic.results[0]
        wanted = ranked_tensor(result.type)
        assert wanted is not None and generic.parent is not None
        init = generic.outputs[0]
        type_ = encoded(wanted, fmt)
        empty = init.owner
        sizes: list[SSAValue] = list(empty.operands) if isinstance(empty, tensor.EmptyOp) else []
        new_init = tensor.EmptyOp(sizes, type_)
        generic.parent.insert_op_before(new_init, generic)
        properties = dict(generic.properties)
        new = linalg.GenericOp(
            list(generic.inputs),
            [new_init.tensor],
            generic.detach_region(generic.body),
            ArrayAttr(generic.indexing_maps.data),
            ArrayAttr(generic.iterator_types.data),
            [type_],
        )
        new.properties.update({k: v for k, v in properties.items() if k in ("doc", "library_call")})
        new.attributes.update(generic.attributes)
        generic.parent.insert_op_before(new, generic)
        convert = ConvertOp(new.results[0], wanted)
        convert.attributes["sparsecc.reason"] = StringAttr(
            f"the loops assemble {known_name(fmt)}, the result is {known_name(tensor_format(wanted))}"
        )
        new.results[0].name_hint = convert.results[0].name_hint = result.name_hint
        generic.parent.insert_op_before(convert, generic)
        result.replace_all_uses_with(convert.results[0])
        generic.detach()
        generic.erase()
        return new
