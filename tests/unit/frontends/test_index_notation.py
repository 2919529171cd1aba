"""Grammar, canonical printer and syntax errors."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecc.diagnostics import ExpressionError, LimitError, SparseccError
from sparsecc.frontends import ast, parse
from sparsecc.frontends import index_notation as syntax
from tests.oracle.corpus import ROWS, Row

BEYOND = {
    # Rows of the corpus that parse but can't be compiled yet.
    "y[j] min= x[i] + A[i,j]": None,
    "y[j] or= (f[i] and A[i,j]) and not v[j]": "y[j] or= f[i] and A[i,j] and not v[j]",
    "C[i,j] or= A[i,k] and B[k,j]": None,
    "s = A[i,j] * A[j,k] * A[i,k]": None,
    "m[i] max= where(stored(A[i,j]), A[i,j], -inf)": "m[i] max= where(stored(A[i,j]),A[i,j],-inf)",
    "C[i,j] = max(A[i,j], 0)": "C[i,j] = max(A[i,j],0)",
    "C[i,j] = exp(A[i,j])": None,
    "S[i,j] = M[i,j] * Q[i,k]; E[i,j] = where(stored(S[i,j]), exp(S[i,j] - m[i]), 0); "
    "O[i,l] = E[i,j] / z[i] * V[j,l]": "S[i,j] = M[i,j] * Q[i,k]; "
    "E[i,j] = where(stored(S[i,j]),exp(S[i,j] - m[i]),0); O[i,l] = E[i,j] / z[i] * V[j,l]",
    "y[i] = x[i+r] * w[r]": "y[i] = x[i + r] * w[r]",
    "Y[e,k] = X[idx[e],k]": None,
    "Y[dst[e],k] += w[e] * X[src[e],k]": None,
    "y[i] = where(A[i,j] != 0, 1, 0)": "y[i] = where(A[i,j] != 0,1,0)",
    "y[i] = exp(x[i]) * sum[j](A[i,j])": None,
    "s = r[i] * r[i]; t = q[i] * A[i,j] * q[j]; y[i] = x[i] + s / t * q[i]": None,
}

GOOD = {
    "order = notes + maximum": None,
    "android = nothing * orange": None,
    "y = -x**2": "y = -x ** 2",
    "y = (-x) ** 2": None,
    "y = 2 ** -x": None,
    "y = (a ** b) ** c": None,
    "y = a ** b ** c": "y = a ** b ** c",
    "y = a - (b - c)": None,
    "y = (a - b) - c": "y = a - b - c",
    "y = a / (b * c)": None,
    "y = +x": "y = x",
    "y = - - x": "y = --x",
    "y = a and b or c and not d": None,
    "y = (a or b) and c": None,
    "y = (a < b) == c": None,
    "y = a | b ^ c & d": None,
    "y = (a | b) & c": None,
    "y min= x[i]": None,
    "y -= x[i]": None,
    "y &= x[i]": None,
    "y = x == 3": None,
    "y[i] = A_{i,j} * x{j}": "y[i] = A[i,j] * x[j]",
    "y{i} = A(i,j)": "y[i] = A[i,j]",
    "y = 1e3 + .5 + 2. + 3j + 4u": "y = 1000.0 + 0.5 + 2.0 + 3.0j + 4u",
    "y = 1e30 * 1e-30 * inf": "y = 1e+30 * 1e-30 * inf",
    "y[i] = x[i];  # a comment\n z[i] = y[i];": "y[i] = x[i]; z[i] = y[i]",
    "y = (((x)))": "y = x",
    "y = a // b % c": None,
    "y = sum[i,j](A[i,j] * max[k](B[k]))": None,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_corpus_prints_canonically(row: Row) -> None:
    program = parse(row.text)
    text = str(program)
    assert "(" not in text.replace("(A[i,j] + B[i,j])", "").replace("(1 - d)", "")
    assert parse(text) == program
    assert str(parse(text)) == text


@pytest.mark.parametrize("text", [*BEYOND, *GOOD])
def test_canonical_text(text: str) -> None:
    program = parse(text)
    expected = {**BEYOND, **GOOD}[text] or text
    assert str(program) == expected
    assert parse(expected) == program


def test_precedence_is_structure() -> None:
    (statement,) = parse("y = a + b * -c[i]").statements
    c = ast.Access("c", (ast.Index("i"),))
    product = ast.Binary("*", ast.Scalar("b"), ast.Unary("-", c))
    assert statement.expr == ast.Binary("+", ast.Scalar("a"), product)


def test_numbers_differ_by_spelling() -> None:
    assert ast.Number(2) != ast.Number(2.0)
    assert ast.Number(float("nan")) == ast.Number(float("nan"))
    assert ast.Number(0.0) != ast.Number(-0.0)


def test_negative_numbers_of_programs_print_unambiguously() -> None:
    square = ast.Binary("**", ast.Number(-2), ast.Number(2))
    assert str(square) == "(-2) ** 2"


def test_spans_are_where_things_are() -> None:
    text = "y[i] = b[i] - A[i,j] * x[j]"
    (statement,) = parse(text).statements
    found = {str(e): text[e.span.start : e.span.end] for e in ast.walk(statement.expr) if e.span}
    assert found["A[i,j] * x[j]"] == "A[i,j] * x[j]"
    assert found["x[j]"] == "x[j]"
    assert found["b[i] - A[i,j] * x[j]"] == "b[i] - A[i,j] * x[j]"


BAD: list[tuple[str, type[SparseccError], int, str]] = [
    ("", syntax.EmptyExpression, 1, "empty"),
    ("  # nothing", syntax.EmptyExpression, 1, "empty"),
    ("y[i] = ", syntax.UnexpectedEnd, 7, "a value"),
    ("y[i] = A[i,j", syntax.UnexpectedEnd, 13, "']'"),
    ("y[i] = A[i,j] *", syntax.UnexpectedEnd, 16, "a value"),
    ("y = (a + b", syntax.UnexpectedEnd, 11, "')'"),
    ("y", syntax.UnexpectedEnd, 2, "'='"),
    ("y[i] = A[i,j] $ x", syntax.BadCharacter, 15, "'$'"),
    ("y[i:2] = x", syntax.BadCharacter, 4, "slices"),
    ("y = 'a'", syntax.BadCharacter, 5, "part of an expression"),
    ("ÿ = x", syntax.BadCharacter, 1, "ÿ"),
    ("y = a < b < c", syntax.ChainedComparison, 11, "a < b and b < c"),
    ("y = a == b != c", syntax.ChainedComparison, 12, "chain"),
    ("y[i] = A[i,j])", syntax.UnbalancedBracket, 14, "partner"),
    ("y[i] = A[i,j]]", syntax.UnbalancedBracket, 14, "partner"),
    ("y[] = x", syntax.SyntaxMistake, 3, "expected a value"),
    ("y[i,] = x", syntax.SyntaxMistake, 5, "expected a value"),
    ("y[i] x", syntax.SyntaxMistake, 6, "'='"),
    ("y[i] + 2", syntax.SyntaxMistake, 6, "'='"),
    ("y = x = 3", syntax.SyntaxMistake, 7, "'=='"),
    ("y = a b", syntax.SyntaxMistake, 7, "an operator"),
    ("y = a * / b", syntax.SyntaxMistake, 9, "a value"),
    ("y = x;; z = y", syntax.SyntaxMistake, 7, "a name"),
    ("= x", syntax.SyntaxMistake, 1, "a name"),
    ("2 = x", syntax.SyntaxMistake, 1, "a name"),
    ("y = 2x", syntax.SyntaxMistake, 6, "an operator"),
    ("y[i) = x[i]", syntax.UnbalancedBracket, 4, "partner"),
    ("y = (a[i) + b", syntax.SyntaxMistake, 9, "']'"),
    ("sum = 3", syntax.ReservedName, 1, "a reduction"),
    ("y = exp[i]", syntax.ReservedName, 5, "a function"),
    ("y = max + 1", syntax.ReservedName, 5, "a reduction"),
    ("inf[i] = x[i]", syntax.ReservedName, 1, "a number"),
    ("y = x[i](3)", syntax.UnknownReduction, 5, "known: all, any"),
    ("y = 1" + "0" * 50, syntax.NumberTooLong, 5, "digits"),
    ("y = x\n  + * z", syntax.SyntaxMistake, 5, "a value"),
]


@pytest.mark.parametrize("text, kind, column, fragment", BAD, ids=[repr(b[0])[:30] for b in BAD])
def test_mistakes(text: str, kind: type[SparseccError], column: int, fragment: str) -> None:
    with pytest.raises(SparseccError) as caught:
        parse(text)
    error = caught.value
    assert type(error) is kind
    assert issubclass(kind, ExpressionError)
    assert error.span is not None
    assert error.span.source.position(error.span.start)[1] == column
    assert fragment in error.render()
    assert "^" in error.render()
    assert error.__cause__ is None or error.__suppress_context__


@pytest.mark.parametrize(
    "text",
    [
        "y = " + "(" * 5000 + "x" + ")" * 5000 + "[",
        "y = " + "-" * 5000 + "x",
        "y = " + "+".join(["x"] * 5000),
        "y = " + "**".join(["x"] * 5000),
        "y = " + "not " * 4000 + "x",
        "y[" + "-" * 5000 + "i] = x",
        "y = " + "A[" * 5000 + "i" + "]" * 5000,
        "y = " + "x" * 30_000,
    ],
    ids=range(8),
)
def test_absurd_input_is_an_error_of_ours(text: str) -> None:
    with pytest.raises((ExpressionError, LimitError)):
        parse(text)


def test_many_parentheses_are_no_depth() -> None:
    assert parse("y = " + "(" * 5000 + "x" + ")" * 5000) == parse("y = x")


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("yAxij0123.+-*/%<>=!&|^()[]{},; #\nand or not sum e"), max_size=30))
def test_any_text_parses_or_is_a_mistake(text: str) -> None:
    try:
        program = parse(text)
    except SparseccError as error:
        assert error.message
    else:
        assert parse(str(program)) == program
