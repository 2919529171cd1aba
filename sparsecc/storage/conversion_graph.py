"""Which conversions there are, what they cost, and the cheapest way from one format to another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sparsecc.formats import Format, known_name, parse_format
from sparsecc.storage import edges
from sparsecc.storage.tensor import SparseTensor


@dataclass(frozen=True)
class Edge:
    """A conversion: when it applies, and its cost in ns an entry and ns a cell of the dense
    shape."""

    name: str
    reason: str
    applies: Callable[[Format, Format], bool]
    run: Callable[[SparseTensor, Format, int | None], SparseTensor]
    entry_ns: float
    cell_ns: float = 0.0


def _same_order(src: Format, dst: Format) -> bool:
    return src.exprs == dst.exprs


def _one_dense(src: Format, dst: Format) -> bool:
    return src.is_dense or dst.is_dense


DETOURS = ("dense across", "through entries")
"""The conversions that a path through other formats may beat."""

EDGES: tuple[Edge, ...] = (
    # Costs are of one thread, measured by benchmarks/conversions.py; only their ratios matter.
    Edge("relabel", "both store the same arrays", edges.is_relabelling, edges.relabel, 0.1),
    Edge(
        "expand", "each row number is repeated for its entries",
        lambda s, d: edges.is_rows(s) and edges.is_coordinates(d) and _same_order(s, d),
        edges.rows_to_coordinates, 1.0,
    ),
    Edge(
        "contract", "sorted rows are counted",
        lambda s, d: edges.is_coordinates(s) and edges.is_rows(d) and _same_order(s, d),
        edges.coordinates_to_rows, 1.0,
    ),
    Edge(
        "transpose", "a stable counting sort by the inner coordinate",
        lambda s, d: edges.is_rows(s) and edges.is_rows(d) and not _same_order(s, d),
        edges.transpose_rows, 8.0,
    ),
    Edge(
        "split blocks", "rows of blocks are moved, zeros dropped",
        lambda s, d: edges.is_bsr(s) and edges.is_rows(d) and d.dim_order == (0, 1),
        edges.bsr_to_rows, 15.0,
    ),
    Edge(
        "form blocks", "each entry is put in its place of its block, without sorting",
        lambda s, d: edges.is_rows(s) and s.dim_order == (0, 1) and edges.is_bsr(d),
        edges.rows_to_bsr, 12.0,
    ),
    Edge(
        "dense in order", "one side is dense and walked in the order of the other",
        lambda s, d: _one_dense(s, d) and edges.same_walk(s, d),
        edges.through_dense, 10.0, 2.0,
    ),
    Edge(
        "dense in blocks", "one side is dense and rearranged for the blocks of the other",
        lambda s, d: _one_dense(s, d) and not (s.is_permutation and d.is_permutation),
        edges.through_dense, 5.0, 5.0,
    ),
    Edge(
        "dense across", "one side is dense and transposed for the order of the other",
        _one_dense, edges.through_dense, 10.0, 10.0,
    ),
    Edge(
        "in order", "the entries already stand in the wanted order",
        lambda s, d: not _one_dense(s, d) and edges.same_walk(s, d), edges.in_order, 30.0,
    ),
    Edge(
        "through entries", "all entries are listed and sorted anew",
        lambda s, d: not _one_dense(s, d), edges.through_entries, 80.0,
    ),
)  # fmt: skip

SUM_EDGES: tuple[Edge, ...] = (
    Edge(
        "relabel parts", "the parts store the same arrays",
        lambda s, d: s.with_widths(0, 0) == d.with_widths(0, 0), edges.relabel_parts, 0.1,
    ),
    Edge(
        "share out dense", "each part takes what it can hold, the largest elements first",
        lambda s, d: s.is_dense, edges.through_dense, 10.0, 10.0,
    ),
    Edge(
        "share out", "each part takes what it can hold, the largest entries first",
        lambda s, d: not s.is_dense and edges.is_sum(d), edges.through_entries, 160.0,
    ),
    Edge(
        "add up dense", "the entries of all parts are put in their places",
        lambda s, d: d.is_dense, edges.through_dense, 30.0, 2.0,
    ),
    Edge(
        "add up", "the entries of all parts are listed and sorted anew",
        lambda s, d: edges.is_sum(s) and not d.is_dense, edges.through_entries, 80.0,
    ),
)  # fmt: skip
"""From and to sums of formats."""

HUBS: tuple[Format, ...] = tuple(parse_format(name) for name in ("CSR", "CSC", "COO"))
"""Formats of matrices that a path may pass; none of them loses an explicit zero."""


@dataclass(frozen=True)
class Step:
    """One conversion of a path; ``cost`` is estimated seconds."""

    edge: Edge
    src: Format
    dst: Format
    cost: float

    def __str__(self) -> str:
        formats = f"{known_name(self.src)} -> {known_name(self.dst)}"
        return f"{formats}: {self.edge.name} ({self.edge.reason}), about {self.cost * 1e3:.3g} ms"


def _step(src: Format, dst: Format, nnz: int, cells: int) -> Step:
    """The cheapest single conversion."""

    def cost(edge: Edge) -> float:
        return (edge.entry_ns * nnz + edge.cell_ns * cells) * 1e-9

    sums = edges.is_sum(src) or edges.is_sum(dst)
    edge = min((e for e in (SUM_EDGES if sums else EDGES) if e.applies(src, dst)), key=cost)
    return Step(edge, src, dst, cost(edge))


def conversion_path(
    src: str | Format, dst: str | Format, nnz: int = 1_000_000, cells: int = 100_000_000
) -> tuple[Step, ...]:
    """The cheapest conversions from one format to another, for so many entries and cells of the
    dense shape.

    No step is taken if the formats are equal. Formats given by name are of matrices."""
    src = parse_format(src) if isinstance(src, str) else src
    dst = parse_format(dst) if isinstance(dst, str) else dst
    if src == dst:
        return ()
    # Costs matter by their order only: whole powers of two keep the cache small.
    return _cheapest(src, dst, 1 << nnz.bit_length(), 1 << min(cells, 1 << 62).bit_length())


@lru_cache(maxsize=1024)
def _cheapest(src: Format, dst: Format, nnz: int, cells: int) -> tuple[Step, ...]:
    direct = _step(src, dst, nnz, cells)
    if direct.edge.name not in DETOURS or src.rank != 2:
        return (direct,)  # the graph need not be loaded
    import networkx as nx

    library: Any = nx  # its stubs leave node types open

    nodes = [src, dst, *(hub for hub in HUBS if hub not in (src, dst))]
    graph = library.DiGraph()
    for a in nodes:
        for b in nodes:
            if a != b:
                step = _step(a, b, nnz, cells)
                graph.add_edge(a, b, weight=step.cost, step=step)
    path: list[Format] = library.shortest_path(graph, src, dst, weight="weight")
    return tuple(graph.edges[a, b]["step"] for a, b in zip(path, path[1:], strict=False))
