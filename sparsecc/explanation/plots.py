"""Plots of a report as SVG that takes its colours from the page: plans as stacked bars, the roofline, lengths of rows.

All text is escaped; sizes are in pixels of the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10

from sparsecc.explanation.prediction import LARGEST_OF, Prediction
from sparsecc.explanation.report import PlanRow
from sparsecc.explanation.roofline import Roofline
from sparsecc.explanation.text import plan_name
from sparsecc.explanation.units import count, digits, seconds, size, times
from sparsecc.statistics import Lengths

CLIP = 4.0
"""Bars end at so many times the winner's; what goes on is said beside them."""
WIDTH, LABELS, ASIDE = 760, 210, 110
BAR, STEP = 16, 34


def bars(rows: Sequence[PlanRow]) -> str:
    """A bar for each plan: its largest term, launch and conversion one behind another; below, thin, all three terms."""
    longest = max(row.prediction.seconds for row in rows)
    most = min(longest, CLIP * rows[0].prediction.seconds) or 1.0
    scale = (WIDTH - LABELS - ASIDE) / most
    parts: list[str] = []
    for number, row in enumerate(rows):
        y = 8 + number * STEP
        name = plan_name(row.candidate)
        parts.append(_text(LABELS - 8, y + 12, _short(name, 30), anchor="end", title=name))
        x = float(LABELS)
        for term, taken in stacked(row.prediction):
            wide = max(0.0, min(taken * scale, WIDTH - ASIDE - x))
            parts.append(_rect(x, y, wide, BAR, term, f"{term}: {seconds(taken)}"))
            x += wide
        for line, term in enumerate(LARGEST_OF):
            taken = row.prediction.terms.get(term, 0.0)
            wide = min(taken * scale, WIDTH - ASIDE - LABELS)
            parts.append(_rect(LABELS, y + BAR + 1 + 3 * line, wide, 2, term, f"{term}: {seconds(taken)}"))  # fmt: skip
        said = seconds(row.prediction.seconds)
        if row.prediction.seconds > most:
            said = f"… {said}"
        if number and rows[0].prediction.seconds:
            said += f", {times(row.prediction.seconds / rows[0].prediction.seconds)}"
        parts.append(_text(x + 6, y + 12, said, css="quiet"))
    return _svg(WIDTH, 8 + len(rows) * STEP, parts)


def stacked(prediction: Prediction) -> list[tuple[str, float]]:
    """The terms that add up to the time of a call."""
    found = [
        (prediction.bound, prediction.kernel),
        ("launch", prediction.launch),
        ("conversion", prediction.conversion),
    ]
    return [(term, taken) for term, taken in found if taken > 0]


HIGH, LEFT, RIGHT, TOP, BOTTOM = 380, 70, 200, 16, 44


def roofline_plot(found: Roofline) -> str:
    """Operations a second over operations a byte, both in powers of ten."""
    peak = max([rate for _, rate in found.roofs] + [p.rate for p in found.points])
    low, high = min(p.rate for p in found.points), peak
    bandwidth = max([rate for _, rate in found.slopes], default=0.0)
    spread = [p.intensity for p in found.points]
    if bandwidth:
        spread.append(peak / bandwidth)
    left, right = floor(log10(min(spread) / 1.5)), ceil(log10(max(spread) * 1.5))
    below, above = floor(log10(low / 1.5)), ceil(log10(high * 1.2))
    wide, tall = WIDTH - LEFT - RIGHT, HIGH - TOP - BOTTOM

    def x(value: float) -> float:
        return LEFT + (log10(value) - left) / max(right - left, 1) * wide

    def y(value: float) -> float:
        return TOP + tall - (log10(value) - below) / max(above - below, 1) * tall

    parts: list[str] = []
    for power in range(left, right + 1):
        at = x(10.0**power)
        parts.append(_line(at, TOP, at, TOP + tall, "grid"))
        parts.append(_text(at, TOP + tall + 16, _power(power), anchor="middle", css="quiet"))
    for power in range(below, above + 1):
        at = y(10.0**power)
        parts.append(_line(LEFT, at, LEFT + wide, at, "grid"))
        parts.append(_text(LEFT - 6, at + 4, f"{count(10.0**power)}", anchor="end", css="quiet"))
    for place, (name, rate) in enumerate(found.slopes):
        # From where the line enters the frame to where it meets the highest roof, or leaves it.
        start = max(10.0**left, 10.0**below / rate)
        end = min(10.0**right, peak / rate)
        if start < end:
            parts.append(_line(x(start), y(start * rate), x(end), y(end * rate), "ceiling"))
            # The steeper lines' labels stand to the left, the last one's to the right.
            last = place > 0 and place == len(found.slopes) - 1
            part, side = (0.12, "start") if last else (0.6 - 0.25 * place, "end")
            at = 10 ** (log10(start) + part * log10(end / start))
            beside = x(at) + (8 if side == "start" else -8)
            label = f"{name}, {size(rate)}/s"
            parts.append(_text(beside, y(at * rate) + 4, label, anchor=side, css="quiet"))
    for name, rate in found.roofs:
        parts.append(_line(LEFT, y(rate), LEFT + wide, y(rate), "ceiling"))
        parts.append(_text(LEFT + wide + 6, y(rate) + 4, f"{name}, {count(rate)} op/s", css="quiet"))  # fmt: skip
    labels = _apart([y(point.rate) for point in found.points], 13)
    for number, point in enumerate(found.points):
        a, b = x(point.intensity), y(point.rate)
        name = plan_name(point.candidate)
        words = f"{name}: {digits(point.intensity)} op/B, {count(point.rate)} op/s"
        css = "winner" if number == 0 else "point"
        shape = f'cx="{a:.1f}" cy="{b:.1f}" r="5" class="{css}"'
        parts.append(f"<circle {shape}><title>{escape(words)}</title></circle>")
        parts.append(_text(a + 9, labels[number] + 4, _short(name, 28)))
    middle = LEFT + wide / 2
    parts.append(_text(middle, HIGH - 8, "operations a byte", anchor="middle", css="quiet"))
    return _svg(WIDTH, HIGH, parts)


def _apart(places: Sequence[float], least: float) -> list[float]:
    """Places of labels, moved down until they are so far apart."""
    found = list(places)
    order = sorted(range(len(places)), key=lambda k: places[k])
    for above, below in zip(order, order[1:], strict=False):
        found[below] = max(found[below], found[above] + least)
    return found


def histogram(lengths: Lengths) -> str:
    """How many slices have 0, 1, 2-3, 4-7, … entries."""
    shown = [(k, number) for k, number in enumerate(lengths.bins) if number]
    if not shown:
        return ""
    first, last = shown[0][0], shown[-1][0]
    most = max(number for _, number in shown)
    wide, tall, parts = 34, 70, list[str]()
    for place, k in enumerate(range(first, last + 1)):
        number = lengths.bins[k]
        height = number / most * tall
        low, high = (0, 0) if k == 0 else (1 << (k - 1), (1 << k) - 1)
        name = str(low) if low == high else f"{low}-{high}"
        x = 6 + place * wide
        words = f"{number} with {name} entries"
        parts.append(_rect(x, 6 + tall - height, wide - 4, height, "bytes", words))
        parts.append(_text(x + wide / 2 - 2, tall + 20, count(low), anchor="middle", css="quiet"))
    return _svg(12 + (last - first + 1) * wide, tall + 28, parts)


def _power(power: int) -> str:
    return digits(10.0**power) if -4 < power < 4 else f"1e{power}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _svg(wide: float, high: float, parts: Sequence[str]) -> str:
    head = f'<svg viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}" role="img">'
    return "\n".join([head, *parts, "</svg>"])


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", css: str = "", title: str = ""
) -> str:
    kind = f' class="{css}"' if css else ""
    note = f"<title>{escape(title)}</title>" if title else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{note}{escape(text)}</text>'


def _rect(x: float, y: float, wide: float, high: float, css: str, title: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}"'
    return f'<rect {place} class="{css}"><title>{escape(title)}</title></rect>'


def _line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css}"/>'
