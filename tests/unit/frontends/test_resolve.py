"""Names, ranks, extents, types, implicit sums."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from sparsecc.diagnostics import SparseccError, UnsupportedError
from sparsecc.formats import dense_format, parse_format
from sparsecc.frontends import OperandType, ResolvedProgram, dtypes, mistakes, parse, resolve
from sparsecc.frontends.typed import Const, Load, loads

CSR = parse_format("CSR")


def operand(*shape: int | None, dtype: str = "f64", fmt: str = "dense") -> OperandType:
    return OperandType(shape, dtype, parse_format(fmt, len(shape)) if shape else None)


OPERANDS = {
    "A": operand(3, 4, fmt="CSR"),
    "B": operand(4, 3),
    "x": operand(4),
    "b": operand(3),
    "a": operand(),
}


def bind(text: str, **operands: OperandType) -> ResolvedProgram:
    """Resolve with those operands, or with those of the table that the text names."""
    program = parse(text)
    if not operands:
        written = set(re.findall(r"\w+", text))
        operands = {name: known for name, known in OPERANDS.items() if name in written}
    return resolve(program, operands)


# -- mistakes -------------------------------------------------------------------------------------

BAD: list[tuple[str, type[SparseccError], int, str]] = [
    ("y[i] = A[i,j] * z[j]", mistakes.UnknownOperand, 17, "known: A"),
    ("y[i] = A[i,j] * Aa[j,i]", mistakes.UnknownOperand, 17, "did you mean 'A'?"),
    ("y = q", mistakes.UnknownOperand, 5, "there is no operand 'q'"),
    ("y[i] = A[i,j] * exq(x[j] * 2)", mistakes.UnknownFunction, 17, "did you mean 'exp'?"),
    ("y[i] = A[i]", mistakes.RankMismatch, 8, "write A[i,j]"),
    ("y[i] = A[i,j,k]", mistakes.RankMismatch, 8, "has 2 dimensions but is used with 3 indices"),
    ("y[i] = A[i,j] + x", mistakes.RankMismatch, 17, "write x[i]"),
    ("y[i] = x[i] * a[i]", mistakes.RankMismatch, 15, "write a"),
    ("y[i] = A[i,j] * x[i]", mistakes.ExtentMismatch, 19, "index 'i' is 4 in x but 3 in A"),
    ("y[i] = A[i,i]", mistakes.ExtentMismatch, 12, "'i' is 3 here"),
    ("x[i] = A[i,j]", mistakes.TargetIsOperand, 1, "out="),
    ("y[i] = b[i] + y[i]", mistakes.TargetRead, 15, "new name"),
    ("y[i,i] = A[i,j]", mistakes.RepeatedTargetIndex, 5, "'i'"),
    ("y[i,k] = A[i,j]", mistakes.BroadcastTarget, 5, "ones[k]"),
    ("y[i] = a ", mistakes.BroadcastTarget, 3, "ones[i]"),
    ("y[i] = A[i,x] * x[i]", mistakes.TensorAndIndex, 12, "rename the index"),
    ("y[y] = x[y]", mistakes.TensorAndIndex, 3, "rename the index"),
    ("y[i] = A[i,j] * j", mistakes.IndexAsValue, 17, "np.arange"),
    ("y[i] = A[i,j] * i[j]", mistakes.TensorAndIndex, 17, "'i'"),
    ("y[i] = b[i]; y[i] = 2 * b[i]", mistakes.AssignedTwice, 14, "first assigned here"),
    ("t[i] = b[i]; y[i] = 2 * b[i]", mistakes.UnusedStatement, 1, "'t'"),
    ("s[i] = t[i]; t[i] = b[i] + s[i]", mistakes.UnknownOperand, 8, "only later"),
    ("y[i] = b[i] / (1 / 0)", mistakes.ConstantDivision, 15, "inf"),
]


@pytest.mark.parametrize("text, kind, column, fragment", BAD, ids=[b[0] for b in BAD])
def test_mistakes(text: str, kind: type[SparseccError], column: int, fragment: str) -> None:
    with pytest.raises(SparseccError) as caught:
        bind(text)
    error = caught.value
    assert type(error) is kind, error
    assert error.span is not None
    assert error.span.start + 1 == column
    assert fragment in error.render()


NOT_YET = [
    ("y[i] += A[i,j]", 6, "'+='", "write '='"),
    ("y[i] max= A[i,j]", 6, "'max='", "only sums"),
    ("y[i] = exp(b[i])", 8, "the function 'exp'", "NumPy"),
    ("y[i] = max(b[i], 0)", 8, "the function 'max'", "NumPy"),
    ("y[i] = sum[j](A[i,j])", 8, "an explicit sum", "drop 'sum[j]'"),
    ("y[i] = max[j](A[i,j])", 8, "the reduction 'max'", "NumPy"),
    ("y[i] = b[i] ** 2", 13, "'**'", "by itself"),
    ("y[i] = b[i] % 2", 13, "'%'", "NumPy"),
    ("y[i] = b[i] // 2", 13, "'//'", "'/'"),
    ("y[i] = b[i] < 2", 13, "'<'", "NumPy"),
    ("y[i] = b[i] & b[i]", 13, "'&'", "NumPy"),
    ("y[i] = b[i] and b[i]", 13, "'and'", "NumPy"),
    ("y[i] = not b[i]", 8, "'not'", "NumPy"),
    ("y[i] = x[i+1]", 10, "'i + 1'", "slice"),
    ("y[i] = A[i,0]", 12, "'0'", "plain index"),
    ("y[b[i]] = b[i]", 3, "a computed index of a target", "plain indices"),
    ("y[i] = 2u * b[i]", 8, "an unsigned constant", "drop the 'u'"),
]


@pytest.mark.parametrize("text, column, feature, help", NOT_YET, ids=[n[0] for n in NOT_YET])
def test_features_of_later_releases(text: str, column: int, feature: str, help: str) -> None:
    with pytest.raises(mistakes.NotYet) as caught:
        bind(text)
    error = caught.value
    assert isinstance(error, UnsupportedError)
    assert error.span is not None
    assert error.span.start + 1 == column
    assert feature in error.message
    assert help in error.help


def test_all_mistakes_at_once() -> None:
    with pytest.raises(SparseccError) as caught:
        bind("y[i,i] = A[i] * x[k] + foo + exp(x[i])", A=operand(3, 4), x=operand(4), z=operand())
    text = str(caught.value)
    for part in ("'z' is given", "'i' is repeated", "write A[i,j]", "'foo'", "function 'exp'"):
        assert part in text
    assert "found 5 errors" in text


def test_a_wrong_statement_causes_no_second_error() -> None:
    with pytest.raises(mistakes.UnknownOperand) as caught:
        bind("t[i] = nil[i]; y[i] = t[i] * b[i]", b=operand(3))
    assert "found" not in str(caught.value)


@pytest.mark.parametrize(
    "known, fragment",
    [
        (OperandType((3,), "f8"), "there is no element type 'f8'"),
        (OperandType((-1,), "f64"), "negative extent"),
        (OperandType((3,), "f64", CSR), "its format has 2 dimensions, its shape 1"),
    ],
)
def test_bad_operand_types(known: OperandType, fragment: str) -> None:
    with pytest.raises(mistakes.BadOperandType, match=fragment):
        resolve(parse("y[i] = b[i]"), {"b": known})


def test_output_format_must_fit() -> None:
    with pytest.raises(mistakes.OutputFormatRank, match="has 2 dimensions but 'y' has 1"):
        resolve(parse("y[i] = b[i]"), {"b": operand(3)}, CSR)


def test_extent_one_is_not_broadcast() -> None:
    with pytest.raises(mistakes.ExtentMismatch, match="an extent of 1 is not broadcast"):
        bind("y[i] = b[i] + c[i]", b=operand(3), c=operand(1))


def test_unknown_extents_agree_with_anything() -> None:
    resolved = bind("y[i] = b[i] + c[i] + d[i]", b=operand(None), c=operand(3), d=operand(None))
    assert resolved.result_type.shape == (3,)


def test_unused_operand_names_what_it_may_have_been() -> None:
    with pytest.raises(mistakes.UnknownOperand) as caught:
        resolve(parse("y[i] = weights[i]"), {"weight": operand(3)})
    assert "'weight' is given but not used\nhelp: did you mean 'weights'?" in str(caught.value)
    with pytest.raises(mistakes.UnusedOperand, match="leave it out"):
        bind("y[i] = b[i]", b=operand(3), c=operand())


# -- sums and steps -------------------------------------------------------------------------------


def steps(text: str, **operands: OperandType) -> list[str]:
    return [
        f"{s.name}[{','.join(s.indices)}] sum[{','.join(s.reduced)}] "
        + " ".join(f"{a.name}[{','.join(a.indices)}]" for a in loads(s.value))
        for s in bind(text, **operands).steps
    ]


def test_a_product_is_one_step() -> None:
    assert steps("y[i] = A[i,j] * x[j]") == ["y[i] sum[j] A[i,j] x[j]"]


def test_no_sum_is_one_step() -> None:
    assert steps("y[j] = x[j] * 2 - x[j] / a") == ["y[j] sum[] x[j] x[j] a[]"]


def test_a_sum_stands_at_its_term() -> None:
    assert steps("y[i] = b[i] - A[i,j] * x[j]") == [
        "t0[i] sum[j] A[i,j] x[j]",
        "y[i] sum[] b[i] t0[i]",
    ]


def test_terms_that_agree_share_a_step() -> None:
    assert steps("y[i] = A[i,j] - B[j,i]") == ["y[i] sum[j] A[i,j] B[j,i]"]
    assert steps("y[i] = -(A[i,j] * x[j])") == ["y[i] sum[j] A[i,j] x[j]"]


def test_terms_with_other_free_indices_do_not() -> None:
    assert steps("y[i,k] = A[i,j] * x[j] + B[j,k]") == [
        "t0[i] sum[j] A[i,j] x[j]",
        "t1[k] sum[j] B[j,k]",
        "y[i,k] sum[] t0[i] t1[k]",
    ]


def test_terms_of_other_types_do_not() -> None:
    # The i8 sum wraps in i8 before it meets the f64 one.
    narrow = operand(3, 4, dtype="i8")
    assert len(steps("y[i] = A[i,j] + B[i,j]", A=narrow, B=operand(3, 4))) == 3


def test_a_sum_within_a_product_takes_all_of_it() -> None:
    assert steps("y[i] = (A[i,j] + b[i]) * b[i]") == ["y[i] sum[j] A[i,j] b[i] b[i]"]


def test_statements_and_scopes_of_indices() -> None:
    resolved = bind("t[j] = A[i,j]; s = t[i] * x[i]")
    assert [s.name for s in resolved.steps] == ["t", "s"]
    assert resolved.types["t"].shape == (4,)
    assert resolved.args == ("A", "x")
    assert resolved.result == "s"


def test_args_are_in_order_of_first_use() -> None:
    assert bind("y[i] = b[i] - A[i,j] * x[j]").args == ("b", "A", "x")


def test_temporaries_avoid_names() -> None:
    resolved = bind("y[i] = t0[i] - A[i,j]", t0=operand(3), A=operand(3, 4))
    assert [s.name for s in resolved.steps] == ["t1", "y"]


def test_temporaries_are_not_for_users() -> None:
    with pytest.raises(mistakes.UnknownOperand, match="there is no operand 't0'"):
        bind("u[i] = b[i] - A[i,j]; y[i] = u[i] + t0[i]")
    resolved = bind("u[i] = b[i] - A[i,j]; y[t0] = u[t0]")
    assert [s.name for s in resolved.steps] == ["t1", "u", "y"]


def test_result_formats() -> None:
    def result(text: str) -> object:
        return bind(text).result_type.format

    assert result("y[i] = A[i,j] * x[j]") is None
    assert result("y = A[i,j]") == dense_format(0)
    assert result("y[i] = B[j,i] * x[j]") == dense_format(1)
    program, known = parse("y[i,k] = A[i,j] * B[j,k] + B[k,i]"), {"A": OPERANDS["A"]}
    known["B"] = operand(None, 3)
    sparse = resolve(program, known, CSR)
    assert sparse.result_type.format == CSR
    assert sparse.types["t0"].format is None
    dense = resolve(program, known, dense_format(2))
    assert dense.types["t0"].format == dense_format(2)


# -- types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", dtypes.NAMES)
@pytest.mark.parametrize("right", dtypes.NAMES)
def test_promotion_is_numpys(left: str, right: str) -> None:
    a, b = (np.ones(2, dtypes.NUMPY[name]) for name in (left, right))
    known = {"p": operand(2, dtype=left), "q": operand(2, dtype=right)}
    if "bf16" in (left, right) and left != right:
        # NumPy has no rule for bf16 and wide integers, or f16: those of f16 serve.
        other = right if left == "bf16" else left
        common = np.result_type(np.float16, dtypes.NUMPY[other]) if other != "f16" else np.float32
        wanted = dtypes.NUMPY["bf16"] if common == np.float16 else np.dtype(common)
        got = bind("y[i] = p[i] / q[i]", **known).result_type.dtype
        assert dtypes.NUMPY[got] == wanted, (left, right)
        return
    for op, of in (("+", np.add), ("*", np.multiply), ("/", np.true_divide)):
        got = bind(f"y[i] = p[i] {op} q[i]", **known).result_type.dtype
        expected = of(a, b).dtype
        if op == "/" and expected == np.float16 and "f16" not in (left, right):
            expected = np.dtype(np.float64)
        assert dtypes.NUMPY[got] == expected, (left, op, right)


@pytest.mark.parametrize("name", dtypes.NAMES)
@pytest.mark.parametrize("constant", ["2", "2.5", "2j"])
def test_constants_are_weak(name: str, constant: str) -> None:
    array: Any = np.ones(2, dtypes.NUMPY[name])
    python: Any = {"2": 2, "2.5": 2.5, "2j": 2j}[constant]
    for text, expected in (
        (f"y[i] = {constant} * p[i]", (python * array).dtype),
        (f"y[i] = p[i] + {constant}", (array + python).dtype),
    ):
        got = bind(text, p=operand(2, dtype=name)).result_type.dtype
        if name == "bf16" and constant != "2j":  # to NumPy, bf16 meets no weak numbers
            expected = array.dtype
        assert dtypes.NUMPY[got] == expected, text


def test_constants_fold_before_they_meet_a_tensor() -> None:
    (step,) = bind("y[i] = (1 / 2 - 2) * p[i]", p=operand(2, dtype="f32")).steps
    assert next(iter(loads(step.value))) == Load("p", ("i",), "f32")
    assert Const(-1.5, "f32") in getattr(step.value, "__dict__", {}).values()


def test_constants_alone() -> None:
    found = [bind(f"y = {text}").result_type.dtype for text in ("2", "2.5", "2j")]
    assert found == ["i64", "f64", "c128"]


@pytest.mark.parametrize("text", ["300 * p[i]", "p[i] + -1"])
def test_constants_must_fit(text: str) -> None:
    with pytest.raises(mistakes.ConstantRange, match="does not fit u8"):
        bind(f"y[i] = {text}", p=operand(2, dtype="u8"))


@pytest.mark.parametrize("text", ["p[i] - p[i]", "-p[i]", "p[i] * p[i] - q[i]"])
def test_bool_has_no_minus(text: str) -> None:
    known = {"p": operand(2, dtype="bool"), "q": operand(2, dtype="bool")}
    with pytest.raises(mistakes.NoSubtraction):
        bind(f"y[i] = {text}", **{n: t for n, t in known.items() if n in text})


def test_lookups_of_cached_kernels_do_not_import_xdsl() -> None:
    code = (
        "import sys; from sparsecc.frontends import parse, resolve, OperandType; "
        "import sparsecc.frontends.einsum; "
        "resolve(parse('y[i] = b[i]'), {'b': OperandType((3,), 'f64')}); "
        "sys.exit('xdsl' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
