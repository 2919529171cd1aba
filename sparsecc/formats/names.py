"""Formats by name: one table line a family, from arguments (and the tensor's rank) to a Format."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from sparsecc.formats.format import BadFormat, Format, LevelExpr, dense_format
from sparsecc.formats.level import Level
from sparsecc.formats.levels.bitmap import Bitmap
from sparsecc.formats.levels.compressed import Compressed
from sparsecc.formats.levels.dense import Dense
from sparsecc.formats.levels.padded import Padded
from sparsecc.formats.levels.singleton import Singleton
from sparsecc.formats.levels.structured import Structured
from sparsecc.formats.sum_format import SumFormat

Args = tuple[int, ...]


def _of(levels: tuple[Level, ...], order: tuple[int, ...] | None = None) -> Format:
    order = tuple(range(len(levels))) if order is None else order
    return Format(len(levels), tuple(LevelExpr(d) for d in order), levels)


def coo(rank: int, soa: bool = False) -> Format:
    """Coordinates of all entries, sorted; rank 1 is a sparse vector."""
    if rank == 1:
        return _of((Compressed(),))
    inner = tuple(Singleton(unique=k == rank - 2, soa=soa) for k in range(rank - 1))
    return _of((Compressed(unique=False), *inner))


def csf(order: tuple[int, ...]) -> Format:
    """Compressed in every level; ``order[l]`` is the dimension of level l."""
    return _of((Compressed(),) * len(order), order)


def bsr(rows: int, columns: int) -> Format:
    """Compressed rows of dense blocks, rows x columns."""
    exprs = (
        LevelExpr(0, rows),
        LevelExpr(1, columns),
        LevelExpr(0, 1, rows),
        LevelExpr(1, 1, columns),
    )
    if rows < 1 or columns < 1:
        raise BadFormat(
            spelling=f"BSR({rows},{columns})", problem="a block has at least one row and column"
        )
    return Format(2, exprs, (Dense(), Compressed(), Dense(), Dense()))


def nm(n: int, m: int, rank: int = 2) -> Format:
    """n values of each m neighbours along the last dimension."""
    lead = tuple(LevelExpr(d) for d in range(rank - 1))
    exprs = (*lead, LevelExpr(rank - 1, m), LevelExpr(rank - 1, 1, m))
    return Format(rank, exprs, (Dense(),) * rank + (Structured(n=n, m=m),))


def bitmap(rank: int) -> Format:
    """A bit for each element, and the values that are there in order."""
    return _of((Dense(),) * (rank - 1) + (Bitmap(),))


def _rank(args: Args, rank: int | None, default: int) -> int:
    if args:
        return args[0]
    return default if rank is None else rank


def _order(args: Args, rank: int | None) -> tuple[int, ...]:
    return args if args else tuple(range(3 if rank is None else rank))


NAMES: dict[str, tuple[Callable[[Args, int | None], Format], tuple[int, ...] | None, str]] = {
    # name: (build, allowed argument counts (None: any), what it is)
    "DENSE": (lambda a, r: dense_format(_rank(a, r, 2)), (0, 1), "row-major dense, any rank"),
    "CSR": (lambda a, r: _of((Dense(), Compressed())), (0,), "compressed sparse rows"),
    "CSC": (lambda a, r: _of((Dense(), Compressed()), (1, 0)), (0,), "compressed sparse columns"),
    "COO": (lambda a, r: coo(_rank(a, r, 2)), (0, 1), "sorted coordinates, any rank; COO(3)"),
    "DCSR": (lambda a, r: csf((0, 1)), (0,), "doubly compressed rows"),
    "DCSC": (lambda a, r: csf((1, 0)), (0,), "doubly compressed columns"),
    "CSF": (lambda a, r: csf(_order(a, r)), None, "compressed in every level; CSF(2,0,1) permutes"),
    "BSR": (lambda a, r: bsr(*a), (2,), "compressed rows of dense blocks; BSR(4,4)"),
    "ELL": (
        lambda a, r: _of((Dense(), Padded())),
        (0,),
        "ELLPACK: the same number of slots in each row",
    ),
    "NM": (
        lambda a, r: nm(a[0], a[1], 2 if r is None else r),
        (2,),
        "n of m neighbours; NM(2,4) or 2:4",
    ),
    "BITMAP": (
        lambda a, r: bitmap(_rank(a, r, 2)),
        (0, 1),
        "a bit for each element, values where it is set; BITMAP(3)",
    ),
    "SV": (lambda a, r: _of((Compressed(),)), (0,), "sparse vector"),
}


@lru_cache(maxsize=1024)
def known_name(fmt: Format) -> str:
    """The short name of a format (widths aside), or its map."""
    if isinstance(fmt, SumFormat):
        return "+".join(map(known_name, fmt.parts))
    bare = fmt.with_widths(0, 0)
    rank = fmt.rank
    if bare == dense_format(rank):
        return "dense"
    candidates: list[tuple[str, Format]] = []
    if rank == 1:
        candidates.append(("SV", csf((0,))))
    if rank == 2:
        build = {name: NAMES[name][0]((), 2) for name in ("CSR", "CSC", "DCSR", "DCSC", "ELL")}
        candidates += build.items()
        if len(bare.exprs) == 4 and bare.exprs[0].div > 1:
            rows, columns = bare.exprs[0].div, max(1, bare.exprs[1].div)
            candidates.append((f"BSR({rows},{columns})", bsr(rows, columns)))
    if rank >= 2:
        candidates.append(("COO" if rank == 2 else f"COO({rank})", coo(rank)))
    if rank > 2 and bare.is_permutation:
        order = bare.dim_order
        name = "CSF" if order == tuple(range(rank)) else f"CSF({','.join(map(str, order))})"
        candidates.append((name, csf(order)))
    if rank:
        candidates.append(("BITMAP" if rank == 2 else f"BITMAP({rank})", bitmap(rank)))
    if bare.levels and isinstance(last := bare.levels[-1], Structured):
        candidates.append((f"{last.n}:{last.m}", nm(last.n, last.m, rank)))
    return next((name for name, known in candidates if known == bare), str(fmt))
