"""The host side of a lowered module as a plan: which conversions and kernels run on which tensors.

A launched function with the attribute ``tile.kernel`` is a GPU kernel. It keeps what an iteration kernel says of its
operands: ``iteration.loops`` and ``iteration.maps`` (the names of the indices, and how each tensor is subscripted by
them, the result last), and where they are not the plain ones ``iteration.assembly`` (dense), ``iteration.order``,
``iteration.pattern``, ``iteration.covers``, ``iteration.fill``, ``iteration.bound``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue

from sparsecc.backends.steps import (
    Extents,
    HostOperation,
    dtype_of,
    library_step,
    tile_launch,
    type_format,
)
from sparsecc.diagnostics import UnsupportedError, UsageError
from sparsecc.dialects import iteration
from sparsecc.dialects.iteration.subscripts import Subscript, read_subscript
from sparsecc.dialects.iteration.types import numbers
from sparsecc.dialects.reading import complex_parts, elements, strings
from sparsecc.dialects.sparse_tensor.ops import ConvertOp, ReinterpretMapOp
from sparsecc.dialects.sparse_tensor.types import ranked_tensor
from sparsecc.formats import Format
from sparsecc.kernel import (
    Convert,
    Launch,
    Operand,
    Plan,
    Reinterpret,
    Step,
    TileSource,
)


class HostCast(UnsupportedError):
    text = "a conversion from {source} to {dest} is not compiled yet"
    help_text = "element types stay, and a dimension that is open stays so"


class HostNames(UsageError):
    text = "{attribute} of @{function} names {found}, but there are {wanted} {what}"
    help_text = "give each a name of its own, or leave {attribute} out"


class HostType(UnsupportedError):
    text = "@{function} takes or gives {type}; only tensors are passed yet"


Emit = Callable[[func.FuncOp], TileSource]
"""A tile kernel as text."""


def host_plan(module: ModuleOp, entry: str, emit: Emit | None = None) -> Plan:
    """The plan of the host function ``@entry``; ``emit`` writes the GPU kernels that it launches."""
    functions = {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, func.FuncOp)}
    fn = functions[entry]
    builder = _PlanBuilder(functions, entry, emit)
    given = _names(fn, "sparsecc.args", len(fn.body.block.args), "arguments")
    operands: list[Operand] = []
    for n, arg in enumerate(fn.body.block.args):
        type_ = ranked_tensor(arg.type)
        if type_ is None:
            raise HostType(function=entry, type=arg.type)
        name = given[n] if given else arg.name_hint or f"arg{n}"
        shape = tuple(None if d.data == DYNAMIC_INDEX else d.data for d in type_.shape.data)
        operands.append(Operand(name, shape, dtype_of(type_.element_type), str(type_format(type_))))
        builder.number(arg)
    results: list[int] = []
    for op in fn.body.block.ops:
        if isinstance(op, func.ReturnOp):
            results = [builder.numbers[v] for v in op.arguments]
        else:
            builder.step(op)
    out_names = _names(fn, "sparsecc.results", len(results), "results")
    out_names = out_names or [f"result{n}" for n in range(len(results))]
    return Plan(tuple(operands), tuple(builder.steps), tuple(results), tuple(out_names))


def _names(fn: func.FuncOp, attribute: str, count: int, what: str) -> list[str]:
    """Names that an attribute gives; none if it is not there. Raises HostNames."""
    found = strings(fn.attributes.get(attribute))
    if found and (len(found) != count or len(set(found)) != count):
        raise HostNames(
            attribute=attribute,
            function=fn.sym_name.data,
            found=", ".join(found),
            wanted=count,
            what=what,
        )
    return found


Groups = dict[Subscript, list[tuple[int, int]]]
"""Subscripts to the dimensions (tensor, dimension) that they run over."""


def of_levels(fmt: Format, dim: int, subscripts: Sequence[Subscript]) -> Subscript:
    """The subscript of a dimension, given the subscripts of the levels of a tensor that is seen by them."""
    terms = [(subscripts[n][0][0], e.div) for n, e in enumerate(fmt.exprs) if e.dim == dim]
    return tuple(sorted(terms, key=lambda term: (-term[1], term[0])))


class _PlanBuilder:
    def __init__(
        self, functions: dict[str, func.FuncOp], entry: str, emit: Emit | None = None
    ) -> None:
        self.functions, self.entry, self.emit = functions, entry, emit
        self.numbers: dict[SSAValue, int] = {}
        self.steps: list[Step] = []
        self.formats: dict[int, Format] = {}
        self.sources: dict[int, int] = {}
        """Tensors seen by levels: what they were."""
        self.results: dict[int, tuple[Groups, list[Subscript]]] = {}
        """Results: the groups of dimensions of their launch, and their own subscripts."""

    def number(self, value: SSAValue) -> int:
        number = self.numbers[value] = len(self.numbers)
        type_ = ranked_tensor(value.type)
        if type_ is not None:
            self.formats[number] = type_format(type_)
        return self.numbers[value]

    def step(self, op: Operation) -> None:
        match op:
            case ConvertOp():
                reason = op.attributes.get("sparsecc.reason")
                text = reason.data if isinstance(reason, StringAttr) else "the program asks for it"
                self.convert(op.source, op.dest, text)
            case ReinterpretMapOp():
                self.reinterpret(op)
            case iteration.LaunchOp():
                self.launch(op)
            case iteration.LibraryCallOp():
                self.library(op)
            case tensor.CastOp():
                self.convert(op.source, op.dest, "the program casts it")
            case _:
                raise HostOperation(name=op.name, function=self.entry)

    def convert(self, source: SSAValue, dest: SSAValue, reason: str) -> None:
        """The same tensor of another type: of another format, or with extents that are no longer said."""
        a, b = ranked_tensor(source.type), ranked_tensor(dest.type)
        assert a is not None and b is not None
        extents = zip(a.get_shape(), b.get_shape(), strict=True)
        if a.element_type != b.element_type or any(n not in (DYNAMIC_INDEX, m) for m, n in extents):
            raise HostCast(source=a, dest=b)
        number = self.numbers[source]
        if number in self.results:
            self.results[len(self.numbers)] = self.results[number]
        if number in self.sources:
            self.sources[len(self.numbers)] = self.sources[number]
        self.steps.append(Convert(number, self.number(dest), str(type_format(b)), reason))

    def reinterpret(self, op: ReinterpretMapOp) -> None:
        type_ = ranked_tensor(op.dest.type)
        assert type_ is not None
        source, fmt = self.numbers[op.source], type_format(type_)
        shape: tuple[tuple[int, int], ...] | None = None
        if source in self.results and not fmt.is_permutation:  # from levels back to blocks
            groups, subscripts = self.results[source]
            shape = tuple(groups[of_levels(fmt, dim, subscripts)][0] for dim in range(fmt.rank))
        dest = self.number(op.dest)
        self.steps.append(Reinterpret(source, dest, str(fmt), shape))
        if shape is None:
            self.sources[dest] = source

    def groups(
        self, inputs: Sequence[tuple[SSAValue, Sequence[Subscript]]], init: SSAValue | None,
        out: list[Subscript], loops: Sequence[str],
    ) -> tuple[Extents, tuple[int, ...]]:  # fmt: skip
        """Dimensions that have one extent: those with the same subscript, by the name of its index; and the group
        of each dimension of the result. A tensor that is seen by its levels counts with its own dimensions too."""
        groups: Groups = {}
        for value, subscripts in inputs:
            number = self.numbers[value]
            for dim, subscript in enumerate(subscripts):
                groups.setdefault(subscript, []).append((number, dim))
            source = self.sources.get(number)
            if source is None:
                continue
            fmt = self.formats[source]
            for dim in range(fmt.rank):
                groups.setdefault(of_levels(fmt, dim, subscripts), []).append((source, dim))
        if init is not None:
            # The result starts as a copy of it: it must be as large as the loops say.
            for dim, subscript in enumerate(out):
                groups.setdefault(subscript, []).append((self.numbers[init], dim))
        self.results[len(self.numbers)] = (groups, out)
        numbers = {subscript: n for n, subscript in enumerate(groups)}
        if any(subscript not in numbers for subscript in out):
            raise HostOperation(name="a result with an index of its own", function=self.entry)
        named = tuple(
            (_index_name(subscript, loops), tuple(dims)) for subscript, dims in groups.items()
        )
        return named, tuple(numbers[subscript] for subscript in out)

    def launch(self, op: iteration.LaunchOp) -> None:
        kernel = self.functions[op.kernel.data]
        counter = self.functions.get(f"{op.kernel.data}_count")
        if "tile.kernel" not in kernel.attributes:
            roles = (_roles(kernel), () if counter is None else _roles(counter))
            self.steps.append(self.described(op, kernel, roles))
            return
        assert self.emit is not None, "a GPU kernel in a program for the CPU"
        source = self.emit(kernel)
        launch = self.described(op, kernel, (source.roles, ()))
        self.steps.append(tile_launch(launch, kernel, source, self.formats))

    def library(self, op: iteration.LibraryCallOp) -> None:
        loops = list(dict.fromkeys(name for names in op.names for name in names))
        *inputs, out = [[((loops.index(name), 1),) for name in names] for names in op.names]
        named = list(zip(op.inputs, inputs, strict=True))
        extents, shape = self.groups(named, op.init, out, loops)
        numbers = [self.numbers[v] for v in op.inputs]
        init = None if op.init is None else self.numbers[op.init]
        dest = self.number(op.result)
        self.steps.append(library_step(op, numbers, init, dest, extents, shape))

    def described(
        self,
        op: iteration.LaunchOp,
        kernel: func.FuncOp,
        roles: tuple[tuple[str, ...], tuple[str, ...]],
    ) -> Launch:
        """What goes into a kernel and what comes out."""
        attrs = kernel.attributes
        type_ = ranked_tensor(op.result.type)
        assert type_ is not None
        pattern = attrs.get("iteration.pattern")
        bound = attrs.get("iteration.bound")
        loops = strings(attrs["iteration.loops"])
        *inputs, out = [_subscripts(m) for m in elements(attrs["iteration.maps"])]
        named = list(zip(op.inputs, inputs, strict=True))
        groups, shape = self.groups(named, op.init, out, loops)
        source, reason = attrs.get("sparsecc.source"), attrs.get("sparsecc.format_reason")
        assembly = attrs.get("iteration.assembly")
        return Launch(
            kernel=op.kernel.data,
            inputs=tuple(self.numbers[v] for v in op.inputs),
            init=None if op.init is None else self.numbers[op.init],
            fill=_number(attrs.get("iteration.fill")),
            dest=self.number(op.result),
            assembly=assembly.data if isinstance(assembly, StringAttr) else "dense",
            pattern=pattern.value.data if isinstance(pattern, IntegerAttr) else None,
            covers="iteration.covers" in attrs,
            bound=None if bound is None else numbers(bound),
            extents=groups,
            shape=shape,
            static=tuple(None if d.data == DYNAMIC_INDEX else d.data for d in type_.shape.data),
            format=str(type_format(type_)),
            dtype=dtype_of(type_.element_type),
            roles=roles[0],
            count_roles=roles[1],
            source=source.data if isinstance(source, StringAttr) else op.kernel.data,
            order=tuple(strings(attrs.get("iteration.order"))),
            reason=reason.data if isinstance(reason, StringAttr) else "",
        )


def _number(attribute: Attribute | None) -> tuple[float, float] | tuple[int]:
    """A constant's value: an integer, or a real and an imaginary part."""
    match attribute:
        case None:
            return (0,)
        case IntegerAttr():
            return (int(attribute.value.data),)
        case FloatAttr():
            return (float(attribute.value.data), 0.0)
        case _:
            return complex_parts(attribute)


def _subscripts(attribute: Attribute) -> list[Subscript]:
    assert isinstance(attribute, AffineMapAttr)
    subscripts = [read_subscript(expr) for expr in attribute.data.results]
    return [s for s in subscripts if s is not None]


def _index_name(subscript: Subscript, loops: Sequence[str]) -> str:
    """``i``, or for digits ``i1`` and ``i0`` of a split index the ``i`` again."""
    name = loops[subscript[0][0]]
    return name.rstrip("0123456789") or name if len(subscript) > 1 else name


def _roles(fn: func.FuncOp) -> tuple[str, ...]:
    return tuple(strings(fn.attributes["loops.args"]))
