"""Fragments kernels to text: what a kernel computes is read off its operations, and its schedule's family writes it.

Before::

    func.func @contraction0(%X, %W, %bias, %Y) attributes {tile.schedule = #tile.schedule<"ring", {…}>, …} { … }

After: a ``TileSource`` whose arguments have roles of the launch: ``in1.packed``, ``in0.values``, ``in2.values``,
``out.values``, ``in0.dim0`` (the tokens), ``in1.dim0``, ``in1.dim1``, ``in0.stride0``, ``out.stride0``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import cast

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from sparsecc.backends.triton.contraction import Contraction, EpilogueStep
from sparsecc.diagnostics import InternalError
from sparsecc.dialects.reading import element_type
from sparsecc.dialects.sparse_tensor.types import format_of
from sparsecc.dialects.tile import ScheduleAttr
from sparsecc.dialects.tile import fragments as tile
from sparsecc.dialects.tile.fragment_types import FragmentType, letters_of, type_name
from sparsecc.dialects.tile.weights import packed_weight
from sparsecc.kernel import TileSource

EMITTERS = {
    "ring": "sparsecc.backends.triton.ring",
    "staged": "sparsecc.backends.triton.staged",
    "warpgroup": "sparsecc.backends.triton.warpgroup",
}
"""family -> the module whose ``emit(contraction, schedule)`` writes its kernels."""

CASTS = (
    arith.ExtFOp, arith.TruncFOp, arith.ExtSIOp, arith.TruncIOp, arith.SIToFPOp, arith.FPToSIOp,
)  # fmt: skip
COMPARISONS = {
    "arith.cmpf": ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une"),
    "arith.cmpi": ("eq", "ne", "slt", "sle", "sgt", "sge"),
}  # fmt: skip
"""Predicates by number."""


def emit_fragments(
    fn: func.FuncOp, target: str, facts: Mapping[str, int] | None = None
) -> TileSource:
    """The text of a fragments kernel under its ``tile.schedule``, for a target by name.

    ``facts`` are numbers of the packing: ``steps`` of a chunk of ``2:4+CSR``, and ``entries``, the most vectors of
    entries in one."""
    reader = FragmentsReader(fn)
    contraction = reader.contraction(target, facts or {})
    schedule = fn.attributes["tile.schedule"]
    assert isinstance(schedule, ScheduleAttr)
    module = import_module(EMITTERS[schedule.family.data])
    source = cast(TileSource, module.emit(contraction, schedule.numbers()))
    roles = reader.roles()
    for role in source.roles:
        if role not in roles and not role.startswith("work."):
            raise InternalError(f"the kernel @{fn.sym_name.data} has an argument of role {role!r}")
    return replace(source, roles=tuple(roles.get(role, role) for role in source.roles))


class FragmentsReader:
    """Reads a fragments kernel."""

    def __init__(self, fn: func.FuncOp) -> None:
        self.fn = fn
        self.block = fn.body.block
        ops = list(fn.walk())
        self.spans = {op.span.data: op for op in ops if isinstance(op, tile.SpanOp)}
        (self.loop,) = (op for op in ops if isinstance(op, tile.AccumulateOp))
        (self.packed,) = (op for op in ops if isinstance(op, tile.LoadPackedOp))
        (self.x,) = (op for op in ops if isinstance(op, tile.LoadFragmentsOp))
        (self.store,) = (op for op in ops if isinstance(op, tile.StoreFragmentsOp))
        self.epilogue = next((op for op in ops if isinstance(op, tile.EpilogueOp)), None)
        self.names: list[str] = []
        """Of the epilogue's tensors."""
        for n, (tensor, _) in enumerate(self.epilogue.accesses() if self.epilogue else ()):
            wanted = tensor.name_hint or f"operand{n}"
            self.names.append(wanted if wanted not in self.names else f"{wanted}_{n}")

    # -- what it computes ----------------------------------------------------------------------

    def contraction(self, target: str, facts: Mapping[str, int]) -> Contraction:
        """The kernel as plain data."""
        weight = packed_weight(self.packed.tensor.type)
        assert weight is not None
        x, y = (memory_order(op.tensor, op.at) for op in (self.x, self.store))
        total = self.loop.result.type
        assert isinstance(total, FragmentType)
        return Contraction(
            name=self.fn.sym_name.data,
            comments=tuple(self._comments()),
            target=target,
            weight=weight.kind,
            dtype=type_name(element_type(self.packed.tensor.type)),
            accumulator=type_name(total.element),
            out_dtype=type_name(element_type(self.store.tensor.type)),
            x_order=x.replace("b", ""),
            y_order=y.replace("b", ""),
            batched=("b" in x, weight.batch is not None),
            aligned="tile.aligned" in self.fn.attributes,
            epilogue=tuple(self._steps()),
            operands=tuple(self._operands()),
            facts=tuple((self._bounds(weight.kind) | dict(facts)).items()),
        )

    def _bounds(self, kind: str) -> dict[str, int]:
        """Numbers of a packing that nobody has seen yet: the schedule's steps, and the entries of a weight half of
        which is zero. Before such a kernel runs it is made again for the weight that it meets."""
        schedule = self.fn.attributes["tile.schedule"]
        if kind == "2:4" or not isinstance(schedule, ScheduleAttr):
            return {}
        steps = schedule.numbers()["steps"]
        return {"steps": steps, "entries": 16 * steps}

    def _comments(self) -> list[str]:
        source = self.fn.attributes.get("sparsecc.source")
        lines = [source.data] if isinstance(source, StringAttr) else []
        for argument in self.block.args:
            fmt = format_of(argument.type)
            assert fmt is not None
            dtype = type_name(element_type(argument.type))
            lines.append(f"{argument.name_hint or 'operand'}: {dtype} {fmt}")
        return lines

    def _operands(self) -> list[tuple[str, str, str]]:
        if self.epilogue is None:
            return []
        found: list[tuple[str, str, str]] = []
        for name, (tensor, at) in zip(self.names, self.epilogue.accesses(), strict=True):
            index = memory_order(tensor, at)  # a batch stays: its writers step over whole matrices
            found.append((name, type_name(element_type(tensor.type)), index))
        return found

    def _steps(self) -> list[EpilogueStep]:
        """The region of the epilogue, one step an operation."""
        if self.epilogue is None:
            return []
        steps: list[EpilogueStep] = []
        total, *elements = self.epilogue.body.block.args
        names: dict[SSAValue, str] = {total: "acc"}
        for element, (name, _, index) in zip(elements, self._operands(), strict=True):
            names[element] = f"s{len(steps)}"
            steps.append(EpilogueStep(names[element], "load", (name, index)))
        for op in self.epilogue.body.block.ops:
            if isinstance(op, tile.FinishOp):
                if (
                    not steps or names[op.value] != steps[-1].dest
                ):  # the last step is what is stored
                    again = (names[op.value], type_name(op.value.type))
                    steps.append(EpilogueStep(f"s{len(steps)}", "cast", again))
                continue
            names[op.results[0]] = f"s{len(steps)}"
            arguments = [names[v] for v in op.operands]
            steps.append(EpilogueStep(f"s{len(steps)}", *_operation(op, arguments)))
        return steps

    # -- where it is launched ------------------------------------------------------------------

    def roles(self) -> dict[str, str]:
        """Roles that the writers of families know, to those of this launch."""
        found = {
            "w.packed": f"{self._owner(self.packed.tensor)}.packed",
            "w.offsets": f"{self._owner(self.packed.tensor)}.offsets",
            "x.values": f"{self._owner(self.x.tensor)}.values",
            "y.values": f"{self._owner(self.store.tensor)}.values",
            "rows": self._extent("rows"),
            "tokens": self._extent("tokens"),
            "reduction": f"{self._owner(self.loop.tensor)}.dim{self.loop.dim.value.data}",
        }
        for letter, op in (("x", self.x), ("y", self.store)):
            strides = self._strides(op.tensor, op.at)
            found |= {f"{letter}.{name}": role for name, role in strides.items()}
        if "batch" in self.spans:
            found["batches"] = self._extent("batch")
        if self.epilogue is not None:
            for name, (tensor, _) in zip(self.names, self.epilogue.accesses(), strict=True):
                found[f"e:{name}.values"] = f"{self._owner(tensor)}.values"
        return found

    def _strides(self, tensor: SSAValue, at: Sequence[SSAValue]) -> dict[str, str]:
        """The stride between rows (of whatever is contiguous), and that of the batch."""
        letters, order = letters_of(at), memory_order(tensor, at)
        outer = [letter for letter in order if letter != "b"][0]
        found = {"stride0": f"{self._owner(tensor)}.stride{letters.index(outer)}"}
        if "b" in letters:
            found["batch_stride"] = f"{self._owner(tensor)}.stride{letters.index('b')}"
        return found

    def _extent(self, span: str) -> str:
        op = self.spans[span]
        return f"{self._owner(op.tensor)}.dim{op.dim.value.data}"

    def _owner(self, tensor: SSAValue) -> str:
        """``in0`` …, or ``out`` for the last argument."""
        assert isinstance(tensor, BlockArgument)
        return "out" if tensor.index == len(self.block.args) - 1 else f"in{tensor.index}"


def memory_order(tensor: SSAValue, at: Sequence[SSAValue]) -> str:
    """The letters of an access as the tensor lies in memory, outer to inner."""
    fmt = format_of(tensor.type)
    letters = letters_of(at)
    return "".join(letters[dim] for dim in fmt.dim_order) if fmt is not None and letters else ""


def _operation(op: Operation, arguments: list[str]) -> tuple[str, tuple[str, ...]]:
    """An operation's name and arguments in a step."""
    if isinstance(op, CASTS):
        return "cast", (arguments[0], type_name(op.results[0].type))
    if isinstance(op, arith.ConstantOp):
        return "constant", (_literal(op.value),)
    if isinstance(op, arith.CmpfOp | arith.CmpiOp):
        return op.name, (COMPARISONS[op.name][op.predicate.value.data], *arguments)
    return op.name, tuple(arguments)


def _literal(value: Attribute) -> str:
    assert isinstance(value, FloatAttr | IntegerAttr)
    if isinstance(value, IntegerAttr):
        return str(int(value.value.data))
    number = value.value.data
    return (
        repr(number) if number == number and abs(number) != float("inf") else f'float("{number}")'
    )
