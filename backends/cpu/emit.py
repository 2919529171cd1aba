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

from xdsl.dialects import arith, func, memref, scf, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sparsecc.backends.cpu.emit_complex import NoCpuOperation
from sparsecc.backends.cpu.emit_narrow import LIBRARY, NarrowEmitter, is_narrow
from sparsecc.backends.cpu.llvm_types import (
    BINARY,
    CASTS,
    DIVISIONS,
    FLOAT_COMPARISONS,
    INT_COMPARISONS,
    INTRINSICS,
    VECTOR_BINARY,
    alignment,
    float_constant,
    llvm_type,
    memory_type,
)
from sparsecc.diagnostics import InternalError
from sparsecc.dialects.reading import element_type, integer_width


def emit_llvm(module: ModuleOp) -> str:
    """The LLVM IR of a module of loops; functions on tensors (the host side) are left out."""
    declarations: dict[str, str] = {}
    parts: list[str] = []
    for fn in module.body.block.ops:
        if (
            not isinstance(fn, func.FuncOp)
            or "loops.args" not in fn.attributes
            and fn.sym_name.data != "sort"
        ):
            continue
        emitter = _FunctionEmitter(fn, declarations)
        parts.append(emitter.function())
        if "loops.args" in fn.attributes:
            parts.append(emitter.entry())
    if any(" half " in part for part in parts):
        parts.append(LIBRARY)
    return "\n".join([*parts, *sorted(declarations.values()), ""])


class _FunctionEmitter(NarrowEmitter):
    def __init__(self, fn: func.FuncOp, declarations: dict[str, str]) -> None:
        super().__init__(declarations)
        self.fn = fn

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
        return "\n".join(
            [*lines, f"  call void @{name}({', '.join(passed)})", "  ret void", "}", ""]
        )

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
        if self.computes_narrow(op):
            self.emit_narrow(op)
        elif op.name in DIVISIONS:
            self.divide_integers(op)
        elif op.name in BINARY:
            kind = llvm_type(op.results[0].type)
            opcode = (VECTOR_BINARY if kind.startswith("<") else BINARY)[op.name]
            a, b = (self.value(v) for v in op.operands)
            self.define(op.results[0], f"{opcode} {kind} {a}, {b}")
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

    def divide_integers(self, op: Operation) -> None:
        """Processors trap where the divisor is 0, and at the least number by -1; here x / 0 is 0, as NumPy says."""
        result = op.results[0].type
        kind, a, b = llvm_type(result), *(self.value(v) for v in op.operands)
        flag = f"{kind.partition(' x ')[0]} x i1>" if kind.startswith("<") else "i1"

        def number(value: int) -> str:
            element = llvm_type(element_type(result))
            return f"splat ({element} {value})" if kind.startswith("<") else str(value)

        def choose(which: str, x: str, y: str) -> str:
            return self.compute(f"select {flag} {which}, {kind} {x}, {kind} {y}")

        zero = self.compute(f"icmp eq {kind} {b}, {number(0)}")
        safe = choose(zero, number(1), b)
        if op.name not in ("arith.divsi", "arith.remsi"):
            value = self.compute(f"{BINARY[op.name]} {kind} {a}, {safe}")
        else:
            minus = self.compute(f"icmp eq {kind} {b}, {number(-1)}")
            value = self.compute(f"{BINARY[op.name]} {kind} {a}, {choose(minus, number(1), safe)}")
            negated = (
                self.compute(f"sub {kind} {number(0)}, {a}")
                if op.name == "arith.divsi"
                else number(0)
            )
            value = choose(minus, negated, value)
        self.define(op.results[0], f"select {flag} {zero}, {kind} {number(0)}, {kind} {value}")

    def constant(self, value: Attribute, type_: Attribute) -> str:
        if isinstance(value, FloatAttr):
            return float_constant(value.value.data, type_)
        if isinstance(value, IntegerAttr):
            if integer_width(type_) == 1:
                return "true" if value.value.data else "false"
            return str(value.value.data)
        if isinstance(value, DenseIntOrFPElementsAttr):
            raise NoCpuOperation(name="arith.constant of a tensor")
        raise NoCpuOperation(name="arith.constant")

    def compare(
        self, op: arith.CmpiOp | arith.CmpfOp, opcode: str, predicates: Sequence[str]
    ) -> None:
        predicate = predicates[op.predicate.value.data]
        kind = llvm_type(op.lhs.type)
        self.define(
            op.result, f"{opcode} {predicate} {kind} {self.value(op.lhs)}, {self.value(op.rhs)}"
        )

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
        text = self.call_intrinsic(op.name, kind, [self.value(v) for v in op.operands])
        self.define(op.results[0], text)

    def computed(self, op: Operation, operands: list[str], kind: str) -> str:
        if op.name in INTRINSICS:
            return self.compute(self.call_intrinsic(op.name, kind, operands))
        if op.name in CASTS:
            source = op.operands[0].type
            given = self.wide_type(source) if is_narrow(source) else llvm_type(source)
            return self.compute(f"{CASTS[op.name]} {given} {operands[0]} to {kind}")
        if op.name in BINARY:
            return self.compute(f"{BINARY[op.name]} {kind} {', '.join(operands)}")
        raise NoCpuOperation(name=op.name)

    def call_intrinsic(self, name: str, kind: str, operands: Sequence[str]) -> str:
        suffix = f"v{kind[1:-1].replace(' x ', '')}" if kind.startswith("<") else kind
        suffix = suffix.replace("double", "f64").replace("float", "f32")
        name = f"{INTRINSICS[name]}.{suffix}"
        args = ", ".join(f"{kind} {text}" for text in operands)
        self.declarations[name] = f"declare {kind} @{name}({', '.join([kind] * len(operands))})"
        return f"call {kind} @{name}({args})"

    # -- memory --------------------------------------------------------------------------------

    def address(self, base: SSAValue, position: SSAValue) -> str:
        element = memory_type(element_type(base.type))
        return self.compute(
            f"getelementptr inbounds {element}, ptr {self.value(base)}, i64 {self.value(position)}",
            "at",
        )

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
        first = self.compute(
            f"insertelement {kind} poison, {element} {self.value(op.source)}, i64 0"
        )
        self.define(
            result, f"shufflevector {kind} {first}, {kind} poison, <{width} x i32> zeroinitializer"
        )

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
            self.define(
                result, f"phi {llvm_type(result.type)} [ {a}, %{yes_end} ], [ {b}, %{no_end} ]"
            )
