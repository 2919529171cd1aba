"""Staged kernels: packed units and X stream through a ring of stages in shared memory.

A block owns ``tiles`` row tiles of 16 rows and ``tokens`` tokens; its warps stand in a grid of ``warps`` (each has
``tiles / warps`` row tiles) by ``token_warps`` (each has ``tokens / token_warps`` tokens). A stage is ``steps`` matrix
instructions deep (32 columns each, int8: 64): the units of each row tile, a contiguous range of the packed weight, and
X. Copies run ``stages - 1`` stages ahead; one barrier a stage. ``splitk`` programs share K; ``group`` blocks of tokens
share the rows in the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparsecc.backends.triton.contraction import Contraction
from sparsecc.backends.triton.legality import LegalityError, fits_shared, known, need, power
from sparsecc.backends.triton.x_tile import XTile

FAMILY = "staged"
PARAMETERS = ("tiles", "tokens", "warps", "token_warps", "steps", "stages", "splitk", "group")


@dataclass(frozen=True)
class Staged:
    """The sizes of a kernel, from a contraction and a schedule."""

    c: Contraction
    tiles: int
    tokens: int
    warps: int
    token_warps: int
    steps: int
    stages: int
    splitk: int
    group: int

    @property
    def all_warps(self) -> int:
        return self.warps * self.token_warps

    @property
    def threads(self) -> int:
        return self.all_warps * 32

    @property
    def unit_steps(self) -> int:
        return 1 if self.c.dtype == "i8" else 2

    @property
    def units(self) -> int:
        return self.steps // self.unit_steps

    @property
    def unit_bytes(self) -> int:
        return self.unit_steps * 512 + 128

    @property
    def tile_vectors(self) -> int:
        """Of 16 bytes in a row tile's part of a stage."""
        return self.units * self.unit_bytes // 16

    @property
    def tile_threads(self) -> int:
        """Threads that copy a row tile's part."""
        return self.threads // self.tiles

    @property
    def x(self) -> XTile:
        return XTile.of(self.c, self.tokens, self.steps, self.all_warps)

    @property
    def sums(self) -> int:
        """Registers of a thread for its sums."""
        return self.tiles * self.tokens // 8 // self.all_warps * 4

    @property
    def stage_bytes(self) -> int:
        return self.x.bytes + self.tiles * self.units * self.unit_bytes


def shape(c: Contraction, schedule: Mapping[str, int]) -> Staged:
    """The sizes that a legal schedule gives; LegalityError for one that no kernel can have."""
    known(schedule, FAMILY, PARAMETERS)
    staged = Staged(
        c,
        power(schedule, FAMILY, "tiles", 32),
        power(schedule, FAMILY, "tokens", 256),
        power(schedule, FAMILY, "warps", 16),
        power(schedule, FAMILY, "token_warps", 16),
        need(schedule, FAMILY, "steps", 2),
        need(schedule, FAMILY, "stages", 2),
        need(schedule, FAMILY, "splitk"),
        need(schedule, FAMILY, "group"),
    )

    def refuse(fact: str, remedy: str) -> LegalityError:
        return LegalityError(fact, family=FAMILY, help=remedy)

    if staged.tiles < staged.warps:
        raise refuse(
            f"{staged.warps} warps have {staged.tiles} row tiles",
            f"give tiles {staged.warps} or more",
        )
    if staged.tokens < 8 * staged.token_warps:
        raise refuse(
            f"{staged.token_warps} warps have {staged.tokens} tokens, each needs 8",
            f"give tokens {8 * staged.token_warps} or more",
        )
    if staged.all_warps > 32:
        raise refuse(
            f"a block of {staged.all_warps} warps is too large", "warps * token_warps is at most 32"
        )
    if staged.sums > 128:
        raise refuse(
            f"a thread needs {staged.sums} registers for its sums, of 255 in all",
            "give more warps, or fewer tiles or tokens",
        )
    if staged.steps not in (2, 4, 8, 16):
        raise refuse(f"steps is {staged.steps}", "steps is one of 2, 4, 8, 16")
    if staged.tile_threads < 1:
        raise refuse(
            f"{staged.threads} threads copy {staged.tiles} row tiles",
            "give fewer tiles or more warps",
        )
    if c.weight != "2:4":
        raise refuse(
            f"the weight is {c.weight}", "its weight is 2:4; family 'ring' takes 2:4+CSR too"
        )
    fits_shared(
        c.target,
        FAMILY,
        staged.stages * staged.stage_bytes,
        "give fewer stages, steps, tiles or tokens",
    )
    return staged
