"""Floats of 16 bits: loaded and widened, computed in f32, rounded to the nearest (ties to even).

LLVM calls a library where the processor does not convert ``half``, and no library is linked: the two
functions stand in the text then. ``bfloat`` is the upper half of an f32, so it is converted in integers
(the processors' own instruction flushes the smallest numbers to 0).
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from sparsecc.backends.cpu.emit_complex import ComplexEmitter
from sparsecc.backends.cpu.llvm_types import llvm_type
from sparsecc.diagnostics import UnsupportedError
from sparsecc.dialects.reading import element_type

PLAIN = (
    "arith.constant",
    "arith.select",
    "arith.cmpf",
    "arith.negf",
    "arith.bitcast",
    "vector.broadcast",
)
"""What needs no arithmetic on the numbers; comparisons are exact in f32, which LLVM makes of them."""

LIBRARY = """\
define hidden float @__extendhfsf2(half %h) {
  %bits = bitcast half %h to i16
  %wide = zext i16 %bits to i32
  %low = and i32 %wide, 32767
  %moved = shl i32 %low, 13
  %small = bitcast i32 %moved to float
  %scaled = fmul float %small, 0x46F0000000000000
  %finite = bitcast float %scaled to i32
  %special = icmp uge i32 %low, 31744
  %infinite = or i32 %moved, 2139095040
  %size = select i1 %special, i32 %infinite, i32 %finite
  %high = and i32 %wide, 32768
  %sign = shl i32 %high, 16
  %all = or i32 %size, %sign
  %f = bitcast i32 %all to float
  ret float %f
}

define hidden half @__truncsfhf2(float %f) {
  %bits = bitcast float %f to i32
  %size = and i32 %bits, 2147483647
  %moved = lshr i32 %bits, 16
  %sign = and i32 %moved, 32768
  %odd0 = lshr i32 %size, 13
  %odd = and i32 %odd0, 1
  %based = add i32 %size, -939520001
  %rounded = add i32 %based, %odd
  %normal = lshr i32 %rounded, 13
  %float = bitcast i32 %size to float
  %shifted = fadd float %float, 5.000000e-01
  %tiny0 = bitcast float %shifted to i32
  %tiny = add i32 %tiny0, -1056964608
  %is_tiny = icmp ult i32 %size, 947912704
  %finite = select i1 %is_tiny, i32 %tiny, i32 %normal
  %payload0 = lshr i32 %size, 13
  %payload1 = and i32 %payload0, 1023
  %payload = or i32 %payload1, 32256
  %is_nan = icmp ugt i32 %size, 2139095040
  %special = select i1 %is_nan, i32 %payload, i32 31744
  %is_large = icmp uge i32 %size, 1199570944
  %found = select i1 %is_large, i32 %special, i32 %finite
  %all = or i32 %found, %sign
  %short = trunc i32 %all to i16
  %h = bitcast i16 %short to half
  ret half %h
}
"""
"""What LLVM calls on processors that do not convert ``half``; nobody calls it on the others."""


class RoundsTwice(UnsupportedError):
    text = "a number of f64 is rounded to {type}, for which there is no CPU code"
    help_text = "round it to f32 first, and that to {type}"


def is_narrow(type_: Attribute) -> bool:
    """Whether it is f16 or bf16, or a vector of them."""
    return isinstance(_element(type_), Float16Type | BFloat16Type)


def _element(type_: Attribute) -> Attribute:
    return element_type(type_)


class NarrowEmitter(ComplexEmitter):
    """Operations with operands or a result of 16 bits."""

    def computes_narrow(self, op: Operation) -> bool:
        """Whether an operation is to be computed in f32."""
        if len(op.results) != 1 or op.regions or op.name in PLAIN:
            return False
        if not op.name.startswith(("arith.", "math.")):
            return False
        return any(is_narrow(v.type) for v in (*op.operands, *op.results))

    def emit_narrow(self, op: Operation) -> None:
        """Widen the operands, compute, round the result."""
        result = op.results[0]
        wide = [self.widened(v) if is_narrow(v.type) else self.value(v) for v in op.operands]
        if isinstance(op, arith.ExtFOp):
            text = wide[0]
            if isinstance(_element(result.type), Float64Type):
                kind = self.wide_type(result.type)
                text = self.compute(f"fpext {kind} {text} to {llvm_type(result.type)}")
            self.names[result] = text
            return
        if isinstance(op, arith.TruncFOp):
            if isinstance(_element(op.operands[0].type), Float64Type):
                raise RoundsTwice(type=_element(result.type))
            self.names[result] = self.narrowed(wide[0], result.type)
            return
        kind = self.wide_type(result.type) if is_narrow(result.type) else llvm_type(result.type)
        text = self.computed(op, wide, kind)
        self.names[result] = self.narrowed(text, result.type) if is_narrow(result.type) else text

    def computed(self, op: Operation, operands: list[str], kind: str) -> str:
        """The operation on operands of f32 (or integers), with a result of that LLVM type."""
        raise NotImplementedError

    def wide_type(self, type_: Attribute) -> str:
        """``float``, or as many of them."""
        return _like(type_, "float")

    def widened(self, value: SSAValue) -> str:
        """A value of 16 bits as f32."""
        type_, text = value.type, self.value(value)
        kind, wide = llvm_type(type_), self.wide_type(type_)
        if isinstance(_element(type_), Float16Type):
            return self.compute(f"fpext {kind} {text} to {wide}")
        short, integer = _like(type_, "i16"), _like(type_, "i32")
        bits = self.compute(f"bitcast {kind} {text} to {short}")
        moved = self.compute(f"zext {short} {bits} to {integer}")
        moved = self.compute(f"shl {integer} {moved}, {_splat(type_, 16)}")
        return self.compute(f"bitcast {integer} {moved} to {wide}")

    def narrowed(self, text: str, type_: Attribute) -> str:
        """An f32 rounded to the nearest number of 16 bits, ties to even."""
        kind, wide = llvm_type(type_), self.wide_type(type_)
        if isinstance(_element(type_), Float16Type):
            return self.compute(f"fptrunc {wide} {text} to {kind}")
        short, integer, flag = _like(type_, "i16"), _like(type_, "i32"), _like(type_, "i1")

        def do(opcode: str, a: str, number: int) -> str:
            return self.compute(f"{opcode} {integer} {a}, {_splat(type_, number)}")

        bits = self.compute(f"bitcast {wide} {text} to {integer}")
        odd = do("and", do("lshr", bits, 16), 1)
        rounded = self.compute(f"add {integer} {do('add', bits, 32767)}, {odd}")
        quiet = do("or", bits, 1 << 22)
        nan = self.compute(f"fcmp uno {wide} {text}, {text}")
        found = self.compute(f"select {flag} {nan}, {integer} {quiet}, {integer} {rounded}")
        upper = self.compute(f"trunc {integer} {do('lshr', found, 16)} to {short}")
        return self.compute(f"bitcast {short} {upper} to {kind}")


def _like(type_: Attribute, element: str) -> str:
    """An LLVM type with other elements."""
    if isinstance(type_, VectorType):
        return f"<{type_.get_shape()[0]} x {element}>"
    return element


def _splat(type_: Attribute, number: int) -> str:
    return f"splat (i32 {number})" if isinstance(type_, VectorType) else str(number)
