"""What the passes that recognise contractions share: which operations they look at, what follows, names, reasons."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg

from sparsecc.passes.sparsification.host import drop_dead_host_ops
from sparsecc.passes.tiling.epilogues import Epilogue


def replace_matches(module: ModuleOp, match: Callable[[linalg.GenericOp], bool]) -> None:
    """Offer every generic of the host's functions to ``match``, which says whether it has become a launch."""
    for fn in [f for f in module.body.block.ops if isinstance(f, func.FuncOp)]:
        matched = False
        for generic in [g for g in fn.walk() if isinstance(g, linalg.GenericOp)]:
            if generic.parent is not None:  # else it went into an epilogue
                matched = match(generic) or matched
        if matched:
            drop_dead_host_ops(fn)


def fused_with(epilogue: Epilogue, generic: linalg.GenericOp) -> list[linalg.GenericOp]:
    """A generic and those after it that the epilogue of its kernel takes over."""
    fused = [generic]
    while (reader := follower(fused[-1])) is not None:
        if not epilogue.fuse(reader, fused[-1].results[0]):
            break
        fused.append(reader)
    return fused


def explain(generic: linalg.GenericOp, reason: str) -> None:
    """Add to the reason that the plan tells a user."""
    known = generic.attributes.get("sparsecc.format_reason")
    parts = [known.data, reason] if isinstance(known, StringAttr) else [reason]
    generic.attributes["sparsecc.format_reason"] = StringAttr("; ".join(parts))


def follower(generic: linalg.GenericOp) -> linalg.GenericOp | None:
    """The only reader of a result, if that is another generic of the same block that reads it as an input."""
    readers = {use.operation for use in generic.results[0].uses}
    if len(readers) != 1:
        return None
    (reader,) = readers
    if not isinstance(reader, linalg.GenericOp) or reader.parent is not generic.parent:
        return None
    return None if generic.results[0] in reader.outputs else reader


def free_name(module: ModuleOp, stem: str) -> str:
    """The first of a kernel's names that no function has."""
    taken = {f.sym_name.data for f in module.body.block.ops if isinstance(f, func.FuncOp)}
    number = 0
    while f"{stem}{number}" in taken:
        number += 1
    return f"{stem}{number}"
