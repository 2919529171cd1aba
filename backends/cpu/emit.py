"""Loops to LLVM IR text, in one structured walk.

Every function of the module becomes an internal LLVM function whose buffers are ``noalias`` pointers, and an
exported ``<name>_entry(ptr args)`` that reads its arguments from an array of 64-bit words. For the loop of a
sum the text reads::

    for.head1:
      %p = phi i64 [ %lo, %for.body0 ], [ %next2, %for.body1 ]
      %s = phi double [ 0x0000000000000000, %for.body0 ], [ %v9, %for.body1 ]
      %go = icmp slt i64 %p, %hi
      br i1 %go, label %for.body1, label %for.end1
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, complex, func, memref, scf, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sparsecc.backends.cpu.llvm_types import (
    BINARY,
    CASTS,
    FLOAT_COMPARISONS,
    INT_COMPARISONS,
    INTRINSICS,
    alignment,
    float_constant,
    llvm_type,
    memory_type,
)
from sparsecc.diagnostics import InternalError, UnsupportedError


class NoCpuOperation(UnsupportedError):
    text = "the operation {name} has no CPU code yet"


def complex_parts(value: Attribute) -> tuple[float, float]:
    """The real and imaginary part of a complex constant's attribute."""
    if isinstance(value, complex.ComplexNumberAttr):
        return value.real.data, value.imag.data
    assert isinstance(value, ArrayAttr)
    real, imaginary = (part.value.data for part in value.data if isinstance(part, FloatAttr | IntegerAttr))
    return float(real), float(imaginary)


def emit_llvm(module: ModuleOp) -> str:
    """The LLVM IR of a module of loops; functions on tensors (the host side) are left out."""
    declarations: dict[str, str] = {}
    parts: list[str] = []
    for fn in module.body.block.ops:
        if not isinstance(fn, func.FuncOp) or "loops.args" not in fn.attributes and fn.sym_name.data != "sort":
            continue
        emitter = _FunctionEmitter(fn, declarations)
        parts.append(emitter.function())
        if "loops.args" in fn.attributes:
            parts.append(emitter.entry())
    return "\n".join([*parts, *sorted(declarations.values()), ""])


class _FunctionEmitter:
    def __init__(self, fn: func.FuncOp, declarations: dict[str, str]) -> None:
        self.fn = fn
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

    def function(self) -> str:
        name = self.fn.sym_name.data
        params: list[str] = []
        for arg in self.fn.body.block.args:
            self.names[arg] = self.fresh(arg.name_hint or "arg")
            pointer = isinstance(arg.type, MemRefType)
            params.append(f"{llvm_type(arg.type)}{' noalias' if pointer else ''} {self.names[arg]}")
        self.lines = []
        self.walk(self.fn.body.block)
        source = self.fn.attributes.get("sparsecc.source")
        comment = f"; {source.data}\n" if isinstance(source, StringAttr) else ""
        head = f"{comment}define internal void @{name}({', '.join(params)}) {{\nentry:"
        return "\n".join([head, *self.lines, "}", ""])

    def entry(self) -> str:
        """The exported function: pointers and sizes come in an array of words."""
        name = self.fn.sym_name.data
        lines = [f"define void @{name}_entry(ptr %args) {{", "entry:"]
        passed: list[str] = []
        for n, arg in enumerate(self.fn.body.block.args):
            lines.append(f"  %p{n} = getelementptr i64, ptr %args, i64 {n}")
            lines.append(f"  %a{n} = load {llvm_type(arg.type)}, ptr %p{n}, align 8")
            passed.append(f"{llvm_type(arg.type)} %a{n}")
        return "\n".join([*lines, f"  call void @{name}({', '.join(passed)})", "  ret void", "}", ""])

    # -- the walk ------------------------------------------------------------------------------

    def walk(self, block: Block) -> Operation:
        """Emit a block's operations; gives its terminator, which the structure around it handles."""
        for op in block.ops:
            if op is block.last_op:
                if isinstance(op, func.ReturnOp):
                    self.line("ret void")
                return op
            self.emit(op)
        raise InternalError("a block without a terminator")

    def emit(self, op: Operation) -> None:
        if op.name in BINARY:
            text = llvm_type(op.results[0].type)
            opcode = BINARY[op.name]
            if not isinstance(op.results[0].type, VectorType):
                # A scalar sum is one chain of dependent operations, and an addition (2 or 3 cycles)
                # is faster there than a fused one (4); vectors have enough chains for fused ones.
                opcode = opcode.removesuffix(" contract")
            left, right = self.value(op.operands[0]), self.value(op.operands[1])
            self.define(op.results[0], f"{opcode} {text} {left}, {right}")
        elif op.name in CASTS:
            source = op.operands[0]
            self.define(
                op.results[0],
                f"{CASTS[op.name]} {llvm_type(source.type)} {self.value(source)} to {llvm_type(op.results[0].type)}",
            )
        elif op.name in INTRINSICS:
            self.intrinsic(op)
        elif op.name.startswith("complex."):
            self.emit_complex(op)
        else:
            self.emit_other(op)

    def emit_other(self, op: Operation) -> None:
        match op:
            case arith.ConstantOp():
                self.names[op.result] = self.constant(op.value, op.result.type)
            case arith.NegfOp():
                self.define(op.result, f"fneg {llvm_type(op.result.type)} {self.value(op.operand)}")
            case arith.CmpiOp():
                self.compare(op, "icmp", INT_COMPARISONS)
            case arith.CmpfOp():
                self.compare(op, "fcmp", FLOAT_COMPARISONS)
            case arith.SelectOp():
                kind = llvm_type(op.result.type)
                a, b = self.value(op.lhs), self.value(op.rhs)
                self.define(op.result, f"select i1 {self.value(op.cond)}, {kind} {a}, {kind} {b}")
            case arith.IndexCastOp():
                self.index_cast(op)
            case memref.LoadOp():
                self.load(op.res, op.memref, op.indices[0])
            case memref.StoreOp():
                self.store(op.value, op.memref, op.indices[0])
            case memref.AllocaOp():
                self.define(op.memref, "alloca i64, align 8")
            case vector.LoadOp():
                self.load(op.result, op.base, op.indices[0])
            case vector.StoreOp():
                self.store(op.vector, op.base, op.indices[0])
            case vector.BroadcastOp():
                self.broadcast(op)
            case scf.ForOp():
                self.loop_for(op)
            case scf.WhileOp():
                self.loop_while(op)
            case scf.IfOp():
                self.branch(op)
            case func.CallOp():
                args = ", ".join(f"{llvm_type(v.type)} {self.value(v)}" for v in op.arguments)
                self.line(f"call void @{op.callee.root_reference.data}({args})")
            case _:
                raise NoCpuOperation(name=op.name)

    def constant(self, value: Attribute, type_: Attribute) -> str:
        if isinstance(value, FloatAttr):
            return float_constant(value.value.data, type_)
        if isinstance(value, IntegerAttr):
            if isinstance(type_, IntegerType) and type_.width.data == 1:
                return "true" if value.value.data else "false"
            return str(value.value.data)
        if isinstance(value, DenseIntOrFPElementsAttr):
            raise NoCpuOperation(name="arith.constant of a tensor")
        raise NoCpuOperation(name="arith.constant")

    def compare(self, op: arith.CmpiOp | arith.CmpfOp, opcode: str, predicates: Sequence[str]) -> None:
        predicate = predicates[op.predicate.value.data]
        kind = llvm_type(op.lhs.type)
        self.define(op.result, f"{opcode} {predicate} {kind} {self.value(op.lhs)}, {self.value(op.rhs)}")

    def index_cast(self, op: arith.IndexCastOp) -> None:
        source, result = op.input, op.result
        a, b = llvm_type(source.type), llvm_type(result.type)
        if a == b:
            self.names[result] = self.value(source)
            return
        opcode = "trunc" if int(a[1:]) > int(b[1:]) else "sext"
        self.define(result, f"{opcode} {a} {self.value(source)} to {b}")

    def intrinsic(self, op: Operation) -> None:
        kind = llvm_type(op.results[0].type)
        suffix = f"v{kind[1:-1].replace(' x ', '')}" if kind.startswith("<") else kind
        suffix = suffix.replace("double", "f64").replace("float", "f32")
        name = f"{INTRINSICS[op.name]}.{suffix}"
        args = ", ".join(f"{kind} {self.value(v)}" for v in op.operands)
        self.declarations[name] = f"declare {kind} @{name}({', '.join([kind] * len(op.operands))})"
        self.define(op.results[0], f"call {kind} @{name}({args})")

    # -- memory --------------------------------------------------------------------------------

    def address(self, base: SSAValue, position: SSAValue) -> str:
        assert isinstance(base.type, MemRefType)
        element = memory_type(base.type.element_type)
        return self.compute(f"getelementptr inbounds {element}, ptr {self.value(base)}, i64 {self.value(position)}", "at")

    def load(self, result: SSAValue, base: SSAValue, position: SSAValue) -> None:
        address = self.address(base, position)
        kind, stored = llvm_type(result.type), memory_type(result.type)
        align = alignment(result.type)
        if kind == stored:
            self.define(result, f"load {kind}, ptr {address}, align {align}")
            return
        byte = self.compute(f"load {stored}, ptr {address}, align {align}")
        self.define(result, f"trunc {stored} {byte} to {kind}")

    def store(self, value: SSAValue, base: SSAValue, position: SSAValue) -> None:
        address = self.address(base, position)
        kind, stored = llvm_type(value.type), memory_type(value.type)
        text = self.value(value)
        if kind != stored:
            text = self.compute(f"zext {kind} {text} to {stored}")
        self.line(f"store {stored} {text}, ptr {address}, align {alignment(value.type)}")

    def broadcast(self, op: vector.BroadcastOp) -> None:
        result = op.vector
        assert isinstance(result.type, VectorType)
        kind, element = llvm_type(result.type), llvm_type(op.source.type)
        width = result.type.get_shape()[0]
        first = self.compute(f"insertelement {kind} poison, {element} {self.value(op.source)}, i64 0")
        self.define(result, f"shufflevector {kind} {first}, {kind} poison, <{width} x i32> zeroinitializer")

    # -- structure -----------------------------------------------------------------------------

    def phis(self, args: Sequence[SSAValue], starts: Sequence[str], source: str) -> list[int]:
        """Place holders for the phi of each argument; the second edge is filled in by ``close``."""
        places: list[int] = []
        for arg, start in zip(args, starts, strict=True):
            self.names[arg] = self.fresh(arg.name_hint or "v")
            places.append(len(self.lines))
            self.line(f"{self.names[arg]} = phi {llvm_type(arg.type)} [ {start}, %{source} ]")
        return places

    def close(self, places: Sequence[int], values: Sequence[str]) -> None:
        for place, value in zip(places, values, strict=True):
            self.lines[place] += f", [ {value}, %{self.block} ]"

    def loop_for(self, op: scf.ForOp) -> None:
        self.counter += 1
        head, body, end = (f"for.{part}{self.counter}" for part in ("head", "body", "end"))
        block, before = op.body.block, self.block
        starts = [self.value(op.lb), *(self.value(v) for v in op.iter_args)]
        hi, step = self.value(op.ub), self.value(op.step)
        self.line(f"br label %{head}")
        self.label(head)
        places = self.phis(block.args, starts, before)
        index = self.value(block.args[0])
        go_on = self.compute(f"icmp slt i64 {index}, {hi}", "go")
        self.line(f"br i1 {go_on}, label %{body}, label %{end}")
        self.label(body)
        last = self.walk(block)
        following = self.compute(f"add nsw i64 {index}, {step}", "next")
        self.close(places, [following, *(self.value(v) for v in last.operands)])
        self.line(f"br label %{head}")
        self.label(end)
        for result, arg in zip(op.results, block.args[1:], strict=True):
            self.names[result] = self.names[arg]

    def loop_while(self, op: scf.WhileOp) -> None:
        self.counter += 1
        head, body, end = (f"while.{part}{self.counter}" for part in ("head", "body", "end"))
        before, after = op.before_region.block, op.after_region.block
        source = self.block
        starts = [self.value(v) for v in op.arguments]
        self.line(f"br label %{head}")
        self.label(head)
        places = self.phis(before.args, starts, source)
        condition = self.walk(before)
        assert isinstance(condition, scf.ConditionOp)
        self.line(f"br i1 {self.value(condition.condition)}, label %{body}, label %{end}")
        for arg, result, passed in zip(after.args, op.results, condition.args, strict=True):
            self.names[arg] = self.names[result] = self.value(passed)
        self.label(body)
        last = self.walk(after)
        self.close(places, [self.value(v) for v in last.operands])
        self.line(f"br label %{head}")
        self.label(end)

    def branch(self, op: scf.IfOp) -> None:
        self.counter += 1
        yes, no, end = (f"if.{part}{self.counter}" for part in ("then", "else", "end"))
        has_else = bool(op.false_region.blocks)
        self.line(f"br i1 {self.value(op.cond)}, label %{yes}, label %{no if has_else else end}")
        self.label(yes)
        yielded = [self.value(v) for v in self.walk(op.true_region.block).operands]
        yes_end = self.block
        self.line(f"br label %{end}")
        other: list[str] = []
        no_end = ""
        if has_else:
            self.label(no)
            other = [self.value(v) for v in self.walk(op.false_region.block).operands]
            no_end = self.block
            self.line(f"br label %{end}")
        self.label(end)
        for result, a, b in zip(op.results, yielded, other, strict=True):
            self.define(result, f"phi {llvm_type(result.type)} [ {a}, %{yes_end} ], [ {b}, %{no_end} ]")

    # -- complex numbers: pairs ----------------------------------------------------------------

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

        size_c, size_d = (self.compute(f"call {real} @llvm.fabs.{suffix}({real} {x})") for x in (c, d))
        by_real = self.compute(f"fcmp oge {real} {size_c}, {size_d}")
        large, small = choose(by_real, c, d), choose(by_real, d, c)
        ratio = op("fdiv", small, large)
        scale = op("fadd", large, op("fmul", small, ratio))
        # by_real: (a + b r) / s, (b - a r) / s; otherwise (a r + b) / s, (b r - a) / s
        x, y = choose(by_real, a, b), choose(by_real, b, a)
        re = op("fdiv", op("fadd", x, op("fmul", y, ratio)), scale)
        left, right = choose(by_real, b, op("fmul", b, ratio)), choose(by_real, op("fmul", a, ratio), a)
        im = op("fdiv", op("fsub", left, right), scale)
        zero = float_constant(0.0, result.type)
        both = self.compute(f"fcmp oeq {real} {op('fadd', size_c, size_d)}, {zero}")
        self.pair(result, choose(both, op("fdiv", a, size_c), re), choose(both, op("fdiv", b, size_d), im))


_ = (AnyFloat, IndexType)
