"""Scalar operations on NumPy arrays, and where their results are stored.

The tables say what each operation computes and its *structure*, written down here a second time on
purpose: an oracle that read the compiler's table would repeat its mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects import arith, builtin
from xdsl.dialects import complex as complex_dialect
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from sparsecc.diagnostics import UnsupportedError
from sparsecc.elements import NUMPY

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class NotInterpreted(UnsupportedError):
    text = "the reference interpreter does not know {what}"


@dataclass(frozen=True)
class Data:
    """Values, 0 where nothing is stored,
    and where something is; ``constant``: spelled in the program."""

    values: Array
    stored: Mask
    constant: bool = False


def everywhere(values: Any, constant: bool = False) -> Data:
    """Values that are all stored."""
    array = np.asarray(values)
    return Data(array, np.ones(array.shape, np.bool_), constant)


def where(stored: Any, values: Any) -> Data:
    """The values where something is stored, 0 elsewhere."""
    array = np.asarray(values)
    mask = np.broadcast_to(np.asarray(stored, np.bool_), array.shape)
    return Data(np.where(mask, array, array.dtype.type(0)), mask)


def numpy_type(attribute: Attribute) -> np.dtype[Any]:
    """The NumPy type of an element; signless integers are signed. Raises NotInterpreted."""
    match attribute:
        case builtin.IndexType():
            return np.dtype(np.int64)
        case builtin.Float16Type():
            return np.dtype(np.float16)
        case builtin.BFloat16Type():
            return NUMPY["bf16"]
        case builtin.Float32Type():
            return np.dtype(np.float32)
        case builtin.Float64Type():
            return np.dtype(np.float64)
        case builtin.ComplexType() if attribute.element_type == builtin.f32:
            return np.dtype(np.complex64)
        case builtin.ComplexType() if attribute.element_type == builtin.f64:
            return np.dtype(np.complex128)
        case builtin.IntegerType() if attribute.width.data == 1:
            return np.dtype(np.bool_)
        case builtin.IntegerType() if attribute.width.data in (8, 16, 32, 64):
            unsigned = attribute.signedness.data == builtin.Signedness.UNSIGNED
            return np.dtype(f"{'u' if unsigned else ''}int{attribute.width.data}")
        case _:
            raise NotInterpreted(what=f"elements of type {attribute}")


# -- what operations compute -----------------------------------------------------------------------

Function = Callable[..., Any]


def _unsigned(values: Array) -> Array:
    """The same bits without a sign."""
    return values if values.dtype == np.bool_ else values.view(f"uint{values.dtype.itemsize * 8}")


def _signed(values: Array) -> Array:
    """The values of signed integers; a set i1 is -1."""
    return -values.astype(np.int8) if values.dtype == np.bool_ else values


def _on_unsigned(function: Function) -> Function:
    def apply(a: Array, b: Array) -> Array:
        return np.asarray(function(_unsigned(a), _unsigned(b))).view(a.dtype)

    return apply


def _modulo_two(on_bits: Function, on_integers: Function) -> Function:
    """Integer arithmetic, which on i1 is arithmetic modulo 2."""

    def apply(a: Array, b: Array) -> Any:
        return (on_bits if a.dtype == np.bool_ else on_integers)(a, b)

    return apply


def _divide(a: Array, b: Array) -> Array:
    """Integer division towards 0."""
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)


def _round(a: Array) -> Array:
    """Halves go away from 0."""
    whole = np.trunc(a)
    return whole + np.where(np.abs(a - whole) >= 0.5, np.sign(a), 0).astype(a.dtype)


BINARY: dict[str, Function] = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.addi": _modulo_two(np.logical_xor, np.add), "arith.subi": _modulo_two(np.logical_xor,
    np.subtract),
    "arith.muli": np.multiply, "arith.divsi": _divide, "arith.remsi": np.fmod,
    "arith.divui": _on_unsigned(np.floor_divide), "arith.remui": _on_unsigned(np.remainder),
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift, "arith.shrsi": np.right_shift,
    "arith.shrui": _on_unsigned(np.right_shift),
    "arith.minsi": np.minimum, "arith.maxsi": np.maximum,
    "arith.minui": _on_unsigned(np.minimum), "arith.maxui": _on_unsigned(np.maximum),
    "arith.minimumf": np.minimum, "arith.maximumf": np.maximum, "arith.minnumf": np.fmin,
    "arith.maxnumf": np.fmax,
    "math.powf": np.power, "math.copysign": np.copysign, "math.atan2": np.arctan2,
    "complex.add": np.add, "complex.sub": np.subtract, "complex.mul": np.multiply,
    "complex.div": np.divide,
}  # fmt: skip

UNARY: dict[str, Function] = {
    "arith.negf": np.negative, "complex.neg": np.negative, "complex.re": np.real,
    "complex.im": np.imag,
    "math.absf": np.abs, "math.absi": np.abs, "math.sqrt": np.sqrt, "math.cbrt": np.cbrt,
    "math.exp": np.exp, "math.exp2": np.exp2, "math.expm1": np.expm1,
    "math.log": np.log, "math.log2": np.log2, "math.log10": np.log10, "math.log1p": np.log1p,
    "math.sin": np.sin, "math.cos": np.cos, "math.tan": np.tan, "math.tanh": np.tanh,
    "math.atan": np.arctan,
    "math.ceil": np.ceil, "math.floor": np.floor, "math.trunc": np.trunc, "math.roundeven": np.rint,
    "math.round": _round,
    "complex.conj": np.conjugate, "complex.abs": np.abs,
}  # fmt: skip

WIDEN: dict[str, Function] = {
    "arith.extf": np.asarray, "arith.truncf": np.asarray, "arith.fptosi": np.asarray,
    "arith.fptoui": np.asarray,
    "arith.extsi": _signed, "arith.sitofp": _signed, "arith.extui": _unsigned,
    "arith.uitofp": _unsigned,
    "arith.index_cast": _signed,
}  # fmt: skip
"""Casts: what is done to the values before they take the result's type."""

# -- where results are stored ----------------------------------------------------------------------

INTERSECTION = {"arith.mulf", "arith.muli", "arith.andi", "complex.mul"}
UNION = {"arith.addf", "arith.addi", "arith.subf", "arith.subi", "arith.ori", "arith.xori",
         "complex.add", "complex.sub"}  # fmt: skip
SUBTRACTIONS = {"arith.subf", "arith.subi", "complex.sub"}
QUOTIENT = {"arith.divf", "complex.div"}
ZERO_AT_ZERO = {
    "arith.negf", "complex.neg", "complex.re", "complex.im", "complex.conj", "complex.abs",
    "math.absf", "math.absi", "math.sqrt", "math.cbrt", "math.expm1", "math.log1p", "math.sin",
    "math.tan",
    "math.tanh", "math.atan", "math.ceil", "math.floor", "math.trunc", "math.roundeven",
    "math.round",
    "arith.trunci", "arith.bitcast", *WIDEN,
}  # fmt: skip
"""Operations of one operand that are stored where it is, since f(0) = 0."""

_INTEGERS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOATS = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
    "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
"""Predicates by their numbers in the attribute."""
_COMPARE: dict[str, Function] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


def apply(op: Operation, args: Sequence[Data]) -> Data:
    """The result of an operation of arith, math or complex. Raises NotInterpreted."""
    if isinstance(op, arith.ConstantOp | complex_dialect.ConstantOp):
        return everywhere(constant(op.value, op.results[0].type), True)
    arrays = [a.values for a in args]
    target = op.results[0].type
    match op:
        case builtin.UnrealizedConversionCastOp():
            if len(args) != 1:
                raise NotInterpreted(what="a conversion cast of several values")
            return Data(_recast(arrays[0], numpy_type(target)), args[0].stored, args[0].constant)
        case complex_dialect.CreateOp():
            return _create(args, numpy_type(target))
        case arith.SelectOp():
            return everywhere(np.where(arrays[0], arrays[1], arrays[2]))
        case arith.CmpiOp():
            return everywhere(_compare_integers(_INTEGERS[op.predicate.value.data], *arrays))
        case arith.CmpfOp():
            return everywhere(_compare_floats(_FLOATS[op.predicate.value.data], *arrays))
        case _:
            return _by_name(op.name, args, arrays, numpy_type(target))


def _by_name(
    name: str, args: Sequence[Data], arrays: Sequence[Array], target: np.dtype[Any]
) -> Data:
    if name in BINARY:
        values = np.asarray(BINARY[name](*arrays))
        assert values.dtype == target, f"{name} gives {values.dtype}, not {target}"
        return where(_stored(name, *args), values)
    if name in UNARY:
        values = np.asarray(UNARY[name](arrays[0])).astype(target, copy=False)
    elif name in WIDEN:
        values = np.asarray(WIDEN[name](arrays[0])).astype(target)
    elif name == "arith.trunci":
        values = (arrays[0] & 1).astype(target) if target == np.bool_ else arrays[0].astype(target)
    elif name == "arith.bitcast":
        values = _recast(arrays[0], target)
    elif name == "math.fma":
        return everywhere(arrays[0] * arrays[1] + arrays[2])
    else:
        raise NotInterpreted(what=f"the operation {name}")
    return where(args[0].stored if name in ZERO_AT_ZERO else True, values)


def _stored(name: str, a: Data, b: Data) -> Any:
    if name in SUBTRACTIONS and a.constant and not a.values.any():
        return b.stored  # how integers are negated
    if name in INTERSECTION:
        return a.stored & b.stored
    if name in UNION:
        return a.stored | b.stored
    if name in QUOTIENT and not (a.constant and b.constant):
        # A missing numerator over something stored is missing; over a missing one it is 0 / 0.
        return a.stored | ~b.stored
    return True


def _create(args: Sequence[Data], target: np.dtype[Any]) -> Data:
    """A complex number: 0 where both parts are; a constant 0 has no say in where it is stored."""
    real, imaginary = args
    values = np.zeros(np.broadcast_shapes(real.values.shape, imaginary.values.shape), target)
    values.real, values.imag = real.values, imaginary.values
    if real.constant and imaginary.constant:
        return everywhere(values, True)
    says = [a for a in args if not a.constant or a.values.any()]
    return where(np.any(np.broadcast_arrays(*[a.stored for a in says]), axis=0), values)


def _recast(values: Array, target: np.dtype[Any]) -> Array:
    return values if values.dtype == target else values.view(target)


def _compare_integers(predicate: str, a: Array, b: Array) -> Any:
    if predicate in _COMPARE:
        return _COMPARE[predicate](a, b)
    read = _unsigned if predicate[0] == "u" else _signed
    return _COMPARE[predicate[1:]](read(a), read(b))


def _compare_floats(predicate: str, a: Array, b: Array) -> Any:
    unordered = np.isnan(a) | np.isnan(b)
    match predicate:
        case "true" | "false":
            return np.full(unordered.shape, predicate == "true")
        case "ord":
            return ~unordered
        case "uno":
            return unordered
        case _:
            holds = _COMPARE[predicate[1:]](a, b)
            return holds | unordered if predicate[0] == "u" else holds & ~unordered


def constant(value: Attribute, target: Attribute) -> Array:
    """The array of a constant, of rank 0 but for dense literals."""
    if isa(target, builtin.TensorType[Attribute]):
        if not isinstance(value, builtin.DenseIntOrFPElementsAttr):
            raise NotInterpreted(what=f"the constant {value}")
        shape = target.get_shape()
        flat = np.array(list(value.get_values()), numpy_type(target.element_type))
        return np.broadcast_to(flat, shape).copy() if value.is_splat() else flat.reshape(shape)
    dtype = numpy_type(target)
    if isinstance(value, complex_dialect.ComplexNumberAttr):
        return np.asarray(complex(value.real.data, value.imag.data), dtype)
    if isa(value, builtin.ArrayAttr[builtin.FloatAttr]):
        return np.asarray(complex(*(p.value.data for p in value.data)), dtype)
    if not isinstance(value, builtin.FloatAttr | builtin.IntegerAttr):
        raise NotInterpreted(what=f"the constant {value}")
    number = value.value.data
    if dtype == np.bool_:
        return np.asarray(bool(number))
    if dtype.kind == "i":  # written with or without a sign
        bits = dtype.itemsize * 8
        return np.asarray(int(number) % (1 << bits), f"uint{bits}").view(dtype)
    return np.asarray(number, dtype)
