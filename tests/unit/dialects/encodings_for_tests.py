"""Encodings and random formats that several tests share."""

from __future__ import annotations

from hypothesis import strategies as st

from sparsecc.formats import Format, LevelExpr, parse_format
from sparsecc.formats.format import WIDTHS
from sparsecc.formats.levels.compressed import Compressed
from sparsecc.formats.levels.dense import Dense
from sparsecc.formats.levels.loose_compressed import LooseCompressed
from sparsecc.formats.levels.singleton import Singleton

NAMED = (
    "CSR CSC COO COO(3) COO(4) DCSR DCSC CSF(0,1,2) CSF(2,0,1) CSF(0,1,2,3) BSR(2,2) BSR(4,4) "
    "BSR(1,8) 2:4 1:2 5:8 SV dense BITMAP BITMAP(3)"
).split()

MAPS = [
    "(d0, d1) -> (d0 : dense, d1 : compressed(nonordered))",
    "(d0, d1) -> (d0 : compressed, d1 : dense)",
    "(d0, d1) -> (d0 : dense, d1 : dense)",
    "(d0, d1) -> (d1 : dense, d0 : dense)",
    "(d0, d1) -> (d0 : dense, d1 : loose_compressed)",
    "(d0, d1) -> (d0 : batch, d1 : compressed)",
    "(d0, d1, d2) -> (d0 : batch, d1 : dense, d2 : compressed)",
    "(d0, d1) -> (d0 : compressed(nonunique), d1 : singleton(soa))",
    "(d0, d1) -> (d0 : compressed(nonunique, nonordered), d1 : singleton(nonordered))",
    "(d0, d1, d2) -> (d0 : dense, d1 : compressed(nonunique), d2 : singleton)",
    "(d0, d1, d2) -> (d0 : compressed(nonunique), d1 : singleton(nonunique), d2 : singleton)",
    "(d0, d1) -> (d0 floordiv 2 : compressed, d1 floordiv 3 : compressed, "
    "d0 mod 2 : dense, d1 mod 3 : dense)",
    "(d0, d1) -> (d1 floordiv 2 : dense, d0 floordiv 3 : compressed, "
    "d0 mod 3 : dense, d1 mod 2 : dense)",
    "(d0, d1, d2) -> (d0 : dense, d1 : dense, d2 floordiv 4 : dense, d2 mod 4 : structured[2, 4])",
    "(d0) -> (d0 floordiv 8 : compressed, d0 mod 8 : dense)",
]
"""Maps as upstream prints them."""

ALL = [
    *(parse_format(text) for text in [*NAMED, *MAPS]),
    *(parse_format(f"{text}@i32/i64") for text in ("CSR", "CSC", "COO")),
    *(
        parse_format(t)
        for t in ("2:4+CSR", "2:4+2:4", "CSR@i32/i64 + COO", "BSR(2,2)+ELL+CSC@i8/i8")
    ),
    parse_format("2:4+CSR").with_widths(32, 16),
    *(parse_format("CSR").with_widths(p, c) for p, c in ((32, 0), (0, 32), (8, 16), (64, 64))),
]


@st.composite
def formats(draw: st.DrawFn, upstream: bool = False) -> Format:
    """A random legal format; ``upstream``: one whose map upstream can invert."""
    rank = draw(st.integers(1, 4))
    order = draw(st.permutations(range(rank)))
    exprs: list[LevelExpr] = []
    blocked = draw(st.booleans())
    factors = {d: draw(st.sampled_from([0, 2, 3, 4])) for d in range(rank)} if blocked else {}
    if upstream and not all(factors.values()):
        factors = {}  # upstream inverts maps in which all dimensions are blocked, or none
    for d in order:
        exprs.append(LevelExpr(d, factors.get(d) or 1))
    exprs += [LevelExpr(d, 1, factors[d]) for d in order if factors.get(d)]
    coo = 0 if factors else draw(st.integers(0, rank))
    levels = [
        draw(st.sampled_from([Dense(), Compressed(), Compressed(ordered=False), LooseCompressed()]))
        for _ in range(len(exprs) - coo)
    ]
    if coo == 1:
        levels.append(Compressed())
    elif coo:
        soa = draw(st.booleans())
        levels.append(Compressed(unique=False))
        levels += [Singleton(unique=k == coo - 2, soa=soa) for k in range(coo - 1)]
    widths = draw(st.sampled_from(WIDTHS)), draw(st.sampled_from(WIDTHS))
    return Format(rank, tuple(exprs), tuple(levels), *widths)
