"""``.mlir`` text to a verified module; any mistake in it is an IRError with its place."""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError, VerifyException

from sparsecc.diagnostics import FileError, IRError, Note, Source, Span, SparseccError, did_you_mean
from sparsecc.dialects.registry import make_context
from sparsecc.dialects.sparse_tensor.argument_facts import verify_facts
from sparsecc.dialects.sparse_tensor.types import op_place, verify_types
from sparsecc.dialects.text.parser import ModuleParser

MAX_TEXT = 64 << 20
"""Most bytes of a program that are read."""


class BadSyntax(IRError):
    """The text does not parse."""


class BadOperation(IRError):
    """An operation that does not verify."""

    text = "'{op}' does not verify: {problem}"


class EmptyProgram(IRError):
    text = "the program is empty"
    help_text = "write at least one operation, for example a func.func"


class TooDeep(IRError):
    text = "the program is nested too deeply"


class NoEntry(IRError):
    text = "the program has no function @{entry}"


class NoBody(IRError):
    text = "function @{name} has no body; functions of other modules can't be called yet"


class Unreadable(FileError):
    text = "{problem}"


def parse_module(text: str, name: str = "<input>") -> ModuleOp:
    """The verified module of a program's text; ``name`` stands in the places of its operations.

    Raises IRError."""
    module = _parse(text, name)
    verify_module(module, Source(text, name))
    return module


def read_module(path: str | Path) -> ModuleOp:
    """The verified module in a file. Raises FileError, IRError."""
    return parse_module(read_text(path), str(path))


def read_text(path: str | Path) -> str:
    """The text of a program's file. Raises FileError."""
    name = str(path)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_TEXT + 1)
    except OSError as error:
        raise Unreadable(problem=error.strerror or str(error), place=name) from None
    if len(data) > MAX_TEXT:
        raise Unreadable(problem=f"a program of over {MAX_TEXT >> 20} MiB is not read", place=name)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte {error.start} is not UTF-8; this is no program text"
        raise Unreadable(problem=problem, place=f"{name}:{line}") from None


def _parse(text: str, name: str) -> ModuleOp:
    source = Source(text, name)
    parser: ModuleParser | None = None
    try:
        parser = ModuleParser(make_context(), text, name)
        if _is_empty(text):
            raise EmptyProgram(place=name)
        return parser.parse_module()
    except ParseError as error:
        message = error.msg.strip()
        notes = [Note(note or "here", _span(source, span)) for span, note in _references(error)]
        raise BadSyntax(message, span=_span(source, error.span), notes=notes) from None
    except RecursionError:
        raise TooDeep(place=name) from None
    except SparseccError:
        raise
    except Exception as error:
        # xDSL checks much of what a text may do wrong by assert or a Python exception of its own.
        message = str(error).strip() or f"{type(error).__name__} while reading the operation here"
        at = min(parser.pos, len(text)) if parser is not None else 0
        raise BadSyntax(message, span=Span(source, at, at + 1)) from error


def _is_empty(text: str) -> bool:
    """Whether nothing but comments and space is there."""
    return all(not line or line.startswith("//") for line in map(str.strip, text.splitlines()))


def _span(source: Source, span: object) -> Span:
    start, end = getattr(span, "start", 0), getattr(span, "end", 0)
    start = min(start, len(source.text))
    return Span(source, start, max(min(end, len(source.text)), start + 1))


def _references(error: ParseError) -> list[tuple[object, str | None]]:
    """The further places of a parse error that has several."""
    return list(getattr(error, "refs", ()))


def check_entry(module: ModuleOp, entry: str) -> None:
    """Whether a program has the function that is to be run. Raises NoEntry, NoBody."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    names = [fn.sym_name.data for fn in functions]
    if entry not in names:
        raise NoEntry(entry=entry, help=did_you_mean(entry, names) if names else "")
    for fn in functions:
        if not fn.body.blocks:
            raise NoBody(name=fn.sym_name.data, place=op_place(fn))


def verify_module(module: ModuleOp, source: Source | None = None) -> None:
    """Check types and operations; an IRError names the first operation that does not verify.

    With a ``source`` the error shows its line."""
    verify_types(module)
    try:
        module.verify()
    except RecursionError:
        raise TooDeep(place=source.name if source is not None else "") from None
    except Exception as error:
        raise _located(module, error, source) from None
    verify_facts(module)


def _located(module: ModuleOp, error: Exception, source: Source | None) -> IRError:
    """The error of the innermost operation that does not verify by itself."""
    culprit: Operation = module
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except Exception as own:
            culprit, error = op, own
            break
    cause = error.__cause__ if isinstance(error.__cause__, VerifyException) else error
    problem = str(cause).strip()
    place = op_place(culprit)
    span = _span_of(source, place)
    return BadOperation(op=culprit.name, problem=problem, place=place, span=span)


def _span_of(source: Source | None, place: str) -> Span | None:
    """The rest of the line at ``file:line:col``, if it is a place in that source."""
    name, _, rest = place.rpartition(":")
    name, _, line = name.rpartition(":")
    if source is None or name != source.name or not (line.isdigit() and rest.isdigit()):
        return None
    lines = source.text.split("\n")
    start = sum(len(text) + 1 for text in lines[: int(line) - 1]) + int(rest) - 1
    return Span(source, start, start + len(lines[int(line) - 1].rstrip()) - int(rest) + 1)
