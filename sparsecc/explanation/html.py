"""An explanation as one HTML file that needs nothing else: tables, bars of plans, a roofline, pictures of matrices.

Names and expressions are of users, and escaped wherever they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from sparsecc.explanation import plots
from sparsecc.explanation.report import Report
from sparsecc.explanation.roofline import roofline
from sparsecc.explanation.spy import spy
from sparsecc.explanation.style import STYLE
from sparsecc.explanation.text import (
    grouped_refusals,
    operand_lines,
    plan_name,
    plan_table,
    rates,
    size_table,
    verdict,
)
from sparsecc.explanation.units import digits, seconds, share, times
from sparsecc.selection.candidate import TERMS
from sparsecc.selection.problem import Tensor
from sparsecc.statistics import Statistics
from sparsecc.storage.tensor import SparseTensor

SHOWN = 12
"""Plans in bars; the table has all."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(report: Report, tensors: Mapping[str, SparseTensor] | None = None) -> str:
    """The whole file. ``tensors``: operands that are there, to be pictured."""
    problem = report.problem
    title = "; ".join(e.text.strip() for e in problem.expressions)
    sections = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="quiet">target {escape(problem.target.name)} ({escape(problem.target.title)}), strategy '
        f"{escape(report.strategy)}; rates: {escape(rates(report))}</p>",
        f"<pre>{escape(chr(10).join(verdict(report)))}</pre>",
        _notes(report),
        _sizes(report),
        _bars(report),
        _plans(report),
        _roofline(report),
        "<h2>Operands</h2>",
        *(_operand(t, report, (tensors or {}).get(t.name)) for t in report.operands),
        _refusals(report),
        _offers(report),
    ]
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style></head>\n<body>\n"
    )
    return head + "\n".join(s for s in sections if s) + "\n</body></html>\n"


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = -1, mark: int = -1
) -> str:
    """A table of plain text; column ``words`` is prose, row ``mark`` is marked."""

    def cells(row: Sequence[str], tag: str) -> str:
        css = [' class="words"' if k == words else "" for k in range(len(row))]
        return "".join(f"<{tag}{c}>{escape(v)}</{tag}>" for v, c in zip(row, css, strict=True))

    marks = [' class="winner"' if k == mark else "" for k in range(len(rows))]
    lines = [f"<tr{css}>{cells(row, 'td')}</tr>\n" for css, row in zip(marks, rows, strict=True)]
    body = "".join(lines)
    return f'<div class="scroll"><table><tr>{cells(heads, "th")}</tr>\n{body}</table></div>'


def _notes(report: Report) -> str:
    return "".join(f'<p class="quiet">note: {escape(note)}</p>' for note in report.notes)


def _sizes(report: Report) -> str:
    if report.index is None or not report.sizes:
        return ""
    heads, rows = size_table(report)
    return f"<h2>By {escape(report.index)}</h2>{_table(heads, rows)}"


def _bars(report: Report) -> str:
    keys = "".join(f'<span class="{term}"></span>{term}' for term in TERMS)
    return f'<h2>Plans</h2><p class="key quiet">{keys}</p>{plots.bars(report.plans[:SHOWN])}'


def _plans(report: Report) -> str:
    fastest = report.winner.seconds
    heads, table = plan_table(report, report.plans)
    rows = [
        [*cells, times(row.seconds / fastest) if fastest else "", row.reason or "wins"]
        for cells, row in zip(table, report.plans, strict=True)
    ]
    return _table([*heads, "time", "why"], rows, words=len(heads) + 1, mark=0)


def _roofline(report: Report) -> str:
    shown = [row.prediction for row in report.plans[:SHOWN]]
    found = roofline(report.problem, shown, report.calibration)
    if found is None:
        return ""
    text = "Multiplications that the entries make necessary (two operations each); ceilings as they are calibrated."
    return f'<h2>Roofline</h2><p class="quiet">{text}</p>{plots.roofline_plot(found)}'


def _operand(tensor: Tensor, report: Report, given: SparseTensor | None) -> str:
    extents = {a.name: a.indices for e in report.problem.expressions for a in e.inputs}
    shape = [
        report.problem.extents.get(index) if extent is None else extent
        for index, extent in zip(extents[tensor.name], tensor.shape, strict=True)
    ]
    parts = [f"<pre>{escape(chr(10).join(operand_lines(tensor, shape)))}</pre>"]
    picture = spy(given) if given is not None and tensor.open else None
    aside: list[str] = []
    if picture is not None:
        words = escape(f"where the entries of {tensor.name} are")
        aside.append(f'<img class="spy" alt="{words}" src="{picture}">')
    if tensor.statistics is not None:
        aside.append(_statistics(tensor.statistics))
    if aside:
        parts.append(f'<div class="pair">{"".join(f"<div>{a}</div>" for a in aside)}</div>')
    return "\n".join(parts)


def _statistics(s: Statistics) -> str:
    parts: list[str] = []
    if s.slices:
        names = ("rows", "columns") if len(s.shape) == 2 else tuple(map(str, range(len(s.shape))))
        rows = [
            [name, str(n.extent), str(n.used), str(n.smallest), digits(n.mean, 4), str(n.largest), digits(n.deviation)]
            for name, n in zip(names, s.slices, strict=True)
        ]  # fmt: skip
        heads = ("slices", "all", "used", "fewest", "mean", "most", "deviation")
        parts += [_table(heads, rows), plots.histogram(s.slices[0])]
    if s.blocks:
        fills = [[f"{b.rows}x{b.columns}", str(b.count), share(b.fill)] for b in s.blocks]
        parts.append(_table(("blocks", "with an entry", "cells full"), fills))
    if s.groups:
        fits = [[f"{g.n}:{g.m}", share(g.fitting), str(g.overflow)] for g in s.groups]
        parts.append(_table(("groups", "fit", "entries too many"), fits))
    return "".join(parts)


def _refusals(report: Report) -> str:
    rows = [(what, reason, remedy) for what, reason, remedy in grouped_refusals(report.refusals)]
    items = "".join(
        f"<li><b>{escape(what)}</b>: {escape(reason)}{'; ' if remedy else ''}<i>{escape(remedy)}</i></li>"
        for what, reason, remedy in rows
    )
    return f"<h2>Not legal</h2><ul>{items}</ul>" if items else ""


def _offers(report: Report) -> str:
    rows = [
        [o.change, seconds(o.seconds), seconds(o.before), times(o.gain), plan_name(o.candidate)]
        for o in report.offers
    ]
    heads = ("change", "then", "now", "gain", "as")
    table = _table(heads, rows) if rows else "<p>Nothing that the model knows.</p>"
    return f"<h2>What would pay</h2>{table}"
