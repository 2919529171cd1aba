"""The bars: how much faster than a rival a cell has to be, alone or on a geometric mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import exp, log

from sparsecc.bench.cells import Cell


@dataclass(frozen=True)
class Bar:
    """A rival's time divided by ours is at least ``least`` in all cells of ``where``, or on their mean.

    ``against``: families of rivals, of which the fastest counts."""

    title: str
    against: tuple[str, ...]
    least: float
    where: Callable[[Cell], bool]
    mean: bool = False


def _tokens(*widths: int, large: bool = False) -> Callable[[Cell], bool]:
    return lambda c: c.group == "2:4" and c.width in widths and (c.large or not large)


def _residual(sparsity: float) -> Callable[[Cell], bool]:
    return lambda c: c.group == "unstructured" and c.sparsity == sparsity


def _group(name: str) -> Callable[[Cell], bool]:
    return lambda c: c.group == name


DENSE, SPARSELT, CUSPARSE = ("dense",), ("cuSPARSELt",), ("cuSPARSE",)

BARS = (
    Bar("2:4, M = 1 and 8", DENSE, 1.6, _tokens(1, 8)),
    Bar("2:4, M = 1 and 8, large shapes", DENSE, 1.7, _tokens(1, 8, large=True)),
    Bar("2:4, M = 1 and 8", SPARSELT, 1.0, _tokens(1, 8)),
    Bar("2:4, M = 16", DENSE, 1.5, _tokens(16)),
    Bar("2:4, M = 32", DENSE, 1.4, _tokens(32)),
    Bar("2:4, M = 16", SPARSELT, 1.0, _tokens(16), mean=True),
    Bar("2:4, M = 32", SPARSELT, 1.0, _tokens(32), mean=True),
    Bar("2:4, M = 64 and 128", DENSE, 1.0, _tokens(64, 128)),
    Bar("2:4, M = 64 and 128", SPARSELT, 0.95, _tokens(64, 128), mean=True),
    Bar("2:4, M = 512 and 4096, large shapes", DENSE, 1.25, _tokens(512, 4096, large=True)),
    Bar("2:4, M = 512 and 4096", SPARSELT, 0.9, _tokens(512, 4096), mean=True),
    Bar("unstructured 50 %", DENSE, 1.1, _residual(0.5)),
    Bar("unstructured 60 %", DENSE, 1.17, _residual(0.6)),
    Bar("unstructured 70 %", DENSE, 1.3, _residual(0.7)),
    Bar("unstructured 80 %", DENSE, 1.35, _residual(0.8)),
    Bar("unstructured 50 %, M = 8", DENSE, 1.25,
        lambda c: c.group == "unstructured" and c.sparsity == 0.5 and c.width == 8, mean=True),
    Bar("BSR", ("torch BSR",), 4.5, _group("BSR")),
    Bar("BSR 90 %", DENSE, 1.45, lambda c: c.group == "BSR" and c.sparsity == 0.9),
    Bar("CSR SpMM", CUSPARSE, 1.2, _group("CSR")),
    Bar("CSR SpMM, f16", CUSPARSE, 2.5, lambda c: c.group == "CSR" and c.dtype == "f16", mean=True),
    Bar("CSR SpMV", CUSPARSE, 1.0, _group("SpMV")),
    Bar("CSR SDDMM", ("cuSPARSE", "torch"), 1.5, _group("SDDMM")),
)  # fmt: skip


def of_cell(cell: Cell) -> tuple[Bar, ...]:
    """The bars that a cell alone is held to: of those against one rival, the highest."""
    highest: dict[tuple[str, ...], Bar] = {}
    for bar in BARS:
        if not bar.mean and bar.where(cell):
            known = highest.get(bar.against)
            if known is None or bar.least > known.least:
                highest[bar.against] = bar
    return tuple(highest.values())


def ratio(bar: Bar, ours: float | None, rivals: Mapping[str, float]) -> float | None:
    """The rival's time divided by ours; None where one of them has no time."""
    times = [rivals[family] for family in bar.against if family in rivals]
    return min(times) / ours if times and ours else None


@dataclass(frozen=True)
class Mean:
    """How a bar on a geometric mean went: over ``cells`` of the ``of`` that it speaks of."""

    bar: Bar
    value: float | None
    cells: int
    of: int


def means(
    cells: Iterable[Cell], times: Mapping[Cell, tuple[float | None, Mapping[str, float]]]
) -> list[Mean]:
    """The bars on geometric means, over those of the cells that have both times."""
    every = list(cells)
    found: list[Mean] = []
    for bar in BARS:
        if not bar.mean:
            continue
        own = [cell for cell in every if bar.where(cell)]
        ratios = [ratio(bar, *times[cell]) for cell in own if cell in times]
        known = [r for r in ratios if r]
        value = exp(sum(map(log, known)) / len(known)) if known else None
        found.append(Mean(bar, value, len(known), len(own)))
    return found
