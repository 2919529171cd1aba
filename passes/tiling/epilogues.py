"""What is done to each element of a contraction: factors, a start, and elementwise operations that follow it.

An epilogue works on the accumulator, so floats of 16 bits are computed on in f32 and rounded once, at the end; where
a program rounds in between by a cast of its own, so does the epilogue. Integers wrap as the program says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    FloatAttr,
    IntegerAttr,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from sparsecc.dialects.reading import element_type, integer_width
from sparsecc.dialects.tile.fragment_types import type_name
from sparsecc.passes.sparsification.host import initial_constant, initial_value
from sparsecc.passes.sparsification.term import strip_casts
from sparsecc.passes.tiling.contraction_view import (
    ContractionView,
    NoContraction,
    loops_of,
    memory_order,
)

FUSABLE = frozenset(
    {
        "arith.constant", "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf",
        "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf", "arith.addi",
        "arith.subi", "arith.muli", "arith.maxsi", "arith.minsi", "arith.cmpf", "arith.cmpi",
        "arith.select", "arith.extf", "arith.truncf", "arith.extsi", "arith.trunci",
        "arith.sitofp", "arith.fptosi", "math.absf", "math.absi", "math.exp", "math.exp2",
        "math.log", "math.log2", "math.erf", "math.sqrt", "math.rsqrt",
        "math.floor", "math.ceil", "math.tanh",
    }
)  # fmt: skip
"""Scalar operations that every family of kernels does on its accumulator. Sine and cosine are not among them: their
code for large arguments, once for each element of a thread, takes five times as long to compile as a whole kernel."""
PREDICATES = {
    "arith.cmpf": (1, 2, 3, 4, 5, 6, 13),
    "arith.cmpi": (0, 1, 2, 3, 4, 5),
}
"""Comparisons among them: the ordered ones and une, and the signed ones."""
TYPES = ("f16", "bf16", "f32", "i8", "i32")
"""Of tensors and of what is computed; comparisons give ``i1`` beside them."""
INDICES = ("", "n", "t", "tn", "nt")
"""How tensors of an epilogue may be indexed, outer to inner in memory; a batch comes before ``tn`` and ``nt``."""


def indexed(value: SSAValue, letters: str, batched: bool) -> str | None:
    """The indices of a tensor that an epilogue can load, in memory's order; None if it can't."""
    if letters == "":
        order = ""
    else:
        order = memory_order(value.type, letters)
        if not order:
            return None
    if type_name(element_type(value.type)) not in TYPES:
        return None
    if batched and len(order) > 1:
        order = order[1:] if order[0] == "b" else "b"
    return order if order in INDICES else None


class Epilogue:
    """A region in the making, from the accumulator to the element of a result."""

    def __init__(self, view: ContractionView, accumulator: Attribute) -> None:
        self.view = view
        self.block = Block(arg_types=[accumulator])
        self.block.args[0].name_hint = "total"
        self.operands: list[tuple[SSAValue, str]] = []
        """Tensors that are loaded, each with the letters of its dimensions."""
        self.letters = view.letters_at(len(view.generic.inputs))
        """Of the result's dimensions."""
        self.element = element_type(view.generic.results[0].type)
        self.batched = "b" in view.letters.values()
        self.value: SSAValue = self.block.args[0]
        self._finish_sum()

    # -- the contraction's own part ------------------------------------------------------------

    def _finish_sum(self) -> None:
        """Factors that every term has, the sign, and what the result starts from."""
        view, generic = self.view, self.view.generic
        inputs: dict[SSAValue, tuple[SSAValue, str]] = {
            a: (generic.inputs[k], view.letters_at(k))
            for k, a in enumerate(generic.body.block.args[:-1])
            if k not in (view.weight, view.x)
        }
        for argument, (tensor, letters) in inputs.items():
            if argument.first_use is not None and indexed(tensor, letters, self.batched) is None:
                raise NoContraction("a factor has another index or type than its rows and tokens")
        if not all(fusable_value(f, generic.body.block) for f in view.factors):
            raise NoContraction("a factor is computed by an operation that its kernels do not have")
        self.value = self._typed(self.value, view.term_type)
        environment: dict[SSAValue, SSAValue] = {}
        for factor in view.factors:
            other = self._evaluate(factor, environment, inputs)
            self.value = self._binary(arith.MulfOp, arith.MuliOp, self.value, other)
        self.value = self._typed(self.value, self.element)
        start = self._start(generic, self.letters, generic.body.block.args[-1])
        if start is not None:
            sub = view.sign < 0
            ops = (arith.SubfOp, arith.SubiOp) if sub else (arith.AddfOp, arith.AddiOp)
            self.value = self._binary(*ops, start, self.value)
        elif view.sign < 0:
            if integer_width(self.value.type):
                self.value = self._binary(
                    arith.SubfOp, arith.SubiOp, self._zero(self.value.type), self.value
                )
            else:
                self.value = self._add(arith.NegfOp(self.value))

    def _start(
        self, generic: linalg.GenericOp, letters: str, accumulator: SSAValue
    ) -> SSAValue | None:
        """What a result starts from; None for 0 and where nobody reads it."""
        if accumulator.first_use is None:
            return None
        constant = initial_constant(generic)
        if constant is not None:
            return self._constant(constant)
        tensor = initial_value(generic)
        if tensor is None:
            return None
        if indexed(tensor, letters, self.batched) is None:
            raise NoContraction("it starts from a tensor that its kernel can't load")
        return self._load(tensor, letters)

    # -- operations that follow ----------------------------------------------------------------

    def fuse(self, generic: linalg.GenericOp, source: SSAValue) -> bool:
        """Take in an elementwise operation on ``source``, the result so far; whether that was possible."""
        letters = self._elementwise(generic, source)
        if letters is None:
            return False
        block = generic.body.block
        *inputs, out = (
            "".join(letters[loop] for loop in loops_of(generic, k))
            for k in range(len(generic.inputs) + 1)
        )
        environment: dict[SSAValue, SSAValue] = {}
        tensors: dict[SSAValue, tuple[SSAValue, str]] = {}
        for argument, value, mine in zip(block.args[:-1], generic.inputs, inputs, strict=True):
            if value is source:
                environment[argument] = self.value
            else:
                tensors[argument] = (value, mine)
        accumulator = block.args[-1]
        if accumulator.first_use is not None:
            start = self._start(generic, out, accumulator)
            element = element_type(generic.results[0].type)
            environment[accumulator] = self._zero(element) if start is None else start
        last = block.last_op
        assert last is not None
        self.element = element_type(generic.results[0].type)
        result = self._evaluate(strip_casts(last.operands[0]), environment, tensors)
        self.value, self.letters = result, out
        return True

    def _elementwise(self, generic: linalg.GenericOp, source: SSAValue) -> dict[int, str] | None:
        """The letters of the loops of an operation that can be taken in, else None."""
        if len(generic.outputs) != 1 or len(generic.res) != 1:
            return None
        if any(k.data.name.lower() != "parallel" for k in generic.iterator_types.data):
            return None
        try:
            loops = [loops_of(generic, k) for k in range(len(generic.inputs) + 1)]
        except NoContraction:
            return None
        mine = [at for value, at in zip(generic.inputs, loops, strict=False) if value is source]
        if not mine or any(at != mine[0] for at in mine):
            return None
        letters = dict(zip(mine[0], self.letters, strict=True))
        if set(letters) != set(loops[-1]) or len(loops[-1]) != len(generic.iterator_types):
            return None
        spelled = ["".join(letters[loop] for loop in at) for at in loops]
        for value, at in zip(generic.inputs, spelled, strict=False):
            if value is not source and indexed(value, at, self.batched) is None:
                return None
        result = generic.results[0]
        order = memory_order(result.type, spelled[-1])
        if not order or order[-1] == "b" or type_name(element_type(result.type)) not in TYPES:
            return None
        start = initial_value(generic)
        if start is not None and indexed(start, spelled[-1], self.batched) is None:
            return None
        last = generic.body.block.last_op
        assert last is not None
        if not fusable_value(strip_casts(last.operands[0]), generic.body.block):
            return None
        return letters

    def finish(self) -> SSAValue:
        """The element as the result holds it."""
        self.value = self._typed(self.value, self.element, exact=True)
        return self.value

    # -- values --------------------------------------------------------------------------------

    def _add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def _constant(self, value: Attribute) -> SSAValue:
        """A number; floats of 16 bits in f32."""
        if isinstance(value, FloatAttr):
            value = FloatAttr(value.value.data, Float32Type())
        return self._add(
            arith.ConstantOp.create(result_types=[_type_of(value)], properties={"value": value})
        )

    def _zero(self, type_: Attribute) -> SSAValue:
        width = integer_width(type_)
        return self._constant(IntegerAttr(0, width) if width else FloatAttr(0.0, Float32Type()))

    def _load(self, tensor: SSAValue, letters: str) -> SSAValue:
        """The element of a tensor: an argument of the region."""
        if (tensor, letters) in self.operands:
            return self.block.args[1 + self.operands.index((tensor, letters))]
        self.operands.append((tensor, letters))
        argument = self.block.insert_arg(element_type(tensor.type), len(self.block.args))
        argument.name_hint = f"{(tensor.name_hint or 'operand').lower()}_element"
        return argument

    def _evaluate(
        self,
        value: SSAValue,
        environment: dict[SSAValue, SSAValue],
        tensors: Mapping[SSAValue, tuple[SSAValue, str]],
    ) -> SSAValue:
        """A value of a generic's body, computed here."""
        value = strip_casts(value)
        if value in environment:
            return environment[value]
        if isinstance(value, BlockArgument):
            found = self._load(*tensors[value])
        else:
            op = value.owner
            assert isinstance(op, Operation)
            arguments = [self._evaluate(v, environment, tensors) for v in op.operands]
            found = self._operation(op, arguments)
        environment[value] = found
        return found

    def _operation(self, op: Operation, arguments: Sequence[SSAValue]) -> SSAValue:
        result = op.results[0].type
        if isinstance(op, arith.ExtFOp | arith.ExtSIOp):
            return self._typed(arguments[0], result)
        if isinstance(op, arith.TruncFOp):
            return self._typed(arguments[0], result, exact=True)
        if isinstance(op, arith.ConstantOp):
            return self._constant(op.value)
        wide = [self._typed(v, _wide(v.type)) for v in arguments]
        new = type(op).create(
            operands=wide,
            result_types=[_wide(result)],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        new.results[0].name_hint = op.results[0].name_hint
        return self._add(new)

    def _binary(
        self,
        on_floats: type[Operation],
        on_integers: type[Operation],
        left: SSAValue,
        right: SSAValue,
    ) -> SSAValue:
        left, right = (self._typed(v, _wide(v.type)) for v in (left, right))
        make = on_integers if integer_width(left.type) else on_floats
        return self._add(make.create(operands=[left, right], result_types=[left.type]))

    def _typed(self, value: SSAValue, type_: Attribute, exact: bool = False) -> SSAValue:
        """A value as one of another type. Floats of 16 bits may stay in f32, unless ``exact``."""
        source = value.type
        if source == type_ or (not exact and _wide(type_) == source):
            return value
        if integer_width(source) and integer_width(type_):
            wider = integer_width(type_) > integer_width(source)
            cast = arith.ExtSIOp if wider else arith.TruncIOp
            return self._add(cast.create(operands=[value], result_types=[type_]))
        assert isinstance(source, AnyFloat) and isinstance(type_, AnyFloat)
        if _wide(source) != source:
            value = self._add(arith.ExtFOp(value, Float32Type()))
            return self._typed(value, type_, exact)
        return self._add(arith.TruncFOp(value, type_))


def _wide(type_: Attribute) -> Attribute:
    """What elements of a type are computed in."""
    return Float32Type() if isinstance(type_, Float16Type | BFloat16Type) else type_


def _type_of(value: Attribute) -> Attribute:
    """The type of a number."""
    assert isinstance(value, FloatAttr | IntegerAttr)
    return (
        cast("FloatAttr[AnyFloat]", value).type
        if isinstance(value, FloatAttr)
        else cast("IntegerAttr", value).type
    )


def fusable_value(value: SSAValue, block: Block) -> bool:
    """Whether a value of a generic's body can be computed in an epilogue."""
    value = strip_casts(value)
    if isinstance(value, BlockArgument):
        return value.block is block and type_name(value.type) in TYPES
    op = value.owner
    assert isinstance(op, Operation)
    if op.name not in FUSABLE:
        return False
    if isinstance(op, arith.CmpfOp | arith.CmpiOp):
        if op.predicate.value.data not in PREDICATES[op.name]:
            return False
    elif type_name(value.type) not in TYPES:
        return False
    elif not isinstance(op, arith.SelectOp) and any(type_name(v.type) == "i1" for v in op.operands):
        return False  # a set i1 is -1 or 1 by the operation
    return all(fusable_value(v, block) for v in op.operands)
