"""Register-ring kernels on packed weights: a contraction and a schedule to text (ring_shape says what they mean)."""

from __future__ import annotations

from collections.abc import Mapping

from sparsecc.backends.triton import fragment_text as text
from sparsecc.backends.triton import ring_text as parts
from sparsecc.backends.triton.contraction import Contraction
from sparsecc.backends.triton.ring_shape import FAMILY, PARAMETERS, shape
from sparsecc.kernel import TileSource

__all__ = ["FAMILY", "PARAMETERS", "emit", "shape"]


def emit(contraction: Contraction, schedule: Mapping[str, int]) -> TileSource:
    """The kernel as text."""
    ring = shape(contraction, schedule)
    c = contraction
    arguments = text.arguments(c, ring.splitk)
    names = ", ".join(name for name, _, _ in arguments)
    cells = ring.tokens * ring.warps * 16
    pieces = [
        text.head(c, FAMILY, schedule, parts.SENTENCES),
        text.constants(parts.constants(ring)),
        "\n",
        text.layouts(parts.layouts(ring)),
        parts.functions(ring),
        f"\n\n@gluon.jit\ndef {c.name}({names}):\n",
        text.body(parts.kernel(ring)),
        text.launch(c, ring.splitk, rows=ring.tiles * 16, tokens=ring.tokens, cells=cells),
    ]
    aligned = ["packed", *(["offsets"] if ring.residual else []), *(["x"] if c.aligned else [])]
    return TileSource(
        entry=c.name,
        text="".join(pieces),
        gluon=True,
        arguments=tuple((name, kind) for name, kind, _ in arguments),
        roles=tuple(role for _, _, role in arguments),
        aligned=tuple(aligned + (["partial"] if ring.splitk > 1 else [])),
        warps=ring.warps * ring.split,
        instructions=("IMMA.SP" if c.dtype == "i8" else "HMMA.SP",),
    )
