"""The epilogue of a contraction as Gluon text: one line a step, on a tile of ``[TOKENS, ROWS]``."""

from __future__ import annotations

from sparsecc.backends.triton.contraction import Contraction, EpilogueStep
from sparsecc.diagnostics import UnsupportedError

GLUON_TYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i32": "int32",
    "i8": "int8",
    "i64": "int64",
}

BINARY = {
    "arith.addf": "{0} + {1}",
    "arith.addi": "{0} + {1}",
    "arith.subf": "{0} - {1}",
    "arith.subi": "{0} - {1}",
    "arith.mulf": "{0} * {1}",
    "arith.muli": "{0} * {1}",
    "arith.divf": "{0} / {1}",
    "arith.maximumf": "gl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "arith.minimumf": "gl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "arith.maxnumf": "gl.maximum({0}, {1})",
    "arith.minnumf": "gl.minimum({0}, {1})",
    "arith.maxsi": "gl.maximum({0}, {1})",
    "arith.minsi": "gl.minimum({0}, {1})",
    "arith.andi": "{0} & {1}",
    "arith.ori": "{0} | {1}",
    "arith.xori": "{0} ^ {1}",
}
UNARY = {
    "arith.negf": "-{0}",
    "math.absf": "gl.abs({0})",
    "math.absi": "gl.abs({0})",
    "math.exp": "gl.exp({0})",
    "math.exp2": "gl.exp2({0})",
    "math.log": "gl.log({0})",
    "math.log2": "gl.log2({0})",
    "math.sin": "gl.sin({0})",
    "math.cos": "gl.cos({0})",
    "math.erf": "gl.erf({0})",
    "math.sqrt": "gl.sqrt_rn({0})",
    "math.rsqrt": "gl.rsqrt({0})",
    "math.floor": "gl.floor({0})",
    "math.ceil": "gl.ceil({0})",
    "math.tanh": "tanh({0})",
}
COMPARE = {
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "slt": "{0} < {1}",
    "sle": "{0} <= {1}",
    "sgt": "{0} > {1}",
    "sge": "{0} >= {1}",
    "oeq": "{0} == {1}",
    "olt": "{0} < {1}",
    "ole": "{0} <= {1}",
    "ogt": "{0} > {1}",
    "oge": "{0} >= {1}",
    "one": "({0} < {1}) | ({0} > {1})",
    "ord": "({0} == {0}) & ({1} == {1})",
    "ueq": "~(({0} < {1}) | ({0} > {1}))",
    "ult": "~({0} >= {1})",
    "ule": "~({0} > {1})",
    "ugt": "~({0} <= {1})",
    "uge": "~({0} < {1})",
    "une": "{0} != {1}",
}
"""Ordered and unordered predicates: what a NaN answers."""

TANH = '''
@gluon.jit
def tanh(v):
    """The hyperbolic tangent: by exp of -2|v| away from zero, by its odd series near it, where that cancels."""
    e = gl.exp(-2.0 * gl.abs(v))
    large = (1.0 - e) / (1.0 + e)
    s = v * v
    small = v * (1.0 + s * (-0.33333334 + s * (0.13333334 + s * (-0.053968254 + s * 0.021869488))))
    return gl.where(gl.abs(v) < 0.25, small, gl.where(v < 0, -large, large))
'''


def helpers(c: Contraction) -> str:
    """Functions that the epilogue calls."""
    return TANH if any(step.op == "math.tanh" for step in c.epilogue) else ""


def imports(c: Contraction) -> str:
    """What the epilogue needs beside Gluon."""
    named = any("tl." in BINARY.get(step.op, "") for step in c.epilogue)
    return "import triton.language as tl\n" if named else ""


def epilogue_lines(c: Contraction) -> list[str]:
    """The lines that turn ``whole`` into the value that is stored; a step's value is called ``v_NAME``."""
    lines = ["v_acc = whole"]
    indexed = {name: index for name, _, index in c.operands}
    lines += [f"v_{step.dest} = {_value(c, step, indexed)}" for step in c.epilogue]
    return lines


def _value(c: Contraction, step: EpilogueStep, indexed: dict[str, str]) -> str:
    if step.op == "load":
        return _load(c, step.arguments[0], indexed[step.arguments[0]])
    if step.op == "constant":
        return step.arguments[0]
    values = [f"v_{a}" for a in step.arguments]
    if step.op == "cast":
        return f"{values[0]}.to(gl.{GLUON_TYPES[step.arguments[1]]})"
    if step.op in BINARY:
        return BINARY[step.op].format(*values)
    if step.op in UNARY:
        return UNARY[step.op].format(*values)
    if step.op in ("arith.cmpf", "arith.cmpi") and step.arguments[0] in COMPARE:
        return COMPARE[step.arguments[0]].format(*values[1:])
    if step.op == "arith.select":
        return f"gl.where({', '.join(values)})"
    raise UnsupportedError(
        f"the epilogue of a packed contraction has no {step.op}",
        help="compute it in an expression of its own, after the contraction",
    )


def _load(c: Contraction, name: str, index: str) -> str:
    """A tensor of the epilogue on the tile: along rows, tokens, both, or one value; ``b`` before them: a batch."""
    inner = index.removeprefix("b")
    if "b" in inner or (inner != index and not c.batched[0]):
        raise UnsupportedError(
            f"tensor {name} of the epilogue lies in the order '{index}'",
            help="store its batch dimension first",
        )
    extents = " * ".join({"t": "M", "n": "N"}[letter] for letter in inner)
    base = f"e_{name}"
    if inner != index:
        base += " + batch.to(gl.int64)" + (f" * {extents}" if extents else "")
    if inner == "":
        return f"gl.load({base})"
    if inner == "n":
        return f"gl.load({base} + row, mask=row < N, other=0)[None, :]"
    if inner == "t":
        return f"gl.load({base} + token, mask=token < M, other=0)[:, None]"
    if inner == "tn":
        place = "token.to(gl.int64)[:, None] * N + row[None, :]"
    else:
        place = "row.to(gl.int64)[None, :] * M + token[:, None]"
    return f"gl.load({base} + ({place}), mask=inside, other=0)"
