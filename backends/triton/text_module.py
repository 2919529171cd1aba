"""The text of a kernel as a Python module. Nothing of Triton is imported here: the text does it."""

from __future__ import annotations

import hashlib
import linecache
from types import ModuleType
from typing import Any

from sparsecc.diagnostics import InternalError
from sparsecc.kernel import TileSource


def load_text(source: TileSource, text: str | None = None) -> ModuleType:
    """Run a kernel's text as a module (``text``: another one under its name, as a launch's without Triton).

    Triton reads the source of its functions by file and line: the text is left with linecache under a name
    that no file has."""
    text = source.text if text is None else text
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
