"""A function of the tensor level as a problem of format selection: its expressions, and what is known of its tensors.

All expressions of a function are one problem, since tensors that they share have one format::

    func.func @main(%A: tensor<?x?xf64, #ANY> {sparsecc.statistics = {…}, sparsecc.stored = "CSR"}, %x: tensor<?xf64>)
      %y = linalg.generic … ins(%A, %x) …            y[i] = A[i,j] * x[j]: a product, A is open
      %z = linalg.generic … ins(%A, %y) …            z[j] = A[i,j] * y[i]: the same A
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from sparsecc.diagnostics import UnsupportedError, UsageError, did_you_mean
from sparsecc.dialects.iteration.subscripts import Subscript, read_subscript
from sparsecc.dialects.reading import dtype_name, strings
from sparsecc.dialects.sparse_tensor.argument_facts import Facts, read_facts
from sparsecc.dialects.sparse_tensor.types import format_of, op_place, ranked_tensor
from sparsecc.elements import NAMES
from sparsecc.formats import known_name
from sparsecc.passes.selection.products import why_no_product
from sparsecc.passes.sparsification.host import initial_constant, initial_value
from sparsecc.passes.sparsification.term import ADDITIONS, strip_casts
from sparsecc.selection.problem import Access, Expression, Problem, Space, Tensor
from sparsecc.targets import Target

PRODUCTS = {"arith.mulf", "arith.muli", "complex.mul"}
WIDENING = (arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp)


class NotGeneral(UnsupportedError):
    text = "formats are chosen for linalg.generic, not for {op}"
    help_text = "run generalize-named-ops before select-formats"


class NotAnExpression(UnsupportedError):
    text = "formats can't be chosen for this linalg.generic: {problem}"
    help_text = "name the formats of its operands, or use the strategy 'inferred'"


class UnknownElement(UnsupportedError):
    text = "formats can't be chosen where tensor {name} has elements of type {dtype}"
    help_text = "elements are of {known}"


class UnknownIndex(UsageError):
    text = "sizes names the index {index!r}, which no expression has"


class SizeDiffers(UsageError):
    text = "sizes says that index {index!r} is {given}, but it is {found} in {tensor}"
    help_text = "leave it out: sizes are for extents that no operand says"


@dataclass
class View:
    """A function's tensors by name, and the generics of its expressions in order."""

    function: func.FuncOp
    expressions: list[Expression] = field(default_factory=list[Expression])
    generics: list[linalg.GenericOp] = field(default_factory=list[linalg.GenericOp])
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    tensors: dict[str, Tensor] = field(default_factory=dict[str, Tensor])

    def problem(
        self,
        target: Target,
        space: Space,
        calls: float | None = None,
        sizes: Mapping[str, int] | None = None,
        libraries: frozenset[str] = frozenset(),
    ) -> Problem:
        """The problem of choosing formats for it. Raises UnknownIndex, SizeDiffers."""
        problem = Problem(
            tuple(self.expressions), self.tensors, target, space, calls, sizes or {}, libraries,
            module=self.function,
        )  # fmt: skip
        _check_sizes(problem)
        return problem


def read_function(fn: func.FuncOp) -> View:
    """A function's expressions and tensors. Raises NotGeneral, NotAnExpression, BadStatistics, BadStored."""
    return _Reader(fn).view


def _check_sizes(problem: Problem) -> None:
    known = problem.extents
    for index, given in problem.sizes.items():
        if index not in known:
            raise UnknownIndex(index=index, help=did_you_mean(index, list(known)))
        for expression in problem.expressions:
            for access in (*expression.inputs, expression.result):
                shape = problem.tensors[access.name].shape
                for name, found in zip(access.indices, shape, strict=True):
                    if name == index and found not in (None, given):
                        raise SizeDiffers(index=index, given=given, found=found, tensor=access)


class _Reader:
    def __init__(self, fn: func.FuncOp) -> None:
        self.view = View(fn)
        self.names: dict[SSAValue, str] = {}
        self.extents: dict[str, int] = {}
        """Of indices so far: a name that has two extents becomes two names."""
        facts = read_facts(fn)
        self.results = self.result_names(fn)
        given = strings(fn.attributes.get("sparsecc.args"))
        for number, arg in enumerate(fn.body.block.args):
            name = given[number] if number < len(given) else arg.name_hint or f"arg{number}"
            self.tensor(arg, name, facts[number])
        for op in fn.body.block.ops:
            if isinstance(op, linalg.GenericOp):
                self.expression(op)
            elif isinstance(op, LinalgStructuredOperation) and not isinstance(op, linalg.FillOp):
                raise NotGeneral(op=op.name, place=op_place(op))
            elif not isinstance(op, tensor.EmptyOp | tensor.SplatOp | linalg.FillOp):
                for value in op.results:
                    self.tensor(value, self.hint(value), Facts())

    def result_names(self, fn: func.FuncOp) -> dict[SSAValue, str]:
        last = fn.body.block.last_op
        values = last.operands if isinstance(last, func.ReturnOp) else ()
        return dict(zip(values, strings(fn.attributes.get("sparsecc.results")), strict=False))

    def hint(self, value: SSAValue) -> str:
        return self.results.get(value) or value.name_hint or f"t{len(self.names)}"

    def tensor(self, value: SSAValue, wanted: str, facts: Facts) -> Tensor | None:
        """Note a tensor of the function; what is no tensor, or is none of ours, is left out."""
        type_ = ranked_tensor(value.type)
        dtype = None if type_ is None else dtype_name(type_.element_type)
        if type_ is None or dtype is None:
            return None
        if dtype not in NAMES:
            place = op_place(owner) if isinstance(owner := value.owner, Operation) else ""
            raise UnknownElement(dtype=dtype, name=wanted, known=", ".join(NAMES), place=place)
        name, number = wanted, 1
        while name in self.view.tensors:
            number += 1
            name = f"{wanted}_{number}"
        shape = _shape(value)
        if facts.statistics is not None:
            shape = facts.statistics.shape
        fmt = format_of(type_)
        made = Tensor(
            name, shape, dtype, None if fmt is None else known_name(fmt), facts.stored, facts.statistics
        )  # fmt: skip
        self.names[value] = name
        self.view.values[name], self.view.tensors[name] = value, made
        return made

    def expression(self, generic: linalg.GenericOp) -> None:
        if len(generic.outputs) != 1 or len(generic.res) != 1:
            raise NotAnExpression(problem="it has several results", place=op_place(generic))
        result = generic.results[0]
        maps = [[read_subscript(e) for e in m.data.results] for m in generic.indexing_maps.data]
        loops = generic.indexing_maps.data[0].data.num_dims
        given = strings(generic.attributes.get("sparsecc.indices"))
        names = given if len(given) == loops else [f"d{k}" for k in range(loops)]
        known = self.loop_extents(generic, maps)
        names = [self.index_name(name, known.get(k)) for k, name in enumerate(names)]
        made = self.tensor(result, self.hint(result), Facts())
        if made is None or any(v not in self.names for v in generic.inputs):
            raise NotAnExpression(problem="its operands are no tensors", place=op_place(generic))
        # The extents of a result follow from its operands', where its type leaves them open.
        shape = tuple(
            known.get(s[0][0]) if extent is None and s is not None and _is_plain(s) else extent
            for s, extent in zip(maps[-1], made.shape, strict=True)
        )
        self.view.tensors[made.name] = replace(made, shape=shape)
        accesses = [
            Access(self.names[value], tuple(_spell(s, names) for s in subscripts))
            for value, subscripts in zip([*generic.inputs, result], maps, strict=True)
        ]
        product = all(s is not None and _is_plain(s) for m in maps for s in m)
        product = product and is_product(generic)
        if len(generic.inputs) == 2 and generic.body.block.args[-1].first_use is not None:
            product = product and why_no_product(generic) is None  # libraries are asked for such
        self.view.generics.append(generic)
        self.view.expressions.append(
            Expression(
                accesses[-1], tuple(accesses[:-1]), product, _text(generic, accesses, product)
            )
        )

    def loop_extents(
        self, generic: linalg.GenericOp, maps: list[list[Subscript | None]]
    ) -> dict[int, int]:
        """The extents of loops that operands say."""
        found: dict[int, int] = {}
        for value, subscripts in zip([*generic.inputs, *generic.outputs], maps, strict=True):
            named = self.view.tensors.get(self.names.get(value, ""))
            shape = named.shape if named is not None else _shape(value)
            for subscript, extent in zip(subscripts, shape, strict=False):
                if extent is not None and subscript is not None and _is_plain(subscript):
                    found.setdefault(subscript[0][0], extent)
        return found

    def index_name(self, wanted: str, extent: int | None) -> str:
        """A name that has one extent in the whole function: statements name their indices for themselves."""
        if extent is None:
            return wanted
        name, number = wanted, 1
        while self.extents.setdefault(name, extent) != extent:
            number += 1
            name = f"{wanted}_{number}"
        return name


def _shape(value: SSAValue) -> tuple[int | None, ...]:
    type_ = ranked_tensor(value.type)
    shape = type_.get_shape() if type_ is not None else ()
    return tuple(None if extent == DYNAMIC_INDEX else extent for extent in shape)


def _is_plain(subscript: Subscript) -> bool:
    return len(subscript) == 1 and subscript[0][1] == 1


def _spell(subscript: Subscript | None, names: list[str]) -> str:
    """``i``, or ``2*i+k`` where loops are added."""
    if subscript is None:
        return "?"
    return "+".join(names[n] if by == 1 else f"{by}*{names[n]}" for n, by in subscript)


def _text(generic: linalg.GenericOp, accesses: list[Access], product: bool) -> str:
    source = generic.attributes.get("sparsecc.source")
    if isinstance(source, StringAttr):
        return source.data
    *inputs, result = map(str, accesses)
    value = " * ".join(inputs) if product else f"f({', '.join(inputs)})"
    return f"{result} = {value}"


# -- products --------------------------------------------------------------------------------------


def is_product(generic: linalg.GenericOp) -> bool:
    """Whether the result is the sum of one product of all inputs, from zero, and nothing else."""
    if initial_value(generic) is not None or initial_constant(generic) is not None:
        return False
    block = generic.body.block
    last = block.last_op
    assert last is not None
    value = strip_casts(last.operands[0])
    if isinstance(value.owner, arith.TruncFOp):  # computed in a wider type, and rounded
        value = value.owner.operands[0]
    accumulator = block.args[-1]
    if accumulator.first_use is not None:
        owner = value.owner
        if not isinstance(owner, Operation) or owner.name not in ADDITIONS - {"arith.ori"}:
            return False
        sides = [_widened(v) for v in owner.operands]
        if sides.count(accumulator) != 1:
            return False
        value = owner.operands[1 - sides.index(accumulator)]
    elif IteratorTypeAttr.reduction() in generic.iterator_types.data:
        return False
    factors = list(_factors(value))
    inputs = list(block.args[:-1])
    return len(factors) == len(inputs) and set(factors) == set(inputs) and len(inputs) > 0


def _widened(value: SSAValue) -> SSAValue:
    """The value behind casts that change no number."""
    value = strip_casts(value)
    while isinstance(value.owner, WIDENING):
        value = strip_casts(value.owner.operands[0])
    return value


def _factors(value: SSAValue) -> list[SSAValue]:
    """What is multiplied; a value that is no product is its own only factor."""
    value = _widened(value)
    if isinstance(value, BlockArgument):
        return [value]
    owner = value.owner
    if isinstance(owner, Operation) and owner.name in PRODUCTS:
        return [f for operand in owner.operands for f in _factors(operand)]
    return [value]
