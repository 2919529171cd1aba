"""A storage format: how the dimensions of a tensor map to levels, and how each level is stored.

``Format`` is the one canonical description; its three spellings are parsed and printed by
:mod:`sparsecc.formats.spelling`. A level's coordinate is a *digit* of a dimension's coordinate:
``(i // div) % mod`` (``mod`` 0: unbounded). A plain dimension is one digit, a block map two, nested
blocks three. The digits of a dimension must tile it, which is what makes the map invertible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from sparsecc.diagnostics import FormatError
from sparsecc.formats.level import Ability, Level
from sparsecc.formats.levels.dense import Dense

WIDTHS = (0, 8, 16, 32, 64)


class BadFormat(FormatError):
    text = "format {spelling!r}: {problem}"


@dataclass(frozen=True)
class LevelExpr:
    """The digit ``(dim // div) % mod`` of a dimension; ``mod == 0`` means no modulus."""

    dim: int
    div: int = 1
    mod: int = 0

    def size(self, extent: int) -> int:
        """The level's size for a dimension of that extent."""
        return self.mod or -(-extent // self.div)

    def spell(self, name: str) -> str:
        if self.div > 1:
            name = f"{name} floordiv {self.div}"
        return f"{name} mod {self.mod}" if self.mod else name


def dim_names(rank: int) -> tuple[str, ...]:
    """Names of dimensions in printed maps: ``d0, d1, …`` as upstream prints them."""
    return tuple(f"d{k}" for k in range(rank))


@dataclass(frozen=True)
class Format:
    """Level expressions and level formats, outer to inner; widths in bits (0: as small as the result needs)."""

    rank: int
    exprs: tuple[LevelExpr, ...]
    levels: tuple[Level, ...]
    pos_width: int = 0
    crd_width: int = 0

    def __post_init__(self) -> None:
        if problem := self._problem():
            raise BadFormat(spelling=str(self), problem=problem)

    def _problem(self) -> str:
        if len(self.exprs) != len(self.levels):
            return f"{len(self.exprs)} level expressions for {len(self.levels)} levels"
        for width in (self.pos_width, self.crd_width):
            if width not in WIDTHS:
                return f"a width of {width} bits is not one of {', '.join(map(str, WIDTHS))}"
        for dim in range(self.rank):
            digits = sorted(
                (e for e in self.exprs if e.dim == dim), key=lambda e: (e.div, not e.mod)
            )
            stride = 1
            for k, digit in enumerate(digits):
                if digit.div != stride or (digit.mod == 0) != (k == len(digits) - 1):
                    return f"the level expressions of d{dim} do not tile it, so levels can't be mapped back"
                stride *= digit.mod
            if not digits:
                return f"dimension d{dim} has no level"
        if any(e.dim >= self.rank for e in self.exprs):
            return "a level expression names a dimension that is not there"
        for k, level in enumerate(self.levels):
            if problem := level.problem(self.levels[:k], self.levels[k + 1 :]):
                return problem
            if 0 < self.crd_width < level.least_crd_width:
                return f"{level} stores words of {level.least_crd_width} bits, not {self.crd_width}"
            expr = self.exprs[k]
            if level.name == "structured" and expr.mod != getattr(level, "m", expr.mod):
                return f"{level} wants a level expression 'd mod {getattr(level, 'm', 0)}'"
            if level.unique or k + 1 == len(self.levels):
                continue
            if self.levels[k + 1].name != "singleton":
                return "a nonunique level must be followed by a singleton"
        return ""

    # -- questions -----------------------------------------------------------------------------

    @property
    def num_levels(self) -> int:
        return len(self.levels)

    @cached_property
    def is_dense(self) -> bool:
        """All levels dense: nothing but values is stored."""
        return all(level.can(Ability.FULL) for level in self.levels)

    @cached_property
    def is_row_major(self) -> bool:
        """A plain NumPy array in C order."""
        return self.is_dense and self.is_permutation and self.dim_order == tuple(range(self.rank))

    @property
    def is_permutation(self) -> bool:
        """Every level is a whole dimension."""
        return all(e.div == 1 and e.mod == 0 for e in self.exprs)

    @property
    def dim_order(self) -> tuple[int, ...]:
        """The dimension of each level, for formats without blocks."""
        return tuple(e.dim for e in self.exprs)

    @property
    def padded(self) -> bool:
        """Whether values may hold zeros that nobody stored (blocks, n:m, ELL, dense below sparse)."""
        seen_sparse = False
        for level in self.levels:
            if level.padded or (seen_sparse and level.can(Ability.FULL)):
                return True
            seen_sparse = seen_sparse or not level.can(Ability.FULL)
        return False

    @property
    def ordered(self) -> bool:
        return all(level.ordered for level in self.levels)

    def level_sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The size of each level for a tensor of that shape."""
        return tuple(e.size(shape[e.dim]) for e in self.exprs)

    def with_widths(self, pos_width: int, crd_width: int) -> Format:
        return replace(self, pos_width=pos_width, crd_width=crd_width)

    def with_default_widths(self, width: int) -> Format:
        """Open widths filled in, for the roles that some level stores."""
        roles = {role for level in self.levels for role in level.arrays}
        return self.with_widths(
            (self.pos_width or width) if "positions" in roles else 0,
            (self.crd_width or width) if "coordinates" in roles else 0,
        )

    def permuted(self, order: Sequence[int]) -> Format:
        """The format whose level ``l`` stores dimension ``order[l]`` (formats without blocks)."""
        return replace(self, exprs=tuple(LevelExpr(d) for d in order))

    # -- spelling ------------------------------------------------------------------------------

    def __str__(self) -> str:
        """The canonical spelling: an MLIR map, with ``@crd/pos`` if widths are fixed."""
        names = dim_names(self.rank)
        levels = ", ".join(
            f"{e.spell(names[e.dim])} : {lvl}"
            for e, lvl in zip(self.exprs, self.levels, strict=True)
        )
        text = f"({', '.join(names)}) -> ({levels})"
        if self.pos_width or self.crd_width:
            text += f"@i{self.crd_width}/i{self.pos_width}"
        return text


@cache
def dense_format(rank: int) -> Format:
    """Row-major dense."""
    return Format(rank, tuple(LevelExpr(d) for d in range(rank)), (Dense(),) * rank)
