"""What each format of a matrix would gain over dense: the best plan with it, for a few widths of the other operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparsecc.explanation.sizes import dense_best
from sparsecc.explanation.text import columns
from sparsecc.explanation.units import seconds, times
from sparsecc.selection.candidate import Ranked
from sparsecc.selection.problem import Problem


@dataclass(frozen=True)
class Gains:
    """``plans``: by width and format the best plan; ``dense``: seconds of the best dense plan by width (None: no such
    plan is legal); widths are as they are printed: ``m = 16``."""

    target: str
    expressions: tuple[str, ...]
    plans: Mapping[str, Mapping[str, Ranked]]
    dense: Mapping[str, float | None]

    @property
    def formats(self) -> list[str]:
        """All of them, that of the fastest plan at the first width first."""
        found = dict.fromkeys(f for by_format in self.plans.values() for f in by_format)
        never = float("inf")

        def fastest(fmt: str) -> float:
            ranked = [by_format.get(fmt) for by_format in self.plans.values()]
            return min((r.seconds or 0.0 for r in ranked if r is not None), default=never)

        return sorted(found, key=fastest)

    def gain(self, width: str, fmt: str) -> float | None:
        """How many times as fast as dense; None where one of the two is not legal."""
        ranked, dense = self.plans[width].get(fmt), self.dense[width]
        if ranked is None or not ranked.seconds or dense is None:
            return None
        return dense / ranked.seconds

    def text(self) -> str:
        """A table: times of the best plans, and in brackets how many times as fast as dense."""
        heads = ["format", *self.plans]
        rows = [[fmt, *(self._cell(width, fmt) for width in self.plans)] for fmt in self.formats]
        lines = [f"predicted for {self.target}, beside how many times as fast as dense"]
        lines += [f"  {text}" for text in self.expressions]
        lines += [f"  {line}" for line in columns(heads, rows, left=(0,))]
        return "\n".join(lines)

    def _cell(self, width: str, fmt: str) -> str:
        ranked, gain = self.plans[width].get(fmt), self.gain(width, fmt)
        if ranked is None or ranked.seconds is None:
            return "-"
        return seconds(ranked.seconds) + ("" if gain is None else f" ({times(gain)})")

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "expressions": list(self.expressions),
            "widths": [
                {
                    "width": width,
                    "dense_seconds": self.dense[width],
                    "formats": {
                        fmt: {
                            "plan": str(ranked.candidate),
                            "seconds": ranked.seconds,
                            "gain": self.gain(width, fmt),
                        }
                        for fmt, ranked in by_format.items()
                    },
                }
                for width, by_format in self.plans.items()
            ],
        }


def gains(problems: Sequence[tuple[str, Problem]], name: str) -> Gains:
    """Of an open operand, for problems by width."""
    plans: dict[str, dict[str, Ranked]] = {}
    dense: dict[str, float | None] = {}
    for width, problem in problems:
        found: dict[str, Ranked] = {}
        for candidate in problem.candidates:
            ranked, fmt = problem.predict(candidate), candidate.format_of(name)
            if fmt not in found or (ranked.seconds or 0.0) < (found[fmt].seconds or 0.0):
                found[fmt] = ranked
        best = dense_best(problem)
        plans[width], dense[width] = found, None if best is None else best.seconds
    first = problems[0][1]
    texts = dict.fromkeys(e.text.strip() for _, p in problems for e in p.expressions)
    return Gains(first.target.name, tuple(texts), plans, dense)
