"""The walls of the house: which room may import which, no import circles, no overgrown files.

Every import counts, those inside functions and under TYPE_CHECKING included.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WINGS = ("dialects", "passes", "backends")  # folders at the top that are packages of sparsecc

GROUND = {
    "diagnostics", "elements", "entry_points", "formats", "statistics", "targets", "kernel", "request",
}  # fmt: skip
VOCABULARY = GROUND | {"storage", "dialects", "selection"}
MACHINE_ROOM = VOCABULARY | {"frontends", "passes", "backends", "explanation", "runtime"}
CONDUCTOR = MACHINE_ROOM | {"plugins", "pipeline", "chooser", "driver", "inspection"}
DOOR = CONDUCTOR | {"specs", "plan_options", "api"}

MAY_IMPORT: dict[str, set[str]] = {
    # room: the rooms that it may import, beside itself
    "diagnostics": set(),
    "elements": set(),
    "entry_points": {"diagnostics"},
    "formats": {"diagnostics"},
    "targets": {"diagnostics"},
    "statistics": set(),
    "kernel": set(),
    "request": {"statistics"},
    "storage": GROUND,
    "dialects": GROUND,
    "selection": GROUND,
    "frontends": VOCABULARY,
    "passes": VOCABULARY,
    "backends": VOCABULARY,
    "explanation": GROUND | {"storage", "selection"},
    "runtime": MACHINE_ROOM,
    "plugins": MACHINE_ROOM,
    "pipeline": MACHINE_ROOM | {"plugins"},
    "chooser": MACHINE_ROOM | {"plugins", "pipeline"},
    "driver": MACHINE_ROOM | {"plugins", "pipeline", "chooser"},
    "specs": MACHINE_ROOM,
    "plan_options": MACHINE_ROOM | {"driver", "specs"},
    "inspection": GROUND | {"storage"},
    "api": CONDUCTOR | {"specs", "plan_options"},
    "bench": DOOR,
    "research": DOOR | {"bench"},
    "integrations": DOOR,
    "cli": DOOR | {"bench", "research"},
    "__main__": {"cli"},
    "": DOOR,  # sparsecc itself
}

LONG_FILES: dict[str, str] = {
    # path: why more than 400 lines belong together
}


def sources(*folders: str) -> Iterator[Path]:
    """The Python files below folders of the repository; the links in sparsecc/ lead nowhere new."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if folder != "sparsecc" or path.relative_to(ROOT).parts[1] not in WINGS:
                yield path


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] in WINGS:
        parts.insert(0, "sparsecc")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sources("sparsecc", *WINGS)}


def imports(path: Path, module: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file imports; relative names resolved."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".") + (["_"] if path.name == "__init__.py" else [])
                base = ".".join([*above[: -node.level], *([base] if base else [])])
            yield from ((node.lineno, f"{base}.{name.name}") for name in node.names)


def imported_modules(module: str) -> Iterator[tuple[int, str]]:
    """Our own modules among a module's imports."""
    for line, name in imports(MODULES[module], module):
        target = name if name in MODULES else name.rpartition(".")[0]
        if target in MODULES:
            yield line, target


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_imports_point_down() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: give the room {room(module)!r} a line in MAY_IMPORT"
        for module, path in MODULES.items()
        if room(module) not in MAY_IMPORT
    ]
    for module, path in MODULES.items():
        allowed = MAY_IMPORT.get(room(module), set()) | {room(module)}
        wrong += [
            f"{path.relative_to(ROOT)}:{line}: {room(module)} may not import {target}"
            for line, target in imported_modules(module)
            if room(target) not in allowed
        ]
    assert not wrong, "\n".join(wrong)


def test_no_import_circles() -> None:
    graph = {module: {target for _, target in imported_modules(module)} for module in MODULES}
    assert not [module for module, targets in graph.items() if module in targets]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError("import circle: " + " <- ".join(error.args[1])) from None


def test_folders_are_never_imported_by_their_bare_names() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: import sparsecc.{name}"
        for path in sources("sparsecc", *WINGS, "tests", "examples", "benchmarks")
        for line, name in imports(path, module_name(path))
        if name.split(".")[0] in WINGS
    ]
    assert not wrong, "\n".join(wrong)


def test_long_files_have_a_reason() -> None:
    long = {
        str(path.relative_to(ROOT))
        for path in sources("sparsecc", *WINGS, "tests", "examples", "benchmarks")
        if len(path.read_text(encoding="utf-8").splitlines()) > 400
    }
    assert long == set(LONG_FILES), "split them, or write the reason in (or out of) LONG_FILES"


def test_the_checks_see_the_house() -> None:
    seen = {"sparsecc", "sparsecc.diagnostics", "sparsecc.formats.level", "sparsecc.passes"}
    assert seen <= set(MODULES)
    below = {name for _, name in imported_modules("sparsecc.formats.format")}
    assert "sparsecc.diagnostics" in below
