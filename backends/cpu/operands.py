"""The host side of a lowered module as a plan: which conversions and kernels run on which tensors."""

from __future__ import annotations

from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    Float32Type,
    Float64Type,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from sparsecc.diagnostics import UnsupportedError
from sparsecc.dialects import iteration
from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.dialects.sparse_tensor.ops import ConvertOp
from sparsecc.formats import Format, dense_format
from sparsecc.kernel import Convert, Launch, Operand, Plan


class HostOperation(UnsupportedError):
    text = "the operation {name} in @{function} is not compiled yet"
    help_text = "functions may hold linalg.generic and named linalg operations, tensor.empty, linalg.fill and conversions"


class HostType(UnsupportedError):
    text = "@{function} takes or gives {type}; only tensors are passed yet"


def dtype_name(element: Attribute) -> str:
    """``f64`` … of an element type."""
    match element:
        case Float64Type():
            return "f64"
        case Float32Type():
            return "f32"
        case ComplexType():
            return "c128" if isinstance(element.element_type, Float64Type) else "c64"
        case IntegerType() if element.width.data == 1:
            return "bool"
        case IntegerType():
            unsigned = element.signedness.data == Signedness.UNSIGNED
            return f"{'u' if unsigned else 'i'}{element.width.data}"
        case _:
            raise HostOperation(name=str(element), function="main")


def type_format(type_: TensorType[Attribute]) -> Format:
    encoding = type_.encoding
    if isinstance(encoding, EncodingAttr) and encoding.data is not None:
        return encoding.data
    return dense_format(len(type_.shape.data))


def host_plan(module: ModuleOp, entry: str) -> Plan:
    """The plan of the host function ``@entry``."""
    functions = {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, func.FuncOp)}
    fn = functions[entry]
    builder = _PlanBuilder(functions, entry)
    names = fn.attributes.get("sparsecc.args")
    given = [n.data for n in names.data if isinstance(n, StringAttr)] if isinstance(names, ArrayAttr) else []
    operands: list[Operand] = []
    for n, arg in enumerate(fn.body.block.args):
        if not isinstance(arg.type, TensorType):
            raise HostType(function=entry, type=arg.type)
        name = given[n] if given else arg.name_hint or f"arg{n}"
        shape = tuple(None if d.data == DYNAMIC_INDEX else d.data for d in arg.type.shape.data)
        operands.append(Operand(name, shape, dtype_name(arg.type.element_type), str(type_format(arg.type))))
        builder.number(arg)
    results: list[int] = []
    for op in fn.body.block.ops:
        if isinstance(op, func.ReturnOp):
            results = [builder.numbers[v] for v in op.arguments]
        else:
            builder.step(op)
    out = fn.attributes.get("sparsecc.results")
    out_names = [n.data for n in out.data if isinstance(n, StringAttr)] if isinstance(out, ArrayAttr) else []
    out_names = out_names or [f"result{n}" for n in range(len(results))]
    return Plan(tuple(operands), tuple(builder.steps), tuple(results), tuple(out_names))


class _PlanBuilder:
    def __init__(self, functions: dict[str, func.FuncOp], entry: str) -> None:
        self.functions, self.entry = functions, entry
        self.numbers: dict[SSAValue, int] = {}
        self.steps: list[Convert | Launch] = []

    def number(self, value: SSAValue) -> int:
        self.numbers[value] = len(self.numbers)
        return self.numbers[value]

    def step(self, op: Operation) -> None:
        match op:
            case ConvertOp():
                assert isinstance(op.dest.type, TensorType)
                reason = op.attributes.get("sparsecc.reason")
                text = reason.data if isinstance(reason, StringAttr) else "the program asks for it"
                source = self.numbers[op.source]
                self.steps.append(Convert(source, self.number(op.dest), str(type_format(op.dest.type)), text))
            case iteration.LaunchOp():
                self.launch(op)
            case tensor.CastOp():
                self.numbers[op.dest] = self.numbers[op.source]
            case _:
                raise HostOperation(name=op.name, function=self.entry)

    def launch(self, op: iteration.LaunchOp) -> None:
        name = op.kernel.data
        kernel, counter = self.functions[name], self.functions.get(f"{name}_count")
        attrs = kernel.attributes
        type_ = op.result.type
        assert isinstance(type_, TensorType)
        pattern = attrs.get("iteration.pattern")
        bound = attrs.get("iteration.bound")
        accesses = attrs["iteration.access"]
        assert isinstance(accesses, ArrayAttr)
        *inputs, out = [_ints(a) for a in accesses.data]
        source = attrs.get("sparsecc.source")
        assembly = attrs["iteration.assembly"]
        names = attrs["iteration.loops"]
        assert isinstance(assembly, StringAttr) and isinstance(names, ArrayAttr)
        self.steps.append(
            Launch(
                kernel=name,
                inputs=tuple(self.numbers[v] for v in op.inputs),
                init=None if op.init is None else self.numbers[op.init],
                dest=self.number(op.result),
                assembly=assembly.data,
                pattern=pattern.value.data if isinstance(pattern, IntegerAttr) else None,
                covers="iteration.covers" in attrs,
                bound=None if bound is None else _ints(bound),
                access=tuple(inputs),
                out=out,
                loops=tuple(n.data for n in names.data if isinstance(n, StringAttr)),
                format=str(type_format(type_)),
                dtype=dtype_name(type_.element_type),
                roles=_roles(kernel),
                count_roles=() if counter is None else _roles(counter),
                source=source.data if isinstance(source, StringAttr) else name,
            )
        )


def _ints(attribute: Attribute) -> tuple[int, ...]:
    assert isinstance(attribute, DenseArrayBase)
    return tuple(int(k) for k in attribute.get_values())


def _roles(fn: func.FuncOp) -> tuple[str, ...]:
    roles = fn.attributes["loops.args"]
    assert isinstance(roles, ArrayAttr)
    return tuple(r.data for r in roles.data if isinstance(r, StringAttr))
