"""Named linalg operations that xDSL does not define, read as the ``linalg.generic`` they mean.

One table line each: the subscripts of the inputs and of the output, ``o+k`` being a window (``o``
times its stride plus ``k`` times its dilation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseIntElementsAttr,
    IntegerType,
    StringAttr,
    TensorType,
)
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import GenericOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from sparsecc.dialects.text.syntax import operand_group, result_types

Body = Callable[[Sequence[SSAValue]], SSAValue]
"""The output element from the elements of the inputs and the output."""


def _multiply_add(values: Sequence[SSAValue]) -> SSAValue:
    a, b, c = values
    if isinstance(c.type, AnyFloat):
        return arith.AddfOp(c, arith.MulfOp(a, b)).result
    return arith.AddiOp(c, arith.MuliOp(a, b)).result


def _sum_window(values: Sequence[SSAValue]) -> SSAValue:
    a, _, c = values
    return (arith.AddfOp if isinstance(c.type, AnyFloat) else arith.AddiOp)(c, a).result


def _max_window(values: Sequence[SSAValue]) -> SSAValue:
    a, _, c = values
    return (arith.MaximumfOp if isinstance(c.type, AnyFloat) else arith.MaxSIOp)(c, a).result


NAMED: dict[str, tuple[str, Body]] = {
    "linalg.dot": ("i, i ->", _multiply_add),
    "linalg.matvec": ("i j, j -> i", _multiply_add),
    "linalg.vecmat": ("j, j i -> i", _multiply_add),
    "linalg.batch_matmul": ("b i k, b k j -> b i j", _multiply_add),
    "linalg.batch_matvec": ("b i j, b j -> b i", _multiply_add),
    "linalg.matmul_transpose_a": ("k i, k j -> i j", _multiply_add),
    "linalg.matmul_transpose_b": ("i k, j k -> i j", _multiply_add),
    "linalg.conv_1d": ("o+k, k -> o", _multiply_add),
    "linalg.conv_2d": ("o+k p+l, k l -> o p", _multiply_add),
    "linalg.conv_3d": ("o+k p+l q+m, k l m -> o p q", _multiply_add),
    "linalg.conv_1d_nwc_wcf": ("n o+k c, k c f -> n o f", _multiply_add),
    "linalg.conv_1d_ncw_fcw": ("n c o+k, f c k -> n f o", _multiply_add),
    "linalg.conv_3d_ndhwc_dhwcf": ("n o+k p+l q+m c, k l m c f -> n o p q f", _multiply_add),
    "linalg.pooling_nhwc_sum": ("n o+k p+l c, k l -> n o p c", _sum_window),
    "linalg.pooling_nhwc_max": ("n o+k p+l c, k l -> n o p c", _max_window),
}


@dataclass(frozen=True)
class Subscripts:
    """A table line taken apart: each operand's subscripts, and the loops in order."""

    operands: tuple[tuple[tuple[str, ...], ...], ...]
    loops: tuple[str, ...]
    parallel: int

    @classmethod
    def of(cls, text: str) -> Subscripts:
        inputs, _, output = text.partition("->")
        operands = tuple(
            tuple(tuple(subscript.split("+")) for subscript in operand.split())
            for operand in (*inputs.split(","), output)
        )
        outer = [loop for subscript in operands[-1] for loop in subscript]
        # The window of a convolution comes before its channels, as in the inputs' subscripts.
        inner = [loop for operand in operands for subscript in operand for loop in subscript]
        return cls(operands, tuple(dict.fromkeys(outer + inner)), len(outer))

    def maps(self, strides: Sequence[int], dilations: Sequence[int]) -> list[AffineMapAttr]:
        dims = {loop: AffineExpr.dimension(k) for k, loop in enumerate(self.loops)}
        maps: list[AffineMapAttr] = []
        for operand in self.operands:
            exprs: list[AffineExpr] = []
            window = 0
            for subscript in operand:
                expr = dims[subscript[0]]
                if len(subscript) == 2:
                    step = strides[window] if strides else 1
                    gap = dilations[window] if dilations else 1
                    window += 1
                    expr = _times(expr, step) + _times(dims[subscript[1]], gap)
                exprs.append(expr)
            maps.append(AffineMapAttr(AffineMap(len(self.loops), 0, tuple(exprs))))
        return maps

    def iterators(self) -> list[IteratorTypeAttr]:
        inner = len(self.loops) - self.parallel
        parallel, reduction = IteratorTypeAttr.parallel(), IteratorTypeAttr.reduction()
        return [parallel] * self.parallel + [reduction] * inner

    @property
    def windows(self) -> int:
        return sum(len(subscript) == 2 for operand in self.operands for subscript in operand)


def _times(expr: AffineExpr, factor: int) -> AffineExpr:
    return expr if factor == 1 else expr * factor


class NamedSyntax(Operation):
    """Reads a named operation; a subclass for each line of the table."""

    SUBSCRIPTS: ClassVar[Subscripts]
    BODY: ClassVar[Body]

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        start = parser.pos
        attributes = parser.parse_optional_attr_dict()
        ins, outs = operand_group(parser, "ins"), operand_group(parser, "outs")
        results = result_types(parser)
        if len(ins) != len(cls.SUBSCRIPTS.operands) - 1 or len(outs) != 1:
            wanted = len(cls.SUBSCRIPTS.operands) - 1
            parser.raise_error(f"{cls.name} takes {wanted} ins and one outs", start, parser.pos)
        try:
            return cls.generic(ins, outs, results, attributes)
        except VerifyException as error:
            parser.raise_error(str(error), start, parser.pos)

    @classmethod
    def create(cls, **parts: Any) -> Any:
        """The generic form of the text: its region is the hidden one, written out."""
        operands: Sequence[SSAValue] = parts.get("operands", ())
        attributes: dict[str, Attribute] = {
            **parts.get("properties", {}),
            **parts.get("attributes", {}),
        }
        attributes.pop("operandSegmentSizes", None)
        attributes.pop("linalg.memoized_indexing_maps", None)
        results: Sequence[Attribute] = parts.get("result_types", ())
        return cls.generic(operands[:-1], operands[-1:], results, attributes)

    @classmethod
    def generic(
        cls,
        ins: Sequence[SSAValue],
        outs: Sequence[SSAValue],
        results: Sequence[Attribute],
        attributes: dict[str, Attribute],
    ) -> GenericOp:
        """The operation that the name means."""
        attributes = dict(attributes)
        strides = _factors(attributes.pop("strides", None), "strides")
        dilations = _factors(attributes.pop("dilations", None), "dilations")
        windows = cls.SUBSCRIPTS.windows
        if any(factors and len(factors) != windows for factors in (strides, dilations)):
            raise VerifyException(f"strides and dilations of {cls.name} are {windows} numbers each")
        maps = cls.SUBSCRIPTS.maps(strides, dilations)
        types = [_element(value.type) for value in (*ins, *outs)]
        block = Block(arg_types=types)
        with ImplicitBuilder(block):
            values = [_cast(value, types[-1]) for value in block.args]
            YieldOp(cls.BODY(values))
        op = GenericOp(
            ins,
            outs,
            Region(block),
            ArrayAttr(maps),
            cls.SUBSCRIPTS.iterators(),
            results,
            doc=StringAttr(cls.name),
        )
        op.attributes |= attributes
        return op


def _factors(value: Attribute | None, key: str) -> list[int]:
    if value is None:
        return []
    if not isa(value, DenseIntElementsAttr):
        raise VerifyException(f"{key} are a dense tensor of integers, not {value}")
    numbers = [int(number) for number in value.get_values()]
    if any(number < 1 for number in numbers):
        raise VerifyException(f"{key} are positive, not {numbers}")
    return numbers


def _element(type: Attribute) -> Attribute:
    if not isa(type, TensorType[Attribute]):
        raise VerifyException(f"operands are tensors, not {type}")
    return type.element_type


def _cast(value: SSAValue, type: Attribute) -> SSAValue:
    """The value widened to the output's type, as upstream does."""
    if value.type == type:
        return value
    found: Attribute = value.type
    if isa(found, IntegerType) and isa(type, IntegerType) and found.bitwidth < type.bitwidth:
        return arith.ExtSIOp(value, type).result
    if isa(found, AnyFloat) and isa(type, AnyFloat) and found.bitwidth < type.bitwidth:
        return arith.ExtFOp(value, type).result
    raise VerifyException(f"elements of type {found} do not widen to the output's {type}")


OPS: list[type[Operation]] = [
    type(
        "NamedSyntax",
        (NamedSyntax,),
        {"name": name, "SUBSCRIPTS": Subscripts.of(text), "BODY": staticmethod(body)},
    )
    for name, (text, body) in NAMED.items()
]
"""The stand-ins, for the linalg dialect of a context."""
