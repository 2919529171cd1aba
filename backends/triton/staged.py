"""Staged kernels on packed weights: a contraction and a schedule to text (staged_shape says what they mean)."""

from __future__ import annotations

from collections.abc import Mapping

from sparsecc.backends.triton import fragment_text as text
from sparsecc.backends.triton import staged_text as parts
from sparsecc.backends.triton.contraction import Contraction
from sparsecc.backends.triton.staged_shape import FAMILY, PARAMETERS, shape
from sparsecc.kernel import TileSource

__all__ = ["FAMILY", "PARAMETERS", "emit", "shape"]


def emit(contraction: Contraction, schedule: Mapping[str, int]) -> TileSource:
    """The kernel as text."""
    staged = shape(contraction, schedule)
    c = contraction
    arguments = text.arguments(c, staged.splitk)
    names = ", ".join(name for name, _, _ in arguments)
    pieces = [
        text.head(c, FAMILY, schedule, parts.SENTENCES),
        text.constants(parts.constants(staged)),
        "\n",
        text.layouts(parts.layouts(staged)),
        parts.functions(staged),
        f"\n\n@gluon.jit\ndef {c.name}({names}):\n",
        text.body(parts.kernel(staged)),
        text.launch(
            c,
            staged.splitk,
            rows=staged.tiles * 16,
            tokens=staged.tokens,
            cells=staged.tokens * staged.tiles * 16,
            group=staged.group,
        ),
    ]
    aligned = ["packed", *(["x"] if c.aligned else []), *(["partial"] if staged.splitk > 1 else [])]
    return TileSource(
        entry=c.name,
        text="".join(pieces),
        gluon=True,
        arguments=tuple((name, kind) for name, kind, _ in arguments),
        roles=tuple(role for _, _, role in arguments),
        aligned=tuple(aligned),
        warps=staged.all_warps,
        registers=255
        if staged.sums >= 32
        else None,  # else the assembler spills to fit blocks that don't come
        instructions=("IMMA.SP" if c.dtype == "i8" else "HMMA.SP",),
    )
