"""What types and attributes hold. xDSL's classes are generic, so ``isinstance`` alone leaves their parts unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    Signedness,
    StringAttr,
    TensorType,
    VectorType,
)
from xdsl.dialects.complex import ComplexNumberAttr
from xdsl.ir import Attribute


def element_type(type_: Attribute) -> Attribute:
    """The type of the elements of a tensor, a vector or an array; other types as they are."""
    if isinstance(type_, TensorType | VectorType | MemRefType):
        return cast("TensorType[Attribute]", type_).element_type
    return type_


def dtype_name(element: Attribute) -> str | None:
    """``f64`` … of an element type; None if tensors have no such elements."""
    match element:
        case Float64Type():
            return "f64"
        case Float32Type():
            return "f32"
        case Float16Type():
            return "f16"
        case BFloat16Type():
            return "bf16"
        case ComplexType():
            return "c128" if isinstance(element.element_type, Float64Type) else "c64"
        case IntegerType() if element.width.data == 1:
            return "bool"
        case IntegerType():
            unsigned = element.signedness.data == Signedness.UNSIGNED
            return f"{'u' if unsigned else 'i'}{element.width.data}"
        case _:
            return None


def block_shape(type_: Attribute) -> tuple[int, ...]:
    """The shape of a vector; no axes for a scalar."""
    return cast("VectorType[Attribute]", type_).get_shape() if isinstance(type_, VectorType) else ()


def block_type(shape: Sequence[int], element: Attribute) -> Attribute:
    """The vector type of a shape; the element's own where there are no axes."""
    return VectorType(element, shape) if shape else element


def integer_width(type_: Attribute) -> int:
    """The bits of an integer type; 0 for other types."""
    return cast("IntegerType", type_).width.data if isinstance(type_, IntegerType) else 0


def elements(attribute: Attribute | None) -> tuple[Attribute, ...]:
    """The elements of an array attribute; none of other attributes."""
    if isinstance(attribute, ArrayAttr):
        return cast("ArrayAttr[Attribute]", attribute).data
    return ()


def is_unsigned(type_: Attribute) -> bool:
    """Whether a type is an unsigned integer's (``ui8``)."""
    if not isinstance(type_, IntegerType):
        return False
    return cast("IntegerType", type_).signedness.data == Signedness.UNSIGNED


def strings(attribute: Attribute | None) -> list[str]:
    """The strings in an array attribute."""
    return [e.data for e in elements(attribute) if isinstance(e, StringAttr)]


def complex_parts(value: Attribute) -> tuple[float, float]:
    """The real and imaginary part of a complex constant's attribute."""
    if isinstance(value, ComplexNumberAttr):
        return value.real.data, value.imag.data
    real, imaginary = (
        part.value.data for part in elements(value) if isinstance(part, FloatAttr | IntegerAttr)
    )
    return float(real), float(imaginary)
