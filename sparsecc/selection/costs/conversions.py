"""What it costs to bring an operand from the format it is stored in to another, once.

By route, ``entry`` seconds an entry and ``cell`` seconds a stored place of the target (or of the source, if that is
larger), as in storage's graph of conversions:

``relabel``      rows and sorted coordinates, row numbers repeated or counted
``transpose``    rows to columns: a counting sort
``blocks``       rows to blocks and back
``dense``        from dense in its order
``fill``         to dense in its order
``across``       from or to dense in another order
``pack``         to (or from) groups of four
``share``        to groups of four and a rest
``bits``         to bitmaps
``order``        between formats that list entries in the same order
``turn``         of a matrix, anything else: entries are sorted the other way
``sort``         of higher ranks the same
"""

from __future__ import annotations

from sparsecc.formats import parse_format
from sparsecc.selection.calibrations import Calibration
from sparsecc.selection.footprint import footprint, order_of
from sparsecc.selection.operations import is_plain
from sparsecc.statistics import Statistics

FAMILY = "conversion"
ROUTES = (
    "relabel", "transpose", "blocks", "dense", "fill", "across", "pack", "share", "bits", "order", "turn", "sort",
)  # fmt: skip


def _in_short(fmt: str, rank: int) -> str:
    """A format as routes name it: ``dense``, or ``dense:1,0`` in another order of dimensions."""
    if fmt == "dense" or not is_plain(fmt, rank):
        return fmt
    order = parse_format(fmt, rank).dim_order
    plain = order == tuple(range(rank))
    return "dense" if plain else "dense:" + ",".join(map(str, order))


def family_of(fmt: str) -> str:
    return "dense" if fmt.startswith("dense") else fmt.partition("(")[0]


def listed_by(fmt: str, rank: int) -> tuple[int, ...]:
    """The order of dimensions in which a format lists its entries; empty for blocks."""
    if fmt in ("CSC", "DCSC"):
        return (1, 0)
    if fmt.startswith("dense:"):
        return tuple(map(int, fmt.removeprefix("dense:").split(",")))
    if fmt.startswith("CSF"):
        return order_of(fmt) or tuple(range(rank))
    return () if fmt.startswith("BSR") else tuple(range(rank))


def route(source: str, wanted: str, rank: int) -> str:
    """How one format becomes another; empty if nothing is to be done."""
    if source == wanted:
        return ""
    source, wanted = _in_short(source, rank), _in_short(wanted, rank)
    families = {family_of(source), family_of(wanted)}
    same = listed_by(source, rank) == listed_by(wanted, rank)
    for family, by in (("2:4+CSR", "share"), ("2:4", "pack"), ("BITMAP", "bits")):
        if family in families:
            return by
    if "dense" in families:
        if "BSR" in families:
            return "blocks"
        return "across" if not same else "fill" if wanted == "dense" else "dense"
    if families <= {"CSR", "COO"} or families <= {"CSC"}:
        return "relabel"
    if families == {"CSR", "CSC"}:
        return "transpose"
    if families in ({"CSR", "BSR"}, {"BSR"}):
        return "blocks"
    return "order" if same else "turn" if rank == 2 else "sort"


def amounts(source: str, wanted: str, s: Statistics) -> tuple[str, dict[str, float]]:
    """The route, and the entries and places that it touches."""
    by = route(source, wanted, len(s.shape))
    kinds = ("dense" if is_plain(f, len(s.shape)) else f for f in (source, wanted))
    places = max(footprint(fmt, s).entries for fmt in kinds)
    if "BITMAP" in (source, wanted):
        places = max(places, footprint("dense", s).entries)
    return by, {
        "entry": float(s.stored),
        "cell": max(places - s.stored, 0.0),
        "call": 1.0,
    }


def conversion_seconds(source: str, wanted: str, s: Statistics, calibration: Calibration) -> float:
    """Seconds to convert a tensor once."""
    by, found = amounts(source, wanted, s)
    if not by:
        return 0.0
    return sum(n * calibration.cost(f"{FAMILY}-{by}", unit) for unit, n in found.items())
