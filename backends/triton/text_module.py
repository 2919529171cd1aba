"""The text of a kernel as a Python module, or the part of it that a launch needs, without Triton."""

from __future__ import annotations

import ast
import hashlib
import linecache
from collections.abc import Callable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

from sparsecc.diagnostics import InternalError
from sparsecc.kernel import TileSource


def load_text(source: TileSource) -> ModuleType:
    """Run a kernel's text as a module.

    Triton reads the source of its functions by file and line: the text is left with linecache under a name
    that no file has."""
    text = source.text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    name = f"sparsecc_kernel_{source.entry}_{digest}"
    filename = f"{name}.py"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    module = ModuleType(name)
    module.__file__ = filename
    exec(compile(text, filename, "exec"), module.__dict__)
    return module


def member(module: ModuleType, name: str) -> Any:
    """A name that the text must define."""
    found = getattr(module, name, None)
    if found is None:
        raise InternalError(f"the text of a kernel does not define {name!r}")
    return found


Grid = Callable[..., tuple[int, ...]]
Work = Callable[..., Mapping[str, int]]


def launch_functions(source: TileSource) -> tuple[Grid, Work | None]:
    """``grid`` and ``work`` (if there is one) of a kernel's text, without what the text has of Triton.

    Statements that need Triton are left out, and those that need what they define. Plain functions stay; of Triton they
    may use ``triton.cdiv`` and ``triton.next_power_of_2``."""
    tree = ast.parse(source.text)
    of_triton: set[str] = set()
    kept: list[ast.stmt] = []
    for statement in tree.body:
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        plain = isinstance(statement, ast.FunctionDef) and not statement.decorator_list
        if plain or not (_imports_triton(statement) or names & of_triton):
            kept.append(statement)
        else:
            of_triton |= _defined(statement)
    module = ModuleType(f"sparsecc_launch_{source.entry}")
    module.__dict__["triton"] = SimpleNamespace(cdiv=_cdiv, next_power_of_2=_next_power_of_2)
    code = compile(ast.Module(kept, []), f"{module.__name__}.py", "exec")
    exec(code, module.__dict__)
    return member(module, "grid"), getattr(module, "work", None)


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


def _next_power_of_2(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def _imports_triton(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import):
        return any(name.name.partition(".")[0] == "triton" for name in statement.names)
    if isinstance(statement, ast.ImportFrom):
        return (statement.module or "").partition(".")[0] == "triton"
    return False


def _defined(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {name.asname or name.name.partition(".")[0] for name in statement.names}
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {node.id for node in stored if isinstance(node.ctx, ast.Store)}
