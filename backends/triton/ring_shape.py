"""Register-ring kernels: a weight of packed units streams from memory into registers, a ring of chunks ahead.

A block owns ``tiles`` row tiles of 16 rows and ``tokens`` tokens. Its warps stand in a grid of ``warps`` (row tiles;
those beyond ``tiles`` are spare) by ``split`` (each takes every ``split``-th chunk of k). A chunk is ``steps`` matrix
instructions deep (32 columns each, int8: 64); ``ahead`` chunks wait in a warp's registers. All warps share X: the
columns of a round of ``split * ahead`` chunks lie in shared memory while the next round's are copied; one barrier a
round. ``splitk`` programs share K.

With the weight ``2:4+CSR`` each chunk ends in a stream of the entries that its 2:4 part has no room for. They are
scattered into a zeroed fragment in shared memory and multiplied by a second instruction under the complement of the
metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparsecc.backends.triton.contraction import Contraction
from sparsecc.backends.triton.legality import LegalityError, fits_shared, known, need, power
from sparsecc.backends.triton.x_tile import XTile

FAMILY = "ring"
PARAMETERS = ("tiles", "warps", "split", "steps", "ahead", "tokens", "splitk")


@dataclass(frozen=True)
class Ring:
    """The sizes of a kernel, from a contraction and a schedule."""

    c: Contraction
    tiles: int
    warps: int
    split: int
    steps: int
    ahead: int
    tokens: int
    splitk: int

    @property
    def residual(self) -> bool:
        return self.c.weight == "2:4+CSR"

    @property
    def entries(self) -> int:
        return -(-dict(self.c.facts).get("entries", 0) // 32)

    @property
    def unit_steps(self) -> int:
        return 1 if self.c.dtype == "i8" else 2

    @property
    def units(self) -> int:
        """Of 64 columns in a chunk."""
        return self.steps // self.unit_steps

    @property
    def unit_words(self) -> int:
        return self.unit_steps * 128 + 32

    @property
    def scatter_bytes(self) -> int:
        """Of shared memory for a warp's residual fragment, a zone for padding entries before it."""
        return 512 + self.steps * 512 if self.residual else 0

    @property
    def x(self) -> XTile:
        return XTile.of(
            self.c, self.tokens, self.ahead * self.split * self.steps, self.warps * self.split
        )

    @property
    def registers(self) -> int:
        """Of a thread, at least: the ring, the sums, and what it takes to find its way."""
        chunk = self.steps * 4 + self.units + self.entries * 4
        return self.ahead * chunk + self.tokens // 8 * 8 + 40

    @property
    def shared(self) -> int:
        return self.warps * self.split * self.scatter_bytes + 2 * self.x.bytes


def shape(c: Contraction, schedule: Mapping[str, int]) -> Ring:
    """The sizes that a legal schedule gives; LegalityError for one that no kernel can have."""
    known(schedule, FAMILY, PARAMETERS)
    ring = Ring(
        c,
        need(schedule, FAMILY, "tiles"),
        power(schedule, FAMILY, "warps", 16),
        power(schedule, FAMILY, "split", 16),
        need(schedule, FAMILY, "steps", 2),
        power(schedule, FAMILY, "ahead", 8),
        power(schedule, FAMILY, "tokens", 64),
        need(schedule, FAMILY, "splitk"),
    )

    def refuse(fact: str, remedy: str) -> LegalityError:
        return LegalityError(fact, family=FAMILY, help=remedy)

    if ring.tiles > ring.warps:
        raise refuse(
            f"{ring.tiles} row tiles need as many warps, it has {ring.warps}",
            f"give warps {1 << (ring.tiles - 1).bit_length()}",
        )
    if ring.warps * ring.split > 32:
        raise refuse(
            f"a block of {ring.warps * ring.split} warps is too large",
            "warps * split is at most 32",
        )
    if ring.steps not in (2, 4, 8, 16):
        raise refuse(f"steps is {ring.steps}", "steps is one of 2, 4, 8, 16")
    if ring.tokens < 8:
        raise refuse(f"tokens is {ring.tokens}", "tokens is one of 8, 16, 32, 64")
    if c.weight not in ("2:4", "2:4+CSR"):
        raise refuse(f"the weight is {c.weight}", "its weights are 2:4 and 2:4+CSR")
    if ring.residual:
        facts = dict(c.facts)
        if c.dtype == "i8":
            raise refuse(
                "entries of 2:4+CSR are 16 bits, the weight is i8",
                "keep an int8 weight in 2:4 or dense",
            )
        if facts.get("steps") != ring.steps:
            raise refuse(
                f"steps is {ring.steps}, the weight is packed in chunks of {facts.get('steps')}",
                f"give steps {facts.get('steps')}",
            )
        if "entries" not in facts:
            raise refuse("nothing is said about the entries of a chunk", "give the fact 'entries'")
    most = min(255, 65536 // (ring.warps * ring.split * 32))
    if ring.registers > most:
        raise refuse(
            f"a thread needs {ring.registers} registers or more, blocks of {ring.warps * ring.split} warps have {most}",
            "give a smaller ahead, steps, tokens, or fewer warps",
        )
    fits_shared(c.target, FAMILY, ring.shared, "give a smaller ahead, split, steps or tokens")
    return ring
