"""LLVM spelling of types, constants and operations: the one place that knows LLVM's syntax version (22)."""

from __future__ import annotations

import struct

from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute

from sparsecc.diagnostics import UnsupportedError
from sparsecc.dialects.reading import integer_width


class NoSuchElement(UnsupportedError):
    text = "the element type {type} has no CPU code yet"
    help_text = "use f32, f64, an integer, bool or a complex type"


def llvm_type(type_: Attribute) -> str:
    """The type of a value in a register."""
    match type_:
        case IndexType():
            return "i64"
        case IntegerType():
            return f"i{type_.width.data}"
        case Float64Type():
            return "double"
        case Float32Type():
            return "float"
        case Float16Type():
            return "half"
        case BFloat16Type():
            return "bfloat"
        case MemRefType():
            return "ptr"
        case ComplexType():
            part = llvm_type(type_.element_type)
            return f"{{ {part}, {part} }}"
        case VectorType():
            return f"<{type_.get_shape()[0]} x {llvm_type(type_.element_type)}>"
        case _:
            raise NoSuchElement(type=type_)


def memory_type(type_: Attribute) -> str:
    """The type in memory: a boolean takes a byte."""
    return "i8" if integer_width(type_) == 1 else llvm_type(type_)


def alignment(type_: Attribute) -> int:
    """Bytes of natural alignment of an element."""
    match type_:
        case IntegerType():
            return max(1, type_.width.data // 8)
        case Float32Type():
            return 4
        case Float16Type() | BFloat16Type():
            return 2
        case ComplexType():
            return alignment(type_.element_type)
        case VectorType():
            return alignment(type_.element_type)
        case _:
            return 8


def float_constant(value: float, type_: Attribute) -> str:
    """A float as LLVM reads it exactly: the bits of the double of the same value, in hexadecimal."""
    match type_:
        case Float32Type():
            value = struct.unpack("f", struct.pack("f", value))[0]
        case Float16Type():
            return f"0xH{_half(value):04X}"
        case BFloat16Type():
            return f"0xR{_bfloat(value):04X}"
        case _:
            pass
    return f"0x{struct.unpack('Q', struct.pack('d', value))[0]:016X}"


def _half(value: float) -> int:
    """The bits of the nearest f16; infinite beyond the largest."""
    try:
        return struct.unpack("H", struct.pack("e", value))[0]
    except OverflowError:
        return 0xFC00 if value < 0 else 0x7C00


def _bfloat(value: float) -> int:
    """The bits of the nearest bf16."""
    if value != value:
        return 0x7FC0
    try:
        bits: int = struct.unpack("I", struct.pack("f", value))[0]
    except OverflowError:
        return 0xFF80 if value < 0 else 0x7F80
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


BINARY: dict[str, str] = {
    "arith.addf": "fadd", "arith.subf": "fsub", "arith.mulf": "fmul", "arith.divf": "fdiv", "arith.remf": "frem",
    "arith.addi": "add", "arith.subi": "sub", "arith.muli": "mul",
    "arith.divui": "udiv", "arith.divsi": "sdiv", "arith.remui": "urem", "arith.remsi": "srem",
    "arith.andi": "and", "arith.ori": "or", "arith.xori": "xor",
    "arith.shli": "shl", "arith.shrui": "lshr", "arith.shrsi": "ashr",
}  # fmt: skip

VECTOR_BINARY = BINARY | {
    op: f"{code} contract"
    for op, code in BINARY.items()
    if op in ("arith.addf", "arith.subf", "arith.mulf")
}
"""On blocks of columns a product and a sum may become one fused instruction; nothing is reassociated. A scalar
sum is a chain of additions, and there the fused instruction's longer latency would cost 1.3x."""

DIVISIONS = {"arith.divsi", "arith.divui", "arith.remsi", "arith.remui"}

INTRINSICS: dict[str, str] = {
    "arith.minsi": "llvm.smin", "arith.maxsi": "llvm.smax", "arith.minui": "llvm.umin", "arith.maxui": "llvm.umax",
    "arith.minimumf": "llvm.minimum", "arith.maximumf": "llvm.maximum",
    "arith.minnumf": "llvm.minnum", "arith.maxnumf": "llvm.maxnum",
    "math.sqrt": "llvm.sqrt", "math.exp": "llvm.exp", "math.exp2": "llvm.exp2", "math.log": "llvm.log",
    "math.log2": "llvm.log2", "math.log10": "llvm.log10", "math.sin": "llvm.sin", "math.cos": "llvm.cos",
    "math.ctpop": "llvm.ctpop",
    "math.absf": "llvm.fabs", "math.ceil": "llvm.ceil", "math.floor": "llvm.floor", "math.powf": "llvm.pow",
    "math.fma": "llvm.fma", "math.copysign": "llvm.copysign", "math.trunc": "llvm.trunc",
    "math.roundeven": "llvm.roundeven", "math.round": "llvm.round", "math.tanh": "llvm.tanh",
}  # fmt: skip

CASTS: dict[str, str] = {
    "arith.extf": "fpext", "arith.truncf": "fptrunc", "arith.sitofp": "sitofp", "arith.uitofp": "uitofp",
    "arith.fptosi": "fptosi", "arith.fptoui": "fptoui", "arith.extsi": "sext", "arith.extui": "zext",
    "arith.trunci": "trunc", "arith.bitcast": "bitcast",
}  # fmt: skip

INT_COMPARISONS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_COMPARISONS = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
