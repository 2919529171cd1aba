"""Loops to C99, for reading: the same structured walk as :mod:`sparsecc.backends.cpu.emit`.

SpMV over a CSR matrix reads::

    for (int64_t i = 0; i < in0_dim0; ++i) {
        double sum = 0.0;
        for (int64_t p = in0_positions1[i]; p < in0_positions1[i + 1]; ++p) {
            int64_t j = in0_coordinates1[p];
            sum += in0_values[p] * in1_values[j];
        }
        out_values[i] = sum;
    }

Any C99 compiler takes it: the functions have the signatures of the machine code's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, MemRefType, ModuleOp, StringAttr
from xdsl.ir import SSAValue

from sparsecc.backends.cpu.c_statements import Statements
from sparsecc.backends.cpu.c_types import LIBM, PRIMARY, Expr, c_type, memory_type
from sparsecc.dialects import iteration


def emit_c(module: ModuleOp) -> str:
    """C99 text of a module of loops; functions on tensors (the host side) are left out."""
    helpers: dict[str, str] = {}
    functions = [f for f in module.body.block.ops if isinstance(f, func.FuncOp)]
    kernels = [f for f in functions if "loops.args" in f.attributes]
    called = {
        op.callee.root_reference.data
        for f in kernels
        for op in f.walk()
        if isinstance(op, func.CallOp)
    }
    names = _tensor_names(functions)
    parts: list[str] = []
    for fn in [f for f in functions if f.sym_name.data in called]:
        parts.append(_Function(fn, helpers, {}).text())
    for fn in kernels:
        function = _Function(fn, helpers, names.get(fn.sym_name.data.removesuffix("_count"), {}))
        parts += [function.text(), function.entry()]
    body = "\n".join([*(f"{text}\n" for text in helpers.values()), *parts])
    headers = ["stdbool", "stdint"]
    if "_Complex" in body:
        headers.insert(0, "complex")
    if re.search(rf"\b(NAN|INFINITY|signbit|is\w+|({'|'.join(LIBM.values())})f?)\b", body):
        headers.insert(-2, "math")
    return "".join(f"#include <{h}.h>\n" for h in headers) + "\n" + body


def _tensor_names(functions: Sequence[func.FuncOp]) -> dict[str, dict[str, str]]:
    """For each kernel what the program calls its operands: ``in0`` -> ``A``."""
    found: dict[str, dict[str, str]] = {}
    for fn in functions:
        for op in fn.walk():
            if isinstance(op, iteration.LaunchOp):
                names = {f"in{n}": v.name_hint or f"operand {n}" for n, v in enumerate(op.inputs)}
                found[op.kernel.data] = {**names, "out": op.result.name_hint or "the result"}
    return found


def describe(role: str, names: dict[str, str]) -> str:
    """What an argument is, in words."""
    owner, _, what = role.partition(".")
    tensor = names.get(owner, owner)
    name = what.rstrip("0123456789")
    number = what.removeprefix(name)
    if name in ("positions", "coordinates"):
        return f"{name} of {tensor}'s level {number}"
    if name == "dim":
        return f"extent of {tensor}'s dimension {number}"
    if name == "values" and owner != "work":
        return f"values of {tensor}"
    return {
        "counters": "takes the number of positions of each level",
        "work.values": "workspace: a row of values",
        "work.marker": "workspace: which row touched an element last",
        "work.list": "workspace: coordinates touched in this row",
    }.get(role, role)


class _Function(Statements):
    """A function with its head, and its entry."""

    def __init__(self, fn: func.FuncOp, helpers: dict[str, str], tensors: dict[str, str]) -> None:
        super().__init__(fn, helpers)
        self.fn, self.tensors = fn, tensors
        roles = fn.attributes.get("loops.args")
        self.roles: list[str] = []
        if isinstance(roles, ArrayAttr):
            self.roles = [r.data for r in cast("ArrayAttr[StringAttr]", roles)]
        self.params = [self.parameter(n, arg) for n, arg in enumerate(fn.body.block.args)]

    def parameter(self, number: int, arg: SSAValue) -> tuple[str, str]:
        """Declaration of a parameter and its type."""
        name = self.fresh(arg.name_hint or f"arg{number}")
        role = self.roles[number] if self.roles else ""
        is_array = isinstance(arg.type, MemRefType)
        if not is_array:
            self.known[arg] = Expr(name, PRIMARY, c_type(arg.type))
            return f"{c_type(arg.type)} {name}", c_type(arg.type)
        element = memory_type(arg.type, role)
        self.known[arg] = Expr(name, PRIMARY, element)
        const = "" if arg in self.stored else "const "
        return f"{const}{element} *restrict {name}", f"{const}{element} *"

    def text(self) -> str:
        """The function."""
        name = self.fn.sym_name.data
        self.walk(self.fn.body.block)
        source = self.fn.attributes.get("sparsecc.source")
        lines: list[str] = []
        if isinstance(source, StringAttr):
            counts = ": how much it stores" if name.endswith("_count") else ""
            lines.append(f"/* {source.data.replace('*/', '* /')}{counts} */")
        if not self.roles:
            lines.append(f"static void {name}({', '.join(p for p, _ in self.params)}) {{")
        else:
            lines.append(f"static void {name}(")
            width = max(len(p) for p, _ in self.params)
            for n, ((declaration, _), role) in enumerate(zip(self.params, self.roles, strict=True)):
                end = ")" if n == len(self.params) - 1 else ","
                lines.append(
                    f"    {declaration + end:{width + 1}}  /* {describe(role, self.tensors)} */"
                )
            lines.append("{")
        return "\n".join([*lines, *self.lines, "}", ""])

    def entry(self) -> str:
        """The exported function: pointers and sizes come in an array of words."""
        name = self.fn.sym_name.data
        passed = [
            f"({kind})(intptr_t)args[{n}]"
            if kind.endswith("*")
            else f"args[{n}]"
            if kind == "int64_t"
            else f"*(const {kind} *)&args[{n}]"
            for n, (_, kind) in enumerate(self.params)
        ]
        call = ",\n        ".join(passed)
        return f"void {name}_entry(const int64_t *args) {{\n    {name}(\n        {call});\n}}\n"
