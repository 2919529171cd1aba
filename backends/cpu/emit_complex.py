"""LLVM text of one function, and complex arithmetic in it: pairs of parts."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import complex
from xdsl.ir import Operation, SSAValue

from sparsecc.backends.cpu.llvm_types import float_constant, llvm_type
from sparsecc.diagnostics import UnsupportedError
from sparsecc.dialects.reading import complex_parts


class NoCpuOperation(UnsupportedError):
    text = "the operation {name} has no CPU code yet"


class TextEmitter:
    """Lines of one function, names of its values, the block that is being written."""

    def __init__(self, declarations: dict[str, str]) -> None:
        self.declarations = declarations
        self.lines: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.counter = 0
        self.block = "entry"

    # -- text ----------------------------------------------------------------------------------

    def fresh(self, hint: str = "v") -> str:
        self.counter += 1
        return f"%{hint}.{self.counter}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def compute(self, text: str, hint: str = "v") -> str:
        name = self.fresh(hint)
        self.line(f"{name} = {text}")
        return name

    def value(self, value: SSAValue) -> str:
        return self.names[value]

    def define(self, result: SSAValue, text: str) -> None:
        self.names[result] = self.compute(text, result.name_hint or "v")


class ComplexEmitter(TextEmitter):
    """Complex operations of :mod:`xdsl.dialects.complex`."""

    def emit_complex(self, op: Operation) -> None:
        if isinstance(op, complex.CreateOp):
            self.pair(op.complex, self.value(op.real), self.value(op.imaginary))
            return
        if isinstance(op, complex.ConstantOp):
            element = op.complex.type.element_type
            self.pair(op.complex, *(float_constant(p, element) for p in complex_parts(op.value)))
            return
        part = op.operands[0].type
        real = llvm_type(getattr(part, "element_type", part))
        parts = [self.part(v, n) for v in op.operands for n in (0, 1)]

        def do(opcode: str, a: str, b: str) -> str:
            return self.compute(f"{opcode} {real} {a}, {b}")

        match op:
            case complex.ReOp() | complex.ImOp():
                self.names[op.results[0]] = parts[isinstance(op, complex.ImOp)]
            case complex.NegOp():
                self.pair(op.results[0], *(self.compute(f"fneg {real} {p}") for p in parts))
            case complex.AddOp() | complex.SubOp():
                opcode = "fadd" if isinstance(op, complex.AddOp) else "fsub"
                a, b, c, d = parts
                self.pair(op.results[0], do(opcode, a, c), do(opcode, b, d))
            case complex.MulOp():
                a, b, c, d = parts
                re = do("fsub", do("fmul", a, c), do("fmul", b, d))
                self.pair(op.results[0], re, do("fadd", do("fmul", a, d), do("fmul", b, c)))
            case complex.DivOp():
                self.divide(op.results[0], real, parts)
            case _:
                raise NoCpuOperation(name=op.name)

    def part(self, value: SSAValue, number: int) -> str:
        return self.compute(f"extractvalue {llvm_type(value.type)} {self.value(value)}, {number}")

    def pair(self, result: SSAValue, real: str, imaginary: str) -> None:
        kind = llvm_type(result.type)
        element = kind[2:].split(",")[0]
        first = self.compute(f"insertvalue {kind} poison, {element} {real}, 0")
        self.define(result, f"insertvalue {kind} {first}, {element} {imaginary}, 1")

    def divide(self, result: SSAValue, real: str, parts: Sequence[str]) -> None:
        """Smith's method, as NumPy divides: scale by the larger part of the divisor; by 0, divide the parts."""
        a, b, c, d = parts
        suffix = "f64" if real == "double" else "f32"
        self.declarations[f"fabs.{suffix}"] = f"declare {real} @llvm.fabs.{suffix}({real})"

        def op(code: str, x: str, y: str) -> str:
            return self.compute(f"{code} {real} {x}, {y}")

        def choose(flag: str, x: str, y: str) -> str:
            return self.compute(f"select i1 {flag}, {real} {x}, {real} {y}")

        size_c, size_d = (
            self.compute(f"call {real} @llvm.fabs.{suffix}({real} {x})") for x in (c, d)
        )
        by_real = self.compute(f"fcmp oge {real} {size_c}, {size_d}")
        large, small = choose(by_real, c, d), choose(by_real, d, c)
        ratio = op("fdiv", small, large)
        scale = op("fadd", large, op("fmul", small, ratio))
        # by_real: (a + b r) / s, (b - a r) / s; otherwise (a r + b) / s, (b r - a) / s
        x, y = choose(by_real, a, b), choose(by_real, b, a)
        re = op("fdiv", op("fadd", x, op("fmul", y, ratio)), scale)
        left, right = (
            choose(by_real, b, op("fmul", b, ratio)),
            choose(by_real, op("fmul", a, ratio), a),
        )
        im = op("fdiv", op("fsub", left, right), scale)
        zero = float_constant(0.0, result.type)
        both = self.compute(f"fcmp oeq {real} {op('fadd', size_c, size_d)}, {zero}")
        self.pair(
            result, choose(both, op("fdiv", a, size_c), re), choose(both, op("fdiv", b, size_d), im)
        )
