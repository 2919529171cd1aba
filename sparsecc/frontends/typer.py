"""Element types: NumPy's promotion, each operation in the type that NumPy would compute it in.

Constants are weak until they meet a tensor, and are folded among themselves as Python does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace

from sparsecc.diagnostics import ErrorCollector
from sparsecc.frontends import dtypes, mistakes
from sparsecc.frontends.ast import Access, Binary, Expr, Index, Number, Scalar, Unary
from sparsecc.frontends.check import Scope
from sparsecc.frontends.dtypes import Constant
from sparsecc.frontends.typed import Arith, Const, Convert, Load, Negate, Value

_FOLD: dict[str, Callable[[Constant, Constant], Constant]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b,
}


class Typer:
    """Types expressions of a scope; None stands for what has been reported as wrong."""

    def __init__(self, scope: Scope, errors: ErrorCollector) -> None:
        self.scope = scope
        self.errors = errors

    def value(self, expr: Expr) -> Value | None:
        """The typed value of an expression without implicit sums."""
        match expr:
            case Number(value):
                return Const(value, "")
            case Scalar(name):
                return self._load(name, ())
            case Access(name, indices):
                return self._load(name, tuple(i.name for i in indices if isinstance(i, Index)))
            case Unary(_, operand):
                return self.negate(self.value(operand), expr)
            case Binary(op, lhs, rhs):
                return self.binary(op, self.value(lhs), self.value(rhs), expr)
            case _:
                raise AssertionError(f"{expr} has passed the check of features")

    def _load(self, name: str, indices: tuple[str, ...]) -> Value | None:
        if name in self.scope.poisoned:
            return None
        load = Load(name, indices, self.scope.types[name].dtype)
        wanted = self.scope.out_dtype
        if wanted is None or name not in self.scope.operands or load.dtype == wanted:
            return load
        return Convert(load, wanted)

    def binary(self, op: str, lhs: Value | None, rhs: Value | None, at: Expr) -> Value | None:
        """``lhs op rhs`` in the type that NumPy computes it in."""
        if lhs is None or rhs is None:
            return None
        if isinstance(lhs, Const) and isinstance(rhs, Const) and not lhs.dtype + rhs.dtype:
            return self._fold(op, lhs.value, rhs.value, at)
        if isinstance(lhs, Const) and not lhs.dtype:
            common = dtypes.promote_constant(rhs.dtype, lhs.value)
        elif isinstance(rhs, Const) and not rhs.dtype:
            common = dtypes.promote_constant(lhs.dtype, rhs.value)
        else:
            common = dtypes.promote(lhs.dtype, rhs.dtype)
        if op == "/" and not dtypes.is_inexact(common):
            common = "f64"
        if op == "-" and common == "bool":
            self.errors.add(mistakes.NoSubtraction(span=at.span, what="subtraction"))
            return None
        left, right = self._convert(lhs, common, at), self._convert(rhs, common, at)
        if left is None or right is None:
            return None
        return Arith(op, left, right, common)

    def negate(self, operand: Value | None, at: Expr) -> Value | None:
        """Unary minus."""
        if operand is None:
            return None
        if isinstance(operand, Const) and not operand.dtype:
            return Const(-operand.value, "")
        if operand.dtype == "bool":
            self.errors.add(mistakes.NoSubtraction(span=at.span, what="unary minus"))
            return None
        return Negate(operand, operand.dtype)

    def strong(self, value: Value, at: Expr) -> Value | None:
        """The value with a type, also if it is a constant that met no tensor."""
        if isinstance(value, Const) and not value.dtype:
            wanted = self.scope.out_dtype
            return self._convert(value, wanted or dtypes.default_of(value.value), at)
        return value

    def checked(self, value: Value, at: Expr) -> Value | None:
        """The value of a statement, if it has the type that the result is to have."""
        wanted = self.scope.out_dtype
        if wanted is None or value.dtype == wanted:
            return value
        self.errors.add(mistakes.NarrowedResult(span=at.span, found=value.dtype, wanted=wanted))
        return None

    def _convert(self, value: Value, dtype: str, at: Expr) -> Value | None:
        if value.dtype == dtype:
            return value
        if isinstance(value, Const):
            if not dtypes.fits(value.value, dtype):
                self.errors.add(
                    mistakes.ConstantRange(span=at.span, value=value.value, dtype=dtype)
                )
                return None
            return replace(value, dtype=dtype)
        return Convert(value, dtype)

    def _fold(self, op: str, lhs: Constant, rhs: Constant, at: Expr) -> Value | None:
        try:
            return Const(_FOLD[op](lhs, rhs), "")
        except ZeroDivisionError:
            self.errors.add(mistakes.ConstantDivision(span=at.span))
        except OverflowError:
            self.errors.add(mistakes.ConstantRange(span=at.span, value=str(at), dtype="f64"))
        return None
