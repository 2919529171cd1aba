"""Programs of the tensor level with a weight in groups of four, as text, from the letters of their tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

TWO_OF_FOUR = {
    2: "(d0, d1) -> (d0 : dense, d1 floordiv 4 : dense, d1 mod 4 : structured[2, 4])",
    3: "(d0, d1, d2) -> (d0 : dense, d1 : dense, d2 floordiv 4 : dense, d2 mod 4 : structured[2, 4])",
}
TRANSPOSED = "(d0, d1) -> (d1 : dense, d0 floordiv 4 : dense, d0 mod 4 : structured[2, 4])"
RESIDUAL = f"{TWO_OF_FOUR[2]} + (d0, d1) -> (d0 : dense, d1 : compressed)"
"""``2:4+CSR``."""
COLUMN_MAJOR = "(d0, d1) -> (d1 : dense, d0 : dense)"
NUMPY: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i8": np.int8, "i32": np.int32,
}  # fmt: skip
SUMS = {"f16": "f32", "bf16": "f32", "i8": "i32"}


@dataclass(frozen=True)
class Tensor:
    """A tensor of a program: its name, the letters of its dimensions, its element type and its format."""

    name: str
    letters: str
    dtype: str
    map: str = ""

    @property
    def type(self) -> str:
        extents = "".join("?x" for _ in self.letters)
        parts = [f"#sparse_tensor.encoding<{{ map = {part} }}>" for part in self.map.split(" + ")]
        whole = (
            parts[0]
            if len(parts) == 1
            else f"#sparse_tensor.encoding<{{ sum = [{', '.join(parts)}] }}>"
        )
        encoding = f", {whole}" if self.map else ""
        return f"tensor<{extents}{self.dtype}{encoding}>"


def weight(letters: str, dtype: str = "f16", map: str = "") -> Tensor:
    return Tensor("W", letters, dtype, map or TWO_OF_FOUR[len(letters)])


def affine(loops: str, letters: str) -> str:
    return f"affine_map<({', '.join(loops)}) -> ({', '.join(letters)})>"


def data(tensor: Tensor, extents: dict[str, int], rng: np.random.Generator) -> Any:
    """Random values; a weight has two of each four along k, or half of all."""
    shape = [extents[c] for c in tensor.letters]
    whole = tensor.dtype.startswith("i")
    values = rng.integers(-90, 90, shape) if whole else rng.standard_normal(shape)
    if tensor.map == RESIDUAL:
        values = np.where(rng.random(shape) < 0.5, values, 0)
    elif tensor.name == "W":
        values = np.moveaxis(values, tensor.letters.index("k"), -1)
        groups = values.reshape(*values.shape[:-1], -1, 4).copy()
        dropped = np.argsort(rng.random(groups.shape), axis=-1)[..., :2]
        np.put_along_axis(groups, dropped, 0, -1)
        values = np.moveaxis(groups.reshape(values.shape), -1, tensor.letters.index("k"))
    return np.asarray(values, NUMPY[tensor.dtype], order="C")


class Program:
    """A function in the making."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = list(tensors)
        self.lines: list[str] = []
        self.extents: dict[str, str] = {}
        for tensor in tensors:
            for dim, letter in enumerate(tensor.letters):
                if letter not in self.extents:
                    self.extents[letter] = f"%extent_{letter}"
                    self.lines.append(f"%c_{letter} = arith.constant {dim} : index")
                    self.lines.append(
                        f"%extent_{letter} = tensor.dim %{tensor.name}, %c_{letter} : {tensor.type}"
                    )

    def generic(
        self, inputs: Sequence[Tensor], out: Tensor, body: Sequence[str], start: str = ""
    ) -> Tensor:
        """An operation on tensors; the body names elements ``%X`` and the result ``%out``."""
        loops = "".join(dict.fromkeys(out.letters + "".join(t.letters for t in inputs)))
        sizes = ", ".join(self.extents[letter] for letter in out.letters)
        if not start:
            start = f"%{out.name}_init"
            self.lines.append(f"{start} = tensor.empty({sizes}) : {out.type}")
        maps = ", ".join(affine(loops, t.letters) for t in [*inputs, out])
        kinds = ", ".join('"parallel"' if c in out.letters else '"reduction"' for c in loops)
        arguments = ", ".join(f"%e_{t.name}: {t.dtype}" for t in inputs)
        body_lines = [line.replace("%", "%e_") for line in body]
        self.lines += [
            f"%{out.name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}",
            f"  ins({', '.join(f'%{t.name}' for t in inputs)} : {', '.join(t.type for t in inputs)})"
            f" outs({start} : {out.type}) {{",
            f"^bb0({arguments}, %e_out: {out.dtype}):",
            *body_lines,
            f"}} -> {out.type}",
        ]
        return out

    def text(self, result: Tensor) -> str:
        arguments = ", ".join(f"%{t.name}: {t.type}" for t in self.tensors)
        body = "\n".join(f"  {line}" for line in self.lines)
        head = f"func.func @main({arguments}) -> {result.type} {{"
        return f"{head}\n{body}\n  return %{result.name} : {result.type}\n}}\n"


def product(dtype: str, result: str, swap: bool = False, sub: bool = False) -> list[str]:
    """A body that adds ``X * W`` to the result: in the type itself, in the wide type, or wide and rounded."""
    wide, kind = SUMS[dtype], "i" if dtype.startswith("i") else "f"
    extend, add = f"arith.ext{'s' if kind == 'i' else ''}{kind}", "sub" if sub else "add"
    pair = "%W, %X" if swap else "%X, %W"
    if result == dtype and kind == "i":
        return [
            f"%p = arith.muli {pair} : {dtype}",
            f"%s = arith.{add}i %out, %p : {dtype}",
            f"linalg.yield %s : {dtype}",
        ]
    pair = pair.replace("%", "%wide_")
    widened = [f"%wide_{t} = {extend} %{t} : {dtype} to {wide}" for t in ("X", "W")]
    multiply = [f"%p = arith.mul{kind} {pair} : {wide}"]
    if result == wide:
        return [
            *widened, *multiply, f"%s = arith.{add}{kind} %out, %p : {wide}",
            f"linalg.yield %s : {wide}",
        ]  # fmt: skip
    return [
        *widened, *multiply, f"%o = arith.extf %out : {result} to {wide}",
        f"%s = arith.{add}f %o, %p : {wide}", f"%r = arith.truncf %s : {wide} to {result}",
        f"linalg.yield %r : {result}",
    ]  # fmt: skip
