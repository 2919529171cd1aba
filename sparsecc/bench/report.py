"""Runs as Markdown tables and plots, and the page of the documents that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sparsecc.bench.cells import GROUPS, Cell
from sparsecc.bench.results import FIRST, OURS, Result, Run
from sparsecc.bench.svg import Plot
from sparsecc.diagnostics import FileError

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"

MARKS = {"events": " (e)", "events, queued": " (q)"}

SLOW = 0.85
"""Of the copy bandwidth: a cell beside which less was copied is named."""

PASSED = {True: "ok", False: "MISSED", None: ""}


def markdown(run: Run, plots: bool = False) -> str:
    """The run: machine, one table a group, means, latencies, what failed."""
    parts = [_machine(run.machine)]
    for group, title in GROUPS.items():
        own = [result for result in run.results if result.cell.group == group]
        for dtype in dict.fromkeys(result.cell.dtype for result in own):
            rows = [result for result in own if result.cell.dtype == dtype]
            parts.append(f"## {title[0].upper()}{title[1:]}, {dtype}")
            if plots:
                family = plotted(rows)
                rival = "the fastest dense product" if family == "dense" else family
                parts.append(f"![Times of {rival} over ours]({plot_name(group, dtype)})")
            parts.append(group_table(rows))
    if run.latencies:
        parts.append("## Before a kernel runs")
        lines = [[x.name, f"{x.value:.3g} {x.unit}", "" if x.bar is None else f"{x.bar:g} {x.unit}",
                  PASSED[x.passed], x.note] for x in run.latencies]  # fmt: skip
        parts.append(_table(["what", "measured", "bar", "", "note"], lines))
    means = [mean for mean in run.means() if mean.of]
    if means:
        parts.append("## Geometric means")
        lines = [[m.bar.title, " or ".join(m.bar.against), _number(m.value), f"{m.bar.least:g}",
                  PASSED[None if m.value is None else m.value >= m.bar.least], f"{m.cells} of {m.of}"]
                 for m in means]  # fmt: skip
        parts.append(_table(["cells", "against", "ratio", "bar", "", "measured"], lines))
    failed = [(r.cell.name, *item) for r in run.results for item in r.failures.items()]
    if failed:
        parts.append("## What did not run")
        parts.append(_table(["cell", "candidate", "why"], [list(line) for line in failed]))
    parts += ["## Missed bars", summary(run)]
    slow = [
        f"* {r.cell.name}: {r.copied / 1e12:.2f} TB/s"
        for r in run.results if r.copied is not None and r.copied < SLOW * run.machine.get("copy_bandwidth", 0)
    ]  # fmt: skip
    if slow:
        parts += ["## Measured while the device was slow", "\n".join(slow)]
    return "\n\n".join(parts) + "\n"


def summary(run: Run) -> str:
    """How many bars were met, and which were not."""
    missed = [
        f"{r.cell.name}: {_number(v['ratio']) or 'no time'} of {' or '.join(v['against'])}, bar {v['bar']:g}"
        for r in run.results for v in r.verdicts() if v["passed"] is False
    ]  # fmt: skip
    missed += [
        f"{m.bar.title}: {m.value:.2f} of {' or '.join(m.bar.against)} on the mean, bar {m.bar.least:g}"
        for m in run.means() if m.value is not None and m.value < m.bar.least
    ]  # fmt: skip
    missed += [
        f"{x.name}: {x.value:.3g} {x.unit}, bar {x.bar:g}"
        for x in run.latencies
        if x.passed is False
    ]
    held = sum(1 for r in run.results for v in r.verdicts() if v["passed"] is not None)
    held += sum(1 for m in run.means() if m.value is not None)
    held += sum(1 for x in run.latencies if x.bar is not None)
    return f"Cells: {len(run.results)}. Bars: {held}, missed: {len(missed)}." + "".join(
        f"\n* {line}" for line in missed
    )


def group_table(results: Sequence[Result]) -> str:
    """One line a cell: our best time, that of our first choice, the rate of the best, each family's time and its ratio
    to our best, bars."""
    families = list(dict.fromkeys(f for r in results for f in r.cell.operation.rivals))
    heads = ["cell", "ours us", "default us", "GB/s"]
    for family in families:
        heads += [f"{family} us", "ratio"]
    lines: list[list[str]] = []
    for r in results:
        ours = r.times.get(OURS)
        line = [
            _label(r.cell),
            _number(ours.us if ours else None),
            _number(r.times[FIRST].us if FIRST in r.times else None),
            f"{ours.gigabytes:.0f}" if ours else "",
        ]
        for family in families:
            time = r.times.get(family)
            mark = "" if time is None else MARKS.get(time.how, "")
            mark += " (~)" if time is not None and time.loose else ""
            line += [_number(time.us if time else None) + mark, _number(r.ratio(family))]
        verdicts = r.verdicts()
        line.append(", ".join(f"{v['bar']:g} {_short(v['against'])}" for v in verdicts))
        line.append(", ".join(dict.fromkeys(filter(None, (PASSED[v["passed"]] for v in verdicts)))))
        lines.append(line)
    return _table([*heads, "bars", ""], lines)


def _short(against: Sequence[str]) -> str:
    return " or ".join(against)


def _label(cell: Cell) -> str:
    pattern = "" if cell.pattern == "2:4" else f"{cell.pattern} {cell.sparsity * 100:g} %, "
    letter = {"linear": "M", "SDDMM": "K"}.get(cell.operation.name, "N")
    fmt = f"{cell.format}, " if cell.group == "BSR" else ""
    return f"{fmt}{pattern}{cell.rows}x{cell.columns}, {letter} = {cell.width}"


def _machine(machine: Any) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in machine.get("versions", {}).items() if v)
    bandwidth = machine.get("copy_bandwidth")
    lines = [
        ["GPU", f"{machine.get('gpu', '')}, {machine.get('processors', '')} SMs, driver "
                f"{machine.get('driver', '')}, CUDA {machine.get('cuda', '')}"],
        ["Versions", versions],
        ["Commit, date", f"`{machine.get('commit') or 'not known'}`, {machine.get('date', '')}"],
        ["Copy bandwidth", f"{bandwidth / 1e12:.2f} TB/s, read and written" if bandwidth else ""],
    ]  # fmt: skip
    return _table(["machine", ""], lines)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if value < 100 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    every = [list(heads), *(list(line) for line in lines)]
    widths = [max(len(line[n]) for line in every) for n in range(len(heads))]
    shown = [
        "| "
        + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        + " |"
        for line in every
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([shown[0], rule, *shown[1:]])


# -- plots -------------------------------------------------------------------------------------


def plot_name(group: str, dtype: str) -> str:
    """The file of a group's plot, beside the page."""
    return f"gpu-{group.replace(':', 'of').lower()}-{dtype}.svg"


def plotted(results: Sequence[Result]) -> str:
    """The rival that a group's plot compares with: the first one that was measured."""
    families = results[0].cell.operation.rivals
    return next((f for f in families if any(r.ratio(f) for r in results)), families[0])


def plots(run: Run) -> dict[str, str]:
    """File names and SVG texts: how many times faster than the first family of rivals that was measured."""
    found: dict[str, str] = {}
    for group, title in GROUPS.items():
        for dtype in dict.fromkeys(r.cell.dtype for r in run.results if r.cell.group == group):
            own = [r for r in run.results if r.cell.group == group and r.cell.dtype == dtype]
            family = plotted(own)
            widths = sorted({r.cell.width for r in own})
            series: dict[str, list[float | None]] = {}
            for r in own:
                line = series.setdefault(_series(r.cell), [None] * len(widths))
                line[widths.index(r.cell.width)] = r.ratio(family)
            plot = Plot(
                f"{title}, {dtype}: {family} / ours", "extent of the dense operand",
                [str(w) for w in widths], series, [(1.0, "equal")],
            )  # fmt: skip
            found[plot_name(group, dtype)] = plot.svg()
    return found


def _series(cell: Cell) -> str:
    shape = f"{cell.rows}x{cell.columns}"
    if cell.group == "2:4":
        return shape
    if cell.group == "unstructured":
        return f"{shape} {cell.pattern[:3]} {cell.sparsity * 100:g} %"
    if cell.group == "BSR":
        return f"{cell.format} {cell.sparsity * 100:g} %"
    return f"{cell.pattern} {cell.sparsity * 100:g} %"


# -- the page ----------------------------------------------------------------------------------


def write_page(run: Run, page: Path) -> list[Path]:
    """Write tables between the page's markers, and plots beside it; gives the files written.

    Raises FileError for a page without markers."""
    fill_page(page, markdown(run, plots=True))
    written = [page]
    for name, svg in plots(run).items():
        (page.parent / name).write_text(svg, encoding="utf-8")
        written.append(page.parent / name)
    return written


def fill_page(page: Path, results: str) -> None:
    """Write results between a page's markers. Raises FileError for a page without markers, or none."""
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise FileError(f"it can't be read: {error}", place=str(page)) from None
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise FileError(f"it has not the two lines {BEGIN} and {END}", place=str(page))
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{results}\n{END}{after}", encoding="utf-8")
