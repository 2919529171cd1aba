"""Structured operations as C statements, one function at a time.

A value used once, in the block that defines it, is *pending*: its text goes where it is used,
unless memory it reads is written before. Vectors are loops over ``lane``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith, func, memref, scf, vector
from xdsl.dialects.builtin import IndexType, MemRefType, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sparsecc.backends.cpu.c_expressions import Expressions, NoCOperation, combine
from sparsecc.backends.cpu.c_types import (
    ADD,
    PRIMARY,
    RESERVED,
    UNARY,
    Expr,
    assignment,
    c_type,
    default_name,
    lanes,
)
from sparsecc.diagnostics import InternalError

LONGEST = 90
"""Longer expressions get a name."""


class Statements:
    """Collects the ``lines`` of a function's body; ``known`` has to hold its arguments."""

    def __init__(self, fn: func.FuncOp, helpers: dict[str, str]) -> None:
        self.spelling = Expressions(helpers)
        self.known: dict[SSAValue, Expr] = {}
        self.pending: dict[SSAValue, Expr] = {}
        self.taken: set[str] = set(RESERVED)
        self.lines: list[str] = []
        self.depth = 1
        self.stored = {v for op in fn.walk() for v in _written(op)}
        self.cells: dict[SSAValue, str] = {}

    # -- text ----------------------------------------------------------------------------------

    def fresh(self, hint: str) -> str:
        hint = re.sub(r"\W", "_", hint)
        hint = f"v{hint}" if not hint or hint[0].isdigit() else hint
        name, number = hint, 1
        while name in self.taken:
            number += 1
            name = f"{hint}_{number}" if hint[-1].isdigit() else f"{hint}{number}"
        self.taken.add(name)
        return name

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def each_lane(self, value: SSAValue | Attribute, text: str) -> None:
        """A statement, for every lane if it is about vectors."""
        type_: Attribute = value if isinstance(value, Attribute) else value.type
        if count := lanes(type_):
            self.line(f"for (int lane = 0; lane < {count}; ++lane)")
            self.line(f"    {text}")
        else:
            self.line(text)

    def use(self, value: SSAValue) -> Expr:
        """The text of a value."""
        found = self.pending.pop(value, None)
        return self.known[value] if found is None else found

    def declare(
        self, type_: Attribute, hint: str, start: Expr | None, changes: bool = False
    ) -> Expr:
        """A local variable (an array for a vector), and its text."""
        name, kind = self.fresh(hint), c_type(type_)
        variables = frozenset([name]) if changes else frozenset[str]()
        if count := lanes(type_):
            self.line(f"{kind} {name}[{count}];")
            if start is not None:
                self.each_lane(type_, f"{name}[lane] = {start.text};")
            return Expr(f"{name}[lane]", PRIMARY, kind, variables)
        self.line(f"{kind} {name};" if start is None else f"{kind} {name} = {start.text};")
        return Expr(name, PRIMARY, kind, variables)

    def settle(self, value: SSAValue, expr: Expr) -> None:
        """Give a value a name."""
        hint = value.name_hint or ("flag" if expr.kind == "bool" else "v")
        self.known[value] = self.declare(value.type, hint, expr)

    def flush(self, memories: set[str]) -> None:
        """Name what is pending and reads one of these memories."""
        for value, expr in list(self.pending.items()):
            if expr.memories & memories:
                del self.pending[value]
                self.settle(value, expr)

    # -- the walk ------------------------------------------------------------------------------

    def walk(self, block: Block) -> Operation:
        """Emit a block's operations; gives its terminator."""
        for op in block.ops:
            if op is block.last_op:
                return op
            self.emit(op)
        raise InternalError("a block without a terminator")

    def emit(self, op: Operation) -> None:
        match op:
            case memref.AllocaOp():
                self.cell(op)
            case memref.StoreOp():
                self.store(op.value, op.memref, op.indices[0])
            case vector.StoreOp():
                self.store(op.vector, op.base, op.indices[0])
            case scf.ForOp():
                self.loop_for(op)
            case scf.WhileOp():
                self.loop_while(op)
            case scf.IfOp():
                self.branch(op)
            case func.CallOp():
                args = ", ".join(self.use(v).text for v in op.arguments)
                self.flush({self.memory(v) for v in op.arguments if isinstance(v.type, MemRefType)})
                self.line(f"{op.callee.root_reference.data}({args});")
            case _:
                self.value(op)

    def value(self, op: Operation) -> None:
        """An operation that only computes."""
        if (result := op.results[0]).first_use is not None:
            self.keep(result, self.expression(op), isinstance(op, arith.ConstantOp))

    def keep(self, result: SSAValue, expr: Expr, literal: bool = False) -> None:
        """A value is pending if it is used once, and here; it gets a name otherwise."""
        uses = list(result.uses)
        assert isinstance(result.owner, Operation)
        near = all(u.operation.parent is result.owner.parent for u in uses)
        named = result.name_hint is not None and isinstance(result.type, IndexType)
        next_one = expr.parts is not None and expr.rank == ADD and expr.parts[2] == "1"
        cheap = next_one and not expr.memories and not named
        if literal or expr.simple or cheap or self.lasting(result, expr):
            self.known[result] = expr
        elif len(uses) == 1 and near and not named and len(expr.text) <= LONGEST:
            self.pending[result] = expr
        else:
            self.settle(result, expr)

    def lasting(self, result: SSAValue, expr: Expr) -> bool:
        """Whether it is what a cell holds, and stays so for all its uses."""
        op = result.owner
        if not isinstance(op, memref.LoadOp) or op.memref not in self.cells:
            return False
        users = {u.operation for u in result.uses}
        while (op := op.next_op) is not None and users:
            inside = set(op.walk()) & users
            users -= inside
            written = any(expr.text in self.writes(inner) for inner in op.walk())
            if written and (users or op.regions):
                return False
        return not users

    def expression(self, op: Operation) -> Expr:
        match op:
            case memref.LoadOp():
                return self.load(op.memref, op.indices[0], op.res.type)
            case vector.LoadOp():
                return self.load(op.base, op.indices[0], op.result.type)
            case vector.BroadcastOp():
                source = self.use(op.source)
                if not source.simple:
                    source = self.declare(op.source.type, op.source.name_hint or "factor", source)
                return source
            case _:
                if op.regions or len(op.results) != 1:
                    raise NoCOperation(name=op.name)
                return self.spelling.spell(op, self.use)

    # -- memory --------------------------------------------------------------------------------

    def writes(self, op: Operation) -> set[str]:
        """The names of what an operation writes itself."""
        return {self.memory(v) for v in _written(op) if v in self.known or v in self.cells}

    def memory(self, base: SSAValue) -> str:
        return self.cells.get(base) or self.known[base].text

    def place(self, base: SSAValue, position: SSAValue, vector_: bool) -> Expr:
        """``base[position]``, or a cell's name."""
        if base in self.cells:
            return Expr(self.cells[base], PRIMARY, "int64_t")
        at = self.use(position)
        where = at.text
        if vector_:
            where = "lane" if at.text == "0" else f"{at.at(ADD)} + lane"
        return combine(f"{self.known[base].text}[{where}]", PRIMARY, self.known[base].kind, [at])

    def load(self, base: SSAValue, position: SSAValue, type_: Attribute) -> Expr:
        found = self.place(base, position, isinstance(type_, VectorType))
        kind = "bool" if c_type(type_) == "bool" else found.kind
        # Memory that nobody writes reads the same at any time.
        memories = {self.memory(base)} if base in self.stored else set[str]()
        return replace(found, kind=kind, memories=found.memories | memories)

    def store(self, value: SSAValue, base: SSAValue, position: SSAValue) -> None:
        place = self.place(base, position, isinstance(value.type, VectorType))
        expr = self.use(value)
        self.flush({self.memory(base)})
        if (
            base in self.cells
            and self.lines
            and self.lines[-1].lstrip() == f"int64_t {place.text};"
        ):
            self.lines[-1] = self.lines[-1][:-1] + f" = {expr.text};"
            return
        if expr.unnarrowed:
            expr = replace(expr, text=expr.unnarrowed)
        self.each_lane(value, assignment(place.text, expr))

    def cell(self, op: memref.AllocaOp) -> None:
        """A local variable."""
        self.cells[op.memref] = self.fresh(op.memref.name_hint or "n")
        self.line(f"int64_t {self.cells[op.memref]};")

    # -- structure -----------------------------------------------------------------------------

    def carry(
        self, args: Sequence[SSAValue], results: Sequence[SSAValue], inits: Sequence[SSAValue]
    ) -> list[Expr]:
        """Variables of loop-carried values; a variable that nobody else reads is taken over."""
        found: list[Expr] = []
        for arg, result, init in zip(args, results, inits, strict=True):
            start = self.use(init)
            if self.reusable(init, start):
                found.append(start)
            else:
                hint = arg.name_hint or result.name_hint or default_name(arg.type)
                found.append(self.declare(arg.type, hint, start, changes=True))
            self.known[arg] = found[-1]
        return found

    def reusable(self, value: SSAValue, expr: Expr) -> bool:
        """Whether a value is a loop's variable, read only here."""
        owner = value.owner
        return (
            isinstance(owner, scf.ForOp | scf.WhileOp)
            and len(list(value.uses)) == 1
            and next(iter(value.uses)).operation.parent is owner.parent
            and expr.text.removesuffix("[lane]") in expr.variables
        )

    def assign(
        self, types: Sequence[Attribute], targets: Sequence[Expr], values: Sequence[Expr]
    ) -> None:
        """All assignments at once: nothing that is still read is overwritten, or it is copied."""
        left = [
            (y, t, v) for y, t, v in zip(types, targets, values, strict=True) if t.text != v.text
        ]
        while left:
            for item in left:
                rest = [v for _, t, v in left if t is not item[1]]
                if not any(item[1].variables & v.variables for v in rest):
                    break
            else:  # a circle: keep an old value, and read that
                item = left[0]
                old = self.declare(item[0], "old", item[1])
                name = re.compile(rf"\b{re.escape(item[1].text)}(?!\w)")
                gone = item[1].variables
                left = [item, *((y, t, reread(v, name, old.text, gone)) for y, t, v in left[1:])]
            left.remove(item)
            self.each_lane(item[0], assignment(item[1].text, item[2]))

    def settle_before(self, op: Operation) -> None:
        """Before a loop or a branch: what it writes must not be pending."""
        self.flush({name for inner in op.walk() for name in self.writes(inner)})

    def loop_for(self, op: scf.ForOp) -> None:
        block = op.body.block
        lo, hi, step = self.use(op.lb), self.use(op.ub), self.use(op.step)
        targets = self.carry(block.args[1:], op.results, op.iter_args)
        self.settle_before(op)
        if hi.memories or len(hi.text) > 40:
            hi = self.declare(op.ub.type, "end", hi)
        index = block.args[0]
        start = ""
        if self.reusable(op.lb, lo):
            self.known[index] = lo
        else:
            name = self.fresh(index.name_hint or "i")
            self.known[index] = Expr(name, PRIMARY, "int64_t", frozenset([name]))
            start = f"int64_t {name} = {lo.text}"
        i = self.known[index].text
        advance = f"++{i}" if step.text == "1" else f"{i} += {step.text}"
        self.line(f"for ({start}; {i} < {hi.at(ADD)}; {advance}) {{")
        self.depth += 1
        last = self.walk(block)
        self.assign([v.type for v in last.operands], targets, [self.use(v) for v in last.operands])
        self.depth -= 1
        self.line("}")
        self.known.update(zip(op.results, targets, strict=True))

    def loop_while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        targets = self.carry(before.args, op.results, op.arguments)
        self.settle_before(op)
        self.depth += 1
        outer, self.lines = self.lines, []
        condition = self.walk(before)
        head, self.lines = self.lines, outer
        assert isinstance(condition, scf.ConditionOp)
        self.depth -= 1
        for arg, result, passed in zip(after.args, op.results, condition.args, strict=True):
            expr = self.use(passed)
            if not expr.simple:
                # Computed on the way to the condition, and read behind the loop.
                kept = self.declare(result.type, default_name(result.type), None, changes=True)
                head.append("    " * (self.depth + 1) + assignment(kept.text, expr))
                expr = kept
            self.known[arg] = self.known[result] = expr
        test = self.use(condition.condition)
        if head:
            self.line("for (;;) {")
            self.lines += head
            self.line(f"    if (!{test.at(UNARY)})")
            self.line("        break;")
        else:
            self.line(f"while ({test.text}) {{")
        self.depth += 1
        last = self.walk(after)
        values = [self.use(v) for v in last.operands]
        self.assign([v.type for v in last.operands], targets, values)
        self.depth -= 1
        self.line("}")

    def branch(self, op: scf.IfOp) -> None:
        condition = self.use(op.cond)
        self.settle_before(op)
        outer = self.lines
        sides: list[list[str]] = []
        yielded: list[list[Expr]] = []
        self.depth += 1
        for region in (op.true_region, op.false_region):
            self.lines = []
            if region.blocks:
                yielded.append([self.use(v) for v in self.walk(region.block).operands])
            sides.append(self.lines)
        self.depth -= 1
        self.lines = outer
        if (
            len(op.results) == 1
            and not any(sides)
            and not isinstance(op.results[0].type, VectorType)
        ):
            (a,), (b,) = yielded
            self.keep(
                op.results[0], self.spelling.choose(condition, a, b, c_type(op.results[0].type))
            )
            return
        types = [r.type for r in op.results]
        targets = [
            self.declare(r.type, r.name_hint or default_name(r.type), None, changes=True)
            for r in op.results
        ]
        for number, values in enumerate(yielded):
            self.lines = sides[number]
            self.depth += 1
            self.assign(types, targets, values)
            self.depth -= 1
        self.lines = outer
        self.line(f"if ({condition.text}) {{")
        self.lines += sides[0]
        if sides[1]:
            self.line("} else {")
            self.lines += sides[1]
        self.line("}")
        self.known.update(zip(op.results, targets, strict=True))


def _written(op: Operation) -> Sequence[SSAValue]:
    """The memory that an operation writes."""
    match op:
        case memref.StoreOp():
            return [op.memref]
        case vector.StoreOp():
            return [op.base]
        case func.CallOp():
            return [v for v in op.arguments if isinstance(v.type, MemRefType)]
        case _:
            return []


def reread(expr: Expr, name: re.Pattern[str], copy: str, gone: frozenset[str]) -> Expr:
    """The expression with a copy in place of a variable."""
    text = name.sub(copy, expr.text)
    return replace(expr, text=text, parts=None, variables=expr.variables - gone)
