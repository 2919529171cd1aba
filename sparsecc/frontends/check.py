"""Checks of names, ranks and extents; all mistakes of a program are collected.

A scope knows the operands and the targets of the statements above the present one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from sparsecc.diagnostics import ErrorCollector, Note, Span, did_you_mean
from sparsecc.formats import Format
from sparsecc.frontends import dtypes, mistakes
from sparsecc.frontends.ast import (
    FUNCTIONS,
    Access,
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    IndexExpr,
    Number,
    Program,
    Reduce,
    Scalar,
    Unary,
    names_read,
    walk,
)
from sparsecc.frontends.mistakes import NotYet


@dataclass(frozen=True)
class OperandType:
    """What is known of a tensor: extents (None: not known), element type, storage.

    A ``format`` of None is one that the compiler chooses; scalars are dense either way."""

    shape: tuple[int | None, ...]
    dtype: str
    format: Format | None = None


@dataclass
class Scope:
    """The names of a program while it is resolved."""

    program: Program
    operands: Mapping[str, OperandType]
    errors: ErrorCollector
    out_dtype: str | None = None
    """What operands are converted to before anything is computed; None: nothing."""
    types: dict[str, OperandType] = field(default_factory=dict[str, OperandType])
    """Operands, and all that has been computed so far."""
    targets: set[str] = field(default_factory=set[str])
    """Names that statements above have defined."""
    poisoned: set[str] = field(default_factory=set[str])
    """Targets of statements with mistakes: known, but of no type."""
    temporaries: int = 0

    def __post_init__(self) -> None:
        self.types.update(self.operands)

    def poison(self, statement: Assign) -> None:
        """Let later statements read the target without an error of their own."""
        self.poisoned.add(target_of(statement)[0])

    def fresh(self) -> str:
        """A name for a temporary: t0, t1, … but for those that are taken."""
        taken = set(re.findall(r"\w+", str(self.program))) | set(self.types)
        while True:
            name = f"t{self.temporaries}"
            self.temporaries += 1
            if name not in taken:
                return name

    def maybe_sparse(self, name: str) -> bool:
        """Whether a tensor is stored sparsely, or may come to be."""
        known = self.types[name]
        if not known.shape:
            return False
        return known.format is None or not known.format.is_dense


def target_of(statement: Assign) -> tuple[str, tuple[str, ...]]:
    """The name and indices of a target."""
    target = statement.target
    if isinstance(target, Scalar):
        return target.name, ()
    return target.name, tuple(i.name for i in target.indices if isinstance(i, Index))


# -- the whole program ----------------------------------------------------------------------------


def check_operands(scope: Scope) -> None:
    """Operand types, operands that nothing reads, names with two meanings."""
    for name, known in scope.operands.items():
        if problem := _problem(known):
            place = f"operand {name}"
            scope.errors.add(mistakes.BadOperandType(place=place, name=name, problem=problem))
    mistakes_of_dtype(scope)
    statements = scope.program.statements
    read = {name for s in statements for name in names_read(s.expr)}
    targets: dict[str, Assign] = {}
    for statement in statements:
        name, span = target_of(statement)[0], statement.target.span
        if name in scope.operands:
            scope.errors.add(mistakes.TargetIsOperand(span=span, name=name))
        if name in targets:
            note = Note("first assigned here", targets[name].target.span)
            scope.errors.add(mistakes.AssignedTwice(span=span, name=name, notes=[note]))
        targets.setdefault(name, statement)
    last = target_of(statements[-1])[0]
    for statement in statements[:-1]:
        name = target_of(statement)[0]
        if name not in read and targets[name] is statement and name != last:
            scope.errors.add(mistakes.UnusedStatement(span=statement.target.span, name=name))
    for name in scope.operands:
        if name not in read and name not in targets:
            used = sorted(read - set(scope.operands) - set(targets))
            help = did_you_mean(name, used) if used else "leave it out"
            scope.errors.add(mistakes.UnusedOperand(place=_place(scope), name=name, help=help))


def mistakes_of_dtype(scope: Scope) -> None:
    """Operands that ``out_dtype`` would make narrower, and an ``out_dtype`` that is no type."""
    wanted = scope.out_dtype
    if wanted is None:
        return
    if wanted not in dtypes.NAMES:
        help = did_you_mean(wanted, dtypes.NAMES)
        scope.errors.add(mistakes.UnknownOutDtype(dtype=wanted, place=_place(scope), help=help))
        scope.out_dtype = None
        return
    for name, known in scope.operands.items():
        if known.dtype in dtypes.NAMES and not dtypes.widens(known.dtype, wanted):
            wide = dtypes.promote(known.dtype, wanted)
            scope.errors.add(
                mistakes.NarrowedOperand(
                    name=name, found=known.dtype, wanted=wanted, wide=wide, place=_place(scope)
                )
            )


def _place(scope: Scope) -> str:
    span = scope.program.span
    return span.place if span is not None else ""


def _problem(known: OperandType) -> str:
    """What is wrong with an operand's type; empty if nothing is."""
    if known.dtype not in dtypes.NAMES:
        help = did_you_mean(known.dtype, dtypes.NAMES)
        return f"there is no element type {known.dtype!r}; {help}"
    extents = [extent for extent in known.shape if extent is not None]
    if any(type(extent) is not int for extent in extents):
        return f"the shape {known.shape} has an extent that is no integer"
    if any(extent >= 2**63 for extent in extents):
        return f"the shape {known.shape} has an extent beyond 2**63"
    if any(extent is not None and extent < 0 for extent in known.shape):
        return f"the shape {known.shape} has a negative extent"
    if known.format is not None and known.format.rank != len(known.shape):
        return f"its format has {known.format.rank} dimensions, its shape {len(known.shape)}"
    return ""


# -- one statement --------------------------------------------------------------------------------


def check_statement(scope: Scope, statement: Assign) -> dict[str, int | None] | None:
    """The extent of each index of a statement (None: not known); None if there are mistakes."""
    before = len(scope.errors.errors)
    _check_features(scope, statement)
    _check_target(scope, statement)
    indices = _index_spans(statement)
    extents: dict[str, int | None] = {}
    uses: dict[str, tuple[int, Access, Span | None]] = {}
    for node in walk(statement.expr):
        if isinstance(node, Access | Scalar) and _check_use(scope, statement, node, indices):
            assert isinstance(node, Access)
            _check_extents(scope, node, extents, uses)
    for name, span in indices.items():
        if name in scope.types or name == target_of(statement)[0]:
            scope.errors.add(mistakes.TensorAndIndex(span=span, name=name))
    if isinstance(statement.target, Access):
        on_the_right = {i.name for a in _accesses(statement.expr) for i in _plain(a.indices)}
        on_the_right |= names_read(statement.expr)  # in computed indices: said already
        for index in _plain(statement.target.indices):
            if index.name not in on_the_right:
                scope.errors.add(mistakes.BroadcastTarget(span=index.span, index=index.name))
    return extents if len(scope.errors.errors) == before else None


def _accesses(expr: Expr) -> list[Access]:
    return [node for node in walk(expr) if isinstance(node, Access)]


def _plain(indices: Sequence[Index | IndexExpr]) -> list[Index]:
    return [i for i in indices if isinstance(i, Index)]


def _index_spans(statement: Assign) -> dict[str, Span | None]:
    """Every index of a statement with the place of its first use."""
    found: dict[str, Span | None] = {}
    target = [statement.target] if isinstance(statement.target, Access) else []
    for access in target + _accesses(statement.expr):
        for index in _plain(access.indices):
            found.setdefault(index.name, index.span)
    return found


def _check_target(scope: Scope, statement: Assign) -> None:
    if isinstance(statement.target, Scalar):
        return
    seen: set[str] = set()
    for index in statement.target.indices:
        if isinstance(index, IndexExpr):
            feature, help = "a computed index of a target", "assign to plain indices"
            scope.errors.add(NotYet(span=index.span, feature=feature, help=help))
        elif index.name in seen:
            scope.errors.add(mistakes.RepeatedTargetIndex(span=index.span, index=index.name))
        else:
            seen.add(index.name)


def _check_use(
    scope: Scope, statement: Assign, use: Access | Scalar, indices: Mapping[str, Span | None]
) -> bool:
    """Whether a use is an access of a known tensor with the right number of indices."""
    name, add = use.name, scope.errors.add
    found = len(use.indices) if isinstance(use, Access) else 0
    if name == target_of(statement)[0]:
        add(mistakes.TargetRead(span=use.span, name=name))
        return False
    if name in scope.poisoned:
        return False
    known = scope.types.get(name)
    if known is None:
        if name in indices:
            if found == 0:
                add(mistakes.IndexAsValue(span=use.span, name=name))
            else:
                add(mistakes.TensorAndIndex(span=use.span, name=name))
            return False
        if function := _misspelt(scope, use):
            help = f"did you mean {function!r}?"
            add(mistakes.UnknownFunction(span=use.span, name=name, help=help))
            return False
        later = [target_of(s)[0] for s in scope.program.statements]
        help = "it is defined only later" if name in later else ""
        add(
            mistakes.UnknownOperand(
                span=use.span, name=name, help=help or did_you_mean(name, sorted(scope.types))
            )
        )
        return False
    if found != len(known.shape):
        rank = len(known.shape)
        written = f"{name}[{','.join('ijklmnop'[:rank])}]" if rank else name
        add(
            mistakes.RankMismatch(
                span=use.span,
                name=name,
                rank=rank,
                dimensions=_plural("dimension", rank),
                found=found,
                indices=_plural("index", found),
                help=f"write {written}",
            )
        )
        return False
    return isinstance(use, Access)


def _plural(word: str, count: int) -> str:
    if count == 1:
        return word
    return "indices" if word == "index" else f"{word}s"


def _check_extents(
    scope: Scope,
    access: Access,
    extents: dict[str, int | None],
    uses: dict[str, tuple[int, Access, Span | None]],
) -> None:
    for index, extent in zip(access.indices, scope.types[access.name].shape, strict=True):
        if not isinstance(index, Index):
            continue
        extents.setdefault(index.name, None)
        if extent is None:
            continue
        if index.name not in uses:
            uses[index.name] = (extent, access, index.span)
            extents[index.name] = extent
            continue
        wanted, other, span = uses[index.name]
        if extent != wanted:
            note = Note(f"{index.name!r} is {wanted} here", span)
            help = (
                "an extent of 1 is not broadcast: drop that dimension"
                if extent == 1 or wanted == 1
                else ""
            )
            scope.errors.add(
                mistakes.ExtentMismatch(
                    span=index.span,
                    index=index.name,
                    found=extent,
                    name=access.name,
                    wanted=wanted,
                    other=other.name,
                    notes=[note] if span is not None else [],
                    help=help,
                )
            )


# -- what the language has and this release has not -----------------------------------------------

_BEFORE = "compute it with NumPy and pass it as an operand"
_GATHER = "use a plain index; slice or gather with NumPy before"
_INSTEAD = {"**": "multiply the operand by itself", "//": "divide with '/'"}


def _check_features(scope: Scope, statement: Assign) -> None:
    if statement.op is not None:
        span = _between(statement, statement.op)
        help = "write '=': indices that are only on the right are summed"
        if statement.op != "+":
            help = "only sums can be compiled, written with '='"
        feature = f"a reduction with '{statement.op}='"
        scope.errors.add(NotYet(span=span, feature=feature, help=help))
    for node in walk(statement.expr):
        if problem := _unsupported(node):
            feature, help = problem
            if not _misspelt(scope, node):
                scope.errors.add(NotYet(span=_feature_span(node), feature=feature, help=help))


def _misspelt(scope: Scope, node: Expr) -> str:
    """Which function the access ``exq(A[i,j])`` was meant to call, if it looks like a call."""
    if not isinstance(node, Access) or node.name in scope.types:
        return ""
    if not any(isinstance(i, IndexExpr) for i in node.indices):
        return ""
    close = get_close_matches(node.name, sorted(FUNCTIONS), n=1, cutoff=0.6)
    return close[0] if close else ""


def _feature_span(node: Expr) -> Span | None:
    """The operator, the computed index, or else the node."""
    if isinstance(node, Access):
        return next(i.span for i in node.indices if isinstance(i, IndexExpr))
    if isinstance(node, Binary) and node.lhs.span is not None and node.rhs.span is not None:
        source = node.lhs.span.source
        start = source.text.find(node.op, node.lhs.span.end, node.rhs.span.start)
        return Span(source, start, start + len(node.op)) if start >= 0 else node.span
    return node.span


def _unsupported(node: Expr) -> tuple[str, str] | None:
    match node:
        case Call(function):
            return f"the function {function!r}", "apply it to the operand or the result with NumPy"
        case Reduce(reduction, indices):
            names = ", ".join(str(i) for i in indices)
            if reduction == "sum":
                return (
                    "an explicit sum",
                    f"indices not in the target are summed: drop 'sum[{names}]'",
                )
            return f"the reduction {reduction!r}", "reduce the result with NumPy"
        case Binary(op) if op not in "+-*/":
            return f"the operator {op!r}", _INSTEAD.get(op, _BEFORE)
        case Unary("not"):
            return "the operator 'not'", _BEFORE
        case Number(_, True):
            return "an unsigned constant", "drop the 'u': constants take their operand's type"
        case Access(_, indices) if computed := [i for i in indices if isinstance(i, IndexExpr)]:
            return f"the computed index {str(computed[0])!r}", _GATHER
        case _:
            return None


def _between(statement: Assign, op: str) -> Span | None:
    """The place of a compound assignment's operator."""
    target = statement.target.span
    if target is None:
        return None
    start = target.source.text.index(op, target.end)
    return Span(target.source, start, target.source.text.index("=", start) + 1)
