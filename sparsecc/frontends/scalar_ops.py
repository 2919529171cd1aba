"""Typed values to scalar operations: the bodies of generics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import arith
from xdsl.dialects import complex as complex_dialect
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    UnrealizedConversionCastOp,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sparsecc.frontends import dtypes
from sparsecc.frontends.dtypes import Constant
from sparsecc.frontends.typed import Arith, Const, Convert, Load, Negate, Sum, Value

_FLOATS: dict[str, AnyFloat] = {
    "f16": Float32Type(),
    "bf16": Float32Type(),
    "f32": Float32Type(),
    "f64": Float64Type(),
    "c64": Float32Type(),
    "c128": Float64Type(),
}
_WIDTHS = {"bool": 1} | {name: int(name[1:]) for name in dtypes.NAMES if name[0] in "iu"}
_SIGNLESS = {name: IntegerType(width) for name, width in _WIDTHS.items()}
_COMPLEX: dict[str, ComplexType[AnyFloat]] = {
    name: ComplexType(_FLOATS[name]) for name in ("c64", "c128")
}
_UNSIGNED = {n: IntegerType(w, Signedness.UNSIGNED) for n, w in _WIDTHS.items() if n[0] == "u"}

SIGNLESS: dict[str, Attribute] = {
    **_SIGNLESS,
    **_COMPLEX,
    **{name: _FLOATS[name] for name in dtypes.NAMES if dtypes.kind(name) == "f"},
}
"""What bodies compute on: floats of 16 bits are widened to f32 first."""
_NARROW: dict[str, AnyFloat] = {"f16": Float16Type(), "bf16": BFloat16Type()}
ELEMENT: dict[str, Attribute] = {**SIGNLESS, **_UNSIGNED, **_NARROW}
"""What tensors hold, and block arguments are: unsigned integers say so."""


def narrow_type(dtype: str) -> AnyFloat:
    """The type of a float of 16 bits."""
    return _NARROW[dtype]


_Operation = Callable[[SSAValue, SSAValue], Operation]
_OPERATIONS: dict[str, dict[str, _Operation]] = {
    "f": {"+": arith.AddfOp, "-": arith.SubfOp, "*": arith.MulfOp, "/": arith.DivfOp},
    "i": {"+": arith.AddiOp, "-": arith.SubiOp, "*": arith.MuliOp},
    "u": {"+": arith.AddiOp, "-": arith.SubiOp, "*": arith.MuliOp},
    "b": {"+": arith.OrIOp, "*": arith.AndIOp},
    "c": {
        "+": complex_dialect.AddOp,
        "-": complex_dialect.SubOp,
        "*": complex_dialect.MulOp,
        "/": complex_dialect.DivOp,
    },
}


class BodyBuilder:
    """Appends operations to a block."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def value(self, value: Value, known: Mapping[Load, SSAValue]) -> SSAValue:
        """The SSA value of a typed value."""
        match value:
            case Load():
                return known[value]
            case Const(number, dtype):
                return self.constant(number, dtype)
            case Convert(operand, dtype):
                return self.convert(self.value(operand, known), operand.dtype, dtype)
            case Arith(op, lhs, rhs, dtype):
                return self.arith(op, self.value(lhs, known), self.value(rhs, known), dtype)
            case Negate(operand, dtype):
                return self.negate(self.value(operand, known), dtype)
            case Sum():
                raise AssertionError("steps hold no sums")

    # -- operations ----------------------------------------------------------------------------

    def enter(self, value: SSAValue, dtype: str) -> SSAValue:
        """A tensor element as a body computes on it."""
        if dtypes.is_narrow(dtype):
            return self.add(arith.ExtFOp(value, SIGNLESS[dtype]))
        return self._cast(value, SIGNLESS[dtype])

    def leave(self, value: SSAValue, dtype: str) -> SSAValue:
        """A computed value as a tensor element; floats of 16 bits are rounded here."""
        if dtypes.is_narrow(dtype):
            return self.add(arith.TruncFOp(value, ELEMENT[dtype]))
        return self._cast(value, ELEMENT[dtype])

    def _cast(self, value: SSAValue, wanted: Attribute) -> SSAValue:
        if value.type == wanted:
            return value
        return self.add(UnrealizedConversionCastOp.get([value], [wanted]))

    def constant(self, value: Constant, dtype: str) -> SSAValue:
        """A constant of a dtype that can hold it."""
        if dtype in _SIGNLESS:
            assert isinstance(value, int)
            attr = IntegerAttr(value, _SIGNLESS[dtype], truncate_bits=True)
            return self.add(arith.ConstantOp(attr))
        if dtype in _COMPLEX:
            parts = (float(value.real), float(value.imag))
            return self.add(complex_dialect.ConstantOp.from_floats(parts, _FLOATS[dtype]))
        assert not isinstance(value, complex)
        return self.add(arith.ConstantOp(FloatAttr(float(value), _FLOATS[dtype])))

    def arith(self, op: str, lhs: SSAValue, rhs: SSAValue, dtype: str) -> SSAValue:
        """``lhs op rhs``, both of that dtype; on bool ``+`` is or, ``*`` is and."""
        return self.add(_OPERATIONS[dtypes.kind(dtype)][op](lhs, rhs))

    def negate(self, value: SSAValue, dtype: str) -> SSAValue:
        """Unary minus; on integers ``0 - x``, as upstream spells it."""
        match dtypes.kind(dtype):
            case "f":
                return self.add(arith.NegfOp(value))
            case "c":
                return self.add(complex_dialect.NegOp(value))
            case _:
                return self.add(arith.SubiOp(self.constant(0, dtype), value))

    def convert(self, value: SSAValue, source: str, target: str) -> SSAValue:
        """The value in a type that promotion leads to: never a narrower kind."""
        source, target = dtypes.computed_in(source), dtypes.computed_in(target)
        if source == target:
            return value
        if target in _COMPLEX:
            return self._to_complex(value, source, target)
        if target in _FLOATS:
            return self._to_float(value, source, target)
        wanted = _SIGNLESS[target]
        if _WIDTHS[source] == _WIDTHS[target]:
            return value
        widen = arith.ExtSIOp if source[0] == "i" else arith.ExtUIOp
        return self.add(widen(value, wanted))

    def _to_float(self, value: SSAValue, source: str, target: str) -> SSAValue:
        wanted = _FLOATS[target]
        if source[0] == "i":
            return self.add(arith.SIToFPOp(value, wanted))
        if source[0] in "ub":
            return self.add(arith.UIToFPOp(value, wanted))
        return self.add(arith.ExtFOp(value, wanted))

    def _to_complex(self, value: SSAValue, source: str, target: str) -> SSAValue:
        if source in _COMPLEX:
            parts = [self.add(complex_dialect.ReOp(value)), self.add(complex_dialect.ImOp(value))]
            real, imaginary = (self.add(arith.ExtFOp(part, _FLOATS[target])) for part in parts)
        else:
            part = "f32" if target == "c64" else "f64"
            real = self.convert(value, source, part)
            imaginary = self.constant(0, part)
        return self.add(complex_dialect.CreateOp(real, imaginary, _COMPLEX[target]))
