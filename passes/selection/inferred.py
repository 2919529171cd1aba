"""The rules of the strategy ``inferred``, which also give formats to what a plan leaves open.

Operands are taken as they come (an open one of rank 2 or more is CSR or compressed in every level). A result is
dense if it is stored everywhere, if it has rank 0 or 1 and some operand is a matrix or dense, or if it is a matrix
and some index of it is stored everywhere; trailing indices stored everywhere are dense levels. An intersection
keeps the format of the operand it is stored with, a union the common one of its operands; anything else is CSR, or
compressed in every level.
"""

from __future__ import annotations

from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import FunctionType, StringAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue

from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.dialects.sparse_tensor.types import encoding_of, ranked_tensor
from sparsecc.formats import Format, dense_format
from sparsecc.formats.format import LevelExpr
from sparsecc.formats.level import Level
from sparsecc.formats.levels.compressed import Compressed
from sparsecc.formats.levels.dense import Dense
from sparsecc.passes.sparsification.host import initial_value
from sparsecc.passes.sparsification.kernel_arguments import DEFAULT_WIDTH
from sparsecc.passes.sparsification.merge_lattice import build
from sparsecc.passes.sparsification.term import (
    GenericView,
    Node,
    NotSparsifiable,
    Structure,
    tensor_format,
)


def infer_formats(fn: func.FuncOp) -> None:
    """Give every tensor type of a function a format, and every format its widths."""
    for arg in fn.body.block.args:
        choose(arg, None)
    for inner in list(fn.walk()):
        if isinstance(inner, linalg.GenericOp):
            choose_result(inner)
        else:
            for result in inner.results:
                if not isinstance(inner, tensor.EmptyOp | linalg.FillOp):
                    choose(result, None)
    returned = fn.body.block.last_op
    outputs: list[Attribute] = [v.type for v in returned.operands] if returned is not None else []
    fn.function_type = FunctionType.from_lists([a.type for a in fn.body.block.args], outputs)


def choose_result(generic: linalg.GenericOp) -> None:
    """Give the result of a generic a format, and a reason for it."""
    result = generic.results[0]
    init = generic.outputs[0]
    made = isinstance(init.owner, tensor.EmptyOp | linalg.FillOp)
    if is_open(result.type):
        # Formats of inputs are known: definitions come before uses. A result that starts from a tensor
        # of the program has its type.
        if made:
            fmt, reason = inferred_result(generic)
        else:
            fmt, reason = tensor_format(init.type), "that of the tensor it starts from"
        choose(result, fmt)
    else:
        choose(result, None)
        reason = "as asked for"
    generic.attributes.setdefault("sparsecc.format_reason", StringAttr(reason))
    if init.type != result.type and made:
        retype_init(init, result.type)
    refuse_sparse_start(generic)


def choose(value: SSAValue, fmt: Format | None, width: int = 0) -> None:
    """Write a format (None: that of the type, or the default of an open one) and its widths into a type."""
    type_ = ranked_tensor(value.type)
    if type_ is None:
        return
    if fmt is None:
        if not isinstance(type_.encoding, EncodingAttr):
            return
        fmt = type_.encoding.data or default_format(len(type_.shape.data))
    if fmt.is_row_major:
        set_type(value, TensorType(type_.element_type, type_.shape))
        return
    fmt = fmt.with_default_widths(width or widest(value))
    set_type(value, TensorType(type_.element_type, type_.shape, EncodingAttr(fmt)))


def widest(value: SSAValue) -> int:
    """The bits that a result's positions and coordinates get if nobody says: its operands' widest."""
    op = value.owner
    widths = [DEFAULT_WIDTH]
    for operand in op.operands if isinstance(op, Operation) else ():
        fmt = encoding_of(operand.type)
        if fmt is not None and fmt.data is not None:
            widths += [fmt.data.pos_width, fmt.data.crd_width]
    return max(widths)


def refuse_sparse_start(generic: linalg.GenericOp) -> None:
    """Raise NotSparsifiable for a result that is stored sparsely, or in blocks, and starts from anything."""
    if initial_value(generic) is None:
        return
    fmt = tensor_format(generic.results[0].type)
    if not fmt.is_dense:
        raise NotSparsifiable(problem="it adds to a sparse tensor that it is given")
    if not fmt.is_permutation:
        raise NotSparsifiable(problem="it adds to a tensor stored in blocks")


def is_open(type_: Attribute) -> bool:
    """Whether a type's format is still to be chosen."""
    return (
        isinstance(type_, TensorType)
        and isinstance(type_.encoding, EncodingAttr)
        and type_.encoding.data is None
    )


def set_type(value: SSAValue, type_: Attribute) -> None:
    if value.type != type_:
        value._type = type_  # pyright: ignore[reportPrivateUsage]  # xDSL retypes values no other way in place


def retype_init(init: SSAValue, type_: Attribute) -> None:
    """An allocation (and the fill above it) takes the type of the result that starts from it."""
    owner = init.owner
    set_type(init, type_)
    if isinstance(owner, linalg.FillOp):
        retype_init(owner.outputs[0], type_)


def default_format(rank: int) -> Format:
    """The format of an open operand."""
    return dense_format(rank) if rank < 2 else sparse_format(rank)


def sparse_format(rank: int, trailing_dense: int = 0) -> Format:
    """CSR for matrices, compressed in every level otherwise; the last ``trailing_dense`` levels dense."""
    lead = rank - trailing_dense
    levels: tuple[Level, ...] = (Compressed(),) * lead + (Dense(),) * trailing_dense
    if rank == 2 and not trailing_dense:
        levels = (Dense(), Compressed())
    return Format(rank, tuple(LevelExpr(d) for d in range(rank)), levels)


def inferred_result(generic: linalg.GenericOp) -> tuple[Format, str]:
    """The format of a result whose format is open, and why."""
    view = GenericView.of(without_open_result(generic))
    rank = len(view.out.indices)
    everywhere = [stored_everywhere(view, loop) for loop in view.out.indices]
    matrices = any(len(a.indices) >= 2 or a.format.is_dense and a.format.rank for a in view.inputs)
    if all(everywhere):
        return dense_format(rank), "it is stored everywhere" if rank else "it is a scalar"
    if rank <= 1 and matrices:
        return dense_format(rank), "a vector made of matrices or dense vectors"
    if rank >= 2 and sum(everywhere) == rank - 1:
        one = "one of its indices is" if rank == 2 else "all of its indices but one are"
        return dense_format(rank), f"{one} stored everywhere"
    common = common_format(view.term, view)
    if common is not None:
        return common.with_widths(0, 0), "that of the operand(s) it is stored with"
    trailing = 0
    while trailing < rank and everywhere[rank - 1 - trailing]:
        trailing += 1
    return sparse_format(rank, trailing), "the default of a sparse result of its rank"


def without_open_result(generic: linalg.GenericOp) -> linalg.GenericOp:
    """The generic with its result's format set aside (dense), so that it can be read."""
    type_ = ranked_tensor(generic.results[0].type)
    assert type_ is not None
    dense = TensorType(type_.element_type, type_.shape)
    set_type(generic.results[0], dense)
    init = generic.outputs[0]
    if is_open(init.type) and isinstance(init.owner, tensor.EmptyOp | linalg.FillOp):
        retype_init(init, dense)
    return generic


def stored_everywhere(view: GenericView, loop: int) -> bool:
    """Whether every coordinate of a loop is stored, whatever the operands store."""
    walks = {k: not a.format.is_dense and loop in a.indices for k, a in enumerate(view.inputs)}
    dense = {k: a.format.is_dense for k, a in enumerate(view.inputs)}
    lattice = build(view.term, walks, frozenset(), dense)
    return lattice is not None and lattice.full


def common_format(node: Node, view: GenericView) -> Format | None:
    """The format of the operand(s) that a term is stored with, if they are accessed as the result is."""
    match node.structure:
        case Structure.LEAF:
            access = view.inputs[node.operand]
            sparse = not access.format.is_dense and access.subscripts == view.out.subscripts
            return access.format if sparse else None
        case Structure.KEEP:
            return common_format(node.kept, view)
        case Structure.CONJUNCTION:
            found = [common_format(a, view) for a in node.args]
            return next((f for f in found if f is not None), None)
        case Structure.QUOTIENT:
            return common_format(node.args[0], view)
        case Structure.DISJUNCTION:
            a, b = (common_format(arg, view) for arg in node.args)
            same = a is not None and b is not None and a.with_widths(0, 0) == b.with_widths(0, 0)
            return a if same else None
        case _:
            return None
