"""Small line plots as SVG text: ratios over a row of names, one line a series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil

COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#8a5a9e", "#c77d0a", "#4a4a4a", "#0f8b8d", "#a23b72")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 46, 190, 34, 40


@dataclass(frozen=True)
class Plot:
    """``series``: a value for each of ``names`` (None: none measured); ``lines``: level, label."""

    title: str
    axis: str
    names: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    lines: Sequence[tuple[float, str]] = ()

    def svg(self) -> str:
        """The plot, from 0 to the largest value."""
        values = [v for line in self.series.values() for v in line if v is not None]
        top = ceil(max([*values, *(level for level, _ in self.lines), 1.0]) * 2) / 2
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        step = (right - LEFT) / max(1, len(self.names) - 1)

        def y(value: float) -> float:
            return round(bottom - value / top * (bottom - TOP), 1)

        def x(place: int) -> float:
            return round(LEFT + place * step, 1)

        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="11">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            _text(LEFT, 18, self.title, size=13),
        ]
        ticks = _step(top)
        for n in range(int(top / ticks) + 1):
            level = n * ticks
            parts.append(_rule(LEFT, right, y(level), "#e4e4e4"))
            parts.append(_text(LEFT - 6, y(level) + 4, f"{level:g}", anchor="end"))
        for level, label in self.lines:
            parts.append(_rule(LEFT, right, y(level), "#888", dashed=True))
            parts.append(_text(right + 8, y(level) + 4, label, colour="#666"))
        for place, name in enumerate(self.names):
            parts.append(_text(x(place), bottom + 16, name, anchor="middle"))
        parts.append(_text((LEFT + right) / 2, HEIGHT - 8, self.axis, anchor="middle"))
        for n, (name, line) in enumerate(self.series.items()):
            colour = COLOURS[n % len(COLOURS)]
            points = [(x(k), y(v)) for k, v in enumerate(line) if v is not None]
            path = " ".join(f"{a},{b}" for a, b in points)
            parts.append(
                f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
            )
            parts += [f'<circle cx="{a}" cy="{b}" r="3" fill="{colour}"/>' for a, b in points]
            parts.append(_text(right + 62, TOP + 8 + 15 * n, name, colour=colour))
        return "\n".join([*parts, "</svg>"]) + "\n"


def _step(top: float) -> float:
    """The distance of ticks from 0 on: 1, 2 or 5 times a power of ten, at least 0.5, at most ten up to ``top``."""
    power = 0.1
    while True:
        for step in (power, 2 * power, 5 * power):
            if step >= 0.5 and step * 10 >= top:
                return step
        power *= 10


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 11, colour: str = "#222"
) -> str:
    place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{colour}"'
    return f"<text {place}>{escape(text)}</text>"


def _rule(left: float, right: float, y: float, colour: str, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<line x1="{left:g}" x2="{right:g}" y1="{y:g}" y2="{y:g}" stroke="{colour}"{dash}/>'
