"""What a user can get wrong in a well-formed expression: one class a kind of mistake."""

from __future__ import annotations

from sparsecc.diagnostics import ExpressionError, FormatError, OperandError, UnsupportedError


class UnknownOperand(ExpressionError):
    text = "there is no operand {name!r}"


class UnknownFunction(ExpressionError):
    text = "there is no function {name!r}"


class UnusedOperand(ExpressionError):
    text = "operand {name!r} is given but not used"


class UnusedStatement(ExpressionError):
    text = "{name!r} is computed but not used"
    help_text = "the last statement is the result; remove this one or use it"


class RankMismatch(ExpressionError):
    text = "{name!r} has {rank} {dimensions} but is used with {found} {indices}"


class ExtentMismatch(ExpressionError):
    text = "index {index!r} is {found} in {name} but {wanted} in {other}"
    help_text = "transpose or slice one of the two"


class TargetIsOperand(ExpressionError):
    text = "{name!r} is assigned and is an operand as well"
    help_text = "give the result a new name; a preallocated array is passed as out="


class TargetRead(ExpressionError):
    text = "{name!r} is read by the statement that defines it"
    help_text = "give the result a new name"


class AssignedTwice(ExpressionError):
    text = "{name!r} is assigned twice"
    help_text = "give the second result a new name"


class RepeatedTargetIndex(ExpressionError):
    text = "index {index!r} is repeated in the target"
    help_text = "a result has an index of its own for each dimension"


class TensorAndIndex(ExpressionError):
    text = "{name!r} is a tensor and an index"
    help_text = "rename the index"


class IndexAsValue(ExpressionError):
    text = "{name!r} is an index, not a value"
    help_text = "pass np.arange(n) as an operand and access it: 'r[{name}]'"


class NoSubtraction(ExpressionError):
    text = "bool has no {what}"
    help_text = "multiply one operand by 1 to compute in i64"


class ConstantDivision(ExpressionError):
    text = "division of a constant by zero"
    help_text = "write inf or nan"


class ConstantRange(ExpressionError):
    text = "the constant {value} does not fit {dtype}"
    help_text = "convert the operand to a wider type"


class BadOperandType(OperandError):
    text = "operand {name!r}: {problem}"


class UnknownOutDtype(OperandError):
    text = "out_dtype: there is no element type {dtype!r}"


class NarrowedOperand(OperandError):
    text = "operand {name!r} is {found}: not all of its numbers are numbers of out_dtype={wanted}"
    help_text = "ask for out_dtype={wide}, or convert the operand (or the result) yourself"


class NarrowedResult(OperandError):
    text = "the expression is computed in {found}, which is not out_dtype={wanted}"
    help_text = "ask for out_dtype={found}, or convert the result yourself"


class OutputFormatRank(FormatError):
    text = "the output format has {found} dimensions but {name!r} has {wanted}"


class NotYet(UnsupportedError):
    text = "{feature} can't be compiled yet"


class BroadcastTarget(UnsupportedError):
    text = "index {index!r} of the target is not on the right, so its extent is unknown"
    help_text = "broadcasting is not supported yet: multiply by a vector of ones, 'ones[{index}]'"
