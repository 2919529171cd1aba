"""Tile kernels of the blocks form as readable ``tl`` text.

SpMV over CSR, a program with eight rows, begins so::

    program = tl.program_id(0)
    i = program * 8 + tl.arange(0, 8)[:, None]
    inside = i < A_dim0
    lo = tl.load(A_positions1 + i, mask=inside, other=0)

What is used once is written where it is used; values with a name keep it.
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    MemRefType,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sparsecc.backends.triton import tl_text
from sparsecc.backends.triton.block_text import hint, iota, to_tensor, users
from sparsecc.backends.triton.tl_text import NoTritonSpelling, Text, call
from sparsecc.diagnostics import InternalError
from sparsecc.dialects.reading import block_shape, element_type, integer_width, is_unsigned, strings
from sparsecc.dialects.tile import ScheduleAttr, blocks, sharing
from sparsecc.kernel import TileSource

LINE = 76
"""Expressions longer than this get a name."""
TAKEN = {"tl", "triton", "grid", "libdevice", "range", "float"}


def emit(fn: func.FuncOp, target: str) -> TileSource:
    """The text of a blocks kernel, and how to launch it."""
    return _Writer(fn, target).source()


class _Writer:
    def __init__(self, fn: func.FuncOp, target: str) -> None:
        self.fn, self.target = fn, target
        self.texts: dict[SSAValue, Text] = {}
        self.names: set[str] = set(TAKEN)
        self.lines: list[str] = []
        self.depth = 1
        self.inline = 0
        """Above 0 inside conditions of loops, where everything is one expression."""
        self.roles = strings(fn.attributes["tile.args"])
        self.arguments: list[tuple[str, str]] = []

    # -- the module ----------------------------------------------------------------------------

    def source(self) -> TileSource:
        fn = self.fn
        name = fn.sym_name.data
        self.names.add(name)
        for arg in fn.body.block.args:
            spelled = self.fresh(arg.name_hint or "arg")
            pointer = isinstance(arg.type, MemRefType)
            kind = tl_text.signature(element_type(arg.type))
            self.arguments.append((spelled, f"*{kind}" if pointer else kind))
            self.texts[arg] = Text(spelled)
        self.block(fn.body.block)
        body = "\n".join(self.lines) or "    pass"
        schedule = fn.attributes["tile.schedule"]
        assert isinstance(schedule, ScheduleAttr)
        numbers = schedule.numbers()
        names = dict(zip(self.roles, (n for n, _ in self.arguments), strict=True))
        parameters = ", ".join(n for n, _ in self.arguments)
        integers = ", ".join(n for n, kind in self.arguments if not kind.startswith("*"))
        libdevice = "from triton.language.extra import libdevice\n" if "libdevice." in body else ""
        text = (
            f'"""{self.head(schedule)}"""\n\nimport triton\nimport triton.language as tl\n{libdevice}'
            f"\n\n@triton.jit\ndef {name}({parameters}):\n{body}\n"
            f'\n\ndef grid({integers}):\n    """Programs along each axis."""\n'
            f"    return ({self.extents('tile.grid')},)\n"
        )
        if "tile.work" in fn.attributes:
            text += (
                f'\n\ndef work({integers}):\n    """Bytes of memory that programs share."""\n'
                f"    partial, counters = {self.extents('tile.work')}\n"
                '    return {"partial": partial, "counters": counters}\n'
            )
        return TileSource(
            entry=name,
            text=text,
            gluon=False,
            arguments=tuple(self.arguments),
            roles=tuple(self.roles),
            aligned=tuple(names[r] for r in strings(fn.attributes.get("tile.multiples"))),
            warps=numbers.get("warps", 4),
            stages=numbers.get("stages", 1),
        )

    def head(self, schedule: ScheduleAttr) -> str:
        given = self.fn.attributes.get("sparsecc.source")
        title = given.data if isinstance(given, StringAttr) else self.fn.sym_name.data
        numbers = ", ".join(f"{k} {v}" for k, v in schedule.numbers().items())
        operands = "".join(f"{line}\n" for line in strings(self.fn.attributes.get("tile.operands")))
        text = f"{title}\n\n{operands}Schedule {schedule.family.data}: {numbers}. Target {self.target}.\n"
        return text.replace("\\", "\\\\").replace('"""', "'''")

    def extents(self, attribute: str) -> str:
        """Products of extents as Python writes them."""
        grid = self.fn.attributes[attribute]
        assert isinstance(grid, blocks.GridAttr)
        names = dict(zip(self.roles, (n for n, _ in self.arguments), strict=True))
        axes: list[str] = []
        for axis in grid.factors():
            factors: list[str] = []
            for factor in axis:
                if not factor.extent:
                    factors.append(str(factor.size))
                elif factor.size == 1:
                    factors.append(names[factor.extent])
                else:
                    factors.append(f"-(-{names[factor.extent]} // {factor.size})")
            axes.append(" * ".join(factors) or "1")
        return ", ".join(axes) or "1"

    # -- names and lines -----------------------------------------------------------------------

    def fresh(self, hint: str) -> str:
        base = "".join(c if c.isalnum() else "_" for c in hint)
        if not base or base[0].isdigit() or keyword.iskeyword(base):
            base = f"v{base}"
        name, number = base, 1
        while name in self.names:
            number += 1
            name = f"{base}{number}"
        self.names.add(name)
        return name

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def text(self, value: SSAValue) -> Text:
        found = self.texts[value]
        return tl_text.as_signless(found, element_type(value.type)) if found.unsigned else found

    def bind(self, value: SSAValue, text: Text, hint: str) -> None:
        """Give an expression a name."""
        name = self.fresh(value.name_hint or hint)
        self.line(f"{name} = {text.text}")
        self.texts[value] = Text(name, shape=text.shape, unsigned=text.unsigned)

    def full(self, value: SSAValue) -> Text:
        """A value in its whole shape."""
        return self.widened(self.text(value), value.type)

    def widened(self, text: Text, type_: Attribute) -> Text:
        shape, element = block_shape(type_), element_type(type_)
        if text.literal:
            listed = ", ".join(map(str, shape))
            return Text(f"tl.full([{listed}], {text.text}, {tl_text.dtype(element)})", shape=shape)
        if text.shape == shape:
            return to_tensor(text, element)
        listed = ", ".join(map(str, shape))
        return Text(f"tl.broadcast_to({text.text}, [{listed}])", shape=shape)

    # -- operations ----------------------------------------------------------------------------

    def block(self, block: Block) -> Operation | None:
        """Write a block's operations; gives its terminator."""
        last: Operation | None = None
        for op in block.ops:
            last = op
            if isinstance(op, scf.YieldOp | scf.ConditionOp | func.ReturnOp):
                break
            self.operation(op)
        return last

    def operation(self, op: Operation) -> None:
        match op:
            case blocks.SplatOp() | blocks.BroadcastOp():
                self.texts[op.result] = self.texts[op.value]
            case arith.ConstantOp():
                value = op.value
                assert isinstance(value, FloatAttr | IntegerAttr)
                self.texts[op.result] = tl_text.literal(value.value.data, op.result.type)
            case blocks.LoadOp():
                self.load(op)
            case blocks.StoreOp() | blocks.AtomicAddOp():
                self.store(op)
            case sharing.ArriveOp():
                self.arrive(op)
            case scf.ForOp():
                self.loop(op)
            case scf.WhileOp():
                self.while_loop(op)
            case scf.IfOp():
                self.branch(op)
            case _:
                self.settle(op, self.expression(op))

    def settle(self, op: Operation, text: Text) -> None:
        """Keep an expression to be written where it is used, or give it a name."""
        result = op.results[0]
        readers = users(result)
        once = len(readers) == 1 and readers[0].parent is op.parent
        short = len(text.text) <= LINE
        if self.inline or (
            once and short and (result.name_hint is None or result.name_hint == "program")
        ):
            self.texts[result] = text
        elif readers:
            self.bind(result, text, hint(op))

    def expression(self, op: Operation) -> Text:
        args = [self.text(v) for v in op.operands]
        match op:
            case blocks.ProgramIdOp():
                return Text(f"tl.program_id({op.axis.value.data})")
            case blocks.IotaOp():
                return iota(op.axis.value.data, block_shape(op.result.type))
            case blocks.ExpandDimsOp():
                whole = self.full(op.value)
                axis = op.axis.value.data
                return call(
                    "tl.expand_dims", whole, shape=block_shape(op.result.type), extra=str(axis)
                )
            case blocks.CompareOp():
                return tl_text.comparison(
                    op.predicate.data, args[0], args[1], element_type(op.a.type)
                )
            case blocks.SelectOp():
                if args[1].literal and args[2].literal:
                    args[1] = self.full(op.a)
                return call("tl.where", *args)
            case blocks.CastOp():
                # The unsigned reading of a value is wanted as it is.
                value = self.texts[op.value]
                source, target = element_type(op.value.type), element_type(op.result.type)
                return tl_text.cast(op.kind.data, value, source, target)
            case blocks.ReduceOp():
                axis = None if op.axis is None else op.axis.value.data
                shape = block_shape(op.result.type)
                element = element_type(op.value.type)
                return tl_text.reduction(op.kind.data, self.full(op.value), axis, element, shape)
            case blocks.DotOp():
                return self.dot(op)
            case blocks.TransOp():
                return call("tl.trans", self.full(op.value), shape=block_shape(op.result.type))
            case _ if op.name in tl_text.OPERATIONS:
                if all(a.literal for a in args):
                    args[0] = self.full(op.operands[0])
                element = element_type(op.results[0].type)
                if op.name in ("arith.addi", "arith.muli") and not args[0].counter:
                    # Triton widens the narrower of two integers.
                    args[1] = args[1].narrow or args[1]
                return tl_text.OPERATIONS[op.name](args, element)
            case _:
                raise NoTritonSpelling(name=op.name, type=op.results[0].type if op.results else "")

    def dot(self, op: blocks.DotOp) -> Text:
        a, b, acc = (self.full(v) for v in op.operands)
        exact = (
            ', input_precision="ieee"'
            if tl_text.dtype(element_type(op.a.type)) == "tl.float32"
            else ""
        )
        out = f"out_dtype={tl_text.dtype(element_type(op.acc.type))}{exact}"
        return call("tl.dot", a, b, acc, shape=block_shape(op.result.type), extra=out)

    # -- memory --------------------------------------------------------------------------------

    def place(self, offsets: SSAValue, mask: SSAValue | None, whole: bool) -> tuple[str, str, Text]:
        """The offset and the mask of an access; ``whole``: in its full shape whatever varies."""
        at = self.text(offsets)
        guard = None if mask is None else self.text(mask)
        if whole or (guard is not None and tl_text.joint([at.shape, guard.shape]) != at.shape):
            at = self.full(offsets)
        return at.within(tl_text.PLUS + 1), "" if guard is None else f", mask={guard.text}", at

    def load(self, op: blocks.LoadOp) -> None:
        offset, mask, at = self.place(op.offsets, op.mask, whole=False)
        array = self.texts[op.array].text
        element = element_type(op.array.type)
        zero = "0" if integer_width(element) else "0.0"
        other = "" if op.mask is None else f", other={zero}"
        if sharing.SHARED in op.attributes:
            other += ', cache_modifier=".cg"'
        plus = "" if offset == "0" else f" + {offset}"
        unsigned = is_unsigned(element)
        text = Text(f"tl.load({array}{plus}{mask}{other})", shape=at.shape, unsigned=unsigned)
        if self.inline:
            self.texts[op.result] = text
        else:
            self.bind(op.result, text, array.partition("_")[0].lower())

    def arrive(self, op: sharing.ArriveOp) -> None:
        """The barrier is for the stores of all threads, which one thread releases."""
        place = f"{self.texts[op.counters].text} + {self.text(op.offset).within(tl_text.PLUS + 1)}"
        name, count = self.fresh(op.result.name_hint or "last"), self.text(op.count)
        before = str(int(count.text) - 1) if count.literal else f"{count.text} - 1"
        self.line("tl.debug_barrier()")
        self.line(f'{name} = tl.atomic_add({place}, 1, sem="acq_rel") == {before}')
        self.line(f"tl.store({place}, 0, mask={name})")
        self.texts[op.result] = Text(name)

    def store(self, op: blocks.StoreOp | blocks.AtomicAddOp) -> None:
        offset, mask, _ = self.place(op.offsets, op.mask, whole=True)
        array, value = self.texts[op.array].text, self.text(op.value)
        element = element_type(op.array.type)
        if is_unsigned(element):
            value = tl_text.as_unsigned(value, element_type(op.value.type))
        name = "tl.atomic_add" if isinstance(op, blocks.AtomicAddOp) else "tl.store"
        extra = ', sem="relaxed"' if isinstance(op, blocks.AtomicAddOp) else ""
        plus = "" if offset == "0" else f" + {offset}"
        self.line(f"{name}({array}{plus}, {value.text}{mask}{extra})")

    # -- loops ---------------------------------------------------------------------------------

    def carry(self, inits: Sequence[SSAValue], args: Sequence[SSAValue]) -> list[str]:
        """Variables for what a loop carries, with their first values."""
        names: list[str] = []
        for init, arg in zip(inits, args, strict=True):
            names.append(self.fresh(arg.name_hint or "acc"))
            self.line(f"{names[-1]} = {self.full(init).text}")
        for name, arg in zip(names, args, strict=True):
            self.texts[arg] = Text(name, shape=block_shape(arg.type))
        return names

    def assign(self, names: Sequence[str], values: Sequence[SSAValue]) -> None:
        """All variables at once."""
        pairs = [(n, self.full(v).text) for n, v in zip(names, values, strict=True)]
        pairs = [(n, v) for n, v in pairs if n != v]
        if len(pairs) == 1:
            self.line(f"{pairs[0][0]} = {pairs[0][1]}")
        elif pairs:
            self.line(f"{', '.join(n for n, _ in pairs)} = {', '.join(v for _, v in pairs)}")

    def results(self, op: Operation, names: Sequence[str]) -> None:
        for result, name in zip(op.results, names, strict=True):
            self.texts[result] = Text(name, shape=block_shape(result.type))

    def loop(self, op: scf.ForOp) -> None:
        counter, *args = op.body.block.args
        lo, hi, step = (self.text(v) for v in (op.lb, op.ub, op.step))
        names = self.carry(op.iter_args, args)
        name = self.fresh(counter.name_hint or "n")
        self.texts[counter] = Text(name, counter=True)
        bounds = [lo.text, hi.text, *([] if step.text == "1" else [step.text])]
        self.line(f"for {name} in range({', '.join(bounds)}):")
        self.inside(op.body.block, names)
        self.results(op, names)

    def inside(self, block: Block, names: Sequence[str]) -> None:
        """A block whose terminator gives the next values of variables."""
        self.depth += 1
        before = len(self.lines)
        last = self.block(block)
        if last is not None:
            self.assign(names, list(last.operands))
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def while_loop(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        names = self.carry(op.arguments, after.args)
        for old, new in zip(before.args, after.args, strict=True):
            self.texts[old] = self.texts[new]
        self.inline += 1
        last = self.block(before)
        self.inline -= 1
        if not isinstance(last, scf.ConditionOp) or list(last.operands[1:]) != list(before.args):
            raise InternalError("a while loop passes on something else than it carries")
        self.line(f"while {self.text(last.operands[0]).text}:")
        self.inside(after, names)
        self.results(op, names)

    def branch(self, op: scf.IfOp) -> None:
        names = [self.fresh(r.name_hint or "chosen") for r in op.results]
        self.line(f"if {self.text(op.cond).text}:")
        self.inside(op.true_region.block, names)
        if op.results:
            self.line("else:")
            self.inside(op.false_region.block, names)
        self.results(op, names)
